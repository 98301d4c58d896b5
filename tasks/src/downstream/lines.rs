//! Benchmarks on disk: folders of JSON lines with an index that is written last and checks itself.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use base::self_check::{self, Kind};
use base::whole;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The file that is written last.
pub const INDEX: &str = "index.json";

/// A file, as an index tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Digest of its contents.
    pub blake3: String,
}

/// Why a folder cannot be written or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}; {} without all its files is not finished: {}", path.display(), kind.folder, kind.again)]
    Io {
        /// The file.
        path: PathBuf,
        /// What the folder should be.
        kind: &'static Kind,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is no row.
    #[error("{}: line {line}, column {}: {source}; {}", path.display(), source.column(), kind.again)]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the folder should be.
        kind: &'static Kind,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The index cannot be used, or not written.
    #[error(transparent)]
    Index(#[from] self_check::Error),
    /// The index says something else than the files.
    #[error("{}: {found} {what}, but the index says {expected}; {}", path.display(), kind.again)]
    Count {
        /// The index.
        path: PathBuf,
        /// What the folder should be.
        kind: &'static Kind,
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many the index says.
        expected: u64,
    },
    /// A file is not as it was written.
    #[error("{}: {found}, expected {expected} as the index says; {}", path.display(), kind.again)]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the folder should be.
        kind: &'static Kind,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A row does not follow from the index or from those in front of it.
    #[error("{}: line {line}: {why}; {}", path.display(), kind.again)]
    Row {
        /// The file.
        path: PathBuf,
        /// What the folder should be.
        kind: &'static Kind,
        /// The line, from 1.
        line: usize,
        /// What is amiss.
        why: String,
    },
}

/// Writes rows into the file `name`, one a line; the file appears whole.
///
/// # Errors
/// When the disk refuses.
pub(super) fn write<T: Serialize>(
    folder: &Path,
    kind: &'static Kind,
    name: &str,
    rows: impl IntoIterator<Item = T>,
) -> Result<File, Error> {
    let path = folder.join(name);
    let io = |source: std::io::Error| Error::Io { path: path.clone(), kind, source };
    let mut file = BufWriter::new(whole::temporary(folder).map_err(io)?);
    let (mut hasher, mut line, mut bytes) = (blake3::Hasher::new(), Vec::new(), 0);
    for row in rows {
        line.clear();
        serde_json::to_writer(&mut line, &row).map_err(|e| io(e.into()))?;
        line.push(b'\n');
        hasher.update(&line);
        bytes += line.len() as u64;
        file.write_all(&line).map_err(io)?;
    }
    let file = file.into_inner().map_err(|e| io(e.into_error()))?;
    whole::persist(file, &path).map_err(io)?;
    Ok(File { path: name.to_owned(), bytes, blake3: hasher.finalize().to_hex().to_string() })
}

/// The rows of the file `name`, which is as `files` of the index say.
///
/// # Errors
/// When it is missing or damaged, or a line is no row.
pub(super) fn read<T: DeserializeOwned>(
    folder: &Path,
    kind: &'static Kind,
    files: &[File],
    name: &str,
) -> Result<Vec<T>, Error> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), kind, source })?;
    let found = blake3::hash(&bytes).to_hex().to_string();
    let expected = files.iter().find(|file| file.path == name).map(|file| file.blake3.as_str());
    if expected != Some(&found) {
        let expected = expected.unwrap_or("no such file").to_owned();
        return Err(Error::Damaged { path, kind, found, expected });
    }
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let row = |(text, line): (&[u8], usize)| {
        serde_json::from_slice(text).map_err(|source| Error::Parse { path: path.clone(), kind, line, source })
    };
    lines.zip(1..).map(row).collect()
}

/// Whether what was counted, by name, is what the index of `folder` says: found, expected.
///
/// # Errors
/// Names the first that is not.
pub(super) fn agree(
    folder: &Path,
    kind: &'static Kind,
    counts: impl IntoIterator<Item = (&'static str, u64, u64)>,
) -> Result<(), Error> {
    match counts.into_iter().find(|(_, found, expected)| found != expected) {
        Some((what, found, expected)) => {
            Err(Error::Count { path: folder.join(INDEX), kind, what, found, expected })
        }
        None => Ok(()),
    }
}
