//! The last layers of the four KIMERA tasks and of masked texts, and their losses over an encoder's hidden states.

pub mod classify;
pub mod downstream;
pub mod masked_lm;
pub mod tag;

use base::setting::InvalidSetting;
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{D, DType, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::encoder::config::Config;
use crate::encoder::pool::{self, Pool, Pooling};
use crate::encoder::tokens::Tokens;
use crate::nn::cross_entropy::cross_entropy;
use crate::nn::dropout::Dropout;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec, of_outputs};
use crate::range;
use masked_lm::MaskedLm;

/// How many classes the outputs tell apart; the vocabulary is the encoder's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Relations (r) of the relation task.
    pub relations: usize,
}

/// The layer that predicts the tokens of subjects and objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityOutput {
    /// One linear layer `d -> v` per task.
    #[default]
    Linear,
    /// One transform for both tasks with the token embeddings as decoder, as in BERT's pre-training.
    MaskedLm,
}

/// The choices about outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// How relation and triplet classification pool a row.
    pub pooling: Pooling,
    /// How entity tokens are predicted.
    pub entity: EntityOutput,
    /// Dropout rate of what enters an output (paper: 0.1, 0.25 or 0.8).
    pub dropout: f64,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { pooling: Pooling::Cls, entity: EntityOutput::default(), dropout: 0.1 }
    }
}

impl OutputConfig {
    /// Whether every choice is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> std::result::Result<(), InvalidSetting> {
        range::check(&[("task_heads.dropout", self.dropout, range::BELOW_ONE)])
    }
}

/// The output of masked texts, and of entities with [`EntityOutput::MaskedLm`].
const MASKED_LM: &str = "outputs.masked_lm";

/// The classes of the triplet task: corrupted (0) and stated (1).
const TRIPLET_CLASSES: usize = 2;

/// Outputs of all tasks.
#[derive(Debug, Clone)]
pub struct Outputs {
    subject: Entity,
    object: Entity,
    /// Predicts the masked positions of texts; there when its parameters are.
    masked_lm: Option<MaskedLm>,
    relation: Linear,
    triplet: Linear,
    pool: Pool,
    rate: f64,
}

#[derive(Debug, Clone)]
enum Entity {
    Linear(Linear),
    MaskedLm(MaskedLm),
}

impl Entity {
    fn forward(&self, x_md: &Tensor) -> Result<Tensor> {
        match self {
            Entity::Linear(linear) => linear.forward(x_md),
            Entity::MaskedLm(masked_lm) => masked_lm.forward(x_md),
        }
    }
}

/// The loss of one batch with what it was computed from.
#[derive(Debug)]
pub struct Loss {
    /// Mean cross entropy over the targets, no axes.
    pub loss: Tensor,
    /// Logits of the targets `[m, c]` in the batch's order: rows, or positions that are asked for.
    pub logits_mc: Tensor,
    /// The class of each row of the logits.
    pub classes: Vec<u32>,
}

impl Loss {
    /// How many targets have their largest logit at their class, no axes. It stays on the device.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn hits(&self) -> Result<Tensor> {
        let best_m = self.logits_mc.detach().argmax(D::Minus1)?;
        let classes_m = Tensor::new(self.classes.as_slice(), best_m.device())?;
        best_m.eq(&classes_m)?.to_dtype(DType::F32)?.sum_all()
    }
}

fn wrong_kind(task: &'static str, expected: &str, found: usize, kind: &'static str) -> Error {
    Error::Misfit(format!(
        "batch of {task}: expected {expected}, found {found} targets of kind {kind}; the batch was put together wrongly"
    ))
}

fn beyond(task: &'static str, index: usize, class: i64, classes: usize, what: &'static str) -> Error {
    Error::Misfit(format!(
        "batch of {task}, target {index}: class {class} is not below {classes}; samples and model were made from different {what}"
    ))
}

fn no_output(task: &'static str) -> Error {
    Error::Misfit(format!(
        "batch of {task}: there is no output for it; give it an alpha above 0 if it is masked_lm, else stream shards without this task"
    ))
}

impl Outputs {
    /// The parameters of the outputs, as their configuration needs them.
    #[must_use]
    pub fn specs(config: &OutputConfig, encoder: &Config, sizes: Sizes) -> Vec<Spec> {
        let (d, v, std) = (encoder.hidden_size, encoder.vocab_size, encoder.initializer_range);
        let mut specs = [
            Spec::linear(&of_outputs("relation"), [sizes.relations, d], std),
            Spec::linear(&of_outputs("triplet"), [TRIPLET_CLASSES, d], std),
        ]
        .concat();
        match config.entity {
            EntityOutput::Linear => {
                specs.extend(
                    ["subject", "object"]
                        .iter()
                        .flat_map(|task| Spec::linear(&of_outputs(task), [v, d], std)),
                );
            }
            EntityOutput::MaskedLm => specs.extend(MaskedLm::specs(MASKED_LM, encoder)),
        }
        if config.pooling == Pooling::LearnedAttn {
            specs.extend(pool::attention_specs(&of_outputs("pool_attn"), encoder));
        }
        specs
    }

    /// The parameters that masked texts need besides those of [`Outputs::specs`]: none if entities are predicted by the same output.
    #[must_use]
    pub fn text_specs(config: &OutputConfig, encoder: &Config) -> Vec<Spec> {
        match config.entity {
            EntityOutput::Linear => MaskedLm::specs(MASKED_LM, encoder),
            EntityOutput::MaskedLm => vec![],
        }
    }

    /// Outputs over `params`, which they share; one for masked texts if `params` has its parameters.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(config: &OutputConfig, encoder: &Config, params: &Params) -> Result<Self> {
        let entity = |task: &str| match config.entity {
            EntityOutput::Linear => Linear::new(params, &of_outputs(task)).map(Entity::Linear),
            EntityOutput::MaskedLm => MaskedLm::new(params, MASKED_LM, encoder).map(Entity::MaskedLm),
        };
        let has_masked_lm = params.iter().any(|(name, _)| name.starts_with(MASKED_LM));
        Ok(Outputs {
            masked_lm: has_masked_lm.then(|| MaskedLm::new(params, MASKED_LM, encoder)).transpose()?,
            subject: entity("subject")?,
            object: entity("object")?,
            relation: Linear::new(params, &of_outputs("relation"))?,
            triplet: Linear::new(params, &of_outputs("triplet"))?,
            pool: Pool::new(config.pooling, params, &of_outputs("pool_attn"))?,
            rate: config.dropout,
        })
    }

    /// The loss of batch number `index` of `tokens`, given the encoder's last hidden states.
    ///
    /// # Errors
    /// Names task and place of the first target that does not fit.
    pub fn loss(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        index: usize,
        batch: &Batch,
        dropout: Option<base::rng::CounterRng>,
    ) -> std::result::Result<Loss, Error> {
        let drop = dropout.map(|key| Dropout::new(key.named(batch.task.name()), self.rate));
        let thin = |x: Tensor| drop.map_or(Ok(x.clone()), |drop| drop.apply(&x));
        let (logits_mc, classes) = match batch.task {
            Task::Subject | Task::Object | Task::MaskedLm => {
                let (places, classes) = tag::targets(batch, tokens, index)?;
                let x_md = thin(tag::gather(x_nd, &places)?)?;
                let logits_mv = match (batch.task, &self.masked_lm) {
                    (Task::Subject, _) => self.subject.forward(&x_md)?,
                    (Task::Object, _) => self.object.forward(&x_md)?,
                    (_, Some(masked_lm)) => masked_lm.forward(&x_md)?,
                    (task, None) => return Err(no_output(task.name())),
                };
                (logits_mv, classes)
            }
            Task::Relation | Task::Triplet => {
                let linear = if batch.task == Task::Relation { &self.relation } else { &self.triplet };
                let pooled_bd = self.pool.forward(x_nd, tokens.samples(index))?;
                (linear.forward(&thin(pooled_bd)?)?, classify::targets(batch)?)
            }
            Task::Tagging => return Err(no_output(batch.task.name())),
        };
        check_classes(batch, &classes, logits_mc.dim(1)?)?;
        let wanted: Vec<Option<u32>> = classes.iter().copied().map(Some).collect();
        Ok(Loss { loss: cross_entropy(&logits_mc, &wanted)?, logits_mc, classes })
    }
}

fn check_classes(batch: &Batch, classes: &[u32], width: usize) -> std::result::Result<(), Error> {
    let task = batch.task.name();
    if classes.is_empty() {
        return Err(Error::Misfit(format!("batch of {task}: nothing is asked for; leave such a batch out")));
    }
    let what = match batch.targets {
        Targets::Tokens(_) => "vocabularies",
        Targets::Classes(_) => "relation tables",
    };
    match classes.iter().enumerate().find(|(_, class)| **class as usize >= width) {
        Some((index, &class)) => Err(beyond(task, index, class.into(), width, what)),
        None => Ok(()),
    }
}
