//! The gate of the first steps: every parameter that is not frozen gets a gradient.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use super::record::Records;
use crate::Error;
use crate::optim::clip;
use crate::params::Params;

/// A key's bias, and that of learned attention pooling, shift all scores of a softmax alike, so their true gradient is 0:
/// rounding noise is all they ever get.
const TRUE_ZERO: [&str; 2] = [".attention.self.key.bias", "outputs.pool_attn.bias"];

/// Which parameters have had a gradient, until every task has had a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coverage {
    /// Parameters that are trained and have had none.
    uncovered: BTreeSet<String>,
    /// Tasks that have had no batch.
    waiting: BTreeSet<String>,
    /// The step by which all have had one.
    by: u64,
}

impl Coverage {
    /// Nothing has been seen so far. `tasks` are to have had a batch by the step `by`.
    pub(super) fn new(
        params: &Params,
        trained: impl Fn(&str) -> bool,
        tasks: BTreeSet<String>,
        by: u64,
    ) -> Self {
        let trained = params.iter().map(|(name, _)| name).filter(|name| trained(name));
        let uncovered = trained.filter(|name| !TRUE_ZERO.iter().any(|zero| name.ends_with(zero)));
        Self { uncovered: uncovered.map(str::to_owned).collect(), waiting: tasks, by }
    }

    /// Takes note of a step. Once every task has had a batch, refuses parameters that have had no gradient, or only such as are 0
    /// everywhere; those that cannot have one yet are `excused`.
    pub(super) fn see(
        &mut self,
        step: u64,
        tasks: &Records,
        grads: &BTreeMap<String, Tensor>,
        excused: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let mut norms = BTreeMap::new();
        for (name, grad) in grads.iter().filter(|(name, _)| self.uncovered.contains(*name)) {
            let alone = BTreeMap::from([(name.clone(), grad.clone())]);
            norms.insert(name.clone(), clip::global_norm(&alone)?);
        }
        self.see_norms(step, tasks, &norms, excused)
    }

    /// As [`Coverage::see`], of the gradients' norms.
    pub(super) fn see_norms(
        &mut self,
        step: u64,
        tasks: &Records,
        norms: &BTreeMap<String, f64>,
        excused: &BTreeSet<String>,
    ) -> Result<(), Error> {
        // A batch whose rows are all told apart well enough says nothing of what a gradient reaches.
        let nothing = norms.values().all(|norm| *norm == 0.0);
        if self.uncovered.is_empty() || (nothing && step < self.by) {
            return Ok(());
        }
        self.uncovered.retain(|name| norms.get(name).is_none_or(|norm| *norm == 0.0));
        for task in tasks.keys() {
            self.waiting.remove(task);
        }
        let all = self.waiting.is_empty() || step >= self.by;
        let missing: Vec<String> = self.uncovered.difference(excused).cloned().collect();
        if missing.is_empty() || !all {
            return Ok(());
        }
        Err(Error::Misfit(format!(
            "by step {step}, no gradient reaches [{}]; name them in `frozen` if that is meant, else the model has lost a connection, or a task has had no batch: train more steps; of a metric, no batch had a hard pair: take larger ones, or all pairs",
            missing.join(", ")
        )))
    }
}
