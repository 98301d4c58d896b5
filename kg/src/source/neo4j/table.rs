//! Files of a graph that are read as one table: a header and the rows behind it, with what the config says of them.

use std::io::{self, Read};

use base::read::ReadError;

use super::{Columns, Group};
use crate::source::files::{Bytes, Reopened, together};

/// A table: its files, and what stands in none of its columns.
#[derive(Debug)]
pub struct Table<'f> {
    pub(super) file: Reopened<'f>,
    /// Labels of its nodes.
    pub(super) labels: &'f [String],
    /// The type of its relationships that have none of their own.
    pub(super) kind: Option<&'f str>,
}

impl<'f> Table<'f> {
    /// A file by itself.
    #[must_use]
    pub fn of_file(file: Reopened<'f>) -> Self {
        Self { file, labels: &[], kind: None }
    }

    /// Files that follow each other.
    #[must_use]
    pub fn of_group(files: Vec<Reopened<'f>>, group: &'f Group) -> Self {
        let label = together(&files);
        let open = move || {
            let mut all: Bytes<'f> = Box::new(io::empty());
            for file in &files {
                all = Box::new(all.chain(Ended::new((file.open)()?)));
            }
            Ok(all)
        };
        let file = Reopened { label, open: Box::new(open) };
        Self { file, labels: &group.labels, kind: group.kind.as_deref().map(str::trim) }
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

/// A file whose last line ends, whether it does so itself or not: a header in a file of its own often does not.
struct Ended<R> {
    file: R,
    last: u8,
}

impl<R> Ended<R> {
    fn new(file: R) -> Self {
        Self { file, last: b'\n' }
    }
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if read > 0 {
            self.last = buffer[read - 1];
            return Ok(read);
        }
        if self.last == b'\n' || buffer.is_empty() {
            return Ok(0);
        }
        self.last = b'\n';
        buffer[0] = b'\n';
        Ok(1)
    }
}
