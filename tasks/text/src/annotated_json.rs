//! Documents with words, entities and dependencies as Stanza and spaCy print them in JSON, one document a line.
//!
//! Stanza's (`doc.to_dict()`) is a list of sentences, each a list of `{"id", "text", "start_char", "end_char", "ner", "head"}`; the text is
//! made of the words, with spaces between them. spaCy's (`doc.to_json()`) is `{"text", "ents": [{"start", "end", "label"}], "tokens":
//! [{"start", "end", "head"}]}`. Places are characters; keys that have no meaning here are left out.

mod spacy;
mod stanza;

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Line, Lines};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::conll::MENDED;
use super::conllu::Phrases;
use super::fault;
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::{Counts, Document, Labels, SpanTally, subtree, unmarked};

/// Whose JSON it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Stanza: `json.dumps(doc.to_dict())`.
    Stanza,
    /// spaCy: `json.dumps(doc.to_json())`.
    Spacy,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which tool wrote the JSON.
    pub layout: Layout,
    /// How phrases are made.
    pub phrases: Phrases,
}

const WORD: &str = "number of the word";
const ENTITY: &str = "number of the entity";
const SENTENCE: &str = "number of the sentence";
const BLANK: &str = "blank line";
const EMPTY: &str = "no text";

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    config: Config,
    counts: Counts,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let documents = Tally { mended: [(MENDED, 0)].into(), ..Tally::new(file, &[BLANK, EMPTY]) };
        let counts = Counts { documents, spans: SpanTally::default() };
        Self { lines: Lines::new(reader, file), config, counts }
    }
}

/// A line's JSON.
fn parse<'a, T: Deserialize<'a>>(line: Line<'a>, expected: &'static str) -> Result<T, ReadError> {
    serde_json::from_str(unmarked(line.text)).map_err(|error| {
        let place = line.place(Some((error.column(), "byte of the line")));
        let remedy = "write one document a line, or set another `layout`";
        ReadError::new(place, fault::json(&error), expected, remedy)
    })
}

fn value(
    line: Line<'_>,
    column: (usize, &'static str),
    found: &str,
    expected: impl Into<String>,
) -> ReadError {
    let remedy = "fix the document, or write it again";
    ReadError::new(line.place(Some(column)), format!("found {found}"), expected, remedy)
}

/// How the words of a line depend on each other.
struct Dependencies<'a> {
    /// Which of the line's rows each word is.
    rows: &'a [usize],
    /// The word on which each depends.
    governors: &'a [Option<usize>],
    /// The first word of each written word.
    firsts: &'a [usize],
}

/// Appends the phrases of the words, of which those that are written begin at number `from` of the document's.
fn phrases(
    line: Line<'_>,
    phrases: Phrases,
    words: &Dependencies<'_>,
    document: &mut Document,
    from: usize,
) -> Result<(), ReadError> {
    let Phrases::Dependency(most) = phrases else { return Ok(()) };
    let cycle = |cycle: subtree::Cycle| {
        let row = words.rows.get(cycle.word).map(|&row| (row, WORD));
        let expected = "that they lead to a root";
        ReadError::new(line.place(row), subtree::CIRCLE, expected, "write the document again")
    };
    let ranges = subtree::phrases(words.governors, most).map_err(cycle)?;
    document.phrases.extend(subtree::in_bytes(&ranges, words.firsts, &document.words[from..]));
    Ok(())
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, *self))))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one and names its entities' labels; `false` at the end of the file. Blank lines and documents
    // without text are left out and counted; one whose tags break BIOES is counted as fixed. Its id is the line's number.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        while let Some(line) = self.lines.next_line()? {
            document.clear();
            if unmarked(line.text).trim().is_empty() {
                self.counts.documents.drop(BLANK);
                continue;
            }
            let broken = match self.config.layout {
                Layout::Stanza => stanza::fill(line, self.config.phrases, document, labels)?,
                Layout::Spacy => spacy::fill(line, self.config.phrases, document, labels)?,
            };
            if document.text.trim().is_empty() && document.entities.is_empty() {
                self.counts.documents.drop(EMPTY);
                continue;
            }
            document.id.push_str(&line.place(None).line.to_string());
            super::mention::sort(document);
            *self.counts.documents.mended.entry(MENDED).or_insert(0) += u64::from(broken > 0);
            self.counts.spans.read += document.entities.len() as u64;
            self.counts.spans.kept += document.entities.len() as u64;
            self.counts.documents.keep();
            return Ok(true);
        }
        document.clear();
        Ok(false)
    }

    fn counts(&self) -> Counts {
        self.counts.with_size(self.lines.bytes(), self.lines.lines())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::super::Entity;
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::drain;

    const STANZA: &str = "\u{feff}[[{\"id\":1,\"text\":\"Douleur\",\"head\":0,\"start_char\":1,\"end_char\":8,\"ner\":\"B-Sign\"},\
        {\"id\":[2,3],\"text\":\"du\",\"start_char\":9,\"end_char\":11,\"ner\":\"I-Sign\"},{\"id\":2,\"text\":\"de\",\"head\":4},\
        {\"id\":3,\"text\":\"le\",\"head\":4},{\"id\":[4],\"text\":\"né\",\"head\":1,\"start_char\":12,\"end_char\":14,\"ner\":\"E-Sign\"},\
        {\"id\":[4,1],\"text\":\"x\"}],[{\"id\":1,\"text\":\"A\",\"head\":0,\"upos\":\"X\",\"start_char\":16,\"end_char\":17,\"ner\":\"S-B\"}]]\n";

    const SPACY: &str = "{\"text\":\"née  aux reins\",\"ents\":[{\"start\":9,\"end\":14,\"label\":\"ANAT\",\"kb_id\":\"C0022646\"},{\"start\":0,\
        \"end\":3,\"label\":\"SIGN\",\"kb_id\":\"\"}],\"sents\":[{\"start\":0,\"end\":14}],\"tokens\":[{\"id\":0,\"start\":0,\"end\":3,\"head\":0},\
        {\"id\":1,\"start\":4,\"end\":5,\"head\":0},{\"id\":2,\"start\":5,\"end\":8,\"head\":3},{\"id\":3,\"start\":9,\"end\":14,\"head\":0}]}\n";

    fn config(layout: Layout) -> Config {
        Config { layout, phrases: Phrases::Dependency(NonZeroUsize::new(3).unwrap()) }
    }

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.jsonl"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    fn said(document: &Document, labels: &Labels) -> Vec<String> {
        let entity = |e: &Entity| {
            let words = &document.text[e.pieces[0].clone()];
            format!("{words}:{}:{}", labels.names()[e.label.number()], e.concepts.join("+"))
        };
        document.entities.iter().map(entity).collect()
    }

    fn words<'d>(document: &'d Document, places: &[std::ops::Range<usize>]) -> Vec<&'d str> {
        places.iter().map(|place| &document.text[place.clone()]).collect()
    }

    #[test]
    fn stanzas_words_stand_at_their_places() {
        let file = format!("{STANZA}\n[]\n{STANZA}");
        let (all, labels, counts) = read(file.as_bytes(), config(Layout::Stanza)).unwrap();
        assert_eq!(all.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["1", "4"]);
        let document = &all[0];
        assert_eq!(document.text, " Douleur du né  A");
        assert_eq!(words(document, &document.words), ["Douleur", "du", "né", "A"]);
        assert_eq!(words(document, &document.phrases), ["Douleur", "du né", "A"]);
        assert_eq!(said(document, &labels), ["Douleur du né:Sign:", "A:B:"]);
        let tally = counts.documents;
        assert_eq!(
            (tally.kept, tally.dropped[BLANK], tally.dropped[EMPTY], tally.mended[MENDED]),
            (2, 1, 1, 0)
        );
        assert_eq!(counts.spans.kept, 4);
        let plain = Config { phrases: Phrases::None, ..config(Layout::Stanza) };
        let headless = STANZA.replace("\"head\":0,", "").replace("E-Sign", "O");
        let (all, labels, counts) = read(headless.as_bytes(), plain).unwrap();
        assert_eq!(
            (said(&all[0], &labels)[0].as_str(), counts.documents.mended[MENDED]),
            ("Douleur du:Sign:", 1)
        );
        assert!(all[0].phrases.is_empty());
    }

    #[test]
    fn spacys_words_and_entities_are_places_in_its_text() {
        let (all, labels, _) = read(SPACY.as_bytes(), config(Layout::Spacy)).unwrap();
        let document = &all[0];
        assert_eq!(document.text, "née  aux reins");
        assert_eq!(words(document, &document.words), ["née", "aux", "reins"], "white space is no word");
        assert_eq!(words(document, &document.phrases), ["née", "aux reins"]);
        assert_eq!(said(document, &labels), ["née:SIGN:", "reins:ANAT:C0022646"]);
        let text = b"{\"text\":\"a\"}";
        let (all, _, _) = read(text, config(Layout::Spacy)).unwrap();
        assert_eq!((all[0].words.len(), all[0].entities.len()), (0, 0));
    }

    /// What stands in the file, what is put there instead, what is said then.
    const WRONG_STANZA: [[&str; 3]; 11] = [
        [
            "\"end_char\":8",
            "\"end_char\":7",
            "column 1 (number of the word): found \"Douleur\" at 1..7, expected a place with room for the word",
        ],
        [
            "\"start_char\":9,\"end_char\":11",
            "\"start_char\":7,\"end_char\":9",
            "column 2 (number of the word): found 7..9, expected a start of at least 8",
        ],
        [
            "\"start_char\":16,\"end_char\":17",
            "\"start_char\":99999999,\"end_char\":100000000",
            "expected words whose document has at most 16777216 bytes",
        ],
        ["\"start_char\":16,", "", "column 7 (number of the word): found \"A\" without a place"],
        ["\"id\":3", "\"id\":5", "column 4 (number of the word): found the id 5, expected 3"],
        ["[2,3]", "[2,9]", "found a word for 2 to 9, expected words up to 9 in the sentence"],
        ["S-B", "Q-B", "column 7 (number of the word): found the tag \"Q-B\", expected O or one of B, I, L"],
        ["\"head\":1", "\"head\":5", "found the head 5, expected one of the sentence's 4 words, or 0"],
        ["\"head\":1,", "", "found no head, expected"],
        ["\"head\":1", "\"head\":2", "column 3 (number of the word): the word's dependencies go round"],
        ["}]]", "}]", "EOF while parsing a list, expected a list of sentences"],
    ];

    const WRONG_SPACY: [[&str; 3]; 5] = [
        [
            "\"end\":14,\"label\"",
            "\"end\":15,\"label\"",
            "column 1 (number of the entity): found 9..15, expected a piece of the text of 14 characters",
        ],
        ["\"ANAT\"", "\"\"", "column 1 (number of the entity): found an empty label"],
        [
            "\"start\":5",
            "\"start\":4",
            "column 3 (number of the word): found 4..8, expected a piece behind the word before",
        ],
        [
            "\"head\":3",
            "\"head\":4",
            "column 3 (number of the word): found the head 4, expected one of the document's 4 words",
        ],
        [
            "\"head\":0},{\"id\":1",
            "\"head\":3},{\"id\":1",
            "column 1 (number of the word): the word's dependencies go round",
        ],
    ];

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refuse = |file: &str, layout| read(file.as_bytes(), config(layout)).unwrap_err().to_string();
        for (file, layout, cases) in
            [(STANZA, Layout::Stanza, &WRONG_STANZA[..]), (SPACY, Layout::Spacy, &WRONG_SPACY[..])]
        {
            for [from, to, expected] in cases {
                assert!(file.contains(from), "{from}");
                let message = refuse(&file.replacen(from, to, 1), layout);
                assert!(
                    message.starts_with("some.jsonl: line 1") && message.contains(expected),
                    "{to}: {message}"
                );
            }
        }
        assert!(refuse(STANZA, Layout::Spacy).contains("expected an object with `text`"));
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for (file, layout) in [(STANZA, Layout::Stanza), (SPACY, Layout::Spacy)] {
            assert_sound_or_refuses(file.as_bytes(), |bytes| {
                read(bytes, config(layout)).map(|(all, ..)| all).map_err(|error| error.to_string())
            });
        }
    }
}
