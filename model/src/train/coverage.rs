//! The gate of step 1: every parameter is trained or frozen for a stated reason. Knows no optimiser.

use std::collections::BTreeMap;

use candle_core::Tensor;

use super::Error;
use super::config::{self, Setup};
use crate::encoder::pool::Pooling;
use crate::optim::clip;
use crate::params::Params;

/// A key's bias, and that of learned attention pooling, shift all scores of a softmax alike, so their true gradient is 0:
/// rounding noise is all they ever get.
const TRUE_ZERO: [&str; 2] = [".attention.self.key.bias", "outputs.pool_attn.bias"];

/// Parameters that must not or cannot move, with the reason.
pub(super) fn frozen(setup: &Setup, params: &Params) -> Result<BTreeMap<String, &'static str>, Error> {
    let mut frozen = BTreeMap::new();
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

/// Refuses parameters without a gradient (`missing`) and those whose gradient is 0 everywhere.
pub(super) fn check(grads: &BTreeMap<String, Tensor>, missing: Vec<String>) -> Result<(), Error> {
    let mut names = missing;
    for (name, grad) in grads.iter().filter(|(name, _)| !TRUE_ZERO.iter().any(|zero| name.ends_with(zero))) {
        let alone = BTreeMap::from([(name.clone(), grad.clone())]);
        if clip::global_norm(&alone)? == 0.0 {
            names.push(name.clone());
        }
    }
    names.sort();
    if names.is_empty() { Ok(()) } else { Err(Error::NoGradient { names }) }
}
