//! Removes what the ledger says engraft made, kept artifacts, and the folders that it worked in. Leaves the ledger, and every file it does not name.
//!
//! Choosing and removing are two steps under one lock, so that what goes is what was shown.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Engine;
use super::error::Error;
use super::folder;
use super::kept::{Bounds, Kept, Store};
use super::layout::{GONE, owner};
use super::ledger::Ledger;
use super::live;
use super::lock::Lock;

/// Something that goes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The file or the folder.
    pub path: PathBuf,
    /// What of it.
    pub what: What,
    /// How many bytes that is.
    pub bytes: u64,
}

impl Part {
    fn paths(&self) -> Vec<&Path> {
        match &self.what {
            What::Files(files) => files.iter().map(PathBuf::as_path).collect(),
            What::Kept(_) | What::Whole => vec![&self.path],
        }
    }
}

/// What of a folder goes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// These files, and folders that they leave empty.
    Files(Vec<PathBuf>),
    /// A kept artifact.
    Kept(Kept),
    /// All of it: a folder of the runner's own.
    Whole,
}

/// What goes and what stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cleaned {
    /// What goes.
    pub parts: Vec<Part>,
    /// Files in artifact folders that the ledger does not name and that stay.
    pub left: Vec<PathBuf>,
}

impl Cleaned {
    /// The bytes of all that goes.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The files that go, and the folders that go whole.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.parts.iter().flat_map(Part::paths).collect()
    }
}

/// What of the kept artifacts goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What is more than the bounds allow.
    Excess(Bounds),
    /// Everything.
    All,
}

/// A choice of what goes. Nobody else writes into the output folder until it is carried out or dropped.
pub(crate) struct Cleaning<'a> {
    engine: &'a Engine,
    _lock: Option<Lock>,
    found: Cleaned,
}

impl Cleaning<'_> {
    /// Adds a file that goes as well.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn add(&mut self, path: PathBuf) -> std::io::Result<()> {
        let bytes = fs::metadata(&path)?.len();
        self.found.parts.push(Part { what: What::Files(vec![path.clone()]), path, bytes });
        Ok(())
    }
}

impl Engine {
    /// What there is of the named stages: artifacts, kept ones too, and work folders; of every stage that the ledger names, with the memo and the
    /// origin, if none is named.
    ///
    /// # Errors
    /// When cleaning cannot begin, or the file system refuses.
    pub(crate) fn clean(&self, names: &[String]) -> Result<Cleaning<'_>, Error> {
        let Some((lock, ledger)) = self.locked()? else { return Ok(Cleaning::nothing(self)) };
        let mut found = Cleaned::default();
        let stages = self.cleanable(names, &ledger)?;
        for stage in &stages {
            self.artifact(stage, &ledger, &mut found)?;
        }
        let store = Store::list(&self.layout, &ledger)?;
        kept(store.kept.into_iter().filter(|kept| stages.contains(&kept.stage)), &mut found)?;
        self.works(names, &mut found)?;
        if names.is_empty() {
            found.left.extend(store.unknown);
            // Nothing but the memo is ever in its folder, or what a kill left of it.
            whole(self.layout.cache(), &mut found);
            // Nothing is left that another config could replace.
            if let Ok(data) = fs::metadata(self.layout.origin()) {
                let (path, what) = (self.layout.origin(), What::Files(vec![self.layout.origin()]));
                found.parts.push(Part { path, what, bytes: data.len() });
            }
        }
        Ok(Cleaning { engine: self, _lock: Some(lock), found })
    }

    /// What there is to remove of the kept artifacts of the named stages; of all if none is named. States of interrupted trainings stay: they are
    /// not what others replaced.
    ///
    /// # Errors
    /// When cleaning cannot begin, or the file system refuses.
    pub(crate) fn gc(&self, names: &[String], scope: Scope) -> Result<Cleaning<'_>, Error> {
        let Some((lock, ledger)) = self.locked()? else { return Ok(Cleaning::nothing(self)) };
        let stages = self.cleanable(names, &ledger)?;
        let store = Store::list(&self.layout, &ledger)?;
        let mut found = Cleaned { left: store.unknown.clone(), ..Cleaned::default() };
        let going = match scope {
            Scope::Excess(bounds) => store.excess(bounds, &ledger, &self.layout),
            Scope::All => store.kept,
        };
        kept(going.into_iter().filter(|kept| stages.contains(&kept.stage)), &mut found)?;
        // What a kill left of one that was being removed.
        for path in entries(&self.layout.works()).filter(|path| path.to_string_lossy().ends_with(GONE)) {
            whole(path, &mut found);
        }
        Ok(Cleaning { engine: self, _lock: Some(lock), found })
    }

    /// The lock and the ledger, if there is an output folder.
    fn locked(&self) -> Result<Option<(Lock, Ledger)>, Error> {
        if !self.layout.out().exists() {
            return Ok(None);
        }
        let lock = Lock::take(&self.layout.lock())?;
        Ok(Some((lock, Ledger::read(&self.layout.ledger())?)))
    }

    /// The named stages, which the graph or the ledger knows; without names, all that the ledger knows.
    fn cleanable(&self, names: &[String], ledger: &Ledger) -> Result<BTreeSet<String>, Error> {
        let made: BTreeSet<_> = ledger.lines().iter().map(|line| line.stage.clone()).collect();
        if names.is_empty() {
            return Ok(made);
        }
        let own = |name: &String| match made.contains(name) {
            true => Ok(name.clone()),
            false => Ok(self.graph.stage(self.graph.find(name)?).name().to_owned()),
        };
        names.iter().map(own).collect()
    }

    fn artifact(&self, stage: &str, ledger: &Ledger, found: &mut Cleaned) -> Result<(), Error> {
        let path = self.layout.artifact(stage);
        if !path.is_dir() {
            return Ok(());
        }
        let lines = ledger.lines().iter().filter(|line| line.stage == stage);
        let made: BTreeSet<_> =
            lines.flat_map(|line| &line.outputs).map(|output| output.path.as_str()).collect();
        let there = folder::list(&path)?.into_iter();
        let (files, left): (Vec<_>, Vec<_>) = there.partition(|file| made.contains(file.as_str()));
        let only_others = files.is_empty() && !left.is_empty();
        found.left.extend(left.into_iter().map(|file| path.join(file)));
        if only_others {
            return Ok(());
        }
        let files: Vec<_> = files.into_iter().map(|file| path.join(file)).collect();
        let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|data| data.len()).sum();
        found.parts.push(Part { path, what: What::Files(files), bytes });
        Ok(())
    }

    fn works(&self, names: &[String], found: &mut Cleaned) -> Result<(), Error> {
        let mut works: Vec<PathBuf> = entries(&self.layout.works()).collect();
        works.sort();
        for work in works {
            let name = work.file_name().and_then(|name| name.to_str()).and_then(owner);
            let wanted = |stage: &str| names.iter().any(|wanted| wanted == stage);
            if names.is_empty() || name.is_some_and(|(stage, _)| wanted(stage)) {
                whole(work, found);
            }
        }
        Ok(())
    }
}

impl<'a> Cleaning<'a> {
    fn nothing(engine: &'a Engine) -> Self {
        Self { engine, _lock: None, found: Cleaned::default() }
    }

    /// What would go and stay.
    pub(crate) fn found(&self) -> &Cleaned {
        &self.found
    }

    /// Removes it.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(crate) fn remove(self) -> Result<Cleaned, Error> {
        let layout = &self.engine.layout;
        for part in &self.found.parts {
            match &part.what {
                What::Files(files) => {
                    for file in files {
                        fs::remove_file(file).map_err(Error::at(file))?;
                    }
                    if part.path.is_dir() {
                        prune(&part.path);
                    }
                }
                What::Kept(kept) => kept.discard(layout)?,
                What::Whole => folder::remove(&part.path)?,
            }
        }
        // Links to work folders that are gone now.
        live::sweep(layout);
        // The system refuses to remove what is not empty.
        let _ = fs::remove_dir(layout.works());
        let _ = fs::remove_dir(layout.kept());
        Ok(self.found)
    }
}

/// Kept artifacts go whole, unless somebody has put something beside their files.
fn kept(going: impl Iterator<Item = Kept>, found: &mut Cleaned) -> Result<(), Error> {
    for kept in going {
        let strangers = kept.strangers()?;
        if strangers.is_empty() {
            let (path, bytes) = (kept.folder.clone(), kept.bytes());
            found.parts.push(Part { path, what: What::Kept(kept), bytes });
        }
        found.left.extend(strangers);
    }
    Ok(())
}

/// A folder of the runner's own goes whole.
fn whole(path: PathBuf, found: &mut Cleaned) {
    if path.exists() {
        let bytes = size(&path);
        found.parts.push(Part { path, what: What::Whole, bytes });
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// How many bytes the files below `path` have, as far as they can be seen.
fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => entries(path).map(|entry| size(&entry)).sum(),
        data => data.map_or(0, |data| data.len()),
    }
}

/// Removes the folder and those below it as far as they are empty: the system refuses to remove one that is not.
fn prune(folder: &Path) {
    for path in entries(folder).filter(|path| path.is_dir() && !path.is_symlink()) {
        prune(&path);
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Watch, engine, run, scribble, settings, stage};
    use tempfile::tempdir;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_what_engraft_made_goes_and_what_goes_is_what_was_shown() {
        let dir = tempdir().unwrap();
        let stages = || [stage("a"), stage("b").reads("a")];
        run(dir.path(), stages());
        scribble(&dir.path().join("a/mine.txt"), "keep");
        scribble(&dir.path().join("notes.txt"), "keep");
        let engine = engine(settings(dir.path()), stages());
        let shown = engine.clean(&[]).unwrap().found().paths().len();
        assert!(dir.path().join("b/out.txt").exists(), "nothing is removed before it is asked for");
        let removed = engine.clean(&names(&["b"])).unwrap().remove().unwrap();
        assert_eq!(removed.paths(), [dir.path().join("b/out.txt")]);
        assert_eq!(removed.bytes(), 2);
        assert!(!dir.path().join("b").exists() && dir.path().join("a/out.txt").exists());
        let rest = engine.clean(&[]).unwrap().remove().unwrap();
        assert_eq!(shown, rest.paths().len() + 1);
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
        assert!(engine.clean(&names(&["b"])).is_err());
        assert!(engine.gc(&[], Scope::All).unwrap().found().parts.is_empty(), "it may be resumed");
        assert_eq!(engine.clean(&names(&["a"])).unwrap().remove().unwrap().parts.len(), 1);
        assert!(!dir.path().join(".work").exists());
    }

    #[test]
    fn kept_artifacts_go_with_their_stage_so_that_the_next_run_makes_everything() {
        let dir = tempdir().unwrap();
        let stages = |say: &str| [stage("a").field("say", say), stage("b").reads("a")];
        run(dir.path(), stages("x"));
        run(dir.path(), stages("y"));
        let engine = engine(settings(dir.path()), stages("y"));
        let removed = engine.clean(&names(&["a"])).unwrap().remove().unwrap();
        assert_eq!(removed.parts.len(), 2, "{removed:?}");
        assert_eq!(run(dir.path(), stages("x")), ["a done", "b restored"]);
        engine.clean(&[]).unwrap().remove().unwrap();
        assert!(!dir.path().join(".kept").exists());
        assert_eq!(run(dir.path(), stages("y")), ["a done", "b done"]);
    }

    #[test]
    fn gc_removes_what_is_beyond_the_bounds_or_everything() {
        let dir = tempdir().unwrap();
        let stages = |say: &str| [stage("a").field("say", say), stage("b")];
        for say in ["1", "2", "3", "4"] {
            run(dir.path(), stages(say));
        }
        let engine = engine(settings(dir.path()), stages("4"));
        let count = |scope| engine.gc(&[], scope).unwrap().found().parts.len();
        assert_eq!((count(Scope::Excess(Bounds::default())), count(Scope::All)), (0, 3));
        let two = Scope::Excess(Bounds { artifacts: 2, ..Bounds::default() });
        assert_eq!(count(Scope::Excess(Bounds { bytes: 1, ..Bounds::default() })), 2);
        assert!(engine.gc(&names(&["b"]), Scope::All).unwrap().found().parts.is_empty());
        engine.gc(&[], two).unwrap().remove().unwrap();
        assert_eq!(run(dir.path(), stages("1")), ["a done", "b fresh"], "the first was replaced first");
        // What a kill leaves of one that was being removed is not kept again, and goes at the next occasion.
        let leave = || {
            let kept = entries(&dir.path().join(".kept")).next().unwrap();
            let gone = dir.path().join(".work").join(format!("{}.gone", kept.file_name().unwrap().display()));
            fs::create_dir_all(gone.parent().unwrap()).unwrap();
            fs::rename(kept, &gone).unwrap();
            gone
        };
        let gone = leave();
        assert_eq!(
            engine.gc(&[], Scope::Excess(Bounds::default())).unwrap().remove().unwrap().paths(),
            [&gone]
        );
        let gone = leave();
        assert_eq!(run(dir.path(), stages("1")), ["a fresh", "b fresh"]);
        assert!(!gone.exists());
        // Somebody's own file stays, and with it what it lies in.
        let own = dir.path().join(".kept").read_dir().unwrap().next().unwrap().unwrap().path().join("own");
        scribble(&own, "mine");
        assert_eq!(engine.gc(&[], Scope::All).unwrap().remove().unwrap().left, std::slice::from_ref(&own));
        assert!(own.exists());
    }
}
