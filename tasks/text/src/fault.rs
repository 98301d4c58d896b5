//! What readers of several formats say of files that they cannot read on, and how they open the files beside a text.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use base::line::{Line, Place};
use base::read::ReadError;

/// Bytes of a text, at most.
pub(crate) const LONGEST: usize = 16 << 20;

/// A line that does not say what it must.
pub(crate) fn line(line: Line<'_>, found: &str, expected: impl Into<String>) -> ReadError {
    ReadError::text(line.place(None), found, expected, "fix the line")
}

/// What the parser of JSON says of a text whose place is known otherwise.
pub(crate) fn json(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.as_str(), |(problem, _)| problem).to_owned()
}

/// A text of more bytes than any that should be read at once.
pub(crate) fn too_long(file: &Path, expected: &str) -> ReadError {
    ReadError::new(file, format!("more than {LONGEST} bytes"), expected, "split it")
}

/// Opens a file.
pub(crate) fn open(file: &Path, expected: &str) -> Result<BufReader<File>, ReadError> {
    let opened = File::open(file).map_err(|source| unreadable(file, &source, expected))?;
    Ok(BufReader::new(opened))
}

/// A file or folder that cannot be read at all.
pub(crate) fn unreadable(file: &Path, source: &std::io::Error, expected: &str) -> ReadError {
    ReadError::new(file, format!("cannot be read: {source}"), expected, "check the path")
}

/// All of a text of at most [`LONGEST`] bytes.
pub(crate) fn whole_text(reader: impl Read, file: &Path, expected: &str) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    let read = reader.take(LONGEST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|source| unreadable(file, &source, expected))?;
    if bytes.len() > LONGEST {
        return Err(too_long(file, expected));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = memchr::memchr_iter(b'\n', &error.as_bytes()[..valid]).count() as u64 + 1;
        let place = Place { file: file.to_owned(), line, column: None };
        let found = format!("byte {} of the file is not valid UTF-8", valid + 1);
        ReadError::new(place, found, "UTF-8", "convert it (iconv -t UTF-8)")
    })
}
