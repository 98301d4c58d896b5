//! The settings of a training run.

use std::collections::{BTreeMap, BTreeSet};

use base::setting::{InvalidSetting, shown};
use batch::task::{Answer, Task};
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
use crate::output::{OutputConfig, Outputs, Sizes, has_output};
use crate::params::{OUTPUTS, Params, Spec, of_outputs};
use crate::range;

/// Weights of the tasks' losses in their sum, by the tasks' names; 0, or no weight, leaves a task out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<Task, f64>")]
pub struct Alphas(BTreeMap<Task, f64>);

impl Alphas {
    /// Weights of some tasks; all others have 0.
    ///
    /// # Errors
    /// When there is no output for one of them.
    pub fn new(weights: impl IntoIterator<Item = (Task, f64)>) -> Result<Self, InvalidSetting> {
        // One form for one meaning, since states and fingerprints hold it: these are always there, others where they have a weight.
        let always = Task::GRAPH.into_iter().chain([Task::MaskedLm]);
        let mut all: BTreeMap<Task, f64> = always.map(|task| (task, 0.0)).collect();
        for (task, weight) in weights {
            if !has_output(task) {
                let trained: Vec<&str> =
                    Task::ALL.into_iter().filter(|of| has_output(*of)).map(Task::name).collect();
                let expected = format!("weights of tasks that are trained here: {}", trained.join(", "));
                return Err(InvalidSetting::new(format!("alphas.{}", task.name()), weight, expected));
            }
            if weight != 0.0 || all.contains_key(&task) {
                all.insert(task, weight);
            }
        }
        Ok(Self(all))
    }

    /// The weight of a task, if there is an output for it.
    #[must_use]
    pub fn of(&self, task: Task) -> Option<f64> {
        has_output(task).then(|| self.0.get(&task).copied().unwrap_or(0.0))
    }

    /// The tasks that are trained, in task order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.0.iter().filter(|(_, weight)| **weight > 0.0).map(|(task, _)| *task)
    }
}

impl Default for Alphas {
    /// KIMERA's tasks, all alike (paper 000: L = sum of alpha_n L_n).
    fn default() -> Self {
        let weights = [(Task::MaskedLm, 0.0)].into_iter().chain(Task::GRAPH.map(|task| (task, 1.0)));
        Self(weights.collect())
    }
}

impl schemars::JsonSchema for Alphas {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Alphas".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let weights = Task::ALL.into_iter().filter(|task| has_output(*task)).map(|task| {
            let about = format!(
                "Weight of the loss of task `{}`: 0, or 1e-12 to 1e6. A task of weight 0 is not trained on.",
                task.name()
            );
            (task.name().to_owned(), serde_json::json!({ "type": "number", "description": about }))
        });
        let weights: serde_json::Map<String, serde_json::Value> = weights.collect();
        schemars::json_schema!({ "type": "object", "properties": weights, "additionalProperties": false })
    }
}

impl TryFrom<BTreeMap<Task, f64>> for Alphas {
    type Error = InvalidSetting;

    fn try_from(weights: BTreeMap<Task, f64>) -> Result<Self, InvalidSetting> {
        Alphas::new(weights)
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
            tasks: alphas.tasks().map(|task| task.name().to_owned()).collect(),
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
            frozen = frozen.those(|name| name.starts_with(&prefix), reason);
        }
        Ok(frozen.listed(&self.train.frozen)?.reasons())
    }

    /// Whether a parameter of the encoder belongs to no head.
    fn is_shared(&self, name: &str) -> bool {
        let of_heads = || (0..self.encoder.num_hidden_layers).flat_map(slices::of_layer);
        !name.starts_with(OUTPUTS) && !of_heads().any(|(of_head, _)| of_head == name)
    }

    /// Prefixes of names that no loss depends on.
    fn idle(&self) -> Vec<(String, &'static str)> {
        let pools = self.train.alphas.tasks().any(|task| task.answer() == Answer::Class);
        let used: BTreeSet<String> =
            self.train.alphas.tasks().filter_map(|task| self.outputs.prefix(task)).collect();
        let no_task = "the alpha of its task is 0";
        let idle = Task::ALL.into_iter().filter_map(|task| self.outputs.prefix(task));
        let mut idle: Vec<(String, &str)> =
            idle.filter(|prefix| !used.contains(prefix)).map(|prefix| (prefix, no_task)).collect();
        if !pools {
            idle.push((of_outputs("pool_attn."), no_task));
        }
        if !pools || self.outputs.pooling != Pooling::LearnedPooler {
            idle.push(("pooler.dense.".to_owned(), "no task pools with it"));
        }
        idle
    }

    /// Every parameter of a model with these settings.
    pub(super) fn specs(&self) -> Vec<Spec> {
        [Encoder::specs(&self.encoder), self.output_specs()].concat()
    }

    /// The outputs' parameters among them.
    pub(super) fn output_specs(&self) -> Vec<Spec> {
        // KIMERA's tasks always have outputs, which a later training with other weights finds in the checkpoint.
        let tasks: BTreeSet<Task> = Task::GRAPH.into_iter().chain(self.train.alphas.tasks()).collect();
        let mut specs = Outputs::specs(&self.outputs, &self.encoder, self.sizes, tasks);
        specs.extend(self.attention.sibling().specs(&self.encoder));
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
        if alphas.tasks().next().is_none() {
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
        match self.0.iter().find(|(_, weight)| !range::WEIGHT.holds(**weight)) {
            None => Ok(()),
            Some((task, weight)) => {
                let setting = format!("alphas.{}", task.name());
                Err(InvalidSetting::new(setting, shown(*weight), range::WEIGHT.told))
            }
        }
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
