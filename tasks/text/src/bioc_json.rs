//! Documents of passages with their mentions as BioC's JSON has them, and as PubTator3's API gives them.
//!
//! `{"documents": [{"id": "...", "passages": [{"infons": {}, "offset": 0, "text": "...", "sentences": [], "annotations": [{"infons":
//! {"type": "Disease", "identifier": "MESH:D003924"}, "text": "...", "locations": [{"offset": 12, "length": 4}]}]}]}]}`. The list may be called
//! `PubTator3` instead; collections may lie in a list, and a line may be a document by itself. All else is as in BioC's XML ([`super::bioc`]):
//! offsets count the document's characters, and one document at a time is in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use base::line::Place;
use base::read::ReadError;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bioc;
use super::bioc::draft::{self, Annotation, Draft, Holds, RELATION, shape};
use super::json::nested::{Known, Nested};
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::{Counts, Document, Labels};

/// How a file is to be read: as BioC's XML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Config(pub bioc::Config);

const KNOWN: Known = Known {
    lists: &["documents", "PubTator3"],
    by: "passages",
    expected: "a collection of BioC (an object with a list `documents` or `PubTator3`), or a document with `passages`",
};
const DOCUMENT: &str = "a document of BioC, with `id` and `passages`";

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    id: Id<'a>,
    #[serde(borrow)]
    passages: Vec<Part<'a>>,
    #[serde(borrow, default)]
    annotations: Vec<Mention<'a>>,
    #[serde(default)]
    relations: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'a> {
    #[serde(borrow)]
    Text(Cow<'a, str>),
    Number(u64),
}

/// A passage, or a sentence of one.
#[derive(Deserialize)]
struct Part<'a> {
    offset: Option<usize>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    sentences: Vec<Part<'a>>,
    #[serde(borrow, default)]
    annotations: Vec<Mention<'a>>,
    #[serde(default)]
    relations: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Mention<'a> {
    #[serde(default)]
    infons: BTreeMap<String, Value>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    locations: Vec<Location>,
}

#[derive(Deserialize)]
struct Location {
    offset: usize,
    length: usize,
}

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    objects: Nested<'f, R>,
    config: bioc::Config,
    counts: Counts,
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, self.0.clone()))))
    }
}

impl<'f, R: BufRead> Reader<'f, R> {
    fn new(reader: R, file: &'f Path, config: bioc::Config) -> Self {
        Self { objects: Nested::new(reader, file, KNOWN), config, counts: draft::counts(file) }
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Relations and documents without text are left out and counted.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while let Some(object) = self.objects.next()? {
            let row: Row<'_> = object.parse(DOCUMENT)?;
            document.id = match row.id {
                Id::Text(id) => id.trim().to_owned(),
                Id::Number(id) => id.to_string(),
            };
            let place = object.place();
            if document.id.is_empty() {
                return Err(shape(place, "an empty `id`", "an `id` of each document"));
            }
            let mut filling = Filling {
                config: &self.config,
                place,
                draft: Draft::default(),
                annotations: 0,
                relations: 0,
            };
            for passage in &row.passages {
                filling.part(passage, Holds::Passage, document)?;
            }
            filling.mentions(&row.annotations)?;
            let relations = filling.relations + row.relations.len() as u64;
            self.counts.documents.drop_all(RELATION, relations);
            if filling.draft.finish(document, labels, &self.config, &mut self.counts)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn counts(&self) -> Counts {
        Counts { documents: self.objects.tally(&self.counts.documents), spans: self.counts.spans.clone() }
    }
}

/// A document while it is read.
struct Filling<'c> {
    config: &'c bioc::Config,
    /// Where it begins in the file.
    place: Place,
    draft: Draft,
    annotations: usize,
    relations: u64,
}

impl Filling<'_> {
    fn part(&mut self, part: &Part<'_>, holds: Holds, document: &mut Document) -> Result<(), ReadError> {
        if let Some(text) = &part.text {
            let Some(offset) = part.offset else {
                let found = "a `text` without an `offset`";
                return Err(shape(self.place.clone(), found, "an `offset` beside each text"));
            };
            self.draft.text(offset, text, holds, &mut document.text, self.place.clone())?;
        }
        self.mentions(&part.annotations)?;
        self.relations += part.relations.len() as u64;
        for sentence in &part.sentences {
            self.part(sentence, Holds::Sentence, document)?;
        }
        Ok(())
    }

    fn mentions(&mut self, mentions: &[Mention<'_>]) -> Result<(), ReadError> {
        for mention in mentions {
            self.annotations += 1;
            let column = Some((self.annotations, "number of the annotation"));
            let place = Place { column, ..self.place.clone() };
            let mut annotation = Annotation::at(place.clone());
            for (key, value) in &mention.infons {
                said(value, &mut |text| annotation.infon(key, text, self.config));
            }
            for Location { offset, length } in &mention.locations {
                let Some(end) = offset.checked_add(*length) else {
                    let found = format!("offset {offset} and length {length}");
                    return Err(shape(place, &found, "a location in the text"));
                };
                annotation.pieces.push(*offset..end);
            }
            annotation.words = mention.text.as_deref().map(str::to_owned);
            self.draft.annotate(annotation, place)?;
        }
        Ok(())
    }
}

/// What an infon says: a text, a number, or several.
fn said(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text.trim()),
        Value::Number(number) => take(&number.to_string()),
        Value::Array(all) => all.iter().for_each(|value| said(value, take)),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::bioc::Composites;
    use super::draft::{EMPTY, PARTS};
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::mention::Misfits;
    use crate::{Entity, drain};

    const ONE: &str = r#"{"_id": "7|None", "id": " 7 ", "infons": {}, "passages": [
        {"infons": {"type": "title"}, "offset": 0, "text": "Née & <b>", "sentences": [], "annotations": [
          {"id": "0", "infons": {"type": "Sign", "identifier": "D1|D2", "valid": true, "normalized": [1]}, "text": "& <b>",
           "locations": [{"offset": 4, "length": 5}]}], "relations": []},
        {"offset": 12, "text": "heart and lung pain", "annotations": [
          {"infons": {"type": "Sign", "CompositeRole": "CompositeMention", "identifier": ["D3", "D4"]}, "text": "heart and lung pain",
           "locations": [{"offset": 12, "length": 19}]},
          {"infons": {"type": "Sign", "CompositeRole": "IndividualMention", "identifier": "D3"}, "text": "heart pain",
           "locations": [{"offset": 12, "length": 5}, {"offset": 27, "length": 4}]}]}],
       "relations": [{"id": "R1", "infons": {}, "nodes": []}]}"#;
    const TWO: &str = r#"{"id": 8, "passages": [{"offset": 2, "sentences": [{"offset": 2, "text": "a", "annotations": [
        {"infons": {"type": "S", "identifier": null}, "locations": [{"offset": 2, "length": 1}]}]}]}]}"#;
    const THREE: &str = r#"{"id": "9", "passages": []}"#;

    fn whole() -> String {
        format!(
            "\u{feff}{{\"source\": \"x [{{\", \"infons\": {{\"a\": [1]}}, \"date\": -1.5e3, \"documents\": [{ONE},\n{TWO}, {THREE}], \"key\": null}}\n"
        )
    }

    fn config() -> bioc::Config {
        let concepts = vec!["identifier".to_owned()];
        bioc::Config { concepts, composites: Composites::Whole, misfits: Misfits::Refuse }
    }

    fn read(file: &[u8], config: bioc::Config) -> Result<(Vec<Document>, Counts), String> {
        let mut reader = Reader::new(file, Path::new("some.json"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels));
        Ok((all.map_err(|error| error.to_string())?, reader.counts()))
    }

    fn said(document: &Document) -> Vec<String> {
        let entity = |e: &Entity| {
            let words: Vec<&str> = e.pieces.iter().map(|piece| &document.text[piece.clone()]).collect();
            format!("{}:{}", words.join("+"), e.concepts.join("+"))
        };
        document.entities.iter().map(entity).collect()
    }

    #[test]
    fn passages_stand_where_they_say_with_their_mentions() {
        let (all, counts) = read(whole().as_bytes(), config()).unwrap();
        let texts: Vec<(&str, &str)> = all.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
        assert_eq!(texts, [("7", "Née & <b>\n  heart and lung pain"), ("8", "\n a")]);
        assert_eq!(said(&all[0]), ["& <b>:D1+D2", "heart and lung pain:D3+D4"]);
        assert_eq!((said(&all[1]), all[1].sentences.as_slice()), (vec!["a:".to_owned()], &[2][..]));
        let documents = &counts.documents;
        assert_eq!((documents.kept, documents.dropped[RELATION], documents.dropped[EMPTY]), (2, 1, 1));
        assert_eq!((counts.spans.read, counts.spans.kept, counts.spans.dropped[PARTS]), (4, 3, 1));
        assert_eq!(documents.bytes, whole().len() as u64);
        let parts = read(whole().as_bytes(), bioc::Config { composites: Composites::Parts, ..config() });
        assert_eq!(said(&parts.unwrap().0[0]), ["& <b>:D1+D2", "heart+pain:D3"]);
    }

    #[test]
    fn collections_may_be_called_otherwise_lie_in_a_list_or_be_documents_by_line() {
        let (expected, _) = read(whole().as_bytes(), config()).unwrap();
        for file in [
            format!("{{\"PubTator3\": [{ONE}, {TWO}]}}"),
            format!(
                "[{{\"documents\": [{ONE}], \"x\": 1}}, {{\"documents\": []}}, {{\"y\": \"]\", \"documents\": [{TWO}]}}]"
            ),
            format!("{{\"documents\": [{ONE}]}}\n{{\"documents\": [{TWO}]}}"),
            format!("{}\n{}\n\n", ONE.replace('\n', " "), TWO.replace('\n', " ")),
            format!("[{ONE},{TWO}]"),
        ] {
            assert_eq!(read(file.as_bytes(), config()).map(|(all, _)| all), Ok(expected.clone()), "{file}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, expected) in [
            (
                "\"offset\": 4,",
                "\"offset\": 3,",
                "line 1, column 1 (number of the annotation): the mention does not fit: \" & <b\" stands at",
            ),
            (
                "\"offset\": 4,",
                "\"offset\": \"4\",",
                "(byte of the line): invalid type: string \"4\", expected usize",
            ),
            (
                "\"offset\": 12,",
                "\"offset\": 8,",
                "found offset 8, where 9 characters stand already, expected texts in order and apart",
            ),
            ("\"offset\": 12,", "\"offset\": 99999999999,", "the document has more than 33554432 bytes"),
            ("\"offset\": 12,", "", "found a `text` without an `offset`"),
            (
                "{\"type\": \"Sign\", \"id",
                "{\"id",
                "line 1, column 1 (number of the annotation): found an annotation without its kind",
            ),
            ("\" 7 \"", "\" \"", "found an empty `id`, expected an `id` of each document"),
            (
                "\"id\": \" 7 \", ",
                "",
                "missing field `id`, expected a document of BioC, with `id` and `passages`",
            ),
            (
                "\"documents\"",
                "\"articles\"",
                "line 1, column 4 (byte of the line): an object without `documents` or `PubTator3`, expected a collection of BioC",
            ),
            ("\"documents\": [", "\"documents\": ", "expected a list ([)"),
            ("-1.5e3", "-1.5e", "expected a value"),
            ("],  \"key\"", "] \"key\"", "a comma, or the end of the object (})"),
            ("\"key\": null}", "\"key\": null", "expected a comma, or the end of the object (})"),
            ("\"key\": null}", "\"key\": null}}", "expected a collection of BioC"),
        ] {
            let file = whole().replace("], \"key\"", "],  \"key\"");
            assert!(file.contains(from), "{from}");
            let message = read(file.replacen(from, to, 1).as_bytes(), config()).unwrap_err();
            assert!(message.starts_with("some.json: line ") && message.contains(expected), "{to}: {message}");
        }
    }

    #[test]
    fn what_is_no_collection_is_said_with_its_place() {
        for (file, expected) in [
            (
                "",
                "line 1, column 1 (byte of the line): found the end of the file, expected a collection of BioC",
            ),
            ("[]", "found ']', expected a collection of BioC"),
            ("[{\"documents\": []}]x", "found 'x', expected the end of the file"),
            (
                "[{\"documents\": []} {\"documents\": []}]",
                "found '{', expected a comma, or the end of the list (])",
            ),
            ("[{\"documents\": []},]", "found ']', expected a collection of BioC"),
            ("{\"documents\": [{} {}]}", "missing field `id`"),
        ] {
            let message = read(file.as_bytes(), config()).unwrap_err();
            assert!(message.starts_with("some.json: ") && message.contains(expected), "{file}: {message}");
        }
        assert_eq!(read(b"{\"documents\": []}", config()).unwrap().0, []);
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for misfits in [Misfits::Refuse, Misfits::Drop] {
            assert_sound_or_refuses(whole().as_bytes(), |bytes| {
                read(bytes, bioc::Config { misfits, ..config() }).map(|(all, _)| all)
            });
        }
    }

    #[test]
    fn a_document_without_end_does_not_fill_the_memory() {
        let begun = "{\"documents\": [{\"id\": \"1\", \"passages\": [{\"text\": \"".as_bytes();
        let endless = std::io::BufReader::new(std::io::Read::chain(begun, std::io::repeat(b'x')));
        let mut reader = Reader::new(endless, Path::new("some.json"), config());
        let read = reader.read(&mut Document::default(), &mut Labels::default());
        let message = read.unwrap_err().to_string();
        assert!(
            message.starts_with("some.json: line 1, column 16 (byte of the line): the document that begins"),
            "{message}"
        );
    }
}
