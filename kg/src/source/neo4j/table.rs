//! Files of a graph that are read as one table: a header and the rows behind it, with what the config says of them.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use base::bom::Unmarked;
use base::line::Place;
use base::read::{Location, ReadError};

use super::{Columns, Group};
use crate::source::files::{Bytes, Counted, Reopened, together};

/// A table: its files, and what stands in none of its columns.
#[derive(Debug)]
pub struct Table<'f> {
    pub(super) file: Reopened<'f>,
    /// Labels of its nodes.
    pub(super) labels: &'f [String],
    /// The type of its relationships that have none of their own.
    pub(super) kind: Option<&'f str>,
    /// Its files, where there are several.
    parts: Vec<PathBuf>,
    begins: Begins,
}

/// How many lines stand before each file that has been read.
type Begins = Arc<Mutex<Vec<u64>>>;

impl<'f> Table<'f> {
    /// A file by itself.
    #[must_use]
    pub fn of_file(file: Reopened<'f>) -> Self {
        Self { file, labels: &[], kind: None, parts: Vec::new(), begins: Begins::default() }
    }

    /// Files that follow each other.
    #[must_use]
    pub fn of_group(files: Vec<Reopened<'f>>, group: &'f Group) -> Self {
        let (label, begins) = (together(&files), Begins::default());
        let parts = files.iter().map(|file| file.label.clone()).collect();
        let noted = Arc::clone(&begins);
        let open = move || {
            let files = files.iter().map(|file| (file.open)()).collect::<io::Result<Vec<_>>>()?;
            Ok(Box::new(Joined::new(files, Arc::clone(&noted))) as Bytes<'f>)
        };
        let file = Reopened { label, open: Box::new(open) };
        Self { file, labels: &group.labels, kind: group.kind.as_deref().map(str::trim), parts, begins }
    }

    /// An error of the table as one of the file that it stands in.
    pub(super) fn located(&self, error: ReadError) -> ReadError {
        let Location::Line(Place { line, column, .. }) = error.place() else { return error };
        let begins = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(part) = begins.partition_point(|before| before < line).checked_sub(1) else { return error };
        let Some(file) = self.parts.get(part) else { return error };
        let place = Place { file: file.clone(), line: line - begins[part], column: *column };
        ReadError::new(place, error.found(), error.expected(), error.remedy())
    }

    /// Refuses labels of a table without nodes, and a type of one without relationships.
    pub(super) fn check(&self, columns: &Columns) -> Result<(), ReadError> {
        let wrong = |found: &str, expected: &str| {
            let remedy = "move it to the group of the right file";
            Err(ReadError::new(self.file.label.as_path(), found.to_owned(), expected.to_owned(), remedy))
        };
        if !self.labels.is_empty() && columns.id.is_none() {
            return wrong("labels, and no column :ID", "labels for files of nodes alone");
        }
        if self.kind.is_some() && columns.start.is_none() {
            return wrong(
                "a type, and no columns :START_ID and :END_ID",
                "a type for files of relationships alone",
            );
        }
        Ok(())
    }
}

/// Files one behind the other, of which each begins a line: a header in a file of its own often has no line's end.
struct Joined<'f> {
    rest: std::vec::IntoIter<Bytes<'f>>,
    file: Option<Counted<Unmarked<Bytes<'f>>>>,
    /// Of the files before.
    lines: u64,
    last: u8,
    begins: Begins,
}

impl<'f> Joined<'f> {
    fn new(files: Vec<Bytes<'f>>, begins: Begins) -> Self {
        begins.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Self { rest: files.into_iter(), file: None, lines: 0, last: b'\n', begins }
    }
}

impl Read for Joined<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let read = self.file.as_mut().map_or(Ok(0), |file| file.read(buffer))?;
            if read > 0 {
                self.last = buffer[read - 1];
                return Ok(read);
            }
            if self.last != b'\n' {
                (self.last, buffer[0]) = (b'\n', b'\n');
                self.lines += 1;
                return Ok(1);
            }
            let Some(next) = self.rest.next() else { return Ok(0) };
            self.lines += self.file.take().map_or(0, |file| file.lines);
            self.begins.lock().unwrap_or_else(PoisonError::into_inner).push(self.lines);
            self.file = Some(Counted::new(Unmarked::new(next)));
        }
    }
}
