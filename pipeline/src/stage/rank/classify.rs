//! Triple classification: true triples of the asked part against false ones, above a threshold that the part `valid` chose.

use std::collections::BTreeMap;

use kg::split::{Part, official};
use kg::table;
use model::eval::auroc;
use model::eval::link::{Threshold, accuracy};
use serde::Serialize;
use tasks::link::{false_ones, some};
use tasks::sample::{Slot, Triple};

use super::config::By;
use super::score::Scorer;
use super::{Graph, Ranking};
use crate::engine::context::Context;
use crate::stage::split::Parts;

/// Samples of a relation, true and false, below which it has no threshold of its own.
const LEAST: usize = 10;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Classified {
    /// True triples.
    pub stated: usize,
    /// False ones.
    pub corrupted: usize,
    /// Where the false ones come from.
    pub negatives: Source,
    /// Area under the ROC curve.
    pub auroc: f64,
    /// Average precision of the true ones.
    pub average_precision: f64,
    /// Accuracy above the threshold of each relation on `valid`, or of all where a relation has few samples or of one kind; nothing without that part.
    pub accuracy: Option<f64>,
    /// The same above one threshold for all.
    pub accuracy_one_threshold: Option<f64>,
    /// Accuracy of the class that the model holds likelier; only of the triplet output.
    pub accuracy_argmax: Option<f64>,
    /// The threshold of all.
    pub threshold: Option<f64>,
    /// Where the false triples that thresholds were chosen on come from.
    pub valid_negatives: Option<Source>,
}

/// Where false triples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// The source of the official split publishes them.
    Published,
    /// Drawn.
    Drawn,
}

impl Source {
    /// The word on disk.
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Published => "published",
            Source::Drawn => "drawn",
        }
    }
}

/// True and false triples of a part.
struct Samples {
    triples: Vec<Triple>,
    truth: Vec<bool>,
    negatives: Source,
}

/// What is to be classified; drawn before anything is scored, so that what cannot be drawn costs nothing.
pub(super) struct Drawn {
    asked: Samples,
    /// Of the part `valid`, where another is asked for.
    valid: Option<Samples>,
}

impl Drawn {
    /// True and false triples of the asked part and of `valid`; nothing, with a word, where no false triple can be had.
    ///
    /// # Errors
    /// When the published ones cannot be read.
    pub(super) fn new(
        ranking: &Ranking,
        graph: &Graph<'_>,
        asked: &[(Triple, u32)],
        context: &Context,
    ) -> anyhow::Result<Option<Self>> {
        let part = ranking.config.part.part();
        let stated = asked.iter().map(|(triple, _)| *triple).collect();
        let Some(asked) = ranking.samples(graph, stated, part, context)? else { return Ok(None) };
        let (valid, rows) = graph.part(Part::Valid);
        if part == Part::Valid || valid.is_empty() {
            return Ok(Some(Self { asked, valid: None }));
        }
        let places = some(rows, ranking.config.max_triples, ranking.seed("valid"));
        let stated = places.into_iter().map(|place| valid[place]).collect();
        Ok(Some(Self { asked, valid: ranking.samples(graph, stated, Part::Valid, context)? }))
    }

    /// How many triples are to be scored.
    pub(super) fn len(&self) -> usize {
        self.asked.triples.len() + self.valid.as_ref().map_or(0, |valid| valid.triples.len())
    }
}

impl Ranking {
    /// True and false triples; nothing where none is false.
    fn samples(
        &self,
        graph: &Graph<'_>,
        stated: Vec<Triple>,
        part: Part,
        context: &Context,
    ) -> anyhow::Result<Option<Samples>> {
        let published = self.published(context, graph, part)?;
        let (false_ones, negatives) = if published.is_empty() {
            let seed = self.seed("false").named(part.name());
            let (drawn, gave_up) = false_ones(graph.corpus, &stated, self.config.same, seed)?;
            if gave_up > 0 && !drawn.is_empty() {
                context.warn(format!(
                    "{gave_up} of {} triples of {part} have no false triple beside them: nothing that was drawn is false",
                    stated.len()
                ));
            }
            (drawn, Source::Drawn)
        } else {
            // As many as true ones, where only some of these are asked for.
            let rows: Vec<u32> = (0..u32::try_from(published.len())?).collect();
            let most = self.config.max_triples.map(|_| stated.len() as u64);
            let places = some(&rows, most, self.seed("published").named(part.name()));
            (places.into_iter().map(|place| published[place]).collect(), Source::Published)
        };
        if false_ones.is_empty() {
            let left_out = if part == self.config.part.part() {
                "triples are not classified"
            } else {
                "there are no thresholds"
            };
            context.warn(format!(
                "no false triple of the part {part} can be drawn, so {left_out} (rank.classification): every subject or object that the part train has makes a true one"
            ));
            return Ok(None);
        }
        let truth =
            std::iter::repeat_n(true, stated.len()).chain(std::iter::repeat_n(false, false_ones.len()));
        let truth = truth.collect();
        Ok(Some(Samples { triples: stated.into_iter().chain(false_ones).collect(), truth, negatives }))
    }

    /// False triples that the source of an official split published for a part, of entities and relations that the graph has.
    fn published(&self, context: &Context, graph: &Graph<'_>, part: Part) -> anyhow::Result<Vec<Triple>> {
        let Parts::Official { source, .. } = &self.split.parts else { return Ok(vec![]) };
        let negatives = table::read::negatives(context.artifact("triples")?)?;
        let made = &graph.made.graph;
        let entities: BTreeMap<&str, u32> =
            made.entities().iter().zip(0..).map(|(entity, id)| (entity.key.as_str(), id)).collect();
        let relations: BTreeMap<&str, u32> =
            made.relations().iter().zip(0..).map(|(relation, id)| (relation.key.as_str(), id)).collect();
        let of_part = |name: &str| official::published(name) == Some(part);
        let negatives = negatives
            .iter()
            .filter(|negative| negative.source == *source && negative.part.as_deref().is_some_and(of_part));
        let found = negatives.filter_map(|negative| {
            let [subject, relation, object] = negative.keys.each_ref();
            let entity = |key: &String| entities.get(key.as_str()).copied();
            Some([entity(subject)?, *relations.get(relation.as_str())?, entity(object)?])
        });
        Ok(found.collect())
    }
}

/// Classifies triples.
///
/// # Errors
/// When the model cannot be asked.
pub(super) fn classified(
    by: By,
    drawn: &Drawn,
    scorer: &dyn Scorer,
    context: &Context,
) -> anyhow::Result<Classified> {
    let ask = |samples: &Samples| -> anyhow::Result<Vec<f64>> {
        let scores = scorer.scores(Slot::Object, &samples.triples, context)?;
        Ok(scores.into_iter().map(f64::from).collect())
    };
    let Samples { triples, truth, negatives } = &drawn.asked;
    let scores = ask(&drawn.asked)?;
    let above = |threshold: &dyn Fn(u32) -> f64| {
        let samples = scores.iter().zip(triples).zip(truth);
        accuracy(samples.map(|((&score, triple), &truth)| (score, threshold(triple[1]), truth)))
    };
    let stated = truth.iter().filter(|truth| **truth).count();
    let mut classified = Classified {
        stated,
        corrupted: triples.len() - stated,
        negatives: *negatives,
        auroc: auroc::binary(&scores, truth)?,
        average_precision: auroc::average_precision(&scores, truth)?,
        accuracy: None,
        accuracy_one_threshold: None,
        accuracy_argmax: None,
        threshold: None,
        valid_negatives: None,
    };
    if by == By::Triplet {
        classified.accuracy_argmax = Some(above(&|_| 0.0)?);
    }
    let Some(valid) = &drawn.valid else { return Ok(classified) };
    let of_valid = ask(valid)?;
    let of_all = Threshold::best(&of_valid, &valid.truth)?.at;
    let mut by_relation: BTreeMap<u32, (Vec<f64>, Vec<bool>)> = BTreeMap::new();
    for ((&score, triple), &truth) in of_valid.iter().zip(&valid.triples).zip(&valid.truth) {
        let (scores, truths) = by_relation.entry(triple[1]).or_default();
        scores.push(score);
        truths.push(truth);
    }
    let enough = by_relation.iter().filter(|(_, (scores, truth))| {
        scores.len() >= LEAST && truth.contains(&true) && truth.contains(&false)
    });
    let own = enough.map(|(&relation, (scores, truth))| Ok((relation, Threshold::best(scores, truth)?.at)));
    let own = own.collect::<anyhow::Result<BTreeMap<u32, f64>>>()?;
    classified.accuracy = Some(above(&|relation| own.get(&relation).copied().unwrap_or(of_all))?);
    classified.accuracy_one_threshold = Some(above(&|_| of_all)?);
    classified.threshold = Some(of_all);
    classified.valid_negatives = Some(valid.negatives);
    Ok(classified)
}
