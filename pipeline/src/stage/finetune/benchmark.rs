//! What fine-tuning, importance, mask search and evaluation ask of a benchmark.

use std::collections::BTreeMap;

use base::rng::RngKey;
use batch::rows::Rows;
use downstream::encode::{Cuts, Framed};
use downstream::example::Part;
use model::output::{Batch, Output, Targets};
use serde::{Deserialize, Serialize};

use crate::bundle::task_file::{Asked, Spans};

/// Gives the logits of the tokens of some rows.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&Rows) -> anyhow::Result<Vec<Vec<f32>>>;

/// A benchmark, ready for an encoder.
pub(crate) trait Benchmark: Send + Sync {
    /// What an encoder gets for it.
    fn output(&self) -> &Output;

    /// What the output says.
    fn asked(&self) -> Asked;

    /// Whether it is asked of two texts.
    fn pairs(&self) -> bool;

    /// Names of the classes by number; none of rankings and scores.
    fn classes(&self) -> &[String];

    /// Examples or queries to fine-tune on, or pieces that examples are cut into.
    fn items(&self) -> usize;

    /// Some of them, by number, as they are shown in `epoch`.
    ///
    /// # Errors
    /// When one cannot be put together.
    fn batch(&self, epoch: u64, items: &[usize]) -> anyhow::Result<Batch>;

    /// Examples or queries of a part other than training that are looked at, each a sample.
    fn samples(&self, part: Part) -> usize;

    /// What the publisher calls a sample.
    fn id(&self, part: Part, sample: usize) -> String;

    /// No rows yet.
    ///
    /// # Errors
    /// When rows are to be too short.
    fn framed(&self) -> anyhow::Result<Framed>;

    /// Adds all rows of a sample.
    ///
    /// # Errors
    /// When one cannot be put together.
    fn push(&self, part: Part, sample: usize, rows: &mut Framed) -> anyhow::Result<()>;

    /// Numbers of a sample's rows, the same for rows of the same text, where making rows takes long or much memory; none where it does not.
    fn numbers(&self, _part: Part, _sample: usize) -> Option<Vec<u64>> {
        None
    }

    /// Adds some of a sample's rows, which have numbers.
    ///
    /// # Errors
    /// When one cannot be put together.
    fn push_some(
        &self,
        part: Part,
        sample: usize,
        _some: std::ops::Range<usize>,
        rows: &mut Framed,
    ) -> anyhow::Result<()> {
        self.push(part, sample, rows)
    }

    /// How many answers a model gives for a sample.
    ///
    /// # Errors
    /// When its rows cannot be put together.
    fn answers(&self, part: Part, sample: usize) -> anyhow::Result<usize> {
        let mut rows = self.framed()?;
        self.push(part, sample, &mut rows)?;
        Ok(self.output().answers(&rows.rows))
    }

    /// What is kept of spans: for each row of each sample of a part the best span's score above the null score, the number of its passage, and where it begins and ends there, in
    /// characters. `ask` gives the logits of the tokens of some rows.
    ///
    /// # Errors
    /// When a row cannot be put together, or `ask` fails.
    fn best_spans(&self, _part: Part, _ask: Ask<'_>) -> anyhow::Result<Vec<Vec<f32>>> {
        anyhow::bail!("it asks for no spans; report it")
    }

    /// How answers are looked for, where they are spans.
    fn spans(&self) -> Option<Spans> {
        None
    }

    /// Some samples without padding, with their targets: what head importance is measured by. They are whole, but for questions, of which some windows are drawn.
    ///
    /// # Errors
    /// When one cannot be put together.
    fn probe(&self, part: Part, samples: std::ops::Range<usize>) -> anyhow::Result<Batch>;

    /// How good the outputs are of all samples of a part, `outputs` holding those of all rows in order, or, of tags, of all their tokens.
    ///
    /// # Errors
    /// When the metric is undefined.
    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score>;

    /// What is cut of a part's rows.
    ///
    /// # Errors
    /// When rows are to be too short.
    fn cuts(&self, part: Part) -> anyhow::Result<Cuts> {
        let mut all = Cuts::default();
        for sample in 0..self.samples(part) {
            let mut rows = self.framed()?;
            self.push(part, sample, &mut rows)?;
            let Cuts { rows, cut, tokens } = rows.cuts;
            all = Cuts { rows: all.rows + rows, cut: all.cut + cut, tokens: all.tokens + tokens };
        }
        Ok(all)
    }

    /// How much there is of what: lines for the ledger.
    fn facts(&self) -> BTreeMap<String, serde_json::Value>;
}

/// How good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Score {
    /// Samples.
    pub samples: usize,
    /// What `value` is.
    pub metric: String,
    /// The metric that settings, stops and masks are chosen by; higher is better.
    pub value: f64,
    /// Other metrics.
    pub others: BTreeMap<String, f64>,
}

impl Score {
    /// The metric of this name.
    #[must_use]
    pub(crate) fn get(&self, metric: &str) -> Option<f64> {
        if self.metric == metric { Some(self.value) } else { self.others.get(metric).copied() }
    }
}

/// At most `most` of some numbers, drawn by the benchmark's name, in their order: the same for every seed of fine-tuning.
#[must_use]
pub(super) fn drawn(mut all: Vec<usize>, most: usize, name: &str, part: &str) -> Vec<usize> {
    if all.len() > most {
        RngKey::new(0).named("looked at").named(name).named(part).shuffle(&mut all);
        all.truncate(most);
        all.sort_unstable();
    }
    all
}

/// Rows and targets as a batch of the only task.
#[must_use]
pub(super) fn only(rows: Rows, targets: Targets) -> Batch {
    Batch { task: 0, rows, targets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_is_drawn_by_name_and_kept_in_order() {
        let some = drawn((0..1000).collect(), 10, "capr", "dev");
        assert_eq!(some.len(), 10);
        // The very ones that `benches/drawn.py` draws, so that PyTorch trains on the same (`tests/tests/peers.rs`).
        assert_eq!(some, [114, 303, 335, 451, 501, 617, 835, 858, 920, 969]);
        assert_eq!(some, drawn((0..1000).collect(), 10, "capr", "dev"));
        assert_ne!(some, drawn((0..1000).collect(), 10, "capr", "test"));
        assert_eq!(drawn(vec![4, 7], 2, "capr", "dev"), [4, 7]);
    }
}
