//! The ledger: one JSON line for every finished run of a stage, only ever appended to. Knows the file, not why a stage ran.
//!
//! A line counts once its newline is on disk. A last line without one is what a crash leaves and is cut off at the next
//! append; anything unreadable before it is damage and an error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::describe::Description;
use super::digest::Digest;
use super::explain::Reason;
use super::fault::{Faults, Point, die};
use super::folder::Output;
use super::graph::is_name;

/// The version of the line format; the column table is in docs/formats.md.
pub const VERSION: u32 = 1;

/// What is known of one finished run of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// [`VERSION`].
    pub format: u32,
    /// The stage that ran.
    pub stage: String,
    /// The digest of the description.
    pub fingerprint: Digest,
    /// What the stage was described as.
    pub described: Description,
    /// The digest of the whole artifact.
    pub artifact: Digest,
    /// The artifact's files, sorted by path.
    pub outputs: Vec<Output>,
    /// What the stage recorded, in its order.
    pub facts: Map<String, Value>,
    /// Why it ran.
    pub reasons: Vec<Reason>,
    /// When it started, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The version of engraft that ran it.
    pub engraft: String,
}

/// The ledger cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// The ledger.
        path: PathBuf,
        /// What the file system said.
        cause: io::Error,
    },
    /// A line that is not one.
    #[error(
        "{}:{line}: this ledger line is damaged ({cause}): restore the file from a backup, or delete the line to have \
         its stage run again", .path.display()
    )]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser expected, with the column.
        cause: serde_json::Error,
    },
    /// A line from another version of the format.
    #[error(
        "{}:{line}: ledger format {found}, but this engraft reads format {VERSION}: use the engraft that wrote it, or \
         another folder with --out", .path.display()
    )]
    Format {
        /// The ledger.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The format found.
        found: u32,
    },
}

/// The lines of a ledger, oldest first.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    lines: Vec<Line>,
    /// How many bytes the whole lines take; what follows is a torn line.
    whole: u64,
}

#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Ledger {
    /// Reads the ledger at `path`; one that does not exist has no lines.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(Error::Io { path: path.to_owned(), cause }),
        };
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
        let mut lines = Vec::new();
        for (i, text) in bytes[..whole].split_inclusive(|&b| b == b'\n').enumerate() {
            lines.push(parse(text).map_err(|fault| fault.at(path, i + 1))?);
        }
        Ok(Self { path: path.to_owned(), lines, whole: whole as u64 })
    }

    /// All lines, oldest first.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The last line of a stage.
    pub fn last(&self, stage: &str) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.stage == stage)
    }

    /// Appends a line and brings it safely to disk; cuts off a torn one before. On an error the file is as it was.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, line: Line, faults: &Faults) -> Result<(), Error> {
        let path = self.path.clone();
        let written = self.write(&line, faults);
        self.whole += written.map_err(|cause| Error::Io { path, cause })?;
        self.lines.push(line);
        Ok(())
    }

    fn write(&self, line: &Line, faults: &Faults) -> io::Result<u64> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.set_len(self.whole)?;
        if faults.is_at(&line.stage, Point::TornLedger) {
            file.write_all(&text[..text.len() / 2])?;
            file.sync_all()?;
            die();
        }
        if let Err(error) = file.write_all(&text).and_then(|()| file.sync_all()) {
            // Best effort: a torn line that stays is cut off at the next append.
            let _ = file.set_len(self.whole).and_then(|()| file.sync_all());
            return Err(error);
        }
        if self.whole == 0 {
            File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(text.len() as u64)
    }
}

/// Whether a line names only what lies in its own stage's folder; `clean` removes what a line names.
fn stays_inside(line: &Line) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    is_name(&line.stage) && line.outputs.iter().all(|output| output.path.split('/').all(plain))
}

enum Fault {
    Json(serde_json::Error),
    Format(u32),
}

impl Fault {
    fn at(self, path: &Path, line: usize) -> Error {
        let path = path.to_owned();
        match self {
            Self::Json(cause) => Error::Damaged { path, line, cause },
            Self::Format(found) => Error::Format { path, line, found },
        }
    }
}

fn parse(text: &[u8]) -> Result<Line, Fault> {
    let parsed = serde_json::from_slice(text).and_then(|line: Line| {
        let outside = || serde_json::Error::custom("a name that leads out of the stage's folder");
        if stays_inside(&line) { Ok(line) } else { Err(outside()) }
    });
    parsed.map_err(|error| match serde_json::from_slice::<Header>(text) {
        Ok(Header { format }) if format != VERSION => Fault::Format(format),
        _ => Fault::Json(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::folder;
    use crate::engine::testing::{run, stage};
    use tempfile::tempdir;

    #[test]
    fn a_torn_last_line_is_no_line_and_is_cut_off_by_the_next() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let whole = fs::read(&path).unwrap();
        let torn = whole.len() - 7;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(torn as u64).unwrap();
        assert_eq!(Ledger::read(&path).unwrap().lines().len(), 1);
        assert_eq!(run(dir.path(), [stage("a"), stage("b").reads("a")]), ["a fresh", "b done"]);
        let lines = Ledger::read(&path).unwrap();
        assert_eq!(lines.lines().iter().map(|line| line.stage.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn damage_in_the_middle_is_an_error_that_names_the_line() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let text = fs::read_to_string(&path).unwrap();
        folder::write_whole(&path, text.replacen("\"stage\"", "\"stag", 1).as_bytes()).unwrap();
        let error = Ledger::read(&path).unwrap_err().to_string();
        assert!(error.contains("ledger.jsonl:1:") && error.contains("column"), "{error}");
    }

    #[test]
    fn another_format_is_refused_as_such() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        folder::write_whole(&path, b"{\"format\":2,\"unheard\":true}\n").unwrap();
        assert!(matches!(Ledger::read(&path), Err(Error::Format { line: 1, found: 2, .. })));
    }

    #[test]
    fn a_line_comes_back_as_it_was_written() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a").field("weight", 0.1)]);
        let ledger = Ledger::read(&dir.path().join("ledger.jsonl")).unwrap();
        let line = ledger.last("a").unwrap();
        assert_eq!(line.described.fingerprint("a"), line.fingerprint);
        assert_eq!(line.facts["letters"], 1);
        assert_eq!(line.described.fields["a.weight"], 0.1);
        assert_eq!(line.outputs[0].bytes, 1);
    }
}
