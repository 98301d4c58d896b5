//! What a training leaves in its work folder, and the proof that a later run finds what was written: the lines of steps and evaluations, the state
//! to resume from, the seal of a training that has ended. Whatever differs is an error with its name; only `--restart` begins anew.

pub(super) mod settings;
pub(super) mod steps;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base::self_check::{self, SelfChecked};
use base::whole::write_whole;
use model::checkpoint::digests::DIGESTS_FILE;
use model::checkpoint::proof::Proof;
use model::train::patience::Patience;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::encoder::MODEL;
use super::metrics::Lines;
use crate::board;
use crate::engine::context::Context;
use crate::engine::folder;
use crate::engine::progress::Steps;

/// Keys of a training's settings that shape no artifact: how often it could be resumed changes nothing of what it comes to.
pub(super) const SHAPES_NOTHING: [&str; 1] = ["checkpoint_every"];
/// The folder to resume from; it is gone from a finished artifact.
const STATE: &str = "state";
/// The file within it that says what the state is.
const STATE_INDEX: &str = "state.json";
/// Stands in [`STATE`] until its first state is whole: without either, something is missing.
const NO_STATE: &str = "none-yet";
/// The file with one line per step within the artifact.
pub(super) const METRICS: &str = "metrics.jsonl";
/// What training left, with digests. Written once everything else is there, so with it, training has ended.
pub(super) const SEAL: &str = "sealed.json";

/// The files of an ended training.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    format: String,
    version: u32,
    xxh3: String,
    /// By their paths in the artifact.
    files: BTreeMap<String, Proof>,
}

impl SelfChecked for Seal {
    const KIND: &'static self_check::Kind = &self_check::Kind {
        format: "engraft-training-seal",
        version: 1,
        folder: "a training",
        again: "begin it anew",
        command: "`engraft run STAGE --restart`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

/// What a work folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A training that has ended, as it was written.
    Ended,
    /// A state to resume from.
    State,
    /// Nothing: training begins.
    Nothing,
}

/// What the state keeps of the files that grow, and of the stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Along {
    /// The lines up to the state's step, by the names of their files.
    lines: BTreeMap<String, Proof>,
    stream: Value,
}

/// What an earlier run left in the work folder. What it wrote after its last state goes: the steps are made again.
///
/// # Errors
/// Names the file that is not as it was written.
fn found(context: &Context, lines: &[&str]) -> anyhow::Result<Found> {
    let out = context.out();
    if out.join(SEAL).exists() {
        check_seal(out).with_context(|| refused(context))?;
        // Written again by the stage; what they say of the weights the seal has just said.
        match fs::remove_file(out.join(MODEL).join(DIGESTS_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => return Ok(Found::Ended),
        }
    }
    let state = out.join(STATE);
    if state.join(STATE_INDEX).exists() {
        keep_only(out, &[&[STATE, board::FILE], lines].concat())?;
        context.show(lines);
        return Ok(Found::State);
    }
    if !folder::list(out)?.is_empty() && !state.join(NO_STATE).exists() {
        let missing = format!("{}: {STATE}/{STATE_INDEX} is missing, or {SEAL}", out.display());
        return Err(anyhow::anyhow!(missing)).with_context(|| refused(context));
    }
    fs::create_dir_all(&state)?;
    write_whole(&state.join(NO_STATE), b"")?;
    // A kill before the first state leaves lines, and a checkpoint perhaps.
    keep_only(&state, &[NO_STATE])?;
    keep_only(out, &[STATE])?;
    context.show(lines);
    Ok(Found::Nothing)
}

/// How many steps a training makes that `patience` may end.
fn total(planned: u64, patience: Option<&Patience>) -> Steps {
    // The first evaluation is the best so far, and then so many that are not end it.
    let soonest = |patience: &Patience| patience.every.saturating_mul(patience.evaluations.saturating_add(1));
    match patience.map(soonest) {
        Some(step) if step < planned => Steps::AtMost(planned),
        _ => Steps::Exactly(planned),
    }
}

/// What a training says that cannot be resumed.
fn refused(context: &Context) -> String {
    let stage = context.stage();
    format!(
        "the interrupted training cannot be resumed (`engraft run {stage} --restart` throws it away and begins anew)"
    )
}

/// Removes everything else from a folder of ours.
fn keep_only(out: &Path, names: &[&str]) -> anyhow::Result<()> {
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        if names.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn check_seal(out: &Path) -> anyhow::Result<()> {
    let seal: Seal = self_check::read(&out.join(SEAL))?;
    for (file, proof) in &seal.files {
        let path = out.join(file);
        if let Some(problem) = proof.broken(&path).with_context(|| path.display().to_string())? {
            bail!("{}: {problem}", path.display());
        }
    }
    Ok(())
}

/// Call it when a state has become whole: from now on, one is missed where it is not.
///
/// # Errors
/// When the disk refuses.
fn state_is_there(out: &Path) -> anyhow::Result<()> {
    let none = out.join(STATE).join(NO_STATE);
    if none.exists() {
        fs::remove_file(&none)?;
    }
    Ok(())
}

/// Seals a training that has left everything it was to leave.
///
/// # Errors
/// When a file cannot be read, or the seal not be written.
fn seal(out: &Path) -> anyhow::Result<()> {
    let of_state = format!("{STATE}/");
    // A model's own digests are written again once its vocabulary and task lie beside it; they check themselves.
    let left = |file: &String| !file.starts_with(&of_state) && !file.ends_with(DIGESTS_FILE);
    let files = folder::list(out)?.into_iter().filter(left);
    let proof = |file: String| {
        let path = out.join(&file);
        Ok((file, Proof::of_file(&path).with_context(|| path.display().to_string())?))
    };
    let files = files.map(proof).collect::<anyhow::Result<_>>()?;
    let mut seal = Seal {
        format: Seal::KIND.format.to_owned(),
        version: Seal::KIND.version,
        xxh3: String::new(),
        files,
    };
    Ok(self_check::write(&out.join(SEAL), &mut seal)?)
}

/// Writes a file of a sealed training otherwise. The seal is without it meanwhile, so that a kill in between costs nothing: what is written once more is the same.
///
/// # Errors
/// When the seal or the file cannot be read or written.
pub(super) fn rewrite_sealed(
    out: &Path,
    file: &str,
    write: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (path, place) = (out.join(SEAL), out.join(file));
    let mut seal: Seal = self_check::read(&path)?;
    seal.files.remove(file);
    self_check::write(&path, &mut seal)?;
    write()?;
    let proof = Proof::of_file(&place).with_context(|| place.display().to_string())?;
    seal.files.insert(file.to_owned(), proof);
    Ok(self_check::write(&path, &mut seal)?)
}

/// Removes the state of a training that is sealed.
///
/// # Errors
/// When the disk refuses.
fn drop_state(out: &Path) -> anyhow::Result<()> {
    Ok(folder::remove(&out.join(STATE))?)
}

/// The files that grow while a training runs, one line for each step or look, and TensorBoard's file of the same numbers.
#[derive(Debug)]
struct Records {
    out: PathBuf,
    /// The work folder as it was when they were opened.
    folder: Option<Id>,
    /// The last is TensorBoard's.
    lines: Vec<(String, Lines)>,
}

/// Under which tags TensorBoard shows the numbers of a file of lines.
fn under(name: &str) -> &str {
    if name == METRICS { "train" } else { name.trim_end_matches(".jsonl") }
}

/// What tells a file or folder from one that took its name.
type Id = (u64, u64);

fn id(path: &Path) -> Option<Id> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

impl Records {
    /// Those of a training that begins.
    ///
    /// # Errors
    /// When the disk refuses.
    fn begin(out: &Path, names: &[&str]) -> anyhow::Result<Self> {
        let mut records = Self::open(out, names, |path, _| Lines::begin(path))?;
        records.file(board::FILE)?.append(&board::begin())?;
        Ok(records)
    }

    /// Those of a training that is resumed from a state which kept `along`, and what that kept of the stream. Lines that were written
    /// after the state go: their steps are made again.
    ///
    /// # Errors
    /// When a file does not begin with the lines that the state knows.
    fn resume(out: &Path, names: &[&str], along: &Value) -> anyhow::Result<(Self, Value)> {
        let along = Along::deserialize(along).with_context(|| index(out))?;
        let records = Self::open(out, names, |path, name| {
            let proof =
                along.lines.get(name).with_context(|| format!("{} does not name {name}", index(out)))?;
            Lines::resume(path, proof)
        })?;
        // Only now that all of them are what they should be.
        records.lines.iter().try_for_each(|(_, lines)| lines.cut())?;
        Ok((records, along.stream))
    }

    fn open(
        out: &Path,
        names: &[&str],
        open: impl Fn(&Path, &str) -> anyhow::Result<Lines>,
    ) -> anyhow::Result<Self> {
        let names = names.iter().chain([&board::FILE]);
        let lines = names.map(|&name| Ok((name.to_owned(), open(&out.join(name), name)?)));
        let lines = lines.collect::<anyhow::Result<_>>()?;
        Ok(Self { out: out.to_owned(), folder: id(out), lines })
    }

    /// Adds a line to the file `name`, and its numbers to TensorBoard's. Whoever follows the files sees them at once.
    ///
    /// # Errors
    /// When the disk refuses.
    fn push(&mut self, name: &str, record: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_vec(record)?;
        let numbers: Map<String, Value> = serde_json::from_slice(&line)?;
        self.file(name)?.append(&[&line[..], b"\n"].concat())?;
        self.file(board::FILE)?.append(&board::records(&numbers, under(name)))
    }

    fn file(&mut self, name: &str) -> anyhow::Result<&mut Lines> {
        let lines = self.lines.iter_mut().find(|(of, _)| of == name);
        Ok(&mut lines.with_context(|| format!("{name} is no file of this training"))?.1)
    }

    /// Makes sure that all lines so far are on disk.
    ///
    /// # Errors
    /// When the disk refuses, or somebody has taken them away.
    fn sync(&mut self) -> anyhow::Result<()> {
        for (_, lines) in &mut self.lines {
            lines.sync()?;
        }
        self.check()
    }

    /// What a state keeps of them, once they are on disk, and of the stream.
    ///
    /// # Errors
    /// As [`Records::sync`].
    fn along(&mut self, stream: Value) -> anyhow::Result<Value> {
        self.sync()?;
        let lines = self.lines.iter().map(|(name, lines)| (name.clone(), lines.proof())).collect();
        Ok(serde_json::to_value(Along { lines, stream })?)
    }

    /// Fails once somebody has taken the work folder, or one of these files, away: a state without them would be worth nothing.
    ///
    /// # Errors
    /// Names what is gone.
    fn check(&self) -> anyhow::Result<()> {
        let gone = self.lines.iter().find(|(name, lines)| id(&self.out.join(name)) != lines.id().ok());
        let Some((name, _)) = gone else { return Ok(()) };
        if id(&self.out) == self.folder {
            bail!(
                "{}: removed or replaced while training wrote it; leave the work folder alone while a run lasts",
                self.out.join(name).display()
            );
        }
        // What was written there since is no state: without it, the next run has nothing to stumble over. A file of lines that is there
        // is not ours, for we make none twice, and whose folder this is then is not known.
        if !self.lines.iter().any(|(name, _)| self.out.join(name).exists()) {
            let _ = fs::remove_dir_all(&self.out);
        }
        bail!(
            "{}: the work folder was removed while training ran, and with it what there was to resume from: the next run begins this training anew",
            self.out.display()
        );
    }
}

/// What a state that kept `along` says of the stream.
///
/// # Errors
/// When it says nothing of it.
fn stream_of(state: &Path, along: &Value) -> anyhow::Result<Value> {
    let along = Along::deserialize(along).with_context(|| state.join(STATE_INDEX).display().to_string())?;
    Ok(along.stream)
}

fn index(out: &Path) -> String {
    out.join(STATE).join(STATE_INDEX).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_may_be_written_otherwise_and_a_kill_on_the_way_leaves_a_seal_that_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (out, file) = (folder.path(), folder.path().join("config.json"));
        write_whole(&file, b"{}").unwrap();
        write_whole(&out.join("weights"), b"1").unwrap();
        seal(out).unwrap();
        let named = || Ok(write_whole(&file, b"{\"id2label\": {}}")?);
        let cut_off = rewrite_sealed(out, "config.json", || named().and_then(|()| bail!("killed")));
        assert_eq!(cut_off.unwrap_err().to_string(), "killed");
        check_seal(out).unwrap();
        rewrite_sealed(out, "config.json", named).unwrap();
        check_seal(out).unwrap();
        write_whole(&file, b"{}").unwrap();
        assert!(check_seal(out).unwrap_err().to_string().contains("config.json: "));
    }
}
