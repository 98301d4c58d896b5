//! The checkpoint of the best evaluation. It is part of a training's state, under the number of its step: one that a kill takes back never
//! stands where the one belongs that the state speaks of.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{fs, io, mem};

use super::{error, writer};
use crate::Error;
use crate::checkpoint::proof::Proof;
use crate::checkpoint::{self, Finished};

/// How the names of their folders begin; a folder that was being written when the kill came has a point and `tmp-` before it.
const PREFIX: &str = "best-";

/// The files of a checkpoint, by their paths in the folder of the state.
pub(super) type Files = BTreeMap<String, Proof>;

/// The checkpoint of the best evaluation, which a thread may be writing.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(Arc<Keeping>);

#[derive(Debug, Default)]
struct Keeping(Mutex<Written>);

/// How far it is.
#[derive(Debug)]
enum Written {
    /// This thread is at it.
    Soon(JoinHandle<Result<Files, Error>>),
    Whole(Files),
    /// It could not be; whoever asked first got the error itself.
    Never(String),
}

impl Default for Written {
    /// No evaluation was the best one so far.
    fn default() -> Self {
        Written::Whole(Files::new())
    }
}

impl Kept {
    /// One that is written.
    pub(super) fn whole(files: Files) -> Self {
        Kept::of(Written::Whole(files))
    }

    /// Has a thread of its own write the checkpoint of `step` into the state's folder.
    pub(super) fn keep(state: &Path, step: u64, finished: Finished) -> Result<Self, Error> {
        let state = state.to_owned();
        let thread = writer::thread("engraft-best", move || write(&state, step, &finished))?;
        Ok(Kept::of(Written::Soon(thread)))
    }

    fn of(written: Written) -> Self {
        Kept(Arc::new(Keeping(Mutex::new(written))))
    }

    /// Its files, once all are written.
    ///
    /// # Errors
    /// When they could not be.
    pub(super) fn files(&self) -> Result<Files, Error> {
        self.0.files()
    }
}

impl Keeping {
    fn files(&self) -> Result<Files, Error> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match mem::take(&mut *written) {
            Written::Soon(thread) => writer::joined(thread),
            Written::Whole(files) => Ok(files),
            Written::Never(why) => Err(Error::Misfit(why)),
        };
        *written = match &files {
            Ok(files) => Written::Whole(files.clone()),
            Err(error) => Written::Never(error.to_string()),
        };
        files
    }
}

impl Drop for Keeping {
    /// Whoever goes before its end leaves no thread behind that writes into a folder which may be somebody else's by then.
    fn drop(&mut self) {
        let _written = self.files();
    }
}

fn write(state: &Path, step: u64, finished: &Finished) -> Result<Files, Error> {
    let name = format!("{PREFIX}{step:08}");
    let dir = state.join(&name);
    writer::make(state)?;
    // One that is there already was written by a run that was killed before its next state.
    remove(&dir)?;
    finished.save(&dir)?;
    let mut files = Files::new();
    for entry in fs::read_dir(&dir).map_err(Error::file(&dir))? {
        let entry = entry.map_err(Error::file(&dir))?;
        let proof = Proof::of_file(&entry.path()).map_err(Error::file(&entry.path()))?;
        files.insert(format!("{name}/{}", entry.file_name().to_string_lossy()), proof);
    }
    Ok(files)
}

/// Puts a checkpoint of the state's folder where `to` is, as a whole; it stays where it was, too.
pub(super) fn hand_over(state: &Path, files: &Files, to: &Path) -> Result<(), Error> {
    check(state, files)?;
    checkpoint::swap::replace(to, |work| {
        for path in files.keys() {
            let (from, name) = (state.join(path), Path::new(path).file_name().unwrap_or_default());
            let target = work.join(name);
            // Checkpoints are never written in place, so a second name is as good as a copy.
            let linked = fs::hard_link(&from, &target);
            linked.or_else(|_| fs::copy(&from, &target).map(|_| ())).map_err(Error::file(&target))?;
        }
        Ok(())
    })
}

/// Refuses files that are not what was written.
pub(super) fn check(state: &Path, files: &Files) -> Result<(), Error> {
    for (name, proof) in files {
        let path = state.join(name);
        if let Some(problem) = proof.broken(&path).map_err(Error::file(&path))? {
            return Err(error::state(path, problem));
        }
    }
    Ok(())
}

/// Those among the files of a state.
pub(super) fn among(files: &Files) -> Files {
    let ours = files.iter().filter(|(path, _)| path.starts_with(PREFIX));
    ours.map(|(path, proof)| (path.clone(), proof.clone())).collect()
}

/// The step of the evaluation that the entry `name` of a state's folder is of, whole or in the making.
pub(super) fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(".tmp-").unwrap_or(name).strip_prefix(PREFIX)?;
    digits.split('-').next()?.parse().ok()
}

/// Removes a folder; one that is not there is no error.
pub(super) fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::file(dir)(source)),
        _ => Ok(()),
    }
}
