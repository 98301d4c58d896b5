//! The table `[rank]`: what is asked of whom.

use batch::task::Task;
use kg::split::Part;
use model::encoder::pool::Pooling;
use serde::{Deserialize, Serialize};
use tasks::link::Candidates;
use tasks::negative::Same;
use tasks::sample::Slot;

use crate::config::range::whole;
use crate::stage::encoder::Base;
use crate::stage::finetune::begin::From;
use crate::stage::retrain;
use crate::stage::split::{self, Parts};

/// The table `[rank]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The model that ranks: `align`, `retrain`, `pretrain`, or `encoder` as it is; left out, what was trained last, where `by` takes an output what was trained on the graph last.
    #[serde(skip_serializing)]
    pub from: Option<From>,
    /// What its score of a triple is.
    ///
    /// Source: KG-BERT, `run_bert_link_prediction.py`, which ranks by the output for true triples.
    pub by: By,
    /// The part whose triples are asked for; `split.parts` must make it.
    ///
    /// Source: KG-BERT's scripts: figures are of the part `test`.
    pub part: Of,
    /// What is asked of each triple: `subject` and `object` (link prediction), `relation` (relation prediction).
    ///
    /// Source: KG-BERT, `run_bert_link_prediction.py` and `run_bert_relation_prediction.py`: all three.
    pub slots: Vec<Slot>,
    /// Which entities are candidates. Relations are always all of them.
    ///
    /// Source: KG-BERT, `run_bert_link_prediction.py`: all entities.
    pub candidates: Candidates,
    /// At most so many triples of the part are asked for, drawn by `seed`; left out, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_triples: Option<u64>,
    /// When a candidate counts as true besides the answer: a triple of the graph, of whatever part, says the same with it, or its declared inverse does. Such are left out of filtered ranks.
    ///
    /// Source: ours: because a model that reads names cannot tell entities of the same name apart; without such names and inverse relations `ids` gives the same ranks.
    pub same: Same,
    /// How the tokens of a row become one vector with `by = "similarity"`: `cls`, `mean` or `max`; left out, as `[align]` has it where that is asked, else the mean.
    ///
    /// Source: the mean, as all-MiniLM-L6-v2 was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// How many of the best candidates of each question are stored with their scores (`candidates.parquet`), up to 4,294,967,295; 0: none, and no such file.
    ///
    /// Source: ours: the ranks are what is asked for.
    pub best: u32,
    /// Whether to measure as well how well true triples are told from false ones (triple classification).
    ///
    /// Source: KG-BERT, `run_bert_triple_classifier.py`: it does.
    pub classification: bool,
    /// Draws candidates, triples and false triples.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            from: None,
            by: By::Triplet,
            part: Of::Test,
            slots: vec![Slot::Subject, Slot::Object, Slot::Relation],
            candidates: Candidates::All,
            max_triples: None,
            same: Same::Texts,
            pooling: None,
            best: 0,
            classification: true,
            seed: 1,
        }
    }
}

/// What a triple's score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// The log odds of being true, from the triplet output: one pass for each triple. KG-BERT's script takes the logit of true alone, which need not give the order of the probability.
    Triplet,
    /// The log probability of its relation, from the relation output: one pass for each pair of entities.
    Relation,
    /// The cosine of two vectors: the triple with a blank for what is asked, and the answer's name (late interaction). One pass for each question and each name; needs no
    /// trained output.
    Similarity,
}

impl By {
    /// The task whose output it needs.
    pub(in crate::stage) fn task(self) -> Option<Task> {
        match self {
            By::Triplet => Some(Task::Triplet),
            By::Relation => Some(Task::Relation),
            By::Similarity => None,
        }
    }

    /// The name in configs.
    pub(super) fn name(self) -> &'static str {
        match self {
            By::Triplet => "triplet",
            By::Relation => "relation",
            By::Similarity => "similarity",
        }
    }
}

/// A held-out part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Of {
    /// The part for choosing settings.
    Valid,
    /// The part for reporting.
    Test,
}

impl Of {
    /// The part.
    pub(crate) fn part(self) -> Part {
        match self {
            Of::Valid => Part::Valid,
            Of::Test => Part::Test,
        }
    }
}

impl Config {
    /// Refuses vectors pooled otherwise than an aligned encoder has learnt.
    ///
    /// # Errors
    /// Names both.
    pub(crate) fn of_aligned(&self, pooling: Pooling) -> anyhow::Result<()> {
        let is_aligned = self.by == By::Similarity && matches!(self.from, None | Some(From::Align));
        let own = self.pooling.unwrap_or(Pooling::Mean);
        anyhow::ensure!(
            !is_aligned || own == pooling,
            "rank.pooling is {:?}, and align.pooling {:?}: rank by what was learnt, or leave rank.pooling out",
            own.name(),
            pooling.name()
        );
        Ok(())
    }

    /// Refuses a part that the split does not make, as far as its settings tell: an official one has what its source has.
    ///
    /// # Errors
    /// Names the part.
    pub(crate) fn of_split(&self, split: &split::Config) -> anyhow::Result<()> {
        let there = match (&split.parts, self.part) {
            (Parts::All, _) => false,
            (Parts::Ratio { valid, .. }, Of::Valid) => *valid > 0.0,
            (Parts::Ratio { test, .. }, Of::Test) => *test > 0.0,
            (Parts::Official { .. }, _) => true,
        };
        let part = self.part.part();
        anyhow::ensure!(
            there,
            "rank.part is \"{part}\", and split.parts makes no such part: give it a share (split.parts.ratio.{part}), or name another part"
        );
        Ok(())
    }

    /// Refuses an output that the training of the model does not train.
    ///
    /// # Errors
    /// Says what to do.
    pub(crate) fn trained(
        &self,
        base: &Base,
        pretrain: Option<&retrain::Config>,
        retrain: Option<&retrain::Config>,
    ) -> anyhow::Result<()> {
        let Some(task) = self.by.task() else { return Ok(()) };
        let trained = [("pretrain", pretrain), ("retrain", retrain)];
        let by = self.by.name();
        let training = trained.into_iter().find(|(stage, _)| *base == Base::Stage((*stage).to_owned()));
        let Some((table, Some(training))) = training else {
            anyhow::bail!(
                "rank.by is {by:?}, which takes the output of a training on the graph, and {} has none: add [retrain], or set rank.by = \"similarity\"",
                base.name()
            );
        };
        anyhow::ensure!(
            training.alphas.of(task) != 0.0,
            "rank.by is {by:?}, and {table}.alphas.{by} is 0, so that output is never trained: give it a weight, or rank by another"
        );
        Ok(())
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.slots.is_empty() || self.classification,
            "rank.slots is empty and rank.classification false, so nothing is asked: name subject, object or relation"
        );
        let mut different = self.slots.clone();
        different.sort_unstable();
        different.dedup();
        anyhow::ensure!(
            different.len() == self.slots.len(),
            "rank.slots names one twice: name each of subject, object and relation once"
        );
        if let Some(pooling) = self.pooling {
            anyhow::ensure!(
                matches!(pooling, Pooling::Cls | Pooling::Mean | Pooling::Max),
                "rank.pooling is {:?}, whose weights no ranking has learned: expected cls, mean or max",
                pooling.name()
            );
            anyhow::ensure!(
                self.by == By::Similarity,
                "rank.pooling makes vectors, and rank.by is {:?}, which compares none: leave rank.pooling out, or set rank.by = \"similarity\"",
                self.by.name()
            );
        }
        if let Candidates::Sampled(most) = self.candidates {
            anyhow::ensure!(
                self.slots.iter().any(|slot| *slot != Slot::Relation),
                "rank.candidates draws entities, and rank.slots asks for none: leave rank.candidates out, or ask for subject or object"
            );
            whole("rank.candidates.sampled", most.into(), 1..=u64::from(u32::MAX))?;
        }
        whole("rank.max_triples", self.max_triples.unwrap_or(1), 1..=u64::MAX)
    }
}
