//! Removes what the ledger says engraft made, and the folders it worked in. Leaves the ledger, and every file it does not name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Engine;
use super::error::Error;
use super::folder;
use super::layout::owner;
use super::ledger::Ledger;
use super::lock::Lock;

/// Whether to remove or only to say what would be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Remove.
    Remove,
    /// Only say.
    DryRun,
}

/// What was removed and what was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Files and work folders removed, or that would be.
    pub removed: Vec<PathBuf>,
    /// Bytes of the removed files.
    pub bytes: u64,
    /// Files in artifact folders that the ledger does not name and that stay.
    pub left: Vec<PathBuf>,
}

impl Engine {
    /// Cleans up after the named stages; after every stage that the ledger names, the memo and the origin, if none is named.
    ///
    /// # Errors
    /// When cleaning cannot begin, or the file system refuses.
    pub(crate) fn clean(&self, names: &[String], mode: Mode) -> Result<Cleaned, Error> {
        let mut cleaned = Cleaned { removed: Vec::new(), bytes: 0, left: Vec::new() };
        if !self.layout.out().exists() {
            return Ok(cleaned);
        }
        let _lock = Lock::take(&self.layout.lock())?;
        let ledger = Ledger::read(&self.layout.ledger())?;
        for stage in self.cleanable(names, &ledger)? {
            self.clean_artifact(&stage, &ledger, mode, &mut cleaned)?;
        }
        self.clean_works(names, mode, &mut cleaned)?;
        if names.is_empty() {
            discard(&self.layout.memo(), mode, &mut cleaned)?;
            // Nothing is left that another config could replace.
            discard(&self.layout.origin(), mode, &mut cleaned)?;
            if mode == Mode::Remove {
                // Nothing but the memo is ever kept there, or what a kill left of it.
                folder::remove(&self.layout.cache())?;
            }
        }
        Ok(cleaned)
    }

    /// The named stages, which the graph or the ledger knows; without names, all that the ledger knows.
    fn cleanable(&self, names: &[String], ledger: &Ledger) -> Result<BTreeSet<String>, Error> {
        let made: BTreeSet<_> = ledger.lines().iter().map(|line| line.stage.clone()).collect();
        if names.is_empty() {
            return Ok(made);
        }
        for name in names.iter().filter(|name| !made.contains(*name)) {
            self.graph.find(name)?;
        }
        Ok(names.iter().cloned().collect())
    }

    fn clean_artifact(
        &self,
        stage: &str,
        ledger: &Ledger,
        mode: Mode,
        cleaned: &mut Cleaned,
    ) -> Result<(), Error> {
        let place = self.layout.artifact(stage);
        if !place.is_dir() {
            return Ok(());
        }
        let lines = ledger.lines().iter().filter(|line| line.stage == stage);
        let made: BTreeSet<_> =
            lines.flat_map(|line| &line.outputs).map(|output| output.path.as_str()).collect();
        for file in folder::list(&place)? {
            if made.contains(file.as_str()) {
                discard(&place.join(&file), mode, cleaned)?;
            } else {
                cleaned.left.push(place.join(&file));
            }
        }
        prune(&place, mode);
        Ok(())
    }

    fn clean_works(&self, names: &[String], mode: Mode, cleaned: &mut Cleaned) -> Result<(), Error> {
        let Ok(entries) = fs::read_dir(self.layout.works()) else { return Ok(()) };
        let mut works: Vec<PathBuf> =
            entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        works.sort();
        for work in works {
            let name =
                work.file_name().and_then(|name| name.to_str()).and_then(owner).map(|(stage, _)| stage);
            if !names.is_empty() && !name.is_some_and(|stage| names.iter().any(|wanted| wanted == stage)) {
                continue;
            }
            if mode == Mode::Remove {
                folder::remove(&work)?;
            }
            cleaned.removed.push(work);
        }
        prune(&self.layout.works(), mode);
        Ok(())
    }
}

fn discard(file: &Path, mode: Mode, cleaned: &mut Cleaned) -> Result<(), Error> {
    let Ok(data) = fs::metadata(file) else { return Ok(()) };
    if mode == Mode::Remove {
        fs::remove_file(file).map_err(Error::at(file))?;
    }
    cleaned.bytes += data.len();
    cleaned.removed.push(file.to_owned());
    Ok(())
}

/// Removes the folder and those below it as far as they are empty: the system refuses to remove one that is not.
fn prune(folder: &Path, mode: Mode) {
    if mode == Mode::DryRun {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            prune(&entry.path(), mode);
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Watch, engine, run, scribble, settings, stage};
    use tempfile::tempdir;

    #[test]
    fn only_what_engraft_made_goes() {
        let dir = tempdir().unwrap();
        let stages = || [stage("a"), stage("b").reads("a")];
        run(dir.path(), stages());
        scribble(&dir.path().join("a/mine.txt"), "keep");
        scribble(&dir.path().join("notes.txt"), "keep");
        let clean = |names: &[&str], mode| {
            let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            engine(settings(dir.path()), stages()).clean(&names, mode).unwrap()
        };
        let dry = clean(&[], Mode::DryRun);
        assert!(dir.path().join("b/out.txt").exists());
        assert_eq!(clean(&["b"], Mode::Remove).removed, [dir.path().join("b/out.txt")]);
        assert!(!dir.path().join("b").exists() && dir.path().join("a/out.txt").exists());
        let rest = clean(&[], Mode::Remove);
        assert_eq!(dry.removed.len(), rest.removed.len() + 1);
        assert_eq!(rest.left, [dir.path().join("a/mine.txt")]);
        assert!(dir.path().join("a/mine.txt").exists() && dir.path().join("notes.txt").exists());
        assert!(!dir.path().join(".cache").exists());
        // What is not ours is not overwritten by the next run either.
        assert!(run(dir.path(), stages())[0].contains("a/mine.txt was not made by engraft"));
        fs::remove_file(dir.path().join("a/mine.txt")).unwrap();
        assert_eq!(run(dir.path(), stages()), ["a same", "b same"]);
    }

    #[test]
    fn work_folders_go_with_their_stage_and_a_strange_name_is_an_error() {
        let dir = tempdir().unwrap();
        let fails = || [stage("a").resumes().works(|_| anyhow::bail!("no"))];
        let engine = engine(settings(dir.path()), fails());
        engine.run(&[], &Watch::new()).unwrap();
        assert_eq!(fs::read_dir(dir.path().join(".work")).unwrap().count(), 1);
        assert!(engine.clean(&["b".to_owned()], Mode::Remove).is_err());
        assert_eq!(engine.clean(&["a".to_owned()], Mode::Remove).unwrap().removed.len(), 1);
        assert!(!dir.path().join(".work").exists());
    }
}
