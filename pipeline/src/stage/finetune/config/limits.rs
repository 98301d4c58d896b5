//! When a fine-tuning ends, and how many examples it looks at.

use serde::{Deserialize, Serialize};

/// When fine-tuning stops before its last epoch: after so many evaluations in a row without a better score on the part `dev`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Patience {
    /// How often to evaluate on `dev` (or on the part set by `quirks.chosen_on`), at even distances.
    ///
    /// Source: ours: every example is seen between two evaluations.
    pub evals_per_epoch: u64,
    /// Steps between two evaluations, in place of `evals_per_epoch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The score that decides, of those in `scores.json` (`macro_f1`, `mrr`, `word_f1` ...); every benchmark and recipe must have it, and higher is
    /// better. Left out, the benchmark's own measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// How many evaluations in a row without improvement end training.
    ///
    /// Source: ours: never reached with the default epochs; the best evaluation's model is kept in any case.
    pub evaluations: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { evals_per_epoch: 1, every: None, measure: None, evaluations: 5 }
    }
}

/// Maximum examples or queries that are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MaxExamples {
    /// Of `train`; left out, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train: Option<usize>,
    /// Share of `train`, above 0 and below 1, rounded, at least one example; left out, all. Smaller shares are part of larger ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_share: Option<f64>,
    /// Of `dev`, at every evaluation.
    ///
    /// Source: ours: in effect all, with a bound on the time that evaluations of a huge set take.
    pub dev: usize,
    /// Of `mask_search`, at every step of the search.
    ///
    /// Source: ours: as for `dev`.
    pub mask_search: usize,
    /// Of `test`.
    ///
    /// Source: ours: as for `dev`.
    pub test: usize,
}

impl MaxExamples {
    /// Of so many examples or queries to train on, how many are used.
    #[must_use]
    pub(crate) fn of_train(&self, all: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share from 0 to below 1 of them"
        )]
        let share = |share: f64| ((share * all as f64).round() as usize).max(1);
        self.train_share.map_or(all, share).min(self.train.unwrap_or(usize::MAX))
    }
}

impl Default for MaxExamples {
    fn default() -> Self {
        Self { train: None, train_share: None, dev: 100_000, mask_search: 100_000, test: 100_000 }
    }
}
