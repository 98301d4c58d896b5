//! The settings of a training run. Knows no tensor.

use serde::{Deserialize, Serialize};
use tasks::task::Task;

use super::heads::Heads;
use super::patience::Patience;
use crate::encoder::config::{self as encoder, Config as Encoder};
use crate::head::mask::Mask;
use crate::optim::adamw::AdamWConfig;
use crate::optim::schedule::Schedule;
use crate::output::{OutputConfig, Sizes};

/// Weights of the tasks' losses in their sum; 0 leaves a task out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alphas {
    /// Weight of subject prediction.
    pub subject: f64,
    /// Weight of object prediction.
    pub object: f64,
    /// Weight of relation classification.
    pub relation: f64,
    /// Weight of triplet classification.
    pub triplet: f64,
}

impl Alphas {
    /// The weight of a task, if it is one of KIMERA's.
    #[must_use]
    pub fn of(&self, task: Task) -> Option<f64> {
        match task {
            Task::Subject => Some(self.subject),
            Task::Object => Some(self.object),
            Task::Relation => Some(self.relation),
            Task::Triplet => Some(self.triplet),
            Task::MaskedLm | Task::Tagging => None,
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
    /// Beginnings of the names of parameters that must not move.
    pub frozen: Vec<String>,
    /// What a head mask does to the training.
    pub heads: Heads,
    /// When to look at held-out samples and when to give up; `None` trains all steps.
    pub patience: Option<Patience>,
    /// The step by which every task has had a batch, at the latest: by then every parameter has had a gradient, or training stops.
    pub covered_by: u64,
}

/// Everything that a trainer is made from. Two runs with one setup, one stream and one machine give the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Sizes of the encoder.
    pub encoder: encoder::Config,
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

/// Settings that contradict each other.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The encoder cannot be built.
    #[error(transparent)]
    Encoder(#[from] encoder::Error),
    /// A mode without the mask that it needs.
    #[error("train.heads.mode is {mode}, which needs a head mask: give one, or use the mode none")]
    NoMask {
        /// The mode.
        mode: &'static str,
    },
    /// A mask in a mode that uses none.
    #[error(
        "train.heads.mode is {mode}, which uses no head mask: leave it out, or use the mode hard, soft or forward"
    )]
    Mask {
        /// The mode.
        mode: &'static str,
    },
    /// A mask that leaves nothing to retrain.
    #[error(
        "the head mask keeps every head, so that there is none to retrain: search one with a lower tau, or use the mode none"
    )]
    NothingVacant,
    /// A checkpoint in the mode that begins with fresh weights.
    #[error(
        "train.heads.mode is scratch, which begins with fresh weights: leave the checkpoint out, or use the mode none"
    )]
    Scratch,
    /// A number outside its range.
    #[error("{field} is {found}, expected {expected}")]
    Range {
        /// The setting.
        field: &'static str,
        /// Its value.
        found: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A prefix that no parameter has.
    #[error(
        "frozen: no parameter begins with `{prefix}`; the encoder's begin with embeddings., encoder.layer. or pooler., the outputs' with outputs."
    )]
    Frozen {
        /// The prefix.
        prefix: String,
    },
}

impl Setup {
    /// Whether every setting is in its range, and the mask what its mode needs.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), super::Error> {
        self.encoder.check().map_err(Error::from)?;
        self.train.check(&self.outputs, self.sizes)?;
        let Encoder { num_hidden_layers, num_attention_heads, .. } = self.encoder;
        match (&self.mask, self.train.heads.mode) {
            (None, mode) if mode.needs_mask() => Err(Error::NoMask { mode: mode.name() }.into()),
            (None, _) => Ok(()),
            (Some(_), mode) if !mode.needs_mask() => Err(Error::Mask { mode: mode.name() }.into()),
            (Some(mask), _) if !mask.has_vacant() => Err(Error::NothingVacant.into()),
            (Some(mask), _) => Ok(mask.check([num_hidden_layers, num_attention_heads])?),
        }
    }
}

impl Config {
    fn check(&self, outputs: &OutputConfig, sizes: Sizes) -> Result<(), Error> {
        let Config { schedule, adamw, clip_norm, alphas, patience, .. } = self;
        let share = |x: f64| (0.0..1.0).contains(&x);
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let weight = |x: f64| x >= 0.0 && x.is_finite();
        let (below_one, above, not_below) = ("at least 0 and below 1", "above 0", "0 or above");
        let Patience { every, evaluations } =
            patience.clone().unwrap_or(Patience { every: 1, evaluations: 1 });
        let weights = Task::GRAPH.map(|task| alphas.of(task));
        let rules = [
            ("sizes.relations", sizes.relations as f64, sizes.relations > 0, "at least 1"),
            ("outputs.dropout", outputs.dropout, share(outputs.dropout), below_one),
            ("train.schedule.peak", schedule.peak, positive(schedule.peak), above),
            (
                "train.schedule.total_steps",
                schedule.total_steps as f64,
                schedule.total_steps > 0,
                "at least 1",
            ),
            ("train.adamw.beta1", adamw.beta1, share(adamw.beta1), below_one),
            ("train.adamw.beta2", adamw.beta2, share(adamw.beta2), below_one),
            ("train.adamw.epsilon", adamw.epsilon, positive(adamw.epsilon), above),
            ("train.adamw.weight_decay", adamw.weight_decay, weight(adamw.weight_decay), not_below),
            ("train.clip_norm", *clip_norm, positive(*clip_norm), above),
            ("train.patience.every", every as f64, every > 0, "at least 1"),
            ("train.patience.evaluations", evaluations as f64, evaluations > 0, "at least 1"),
            ("train.alphas.subject", alphas.subject, weight(alphas.subject), not_below),
            ("train.alphas.object", alphas.object, weight(alphas.object), not_below),
            ("train.alphas.relation", alphas.relation, weight(alphas.relation), not_below),
            ("train.alphas.triplet", alphas.triplet, weight(alphas.triplet), not_below),
            ("train.alphas", 0.0, weights.iter().flatten().any(|x| *x > 0.0), "one task's weight above 0"),
        ];
        match rules.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((field, found, _, expected)) => Err(Error::Range { field, found, expected }),
            None => Ok(()),
        }
    }
}
