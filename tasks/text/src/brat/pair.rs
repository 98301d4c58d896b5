//! The files of brat's documents, two by two.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base::read::ReadError;

use super::FILES;
use crate::fault::unreadable;

/// The two files of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Their name without its end.
    pub id: String,
    /// The text.
    pub text: PathBuf,
    /// The entities.
    pub ann: PathBuf,
}

impl Pair {
    /// Of the text in this file, whose entities lie beside it under the same name with `.ann` in place of its ending.
    #[must_use]
    pub fn of(text: &Path) -> Self {
        let id = text.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { id, text: text.to_owned(), ann: text.with_extension("ann") }
    }
}

/// The documents of a folder, by name in byte order. Files of other kinds are passed over.
///
/// # Errors
/// When the folder cannot be read, or one of two files is missing.
pub fn pairs(folder: &Path) -> Result<Vec<Pair>, ReadError> {
    let wrong = |source| unreadable(folder, &source, "a folder with texts (.txt) and their entities (.ann)");
    let mut found: BTreeMap<PathBuf, [bool; 2]> = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let kind = ["txt", "ann"].iter().position(|end| path.extension().is_some_and(|e| e == *end));
        if let Some(kind) = kind {
            found.entry(path.with_extension("")).or_default()[kind] = true;
        }
    }
    let pair = |(stem, there): (PathBuf, [bool; 2])| {
        // A stem may have dots of its own.
        let name = |end: &str| {
            let mut name = stem.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let [text, ann] = [name(".txt"), name(".ann")];
        let alone = |file: &Path, other: &Path| {
            let missing = other.file_name().unwrap_or_default().to_string_lossy();
            Err(ReadError::new(file, format!("{missing} is not beside it"), FILES, "add the file"))
        };
        match there {
            [true, false] => alone(&text, &ann),
            [false, _] => alone(&ann, &text),
            [true, true] => {
                let id = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok(Pair { id, text, ann })
            }
        }
    };
    found.into_iter().map(pair).collect()
}
