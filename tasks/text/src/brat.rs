//! Texts with their entities as brat has them: a file `.txt` and beside it one `.ann`.
//!
//! `T1<tab>DISO 15 36<tab>words` is an entity (`15 20;30 36` where it is discontinuous; places are characters of the text), and
//! `#1<tab>AnnotatorNotes T1<tab>C0494165 C0012634` says which concepts it names.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::fault;
use super::mention::{self, Misfits, Printed, Text};
use super::reader::{Bytes, Flattened, Only, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, unmarked};

/// What notes may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Concepts {
    /// UMLS concepts, `C` and seven digits; anything else is skipped and counted.
    Cui,
    /// Every word of a note is a concept.
    Any,
    /// Notes are prose and hold no concepts.
    None,
}

/// How a folder is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How to read concepts from notes (`AnnotatorNotes`).
    pub concepts: Concepts,
    /// What to do with a mention whose offsets are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong offset often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

/// What a folder should have.
const FILES: &str = "a text (.txt) and its entities (.ann, empty if there are none)";

const OTHER: &str = "annotation of another kind";
const BLANK: &str = "blank line";
const MALFORMED: &str = "malformed concepts";
const LINE_END: &str = "a mention in pieces only because a line ends in it";
const ENTITY: &str = "an entity: T and its number, kind and places (DISO 15 36, or DISO 15 20;30 36), its words, with tabs between";
const RELATION: &str =
    "a relation: R and its number, kind and two arguments (Reason-Drug Arg1:T1 Arg2:T2), with a tab between";
const NOTE: &str = "a note: # and its number, AnnotatorNotes and the number of what it speaks of, what it says, with tabs between";

/// The two files of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The text.
    pub text: PathBuf,
    /// The entities.
    pub ann: PathBuf,
}

impl Pair {
    /// Of the text in this file, whose entities lie beside it under the same name with `.ann` in place of its ending.
    #[must_use]
    pub fn of(text: &Path) -> Self {
        Self { text: text.to_owned(), ann: text.with_extension("ann") }
    }
}

/// Fills `document` from its two files.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn open(
    pair: &Pair,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    let (text, ann) = (text(pair)?, fault::open(&pair.ann, FILES)?);
    read(&text, ann, &pair.ann, config, document, labels)
}

/// A relation between two entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// What it is called.
    pub kind: String,
    /// Which of the document's entities its arguments are; none where that was left out.
    pub ends: [Option<usize>; 2],
}

/// What is related in a document.
#[derive(Debug)]
pub struct Related {
    /// What became of the annotations that are no relations.
    pub counts: Counts,
    /// What the file calls each of the document's entities.
    pub names: Vec<String>,
    /// The relations, as the file has them.
    pub relations: Vec<Relation>,
}

/// Fills `document` from its two files, its entities in the order of the file, and says how they are related.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
pub fn related(
    pair: &Pair,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Related, ReadError> {
    let (text, ann) = (text(pair)?, fault::open(&pair.ann, FILES)?);
    let said = annotations(&text, ann, &pair.ann, config, document, labels)?;
    let mut names = vec![String::new(); document.entities.len()];
    for (name, number) in &said.numbers {
        if let Some(of_entity) = number.and_then(|number| names.get_mut(number)) {
            name.clone_into(of_entity);
        }
    }
    let parsed = said.relations.iter().map(|(place, row)| relation(place, row, &said.numbers));
    Ok(Related { relations: parsed.collect::<Result<_, _>>()?, counts: said.counts, names })
}

fn text(pair: &Pair) -> Result<String, ReadError> {
    fault::whole_text(fault::open(&pair.text, FILES)?, &pair.text, "a document's text")
}

/// Fills `document` with a text and the entities that `ann` says are in it, and names their labels; `file` names `ann` in messages,
/// and its stem is the document's id. Annotations of other kinds, and notes of other things, are left out and counted.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn read<R: BufRead>(
    text: &str,
    ann: R,
    file: &Path,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    let mut said = annotations(text, ann, file, config, document, labels)?;
    for _ in &said.relations {
        said.counts.documents.drop(OTHER);
    }
    mention::sort(document);
    Ok(said.counts)
}

/// What a file of annotations says.
struct Said {
    /// What became of its lines, but for those of relations.
    counts: Counts,
    /// For each entity of the file, which of the document's it is; none if it was dropped.
    numbers: BTreeMap<String, Option<usize>>,
    /// The rows of relations.
    relations: Vec<(Place, String)>,
}

/// Fills `document` as [`read`] does, its entities in the order of the file.
fn annotations<R: BufRead>(
    text: &str,
    ann: R,
    file: &Path,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Said, ReadError> {
    document.clear();
    document.text.push_str(text);
    document.id.push_str(&file.file_stem().unwrap_or_default().to_string_lossy());
    let documents = Tally { mended: [(MALFORMED, 0)].into(), ..Tally::new(file, &[BLANK, OTHER]) };
    let mut counts = Counts { documents, spans: mention::tally(&[]) };
    let characters = Characters::new(text);
    let mut lines = Lines::new(ann, file);
    let (mut numbers, mut relations) = (BTreeMap::<String, Option<usize>>::new(), Vec::new());
    let mut notes: Vec<(String, String)> = Vec::new();
    while let Some(line) = lines.next_line()? {
        let row = unmarked(line.text);
        if row.trim().is_empty() {
            counts.documents.drop(BLANK);
        } else if row.starts_with('T') {
            let (id, kind, pieces, words) = entity(line, row)?;
            let printed = Printed { pieces: &pieces, words: Some(words) };
            let text = Text { text, characters: &characters };
            let (misfits, tally) = (config.misfits, &mut counts.spans);
            let admitted = mention::admit(text, printed, misfits, tally, || line.place(None))?;
            let number = admitted.is_some().then_some(document.entities.len());
            if let Some(pieces) = admitted {
                let all = pieces.len();
                let pieces = mention::joined(&document.text, pieces);
                if pieces.len() < all {
                    *counts.documents.mended.entry(LINE_END).or_insert(0) += 1;
                }
                let label = labels.intern(kind).ok_or_else(|| fault::line(line, row, ENTITY))?;
                document.entities.push(Entity { pieces, label, concepts: Vec::new() });
            }
            if numbers.insert(id.to_owned(), number).is_some() {
                return Err(fault::line(line, id, "a number that no other entity has"));
            }
        } else if row.starts_with('R') && row.contains('\t') {
            relations.push((line.place(None), row.to_owned()));
        } else if let Some((of, says)) = note(line, row, config.concepts)? {
            notes.push((of.to_owned(), says.to_owned()));
        } else {
            counts.documents.drop(OTHER);
        }
    }
    for (of, says) in notes {
        match numbers.get(&of) {
            Some(Some(number)) => {
                let Some(entity) = document.entities.get_mut(*number) else { continue };
                let read = says.split_whitespace().map(str::to_owned);
                let (sound, malformed) =
                    read.partition(|concept| config.concepts == Concepts::Any || cui(concept));
                let (sound, malformed): (Vec<String>, Vec<String>) = (sound, malformed);
                entity.concepts.extend(sound);
                *counts.documents.mended.entry(MALFORMED).or_insert(0) += malformed.len() as u64;
            }
            // What it speaks of was dropped.
            Some(None) => {}
            None => counts.documents.drop(OTHER),
        }
    }
    counts.documents.keep();
    Ok(Said { counts: counts.with_size(lines.bytes(), lines.lines()), numbers, relations })
}

/// Number, kind, places and words of an entity.
type Row<'a> = (&'a str, &'a str, Vec<Range<usize>>, &'a str);

fn entity<'a>(line: Line<'a>, row: &'a str) -> Result<Row<'a>, ReadError> {
    let parse = || {
        let mut columns = row.splitn(3, '\t');
        let (id, what, words) = (columns.next()?, columns.next()?, columns.next()?);
        let (kind, places) = what.split_once(' ').filter(|(kind, _)| !kind.is_empty())?;
        let piece = |piece: &str| {
            let (start, end) = piece.trim().split_once(' ')?;
            Some(start.parse().ok()?..end.trim().parse().ok()?)
        };
        Some((id, kind, places.split(';').map(piece).collect::<Option<_>>()?, words))
    };
    parse().ok_or_else(|| fault::line(line, row, ENTITY))
}

/// What a note speaks of and what it says; `None` for other annotations and where notes are left out.
fn note<'a>(
    line: Line<'a>,
    row: &'a str,
    concepts: Concepts,
) -> Result<Option<(&'a str, &'a str)>, ReadError> {
    let wrong = || fault::line(line, row, NOTE);
    if let Some(rest) = row.strip_prefix('#') {
        let mut columns = rest.splitn(3, '\t').skip(1);
        let (kind, of) = columns.next().and_then(|what| what.split_once(' ')).ok_or_else(wrong)?;
        let says = columns.next().unwrap_or_default();
        let named = concepts != Concepts::None && kind == "AnnotatorNotes" && of.starts_with('T');
        return Ok(named.then_some((of.trim(), says)));
    }
    // Events, attributes, modifications, normalisations and equivalences.
    if row.starts_with(['E', 'A', 'M', 'N', '*']) && row.contains('\t') {
        return Ok(None);
    }
    Err(fault::line(line, row, "an annotation, which begins with T, #, R, E, A, M, N or *"))
}

fn relation(
    place: &Place,
    row: &str,
    numbers: &BTreeMap<String, Option<usize>>,
) -> Result<Relation, ReadError> {
    let wrong = |expected| ReadError::text(place.clone(), row, expected, "fix the line");
    let mut parts = row.split('\t').nth(1).unwrap_or_default().split_whitespace();
    let (kind, ends) = (parts.next(), [parts.next(), parts.next()]);
    let [one, other] = ends.map(|end| end.and_then(|end| end.split_once(':')).map(|(_, of)| of));
    let Some(((kind, one), other)) = kind.zip(one).zip(other) else { return Err(wrong(RELATION)) };
    let end =
        |of: &str| numbers.get(of).copied().ok_or_else(|| wrong("a relation of two entities of the file"));
    Ok(Relation { kind: kind.to_owned(), ends: [end(one)?, end(other)?] })
}

fn cui(concept: &str) -> bool {
    concept
        .strip_prefix('C')
        .is_some_and(|number| number.len() == 7 && number.bytes().all(|b| b.is_ascii_digit()))
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, _: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        let fill = move |document: &mut Document, labels: &mut Labels| {
            open(&Pair::of(file), *self, document, labels)
        };
        Ok(Box::new(Flattened::new(Only::new(file, fill))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;

    const STRICT: Config = Config { concepts: Concepts::Cui, misfits: Misfits::Refuse };
    const TEXT: &str = "Née: métastases\nhépatiques, foie.";
    const ANN: &str = "T2\tDISO 5 26\tmétastases hépatiques\n\
        #1\tAnnotatorNotes T2\tC0494165 C0012634 C21983864\n\
        T1\tDISO 5 15;28 32\tmétastases foie\r\n\
        R1\tCauses Arg1:T1 Arg2:T2\n\n\
        #2\tNormalisation T1\tC0012634\n\
        #3\tAnnotatorNotes R1\tperhaps\n\
        T3\tANAT 28 32\tfoie\n#4\tAnnotatorNotes T3\t\n#5\tAnnotatorNotes T1\tC0000001";

    fn get(ann: &[u8], config: Config) -> Result<(Document, Labels, Counts), ReadError> {
        let (mut document, mut labels) = (Document::default(), Labels::default());
        let counts =
            read(TEXT, ann, Path::new("some.folder/some.1.ann"), config, &mut document, &mut labels)?;
        Ok((document, labels, counts))
    }

    fn said(document: &Document, labels: &Labels) -> Vec<String> {
        let entity = |e: &Entity| {
            let words: Vec<&str> = e.pieces.iter().map(|piece| &document.text[piece.clone()]).collect();
            format!("{}:{}:{}", words.join("+"), labels.names()[e.label.number()], e.concepts.join("+"))
        };
        document.entities.iter().map(entity).collect()
    }

    #[test]
    fn entities_have_their_pieces_and_the_concepts_of_their_notes() {
        let (document, labels, counts) = get(ANN.as_bytes(), STRICT).unwrap();
        assert_eq!((document.id.as_str(), document.text.as_str()), ("some.1", TEXT));
        let expected =
            ["métastases+foie:DISO:C0000001", "métastases\nhépatiques:DISO:C0494165+C0012634", "foie:ANAT:"];
        assert_eq!(said(&document, &labels), expected);
        let tally = counts.documents;
        assert_eq!(
            (tally.kept, tally.dropped[OTHER], tally.dropped[BLANK], tally.mended[MALFORMED]),
            (1, 3, 1, 1)
        );
        assert_eq!((counts.spans.read, counts.spans.kept, tally.lines), (3, 3, 10));
        let (document, labels, _) =
            get(ANN.as_bytes(), Config { concepts: Concepts::Any, ..STRICT }).unwrap();
        assert!(said(&document, &labels)[1].ends_with("C0494165+C0012634+C21983864"));
        let (document, _, _) = get(ANN.as_bytes(), Config { concepts: Concepts::None, ..STRICT }).unwrap();
        assert!(document.entities.iter().all(|entity| entity.concepts.is_empty()));
        assert_eq!(get(b"", STRICT).unwrap().0.entities, []);
        // In two pieces only because a line ends in it.
        let (document, labels, counts) =
            get(ANN.replacen("5 26", "5 15;16 26", 1).as_bytes(), STRICT).unwrap();
        assert_eq!(
            (said(&document, &labels), counts.documents.mended[LINE_END]),
            (expected.map(str::to_owned).into(), 1)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, expected) in [
            (
                "5 26",
                "5 25",
                "line 1: the mention does not fit: \"métastases\\nhépatique\" stands at its places",
            ),
            (
                "28 32\tm",
                "38 42\tm",
                "line 3: the mention does not fit: 38..42 reaches beyond the text, expected an end of at most 33",
            ),
            ("5 15;28", "5 29;28", "line 3: the mention does not fit: its pieces 5..29 and 28..32 overlap"),
            (
                "DISO 5 26",
                "DISO 5",
                "line 1: found \"T2\\tDISO 5\\tmétastases hépatiques\", expected an entity",
            ),
            ("T3\tANAT", "T2\tANAT", "line 8: found \"T2\", expected a number that no other entity has"),
            ("R1\tC", "Q1\tC", "line 4: found \"Q1\\tCauses Arg1:T1 Arg2:T2\", expected an annotation"),
            ("#1\tAnnotatorNotes T2", "#1\tAnnotatorNotes", "line 2: found \"#1\\tAnnotatorNotes\\tC0494165"),
        ] {
            assert!(ANN.contains(from), "{from}");
            let message = get(ANN.replacen(from, to, 1).as_bytes(), STRICT).unwrap_err().to_string();
            assert!(
                message.starts_with("some.folder/some.1.ann: line ") && message.contains(expected),
                "{to}: {message}"
            );
        }
        let lenient = Config { misfits: Misfits::Drop, ..STRICT };
        let (document, labels, counts) = get(ANN.replace("5 26", "5 25").as_bytes(), lenient).unwrap();
        assert_eq!(said(&document, &labels), ["métastases+foie:DISO:C0000001", "foie:ANAT:"]);
        assert_eq!((counts.spans.read, counts.spans.kept), (3, 2));
    }

    #[test]
    fn a_text_is_read_with_the_file_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            base::whole::write_whole(&path, text.as_bytes()).unwrap();
            path
        };
        let text = put("b.1.txt", TEXT);
        put("b.1.ann", ANN);
        let (mut document, mut labels) = (Document::default(), Labels::default());
        open(&Pair::of(&text), STRICT, &mut document, &mut labels).unwrap();
        assert_eq!((document.id.as_str(), document.entities.len()), ("b.1", 3));
        let alone = put("c.txt", "");
        let message = open(&Pair::of(&alone), STRICT, &mut document, &mut labels).unwrap_err().to_string();
        assert!(message.contains("c.ann: cannot be read: ") && message.contains(FILES), "{message}");
        let none = Pair::of(&folder.path().join("none.txt"));
        let message = open(&none, STRICT, &mut document, &mut labels).unwrap_err().to_string();
        assert!(message.contains("none.txt: cannot be read: "), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for misfits in [Misfits::Refuse, Misfits::Drop] {
            assert_sound_or_refuses(ANN.as_bytes(), |bytes| {
                let read = get(bytes, Config { misfits, concepts: Concepts::Any });
                read.map(|(document, ..)| vec![document]).map_err(|error| error.to_string())
            });
        }
    }
}
