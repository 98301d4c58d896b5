//! Whether a stage is up to date: looks at its inputs and outputs and compares with the ledger's last line. Runs nothing.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{fs, io};

use base::cancel::CancelToken;

use super::describe::Description;
use super::digest::Digest;
use super::elsewhere::{Elsewhere, Whereabouts};
use super::error::Error;
use super::explain::{Note, Reason, differences};
use super::folder;
use super::layout::Layout;
use super::ledger::Line;
use super::memo::{Belief, Known, Memo};
use super::stage::{Input, Stage};

/// What a judgement needs beside the stage.
pub(crate) struct Bench<'a> {
    /// Where artifacts lie.
    pub layout: &'a Layout,
    /// Remembered digests.
    pub memo: &'a Memo,
    /// Outside files that need not be here.
    pub elsewhere: Option<&'a dyn Elsewhere>,
    /// How many threads may read files.
    pub jobs: NonZeroUsize,
    /// Set when somebody asks to stop.
    pub cancel: &'a CancelToken,
    /// What is believed of outside files.
    pub inputs: Belief,
    /// What is believed of artifacts.
    pub artifacts: Belief,
}

/// An outside file as it was when it was digested.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its label, with the path inside the folder if the input is one.
    pub label: String,
    /// Where it lies.
    pub path: PathBuf,
}

/// What was found out about a stage.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// What shapes its artifact now. Input artifacts that are still to be made are missing.
    pub description: Description,
    /// Whether there are such.
    pub is_open: bool,
    /// Its outside files.
    pub seen: Vec<Seen>,
    /// Why it has to run; nothing if it is up to date.
    pub reasons: Vec<Reason>,
    /// What is worth saying if it does not run.
    pub notes: Vec<Note>,
}

impl Judgement {
    /// Whether it is only an input still to be made that may make the stage run.
    pub(crate) fn only_pending(&self) -> bool {
        !self.reasons.is_empty() && self.reasons.iter().all(|reason| matches!(reason, Reason::Pending { .. }))
    }
}

/// Judges `stage`. `artifacts` holds the digest of each input artifact, or none where it is still to be made.
///
/// # Errors
/// When an outside file cannot be used, or the stage cannot be described.
pub(crate) fn judge(
    stage: &dyn Stage,
    last: Option<&Line>,
    artifacts: &BTreeMap<String, Option<Digest>>,
    bench: &Bench<'_>,
) -> Result<Judgement, Error> {
    let mut description = Description::new(stage.version());
    stage.describe(&mut description);
    if let Some((field, why)) = description.unfit.pop_first() {
        let stage = stage.name();
        return Err(Error::new(format!("stage {stage}: the setting {field} does not fit: {why}")));
    }
    let mut notes = Vec::new();
    let Outside { here, said } = Outside::of(stage, bench)?;
    description.files.extend(said);
    let found = look(stage, here, last, bench)?;
    for (seen, known) in &found {
        description.files.insert(seen.label.clone(), known.digest);
        if known.touched {
            notes.push(Note::Touched { label: format!("input file {}", seen.label) });
        }
    }
    let seen = found.into_iter().map(|(seen, _)| seen).collect();
    for (name, digest) in artifacts {
        description.artifacts.extend(digest.map(|digest| (name.clone(), digest)));
    }
    let reasons = match last {
        None => vec![Reason::NeverRan],
        Some(line) => {
            let mut reasons = differences(&line.described, &description);
            // Nothing is known yet about an artifact still to be made, so it is no difference but a question.
            reasons.retain(
                |r| !matches!(r, Reason::Artifact { name, .. } if artifacts.get(name) == Some(&None)),
            );
            let pending = artifacts.iter().filter(|(_, digest)| digest.is_none());
            reasons.extend(pending.map(|(name, _)| Reason::Pending { name: name.clone() }));
            reasons.extend(damage(line, bench));
            reasons
        }
    };
    let is_open = artifacts.values().any(Option::is_none);
    Ok(Judgement { description, is_open, seen, reasons, notes })
}

/// The outside files of a stage.
struct Outside {
    /// Those that are here, with their labels.
    here: Vec<(String, PathBuf)>,
    /// The labels of those that are not, with the contents that they are said to have.
    said: Vec<(String, Digest)>,
}

impl Outside {
    /// Each is asked for once: another stage may be bringing one.
    fn of(stage: &dyn Stage, bench: &Bench<'_>) -> Result<Self, Error> {
        let mut files = Self { here: Vec::new(), said: Vec::new() };
        for input in stage.inputs() {
            let Input::File { label, path } = input else { continue };
            match bench.elsewhere.and_then(|files| files.find(&path)) {
                Some(Whereabouts::Said(contents)) => files.said.push((label, contents)),
                Some(Whereabouts::Here(path)) => files.here.extend(expand(stage, label, path, bench.layout)?),
                None => files.here.extend(expand(stage, label, path, bench.layout)?),
            }
        }
        Ok(files)
    }
}

/// Digests outside files.
fn look(
    stage: &dyn Stage,
    files: Vec<(String, PathBuf)>,
    last: Option<&Line>,
    bench: &Bench<'_>,
) -> Result<Vec<(Seen, Known)>, Error> {
    let (labels, paths): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    let known = bench.memo.look(&paths, bench.inputs, bench.jobs, bench.cancel);
    let mut seen = Vec::new();
    for ((label, path), known) in labels.into_iter().zip(paths).zip(known) {
        let known = known.map_err(|cause| unreadable(stage, &label, &path, &cause))?;
        // Contents that the ledger knows were not damaged: then it is the memory that was wrong.
        let in_ledger = last.and_then(|line| line.described.files.get(&label)) == Some(&known.digest);
        if let Some(was) = known.was.filter(|_| !in_ledger) {
            bench.memo.keep_former(&path, &known);
            return Err(Error::new(format!(
                "stage {}: input file {label} at {} has other contents than when it was last read ({} -> {}), but the size and \
                 the times that it had: its disk may have damaged it; bring the file again, or `touch` it if it is meant to be so",
                stage.name(),
                path.display(),
                was.short(),
                known.digest.short()
            )));
        }
        seen.push((Seen { label, path }, known));
    }
    Ok(seen)
}

/// A folder stands for the files below it, each with a label of its own, so that an explanation can name the file.
fn expand(
    stage: &dyn Stage,
    label: String,
    path: PathBuf,
    layout: &Layout,
) -> Result<Vec<(String, PathBuf)>, Error> {
    let data = fs::metadata(&path).map_err(|cause| unreadable(stage, &label, &path, &cause))?;
    if data.is_file() {
        return Ok(vec![(label, path)]);
    }
    if !data.is_dir() {
        // Digested first and read behind that: what can be read once alone would be gone, or never end.
        return Err(Error::new(format!(
            "stage {}: input file {label} at {} is a pipe or a device, which cannot be read twice: write what comes of it to a file, and name that",
            stage.name(),
            path.display()
        )));
    }
    if is_within(layout.out(), &path) {
        // What a run writes would be what the next one reads, and none would ever be up to date.
        return Err(Error::new(format!(
            "stage {}: input folder {label} at {} has the output folder {} in it, whose files would be read as input: \
             put the input into a folder of its own, or choose another output folder by --out",
            stage.name(),
            path.display(),
            layout.out().display()
        )));
    }
    let files = folder::list_following(&path);
    let files = files
        .map_err(|cause| Error::new(format!("stage {}: input folder {label}: {cause}", stage.name())))?;
    Ok(files.into_iter().map(|file| (format!("{label}/{file}"), path.join(&file))).collect())
}

/// Whether the folder `inner`, which may be still to be made, lies in `outer` or is it.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let Ok(inner) = std::path::absolute(inner) else { return false };
    let there = inner.ancestors().find_map(|there| Some((there, fs::canonicalize(there).ok()?)));
    let inner = there.map(|(there, real)| real.join(inner.strip_prefix(there).unwrap_or(Path::new(""))));
    inner.zip(fs::canonicalize(outer).ok()).is_some_and(|(inner, outer)| inner.starts_with(outer))
}

fn unreadable(stage: &dyn Stage, label: &str, path: &Path, cause: &io::Error) -> Error {
    Error::new(format!(
        "stage {}: input file {label} cannot be read at {}: {cause}: put it there, or say with --data or the configuration where it is",
        stage.name(),
        path.display()
    ))
}

/// What is wrong with the artifact that `line` speaks of.
pub(super) fn damage(line: &Line, bench: &Bench<'_>) -> Vec<Reason> {
    let folder = bench.layout.artifact(&line.stage);
    if !folder.is_dir() {
        return vec![Reason::OutputMissing { path: format!("{}/", line.stage) }];
    }
    let paths: Vec<_> = line.outputs.iter().map(|output| folder.join(&output.path)).collect();
    let known = bench.memo.look(&paths, bench.artifacts, bench.jobs, bench.cancel);
    let pairs = line.outputs.iter().zip(known);
    let verdict = |(output, known): (&folder::Output, io::Result<_>)| {
        let path = format!("{}/{}", line.stage, output.path);
        match known.map(|known: Known| known.digest) {
            Ok(digest) if digest == output.blake3 => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Reason::OutputMissing { path }),
            _ => Some(Reason::OutputChanged { path }),
        }
    };
    let mut reasons: Vec<Reason> = pairs.filter_map(verdict).collect();
    // A stage downstream may read whatever lies in the folder, so a file that nobody made is a change as well.
    let strange = |path: &String| !line.outputs.iter().any(|output| output.path == *path);
    match folder::list(&folder) {
        Ok(there) => reasons.extend(
            there
                .into_iter()
                .filter(strange)
                .map(|path| Reason::OutputChanged { path: format!("{}/{path}", line.stage) }),
        ),
        Err(_) => reasons.push(Reason::OutputChanged { path: format!("{}/", line.stage) }),
    }
    reasons
}
