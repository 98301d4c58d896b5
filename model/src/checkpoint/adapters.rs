//! Low-rank adapters as PEFT keeps them, beside the weights that have them added.
//!
//! The files have names of engraft's own: where a folder has an `adapter_config.json`, `transformers` takes its weights for those that adapters are
//! added to, and would add them twice. `engraft export --to peft` gives them PEFT's names, in a folder of their own.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::Tensor;
use serde_json::Value;

use super::whole;
use crate::Error;

/// The file of a model's folder with what PEFT calls `adapter_config.json`.
pub const ADAPTERS_FILE: &str = "adapters.json";
/// The file of a model's folder with what PEFT calls `adapter_model.safetensors`.
pub const ADAPTERS_WEIGHTS_FILE: &str = "adapters.safetensors";

/// Adapters under PEFT's names.
#[derive(Debug, Clone)]
pub(crate) struct Adapted {
    /// What they are.
    pub(crate) config: Value,
    /// Their tensors.
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

impl Adapted {
    /// Writes both files into a model's folder.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let tensors = self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
        whole::write_tensors(&dir.join(ADAPTERS_WEIGHTS_FILE), tensors)?;
        whole::write_json(&dir.join(ADAPTERS_FILE), &self.config)
    }
}
