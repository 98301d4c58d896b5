//! A training run on disk: what is needed to go on with the same bits. Knows no batch and no task.
//!
//! A state is three files. `state.json`, written last, names the two files of tensors, whose names carry the step: until
//! it is replaced, the old state stands untouched; afterwards the old files are removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Error;
use super::core::Core;
use super::coverage::Coverage;
use super::patience::Watch;
use super::seal::Seal;
use crate::checkpoint::{self, Kind, whole};
use crate::params::{Params, Spec};

const INDEX: &str = "state.json";
const VERSION: u32 = 4;
const FIRST: &str = "first.";
const SECOND: &str = "second.";
const TENSORS: &str = ".safetensors";

/// The version, read before the rest so that another one gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Index {
    version: u32,
    kind: Kind,
    step: u64,
    setup: Value,
    parameters: Stored,
    moments: Stored,
    /// Updates that parameters have missed for want of a gradient, of those that have.
    missed: BTreeMap<String, u64>,
    coverage: Coverage,
    /// Digest of the head mask, `null` without one.
    mask: Option<String>,
    /// `cpu` or `cuda`: each has an arithmetic of its own.
    device: String,
    seal: Seal,
    watch: Value,
    stream: Value,
}

/// A file of tensors, and what it must contain: the promise of equal bits would be worth nothing with a flipped one.
#[derive(Debug, Serialize, Deserialize)]
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

/// Whose state it is: nothing but a training that agrees in all of it can go on from it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) kind: Kind,
    /// The settings.
    pub(super) setup: Value,
    /// Digest of the head mask, if there is one.
    pub(super) mask: Option<String>,
}

impl Run {
    /// The settings as a state keeps them.
    pub(super) fn new(kind: Kind, setup: &impl Serialize, mask: Option<String>) -> Result<Self, Error> {
        Ok(Run { kind, setup: to_json(Path::new(INDEX), setup)?, mask })
    }
}

/// What a state keeps for others.
#[derive(Debug)]
pub(super) struct Kept {
    /// The best look at held-out samples.
    pub(super) watch: Value,
    /// Where the stream of batches was.
    pub(super) stream: Value,
}

/// Any part of a state as JSON.
pub(super) fn to_json(path: &Path, value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|e| Error::State { path: path.to_path_buf(), problem: e.to_string() })
}

pub(super) fn save(core: &Core, dir: &Path, run: Run, kept: Kept) -> Result<(), Error> {
    let step = core.steps();
    let [parameters, moments] = ["parameters", "moments"].map(|kind| format!("{kind}-{step:08}{TENSORS}"));
    let blake3 = whole::write_tensors(&dir.join(&parameters), core.params.iter())?;
    let parameters = Stored { file: parameters, blake3 };
    let mut tensors = BTreeMap::new();
    for (name, both) in core.optimiser.moments() {
        tensors.insert(format!("{FIRST}{name}"), &both.first);
        tensors.insert(format!("{SECOND}{name}"), &both.second);
    }
    let tensors = tensors.iter().map(|(name, tensor)| (name.as_str(), *tensor));
    let blake3 = whole::write_tensors(&dir.join(&moments), tensors)?;
    let moments = Stored { file: moments, blake3 };
    let missed = core.optimiser.moments().iter().map(|(name, of)| (name.clone(), step - of.updates));
    let missed = missed.filter(|(_, missed)| *missed > 0).collect();
    let (coverage, seal) = (core.coverage.clone(), core.seal.clone());
    let (Run { kind, setup, mask }, Kept { watch, stream }) = (run, kept);
    let version = VERSION;
    let index = Index {
        version,
        kind,
        step,
        setup,
        parameters,
        moments,
        missed,
        coverage,
        mask,
        device: name_of(&core.device).to_owned(),
        seal,
        watch,
        stream,
    };
    let path = dir.join(INDEX);
    whole::write_json(&path, &to_json(&path, &index)?)?;
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

/// A state that was read and belongs to the run that asked for it.
#[derive(Debug)]
pub(super) struct Loaded {
    path: PathBuf,
    index: Index,
    moments: BTreeMap<String, Tensor>,
}

/// The state in `dir`, and the parameters in it, which are to be those of `specs`.
pub(super) fn load(
    dir: &Path,
    run: &Run,
    specs: &[Spec],
    device: &Device,
) -> Result<(Loaded, Params), Error> {
    let path = dir.join(INDEX);
    let state = |problem: String| Error::State { path: path.clone(), problem };
    let bytes = whole::read(&path)?;
    let Stamp { version } = serde_json::from_slice(&bytes).map_err(|e| state(e.to_string()))?;
    if version != VERSION {
        return Err(state(format!("version {version}, expected {VERSION}")));
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(|e| state(e.to_string()))?;
    if let Some((field, found, expected)) = other(&index, run, device) {
        return Err(Error::OtherSettings { path, field, found, expected });
    }
    let moments = index.moments.tensors(dir, device)?;
    let params = Params::from_tensors(specs, index.parameters.tensors(dir, device)?)
        .map_err(|source| checkpoint::Error::Params { path: dir.join(&index.parameters.file), source })?;
    Ok((Loaded { path, index, moments }, params))
}

impl Loaded {
    /// Brings a training that was made of the parameters of this state to where it was, and hands back what was kept of the stream.
    pub(super) fn restore(mut self, core: &mut Core) -> Result<Value, Error> {
        let (moments, updates) = core.optimiser.restore();
        for (name, both) in moments {
            let mut take = |kind: &str, like: &Tensor| {
                let found = self.moments.remove(&format!("{kind}{name}"));
                found.filter(|tensor| tensor.dims() == like.dims()).ok_or_else(|| Error::State {
                    path: self.path.clone(),
                    problem: format!("{} lacks {kind}{name} in its shape", self.index.moments.file),
                })
            };
            (both.first, both.second) = (take(FIRST, &both.first)?, take(SECOND, &both.second)?);
            let missed = self.index.missed.get(name).copied().unwrap_or(0);
            both.updates = self.index.step.checked_sub(missed).ok_or_else(|| Error::State {
                path: self.path.clone(),
                problem: format!("{name} has missed more updates than were made"),
            })?;
        }
        let Index { step, coverage, seal, stream, .. } = self.index;
        *updates = step;
        (core.coverage, core.seal) = (coverage, seal);
        Ok(stream)
    }

    /// The best look at held-out samples that it keeps.
    pub(super) fn watch<B: DeserializeOwned>(&self) -> Result<Watch<B>, Error> {
        let problem = |e: serde_json::Error| Error::State { path: self.path.clone(), problem: e.to_string() };
        Watch::deserialize(&self.index.watch).map_err(problem)
    }
}

/// The kind of a device.
fn name_of(device: &Device) -> &'static str {
    if device.is_cpu() { "cpu" } else { "cuda" }
}

/// The first field in which a state and a run differ, with both values.
fn other(index: &Index, run: &Run, device: &Device) -> Option<(String, String, String)> {
    let device = name_of(device);
    if index.device != device {
        return Some(("the device".to_owned(), index.device.clone(), device.to_owned()));
    }
    if index.kind != run.kind {
        let [found, expected] = [index.kind, run.kind].map(|kind| kind.name().to_owned());
        return Some(("kind".to_owned(), found, expected));
    }
    difference("", &index.setup, &run.setup).or_else(|| {
        let [found, expected] =
            [&index.mask, &run.mask].map(|digest| digest.clone().unwrap_or("none".into()));
        let field = "the digest of the head mask".to_owned();
        (index.mask != run.mask).then_some((field, found, expected))
    })
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
