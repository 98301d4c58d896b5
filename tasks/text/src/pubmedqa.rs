//! Abstracts of PubMedQA (Jin et al. 2019) as documents: a file is one object whose keys are PMIDs.
//!
//! `{"21645374": {"QUESTION": "...", "CONTEXTS": ["...", ...], "LONG_ANSWER": "...", ...}, ...}`; a document is called by its PMID, its
//! contexts are its paragraphs. A context is an abstract without its conclusion, which is the long answer.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::json::{Around, Objects};
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels, paragraph};

/// What becomes of long answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LongAnswers {
    /// They are left out.
    #[default]
    Leave,
    /// Each is the last paragraph of its document.
    Take,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to do with long answers, the conclusions of the abstracts.
    ///
    /// Source: ours: because they answer the questions that a benchmark on PubMedQA may ask.
    #[serde(default)]
    pub long_answers: LongAnswers,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "CONTEXTS")]
    contexts: Vec<String>,
    #[serde(rename = "LONG_ANSWER", borrow)]
    long_answer: Option<Cow<'a, str>>,
}

const EXPECTED: &str = "PMIDs, and to each an object with `CONTEXTS`";
const WITH_ANSWERS: &str = "`LONG_ANSWER` in every entry (or set `long_answers` to `leave`)";
const NO_TEXT: &str = "no text";

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    objects: Objects<'f, R>,
    config: Config,
    tally: Tally,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Entries of `reader`; `file` names it in messages.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        Self { objects: Objects::new(reader, file, Around::Map), config, tally: Tally::new(file, &[NO_TEXT]) }
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one; `false` at the end of the file. Entries of nothing but white space are left out and
    // counted.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while let Some(object) = self.objects.next(EXPECTED)? {
            let entry: Entry<'_> = object.parse(EXPECTED)?;
            for context in &entry.contexts {
                paragraph(&mut document.text, context);
            }
            match (self.config.long_answers, &entry.long_answer) {
                (LongAnswers::Leave, _) => {}
                (LongAnswers::Take, Some(answer)) => paragraph(&mut document.text, answer),
                (LongAnswers::Take, None) => {
                    let problem = format!("entry {:?} has no `LONG_ANSWER`", object.key);
                    return Err(object.wrong(problem, WITH_ANSWERS));
                }
            }
            if document.text.is_empty() {
                self.tally.drop(NO_TEXT);
                continue;
            }
            document.id.push_str(&object.key);
            self.tally.keep();
            return Ok(true);
        }
        Ok(false)
    }

    fn counts(&self) -> Counts {
        Counts::of(self.objects.tally(&self.tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_counts_or_refuses;
    use crate::drain;

    const LEAVE: Config = Config { long_answers: LongAnswers::Leave };
    const TAKE: Config = Config { long_answers: LongAnswers::Take };
    const FILE: &str = "{\n    \"101\": {\n        \"QUESTION\": \"Is it?\", \"CONTEXTS\": [\"One {\\u0394}.\", \" \", \"Two.\"],\n\
        \"LABELS\": [\"AIM\"], \"YEAR\": null, \"final_decision\": \"yes\", \"LONG_ANSWER\": \"It is.\"},\n\
        \"102\": {\"CONTEXTS\": [], \"LONG_ANSWER\": \"\"},\n\"103\": {\"CONTEXTS\": [\"Three.\"], \"LONG_ANSWER\": \"No.\"}\n}\n";

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.json"), config);
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
    }

    #[test]
    fn contexts_are_paragraphs_of_documents() {
        let (all, tally) = read(FILE.as_bytes(), LEAVE).unwrap();
        let expected = [("101", "One {Δ}.\n\nTwo."), ("103", "Three.")];
        assert_eq!(all, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!((tally.read, tally.kept, tally.dropped[NO_TEXT]), (3, 2, 1));
        let (all, _) = read(FILE.as_bytes(), TAKE).unwrap();
        assert_eq!(all[0].1, "One {Δ}.\n\nTwo.\n\nIt is.");
    }

    #[test]
    fn other_files_are_refused_with_the_place() {
        let truth = read(b"{\n\"101\": \"yes\"}", LEAVE).unwrap_err();
        let expected = "some.json: line 2, column 8 (byte of the line): found '\"', expected PMIDs, and to each an object";
        assert!(truth.starts_with(expected), "{truth}");
        assert!(read(b"[]", LEAVE).unwrap_err().contains("found '[', expected PMIDs"));
        let without = b"{\"1\":{\"CONTEXTS\":[\"a\"]}}";
        assert_eq!(read(without, LEAVE).unwrap().0.len(), 1);
        let message = read(without, TAKE).unwrap_err();
        assert!(
            message.contains("column 6 (byte of the line): entry \"1\" has no `LONG_ANSWER`, expected"),
            "{message}"
        );
        assert!(read(b"{\"1\":{}}", LEAVE).unwrap_err().contains("missing field `CONTEXTS`"));
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        assert_counts_or_refuses(FILE.as_bytes(), |bytes| read(bytes, TAKE).map(|(_, tally)| tally));
    }
}
