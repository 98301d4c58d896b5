//! Plain text as documents: one per paragraph, or one per line.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{self, Lines, Place};
use serde::{Deserialize, Serialize};

use super::reader::{Bytes, ReadError, TextFormat, without_spans};
use super::{Counts, Document, Labels, drop_for, keep, unmarked};

/// What one document of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Lines up to the next blank one; they stay lines of the text.
    Paragraph,
    /// A line; blank ones are dropped.
    Line,
}

/// Bytes that a document may have: as many as a line.
const LONGEST: usize = 16 << 20;

/// Why there is no next document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no line to be had.
    #[error(transparent)]
    Line(#[from] line::Error),
    /// A paragraph that would not fit in memory with its tokens.
    #[error(
        "{place}: the paragraph that begins here has more than {LONGEST} bytes; expected blank lines between paragraphs: put some in, or read each line as a document"
    )]
    Long {
        /// Where it begins.
        place: Place,
    },
}

/// Reads document after document.
#[derive(Debug)]
pub struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    unit: Unit,
    tally: Tally,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages. The last line may lack its end.
    pub fn new(reader: R, file: &'f Path, unit: Unit) -> Self {
        let reasons: &[&str] = match unit {
            Unit::Paragraph => &[],
            Unit::Line => &["blank"],
        };
        let lines = Lines::new(reader, file);
        Self { lines, file, unit, tally: Tally::new(file, reasons) }
    }

    /// Fills `document` with the next one; `false` at the end of the file. White space around lines is left out.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(&mut self, document: &mut Document) -> Result<bool, Error> {
        document.clear();
        let mut first = 0;
        while let Some(line) = self.lines.next_line()? {
            let text = unmarked(line.text).trim();
            match (text.is_empty(), self.unit) {
                (true, Unit::Line) => {
                    drop_for(&mut self.tally, "blank");
                    continue;
                }
                (true, Unit::Paragraph) if document.text.is_empty() => continue,
                (true, Unit::Paragraph) => break,
                (false, _) => {}
            }
            if document.text.is_empty() {
                first = line.place(None).line;
                document.id.push_str(&first.to_string());
            } else {
                document.text.push('\n');
            }
            document.text.push_str(text);
            if document.text.len() > LONGEST {
                let place = Place { file: self.file.to_owned(), line: first, column: None };
                return Err(Error::Long { place });
            }
            if self.unit == Unit::Line {
                break;
            }
        }
        let found = !document.text.is_empty();
        if found {
            keep(&mut self.tally);
        }
        Ok(found)
    }

    /// What became of the file so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally { bytes: self.lines.bytes(), lines: self.lines.lines(), ..self.tally.clone() }
    }
}

impl TextFormat for Unit {
    fn endings(&self) -> &'static [&'static str] {
        &[".txt", ".txt.gz"]
    }

    fn reader<'f>(
        &'f self,
        bytes: Bytes<'f>,
        file: &'f Path,
    ) -> Result<Box<dyn super::reader::Reader + 'f>, ReadError> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> super::reader::Reader for Reader<'_, R> {
    fn next(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        self.read(document).map_err(ReadError::of)
    }

    fn counts(&self) -> Counts {
        without_spans(self.tally())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain;

    fn read(bytes: &[u8], unit: Unit) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.txt"), unit);
        Ok((drain::texts(|document| reader.read(document))?, reader.tally()))
    }

    fn pair(id: &str, text: &str) -> (String, String) {
        (id.to_owned(), text.to_owned())
    }

    #[test]
    fn paragraphs_end_at_blank_lines() {
        let bytes = "\u{feff}\n one\r\ntwo \n \t\n\nné\n".as_bytes();
        let (all, tally) = read(bytes, Unit::Paragraph).unwrap();
        assert_eq!(all, [pair("2", "one\ntwo"), pair("6", "né")]);
        assert_eq!((tally.read, tally.kept, tally.lines, tally.bytes), (2, 2, 6, bytes.len() as u64));
        assert!(read(b"", Unit::Paragraph).unwrap().0.is_empty());
    }

    #[test]
    fn lines_are_documents_and_blank_ones_are_counted() {
        let (all, tally) = read(b"one\n\n two", Unit::Line).unwrap();
        assert_eq!(all, [pair("1", "one"), pair("3", "two")]);
        assert_eq!((tally.read, tally.kept, tally.dropped["blank"]), (3, 2, 1));
    }

    #[test]
    fn what_is_no_text_or_has_no_end_is_refused_with_its_line() {
        let message = read(b"one\n\xff\n", Unit::Paragraph).unwrap_err();
        assert!(message.starts_with("some.txt: line 2: byte 1 of the line is not valid UTF-8"), "{message}");
        let endless = "a line of text\n".repeat((LONGEST >> 3) - 1);
        let message = read(format!("\n{endless}").as_bytes(), Unit::Paragraph).unwrap_err();
        assert!(message.starts_with("some.txt: line 2: the paragraph that begins here"), "{message}");
    }
}
