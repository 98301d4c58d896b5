//! Why a model's folder cannot be read or written.

use std::path::PathBuf;

use base::visible::shortened;

use super::digests;
use crate::encoder::config;
use crate::params;

/// What is wrong with a checkpoint folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A pipe, a device or a folder where a file should be.
    #[error("{path}: it is no regular file; expected one with an end, as a model's folder has them")]
    NoFile {
        /// What is there.
        path: PathBuf,
    },
    /// A file of settings that is none.
    #[error("{path}: it has {bytes} bytes; expected the settings of a model, which are far fewer")]
    Large {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A file that is no JSON, or JSON of another shape.
    #[error("{path}: {}; expected the configuration of a BERT model", shortened(&source.to_string()))]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong and at which line and column.
        source: serde_json::Error,
    },
    /// A model that this encoder does not compute.
    #[error("{path}: {field} is {}, expected {expected}; only BERT encoders of this kind can be loaded", shortened(.found))]
    Architecture {
        /// The file.
        path: PathBuf,
        /// The field that says so.
        field: &'static str,
        /// Its value.
        found: String,
        /// What can be loaded.
        expected: String,
    },
    /// Sizes that cannot be built.
    #[error("{path}: {source}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: config::Error,
    },
    /// Digests of a folder that are damaged, or of another version.
    #[error(transparent)]
    Digests(#[from] base::self_check::Error),
    /// A file that is not the one that was written.
    #[error(
        "{path}: {problem}; copy the folder again from where it was whole, or make the model again (docs/formats.md says how a folder is changed on purpose)"
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// In what it differs.
        problem: String,
    },
    /// A fine-tuned model without digests.
    #[error(
        "{path}: it has no {} beside it, which engraft writes with every fine-tuned model, so nobody can tell whether its files are what was written: copy the folder whole, or, if an older engraft made it, fine-tune again (`engraft run`)",
        digests::DIGESTS_FILE
    )]
    NoDigests {
        /// The file that says that the folder is engraft's.
        path: PathBuf,
    },
    /// A file that is no safetensors file, or a damaged one.
    #[error("{path}: {source}; expected a whole safetensors file, fetch or write it again")]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: candle_core::Error,
    },
    /// A tensor that is no weight.
    #[error("{path}: {name}: {problem}; fetch or train the model again")]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A list of files that is not that of those beside it.
    #[error(
        "{path}: {problem}; expected `weight_map`, which names the file of every tensor: fetch the folder again, whole"
    )]
    Shards {
        /// The list.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file that is none of PyTorch's, a damaged or too old one, or one that asks for more than tensors.
    #[error(
        "{path}: {problem}; expected the weights of a BERT as `torch.save` writes them since PyTorch 1.6: fetch it again, or write model.safetensors beside it (python -c \"from transformers import AutoModel as M; M.from_pretrained('FOLDER').save_pretrained('FOLDER')\")"
    )]
    Pickle {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The same parameter under two names.
    #[error("{path}: {} and {} are the same parameter; remove one", shortened(.first), shortened(.second))]
    Twice {
        /// The file.
        path: PathBuf,
        /// One name.
        first: String,
        /// The other name.
        second: String,
    },
    /// Names or shapes that do not belong to the configuration.
    #[error("{path}: {source}")]
    Params {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: params::Error,
    },
}
