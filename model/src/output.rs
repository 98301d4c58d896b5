//! The outputs of the tasks that an encoder is retrained on, and their losses over its hidden states. What a task predicts
//! ([`Predicts`]) decides which output it has.

pub mod classify;
pub mod downstream;
pub mod masked_lm;
pub mod tag;

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use batch::task::{Answer, Predicts, Task};
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
    /// A linear layer from hidden size to vocabulary for each of the two tasks.
    #[default]
    Linear,
    /// BERT's MLM transform, shared by the tasks, with the token embeddings as decoder (tied), as in its pretraining.
    MaskedLm,
}

/// The choices about outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// How a row is pooled for relation and triplet classification.
    ///
    /// Source: KIMERA, section 2.2: `[CLS]`, the first pooling that it names; which of them its results use is not said.
    pub pooling: Pooling,
    /// How the tokens of subjects and objects are predicted.
    ///
    /// Source: KIMERA, section 2.2: linear layers, one for each task. In `[pretrain]`, `masked_lm`, as in BERT.
    pub entity: EntityOutput,
    /// Dropout on a task head's input, from 0 to 0.95.
    ///
    /// Source: KIMERA, table A3, dropout of the last layer: the lowest of 0.1, 0.25 and 0.8.
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
        range::check(&[("task_heads.dropout", self.dropout, range::DROPOUT)])
    }
}

/// The output of masked texts, and of entities with [`EntityOutput::MaskedLm`].
const MASKED_LM: &str = "masked_lm";

/// The classes of tasks that ask whether a row is true: false (0) and true (1).
const TRUTHS: usize = 2;

/// Whether a task has an output here; tags are learnt in fine-tuning, whose outputs know the classes of a set.
pub(crate) fn has_output(task: Task) -> bool {
    task.predicts() != Predicts::Tags
}

/// Outputs of all tasks that have one.
#[derive(Debug, Clone)]
pub struct Outputs {
    of: BTreeMap<Task, Output>,
    pool: Pool,
    rate: f64,
}

#[derive(Debug, Clone)]
enum Output {
    Linear(Linear),
    MaskedLm(MaskedLm),
}

impl Output {
    fn forward(&self, x_md: &Tensor) -> Result<Tensor> {
        match self {
            Output::Linear(linear) => linear.forward(x_md),
            Output::MaskedLm(masked_lm) => masked_lm.forward(x_md),
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

fn no_output(task: Task) -> Error {
    let weigh = if has_output(task) { "give it an alpha above 0, or " } else { "" };
    Error::Misfit(format!(
        "batch of {}: there is no output for it; {weigh}stream shards without this task",
        task.name()
    ))
}

impl OutputConfig {
    /// The name of a task's output among the parameters, if it has one; tasks of the same name share it.
    fn name(&self, task: Task) -> Option<&'static str> {
        match (task.predicts(), self.entity) {
            (Predicts::Tags, _) => None,
            (Predicts::MaskedTokens, _) | (Predicts::Name, EntityOutput::MaskedLm) => Some(MASKED_LM),
            (Predicts::Name, EntityOutput::Linear) | (Predicts::Relation | Predicts::Truth, _) => {
                Some(task.name())
            }
        }
    }

    /// What the names of the parameters of a task's output begin with, if it has one.
    pub(crate) fn prefix(&self, task: Task) -> Option<String> {
        Some(of_outputs(&format!("{}.", self.name(task)?)))
    }
}

impl Outputs {
    /// The parameters of the outputs of `tasks`, as their configuration needs them.
    #[must_use]
    pub fn specs(
        config: &OutputConfig,
        encoder: &Config,
        sizes: Sizes,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Vec<Spec> {
        let (d, v, std) = (encoder.hidden_size, encoder.vocab_size, encoder.initializer_range);
        let mut of: BTreeMap<&str, Vec<Spec>> = BTreeMap::new();
        for task in tasks {
            let Some(name) = config.name(task) else { continue };
            let full = of_outputs(name);
            let specs = match task.predicts() {
                Predicts::Relation => Spec::linear(&full, [sizes.relations, d], std).to_vec(),
                Predicts::Truth => Spec::linear(&full, [TRUTHS, d], std).to_vec(),
                Predicts::Name if config.entity == EntityOutput::Linear => {
                    Spec::linear(&full, [v, d], std).to_vec()
                }
                Predicts::Name | Predicts::MaskedTokens | Predicts::Tags => MaskedLm::specs(&full, encoder),
            };
            of.insert(name, specs);
        }
        let mut specs: Vec<Spec> = of.into_values().flatten().collect();
        if config.pooling == Pooling::LearnedAttn {
            specs.extend(pool::attention_specs(&of_outputs("pool_attn"), encoder));
        }
        specs
    }

    /// Outputs over `params`, which they share: of KIMERA's tasks, and of every other whose parameters are there.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(config: &OutputConfig, encoder: &Config, params: &Params) -> Result<Self> {
        let mut of = BTreeMap::new();
        for task in Task::ALL {
            let (Some(name), Some(prefix)) = (config.name(task), config.prefix(task)) else { continue };
            if !Task::GRAPH.contains(&task) && !params.iter().any(|(name, _)| name.starts_with(&prefix)) {
                continue;
            }
            let full = of_outputs(name);
            let output = if name == MASKED_LM {
                Output::MaskedLm(MaskedLm::new(params, &full, encoder)?)
            } else {
                Output::Linear(Linear::new(params, &full)?)
            };
            of.insert(task, output);
        }
        let pool = Pool::new(config.pooling, params, &of_outputs("pool_attn"))?;
        Ok(Outputs { of, pool, rate: config.dropout })
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
        let output = self.of.get(&batch.task).ok_or_else(|| no_output(batch.task))?;
        let (x_md, classes) = match batch.task.answer() {
            Answer::Tokens => {
                let (places, classes) = tag::targets(batch, tokens, index)?;
                (tag::gather(x_nd, &places)?, classes)
            }
            Answer::Class => (self.pool.forward(x_nd, tokens.samples(index))?, classify::targets(batch)?),
        };
        let logits_mc = output.forward(&thin(x_md)?)?;
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
