//! The files that a config means with a folder. Knows no format.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// `path` itself, or the files below it whose names end in one of these, in the order of their names.
///
/// # Errors
/// When a folder cannot be read.
pub(super) fn ending(path: &Path, endings: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    walk(path, &|name| endings.iter().any(|ending| name.ends_with(ending)))
}

/// `path` itself, or the files below it with that extension in the order of their names.
///
/// # Errors
/// When a folder cannot be read.
pub(super) fn files(path: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    walk(path, &|name| Path::new(name).extension().is_some_and(|e| e == extension))
}

fn walk(path: &Path, is_wanted: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("{}", path.display()))? {
        let entry = entry?.path();
        if entry.is_dir() {
            found.extend(walk(&entry, is_wanted)?);
        } else if entry.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}
