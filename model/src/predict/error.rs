//! Why a fine-tuned model cannot be read or cannot answer.

use std::path::PathBuf;

use base::visible::shortened;

use crate::checkpoint::{self, OUTPUTS_FILE, OUTPUTS_VERSION};
use crate::encoder::tokens;
use crate::head::{importance, mask};
use crate::output::downstream;

/// Why a fine-tuned model cannot be read or cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the checkpoint that cannot be read, or does not belong to the others.
    #[error("{0}; a fine-tuned model is the folder of a finished fine-tuning, whole")]
    Checkpoint(#[from] checkpoint::Error),
    /// A checkpoint of another training.
    #[error(
        "{path}: this model was trained on KIMERA's tasks and answers no downstream task; fine-tune it first and give the fine-tuned model's folder"
    )]
    Kimera {
        /// The file that says so.
        path: PathBuf,
    },
    /// Another version.
    #[error("{path}: version {found}, expected {OUTPUTS_VERSION}; fine-tune again with this engraft")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file that is no list of outputs.
    #[error(
        "{path}: {}; expected {OUTPUTS_FILE} of a fine-tuned model, write it again by fine-tuning", shortened(&source.to_string())
    )]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong and at which line and column.
        source: serde_json::Error,
    },
    /// A task that the model was not fine-tuned for.
    #[error("the model has no output for `{name}`, only for {}; name one of them", .tasks.join(", "))]
    Task {
        /// The name asked for.
        name: String,
        /// The tasks that there are.
        tasks: Vec<String>,
    },
    /// A learned pooling that the model has not learned.
    #[error(
        "the model pools by {found} and has learned no weights for learned_attn; ask for another pooling, or fine-tune with that one"
    )]
    Pooling {
        /// How the model pools.
        found: &'static str,
    },
    /// A number that is infinite or none among what the model says.
    #[error(
        "the model says {value} of row {row} (from 0 of those asked together), which is no answer: its weights are too large to compute with; look at how it was trained"
    )]
    NotFinite {
        /// The row, or of tags and hidden states the token.
        row: usize,
        /// What it is.
        value: f32,
    },
    /// An encoder without any hidden states.
    #[error("the encoder has no hidden states; report it")]
    Layers,
    /// Rows that the encoder cannot read.
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    /// Weights that fine-tuning wrote and that are not there any more.
    #[error(
        "{path}: it lacks {}; a fine-tuned model is the folder of a finished fine-tuning, whole: take it as it was written", .names.join(", ")
    )]
    Lacking {
        /// The file.
        path: PathBuf,
        /// The parameters.
        names: Vec<String>,
    },
    /// Targets or settings that do not fit an output.
    #[error(transparent)]
    Targets(#[from] downstream::Error),
    /// A head mask of another encoder.
    #[error(transparent)]
    Mask(#[from] mask::Error),
    /// Head importances that cannot be measured.
    #[error(transparent)]
    Importance(#[from] importance::Error),
    /// The tensor library failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}
