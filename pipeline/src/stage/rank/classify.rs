//! Triple classification: true triples of the asked part against false ones, above a threshold that the part `valid` chose.

use std::collections::BTreeMap;

use kg::split::Part;
use kg::table;
use model::eval::auroc;
use model::eval::link::{Threshold, accuracy};
use serde::Serialize;
use tasks::link::false_ones;
use tasks::sample::{Slot, Triple};

use super::score::Scorer;
use super::{By, Graph, Ranking};
use crate::engine::context::Context;

/// Triples of the part `valid` below which a relation has no threshold of its own.
const LEAST: usize = 10;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Classified {
    /// True triples.
    pub stated: usize,
    /// False ones.
    pub corrupted: usize,
    /// Where the false ones come from: `published` by a source, or `drawn`.
    pub negatives: &'static str,
    /// Area under the ROC curve.
    pub auroc: f64,
    /// Average precision of the true ones.
    pub average_precision: f64,
    /// Accuracy above the threshold of each relation on `valid`, or of all where a relation has few; nothing without that part.
    pub accuracy: Option<f64>,
    /// The same above one threshold for all.
    pub accuracy_one_threshold: Option<f64>,
    /// Accuracy of the class that the model holds likelier; only of the triplet output.
    pub accuracy_argmax: Option<f64>,
    /// The threshold of all.
    pub threshold: Option<f64>,
}

/// Triples with whether they are true.
type Samples = (Vec<Triple>, Vec<bool>);

/// False triples that the graph's sources published for a part, of entities and relations that the graph has.
fn published(context: &Context, graph: &Graph<'_>, part: Part) -> anyhow::Result<Vec<Triple>> {
    let negatives = table::read::negatives(context.artifact("triples")?)?;
    let made = &graph.made.graph;
    let entities: BTreeMap<&str, u32> =
        made.entities().iter().zip(0..).map(|(entity, id)| (entity.key.as_str(), id)).collect();
    let relations: BTreeMap<&str, u32> =
        made.relations().iter().zip(0..).map(|(relation, id)| (relation.key.as_str(), id)).collect();
    let of_part = |name: &str| match part {
        Part::Valid => matches!(name, "dev" | "valid" | "validation"),
        part => name == part.name(),
    };
    let negatives = negatives.iter().filter(|negative| negative.part.as_deref().is_some_and(of_part));
    let found = negatives.filter_map(|negative| {
        let [subject, relation, object] = negative.keys.each_ref();
        let entity = |key: &String| entities.get(key.as_str()).copied();
        Some([entity(subject)?, *relations.get(relation.as_str())?, entity(object)?])
    });
    Ok(found.collect())
}

impl Ranking {
    /// True and false triples.
    fn samples(
        &self,
        graph: &Graph<'_>,
        stated: Vec<Triple>,
        published: &[Triple],
        part: Part,
    ) -> anyhow::Result<Samples> {
        let false_ones = if published.is_empty() {
            false_ones(graph.corpus, &stated, self.config.same, self.seed("false").named(part.name()))?
        } else {
            published.to_vec()
        };
        let truth =
            std::iter::repeat_n(true, stated.len()).chain(std::iter::repeat_n(false, false_ones.len()));
        let truth = truth.collect();
        Ok((stated.into_iter().chain(false_ones).collect(), truth))
    }
}

/// Classifies the triples that are asked for, and as many false ones.
///
/// # Errors
/// When no false triple can be had, or the model cannot be asked.
pub(super) fn classified(
    ranking: &Ranking,
    graph: &Graph<'_>,
    asked: &[(Triple, u32)],
    scorer: &dyn Scorer,
    context: &Context,
) -> anyhow::Result<Classified> {
    let part = ranking.config.part.part();
    let of_part = published(context, graph, part)?;
    let stated: Vec<Triple> = asked.iter().map(|(triple, _)| *triple).collect();
    let count = stated.len();
    let (triples, truth) = ranking.samples(graph, stated, &of_part, part)?;
    anyhow::ensure!(
        triples.len() > count,
        "no false triple can be drawn: every subject or object that the part train has makes a true one; set rank.classification = false"
    );
    let ask = |triples: &[Triple]| -> anyhow::Result<Vec<f64>> {
        let scores = scorer.scores(Slot::Object, triples, context)?;
        Ok(scores.into_iter().map(f64::from).collect())
    };
    let scores = ask(&triples)?;
    let above = |threshold: &dyn Fn(u32) -> f64| {
        let samples = scores.iter().zip(&triples).zip(&truth);
        accuracy(samples.map(|((&score, triple), &truth)| (score, threshold(triple[1]), truth)))
    };
    let mut classified = Classified {
        stated: count,
        corrupted: triples.len() - count,
        negatives: if of_part.is_empty() { "drawn" } else { "published" },
        auroc: auroc::binary(&scores, &truth)?,
        average_precision: auroc::average_precision(&scores, &truth)?,
        accuracy: None,
        accuracy_one_threshold: None,
        accuracy_argmax: None,
        threshold: None,
    };
    if ranking.config.by == By::Triplet {
        classified.accuracy_argmax = Some(above(&|_| 0.0)?);
    }
    let (valid, _) = graph.part(Part::Valid);
    if part == Part::Valid || valid.is_empty() {
        return Ok(classified);
    }
    let (triples, truth) =
        ranking.samples(graph, valid.to_vec(), &published(context, graph, Part::Valid)?, Part::Valid)?;
    let scores = ask(&triples)?;
    let of_all = Threshold::best(&scores, &truth)?.at;
    let mut by_relation: BTreeMap<u32, (Vec<f64>, Vec<bool>)> = BTreeMap::new();
    for ((&score, triple), &truth) in scores.iter().zip(&triples).zip(&truth) {
        let (scores, truths) = by_relation.entry(triple[1]).or_default();
        scores.push(score);
        truths.push(truth);
    }
    let enough = by_relation.iter().filter(|(_, (scores, _))| scores.len() >= LEAST);
    let own = enough.map(|(&relation, (scores, truth))| Ok((relation, Threshold::best(scores, truth)?.at)));
    let own = own.collect::<anyhow::Result<BTreeMap<u32, f64>>>()?;
    classified.accuracy = Some(above(&|relation| own.get(&relation).copied().unwrap_or(of_all))?);
    classified.accuracy_one_threshold = Some(above(&|_| of_all)?);
    classified.threshold = Some(of_all);
    Ok(classified)
}
