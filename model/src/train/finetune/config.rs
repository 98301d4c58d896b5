//! The settings of a fine-tuning, and what follows from them: parameters, what is frozen, whose states are resumed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::config::Common;
use super::super::core::Plan;
use super::super::frozen::Frozen;
use super::super::patience::Patience;
use super::super::state::Run;
use crate::Error;
use crate::checkpoint::Kind;
use crate::device::ActivationDtype;
use crate::encoder::config as encoder;
use crate::encoder::pool::Pooling;
use crate::encoder::{Encoder, config};
use crate::head::mask::Mask;
use crate::head::slices;
use crate::optim::adamw::{AdamWConfig, Missing};
use crate::optim::chosen::ReferenceCode;
use crate::optim::head_mask::{HeadMask, SoftOn};
use crate::optim::schedule::Schedule;
use crate::output::downstream::{Outline, Output, RankLoss, pool_name};
use crate::params::{Params, Spec};

/// How weights are trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of fresh weights and dropout.
    pub seed: u64,
    /// Learning rate over the steps.
    pub schedule: Schedule,
    /// Constants of the optimiser.
    pub adamw: AdamWConfig,
    /// What becomes of parameters without a gradient, such as the outputs of tasks that had no batch in a step.
    pub missing: Missing,
    /// What a reference code has in place of AdamW and the schedule's shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<ReferenceCode>,
    /// Largest norm of all gradients together.
    pub clip_norm: f64,
    /// Prefixes of the names of parameters that must not move.
    pub frozen: Vec<String>,
    /// The step by which every task has had a batch, at the latest: by then every parameter has had a gradient, or training stops.
    pub covered_by: u64,
    /// Dtype of activations and products of training; evaluations and answers compute in f32.
    pub dtype: ActivationDtype,
    /// When to evaluate on held-out samples and when to give up; `None` trains all steps.
    pub patience: Option<Patience>,
}

/// Everything that a fine-tuning is made from. Two runs with one setup, the same batches and one machine give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// Sizes of the encoder.
    pub encoder: encoder::Config,
    /// The tasks with their outputs, and what attention they need.
    #[serde(flatten)]
    pub outline: Outline,
    /// How it is trained.
    pub train: Config,
    /// Factors of the heads' contexts in training and in prediction: the pruned encoder (1 is on, 0 is off). A state keeps their digest.
    #[serde(skip)]
    pub gates: Option<Mask>,
}

impl Setup {
    /// Whether every setting is in its range, and the gates are the encoder's.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        self.encoder.check()?;
        self.outline.check()?;
        let Config { schedule, adamw, clip_norm, patience, .. } = &self.train;
        Common { schedule, adamw, clip_norm: *clip_norm, patience: patience.as_ref() }.check()?;
        self.train.released.as_ref().map_or(Ok(()), ReferenceCode::check)?;
        let config::Config { num_hidden_layers, num_attention_heads, .. } = self.encoder;
        match &self.gates {
            Some(gates) => Ok(gates.check([num_hidden_layers, num_attention_heads])?),
            None => Ok(()),
        }
    }

    /// Every parameter of a model with these settings.
    pub(super) fn specs(&self) -> Vec<Spec> {
        [Encoder::specs(&self.encoder), self.outline.specs(&self.encoder)].concat()
    }

    /// Whose states are those of a training with these settings.
    pub(super) fn run(&self) -> Result<Run, Error> {
        Run::new(Kind::Finetune, self, self.gates.as_ref().map(Mask::digest))
    }

    /// The training of `params` that these settings describe.
    pub(super) fn plan(&self, params: &Params) -> Result<Plan, Error> {
        let Config { seed, schedule, adamw, missing, clip_norm, covered_by, .. } = &self.train;
        let weighs = self.outline.tasks.iter().filter(|task| task.alpha > 0.0);
        Ok(Plan {
            encoder: self.encoder.clone(),
            attention: self.outline.attention(),
            seed: *seed,
            schedule: schedule.clone(),
            adamw: adamw.clone(),
            missing: *missing,
            released: self.train.released.clone(),
            clip_norm: *clip_norm,
            frozen: self.frozen(params)?,
            heads: HeadMask::new(None, SoftOn::Step),
            gates: self.gates.clone(),
            tasks: weighs.map(|task| task.name.clone()).collect(),
            covered_by: *covered_by,
            dtype: self.train.dtype,
        })
    }

    fn frozen(&self, params: &Params) -> Result<BTreeMap<String, &'static str>, Error> {
        let mut frozen = Frozen::of(params);
        let Outline { tasks, pooling, .. } = &self.outline;
        let shut: Vec<String> = self.shut_layers().flat_map(slices::of_layer).map(|(name, _)| name).collect();
        frozen = frozen
            .those(|name| shut.iter().any(|of| of == name), "the gates turn off all heads of its layer");
        let pools = tasks.iter().any(|task| task.alpha > 0.0 && !task.output.is_of_tokens());
        if !pools || *pooling != Pooling::LearnedPooler {
            frozen = frozen.those(|name| name.starts_with("pooler.dense."), "no task pools with it");
        }
        if !pools {
            let pool = pool_name();
            frozen = frozen.those(|name| name.starts_with(&pool), "no task pools with it");
        }
        let attention = self.outline.attention();
        frozen = frozen.unreached(attention.sibling(), self.encoder.num_hidden_layers);
        for task in tasks {
            let prefix = task.prefix();
            if task.alpha == 0.0 {
                frozen = frozen.those(|name| name.starts_with(&prefix), "the alpha of its task is 0");
            } else if task.output == (Output::Rank { loss: RankLoss::Softmax }) {
                let bias = format!("{prefix}bias");
                frozen = frozen.those(
                    |name| name == bias,
                    "a softmax over a group does not see what all its rows share",
                );
            }
        }
        Ok(frozen.listed(&self.train.frozen)?.reasons())
    }

    /// Layers of which the gates let no head take part.
    fn shut_layers(&self) -> impl Iterator<Item = usize> {
        let layers = self.gates.iter().flat_map(|gates| (0..gates.shape()[0]).map(|l| (l, gates.layer(l))));
        layers.filter(|(_, gates)| gates.iter().all(|gate| *gate == 0.0)).map(|(l, _)| l)
    }
}
