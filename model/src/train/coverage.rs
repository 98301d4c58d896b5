//! The gate of the first steps: every parameter is trained or frozen for a stated reason. Knows no optimiser.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::Tensor;
use serde::{Deserialize, Serialize};
use tasks::task::Task;

use super::Error;
use super::config::{self, Setup};
use super::heads::Shared;
use crate::encoder::pool::Pooling;
use crate::head::slices;
use crate::optim::clip;
use crate::optim::head_mask::HeadMask;
use crate::output::PREFIX;
use crate::params::Params;

/// A key's bias, and that of learned attention pooling, shift all scores of a softmax alike, so their true gradient is 0:
/// rounding noise is all they ever get.
const TRUE_ZERO: [&str; 2] = [".attention.self.key.bias", "outputs.pool_attn.bias"];

/// Parameters that must not or cannot move, with the reason.
pub(super) fn frozen(
    setup: &Setup,
    params: &Params,
    heads: &HeadMask,
) -> Result<BTreeMap<String, &'static str>, Error> {
    let mut frozen: BTreeMap<String, &'static str> =
        heads.frozen().map(|name| (name.to_owned(), "the head mask keeps all heads of its layer")).collect();
    if setup.train.heads.shared == Shared::Freeze {
        let shared = params.iter().map(|(name, _)| name).filter(|name| is_shared(setup, name));
        frozen
            .extend(shared.map(|name| (name.to_owned(), "it belongs to no head, and `shared` is `freeze`")));
    }
    for (prefix, reason) in idle(setup) {
        let names = params.iter().map(|(name, _)| name).filter(|name| name.starts_with(prefix));
        frozen.extend(names.map(|name| (name.to_owned(), reason)));
    }
    for prefix in &setup.train.frozen {
        let names: Vec<String> = params
            .iter()
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.starts_with(prefix.as_str()))
            .collect();
        if names.is_empty() {
            return Err(config::Error::Frozen { prefix: prefix.clone() }.into());
        }
        frozen.extend(names.into_iter().map(|name| (name, "listed in `frozen`")));
    }
    Ok(frozen)
}

/// Whether a parameter of the encoder belongs to no head.
fn is_shared(setup: &Setup, name: &str) -> bool {
    let of_heads = || (0..setup.encoder.num_hidden_layers).flat_map(slices::of_layer);
    !name.starts_with(PREFIX) && !of_heads().any(|(of_head, _)| of_head == name)
}

/// Beginnings of names that no loss of this setup depends on.
fn idle(setup: &Setup) -> Vec<(&'static str, &'static str)> {
    let alphas = &setup.train.alphas;
    let (entities, classes) = (alphas.subject + alphas.object > 0.0, alphas.relation + alphas.triplet > 0.0);
    let no_task = "the alpha of its task is 0";
    [
        (
            "pooler.dense.",
            "no task pools with it",
            setup.outputs.pooling == Pooling::LearnedPooler && classes,
        ),
        ("outputs.pool_attn.", no_task, classes),
        ("outputs.masked_lm.", no_task, entities),
        ("outputs.subject.", no_task, alphas.subject > 0.0),
        ("outputs.object.", no_task, alphas.object > 0.0),
        ("outputs.relation.", no_task, alphas.relation > 0.0),
        ("outputs.triplet.", no_task, alphas.triplet > 0.0),
    ]
    .into_iter()
    .filter_map(|(prefix, reason, used)| (!used).then_some((prefix, reason)))
    .collect()
}

/// Which parameters have had a gradient, until every task has had a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coverage {
    /// Parameters that are trained and have had none.
    uncovered: BTreeSet<String>,
    /// Tasks that have had no batch.
    waiting: BTreeSet<Task>,
    /// The step by which all have had one.
    by: u64,
}

impl Coverage {
    /// Nothing has been seen so far.
    pub(super) fn new(setup: &Setup, params: &Params, frozen: &BTreeMap<String, &'static str>) -> Self {
        let trained = params.iter().map(|(name, _)| name).filter(|name| !frozen.contains_key(*name));
        let uncovered = trained.filter(|name| !TRUE_ZERO.iter().any(|zero| name.ends_with(zero)));
        let weighs = |task: &Task| setup.train.alphas.of(*task).is_some_and(|alpha| alpha > 0.0);
        Self {
            uncovered: uncovered.map(str::to_owned).collect(),
            waiting: Task::ALL.into_iter().filter(weighs).collect(),
            by: setup.train.covered_by,
        }
    }

    /// Takes note of a step. Once every task has had a batch, refuses parameters that have had no gradient, or only such as are 0
    /// everywhere.
    pub(super) fn see(
        &mut self,
        step: u64,
        tasks: impl Iterator<Item = Task>,
        grads: &BTreeMap<String, Tensor>,
    ) -> Result<(), Error> {
        if self.uncovered.is_empty() {
            return Ok(());
        }
        for (name, grad) in
            grads.iter().filter(|(name, _)| self.uncovered.contains(*name)).collect::<Vec<_>>()
        {
            let alone = BTreeMap::from([(name.clone(), grad.clone())]);
            if clip::global_norm(&alone)? != 0.0 {
                self.uncovered.remove(name);
            }
        }
        for task in tasks {
            self.waiting.remove(&task);
        }
        let all = self.waiting.is_empty() || step >= self.by;
        if self.uncovered.is_empty() || !all {
            return Ok(());
        }
        Err(Error::NoGradient { step, names: self.uncovered.iter().cloned().collect() })
    }
}
