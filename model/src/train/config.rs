//! The settings of a training run.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use batch::task::Task;
use serde::{Deserialize, Serialize};

use super::core::Plan;
use super::frozen::Frozen;
use super::heads::{Heads, Shared};
use super::patience::Patience;
use super::state::Run;
use crate::Error;
use crate::attention::Chosen;
use crate::checkpoint::Kind;
use crate::device::ActivationDtype;
use crate::encoder::Encoder;
use crate::encoder::config as encoder;
use crate::encoder::pool::Pooling;
use crate::head::mask::Mask;
use crate::head::slices;
use crate::optim::adamw::{AdamWConfig, Missing};
use crate::optim::head_mask::HeadMask;
use crate::optim::schedule::Schedule;
use crate::output::{EntityOutput, OutputConfig, Outputs, Sizes};
use crate::params::{OUTPUTS, Params, Spec};
use crate::range;

/// Weights of the tasks' losses in their sum; 0 leaves a task out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Alphas {
    /// Weight of subject prediction.
    pub subject: f64,
    /// Weight of object prediction.
    pub object: f64,
    /// Weight of relation classification.
    pub relation: f64,
    /// Weight of triplet classification.
    pub triplet: f64,
    /// Weight of predicting the masked positions of texts.
    pub masked_lm: f64,
}

impl Default for Alphas {
    fn default() -> Self {
        Self { subject: 1.0, object: 1.0, relation: 1.0, triplet: 1.0, masked_lm: 0.0 }
    }
}

impl Alphas {
    /// The weight of a task, if there is an output for it.
    #[must_use]
    pub fn of(&self, task: Task) -> Option<f64> {
        match task {
            Task::Subject => Some(self.subject),
            Task::Object => Some(self.object),
            Task::Relation => Some(self.relation),
            Task::Triplet => Some(self.triplet),
            Task::MaskedLm => Some(self.masked_lm),
            Task::Tagging => None,
        }
    }
}

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
    /// Largest norm of all gradients together.
    pub clip_norm: f64,
    /// Weights of the losses.
    pub alphas: Alphas,
    /// Prefixes of the names of parameters that must not move.
    pub frozen: Vec<String>,
    /// What a head mask does to the training.
    pub heads: Heads,
    /// When to evaluate on held-out samples and when to give up; `None` trains all steps.
    pub patience: Option<Patience>,
    /// The step by which every task has had a batch, at the latest: by then every parameter has had a gradient, or training stops.
    pub covered_by: u64,
    /// Dtype of activations and products.
    pub dtype: ActivationDtype,
}

/// Everything that a trainer is made from. Two runs with one setup, one stream and one machine give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// Sizes of the encoder.
    pub encoder: encoder::Config,
    /// What its tokens attend by.
    #[serde(skip_serializing_if = "Chosen::is_plain")]
    pub attention: Chosen,
    /// Choices about outputs.
    pub outputs: OutputConfig,
    /// Classes of the outputs.
    pub sizes: Sizes,
    /// How it is trained.
    pub train: Config,
    /// The head mask that `train.heads` needs. A state keeps its digest.
    #[serde(skip)]
    pub mask: Option<Mask>,
}

impl Setup {
    /// Whose states are those of a training with these settings.
    pub(super) fn run(&self) -> Result<Run, Error> {
        Run::new(Kind::Kimera, self, self.mask.as_ref().map(Mask::digest))
    }

    /// The training of `params` that these settings describe.
    pub(super) fn plan(&self, params: &Params) -> Result<Plan, Error> {
        let Config { seed, schedule, adamw, clip_norm, alphas, covered_by, .. } = &self.train;
        let heads = self.train.heads.over(self.mask.as_ref());
        let weighs = |task: &Task| alphas.of(*task).is_some_and(|alpha| alpha > 0.0);
        Ok(Plan {
            encoder: self.encoder.clone(),
            attention: self.attention.clone(),
            seed: *seed,
            schedule: schedule.clone(),
            adamw: adamw.clone(),
            missing: Missing::Zero,
            released: None,
            clip_norm: *clip_norm,
            frozen: self.frozen(params, &heads)?,
            heads,
            gates: self.train.heads.gates(self.mask.as_ref()),
            tasks: Task::ALL.into_iter().filter(weighs).map(|task| task.name().to_owned()).collect(),
            covered_by: *covered_by,
            dtype: self.train.dtype,
        })
    }

    fn frozen(&self, params: &Params, heads: &HeadMask) -> Result<BTreeMap<String, &'static str>, Error> {
        let mut frozen = Frozen::of(params).kept(heads);
        if self.train.heads.shared == Shared::Freeze {
            frozen =
                frozen.those(|name| self.is_shared(name), "it belongs to no head, and `shared` is `freeze`");
        }
        frozen = frozen.unreached(self.attention.sibling(), self.encoder.num_hidden_layers);
        for (prefix, reason) in self.idle() {
            frozen = frozen.those(|name| name.starts_with(prefix), reason);
        }
        Ok(frozen.listed(&self.train.frozen)?.reasons())
    }

    /// Whether a parameter of the encoder belongs to no head.
    fn is_shared(&self, name: &str) -> bool {
        let of_heads = || (0..self.encoder.num_hidden_layers).flat_map(slices::of_layer);
        !name.starts_with(OUTPUTS) && !of_heads().any(|(of_head, _)| of_head == name)
    }

    /// Prefixes of names that no loss depends on.
    fn idle(&self) -> Vec<(&'static str, &'static str)> {
        let alphas = &self.train.alphas;
        let (entities, classes) =
            (alphas.subject + alphas.object > 0.0, alphas.relation + alphas.triplet > 0.0);
        let masked_lm = alphas.masked_lm > 0.0 || (entities && self.outputs.entity == EntityOutput::MaskedLm);
        let pooler = self.outputs.pooling == Pooling::LearnedPooler && classes;
        let no_task = "the alpha of its task is 0";
        [
            ("pooler.dense.", "no task pools with it", pooler),
            ("outputs.pool_attn.", no_task, classes),
            ("outputs.masked_lm.", no_task, masked_lm),
            ("outputs.subject.", no_task, alphas.subject > 0.0),
            ("outputs.object.", no_task, alphas.object > 0.0),
            ("outputs.relation.", no_task, alphas.relation > 0.0),
            ("outputs.triplet.", no_task, alphas.triplet > 0.0),
        ]
        .into_iter()
        .filter_map(|(prefix, reason, used)| (!used).then_some((prefix, reason)))
        .collect()
    }

    /// Every parameter of a model with these settings.
    pub(super) fn specs(&self) -> Vec<Spec> {
        [Encoder::specs(&self.encoder), self.output_specs()].concat()
    }

    /// The outputs' parameters among them.
    pub(super) fn output_specs(&self) -> Vec<Spec> {
        let mut specs = Outputs::specs(&self.outputs, &self.encoder, self.sizes);
        specs.extend(self.attention.sibling().specs(&self.encoder));
        if self.train.alphas.masked_lm > 0.0 {
            specs.extend(Outputs::text_specs(&self.outputs, &self.encoder));
        }
        specs
    }

    /// Whether every setting is in its range, and the mask what its mode needs.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        self.encoder.check()?;
        self.attention.sibling().check()?;
        self.train.check(&self.outputs, self.sizes)?;
        let encoder::Config { num_hidden_layers, num_attention_heads, .. } = self.encoder;
        match (&self.mask, self.train.heads.mode) {
            (None, mode) if mode.needs_mask() => Err(Error::Misfit(format!("train.heads.mode is {mode}, which needs a head mask: give one, or use the mode none", mode = mode.name()))),
            (None, _) => Ok(()),
            (Some(_), mode) if !mode.needs_mask() => Err(Error::Misfit(format!("train.heads.mode is {mode}, which uses no head mask: leave it out, or use the mode hard, soft or forward", mode = mode.name()))),
            (Some(mask), _) if !mask.has_vacant() => Err(Error::Misfit("the head mask keeps every head, so that there is none to retrain: search one with a lower tau, or use the mode none".to_owned())),
            (Some(mask), _) => Ok(mask.check([num_hidden_layers, num_attention_heads])?),
        }
    }
}

impl Config {
    fn check(&self, outputs: &OutputConfig, sizes: Sizes) -> Result<(), Error> {
        let Config { schedule, adamw, clip_norm, alphas, patience, .. } = self;
        at_least_one(&[("sizes.relations", sizes.relations as u64)])?;
        outputs.check()?;
        alphas.check()?;
        if !Task::ALL.iter().filter_map(|task| alphas.of(*task)).any(|alpha| alpha > 0.0) {
            let expected = "one task's weight above 0";
            return Err(InvalidSetting::new("alphas", 0, expected).into());
        }
        Common { schedule, adamw, clip_norm: *clip_norm, patience: patience.as_ref() }.check()?;
        Ok(())
    }
}

impl Alphas {
    /// Whether every weight is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let Self { subject, object, relation, triplet, masked_lm } = *self;
        range::check(&[
            ("alphas.subject", subject, range::WEIGHT),
            ("alphas.object", object, range::WEIGHT),
            ("alphas.relation", relation, range::WEIGHT),
            ("alphas.triplet", triplet, range::WEIGHT),
            ("alphas.masked_lm", masked_lm, range::WEIGHT),
        ])
    }
}

/// The settings that every training has.
pub(super) struct Common<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) adamw: &'a AdamWConfig,
    pub(super) clip_norm: f64,
    pub(super) patience: Option<&'a Patience>,
}

impl Common<'_> {
    /// Whether every setting is in its range.
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let Common { schedule, adamw, clip_norm, patience } = *self;
        let (every, looks) = patience.map_or((1, 1), |patience| (patience.every, patience.evaluations));
        adamw.check()?;
        range::check(&[
            ("schedule.peak", schedule.peak, range::RATE),
            ("clip_norm", clip_norm, range::CLIP),
        ])?;
        at_least_one(&[
            ("schedule.total_steps", schedule.total_steps),
            ("patience.every", every),
            ("patience.evaluations", looks),
        ])
    }
}

fn at_least_one(numbers: &[(&'static str, u64)]) -> Result<(), InvalidSetting> {
    match numbers.iter().find(|(_, number)| *number == 0) {
        Some((field, _)) => Err(InvalidSetting::new(*field, 0, "at least 1")),
        None => Ok(()),
    }
}
