//! The last layers of fine-tuning: classes, sets of classes, scores and rankings of whole rows.

mod dropout;
mod loss;
pub mod targets;

use base::rng::CounterRng;
use base::setting::InvalidSetting;
use batch::rows::Rows;
use candle_core::{Error as TensorError, Result as TensorResult, Tensor};
use serde::{Deserialize, Serialize};

use super::tag::gather;
use crate::Error;
use crate::attention::label::{self, LabelAttention};
use crate::attention::{Attention, Chosen, kam};
use crate::encoder::config::Config;
use crate::encoder::pool::{self, Pool, Pooling};
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::dropout::Dropout;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec, of_outputs};
pub use dropout::OutputDropout;
pub use targets::{Batch, Group, Targets};

/// How rows of a group are told from the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankLoss {
    /// Softmax over one passage that answers and the negatives, as cross entropy (Humeau et al. 2020): a mean over queries.
    #[default]
    Softmax,
    /// Binary cross entropy of each passage by itself: a mean over passages.
    Binary,
}

/// What is predicted of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Output {
    /// One of some classes, by softmax.
    OneClass {
        /// How many classes there are (c).
        classes: usize,
        /// The weight of each class in the mean of the losses; all equal without it.
        weights: Option<Vec<f64>>,
    },
    /// Any of some classes, each by itself.
    AnyClasses {
        /// How many classes there are (c).
        classes: usize,
        /// What it weighs that a class holds, for each class, where that it does not weighs 1.
        positive: Option<Vec<f64>>,
    },
    /// A number, by squared error.
    Score,
    /// A number that puts the rows of a group in order.
    Rank {
        /// How it is trained.
        loss: RankLoss,
    },
    /// One of some classes for each token, by softmax.
    Tag {
        /// How many classes there are (c).
        classes: usize,
    },
}

/// A task with its last layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name, which its parameters and records carry: letters, digits, `_` and `-`.
    pub name: String,
    /// What is predicted.
    pub output: Output,
    /// The weight of its loss; 0 leaves it out.
    pub alpha: f64,
}

/// All outputs of a fine-tuned model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outline {
    /// The tasks; batches name them by their place here.
    pub tasks: Vec<Task>,
    /// How a row is pooled; [`Pooling::LearnedAttn`] is learned by all tasks together.
    pub pooling: Pooling,
    /// Dropout rate of what enters an output.
    pub dropout: f64,
    /// Whether it is element-wise or variational.
    #[serde(default, skip_serializing_if = "OutputDropout::is_element_wise")]
    pub thinned: OutputDropout,
    /// Whether the encoder attends with the labels of the one task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelAttention>,
    /// Whether it attends by what is known of the rows (KAM-BERT); then something is known of every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<kam::Settings>,
}

/// The last layers over their parameters.
#[derive(Debug, Clone)]
pub struct Outputs {
    outline: Outline,
    pool: Pool,
    linears: Vec<Linear>,
}

const POOL: &str = "pool_attn";
/// Names that no task may have.
const RESERVED: [&str; 3] = [POOL, label::NAME, kam::NAME];

/// The parameters of [`Pooling::LearnedAttn`].
pub(crate) fn pool_name() -> String {
    of_outputs(POOL)
}

impl Output {
    /// Whether it speaks of each token, and not of whole rows: then nothing is pooled for it.
    #[must_use]
    pub fn is_of_tokens(&self) -> bool {
        matches!(self, Output::Tag { .. })
    }

    /// How many rows its logits have for some rows of tokens (m): one for each, or for each of their tokens.
    #[must_use]
    pub fn answers(&self, rows: &Rows) -> usize {
        if self.is_of_tokens() { rows.ids.len() } else { rows.len() }
    }

    /// Numbers that it makes of a row or token (c).
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Output::OneClass { classes, .. }
            | Output::AnyClasses { classes, .. }
            | Output::Tag { classes } => *classes,
            Output::Score | Output::Rank { .. } => 1,
        }
    }
}

fn wrong_setting(task: &str, field: &str, found: &str, expected: &str) -> Error {
    Error::Misfit(format!("output of {task}: {field} is {found}, expected {expected}"))
}

impl Task {
    /// The prefix of its parameters' names.
    #[must_use]
    pub fn prefix(&self) -> String {
        of_outputs(&format!("{}.", self.name))
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |field: &str, found: String, expected: &str| {
            Err(wrong_setting(&self.name, field, &found, expected))
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || !self.name.chars().all(plain) || RESERVED.contains(&self.name.as_str()) {
            let [pool, labels, knowledge] = RESERVED;
            let expected =
                format!("letters, digits, `_` and `-`, and none of {pool}, {labels} and {knowledge}");
            return wrong("name", format!("`{}`", self.name), &expected);
        }
        if !(self.alpha >= 0.0 && self.alpha.is_finite()) {
            return wrong("alpha", self.alpha.to_string(), "0 or above");
        }
        let (least, field, weights) = match &self.output {
            Output::OneClass { weights, .. } => (2, "weights", weights),
            Output::AnyClasses { positive, .. } => (1, "positive", positive),
            Output::Tag { .. } => (2, "classes", &None),
            Output::Score | Output::Rank { .. } => return Ok(()),
        };
        let classes = self.output.width();
        if classes < least {
            return wrong("classes", classes.to_string(), &format!("at least {least}"));
        }
        let Some(weights) = weights else { return Ok(()) };
        if weights.len() != classes {
            return wrong(
                field,
                format!("{} numbers", weights.len()),
                &format!("one for each of {classes} classes"),
            );
        }
        match weights.iter().position(|weight| !(*weight > 0.0 && weight.is_finite())) {
            Some(class) => wrong(&format!("{field}[{class}]"), weights[class].to_string(), "above 0"),
            None => Ok(()),
        }
    }
}

impl Outline {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the task and the setting that is not.
    pub fn check(&self) -> Result<(), Error> {
        let all = |field: &str, found: String, expected: &str| {
            Err(wrong_setting("all tasks", field, &found, expected))
        };
        self.tasks.iter().try_for_each(Task::check)?;
        for (place, task) in self.tasks.iter().enumerate() {
            if self.tasks[..place].iter().any(|other| other.name == task.name) {
                return all("name", format!("`{}` twice", task.name), "a name of its own for each task");
            }
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return all("dropout", self.dropout.to_string(), "at least 0 and below 1");
        }
        if !self.tasks.iter().any(|task| task.alpha > 0.0) {
            return all("alpha", "0".to_owned(), "one task's weight above 0");
        }
        if self.labels.is_some() && self.knowledge.is_some() {
            return all("knowledge", "there beside labels".to_owned(), "one attention: labels or knowledge");
        }
        if let Err(InvalidSetting { setting, found, expected }) = self.attention().sibling().check() {
            return all(&setting, found, &expected);
        }
        if self.labels.is_none() {
            return Ok(());
        }
        match self.tasks.as_slice() {
            [Task { output: Output::OneClass { .. }, .. }] => Ok(()),
            tasks => {
                let found = format!("there, for {} tasks", tasks.len());
                all(
                    "labels",
                    found,
                    "no labels, or one task with the output one_class, whose classes they are",
                )
            }
        }
    }

    /// The parameters of the outputs.
    #[must_use]
    pub fn specs(&self, encoder: &Config) -> Vec<Spec> {
        let (d, std) = (encoder.hidden_size, encoder.initializer_range);
        let linear = |task: &Task| Spec::linear(&of_outputs(&task.name), [task.output.width(), d], std);
        let mut specs: Vec<Spec> = self.tasks.iter().flat_map(linear).collect();
        if self.pooling == Pooling::LearnedAttn {
            specs.extend(pool::attention_specs(&pool_name(), encoder));
        }
        specs.extend(self.attention().sibling().specs(encoder));
        specs
    }

    /// What the encoder's tokens attend by: a line for each sibling that has settings.
    #[must_use]
    pub fn attention(&self) -> Chosen {
        let classes = self.tasks.first().map_or(0, |task| task.output.width());
        let named = [
            self.labels.map(|settings| Chosen::new(label::OfClasses { settings, classes })),
            self.knowledge.clone().map(Chosen::new),
        ];
        named.into_iter().flatten().next().unwrap_or_default()
    }

    /// The task of a number.
    ///
    /// # Errors
    /// When there is none.
    pub fn task(&self, task: usize) -> Result<&Task, Error> {
        self.tasks.get(task).ok_or(Error::Misfit(format!("there is no task number {task} (from 0), only {tasks} of them; take the number from the settings' list of tasks", tasks = self.tasks.len())))
    }
}

impl Outputs {
    /// Outputs over `params`, which they share.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(outline: &Outline, params: &Params) -> TensorResult<Self> {
        let linears = outline.tasks.iter().map(|task| Linear::new(params, &of_outputs(&task.name)));
        Ok(Outputs {
            outline: outline.clone(),
            pool: Pool::new(outline.pooling, params, &pool_name())?,
            linears: linears.collect::<TensorResult<_>>()?,
        })
    }

    /// The rows of a batch as a task's logits are of them: whole for tags, without auxiliary tokens where a row is pooled.
    #[must_use]
    pub fn rows<'t>(&self, tokens: &'t Tokens, batch: usize, task: usize) -> &'t [Span] {
        match self.outline.tasks.get(task) {
            Some(of) if of.output.is_of_tokens() => tokens.samples(batch),
            _ => tokens.own(batch),
        }
    }

    /// The logits `[m, c]` that the first task has of vectors `[m, d]`: each pooled as a row of one token, through the linear layer, without dropout.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn logits_of_vectors(&self, vectors_md: &Tensor) -> TensorResult<Tensor> {
        let rows = (0..vectors_md.dim(0)?).map(|start| Span { start, len: 1 });
        self.logits(vectors_md, &rows.collect::<Vec<_>>(), 0, None)
    }

    /// What the attention adds to the loss of the one task, no axes, if it adds anything.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn own_loss(&self, attention: &dyn Attention) -> TensorResult<Option<Tensor>> {
        attention.own_loss(&|vectors_md| self.logits_of_vectors(vectors_md))
    }

    /// The logits `[m, c]` of the rows of a task, given the last hidden states: pooled, behind `dropout`, through the linear layer. Of tags
    /// those of each token of the rows, row after row, not pooled.
    ///
    /// # Errors
    /// When a row lies outside `x_nd` or there is no such task.
    pub fn logits(
        &self,
        x_nd: &Tensor,
        rows: &[Span],
        task: usize,
        dropout: Option<CounterRng>,
    ) -> TensorResult<Tensor> {
        let (Some(of), Some(linear)) = (self.outline.tasks.get(task), self.linears.get(task)) else {
            candle_core::bail!("there is no task number {task}")
        };
        let pooled_md =
            if of.output.is_of_tokens() { of_rows(x_nd, rows)? } else { self.pool.forward(x_nd, rows)? };
        let Some(key) = dropout else { return linear.forward(&pooled_md) };
        let drop = Dropout::new(key.named(&of.name), self.outline.dropout);
        let dropped_md = match self.outline.thinned {
            OutputDropout::Variational if of.output.is_of_tokens() => {
                dropout::by_rows(drop, &pooled_md, rows)?
            }
            OutputDropout::Variational | OutputDropout::ElementWise => drop.apply(&pooled_md)?,
        };
        linear.forward(&dropped_md)
    }

    /// The loss of a batch from its logits, no axes: a mean over samples, rows or numbers as the output has it. The targets have been
    /// checked ([`Targets::check`]).
    ///
    /// # Errors
    /// When logits, targets and output do not belong together.
    pub fn loss(&self, logits_mc: &Tensor, batch: &Batch) -> TensorResult<Tensor> {
        match self.outline.tasks.get(batch.task) {
            Some(task) => loss::mean(&task.output, logits_mc, &batch.targets),
            None => candle_core::bail!("there is no task number {}", batch.task),
        }
    }

    /// The sum over a batch's samples (rows, or groups of them) of the loss that each would have alone, no axes: what head importance takes
    /// apart. The weights of classes play no part then, those of positives do.
    ///
    /// # Errors
    /// When logits, targets and output do not belong together.
    pub fn sample_losses(&self, logits_mc: &Tensor, batch: &Batch) -> TensorResult<Tensor> {
        match self.outline.tasks.get(batch.task) {
            Some(task) => loss::sum_of_samples(&task.output, logits_mc, &batch.targets),
            None => candle_core::bail!("there is no task number {}", batch.task),
        }
    }

    /// What the outputs are.
    #[must_use]
    pub fn outline(&self) -> &Outline {
        &self.outline
    }
}

/// The hidden states of the tokens of some rows, row after row.
fn of_rows(x_nd: &Tensor, rows: &[Span]) -> TensorResult<Tensor> {
    let places = rows.iter().flat_map(|row| row.start..row.start + row.len);
    if places.clone().eq(0..x_nd.dim(0)?) {
        return Ok(x_nd.clone());
    }
    let places = places.map(u32::try_from).collect::<Result<Vec<u32>, _>>().map_err(TensorError::wrap)?;
    gather(x_nd, &places)
}
