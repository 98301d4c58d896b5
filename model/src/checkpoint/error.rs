//! What is wrong with a model's folder: the sentences, each in one place.

use std::fmt::Display;
use std::path::Path;

use base::read::ReadError;
use base::visible::shortened;

use crate::Error;

fn read(
    path: impl AsRef<Path>,
    found: impl Into<String>,
    expected: impl Into<String>,
    remedy: impl Into<String>,
) -> Error {
    ReadError::new(path.as_ref(), found, expected, remedy).into()
}

/// A pipe, a device or a folder where a file should be.
pub(super) fn no_file(path: impl AsRef<Path>) -> Error {
    read(path, "it is no regular file", "one with an end, as a model's folder has them", "")
}

/// A file of settings that is none.
pub(super) fn large(path: impl AsRef<Path>, bytes: u64) -> Error {
    read(path, format!("it has {bytes} bytes"), "the settings of a model, which are far fewer", "")
}

/// A file that is no JSON, or JSON of another shape.
pub(super) fn json(path: impl AsRef<Path>, source: &serde_json::Error) -> Error {
    read(path, shortened(&source.to_string()), "the configuration of a BERT model", "")
}

/// A model that this encoder does not compute.
pub(super) fn architecture(
    path: impl AsRef<Path>,
    field: &str,
    found: impl Display,
    expected: impl Into<String>,
) -> Error {
    let found = format!("{field} is {}", shortened(&found.to_string()));
    read(path, found, expected, "only BERT encoders of this kind can be loaded")
}

/// Sizes, names or shapes that do not belong to each other.
pub(crate) fn in_file(path: impl AsRef<Path>, source: impl Display) -> Error {
    read(path, source.to_string(), "", "")
}

/// A file that is not the one that was written.
pub(super) fn altered(path: impl AsRef<Path>, problem: impl Into<String>) -> Error {
    let remedy = "copy the folder again from where it was whole, or make the model again (docs/formats.md says how a folder is changed on purpose)";
    read(path, problem, "", remedy)
}

/// A file that is no safetensors file, or a damaged one.
pub(super) fn weights(path: impl AsRef<Path>, source: impl Display) -> Error {
    read(path, source.to_string(), "a whole safetensors file", "fetch or write it again")
}

/// A tensor that is no weight.
pub(super) fn tensor(path: impl AsRef<Path>, name: &str, problem: impl Display) -> Error {
    read(path, format!("{}: {problem}", shortened(name)), "", "fetch or train the model again")
}

/// A list of files that is not that of those beside it.
pub(super) fn shards(path: impl AsRef<Path>, problem: impl Display) -> Error {
    let expected = "`weight_map`, which names the file of every tensor";
    read(path, shortened(&problem.to_string()), expected, "fetch the folder again, whole")
}

/// A file that is none of PyTorch's, a damaged or too old one, or one that asks for more than tensors.
pub(super) fn pickle(path: impl AsRef<Path>, problem: impl Display) -> Error {
    let expected = "the weights of a BERT as `torch.save` writes them since PyTorch 1.6";
    let remedy = "fetch it again, or write model.safetensors beside it (python -c \"from transformers import AutoModel as M; M.from_pretrained('FOLDER').save_pretrained('FOLDER')\")";
    read(path, shortened(&problem.to_string()), expected, remedy)
}

/// The same parameter under two names.
pub(super) fn twice(path: impl AsRef<Path>, first: &str, second: &str) -> Error {
    let found = format!("{} and {} are the same parameter", shortened(first), shortened(second));
    read(path, found, "", "remove one")
}
