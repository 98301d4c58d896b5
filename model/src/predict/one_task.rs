//! A model of several tasks, with one of them alone.

use std::path::Path;

use candle_core::Device;

use super::{Index, Predictor, read_index};
use crate::Error;
use crate::checkpoint::{Finished, OUTPUTS_FILE, classifier};
use crate::output::Outline;
use crate::params::is_of_encoder;

/// Writes the model in `dir` with its task `task` alone into the folder `into`: as a training of one task leaves it, so that `transformers` has its last
/// layer, too, where it has a class for it.
///
/// # Errors
/// When the folder is no sound model's or has no such task, or the disk refuses.
pub fn write_one_task(dir: &Path, task: &str, into: &Path) -> Result<(), Error> {
    let whole = Predictor::load(dir, &Device::Cpu)?;
    let index = read_index(&dir.join(OUTPUTS_FILE))?;
    let tasks = vec![whole.outline().task(whole.task(task)?)?.clone()];
    let outputs = Outline { tasks, ..index.outputs.clone() };
    let specs = outputs.specs(&whole.config);
    let params = whole.params.only(|name| is_of_encoder(name) || specs.iter().any(|spec| spec.name == name));
    let classifier = match index.gates {
        None => classifier::of(&outputs, &whole.config, &params)?,
        Some(_) => None,
    };
    let index = Index { outputs, ..index };
    let index = serde_json::to_value(&index).map_err(|error| Error::Misfit(error.to_string()))?;
    Finished { config: whole.config, params, classifier, adapters: None, index }.save(into)
}
