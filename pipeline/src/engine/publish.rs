//! The last steps of a run: the artifact into its place, the line into the ledger, and back again where one of them fails or
//! a kill comes between. Does not know how the artifact was made.
//!
//! The finished line is on disk before the artifact is moved. A run that finds such a line left over moves the artifact into its place if it is not
//! there yet, and appends the line: what was finished is not made again. What it replaces is kept last of all, under the name of its contents;
//! a kill before that leaves it on its way, where the next run finds it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base::whole::write_with_folder;

use super::Settings;
use super::digest::Digest;
use super::error::Error;
use super::fault::Point;
use super::folder;
use super::kept::{self, Candidate};
use super::layout::Layout;
use super::ledger::{self, Ledger, Line};

/// Refuses a place whose contents would be lost with the earlier artifact, and a ledger that could not be appended to, before the
/// stage works for nothing.
pub(super) fn check_place(stage: &str, layout: &Layout, ledger: &Mutex<Ledger>) -> anyhow::Result<()> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner).catch_up()?;
    let place = layout.artifact(stage);
    match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(data) if data.is_dir() => {}
        _ => anyhow::bail!(
            "{} is no folder: move it away, or choose another folder with --out; nothing was changed",
            place.display()
        ),
    }
    let ours = made(stage, &ledger.lock().unwrap_or_else(PoisonError::into_inner));
    // Without a line (a new ledger, or one that lost its end) only the new artifact can tell what is ours: see `publish`.
    if ours.is_empty() { Ok(()) } else { refuse_others(&place, &ours) }
}

/// Every file that a line of the ledger says `stage` made.
fn made(stage: &str, ledger: &Ledger) -> BTreeSet<String> {
    let lines = ledger.lines().iter().filter(|line| line.stage == stage);
    lines.flat_map(|line| &line.outputs).map(|output| output.path.clone()).collect()
}

fn refuse_others(place: &Path, ours: &BTreeSet<String>) -> anyhow::Result<()> {
    match folder::list(place)?.into_iter().find(|path| !ours.contains(path)) {
        Some(path) => anyhow::bail!(
            "{} was not made by engraft and would be lost: move it away, or choose another folder with --out; nothing was changed",
            place.join(path).display()
        ),
        None => Ok(()),
    }
}

/// A finished artifact in its work folder, or a kept one in its own, about to be published.
pub(super) struct Finished<'a> {
    pub(super) work: &'a Path,
    pub(super) fingerprint: &'a Digest,
    pub(super) line: &'a Line,
    /// The artifact in place, if it is sound as far as is known: then it is kept.
    pub(super) before: Option<Digest>,
}

impl Finished<'_> {
    /// Puts the artifact in place and its line into the ledger. On an error everything is as before.
    pub(super) fn publish(
        &self,
        layout: &Layout,
        settings: &Settings,
        records: &Mutex<Ledger>,
    ) -> anyhow::Result<()> {
        let stage = self.line.stage.as_str();
        let (place, done) = (layout.artifact(stage), layout.done(stage, self.fingerprint));
        if place.exists() {
            let ours = ours(self.line, &records.lock().unwrap_or_else(PoisonError::into_inner));
            refuse_others(&place, &ours)?;
        }
        let pending = layout.pending(stage);
        write_with_folder(&pending, &ledger::sealed(self.line)?).map_err(Error::at(&pending))?;
        folder::remove(&done)?;
        fs::rename(self.work, &done).map_err(Error::at(&done))?;
        settings.faults.pass(stage, Point::Moved);
        folder::swap_in(&done, &place, stage, &settings.faults)?;
        folder::sync(layout.out())?;
        settings.faults.pass(stage, Point::Swapped);
        settings.faults.pass(stage, Point::BeforeLedger);
        let appended = records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(self.line.clone(), &settings.faults);
        if let Err(error) = appended {
            self.retract(&place, &done)?;
            let _ = fs::remove_file(&pending); // a left one speaks of an artifact that is not in place
            return Err(error.into());
        }
        settings.faults.pass(stage, Point::AfterLedger);
        fs::remove_file(&pending).map_err(Error::at(&pending))?;
        self.put_away(&done, layout, settings)?;
        settings.faults.pass(stage, Point::Kept);
        Ok(())
    }

    /// What the artifact has replaced is kept or removed.
    fn put_away(&self, done: &Path, layout: &Layout, settings: &Settings) -> Result<(), Error> {
        match self.before.filter(|before| *before != self.line.artifact && settings.keep.artifacts > 0) {
            Some(before) if done.is_dir() => kept::put(done, &self.line.stage, &before, layout),
            _ => folder::remove(done),
        }
    }

    /// The earlier artifact back into its place, the new one back to where it came from.
    fn retract(&self, place: &Path, done: &Path) -> Result<(), Error> {
        if done.exists() {
            folder::swap(done, place)?;
            return fs::rename(done, self.work).map_err(Error::at(done));
        }
        fs::rename(place, self.work).map_err(Error::at(place))
    }
}

/// Every file that a line of the ledger, or `line`, says its stage made.
fn ours(line: &Line, ledger: &Ledger) -> BTreeSet<String> {
    let mut ours = made(&line.stage, ledger);
    ours.extend(line.outputs.iter().map(|output| output.path.clone()));
    ours
}

/// Finishes what a run left that was killed after it had written the line of a finished artifact: the artifact goes into its place if it is still
/// on its way there, and its line into the ledger.
pub(super) fn recover(stage: &str, layout: &Layout, settings: &Settings, records: &Mutex<Ledger>) {
    let pending = layout.pending(stage);
    let Ok(text) = fs::read(&pending) else { return };
    let mut ledger = records.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(line) = ledger::parse(&text)
        && line.stage == stage
        && ledger.last(stage).is_none_or(|last| *last != Line { format: last.format, ..line.clone() })
        && arrives(&line, &ledger, layout, settings)
        && ledger.append(line, &settings.faults).is_err()
    {
        return; // The next run tries again; until then the stage counts as not made.
    }
    // Whatever it spoke of is now in the ledger or not there at all.
    let _ = fs::remove_file(&pending);
}

/// Whether the artifact of `line` is in its place, after it was moved there if a kill came just before.
fn arrives(line: &Line, ledger: &Ledger, layout: &Layout, settings: &Settings) -> bool {
    let (place, done) = (layout.artifact(&line.stage), layout.done(&line.stage, &line.fingerprint));
    let whole = |folder: &Path| {
        let there = Candidate { line, folder: folder.to_owned() };
        there.check(settings.jobs, &settings.cancel).is_ok()
    };
    let free = || !place.exists() || refuse_others(&place, &ours(line, ledger)).is_ok();
    whole(&place) || (whole(&done) && free() && folder::swap(&done, &place).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{run, stage};
    use tempfile::tempdir;

    #[test]
    fn what_engraft_did_not_make_is_never_lost() {
        let dir = tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        write_with_folder(&dir.path().join("a/thesis.txt"), b"years").unwrap();
        let events = run(dir.path(), [stage("a")]);
        assert!(events[0].contains("a/thesis.txt was not made by engraft"), "{events:?}");
        assert_eq!(fs::read(dir.path().join("a/thesis.txt")).unwrap(), b"years");
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        write_with_folder(&dir.path().join("a"), b"a file").unwrap();
        assert!(run(dir.path(), [stage("a")])[0].contains("is no folder"));
        fs::remove_file(dir.path().join("a")).unwrap();
        assert_eq!(run(dir.path(), [stage("a")]), ["a done"]);
        // Beside an artifact of ours, too: a stray file is a reason to look, and then refused by name.
        write_with_folder(&dir.path().join("a/notes.txt"), b"mine").unwrap();
        assert!(run(dir.path(), [stage("a")])[0].contains("a/notes.txt"));
        assert_eq!(fs::read(dir.path().join("a/notes.txt")).unwrap(), b"mine");
    }

    #[test]
    fn a_ledger_that_cannot_be_written_leaves_the_earlier_artifact() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a").field("say", "old")]);
        let (ledger, aside) = (dir.path().join("ledger.jsonl"), dir.path().join("aside"));
        let new = stage("a").field("say", "new").works({
            let (ledger, aside) = (ledger.clone(), aside.clone());
            move |context| {
                write_with_folder(&context.out().join("out.txt"), b"new")?;
                // From here on there is no file to append to.
                fs::rename(&ledger, &aside)?;
                Ok(fs::create_dir(&ledger)?)
            }
        });
        let before = fs::read(dir.path().join("a/out.txt")).unwrap();
        let events = run(dir.path(), [new]);
        assert!(events[0].starts_with("a failed"), "{events:?}");
        assert_eq!(fs::read(dir.path().join("a/out.txt")).unwrap(), before);
        fs::remove_dir(&ledger).unwrap();
        fs::rename(&aside, &ledger).unwrap();
        assert_eq!(run(dir.path(), [stage("a").field("say", "old")]), ["a fresh"]);
    }
}
