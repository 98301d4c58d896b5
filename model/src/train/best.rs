//! The checkpoint of the best evaluation. It is part of a training's state, under the number of its step: one that a kill takes back never
//! stands where the one belongs that the state speaks of.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::error;
use crate::Error;
use crate::checkpoint;
use crate::checkpoint::proof::Proof;

/// How the names of their folders begin; a folder that was being written when the kill came has a point and `tmp-` before it.
const PREFIX: &str = "best-";

/// The files of a checkpoint, by their paths in the folder of the state.
pub(super) type Files = BTreeMap<String, Proof>;

/// Has `save` write the checkpoint of `step` into the state's folder.
pub(super) fn keep(
    state: &Path,
    step: u64,
    save: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<Files, Error> {
    let name = format!("{PREFIX}{step:08}");
    let dir = state.join(&name);
    // One that is there already was written by a run that was killed before its next state.
    remove(&dir)?;
    save(&dir)?;
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
