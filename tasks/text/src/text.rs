//! Plain text as documents: one per paragraph, per line, or per file.

use std::io::BufRead;
use std::path::Path;

use base::bom::Unmarked;
use base::funnel::Tally;
use base::line::{Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::fault::{self, LONGEST};
use super::reader::{Bytes, DocumentReader, Only, Opened, TextFormat};
use super::{Counts, Document, Labels, unmarked};

/// What one document of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A document is everything up to the next blank line; its line breaks are kept.
    Paragraph,
    /// A document is a line; blank lines are skipped.
    Line,
    /// A document is a file, as it stands there: with its white space and line ends, without the mark with which UTF-8 may begin.
    File,
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
        let reasons: &[&str] = if unit == Unit::Line { &["blank"] } else { &[] };
        let lines = Lines::new(reader, file);
        Self { lines, file, unit, tally: Tally::new(file, reasons) }
    }
}

impl TextFormat for Unit {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(match self {
            Unit::File => Box::new(Only::new(file, move |document: &mut Document, _: &mut Labels| {
                whole(bytes, file, document)
            })),
            Unit::Paragraph | Unit::Line => Box::new(Reader::new(bytes, file, *self)),
        })
    }
}

/// Fills `document` with a file, whose name becomes its id.
fn whole(bytes: Bytes<'_>, file: &Path, document: &mut Document) -> Result<Counts, ReadError> {
    document.clear();
    document.text = fault::whole_text(Unmarked::new(bytes), file, "a text of one document")?;
    document.id.push_str(&file.file_name().unwrap_or_default().to_string_lossy());
    let mut tally = Tally::new(file, &["blank"]);
    tally.bytes = document.text.len() as u64;
    tally.lines = document.text.lines().count() as u64;
    if document.text.trim().is_empty() {
        tally.drop("blank");
    } else {
        tally.keep();
    }
    Ok(Counts::of(tally))
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
                (true, _) if document.text.is_empty() => continue,
                (true, _) => break,
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
    fn a_file_is_read_as_it_stands() {
        let read = |bytes: &[u8]| -> Result<(Vec<Document>, Tally), String> {
            let file = Path::new("notes/a.txt");
            let mut reader = Unit::File.reader(Box::new(std::io::Cursor::new(bytes.to_vec())), file).unwrap();
            let (mut document, mut all) = (Document::default(), Vec::new());
            while reader.read(&mut document, &mut Labels::default()).map_err(|error| error.to_string())? {
                all.push(document.clone());
            }
            Ok((all, reader.counts().documents))
        };
        let (all, tally) = read("\u{feff} one\r\n\r\ntwo \n".as_bytes()).unwrap();
        assert_eq!((all[0].id.as_str(), all[0].text.as_str(), all.len()), ("a.txt", " one\r\n\r\ntwo \n", 1));
        assert_eq!((tally.read, tally.kept, tally.lines), (1, 1, 3));
        let (all, tally) = read(b" \n").unwrap();
        assert_eq!((all.len(), tally.dropped["blank"]), (0, 1));
        let message = read(b"one\n\xfftwo").unwrap_err();
        assert_eq!(
            message,
            "notes/a.txt: line 2: byte 5 of the file is not valid UTF-8, expected UTF-8; convert it (iconv -t UTF-8)"
        );
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
