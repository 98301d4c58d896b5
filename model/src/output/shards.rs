//! The tasks of shards as outputs: KIMERA's (paper 000), masked texts, tags, and whether two names are of one entity. What a task predicts
//! ([`Predicts`]) decides which output it has.

use std::collections::BTreeMap;

use base::setting::{InvalidSetting, shown};
use batch::IGNORED;
use batch::task::{Predicts, Task};
use serde::{Deserialize, Serialize};

use super::targets::{Batch, Targets};
use super::{Decoder, Outline, Output, OutputDropout};
use crate::Error;
use crate::encoder::pool::Pooling;
use crate::range;

/// The choices about the outputs of such tasks.
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
    pub entity: Decoder,
    /// Dropout on a task head's input, from 0 to 0.95.
    ///
    /// Source: KIMERA, table A3, dropout of the last layer: the lowest of 0.1, 0.25 and 0.8.
    pub dropout: f64,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { pooling: Pooling::Cls, entity: Decoder::default(), dropout: 0.1 }
    }
}

/// How many classes the outputs tell apart; the vocabulary is the encoder's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Relations of the graph, none without one.
    pub relations: usize,
    /// Tags of the tagging task.
    pub tags: usize,
}

impl OutputConfig {
    /// Whether every choice is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        range::check(&[("task_heads.dropout", self.dropout, range::DROPOUT)])
    }

    /// The tasks with a weight, and KIMERA's where there is a graph: these always have outputs then, which a later training with other weights finds in the checkpoint.
    #[must_use]
    pub fn outline(&self, alphas: &Alphas, sizes: Sizes) -> Outline {
        let on_graph = sizes.relations > 0;
        let there = |task: &Task| (on_graph && Task::GRAPH.contains(task)) || alphas.of(*task) != 0.0;
        let task = |task: Task| super::Task {
            name: task.name().to_owned(),
            output: self.output(task, sizes),
            alpha: alphas.of(task),
        };
        Outline {
            tasks: Task::ALL.into_iter().filter(there).map(task).collect(),
            pooling: self.pooling,
            dropout: self.dropout,
            thinned: OutputDropout::ElementWise,
            labels: None,
            knowledge: None,
        }
    }

    /// The output of a task.
    #[must_use]
    pub fn output(&self, task: Task, sizes: Sizes) -> Output {
        let one_of = |classes| Output::OneClass { classes, weights: None };
        match task.predicts() {
            Predicts::Name => Output::Vocabulary { decoder: self.entity },
            Predicts::MaskedTokens => Output::Vocabulary { decoder: Decoder::MaskedLm },
            Predicts::Relation => one_of(sizes.relations),
            // False (0) and true (1).
            Predicts::Truth => one_of(2),
            Predicts::Tags => Output::Tag { classes: sizes.tags },
        }
    }
}

/// A batch of a stream as the model reads it: every sample a row of its own, without padding.
///
/// # Errors
/// When the outline has no such task, or the batch contradicts itself.
pub fn batch(outline: &Outline, padded: &batch::Batch) -> Result<Batch, Error> {
    let name = padded.task.name();
    let Some(task) = outline.tasks.iter().position(|task| task.name == name) else {
        return Err(Error::Misfit(format!(
            "batch of {name}: there is no output for it; give it an alpha above 0, or stream shards without this task"
        )));
    };
    let (rows, cells) = padded.ragged()?;
    let targets = match &padded.targets {
        batch::Targets::Classes(classes) => Targets::Classes(classes.clone()),
        batch::Targets::Tokens(targets) => {
            let all = padded.rows * padded.width;
            if targets.len() != all {
                return Err(Error::Misfit(format!(
                    "batch of {name}: {} targets, expected one token or {IGNORED} for each of {all} positions; the batch was put together wrongly",
                    targets.len()
                )));
            }
            let asked = |targets: &[i64]| targets.iter().filter(|target| **target != IGNORED).count();
            let of_tokens: Vec<i64> = cells.iter().map(|&cell| targets[cell]).collect();
            if asked(&of_tokens) != asked(targets) {
                return Err(Error::Misfit(format!(
                    "batch of {name}: a target at a padded position; set it to {IGNORED}"
                )));
            }
            Targets::Tokens(by_row(name, &of_tokens, &rows.lengths)?)
        }
    };
    Ok(Batch { task, rows, targets })
}

/// The targets of rows of such lengths.
fn by_row(task: &str, targets: &[i64], lengths: &[usize]) -> Result<Vec<Vec<Option<u32>>>, Error> {
    let class = |(at, target): (usize, &i64)| match u32::try_from(*target) {
        Ok(class) => Ok(Some(class)),
        Err(_) if *target == IGNORED => Ok(None),
        Err(_) => Err(Error::Misfit(format!(
            "batch of {task}, token {at}: the target is {target}, expected a token id or {IGNORED}; the batch was put together wrongly"
        ))),
    };
    let mut classes = targets.iter().enumerate().map(class);
    lengths.iter().map(|&length| classes.by_ref().take(length).collect()).collect()
}

/// Weights of the tasks' losses in their sum, by the tasks' names; 0, or no weight, leaves a task out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Task, f64>")]
pub struct Alphas(BTreeMap<Task, f64>);

impl Alphas {
    /// Weights of some tasks; all others have 0.
    #[must_use]
    pub fn new(weights: impl IntoIterator<Item = (Task, f64)>) -> Self {
        // One form for one meaning, since states and fingerprints hold it: these are always there, others where they have a weight.
        let always = Task::GRAPH.into_iter().chain([Task::MaskedLm]);
        let mut all: BTreeMap<Task, f64> = always.map(|task| (task, 0.0)).collect();
        for (task, weight) in weights {
            if weight != 0.0 || all.contains_key(&task) {
                all.insert(task, weight);
            }
        }
        Self(all)
    }

    /// The weight of a task.
    #[must_use]
    pub fn of(&self, task: Task) -> f64 {
        self.0.get(&task).copied().unwrap_or(0.0)
    }

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

impl Default for Alphas {
    /// KIMERA's tasks, all alike (paper 000: L = sum of alpha_n L_n).
    fn default() -> Self {
        Self::new(Task::GRAPH.map(|task| (task, 1.0)))
    }
}

impl From<BTreeMap<Task, f64>> for Alphas {
    fn from(weights: BTreeMap<Task, f64>) -> Self {
        Self::new(weights)
    }
}

impl schemars::JsonSchema for Alphas {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Alphas".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let weights = Task::ALL.into_iter().map(|task| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_written_by_task_and_mean_the_same_with_and_without_a_zero() {
        let read = |json: &str| serde_json::from_str::<Alphas>(json).map_err(|error| error.to_string());
        let written = r#"{"subject":1.0,"object":1.0,"relation":1.0,"triplet":1.0,"masked_lm":0.0}"#;
        assert_eq!(serde_json::to_string(&Alphas::default()).unwrap(), written);
        assert_eq!(read(written).unwrap(), Alphas::default());
        let short =
            read(r#"{"triplet":1.0,"relation":1.0,"object":1.0,"subject":1.0,"tagging":0.0}"#).unwrap();
        assert_eq!(serde_json::to_string(&short).unwrap(), written);
        assert!(
            read(r#"{"subjects":1.0}"#)
                .unwrap_err()
                .contains("unknown variant `subjects`, expected one of `subject`")
        );
        let negative = Alphas::new([(Task::MaskedLm, -1.0)]).check().unwrap_err().to_string();
        assert!(negative.contains("alphas.masked_lm is -1"), "{negative}");
    }

    #[test]
    fn samples_that_share_a_row_have_their_own_targets() {
        let packed = batch::Batch {
            task: Task::Tagging,
            rows: 1,
            width: 6,
            input_ids: vec![2, 9, 3, 2, 3, 0],
            attention_mask: vec![1, 1, 1, 1, 1, 0],
            token_type_ids: vec![0; 6],
            position_ids: vec![0, 1, 2, 0, 1, 0],
            segment_ids: vec![1, 1, 1, 2, 2, 0],
            samples: vec![
                batch::Place { row: 0, start: 3, len: 2 },
                batch::Place { row: 0, start: 0, len: 3 },
            ],
            targets: batch::Targets::Tokens(vec![IGNORED, 1, IGNORED, 4, IGNORED, IGNORED]),
        };
        let alphas = Alphas::new([(Task::Tagging, 1.0)]);
        let outline = OutputConfig::default().outline(&alphas, Sizes { relations: 3, tags: 5 });
        let made = batch(&outline, &packed).unwrap();
        assert_eq!((outline.tasks[made.task].name.as_str(), made.rows.lengths), ("tagging", vec![2, 3]));
        let expected = vec![vec![Some(4), None], vec![None, Some(1), None]];
        assert_eq!(made.targets, Targets::Tokens(expected));
        let told = |change: fn(&mut Vec<i64>)| {
            let mut packed = packed.clone();
            let batch::Targets::Tokens(targets) = &mut packed.targets else { panic!("tokens") };
            change(targets);
            batch(&outline, &packed).unwrap_err().to_string()
        };
        assert!(told(|targets| targets[5] = 1).contains("a target at a padded position"));
        assert!(
            told(|targets| targets[0] = -7)
                .contains("token 2: the target is -7, expected a token id or -100")
        );
        assert!(told(|targets| targets.truncate(2)).contains("for each of 6 positions"));
        let none = OutputConfig::default().outline(&Alphas::default(), Sizes { relations: 3, tags: 0 });
        let text = batch(&none, &packed).unwrap_err().to_string();
        assert!(text.contains("batch of tagging: there is no output for it"), "{text}");
    }
}
