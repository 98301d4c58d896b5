//! `outputs.json` of a trained model: what its outputs are.

use std::path::Path;

use base::read::ReadError;
use base::visible::shortened;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::checkpoint::{OUTPUTS_FILE, OUTPUTS_VERSION, whole};
use crate::head::mask::Mask;
use crate::output::Outline;

/// `outputs.json` of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    pub(crate) version: u32,
    /// Steps of training.
    pub(crate) step: u64,
    /// What the outputs are.
    pub(crate) outputs: Outline,
    /// The gates of a pruned encoder.
    pub(crate) gates: Option<Mask>,
}

/// What is read before the rest, so that another version gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    version: u32,
}

/// Reads it.
///
/// # Errors
/// When it is damaged, of another version, or its settings cannot be.
pub(super) fn read_index(path: &Path) -> Result<Index, Error> {
    let bytes = whole::read_settings(path)?;
    let wrong = |found: String, expected: String, remedy: &str| ReadError::new(path, found, expected, remedy);
    let json = |source: serde_json::Error| {
        let expected = format!("{OUTPUTS_FILE} of a fine-tuned model");
        wrong(shortened(&source.to_string()), expected, "write it again by fine-tuning")
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(json)?;
    let Stamp { version } = Stamp::deserialize(&value).map_err(json)?;
    if version != OUTPUTS_VERSION {
        let found = format!("version {version}");
        return Err(wrong(found, OUTPUTS_VERSION.to_string(), "train again with this engraft").into());
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(json)?;
    index.outputs.check()?;
    Ok(index)
}
