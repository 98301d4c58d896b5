//! Benchmarks on disk: folders of JSON lines with an index that is written last and checks itself.

use std::io::{BufWriter, Write};
use std::path::Path;

use base::read::ReadError;
use base::self_check::Kind;
use base::whole;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use tasks::Error;

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

/// A file is missing, or cannot be read or written.
fn unfinished(path: &Path, kind: &Kind, source: &std::io::Error) -> Error {
    let remedy = format!("{} without all its files is not finished: {}", kind.folder, kind.again);
    Error::at(path, source, remedy)
}

/// A row does not follow from the index or from those in front of it.
pub(super) fn row(path: &Path, kind: &Kind, line: usize, why: &str) -> Error {
    Error::at(format!("{}: line {line}", path.display()), why, kind.again)
}

/// Writes rows into the file `name`, one a line; the file appears whole.
///
/// # Errors
/// When the disk refuses.
pub(super) fn write<T: Serialize>(
    folder: &Path,
    kind: &Kind,
    name: &str,
    rows: impl IntoIterator<Item = T>,
) -> Result<File, Error> {
    let path = folder.join(name);
    let io = |source: std::io::Error| unfinished(&path, kind, &source);
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
    kind: &Kind,
    files: &[File],
    name: &str,
) -> Result<Vec<T>, Error> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).map_err(|source| unfinished(&path, kind, &source))?;
    let found = blake3::hash(&bytes).to_hex().to_string();
    let expected = files.iter().find(|file| file.path == name).map(|file| file.blake3.as_str());
    if expected != Some(&found) {
        let expected = format!("{} as the index says", expected.unwrap_or("no such file"));
        return Err(ReadError::new(&path, found, expected, kind.again).into());
    }
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let parsed = lines.zip(1..).map(|(text, line)| {
        serde_json::from_slice(text).map_err(|error| {
            let place = format!("{}: line {line}, column {}", path.display(), error.column());
            Error::at(place, error, kind.again)
        })
    });
    parsed.collect()
}

/// Whether what was counted, by name, is what the index of `folder` says: found, expected.
///
/// # Errors
/// Names the first that is not.
pub(super) fn agree(
    folder: &Path,
    kind: &Kind,
    counts: impl IntoIterator<Item = (&'static str, u64, u64)>,
) -> Result<(), Error> {
    match counts.into_iter().find(|(_, found, expected)| found != expected) {
        Some((what, found, expected)) => {
            let problem = format!("{found} {what}, but the index says {expected}");
            Err(Error::at(&folder.join(INDEX), problem, kind.again))
        }
        None => Ok(()),
    }
}
