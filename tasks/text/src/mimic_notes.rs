//! Notes of MIMIC-III (Johnson et al. 2016), `NOTEEVENTS.csv`, as documents.
//!
//! A row is a note: `TEXT`, called by its `ROW_ID`. Columns are found by their names in the header, whatever their case and order; texts
//! stand in double quotes and span lines.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::mimic_table::Table;
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels};

/// What becomes of the marks that stand where something was removed to protect the patient (`[**2151-7-16**]`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deidentified {
    /// They stay as published.
    #[default]
    Keep,
    /// Each is replaced by a space.
    Remove,
}

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Note categories to read (`Discharge summary`), surrounding blanks ignored; all of them if empty.
    ///
    /// Source: ours: because a corpus is read whole unless the config says otherwise.
    #[serde(default)]
    pub categories: Vec<String>,
    /// What to do with de-identification placeholders (`[**2151-7-16**]`).
    ///
    /// Source: ours: because texts are read as published unless the config says otherwise.
    #[serde(default)]
    pub deidentified: Deidentified,
}

const MARKED: &str = "marked as an error";
const OTHER: &str = "another category";
const NO_TEXT: &str = "no text";
const REMOVED: &str = "marks of removed text became blanks";

const COLUMNS: [&str; 4] = ["ROW_ID", "CATEGORY", "ISERROR", "TEXT"];
const ROW_ID: usize = 0;
const CATEGORY: usize = 1;
const ISERROR: usize = 2;
const TEXT: usize = 3;

/// What becomes of a row.
enum Taken {
    AsPublished,
    Fixed,
    Dropped(&'static str),
}

/// Reads note after note.
#[derive(Debug)]
struct Reader<'f, R> {
    table: Table<'f, R, 4>,
    config: Config,
    tally: Tally,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Notes of `reader`; `file` names it in messages.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let mended = match config.deidentified {
            Deidentified::Keep => None,
            Deidentified::Remove => Some((REMOVED, 0)),
        };
        let mended = mended.into_iter().collect();
        let tally = Tally { mended, ..Tally::new(file, &[MARKED, OTHER, NO_TEXT]) };
        Self { table: Table::new(reader, file, COLUMNS), config, tally }
    }

    /// Fills `document` with the row that was read last, unless it is to be left out.
    fn take(&self, document: &mut Document) -> Result<Taken, ReadError> {
        match self.table.text(ISERROR)?.trim() {
            "" | "0" => {}
            "1" => return Ok(Taken::Dropped(MARKED)),
            _ => return Err(self.table.wrong(ISERROR, "1, 0 or nothing")),
        }
        let (category, wanted) = (self.table.text(CATEGORY)?.trim(), &self.config.categories);
        if !wanted.is_empty() && wanted.iter().all(|wanted| wanted.trim() != category) {
            return Ok(Taken::Dropped(OTHER));
        }
        let text = self.table.text(TEXT)?;
        if text.trim().is_empty() {
            return Ok(Taken::Dropped(NO_TEXT));
        }
        let id = self.table.text(ROW_ID)?.trim();
        if id.is_empty() {
            return Err(self.table.wrong(ROW_ID, "a number"));
        }
        document.id.push_str(id);
        match self.config.deidentified {
            Deidentified::Keep => document.text.push_str(text),
            Deidentified::Remove => {
                if unmark(text, &mut document.text) > 0 {
                    return Ok(Taken::Fixed);
                }
            }
        }
        Ok(Taken::AsPublished)
    }
}

/// Appends `text` with a blank for each `[**...**]`; how many there were. What is opened and not closed before the next is no mark.
fn unmark(text: &str, to: &mut String) -> u64 {
    const OPEN: &str = "[**";
    const CLOSE: &str = "**]";
    let (mut marks, mut rest) = (0, text);
    while let Some(open) = rest.find(OPEN) {
        let inside = open + OPEN.len();
        let Some(length) = rest[inside..].find(CLOSE) else { break };
        // The last opening in front of a closing is the mark's.
        let open = rest[..inside + length].rfind(OPEN).unwrap_or(open);
        to.push_str(&rest[..open]);
        to.push(' ');
        rest = &rest[inside + length + CLOSE.len()..];
        marks += 1;
    }
    to.push_str(rest);
    marks
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, self.clone())))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next note; `false` at the end of the file. What was marked as an error (`ISERROR` is 1), notes of other
    // categories than those asked for and notes without text are left out and counted.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while self.table.advance()? {
            match self.take(document)? {
                Taken::AsPublished => {}
                Taken::Fixed => *self.tally.mended.entry(REMOVED).or_insert(0) += 1,
                Taken::Dropped(reason) => {
                    self.tally.drop(reason);
                    continue;
                }
            }
            self.tally.keep();
            return Ok(true);
        }
        Ok(false)
    }

    fn counts(&self) -> Counts {
        Counts::of(self.table.tally(&self.tally))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;
    use crate::damage::assert_counts_or_refuses;
    use crate::drain;

    const FILE: &str = "\"ROW_ID\",\"SUBJECT_ID\",\"HADM_ID\",\"CHARTDATE\",\"CATEGORY\",\"ISERROR\",\"TEXT\"\n\
        11,1,2,2151-08-04,\"Discharge summary\",,\"Admission [**2151-7-16**]\nsaid \"\"fine\"\", é.\n\"\n\
        12,1,2,2151-08-04,\"Radiology\",0,\"No finding.\"\n\
        13,1,2,2151-08-04,\"Discharge summary\",1,\"Not true.\"\n\
        14,1,2,2151-08-04,\"Physician \",,\" \n\"\n\
        15,1,,2151-08-05,\"Physician \",,\"Seen by Dr. [**Last Name (un) 1**][**2**] today\"\n";

    fn config(categories: &[&str], deidentified: Deidentified) -> Config {
        Config { categories: categories.iter().map(|&name| name.to_owned()).collect(), deidentified }
    }

    fn all(deidentified: Deidentified) -> Config {
        config(&[], deidentified)
    }

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.csv"), config);
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
    }

    #[test]
    fn notes_are_documents_as_published() {
        for mark in ["", "\u{feff}"] {
            let (notes, tally) = read(format!("{mark}{FILE}").as_bytes(), all(Deidentified::Keep)).unwrap();
            let expected = [
                ("11", "Admission [**2151-7-16**]\nsaid \"fine\", é.\n"),
                ("12", "No finding."),
                ("15", "Seen by Dr. [**Last Name (un) 1**][**2**] today"),
            ];
            assert_eq!(notes, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
            assert_eq!((tally.read, tally.kept, tally.dropped[MARKED], tally.dropped[NO_TEXT]), (5, 3, 1, 1));
            assert_eq!((tally.bytes, tally.lines), ((mark.len() + FILE.len()) as u64, 9));
            assert!(tally.mended.is_empty());
        }
    }

    #[test]
    fn categories_are_chosen_and_marks_removed() {
        let (notes, tally) =
            read(FILE.as_bytes(), config(&["Physician", "Discharge summary"], Deidentified::Remove)).unwrap();
        let expected = [("11", "Admission  \nsaid \"fine\", é.\n"), ("15", "Seen by Dr.    today")];
        assert_eq!(notes, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!((tally.dropped[OTHER], tally.dropped[MARKED], tally.mended[REMOVED]), (1, 1, 2));
        assert_eq!(read(FILE.as_bytes(), config(&["Nursing"], Deidentified::Keep)).unwrap().0, []);
    }

    #[test]
    fn only_whole_marks_become_blanks() {
        let unmarked = |text: &str| {
            let mut to = String::new();
            let marks = unmark(text, &mut to);
            (to, marks)
        };
        assert_eq!(unmarked("a [**b**] c"), ("a   c".to_owned(), 1));
        assert_eq!(unmarked("a [** b [**c**] d **] [**"), ("a [** b   d **] [**".to_owned(), 1));
        assert_eq!(unmarked("[**]"), ("[**]".to_owned(), 0));
        assert_eq!(unmarked("[****]"), (" ".to_owned(), 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            read(FILE.replacen(from, to, 1).as_bytes(), all(Deidentified::Keep)).unwrap_err()
        };
        let message = refused("\"ISERROR\"", "\"WRONG\"");
        assert!(
            message.starts_with(
                "some.csv: line 1: column ISERROR is missing or there twice, the header has ROW_ID, SUBJ"
            ),
            "{message}"
        );
        let message = refused("\"Radiology\",0", "\"Radiology\"");
        assert!(message.starts_with("some.csv: line 5: 6 fields, expected 7 as in the header"), "{message}");
        let message = refused("\"Radiology\",0", "\"Radiology\",2");
        assert!(
            message
                .starts_with("some.csv: line 5, column 6 (ISERROR): found \"2\", expected 1, 0 or nothing"),
            "{message}"
        );
        assert!(
            refused("\n12,", "\n ,").contains("line 5, column 1 (ROW_ID): found \"\", expected a number")
        );
        let message =
            read(FILE.replace("\n12", "\n ").replace('\n', "\r\n").as_bytes(), all(Deidentified::Keep))
                .unwrap_err();
        assert!(message.contains("line 5, column 1 (ROW_ID)"), "{message}");
        let message =
            read(FILE.replace(",0,", ",").replace('\n', "\r\n").as_bytes(), all(Deidentified::Keep))
                .unwrap_err();
        assert!(message.contains("line 5: 6 fields"), "{message}");
        let cut = read(&FILE.as_bytes()[..FILE.len() - 9], all(Deidentified::Keep)).unwrap_err();
        assert!(
            cut.starts_with("some.csv: line 9, column ")
                && cut.contains("the file ends here inside double quotes"),
            "{cut}"
        );
        let bytes = [FILE.split("finding").next().unwrap().as_bytes(), b"\xe9\"\n"].concat();
        let message = read(&bytes, all(Deidentified::Keep)).unwrap_err();
        assert!(
            message.contains("line 5, column 7 (TEXT): found") && message.contains("expected UTF-8"),
            "{message}"
        );
        assert!(read(b"", all(Deidentified::Keep)).unwrap_err().contains("column ROW_ID is missing"));
    }

    #[test]
    fn a_quote_that_is_never_closed_does_not_fill_the_memory() {
        let endless = Read::chain(&FILE.as_bytes()[..FILE.len() - 9], io::repeat(b'x'));
        let mut reader =
            Reader::new(io::BufReader::new(endless), Path::new("some.csv"), all(Deidentified::Keep));
        let mut document = Document::default();
        let message = loop {
            match reader.read(&mut document, &mut Labels::default()) {
                Ok(more) => assert!(more),
                Err(error) => break error.to_string(),
            }
        };
        assert!(message.starts_with("some.csv: line 9: the row that begins here has more"), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let read = |bytes: &[u8]| read(bytes, all(Deidentified::Remove)).map(|(_, tally)| tally);
        assert_counts_or_refuses(FILE.as_bytes(), read);
    }
}
