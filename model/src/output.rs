//! The tasks' last layers: classes, sets of classes, scores and rankings of whole rows, classes or words of the vocabulary for single tokens, and the ends of spans.

mod dropout;
mod in_batch;
mod layers;
mod loss;
pub mod masked_lm;
mod metric;
pub mod shards;
pub(crate) mod tag;
pub mod targets;
mod translation;

use base::setting::{InvalidSetting, shown};
use batch::rows::Rows;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::attention::label::{self, LabelAttention};
use crate::attention::{Chosen, kam};
use crate::checkpoint::masked_lm::NAME as MASKED_LM;
use crate::encoder::config::Config;
use crate::encoder::pool::{self, Pooling};
pub use crate::nn::pair_loss::PairLoss;
use crate::params::{Init, Spec, of_outputs};
use crate::range;
pub use dropout::OutputDropout;
pub(crate) use layers::some_of;
pub use layers::{Loss, Outputs};
use masked_lm::MaskedLm;
pub use targets::{Anchor, Batch, Ends, Group, Identity, Targets};

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

/// The layer that predicts tokens of the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decoder {
    /// A linear layer from hidden size to vocabulary for each task.
    #[default]
    Linear,
    /// BERT's MLM transform, shared by the tasks, with the token embeddings as decoder (tied), as in its pretraining.
    MaskedLm,
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
    /// The pooled vector of a row as it is, which has no parameters: rows that match have a large cosine (a bi-encoder: Humeau et al. 2020, section 4.2;
    /// Reimers and Gurevych 2019, whose cosine it is).
    Embedding {
        /// What cosines are multiplied by in the softmax over the batch's candidates: the inverse of its temperature.
        scale: f64,
    },
    /// The pooled vector of a row as it is: rows that name the same have a large cosine (metric learning, as SapBERT: Liu et al. 2021).
    Metric {
        /// How pairs of rows are trained.
        loss: PairLoss,
        /// Of an anchor's pairs only the hard ones are trained, by triplets whose negative is nearer than their positive or farther by at most this distance
        /// (SapBERT's `metric_learning.py`: `TripletMarginMiner`); without it all are.
        margin: Option<f64>,
    },
    /// The pooled vector of a row as it is: that of a subject, moved by what is learnt of a relation, is nearer to its object's than to another's (TransE: Bordes et
    /// al. 2013; with names, as a term of CODER: Yuan et al. 2022, arXiv 2011.02947).
    Translation {
        /// How many relations there are (r).
        relations: usize,
        /// How much nearer it is to be.
        margin: f64,
    },
    /// One of some classes for each token, by softmax.
    Tag {
        /// How many classes there are (c).
        classes: usize,
    },
    /// The first and the last token of an answer, each by a softmax over all tokens of the row; both are the first token, `[CLS]`, where the row has no answer
    /// (Devlin et al. 2019, sections 4.2 and 4.3).
    Span,
    /// A token of the vocabulary for each token that is asked about, by softmax.
    Vocabulary {
        /// What predicts it.
        decoder: Decoder,
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

/// All outputs of a model.
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
        matches!(self, Output::Tag { .. } | Output::Span | Output::Vocabulary { .. })
    }

    /// How many rows its logits have for some rows of tokens (m): one for each, or for each of their tokens.
    #[must_use]
    pub fn answers(&self, rows: &Rows) -> usize {
        if self.is_of_tokens() { rows.ids.len() } else { rows.len() }
    }

    /// Whether what it says is the pooled vector itself: then it has no layer.
    #[must_use]
    pub fn is_vector(&self) -> bool {
        matches!(self, Output::Embedding { .. } | Output::Metric { .. } | Output::Translation { .. })
    }

    /// Numbers that its layer makes of a row or token (c), the vocabulary having so many entries; none of a vector, which has no layer.
    #[must_use]
    pub fn width(&self, vocabulary: usize) -> usize {
        match self {
            Output::OneClass { classes, .. }
            | Output::AnyClasses { classes, .. }
            | Output::Tag { classes } => *classes,
            Output::Score | Output::Rank { .. } => 1,
            Output::Span => 2,
            Output::Vocabulary { .. } => vocabulary,
            Output::Embedding { .. } | Output::Metric { .. } | Output::Translation { .. } => 0,
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
        format!("{}.", self.layer())
    }

    /// The name of its layer among the parameters; tasks of the same name share it.
    fn layer(&self) -> String {
        of_outputs(if self.is_shared() { MASKED_LM } else { &self.name })
    }

    /// Whether it predicts words as BERT does in its pretraining: the output is shared by all such tasks, and may be a published one.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.output == (Output::Vocabulary { decoder: Decoder::MaskedLm })
    }

    fn specs(&self, encoder: &Config) -> Vec<Spec> {
        if self.is_shared() {
            return MaskedLm::specs(&self.layer(), encoder);
        }
        if let Output::Translation { relations, .. } = self.output {
            // As embeddings of PyTorch begin, with which CODER begins.
            let init = Init::Normal(1.0);
            return vec![Spec::new(
                format!("{}.weight", self.layer()),
                &[relations, encoder.hidden_size],
                init,
            )];
        }
        if self.output.is_vector() {
            return vec![];
        }
        let sizes = [self.output.width(encoder.vocab_size), encoder.hidden_size];
        Spec::linear(&self.layer(), sizes, encoder.initializer_range).to_vec()
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
        if !range::WEIGHT.holds(self.alpha) {
            return wrong("alpha", shown(self.alpha), range::WEIGHT.told);
        }
        // Of one class there is nothing to learn; a task that is left out may have it.
        let several = if self.alpha > 0.0 { 2 } else { 1 };
        let (least, field, weights) = match &self.output {
            Output::OneClass { weights, .. } => (several, "weights", weights),
            Output::AnyClasses { positive, .. } => (1, "positive", positive),
            Output::Tag { .. } => (several, "classes", &None),
            Output::Embedding { scale } if !range::POSITIVE_WEIGHT.holds(*scale) => {
                return wrong("scale", shown(*scale), range::POSITIVE_WEIGHT.told);
            }
            Output::Metric { loss, margin } => return self.check_metric(loss, *margin),
            Output::Translation { relations: 0, .. } => {
                return wrong("relations", "0".to_owned(), "at least 1");
            }
            Output::Translation { margin, .. } if !range::POSITIVE_WEIGHT.holds(*margin) => {
                return wrong("margin", shown(*margin), range::POSITIVE_WEIGHT.told);
            }
            Output::Score
            | Output::Rank { .. }
            | Output::Span
            | Output::Embedding { .. }
            | Output::Translation { .. }
            | Output::Vocabulary { .. } => return Ok(()),
        };
        let classes = self.output.width(0);
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

    fn check_metric(&self, loss: &PairLoss, margin: Option<f64>) -> Result<(), Error> {
        let margin = margin.map_or(Ok(()), |margin| range::check(&[("margin", margin, range::DISTANCE)]));
        loss.check().and(margin).map_err(|InvalidSetting { setting, found, expected }| {
            wrong_setting(&self.name, &setting, &found, &expected)
        })
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
            let same = |other: &&Task| other.layer() == task.layer() && other.is_shared() != task.is_shared();
            if self.tasks.iter().any(|other| same(&other)) {
                let expected = "another one, beside a task that predicts words by `masked_lm`";
                return all("name", format!("`{}`", task.name), expected);
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
        let first = |(place, task): &(usize, &Task)| {
            self.tasks[..*place].iter().all(|other| other.layer() != task.layer())
        };
        let layers = self.tasks.iter().enumerate().filter(first);
        let mut specs: Vec<Spec> = layers.flat_map(|(_, task)| task.specs(encoder)).collect();
        if self.pooling == Pooling::LearnedAttn {
            specs.extend(pool::attention_specs(&pool_name(), encoder));
        }
        specs.extend(self.attention().sibling().specs(encoder));
        specs
    }

    /// What the encoder's tokens attend by: a line for each sibling that has settings.
    #[must_use]
    pub fn attention(&self) -> Chosen {
        let classes = self.tasks.first().map_or(0, |task| task.output.width(0));
        let named = [
            self.labels.map(|settings| Chosen::new(label::OfClasses { settings, classes })),
            self.knowledge.clone().map(Chosen::new),
        ];
        named.into_iter().flatten().next().unwrap_or_default()
    }

    /// Whether a task predicts words as BERT does in its pretraining, so that the output of a published masked language model is one of these.
    #[must_use]
    pub fn has_masked_lm(&self) -> bool {
        self.tasks.iter().any(Task::is_shared)
    }

    /// The task of a number.
    ///
    /// # Errors
    /// When there is none.
    pub fn task(&self, task: usize) -> Result<&Task, Error> {
        self.tasks.get(task).ok_or(Error::Misfit(format!("there is no task number {task} (from 0), only {tasks} of them; take the number from the settings' list of tasks", tasks = self.tasks.len())))
    }
}
