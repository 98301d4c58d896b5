//! Parameters that must not or cannot move, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::config::Setup;
use super::heads::Shared;
use super::lora::Adapters;
use crate::Error;
use crate::encoder::pool::{self, Pooling};
use crate::head::slices;
use crate::optim::head_mask::HeadMask;
use crate::output::{Output, RankLoss, pool_name};
use crate::params::{Params, is_of_encoder};

/// The names of a training's frozen parameters with the reasons. Of several reasons the last one is told.
///
/// # Errors
/// When the settings list a prefix that no parameter begins with.
pub(super) fn frozen(
    setup: &Setup,
    params: &Params,
    heads: &HeadMask,
) -> Result<BTreeMap<String, &'static str>, Error> {
    let mut frozen = Frozen { params, reasons: BTreeMap::new() };
    for name in heads.frozen() {
        frozen.those(|of| of == name, "the head mask keeps all heads of its layer");
    }
    let adapters = Adapters::of(setup);
    if !adapters.is_empty() {
        let (moved, bases) = (adapters.moved(), adapters.bases());
        // A pooler that a task pools with is trained as outputs are: where a checkpoint has none, it is as new.
        let is_still = |name: &str| is_of_encoder(name) && !pool::has(name) && !moved.contains(name);
        frozen.those(is_still, "adapters are trained in its place");
        frozen.those(|name| bases.contains(name), "an adapter is added to it");
    }
    for name in shut_layers(setup).flat_map(slices::of_layer).map(|(name, _)| name) {
        frozen.those(|of| of == name, "the gates turn off all heads of its layer");
    }
    if setup.train.heads.shared == Shared::Freeze {
        frozen.those(|name| is_shared(setup, name), "it belongs to no head, and `shared` is `freeze`");
    }
    let pools = setup.outline.tasks.iter().any(|task| task.alpha > 0.0 && !task.output.is_of_tokens());
    if !pools || setup.outline.pooling != Pooling::LearnedPooler {
        frozen.those(|name| name.starts_with("pooler.dense."), "no task pools with it");
    }
    if !pools {
        let pool = pool_name();
        frozen.those(|name| name.starts_with(&pool), "no task pools with it");
    }
    for (unreached, reason) in setup.attention().sibling().unreached(setup.encoder.num_hidden_layers) {
        frozen.those(|name| name == unreached, reason);
    }
    frozen.outputs(setup);
    for prefix in &setup.train.frozen {
        if frozen.those(|name| name.starts_with(prefix), "listed in `frozen`") == 0 {
            return Err(Error::Misfit(format!(
                "frozen: no parameter begins with `{prefix}`; the encoder's begin with embeddings., encoder.layer. or pooler., the outputs' with outputs."
            )));
        }
    }
    Ok(frozen.reasons)
}

/// The list in the making.
struct Frozen<'a> {
    params: &'a Params,
    reasons: BTreeMap<String, &'static str>,
}

impl Frozen<'_> {
    /// Those whose names `which` accepts; says how many they are.
    fn those(&mut self, which: impl Fn(&str) -> bool, reason: &'static str) -> usize {
        let names: Vec<&str> = self.params.iter().map(|(name, _)| name).filter(|name| which(name)).collect();
        self.reasons.extend(names.iter().map(|name| ((*name).to_owned(), reason)));
        names.len()
    }

    /// Those of outputs that no loss depends on.
    fn outputs(&mut self, setup: &Setup) {
        let tasks = &setup.outline.tasks;
        let trained = tasks.iter().filter(|task| task.alpha > 0.0);
        let used: BTreeSet<String> = trained.map(super::super::output::Task::prefix).collect();
        for task in tasks {
            let prefix = task.prefix();
            if !used.contains(&prefix) {
                self.those(|name| name.starts_with(&prefix), "the alpha of its task is 0");
            } else if matches!(task.output, Output::Rank { loss: RankLoss::Softmax } | Output::Span) {
                let bias = format!("{prefix}bias");
                self.those(
                    |name| name == bias,
                    "a softmax over a group does not see what all its rows or tokens share",
                );
            }
        }
    }
}

/// Whether a parameter of the encoder belongs to no head.
fn is_shared(setup: &Setup, name: &str) -> bool {
    let of_heads = || (0..setup.encoder.num_hidden_layers).flat_map(slices::of_layer);
    is_of_encoder(name) && !of_heads().any(|(of_head, _)| of_head == name)
}

/// Layers of which the gates of a pruned encoder let no head take part.
fn shut_layers(setup: &Setup) -> impl Iterator<Item = usize> {
    let layers = setup.gates.iter().flat_map(|gates| (0..gates.shape()[0]).map(|l| (l, gates.layer(l))));
    layers.filter(|(_, gates)| gates.iter().all(|gate| *gate == 0.0)).map(|(l, _)| l)
}
