//! The last steps of a run: the artifact into its place, the line into the ledger, and back again where one of them fails or
//! a kill comes between. Does not know how the artifact was made.
//!
//! The finished line is on disk before the artifact is swapped in. A run that finds such a line left over appends it, if the
//! artifact in place is the one it speaks of: what was finished is not made again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use base::whole::write_with_folder;

use super::Settings;
use super::digest::{Digest, each};
use super::error::Error;
use super::fault::Point;
use super::folder;
use super::layout::Layout;
use super::ledger::{self, Ledger, Line};

/// Refuses a place whose contents would be lost with the earlier artifact, and a ledger that could not be appended to, before the
/// stage works for nothing.
pub(super) fn check_place(stage: &str, layout: &Layout, ledger: &Mutex<Ledger>) -> anyhow::Result<()> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner).check()?;
    let place = layout.artifact(stage);
    match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(data) if data.is_dir() => {}
        _ => anyhow::bail!(
            "{} is no folder: move it away, or choose another folder with --out; nothing was changed",
            place.display()
        ),
    }
    let ours = made(stage, ledger);
    // Without a line (a new ledger, or one that lost its end) only the new artifact can tell what is ours: see `publish`.
    if ours.is_empty() { Ok(()) } else { refuse_others(&place, &ours) }
}

/// Every file that a line of the ledger says `stage` made.
fn made(stage: &str, ledger: &Mutex<Ledger>) -> BTreeSet<String> {
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A finished artifact in its work folder, about to be published.
pub(super) struct Finished<'a> {
    pub(super) work: &'a Path,
    pub(super) fingerprint: &'a Digest,
    pub(super) line: &'a Line,
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
            let mut ours = made(stage, records);
            ours.extend(self.line.outputs.iter().map(|output| output.path.clone()));
            refuse_others(&place, &ours)?;
        }
        let pending = layout.pending(stage);
        write_with_folder(&pending, &ledger::sealed(self.line)?).map_err(Error::at(&pending))?;
        folder::remove(&done)?;
        fs::rename(self.work, &done).map_err(Error::at(&done))?;
        folder::swap(&done, &place)?;
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
        Ok(folder::remove(&done)?)
    }

    /// The earlier artifact back into its place, the new one back into its work folder.
    fn retract(&self, place: &Path, done: &Path) -> Result<(), Error> {
        if done.exists() {
            folder::swap(done, place)?;
            return fs::rename(done, self.work).map_err(Error::at(done));
        }
        fs::rename(place, self.work).map_err(Error::at(place))
    }
}

/// Appends the line of a run that was killed between swap and ledger, if its artifact is in place and whole.
pub(super) fn recover(stage: &str, layout: &Layout, settings: &Settings, records: &Mutex<Ledger>) {
    let pending = layout.pending(stage);
    let Ok(text) = fs::read(&pending) else { return };
    let mut ledger = records.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(line) = ledger::parse(&text)
        && line.stage == stage
        && ledger.last(stage).is_none_or(|last| *last != Line { format: last.format, ..line.clone() })
        && in_place(&line, layout, settings)
        && ledger.append(line, &settings.faults).is_err()
    {
        return; // The next run tries again; until then the stage counts as not made.
    }
    // Whatever it spoke of is now in the ledger or not there at all.
    let _ = fs::remove_file(&pending);
}

fn in_place(line: &Line, layout: &Layout, settings: &Settings) -> bool {
    let place = layout.artifact(&line.stage);
    let named: Vec<&str> = line.outputs.iter().map(|output| output.path.as_str()).collect();
    let whole = |output: &folder::Output| {
        Digest::of_file(&place.join(&output.path), &settings.cancel).is_ok_and(|found| found == output.blake3)
    };
    folder::list(&place).is_ok_and(|there| there == named)
        && each(&line.outputs, settings.jobs, whole).into_iter().all(|whole| whole)
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
