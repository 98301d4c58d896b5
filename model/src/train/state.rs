//! A training run on disk: what is needed to go on with the same bits, and the finished checkpoint. Knows no batch.
//!
//! A state is three files. `state.json`, written last, names the two files of tensors, whose names carry the step: until
//! it is replaced, the old state stands untouched; afterwards the old files are removed.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::Setup;
use super::coverage::Coverage;
use super::patience::Watch;
use super::seal::Seal;
use super::{Error, Trainer, specs};
use crate::checkpoint::{self, whole};
use crate::head::mask::Mask;
use crate::output::PREFIX;
use crate::params::Params;

const INDEX: &str = "state.json";
const VERSION: u32 = 3;
/// The version of `outputs.json`.
const OUTPUTS_VERSION: u32 = 1;
const FIRST: &str = "first.";
const SECOND: &str = "second.";
const TENSORS: &str = ".safetensors";

/// The version, read before the rest so that another one gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    step: u64,
    setup: Value,
    parameters: Stored,
    moments: Stored,
    coverage: Coverage,
    /// Digest of the head mask, `null` without one.
    mask: Option<String>,
    seal: Seal,
    watch: Watch,
    stream: Value,
}

/// A file of tensors, and what it must contain: the promise of equal bits would be worth nothing with a flipped one.
#[derive(Serialize, Deserialize)]
struct Stored {
    file: String,
    blake3: String,
}

impl Stored {
    /// The tensors, once the file is known to be the one that was written.
    fn tensors(&self, dir: &Path, device: &Device) -> Result<BTreeMap<String, Tensor>, Error> {
        let path = dir.join(&self.file);
        let bytes = whole::read(&path)?;
        if blake3::hash(&bytes).to_hex().as_str() != self.blake3 {
            let problem = "its contents are not what was written".to_owned();
            return Err(Error::State { path, problem });
        }
        Ok(whole::tensors_in(&path, &bytes, device)?)
    }
}

pub(super) fn save(trainer: &Trainer, dir: &Path, stream: &Value) -> Result<(), Error> {
    let step = trainer.steps();
    let [parameters, moments] = ["parameters", "moments"].map(|kind| format!("{kind}-{step:08}{TENSORS}"));
    let blake3 = whole::write_tensors(&dir.join(&parameters), trainer.params.iter())?;
    let parameters = Stored { file: parameters, blake3 };
    let mut tensors = BTreeMap::new();
    for (name, both) in &trainer.optimiser.moments {
        tensors.insert(format!("{FIRST}{name}"), &both.first);
        tensors.insert(format!("{SECOND}{name}"), &both.second);
    }
    let tensors = tensors.iter().map(|(name, tensor)| (name.as_str(), *tensor));
    let blake3 = whole::write_tensors(&dir.join(&moments), tensors)?;
    let moments = Stored { file: moments, blake3 };
    let (setup, stream) = (to_json(dir, &trainer.setup)?, stream.clone());
    let (coverage, seal, watch) = (trainer.coverage.clone(), trainer.seal.clone(), trainer.watch.clone());
    let mask = trainer.setup.mask.as_ref().map(Mask::digest);
    let index =
        Index { version: VERSION, step, setup, parameters, moments, coverage, mask, seal, watch, stream };
    write_json(&dir.join(INDEX), &to_json(dir, &index)?)?;
    remove_others(dir, &[&index.parameters.file, &index.moments.file])
}

/// Removes tensors of earlier states.
fn remove_others(dir: &Path, keep: &[&String]) -> Result<(), Error> {
    let file = |source| checkpoint::Error::File { path: dir.to_path_buf(), source };
    for entry in std::fs::read_dir(dir).map_err(file)? {
        let entry = entry.map_err(file)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours =
            (name.starts_with("parameters-") || name.starts_with("moments-")) && name.ends_with(TENSORS);
        if ours && !keep.contains(&&name) {
            std::fs::remove_file(entry.path()).map_err(file)?;
        }
    }
    Ok(())
}

pub(super) fn load(setup: Setup, dir: &Path, device: &Device) -> Result<(Trainer, Value), Error> {
    let path = dir.join(INDEX);
    let state = |problem: String| Error::State { path: path.clone(), problem };
    let bytes = whole::read(&path)?;
    let Stamp { version } = serde_json::from_slice(&bytes).map_err(|e| state(e.to_string()))?;
    if version != VERSION {
        return Err(state(format!("version {version}, expected {VERSION}")));
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(|e| state(e.to_string()))?;
    if let Some((field, found, expected)) = difference("", &index.setup, &to_json(dir, &setup)?) {
        return Err(Error::OtherSettings { path, field, found, expected });
    }
    let mask = setup.mask.as_ref().map(Mask::digest);
    if index.mask != mask {
        let [found, expected] =
            [&index.mask, &mask].map(|digest| digest.as_deref().map_or("none".to_owned(), str::to_owned));
        return Err(Error::OtherSettings {
            path,
            field: "the digest of the head mask".to_owned(),
            found,
            expected,
        });
    }
    let mut tensors = index.moments.tensors(dir, device)?;
    let params = Params::from_tensors(&specs(&setup), index.parameters.tensors(dir, device)?)
        .map_err(|source| checkpoint::Error::Params { path: dir.join(&index.parameters.file), source })?;
    let mut trainer = Trainer::over(setup, params, device)?;
    for (name, both) in &mut trainer.optimiser.moments {
        let mut take = |kind: &str, like: &Tensor| {
            let found =
                tensors.remove(&format!("{kind}{name}")).filter(|tensor| tensor.dims() == like.dims());
            found.ok_or_else(|| state(format!("{} lacks {kind}{name} in its shape", index.moments.file)))
        };
        (both.first, both.second) = (take(FIRST, &both.first)?, take(SECOND, &both.second)?);
    }
    (trainer.coverage, trainer.seal, trainer.watch) = (index.coverage, index.seal, index.watch);
    trainer.optimiser.updates = index.step;
    Ok((trainer, index.stream))
}

/// The first field in which two settings differ, with both values.
fn difference(at: &str, found: &Value, expected: &Value) -> Option<(String, String, String)> {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => a.iter().find_map(|(key, value)| {
            let inner = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            difference(&inner, value, &b[key])
        }),
        _ => (found != expected).then(|| (at.to_owned(), found.to_string(), expected.to_string())),
    }
}

pub(super) fn save_checkpoint(trainer: &Trainer, dir: &Path) -> Result<(), Error> {
    // Over an older checkpoint: without its index, what a crash leaves is not taken for whole.
    let index = dir.join("outputs.json");
    match std::fs::remove_file(&index) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(checkpoint::Error::File { path: index, source }.into());
        }
        _ => {}
    }
    let encoder = trainer.params.iter().filter(|(name, _)| !name.starts_with(PREFIX));
    checkpoint::save(dir, &trainer.setup.encoder, encoder)?;
    let outputs =
        trainer.params.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(PREFIX)?, tensor)));
    whole::write_tensors(&dir.join("outputs.safetensors"), outputs)?;
    let Setup { outputs, sizes, .. } = &trainer.setup;
    let index =
        json!({ "version": OUTPUTS_VERSION, "step": trainer.steps(), "outputs": outputs, "sizes": sizes });
    write_json(&dir.join("outputs.json"), &index)
}

fn to_json(dir: &Path, value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|e| Error::State { path: dir.join(INDEX), problem: e.to_string() })
}

fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    Ok(whole::write(path, format!("{value:#}\n").as_bytes())?)
}
