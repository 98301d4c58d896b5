//! What a fine-tuned model's folder says of its task, so that the folder is all it takes to ask it; where it attends by maps, what else it takes.

use std::path::Path;

use base::visible::shortened;
use base::whole::write_whole;
use batch::maps::expand::Map;
use downstream::encode::Cut;
use downstream::tagging::Subwords;
use downstream::token_classes::{Classing, TokenClasses, is_default};
pub(crate) use model::checkpoint::digests::TASK_FILE as FILE;
use model::checkpoint::read_settings;
use serde::{Deserialize, Serialize};
use tasks::token::encode::Case;

use crate::stage::finetune::quirks::PairOrder;
use crate::stage::maps::of_texts::MadeWith;

/// What it calls itself.
pub(crate) const FORMAT: &str = "engraft-task";
/// The version of its keys.
pub(crate) const VERSION: u32 = 2;

/// What an output says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// One of the classes.
    OneClass,
    /// Any of the classes.
    AnyClasses,
    Score,
    /// A number that puts the second texts of one first text in order.
    Rank,
    /// How near the vectors of two texts are, each of which is a row of its own.
    Similarity,
    /// One of the classes, of each word.
    Tags,
    /// The words that are masked.
    MaskedWords,
    /// Where in the second text the answer to the first one stands.
    Span,
}

/// How answers are looked for in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spans {
    /// Tokens that rows of a long text share.
    pub overlap: usize,
    /// Most tokens of an answer.
    pub longest: usize,
    /// Most tokens of a question.
    pub question: usize,
    /// Whether the words that answers are made of keep case.
    pub case: Case,
    /// Whether it was trained on questions that their texts do not answer, so that it may say that there is no answer.
    pub may_be_none: bool,
}

/// One task of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    /// The benchmark's name, and that of the output.
    pub name: String,
    /// What the output says.
    pub asked: Asked,
    /// Whether it is asked of two texts.
    pub pairs: bool,
    /// Names of the classes by number; of tags those of the set.
    pub classes: Vec<String>,
    /// How the tags of the set became classes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Classing,
    /// Most tokens of a row, where that is not what the model's other tasks have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// How answers are looked for, where spans are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
}

/// What a file of any version says first.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFile {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// What the model was fine-tuned on, one benchmark or several.
    pub tasks: Vec<Task>,
    /// Most tokens of a row, `[CLS]` and `[SEP]` included.
    pub max_tokens: usize,
    /// Which text of a pair is cut.
    pub cut: Cut,
    /// Which subword is heard for a word's tag.
    pub subwords: Subwords,
    /// Which text of a pair comes first.
    #[serde(default, skip_serializing_if = "PairOrder::is_as_given")]
    pub pairs: PairOrder,
    /// The maps that the model attends by, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Knowledge>,
}

/// Maps that a model attends by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Knowledge {
    /// The maps, in their order.
    pub maps: Vec<Map>,
    /// What they were made with. Those of new texts must be made with the same.
    pub made_with: MadeWith,
}

impl Asked {
    /// Whether it is asked for by itself, not with the other tasks of a model: masks are filled, and passages read window by window.
    #[must_use]
    pub(crate) fn is_alone(self) -> bool {
        matches!(self, Self::MaskedWords | Self::Span)
    }
}

impl Task {
    /// Says in the folder of a model of this task alone how `transformers` is to call its classes.
    ///
    /// # Errors
    /// When a file has changed since it was written, or cannot be read or written.
    pub(crate) fn name_classes(&self, folder: &Path) -> anyhow::Result<()> {
        let (problem, names) = match self.asked {
            Asked::OneClass => (Some("single_label_classification"), self.classes.clone()),
            Asked::AnyClasses => (Some("multi_label_classification"), self.classes.clone()),
            Asked::Tags => (None, TokenClasses::new(self.tags, &self.classes)?.names().to_vec()),
            // What a single number is called.
            Asked::Score | Asked::Rank => (Some("regression"), vec![self.name.clone()]),
            _ => return Ok(()),
        };
        Ok(model::checkpoint::name_classes(folder, &names, problem)?)
    }
}

impl TaskFile {
    /// The first task's name, if all of several are asked for by themselves.
    #[must_use]
    pub(crate) fn all_alone(&self) -> Option<String> {
        let alone = self.tasks.len() > 1 && self.tasks.iter().all(|task| task.asked.is_alone());
        self.tasks.first().filter(|_| alone).map(|task| task.name.clone())
    }

    /// Most tokens of a row of one of its tasks.
    #[must_use]
    pub(crate) fn most(&self, task: &Task) -> usize {
        task.max_tokens.unwrap_or(self.max_tokens)
    }

    /// Writes it into a model's folder.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(write_whole(&folder.join(FILE), &serde_json::to_vec_pretty(self)?)?)
    }

    /// Reads it from a model's folder.
    ///
    /// # Errors
    /// When it is missing, damaged or of another version.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let wrong = |error: serde_json::Error| {
            anyhow::anyhow!("{}: {}", path.display(), shortened(&error.to_string()))
        };
        let bytes = read_settings(&path)?;
        let Stamp { format, version } = serde_json::from_slice(&bytes).map_err(wrong)?;
        anyhow::ensure!(
            format == FORMAT && version == VERSION,
            "{}: format {} version {version}, expected {FORMAT} version {VERSION}: fine-tune again with this engraft",
            path.display(),
            shortened(&format),
        );
        serde_json::from_slice(&bytes).map_err(wrong)
    }

    /// Whether a folder is that of a fine-tuned model; first of all, so that no other folder's files are asked for what they are not.
    ///
    /// # Errors
    /// When the file is not there.
    pub(crate) fn expected(folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        anyhow::ensure!(
            path.is_file(),
            "{}: it is not there; give the folder `model` of a fine-tuning, as in out/finetune-base-diagnoses-1/model",
            path.display()
        );
        Ok(())
    }
}
