//! Where the files of a source lie on this machine, by the names that releases give them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use base::read::ReadError;

use super::super::Source;
use super::{Form, Found, Slot, unopened};

/// Where the parts of one file of a release lie: one path, or several that follow one another. Where more than one form lies there, the plain one
/// is read, then the packed one.
///
/// # Errors
/// When the folder cannot be listed, the name is no file's, or a part in the middle is missing.
pub fn locate(folder: &Path, name: &str) -> Result<Option<Vec<PathBuf>>, ReadError> {
    for form in [name.to_owned(), format!("{name}.gz")] {
        let path = folder.join(form);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => return Ok(Some(vec![path])),
            Ok(_) => {
                let found = "found no file but a folder or a device";
                return Err(ReadError::new(&path, found, "an RRF file", "move it away"));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unopened(&path, &error)),
        }
    }
    let unlisted = |error| unopened(folder, &error);
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(unlisted)? {
        let found = entry.map_err(unlisted)?.file_name();
        let ending = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.'));
        if let Some([first @ b'a'..=b'z', second @ b'a'..=b'z', b'.', b'g', b'z']) = ending.map(str::as_bytes)
        {
            parts.push([*first, *second]);
        }
    }
    parts.sort_unstable();
    let part = |[first, second]: [u8; 2]| folder.join(part_name(name, char::from(first), char::from(second)));
    let counted = (b'a'..=b'z').flat_map(|first| (b'a'..=b'z').map(move |second| [first, second]));
    if let Some((missing, _)) = counted.zip(&parts).find(|(wanted, found)| wanted != *found) {
        let found = "this part is missing, later ones are there";
        return Err(ReadError::new(&part(missing), found, "all from .aa.gz on", "fetch it"));
    }
    Ok((!parts.is_empty()).then(|| parts.into_iter().map(part).collect()))
}

/// The files in a folder whose names begin with `name` and end in `.txt` or `.txt.gz`, in the order of their names. Folders in front of the name
/// may be left out: all files may lie in `folder` itself, or in the folder around the last one.
///
/// # Errors
/// When a folder cannot be listed, or the files are a delta or of two types of release.
pub fn beginning(folder: &Path, name: &str) -> Result<Option<Vec<PathBuf>>, ReadError> {
    let (below, start) = name.rsplit_once('/').unwrap_or(("", name));
    // `Refset/Content`, `Refset`, the folder itself.
    for below in Path::new(below).ancestors().map(|below| folder.join(below)).filter(|below| below.is_dir()) {
        let paths = begun(&below, start)?;
        let has = |kind: &str| paths.iter().find(|path| path.to_string_lossy().contains(kind));
        if let Some(delta) = has("Delta") {
            let found = "the file has changes since another release alone";
            return Err(ReadError::new(delta, found, "the folder Snapshot or Full", "name one of these"));
        }
        if let (Some(full), Some(_)) = (has("Full_").or(has("Full-")), has("Snapshot")) {
            let found = "files of a full release and of a snapshot lie in one folder";
            return Err(ReadError::new(full, found, "one of the two", "name one of their folders"));
        }
        if !paths.is_empty() {
            return Ok(Some(paths));
        }
    }
    Ok(None)
}

fn begun(folder: &Path, start: &str) -> Result<Vec<PathBuf>, ReadError> {
    let unlisted = |error| unopened(folder, &error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unlisted)? {
        let path = entry.map_err(unlisted)?.path();
        let found = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if found.starts_with(start)
            && (found.ends_with(".txt") || found.ends_with(".txt.gz"))
            && path.is_file()
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The files of a source that lie on this machine, where its options name them. What is named and is not there is told by who opens it.
///
/// # Errors
/// When a folder of a release cannot be listed, or lacks a part in the middle.
pub fn on_disk(source: &dyn Source) -> Result<BTreeMap<String, Found>, ReadError> {
    let mut found = BTreeMap::new();
    for Slot { key, location, members } in source.slots() {
        let named = PathBuf::from(&location.0);
        for member in members {
            let label = named.join(member.name);
            let paths = match member.form {
                Form::Release if named.is_dir() => locate(&named, member.name)?,
                Form::Beginning if named.is_dir() => beginning(&named, member.name)?,
                Form::Release | Form::Beginning | Form::Plain => label.exists().then(|| vec![label.clone()]),
            };
            let paths = paths.or_else(|| member.needed.then(|| vec![label.clone()]));
            let label = |paths: &[PathBuf]| match (member.form, paths) {
                (Form::Beginning, [path]) => path.clone(),
                _ => label,
            };
            found.extend(
                paths.map(|paths| (format!("{key}/{}", member.name), Found { label: label(&paths), paths })),
            );
        }
        if members.is_empty() {
            found.insert(key, Found { label: named.clone(), paths: vec![named] });
        }
    }
    Ok(found)
}

/// What a file of a release may be called in a folder that cannot be listed, the parts in their order.
pub fn part_names(name: &str) -> impl Iterator<Item = String> {
    ('a'..='z').flat_map(move |first| ('a'..='z').map(move |second| part_name(name, first, second)))
}

fn part_name(name: &str, first: char, second: char) -> String {
    format!("{name}.{first}{second}.gz")
}
