//! Encoders in and out as Hugging Face folders: `config.json` and `model.safetensors`. Knows no training.

mod config_file;
mod names;
mod swap;
pub(crate) mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::encoder::config::Config;
use crate::encoder::{Encoder, config, pool};
use crate::output::PREFIX;
use crate::params::{self, Params};
pub use swap::remove_leftovers;

/// The file of sizes in a checkpoint folder.
pub const CONFIG_FILE: &str = "config.json";
/// The file of weights in a checkpoint folder.
pub const WEIGHTS_FILE: &str = "model.safetensors";
/// The file of weights in folders that were published before safetensors; it is read where [`WEIGHTS_FILE`] is not there.
pub const PICKLE_FILE: &str = "pytorch_model.bin";

/// The file in a checkpoint folder that says what the outputs are; written last.
pub const OUTPUTS_FILE: &str = "outputs.json";
/// The file of the outputs' weights in a checkpoint folder.
pub const OUTPUTS_WEIGHTS_FILE: &str = "outputs.safetensors";
/// The version of [`OUTPUTS_FILE`].
pub const OUTPUTS_VERSION: u32 = 2;

/// What made a checkpoint or a training's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Training on KIMERA's tasks and masked texts.
    Kimera,
    /// Fine-tuning on downstream tasks.
    Finetune,
}

impl Kind {
    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kimera => "kimera",
            Kind::Finetune => "finetune",
        }
    }
}

/// An encoder read from a folder.
#[derive(Debug)]
pub struct Checkpoint {
    /// Its sizes.
    pub config: Config,
    /// Its parameters, under the names of [`Encoder::specs`].
    pub params: Params,
    /// Names in the file that belong to outputs of the publisher and were left out.
    pub left_out: Vec<String>,
    /// Parameters of the encoder that the file lacks and that were drawn anew: the pooler's, or none.
    pub fresh: Vec<String>,
}

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
    /// A file that is no JSON, or JSON of another shape.
    #[error("{path}: {source}; expected the configuration of a BERT model")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong and at which line and column.
        source: serde_json::Error,
    },
    /// A model that this encoder does not compute.
    #[error("{path}: {field} is {found}, expected {expected}; only BERT encoders of this kind can be loaded")]
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
    /// A file that is no safetensors file, or a damaged one.
    #[error("{path}: {source}; expected a whole safetensors file, fetch or write it again")]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: candle_core::Error,
    },
    /// A file that is none of PyTorch's, or one that is too old.
    #[error(
        "{path}: {source}; expected the weights of a BERT as `torch.save` writes them since PyTorch 1.6; load an older file with `transformers` and save it again"
    )]
    Pickle {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: candle_core::Error,
    },
    /// The same parameter under two names.
    #[error("{path}: {first} and {second} are the same parameter; remove one")]
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

/// Reads an encoder from a folder with [`CONFIG_FILE`] and [`WEIGHTS_FILE`], or [`PICKLE_FILE`]. Names may carry the prefix `bert.` and the
/// old endings `gamma` and `beta`.
///
/// # Errors
/// Names the file and what is wrong; missing and unexpected parameters are all listed.
pub fn load(dir: &Path, device: &Device) -> Result<Checkpoint, Error> {
    load_with_outputs(dir, device).map(|(checkpoint, _)| checkpoint)
}

/// As [`load`], with the tensors of outputs that [`Checkpoint::left_out`] names.
pub(crate) fn load_with_outputs(
    dir: &Path,
    device: &Device,
) -> Result<(Checkpoint, BTreeMap<String, Tensor>), Error> {
    let config = config_file::read(&dir.join(CONFIG_FILE))?;
    let (path, found) = weights(dir, device)?;
    let (mut tensors, mut origins, mut outputs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in found {
        let Some(known) = names::encoder_name(&name) else {
            outputs.insert(name, tensor);
            continue;
        };
        if let Some(first) = origins.insert(known.clone(), name.clone()) {
            return Err(Error::Twice { path, first, second: name });
        }
        tensors.insert(known, tensor);
    }
    // `transformers` saves models for token tasks without the pooler, which is then as new as a task's output.
    let pooler = pool::pooler_specs(&config);
    let mut fresh = vec![];
    let drawn = |source| Error::Params { path: path.clone(), source };
    if pooler.iter().all(|spec| !tensors.contains_key(&spec.name)) {
        for (name, tensor) in Params::fresh(&pooler, 0, device).map_err(drawn)?.iter() {
            fresh.push(name.to_owned());
            tensors.insert(name.to_owned(), tensor.clone());
        }
    }
    match Params::from_tensors(&Encoder::specs(&config), tensors) {
        Ok(params) => {
            let left_out = outputs.keys().cloned().collect();
            Ok((Checkpoint { config, params, left_out, fresh }, outputs))
        }
        Err(source) => Err(Error::Params { path, source }),
    }
}

/// The file of weights in a folder, and all that is in it.
fn weights(dir: &Path, device: &Device) -> Result<(PathBuf, BTreeMap<String, Tensor>), Error> {
    let (path, pickle) = (dir.join(WEIGHTS_FILE), dir.join(PICKLE_FILE));
    if path.exists() || !pickle.exists() {
        let found = whole::read_tensors(&path, device)?;
        return Ok((path, found));
    }
    let read = candle_core::pickle::read_all(&pickle).and_then(|found| {
        found.into_iter().map(|(name, tensor)| Ok((name, tensor.to_device(device)?))).collect()
    });
    match read {
        Ok(found) => Ok((pickle, found)),
        Err(source) => Err(Error::Pickle { path: pickle, source }),
    }
}

/// The sizes of the encoder in a folder, without its weights.
///
/// # Errors
/// Names the file and what is wrong.
pub fn sizes(dir: &Path) -> Result<Config, Error> {
    config_file::read(&dir.join(CONFIG_FILE))
}

/// Writes an encoder's folder so that `transformers.AutoModel.from_pretrained` reads it: first the sizes, then the
/// weights, each file whole. `tensors` carry the names of [`Encoder::specs`].
///
/// # Errors
/// When a file cannot be written.
pub fn save<'a>(
    dir: &Path,
    config: &Config,
    tensors: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), Error> {
    config_file::write(&dir.join(CONFIG_FILE), config)?;
    whole::write_tensors(&dir.join(WEIGHTS_FILE), tensors)?;
    Ok(())
}

/// Writes a finished training so that it takes the place of whatever checkpoint lies in `dir` as a whole: the encoder as [`save`] does, the
/// outputs, whose names begin with `outputs.`, in [`OUTPUTS_WEIGHTS_FILE`], and `index` in [`OUTPUTS_FILE`].
pub(crate) fn save_finished(
    dir: &Path,
    config: &Config,
    params: &Params,
    index: &Value,
) -> Result<(), Error> {
    swap::replace(dir, |work| {
        save(work, config, params.iter().filter(|(name, _)| !name.starts_with(PREFIX)))?;
        let outputs = params.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(PREFIX)?, tensor)));
        whole::write_tensors(&work.join(OUTPUTS_WEIGHTS_FILE), outputs)?;
        whole::write_json(&work.join(OUTPUTS_FILE), index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::config::tests::tiny;
    use crate::nn::check::distance;

    fn saved(dir: &Path) -> Params {
        let params = Params::fresh(&Encoder::specs(&tiny()), 3, &Device::Cpu).unwrap();
        save(dir, &tiny(), params.iter()).unwrap();
        params
    }

    #[test]
    fn a_checkpoint_without_pooler_gets_a_fresh_one_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let params = saved(dir.path());
        let rest = params.iter().filter(|(name, _)| !name.starts_with("pooler."));
        whole::write_tensors(&dir.path().join(WEIGHTS_FILE), rest).unwrap();
        let loaded = load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.fresh, ["pooler.dense.bias", "pooler.dense.weight"]);
        assert_eq!(loaded.params.iter().count(), params.iter().count());
        let half = params.iter().filter(|(name, _)| *name != "pooler.dense.bias");
        whole::write_tensors(&dir.path().join(WEIGHTS_FILE), half).unwrap();
        assert!(load(dir.path(), &Device::Cpu).unwrap_err().to_string().contains("pooler.dense.bias"));
    }

    /// Writes the weights again with other names.
    fn rename(dir: &Path, params: &Params, with: impl Fn(&str) -> Option<String>) {
        let renamed: BTreeMap<String, Tensor> =
            params.iter().filter_map(|(n, t)| Some((with(n)?, t.clone()))).collect();
        whole::write_tensors(&dir.join(WEIGHTS_FILE), renamed.iter().map(|(n, t)| (n.as_str(), t))).unwrap();
    }

    #[test]
    fn what_is_saved_is_loaded_and_no_temporary_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let params = saved(dir.path());
        let loaded = load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.config, tiny());
        for ((a, x), (b, y)) in params.iter().zip(loaded.params.iter()) {
            assert_eq!(a, b);
            assert_eq!(distance(x, y), 0.0, "{a}");
        }
        let mut files: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, [CONFIG_FILE, WEIGHTS_FILE]);
    }

    #[test]
    fn published_names_are_understood_and_others_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let params = saved(dir.path());
        let legacy = |n: &str| match n.strip_suffix("LayerNorm.weight") {
            Some(stem) => format!("bert.{stem}LayerNorm.gamma"),
            None => format!("bert.{}", n.replace("LayerNorm.bias", "LayerNorm.beta")),
        };
        rename(dir.path(), &params, |n| Some(legacy(n)));
        assert_eq!(load(dir.path(), &Device::Cpu).unwrap().params.count(), params.count());
        rename(dir.path(), &params, |n| {
            (n != "pooler.dense.bias").then(|| n.replace("layer.1.output", "layer.9.x"))
        });
        let text = load(dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(text.contains("missing [encoder.layer.1.output.dense.weight"), "{text}");
        assert!(
            text.contains("pooler.dense.bias]") && text.contains("unexpected [encoder.layer.9.x"),
            "{text}"
        );
        rename(dir.path(), &params, |n| Some(n.replace("pooler.dense", "cls.predictions")));
        let loaded = load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.left_out, ["cls.predictions.bias", "cls.predictions.weight"]);
    }

    #[test]
    fn foreign_models_and_damaged_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        saved(dir.path());
        let config = std::fs::read_to_string(dir.path().join(CONFIG_FILE)).unwrap();
        let refused = |from: &str, to: &str| {
            assert!(config.contains(from), "{config}");
            whole::write(&dir.path().join(CONFIG_FILE), config.replace(from, to).as_bytes()).unwrap();
            load(dir.path(), &Device::Cpu).unwrap_err().to_string()
        };
        assert!(refused("BertModel", "LlamaModel").contains("architectures is [\"LlamaModel\"], expected"));
        assert!(
            refused("\"model_type\": \"bert\"", "\"model_type\": \"roberta\"")
                .contains("model_type is \"roberta\"")
        );
        assert!(refused("\"gelu\"", "\"relu\"").contains("hidden_act is \"relu\", expected \"gelu\""));
        assert!(refused("\"vocab_size\": 50", "\"vocab_size\": true").contains("expected usize"));
        assert!(refused("{", "[").contains("line"));
        whole::write(&dir.path().join(CONFIG_FILE), config.as_bytes()).unwrap();
        let weights = std::fs::read(dir.path().join(WEIGHTS_FILE)).unwrap();
        whole::write(&dir.path().join(WEIGHTS_FILE), &weights[..weights.len() - 9]).unwrap();
        let text = load(dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(
            text.contains("model.safetensors") && text.contains("expected a whole safetensors file"),
            "{text}"
        );
        std::fs::remove_file(dir.path().join(WEIGHTS_FILE)).unwrap();
        assert!(load(dir.path(), &Device::Cpu).unwrap_err().to_string().contains("model.safetensors"));
    }
}
