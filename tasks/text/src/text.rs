//! Plain text as documents: one per paragraph, or one per line.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::fault::LONGEST;
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels, unmarked};

/// What one document of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A document is everything up to the next blank line; its line breaks are kept.
    Paragraph,
    /// A document is a line; blank lines are skipped.
    Line,
}

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    unit: Unit,
    tally: Tally,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, unit: Unit) -> Self {
        let reasons: &[&str] = match unit {
            Unit::Paragraph => &[],
            Unit::Line => &["blank"],
        };
        let lines = Lines::new(reader, file);
        Self { lines, file, unit, tally: Tally::new(file, reasons) }
    }
}

impl TextFormat for Unit {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one; `false` at the end of the file. White space around lines is left out.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        let mut first = 0;
        while let Some(line) = self.lines.next_line()? {
            let text = unmarked(line.text).trim();
            match (text.is_empty(), self.unit) {
                (true, Unit::Line) => {
                    self.tally.drop("blank");
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
                let found = format!("the paragraph that begins here has more than {LONGEST} bytes");
                let remedy = "put some in, or read each line as a document";
                return Err(ReadError::new(place, found, "blank lines between paragraphs", remedy));
            }
            if self.unit == Unit::Line {
                break;
            }
        }
        let found = !document.text.is_empty();
        if found {
            self.tally.keep();
        }
        Ok(found)
    }

    fn counts(&self) -> Counts {
        Counts::of(Tally { bytes: self.lines.bytes(), lines: self.lines.lines(), ..self.tally.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain;

    fn read(bytes: &[u8], unit: Unit) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.txt"), unit);
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
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
