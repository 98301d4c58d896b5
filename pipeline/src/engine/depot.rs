//! Artifacts that several machines share: found by the fingerprint of the run that made them, stored by their contents.
//!
//! A depot holds `blobs/AB/DIGEST`, the files of artifacts under their digests; `lines/STAGE/FINGERPRINT.json`, the ledger's line of the run that
//! made one; `files/STATE.json`, notes of what outside files are; and [`MARK`]. Blobs come first, then the line, by a write that one writer alone gets: what a line names is there, nobody waits for
//! a lock, and two machines that made the same thing differently find out.

pub(crate) mod gc;
mod notes;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base::cancel::CancelToken;
use serde::{Deserialize, Serialize};

use super::digest::{Digest, each};
use super::error::Error;
use super::folder::{self, Output};
use super::judge::Judgement;
use super::ledger::{self, Line};
use super::licence::Licence;
use super::memo::{self, Stamp};

/// The version of what lies in a depot; docs/formats.md has it.
pub(crate) const VERSION: u32 = 1;

/// The object that says that a place is a depot, and of which version.
pub(crate) const MARK: &str = "engraft-depot.json";

/// Where files of artifacts lie.
const BLOBS: &str = "blobs";
/// Where lines lie.
const LINES: &str = "lines";

/// Takes the bytes of an object as they come.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// An object as it is listed.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub key: String,
    pub bytes: u64,
    /// In seconds since the Unix epoch.
    pub modified: i64,
}

/// The objects of a depot, by keys with `/` between the parts. An object appears whole.
pub(crate) trait Objects: Send + Sync {
    /// Where they are, as it may be shown.
    fn place(&self) -> String;

    /// All bytes of a small object; none if it is not there.
    fn read(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>>;

    /// The length of an object; none if it is not there.
    fn length(&self, key: &str) -> anyhow::Result<Option<u64>>;

    /// Hands the bytes of an object on; whether it is there.
    fn fetch(&self, key: &str, to: Sink<'_>) -> anyhow::Result<bool>;

    /// Puts a file there, in place of what may be there; `sent` is told how many more bytes have gone.
    fn put(&self, key: &str, from: &Path, sent: &dyn Fn(u64)) -> anyhow::Result<()>;

    /// Writes a small object unless there is one; whether it was written. Of writers at once one alone has written it.
    fn create(&self, key: &str, bytes: &[u8]) -> anyhow::Result<bool>;

    /// The objects whose keys begin with `prefix` and a slash.
    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>>;

    /// What is being written, or was when its writer was killed, where that can be seen.
    fn unfinished(&self) -> anyhow::Result<Vec<Object>>;

    /// Removes an object; one that is not there is no error.
    fn remove(&self, key: &str) -> anyhow::Result<()>;
}

/// What may be done with a depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A place where artifacts are shared.
#[derive(Clone)]
pub(crate) struct Depot {
    objects: Arc<dyn Objects>,
    access: Access,
    /// The highest licence level of what is put there.
    max_level: Option<u8>,
}

/// What moving an artifact takes beside its line.
pub(super) struct Moving<'a> {
    pub(super) jobs: NonZeroUsize,
    pub(super) cancel: &'a CancelToken,
    /// Told how many more bytes have come or gone.
    pub(super) moved: &'a (dyn Fn(u64) + Sync),
    /// Called when all blobs are there and the line is not.
    pub(super) before_line: &'a (dyn Fn() + Sync),
}

/// What came of an artifact.
pub(super) enum Pulled {
    /// All of it: what is known of each file, in the order of the line.
    Whole(Vec<memo::Known>),
    /// This object is not there, or not what its name says.
    Damaged(String),
}

/// The licence of an artifact, or else the stage of whose artifact it is not known.
pub(super) type Known = Result<Licence, String>;

/// What of an artifact the depot has before it is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Objects of the right length are taken for what their names say.
    Lengths,
    /// Nothing: one of them was found damaged.
    Nothing,
}

/// Two runs of one fingerprint came to different artifacts.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Differs(String);

/// The mark of a depot.
#[derive(Serialize, Deserialize)]
struct Mark {
    engraft_depot: u32,
}

fn blob(digest: &Digest) -> String {
    let name = digest.to_string();
    format!("{BLOBS}/{}/{name}", &name[..2])
}

fn key(stage: &str, fingerprint: &Digest) -> String {
    format!("{LINES}/{stage}/{fingerprint}.json")
}

impl Depot {
    /// A depot of these objects. Asks for nothing.
    pub(crate) fn new(objects: Arc<dyn Objects>, access: Access) -> Self {
        Self { objects, access, max_level: None }
    }

    /// The same, where nothing of a higher licence level is put.
    pub(crate) fn up_to(self, max_level: Option<u8>) -> Self {
        Self { max_level, ..self }
    }

    /// Why an artifact under this licence is not put there, if it is not.
    pub(super) fn withholds(&self, licence: &Known) -> Option<String> {
        let most = self.max_level?;
        match licence {
            Ok(licence) if *licence <= Licence::Level(most) => None,
            Ok(Licence::Restricted) => Some(format!("it is restricted, and depot.max_level = {most}")),
            Ok(licence) => Some(format!("its licence {licence} is above depot.max_level = {most}")),
            Err(stage) => Some(format!(
                "depot.max_level = {most}, and the licence of {stage}, which it comes from, is not known here (`engraft run {stage}` or `engraft pull {stage}` brings it)"
            )),
        }
    }

    /// Where it is, as it may be shown.
    pub(crate) fn place(&self) -> String {
        self.objects.place()
    }

    /// What may be done with it.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Sees to it that it is a depot of this version, and, if it is to be written to, that one writer alone creates an object.
    ///
    /// # Errors
    /// When it is not, or cannot be asked.
    pub(super) fn open(&self, access: Access) -> anyhow::Result<()> {
        let place = self.place();
        if access == Access::Write {
            let mark = serde_json::to_vec(&Mark { engraft_depot: VERSION })?;
            let create = || {
                let created = self.objects.create(MARK, &mark);
                created.with_context(|| {
                    format!("the depot {place} cannot be written to (--set depot.read_only=true only reads from it)")
                })
            };
            // The second of two must be told that there is one, whoever made it.
            let is_kept = !create()? || !create()?;
            anyhow::ensure!(
                is_kept,
                "the depot {place} writes an object that is there already where it was told not to (If-None-Match): two machines \
                 could not find out that they made the same thing differently; use a store that keeps to it, or only read from \
                 this one (depot.read_only = true)"
            );
        }
        anyhow::ensure!(
            self.is_there()?,
            "{place} is no depot: it has no {MARK}; `run --depot` makes one where it may write"
        );
        Ok(())
    }

    /// As [`Depot::open`] without writing; a place that is to be written to may still be empty.
    ///
    /// # Errors
    /// As [`Depot::open`].
    pub(crate) fn look(&self) -> anyhow::Result<()> {
        match self.access {
            Access::Read => self.open(Access::Read),
            Access::Write => self.is_there().map(drop),
        }
    }

    /// Whether there is a depot, of this version.
    fn is_there(&self) -> anyhow::Result<bool> {
        let place = self.place();
        let Some(found) = self.objects.read(MARK)? else { return Ok(false) };
        let found = serde_json::from_slice::<Mark>(&found).map_err(|cause| {
            Error::new(format!(
                "the depot {place}: {MARK} is damaged ({cause}): expected {{\"engraft_depot\":{VERSION}}}"
            ))
        })?;
        anyhow::ensure!(
            found.engraft_depot == VERSION,
            "the depot {place} is of version {}, but this engraft reads version {VERSION}: use the engraft that wrote it, or another place",
            found.engraft_depot
        );
        Ok(true)
    }

    /// The line of the run of `stage` with this fingerprint, if the depot has its artifact.
    ///
    /// # Errors
    /// When it cannot be asked for, or is damaged.
    pub(super) fn line(&self, stage: &str, fingerprint: &Digest) -> anyhow::Result<Option<Line>> {
        let key = key(stage, fingerprint);
        let Some(text) = self.objects.read(&key)? else { return Ok(None) };
        let line = self.parsed(&key, &text)?;
        let is_its = line.stage == stage && line.fingerprint == *fingerprint;
        anyhow::ensure!(is_its, self.damaged_line(&key, "it is the line of another run"));
        Ok(Some(line))
    }

    /// The line of what a stage would make if it ran as judged, if the depot has it.
    ///
    /// # Errors
    /// As [`Depot::line`].
    pub(super) fn made(&self, stage: &str, judged: &Judgement) -> anyhow::Result<Option<Line>> {
        if judged.reasons.is_empty() || judged.is_open {
            return Ok(None);
        }
        self.line(stage, &judged.description.fingerprint(stage))
    }

    fn parsed(&self, key: &str, text: &[u8]) -> anyhow::Result<Line> {
        let line = ledger::parse(text).map_err(|damage| self.damaged_line(key, &damage.cause()))?;
        let is_itself = line.described.fingerprint(&line.stage) == line.fingerprint
            && folder::digest(&line.outputs) == line.artifact;
        anyhow::ensure!(is_itself, self.damaged_line(key, "it does not say what its digests say"));
        Ok(line)
    }

    fn damaged_line(&self, key: &str, cause: &str) -> Error {
        Error::new(format!(
            "the depot {}: {key} is damaged ({cause}): remove it there, then run again",
            self.place()
        ))
    }

    /// Brings an artifact into an empty folder: every file is digested as it comes, and is on disk at the end.
    ///
    /// # Errors
    /// When an object cannot be asked for or a file not written.
    pub(super) fn pull(&self, line: &Line, into: &Path, moving: &Moving<'_>) -> anyhow::Result<Pulled> {
        let came = each(&line.outputs, moving.jobs, |output| self.bring(output, into, moving));
        let mut all = Vec::with_capacity(came.len());
        for (came, output) in came.into_iter().zip(&line.outputs) {
            match came? {
                Some(known) => all.push(known),
                None => return Ok(Pulled::Damaged(blob(&output.blake3))),
            }
        }
        folder::sync_tree(into)?;
        Ok(Pulled::Whole(all))
    }

    /// One file; nothing if what came is not what the line says.
    fn bring(
        &self,
        output: &Output,
        into: &Path,
        moving: &Moving<'_>,
    ) -> anyhow::Result<Option<memo::Known>> {
        let path = into.join(&output.path);
        let beside = base::whole::folder(&path);
        fs::create_dir_all(beside).map_err(Error::at(beside))?;
        let mut file = File::create(&path).map_err(Error::at(&path))?;
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        let there = self.objects.fetch(&blob(&output.blake3), &mut |chunk| {
            moving.cancel.check()?;
            hasher.update(chunk);
            bytes += chunk.len() as u64;
            // More than it may have would fill the disk for nothing.
            if bytes <= output.bytes {
                file.write_all(chunk)?;
            }
            (moving.moved)(chunk.len() as u64);
            Ok(())
        })?;
        file.sync_all().map_err(Error::at(&path))?;
        let digest = Digest::from(hasher.finalize());
        if !there || digest != output.blake3 || bytes != output.bytes {
            return Ok(None);
        }
        let stamp = Stamp::of(&path).map_err(Error::at(&path))?;
        Ok(Some(memo::Known::read(digest, stamp)))
    }

    /// Whether the depot has the artifact that a line speaks of, as far as its own line says.
    ///
    /// # Errors
    /// When it has another one, or cannot be asked.
    pub(super) fn has(&self, line: &Line) -> anyhow::Result<bool> {
        let there = self.line(&line.stage, &line.fingerprint)?;
        there.map_or(Ok(false), |there| self.same(line, &there).map(|()| true))
    }

    /// Puts the artifact in `folder`, which the depot does not have ([`Depot::has`]), into it: blobs first.
    ///
    /// # Errors
    /// When it cannot be written, a file in `folder` is not what the line says, or the depot has another artifact of the same fingerprint.
    pub(super) fn push(
        &self,
        line: &Line,
        folder: &Path,
        trust: Trust,
        moving: &Moving<'_>,
    ) -> anyhow::Result<()> {
        let shared = Line { reasons: Vec::new(), restored_ms: None, ..line.clone() };
        self.blobs(line, folder, trust, moving)?;
        (moving.before_line)();
        let text = ledger::sealed(&shared)?;
        let key = key(&line.stage, &line.fingerprint);
        let mut named = false;
        // Once more where a store says that there is one and there is none: two writers met, or somebody removed it.
        for _ in 0..2 {
            if self.objects.create(&key, &text)? {
                named = true;
                break;
            }
            if let Some(there) = self.line(&line.stage, &line.fingerprint)? {
                self.same(line, &there)?;
                named = true;
                break;
            }
        }
        anyhow::ensure!(named, "the depot {}: {key} can neither be written nor read", self.place());
        // What was taken for there may have been removed just before the line named it.
        self.blobs(line, folder, Trust::Lengths, moving)
    }

    /// Puts the blobs of an artifact there that are missing.
    ///
    /// # Errors
    /// When one cannot be written, or a file in `folder` is not what the line says.
    pub(super) fn blobs(
        &self,
        line: &Line,
        folder: &Path,
        trust: Trust,
        moving: &Moving<'_>,
    ) -> anyhow::Result<()> {
        let put = |output: &Output| {
            let (key, path) = (blob(&output.blake3), folder.join(&output.path));
            moving.cancel.check()?;
            if trust == Trust::Lengths && self.objects.length(&key)? == Some(output.bytes) {
                return Ok(());
            }
            let digest = Digest::of_file(&path, moving.cancel).map_err(Error::at(&path))?;
            anyhow::ensure!(
                digest == output.blake3,
                "{} is not what the ledger says and is not put into the depot: `engraft run --check` has it made anew",
                path.display()
            );
            self.objects.put(&key, &path, &|bytes| (moving.moved)(bytes))
        };
        each(&line.outputs, moving.jobs, put).into_iter().collect()
    }

    /// Fails if two runs of one fingerprint came to different artifacts.
    fn same(&self, ours: &Line, theirs: &Line) -> anyhow::Result<()> {
        if ours.artifact == theirs.artifact {
            return Ok(());
        }
        let other = |output: &&Output| !theirs.outputs.contains(output);
        let differ = ours.outputs.iter().filter(other).count();
        let first = ours
            .outputs
            .iter()
            .find(other)
            .or_else(|| theirs.outputs.iter().find(|output| !ours.outputs.contains(output)));
        let text = format!(
            "two machines made {} differently from the same settings and inputs (fingerprint {}): here it is {}, in the depot {} it is \
             {}, made by engraft {}; {differ} of {} files differ, the first is {}. Either one of them is damaged, or the stage does not come to the same \
             bytes on both machines (docs/promises.md): to go on with the depot's, `engraft clean {}` here, then run again",
            ours.stage,
            ours.fingerprint.short(),
            ours.artifact.short(),
            self.place(),
            theirs.artifact.short(),
            theirs.engraft,
            ours.outputs.len(),
            first.map_or("none", |output| output.path.as_str()),
            ours.stage
        );
        Err(Differs(text).into())
    }
}
