//! The files that a config means with a folder. Knows no format.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// `path` itself, or the files below it whose names end in one of these, in the order of their names.
///
/// # Errors
/// When a folder cannot be read.
pub(super) fn ending(path: &Path, endings: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_wanted = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("{}", path.display()))? {
        let entry = entry?.path();
        if entry.is_dir() {
            found.extend(ending(&entry, endings)?);
        } else if entry.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}
