//! The files that a config means with a folder.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// How names end of files that are packed otherwise than by gzip. What cannot be unpacked is named when it is opened, and not skipped.
const PACKED: [&str; 3] = [".zst", ".bz2", ".xz"];

/// `path` itself, or the files below it whose names end in one of these, in the order of their names. `.txt.gz` stands for every packing.
///
/// # Errors
/// When a folder cannot be read.
pub(crate) fn ending(path: &Path, endings: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let packed = |name: &str, ending: &str| {
        let unpacked = PACKED.iter().find_map(|packing| name.strip_suffix(packing));
        unpacked.zip(ending.strip_suffix(".gz")).is_some_and(|(name, ending)| name.ends_with(ending))
    };
    let is_wanted = |name: &str| endings.iter().any(|ending| name.ends_with(ending) || packed(name, ending));
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

/// The way from the folder `path` to `file`, which was found in it; none if it is that file.
pub(crate) fn below<'f>(path: &Path, file: &'f Path) -> Option<&'f Path> {
    file.strip_prefix(path).ok().filter(|below| !below.as_os_str().is_empty())
}

/// `found` in `path`, of which there must be some; `looks` is what looks for them, for messages.
///
/// # Errors
/// When there is none.
pub(crate) fn some(
    found: Vec<PathBuf>,
    path: &Path,
    endings: &[&str],
    looks: &str,
) -> anyhow::Result<Vec<PathBuf>> {
    anyhow::ensure!(
        !found.is_empty(),
        "{}: no file there ends in {}, which is what {looks} looks for",
        path.display(),
        endings.join(" or ")
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_17_files_of_a_folder_are_found_however_they_are_packed() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["a.txt", "b.txt.gz", "c.txt.zst", "d.txt.bz2", "e.txt.xz", "f.tsv.zst", "g.zst", "h.txt.bak"]
        {
            base::whole::write_whole(&folder.path().join(name), b"").unwrap();
        }
        let found = |endings: &[&str]| -> Vec<String> {
            let names = ending(folder.path(), endings).unwrap();
            names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(found(&[".txt", ".txt.gz"]), ["a.txt", "b.txt.gz", "c.txt.zst", "d.txt.bz2", "e.txt.xz"]);
        assert_eq!(found(&[".txt"]), ["a.txt"], "a format whose files are not unpacked");
    }
}
