//! A training run on disk: what is needed to go on with the same bits.
//!
//! A state is `state.json`, written last, and the files that it names with their digests: two of tensors and the checkpoint of the best
//! evaluation. Their names carry the step: until `state.json` is replaced, the old state stands untouched; afterwards its files are removed.
//! `state.json` has a digest of itself, so there is nothing in a state that could be another than was written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::read::ReadError;
use base::self_check::{self, SelfChecked};
use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::best::{self, Files};
use super::config::Setup;
use super::coverage::Coverage;
use super::patience::Watch;
use super::seal::Seal;
use super::{Trainer, error, writer};
use crate::Error;
use crate::checkpoint::proof::Proof;
use crate::checkpoint::{self, whole};
use crate::params::{Params, Spec};

const INDEX: &str = "state.json";
const VERSION: u32 = 6;
const PARAMETERS: &str = "parameters-";
const MOMENTS: &str = "moments-";
const FIRST: &str = "first.";
const SECOND: &str = "second.";
const TENSORS: &str = ".safetensors";

/// The version, read before the rest so that another one gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: String,
    version: u32,
    /// See [`SelfChecked`].
    xxh3: String,
    step: u64,
    setup: Value,
    /// Every other file of the state, by its path in the folder.
    files: Files,
    /// Updates that parameters have missed for want of a gradient, of those that have.
    missed: BTreeMap<String, u64>,
    coverage: Coverage,
    /// Digest of the head mask, `null` without one.
    mask: Option<String>,
    /// Digest of the gates of a pruned encoder, `null` without any.
    gates: Option<String>,
    /// `cpu` or `cuda`: each has an arithmetic of its own.
    device: String,
    seal: Seal,
    watch: Watch,
    along: Value,
}

impl SelfChecked for Index {
    const KIND: &'static self_check::Kind = &self_check::Kind {
        format: "engraft-training-state",
        version: VERSION,
        folder: "a training's state",
        again: "begin the training anew",
        command: "`engraft run STAGE --restart`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

impl Index {
    /// The tensors of one of its files, once it is known to be the one that was written: the promise of equal bits would be worth nothing
    /// with a flipped one.
    fn tensors(&self, dir: &Path, kind: &str, device: &Device) -> Result<BTreeMap<String, Tensor>, Error> {
        let name = tensors_file(kind, self.step);
        let path = dir.join(&name);
        let state = |problem: &str| error::state(path.clone(), problem.to_owned());
        let proof = self.files.get(&name).ok_or_else(|| state("the state does not name it"))?;
        if !path.exists() {
            return Err(state("it is missing"));
        }
        let bytes = whole::read(&path)?;
        match proof.differs(&Proof::of(&bytes)) {
            Some(problem) => Err(state(&problem)),
            None => Ok(whole::tensors_in(&path, &bytes, device)?),
        }
    }
}

fn tensors_file(kind: &str, step: u64) -> String {
    format!("{kind}{step:08}{TENSORS}")
}

/// Whose state it is: nothing but a training that agrees in all of it can go on from it.
#[derive(Debug)]
pub(super) struct Run {
    /// The settings.
    setup: Value,
    /// Digest of the head mask, if there is one.
    mask: Option<String>,
    /// Digest of the gates, if there are any.
    gates: Option<String>,
}

impl Run {
    /// The settings as a state keeps them, and the digests of head mask and gates.
    pub(super) fn new(setup: &Setup, [mask, gates]: [Option<String>; 2]) -> Result<Self, Error> {
        Ok(Run { setup: to_json(Path::new(INDEX), setup)?, mask, gates })
    }

    /// All of it, for a digest.
    pub(super) fn text(&self) -> String {
        let Run { setup, mask, gates } = self;
        format!("{setup} {mask:?} {gates:?}")
    }
}

/// Any part of a state as JSON.
pub(super) fn to_json(path: &Path, value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|e| error::state(path, e.to_string()))
}

/// A state as it is to be written; training may go on meanwhile.
#[derive(Debug)]
pub struct Snapshot {
    dir: PathBuf,
    parameters: BTreeMap<String, Tensor>,
    moments: BTreeMap<String, Tensor>,
    index: Index,
}

impl Snapshot {
    /// The state of a training with what the caller keeps beside it, such as where the stream of batches was. `take` makes tensors that no step changes,
    /// or is not asked to.
    pub(super) fn of(
        trainer: &Trainer,
        dir: &Path,
        along: Value,
        take: impl Fn(&Tensor) -> candle_core::Result<Tensor>,
    ) -> Result<Self, Error> {
        let (run, step) = (trainer.setup.run()?, trainer.steps());
        let (mut parameters, mut moments) = (BTreeMap::new(), BTreeMap::new());
        for (name, tensor) in trainer.params.iter() {
            parameters.insert(name.to_owned(), take(tensor)?);
        }
        trainer.idle()?;
        let of_machine = trainer.machine.moments()?;
        for (name, both) in &of_machine {
            moments.insert(format!("{FIRST}{name}"), take(&both.first)?);
            moments.insert(format!("{SECOND}{name}"), take(&both.second)?);
        }
        let missed = of_machine.iter().map(|(name, of)| (name.clone(), step - of.updates));
        let index = Index {
            format: Index::KIND.format.to_owned(),
            version: VERSION,
            xxh3: String::new(),
            step,
            setup: run.setup,
            files: Files::new(),
            missed: missed.filter(|(_, missed)| *missed > 0).collect(),
            coverage: trainer.coverage.clone(),
            mask: run.mask,
            gates: run.gates,
            device: name_of(&trainer.device).to_owned(),
            seal: trainer.seal.clone(),
            watch: trainer.watch.clone(),
            along,
        };
        Ok(Snapshot { dir: dir.to_owned(), parameters, moments, index })
    }

    /// Writes it into its folder. A crash at any point leaves one whole state.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(self) -> Result<(), Error> {
        let Snapshot { dir, parameters, moments, mut index } = self;
        writer::make(&dir)?;
        for (kind, tensors) in [(PARAMETERS, parameters), (MOMENTS, moments)] {
            let named = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
            write(&dir, tensors_file(kind, index.step), named, &mut index.files)?;
        }
        index.files.extend(index.watch.kept.files()?);
        // The index comes after all that it names, and removing after the index.
        self_check::write(&dir.join(INDEX), &mut index)?;
        remove_others(&dir, &index)
    }
}

/// Writes tensors, and takes the file up among those of the state.
fn write<'a>(
    dir: &Path,
    name: String,
    tensors: impl Iterator<Item = (&'a str, &'a Tensor)>,
    files: &mut Files,
) -> Result<(), Error> {
    let path = dir.join(&name);
    let blake3 = whole::write_tensors(&path, tensors)?;
    let bytes = std::fs::metadata(&path).map_err(Error::file(&path))?.len();
    files.insert(name, Proof { bytes, blake3 });
    Ok(())
}

/// Removes tensors and checkpoints of earlier states; those of later steps are somebody else's, who goes on training.
fn remove_others(dir: &Path, Index { files: keep, step, .. }: &Index) -> Result<(), Error> {
    let file = Error::file(dir);
    for entry in std::fs::read_dir(dir).map_err(file)? {
        let entry = entry.map_err(file)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let tensors = (name.starts_with(PARAMETERS) || name.starts_with(MOMENTS)) && name.ends_with(TENSORS);
        if tensors && !keep.contains_key(&name) {
            std::fs::remove_file(entry.path()).map_err(file)?;
        }
        let past = best::step_of(&name).is_some_and(|of| of <= *step);
        if past && !keep.keys().any(|kept| Path::new(kept).starts_with(&name)) {
            best::remove(&entry.path())?;
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
    let state = |problem: String| error::state(path.clone(), problem);
    let bytes = whole::read(&path)?;
    let Stamp { version } = serde_json::from_slice(&bytes).map_err(|e| state(e.to_string()))?;
    if version != VERSION {
        return Err(state(format!("version {version}, expected {VERSION}")));
    }
    let index: Index = self_check::parse(bytes, &path)?;
    if let Some((field, found, expected)) = other(&index, run, device) {
        let found = format!("made with {field} = {found}, now {expected}");
        let remedy = "train from the start or restore the setting";
        return Err(ReadError::new(&path, found, "", remedy).into());
    }
    best::check(dir, &best::among(&index.files))?;
    let moments = index.tensors(dir, MOMENTS, device)?;
    let params = Params::from_tensors(specs, index.tensors(dir, PARAMETERS, device)?)
        .map_err(|source| checkpoint::error::in_file(&path, source))?;
    Ok((Loaded { path, index, moments }, params))
}

impl Loaded {
    /// Brings a training that was made of the parameters of this state to where it was, and hands back what the caller kept.
    pub(super) fn restore(mut self, trainer: &mut Trainer) -> Result<Value, Error> {
        let mut moments = trainer.machine.moments()?;
        for (name, both) in &mut moments {
            let mut take = |kind: &str, like: &Tensor| {
                let found = self.moments.remove(&format!("{kind}{name}"));
                found.filter(|tensor| tensor.dims() == like.dims()).ok_or_else(|| {
                    error::state(self.path.clone(), format!("the moments lack {kind}{name} in its shape"))
                })
            };
            (both.first, both.second) = (take(FIRST, &both.first)?, take(SECOND, &both.second)?);
            let missed = self.index.missed.get(name).copied().unwrap_or(0);
            both.updates = self.index.step.checked_sub(missed).ok_or_else(|| {
                error::state(self.path.clone(), format!("{name} has missed more updates than were made"))
            })?;
        }
        let files = best::among(&self.index.files);
        let Index { step, coverage, seal, watch, along, .. } = self.index;
        trainer.machine.restore(moments, step)?;
        (trainer.coverage, trainer.seal, trainer.watch) = (coverage, seal, watch.with_files(files));
        Ok(along)
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
    let digests = [
        ("the digest of the head mask", &index.mask, &run.mask),
        ("the digest of the gates", &index.gates, &run.gates),
    ];
    difference("", &index.setup, &run.setup).or_else(|| {
        let (field, found, expected) = digests.into_iter().find(|(_, found, expected)| found != expected)?;
        let [found, expected] = [found, expected].map(|digest| digest.clone().unwrap_or("none".into()));
        Some((field.to_owned(), found, expected))
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
