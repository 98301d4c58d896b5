//! Articles of WikiSection (Arnold et al. 2019) as documents: a file is a list of articles, or one article.
//!
//! `[{"id": "...", "type": "disease", "title": "...", "abstract": "...", "text": "...", "annotations": [...]}, ...]`; of these `id` and
//! `text` are read, all sections of an article together.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use serde::Deserialize;

use super::json::{Around, Objects};
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels};

#[derive(Deserialize)]
struct Article<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

const EXPECTED: &str = "an article of WikiSection, with `id` and `text`";
const NO_TEXT: &str = "no text";

/// Articles as published; there is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Articles;

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    objects: Objects<'f, R>,
    tally: Tally,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Articles of `reader`; `file` names it in messages.
    fn new(reader: R, file: &'f Path) -> Self {
        Self { objects: Objects::new(reader, file, Around::List), tally: Tally::new(file, &[NO_TEXT]) }
    }
}

impl TextFormat for Articles {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one; `false` at the end of the file. Articles of nothing but white space are left out and
    // counted.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while let Some(object) = self.objects.next(EXPECTED)? {
            let article: Article<'_> = object.parse(EXPECTED)?;
            if article.text.trim().is_empty() {
                self.tally.drop(NO_TEXT);
                continue;
            }
            document.id.push_str(&article.id);
            document.text.push_str(&article.text);
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

    const FILE: &str = "[{\n \"id\" : \"https://example.org/Fever\", \"type\":\"disease\", \"title\":\"Fever\", \"abstract\":\"Hot.\",\n \
        \"text\":\"Signs\\nand \\u00e9 \\\"this\\\".\\n\", \"annotations\":[{\"class\":\"SectionAnnotation\",\"begin\":0,\"length\":19}]},\r\n\
        {\"id\":\"2\",\"text\":\" \\n\"},{\"text\":\"Cough.\",\"id\":\"3\"}]\n";

    fn read(bytes: &[u8]) -> Result<(Vec<(String, String)>, Tally), String> {
        let mut reader = Reader::new(bytes, Path::new("some.json"));
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
    }

    #[test]
    fn articles_are_documents_in_lists_or_alone() {
        let (all, tally) = read(FILE.as_bytes()).unwrap();
        let expected = [("https://example.org/Fever", "Signs\nand é \"this\".\n"), ("3", "Cough.")];
        assert_eq!(all, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert_eq!((tally.read, tally.kept, tally.dropped[NO_TEXT]), (3, 2, 1));
        assert_eq!((tally.bytes, tally.lines), (FILE.len() as u64, 4));
        let (alone, _) = read(b"{\"id\":\"1\",\"text\":\"a\"}").unwrap();
        assert_eq!(alone, [("1".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn an_article_without_text_or_id_is_refused_with_its_place() {
        let message = read(b"[\n{\"id\":\"1\"}]").unwrap_err();
        let expected = "some.json: line 2, column 10 (byte of the line): missing field `text`, expected an article of WikiSection";
        assert!(message.starts_with(expected), "{message}");
        assert!(read(b"[{\"text\":\"1\"}]").unwrap_err().contains("missing field `id`"));
        assert!(read(b"[{\"id\":\"1\",\"text\":\"\xff\"}]").unwrap_err().contains("invalid unicode"));
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        assert_counts_or_refuses(FILE.as_bytes(), |bytes| read(bytes).map(|(_, tally)| tally));
    }
}
