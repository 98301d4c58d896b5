//! The settings of a training.

use base::rng::CounterRng;
use base::setting::InvalidSetting;
use candle_core::Device;
use serde::{Deserialize, Serialize};

use super::heads::{Heads, Mode};
use super::lora::{self, Adapters};
use super::patience::Patience;
use super::state::Run;
use crate::Error;
use crate::attention::Chosen;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::Encoder;
use crate::encoder::config as encoder;
use crate::head::mask::Mask;
use crate::optim::adamw::{AdamWConfig, Missing};
use crate::optim::bert;
use crate::optim::schedule::Schedule;
use crate::output::{Outline, Output, Task};
use crate::params::Spec;
use crate::range;

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
    /// An optimiser in place of AdamW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<bert::Config>,
    /// Largest norm of all gradients together.
    pub clip_norm: f64,
    /// Prefixes of the names of parameters that must not move.
    pub frozen: Vec<String>,
    /// What a head mask does to the training.
    pub heads: Heads,
    /// Adapters that are trained in the encoder's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<lora::Config>,
    /// Micro-batches of a step; the last step of a training may have fewer.
    pub accumulate: u64,
    /// When to evaluate on held-out samples and when to give up; `None` trains all steps.
    pub patience: Option<Patience>,
    /// The step by which every task has had a batch, at the latest: by then every parameter has had a gradient, or training stops.
    pub covered_by: u64,
    /// What is computed a second time instead of being kept. No setting of the numbers: a state may be resumed with another.
    #[serde(skip)]
    pub recompute: Recompute,
    /// Dtype of activations and products of training; a [`crate::predict::Predictor`] computes in f32.
    pub dtype: ActivationDtype,
}

/// Everything that a trainer is made from. Two runs with one setup, the same batches and one machine give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// Sizes of the encoder.
    pub encoder: encoder::Config,
    /// The tasks with their outputs, and what attention they need.
    #[serde(flatten)]
    pub outline: Outline,
    /// An attention in place of the outline's: one that no [`crate::predict::Predictor`] can load.
    #[serde(skip_serializing_if = "Chosen::is_plain")]
    pub attention: Chosen,
    /// How it is trained.
    pub train: Config,
    /// The head mask that `train.heads` needs. A state keeps its digest.
    #[serde(skip)]
    pub mask: Option<Mask>,
    /// Factors of the heads' contexts in training and in prediction: the pruned encoder (1 is on, 0 is off). A state keeps their digest.
    #[serde(skip)]
    pub gates: Option<Mask>,
}

impl Setup {
    /// Whose states are those of a training with these settings.
    pub(super) fn run(&self) -> Result<Run, Error> {
        Run::new(self, [&self.mask, &self.gates].map(|mask| mask.as_ref().map(Mask::digest)))
    }

    /// What its tokens attend by.
    pub(super) fn attention(&self) -> Chosen {
        if self.attention.is_plain() { self.outline.attention() } else { self.attention.clone() }
    }

    /// Every parameter of a model with these settings.
    pub(super) fn specs(&self) -> Vec<Spec> {
        [Encoder::specs(&self.encoder), self.output_specs(), Adapters::of(self).specs()].concat()
    }

    /// The outputs' parameters among them, and those of the attention.
    pub(super) fn output_specs(&self) -> Vec<Spec> {
        let mut specs = self.outline.specs(&self.encoder);
        if !self.attention.is_plain() {
            specs.extend(self.attention.sibling().specs(&self.encoder));
        }
        specs
    }

    /// The key of the dropout of a step's micro-batch, from 0. The first one has the key of a step that has no other, so that one micro-batch is a
    /// step as any.
    pub(super) fn dropout_key(&self, step: u64, micro_batch: u64) -> CounterRng {
        let key = CounterRng::new(self.train.seed).named("dropout").branch(step);
        if micro_batch == 0 { key } else { key.named("micro-batch").branch(micro_batch) }
    }

    /// Gates of the forward pass in training.
    pub(super) fn gates_of_training(&self) -> Option<Mask> {
        self.train.heads.gates(self.mask.as_ref()).or_else(|| self.gates.clone())
    }

    /// Whether a device computes in the numbers asked for.
    ///
    /// # Errors
    /// Names the setting that it cannot keep.
    pub(super) fn check_on(&self, device: &Device) -> Result<(), InvalidSetting> {
        if self.train.lora.is_some() && !device.is_cpu() {
            let expected = "none on CUDA, whose kernels do not train adapters yet: compute on the CPU";
            return Err(InvalidSetting::new("lora", "given", expected));
        }
        let is_translation =
            |task: &&Task| task.alpha > 0.0 && matches!(task.output, Output::Translation { .. });
        if let Some(task) = self.outline.tasks.iter().find(is_translation).filter(|_| !device.is_cpu()) {
            let expected =
                "another output on CUDA, whose kernels do not train relations yet: compute on the CPU";
            return Err(InvalidSetting::new(format!("output of {}", task.name), "translation", expected));
        }
        match self.train.dtype {
            ActivationDtype::Tf32 if device.is_cpu() => {
                Err(InvalidSetting::new("dtype", "tf32", "f32 or bf16 on the CPU: tf32 is of tensor cores"))
            }
            _ => Ok(()),
        }
    }

    /// Whether adapters, if there are any, fit the encoder, and nothing else says what of it is trained.
    fn check_lora(&self) -> Result<(), InvalidSetting> {
        let Some(lora) = &self.train.lora else { return Ok(()) };
        lora.check(Some(&self.encoder))?;
        let alone = [
            ("heads.mode", self.train.heads.mode == Mode::None),
            ("frozen", self.train.frozen.is_empty()),
            ("gates", self.gates.is_none()),
            ("attention", self.attention().is_plain()),
        ];
        match alone.into_iter().find(|(_, left_out)| !left_out) {
            Some((setting, _)) => Err(InvalidSetting::new(
                "lora",
                format!("given beside {setting}"),
                "one of them: adapters are trained in the place of the whole encoder, whose attention is BERT's own",
            )),
            None => Ok(()),
        }
    }

    /// Whether every setting is in its range, and masks and gates are what the mode needs and the encoder has.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        self.encoder.check()?;
        self.outline.check()?;
        if !self.attention.is_plain() {
            self.attention.sibling().check()?;
            if !self.outline.attention().is_plain() {
                return Err(Error::Misfit("attention is there beside labels or knowledge, expected one attention: leave one of them out".to_owned()));
            }
        }
        self.train.check()?;
        self.check_lora()?;
        let of_layers = self.attention.is_plain() && self.outline.knowledge.is_none();
        if self.train.recompute == Recompute::Layers && !of_layers {
            let expected = "none: layers are recomputed with BERT's own attention or label embeddings";
            return Err(InvalidSetting::new("recompute", "layers", expected).into());
        }
        let encoder::Config { num_hidden_layers, num_attention_heads, .. } = self.encoder;
        let shape = [num_hidden_layers, num_attention_heads];
        if let Some(gates) = &self.gates {
            gates.check(shape)?;
        }
        let mode = self.train.heads.mode;
        let name = mode.name();
        match &self.mask {
            None if mode.needs_mask() => Err(Error::Misfit(format!("train.heads.mode is {name}, which needs a head mask: give one, or use the mode none"))),
            Some(_) if !mode.needs_mask() => Err(Error::Misfit(format!("train.heads.mode is {name}, which uses no head mask: leave it out, or use the mode hard, soft or forward"))),
            Some(mask) if !mask.has_vacant() => Err(Error::Misfit("the head mask keeps every head, so that there is none to retrain: search one with a lower tau, or use the mode none".to_owned())),
            Some(_) if mode == Mode::Forward && self.gates.is_some() => Err(Error::Misfit("train.heads.mode is forward, which has gates of its own, and the encoder is pruned by gates: leave one of them out".to_owned())),
            Some(mask) => Ok(mask.check(shape)?),
            None => Ok(()),
        }
    }
}

impl Config {
    fn check(&self) -> Result<(), InvalidSetting> {
        let (every, evaluations) = self.patience.as_ref().map_or((1, 1), |of| (of.every, of.evaluations));
        self.adamw.check()?;
        range::check(&[
            ("schedule.peak", self.schedule.peak, range::RATE),
            ("clip_norm", self.clip_norm, range::CLIP),
        ])?;
        self.optimiser.as_ref().map_or(Ok(()), bert::Config::check)?;
        let counts = [
            ("accumulate", self.accumulate),
            ("schedule.total_steps", self.schedule.total_steps),
            ("patience.every", every),
            ("patience.evaluations", evaluations),
        ];
        match counts.iter().find(|(_, number)| *number == 0) {
            Some((field, _)) => Err(InvalidSetting::new(*field, 0, "at least 1")),
            None => Ok(()),
        }
    }
}
