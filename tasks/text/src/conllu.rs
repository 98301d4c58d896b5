//! Sentences with their words, entities and dependencies as CoNLL-U files have them.
//!
//! A row has ten columns with tabs between them. Surface words are the rows `5` and, for several words that are written as one,
//! `3-4`; empty nodes (`8.1`) are no words. The text is that of `# text = ...`, in which the words must stand, or else is made of the words
//! and `SpaceAfter=No`, or of their places. `MISC` may have `start_char=`, `end_char=` (characters of the document) and `ner=`, as Stanza writes them.

mod row;

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::attach;
use super::conll::{self, BrokenTags, MENDED, Open, Scheme};
use super::fault::LONGEST;
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, SpanTally, subtree, unmarked};
use row::{Row, Sentence, Token};

/// What is a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A document is one sentence.
    Sentence,
    /// A document is everything up to the next `# newdoc`.
    Newdoc,
}

/// How phrases are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phrases {
    /// There are none; `HEAD` is not read.
    None,
    /// They are the largest contiguous subtrees of at most this many words.
    Dependency(NonZeroUsize),
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What a document is.
    pub unit: Unit,
    /// How tags mark entities (`ner=`); Stanza has `bilou`.
    pub scheme: Scheme,
    /// How phrases are made.
    pub phrases: Phrases,
    /// What to do with tags that are invalid in the scheme, such as `I-x` in `bio` without a preceding tag of its kind.
    ///
    /// Source: ours: because most often the file is tagged in another scheme.
    #[serde(default)]
    pub broken_tags: BrokenTags,
}

const EMPTY_NODE: &str = "empty node";
const WORDLESS: &str = "comments without words";

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    config: Config,
    counts: Counts,
    /// The sentence that begins the next document.
    next: Option<Sentence>,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let tally = Tally::new(file, &[EMPTY_NODE, WORDLESS]);
        let documents = Tally { mended: [(MENDED, 0)].into(), ..tally };
        let counts = Counts { documents, spans: SpanTally::default() };
        let lines = Lines::new(reader, file);
        Self { lines, file, config, counts, next: None }
    }

    /// The next sentence that has words.
    fn sentence(&mut self) -> Result<Option<Sentence>, ReadError> {
        if let Some(sentence) = self.next.take() {
            return Ok(Some(sentence));
        }
        let (mut sentence, mut bytes) = (Sentence::default(), 0);
        while let Some(line) = self.lines.next_line()? {
            let text = unmarked(line.text);
            bytes += text.len();
            if bytes > LONGEST {
                return Err(too_long(line.place(None)));
            }
            if let Some(comment) = text.strip_prefix('#') {
                sentence.comment(comment);
            } else if !text.trim().is_empty() {
                match Row::parse(line)? {
                    Row::EmptyNode => self.counts.documents.drop(EMPTY_NODE),
                    row => sentence.add(line, row, self.config.phrases)?,
                }
            } else if !sentence.tokens.is_empty() {
                break;
            } else if sentence.commented() {
                sentence.forget();
                self.counts.documents.drop(WORDLESS);
            }
        }
        if sentence.tokens.is_empty() {
            return Ok(None);
        }
        sentence.check(self.file)?;
        Ok(Some(sentence))
    }

    /// Puts a sentence behind those that the document has; `end` is where the last of these ends in the file's count. Says how many
    /// tags broke their scheme.
    fn append(
        &self,
        sentence: &Sentence,
        document: &mut Document,
        end: &mut Option<Ended>,
        labels: &mut Labels,
    ) -> Result<u64, ReadError> {
        let place = |line| Place { file: self.file.to_owned(), line, column: None };
        let long = || too_long(place(sentence.line));
        let first = document.words.len();
        if let Some(last) = *end {
            let gap = gap(last, &sentence.tokens[0]);
            // A line end, so that no sentence goes on in the next, where there is room for it.
            blanks(&mut document.text, gap, '\n').ok_or_else(long)?;
        }
        self.place(sentence, document)?;
        if document.text.len() > LONGEST {
            return Err(long());
        }
        let words = document.words[first..].to_vec();
        document.sentences.extend(words.first().map(|word| word.start));
        *end = sentence.tokens.last().map(Ended::behind);
        document.phrases.extend(self.phrases(sentence, &words)?);
        self.entities(sentence, &words, document, labels)
    }

    /// Appends the sentence's text with its words. Where all words say where they stand, the text is made of them: Stanza writes `# text`
    /// with one space for any white space.
    fn place(&self, sentence: &Sentence, document: &mut Document) -> Result<(), ReadError> {
        let Document { text, words, .. } = document;
        if let Some(stated) = &sentence.text {
            let forms: Vec<&str> = sentence.tokens.iter().map(|token| token.form.as_str()).collect();
            let found = attach::words(stated, &forms).map_err(|mismatch| {
                let place = Place { file: self.file.to_owned(), line: sentence.line, column: None };
                mismatch.at(place)
            })?;
            if sentence.tokens.iter().any(|token| token.characters.is_none()) {
                words.extend(found.into_iter().map(|word| text.len() + word.start..text.len() + word.end));
                text.push_str(stated);
                return Ok(());
            }
        }
        let mut last: Option<Ended> = None;
        for token in &sentence.tokens {
            let place = |column| Place { file: self.file.to_owned(), line: token.line, column };
            if let Some(last) = last {
                let stated = last.character.zip(token.characters.as_ref());
                if let Some((end, here)) = stated.filter(|(end, here)| here.start < *end) {
                    let (place, found) = (place(Some((10, "MISC"))), format!("start_char={}", here.start));
                    let expected = format!("a start_char of at least {end}, behind the word before");
                    return Err(ReadError::text(place, &found, expected, "fix the row"));
                }
                blanks(text, gap(last, token), ' ').ok_or_else(|| too_long(place(None)))?;
            }
            words.push(text.len()..text.len() + token.form.len());
            text.push_str(&token.form);
            last = Some(Ended::behind(token));
        }
        Ok(())
    }

    /// The sentence's phrases in bytes.
    fn phrases(&self, sentence: &Sentence, places: &[Range<usize>]) -> Result<Vec<Range<usize>>, ReadError> {
        let Phrases::Dependency(most) = self.config.phrases else { return Ok(Vec::new()) };
        let governors: Vec<Option<usize>> = sentence.words.iter().map(|word| word.governor).collect();
        let phrases = subtree::phrases(&governors, most).map_err(|cycle| {
            let line = sentence.words.get(cycle.word).map_or(sentence.line, |word| word.line);
            let place = Place { file: self.file.to_owned(), line, column: Some((7, "HEAD")) };
            let expected = "that they lead to a root (HEAD 0)";
            ReadError::new(place, subtree::CIRCLE, expected, "fix the sentence")
        })?;
        let firsts: Vec<usize> = sentence.tokens.iter().map(|token| token.first).collect();
        Ok(subtree::in_bytes(&phrases, &firsts, places))
    }

    fn entities(
        &self,
        sentence: &Sentence,
        words: &[Range<usize>],
        document: &mut Document,
        labels: &mut Labels,
    ) -> Result<u64, ReadError> {
        let mut open = Open::new(self.config.scheme, self.config.broken_tags);
        let (mut spans, mut last) = (Vec::new(), sentence.line);
        let place = |line| Place { file: self.file.to_owned(), line, column: Some((10, "MISC")) };
        for (token, word) in sentence.tokens.iter().zip(words) {
            let tag = token.tag.as_deref().unwrap_or("O");
            last = token.line;
            let said = conll::tag(tag, self.config.scheme, None, labels).map_err(|_| {
                let expected =
                    "a tag of the scheme with its kind, like B-Disease, or O (or set another `scheme`)";
                ReadError::text(place(token.line), &format!("ner={tag}"), expected, "fix the row")
            })?;
            open.tagged(&mut spans, word.clone(), said, tag, || place(last))?;
        }
        open.end(&mut spans, || place(last))?;
        let entity =
            |span: super::Span| Entity { pieces: vec![span.bytes], label: span.label, concepts: Vec::new() };
        document.entities.extend(spans.into_iter().map(entity));
        Ok(open.broken)
    }
}

fn too_long(place: Place) -> ReadError {
    let found = format!("the document has more than {LONGEST} bytes");
    let remedy = "set `unit` to `sentence`, or write `# newdoc` where documents begin";
    ReadError::new(place, found, "a smaller one", remedy)
}

/// Where a word ends, as far as what stands behind it is concerned.
#[derive(Debug, Clone, Copy)]
struct Ended {
    /// In the file's count of characters.
    character: Option<usize>,
    blank: usize,
}

impl Ended {
    fn behind(token: &Token) -> Self {
        // White space inside a word may be shorter here than in its document.
        let character = token.characters.as_ref().map(|c| c.start + token.form.chars().count());
        Self { character, blank: usize::from(token.space_after) }
    }
}

/// Blanks between a word and the next.
fn gap(last: Ended, next: &Token) -> usize {
    let begins = next.characters.as_ref().map(|c| c.start);
    last.character.zip(begins).and_then(|(end, begin)| begin.checked_sub(end)).unwrap_or(last.blank)
}

/// Appends so many blanks, the first as said; `None` if the text becomes too long.
fn blanks(text: &mut String, count: usize, first: char) -> Option<()> {
    if count > LONGEST - text.len().min(LONGEST) {
        return None;
    }
    text.extend(std::iter::once(first).chain(std::iter::repeat(' ')).take(count));
    Some(())
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, *self))))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one and names its entities' labels; `false` at the end of the file. Empty nodes are left out and
    // counted; a document with tags that break their scheme is counted as fixed. The line on which it begins stands for a missing id.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        let (mut end, mut broken) = (None, 0);
        while let Some(sentence) = self.sentence()? {
            let begins = sentence.newdoc.is_some() || self.config.unit == Unit::Sentence;
            if begins && !document.words.is_empty() {
                self.next = Some(sentence);
                break;
            }
            if document.words.is_empty() {
                let id = match self.config.unit {
                    Unit::Sentence => sentence.id.as_ref(),
                    Unit::Newdoc => sentence.newdoc.as_ref().filter(|id| !id.is_empty()),
                };
                document.id.push_str(&id.map_or_else(|| sentence.line.to_string(), Clone::clone));
            }
            broken += self.append(&sentence, document, &mut end, labels)?;
        }
        if document.words.is_empty() {
            return Ok(false);
        }
        self.counts.documents.keep();
        *self.counts.documents.mended.entry(MENDED).or_insert(0) += u64::from(broken > 0);
        self.counts.spans.read += document.entities.len() as u64;
        self.counts.spans.kept += document.entities.len() as u64;
        Ok(true)
    }

    fn counts(&self) -> Counts {
        self.counts.with_size(self.lines.bytes(), self.lines.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::drain;

    const PLAIN: Config = Config {
        unit: Unit::Sentence,
        scheme: Scheme::Bilou,
        phrases: Phrases::None,
        broken_tags: BrokenTags::Fix,
    };

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.conllu"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    fn row(id: &str, form: &str, head: &str, misc: &str) -> String {
        format!("{id}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t{misc}\n")
    }

    /// Two sentences of one document, as Stanza writes them, and one of another.
    fn file() -> String {
        let row = |id, form, head, (start, end, ner): (usize, usize, &str), more: &str| {
            row(id, form, head, &format!("start_char={start}|end_char={end}|ner={ner}{more}"))
        };
        [
            "\u{feff}# newdoc id = d1\n# text = Douleur du coeur né.\n# sent_id = 0\n".to_owned(),
            row("1", "Douleur", "0", (0, 7, "B-Sign"), ""),
            row("2-3", "du", "_", (8, 10, "I-Sign"), ""),
            self::row("2", "de", "4", "_"),
            self::row("3", "le", "4", "_"),
            row("4", "coeur", "1", (11, 16, "E-Sign"), ""),
            row("5", "né", "4", (17, 19, "S-Time"), "|SpaceAfter=No"),
            self::row("5.1", "x", "_", "_"),
            row("6", ".", "1", (19, 20, "O"), ""),
            "\n\n# text = A b\n".to_owned(),
            row("1", "A", "2", (23, 24, "S-Sign"), ""),
            row("2", "b", "0", (25, 26, "O"), ""),
            "\n# newdoc\n".to_owned(),
            self::row("1", "a", "2", "SpaceAfter=No"),
            self::row("2", "b", "0", "_"),
            self::row("3", "c", "2", "_"),
        ]
        .concat()
    }

    fn said(document: &Document, labels: &Labels) -> Vec<String> {
        let entity = |e: &Entity| {
            format!("{}:{}", &document.text[e.pieces[0].clone()], labels.names()[e.label.number()])
        };
        document.entities.iter().map(entity).collect()
    }

    fn phrases(document: &Document) -> Vec<&str> {
        document.phrases.iter().map(|place| &document.text[place.clone()]).collect()
    }

    #[test]
    fn a_sentence_has_its_text_words_and_entities() {
        let (all, labels, counts) = read(file().as_bytes(), PLAIN).unwrap();
        let texts: Vec<(&str, &str)> = all.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
        assert_eq!(texts, [("0", "Douleur du coeur né."), ("15", "A b"), ("19", "ab c")]);
        assert_eq!(all[0].words, [0..7, 8..10, 11..16, 17..20, 20..21]);
        assert_eq!(said(&all[0], &labels), ["Douleur du coeur:Sign", "né:Time"]);
        assert_eq!((said(&all[1], &labels), all[1].phrases.len()), (vec!["A:Sign".to_owned()], 0));
        let tally = counts.documents;
        assert_eq!((tally.kept, tally.dropped[EMPTY_NODE], tally.mended[MENDED], tally.lines), (3, 1, 0, 21));
        assert_eq!((counts.spans.read, counts.spans.kept), (3, 3));
    }

    #[test]
    fn a_document_may_be_many_sentences_at_their_places() {
        let (all, labels, _) = read(file().as_bytes(), Config { unit: Unit::Newdoc, ..PLAIN }).unwrap();
        let texts: Vec<(&str, &str)> = all.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
        assert_eq!(texts, [("d1", "Douleur du coeur né.\n  A b"), ("19", "ab c")]);
        assert_eq!(said(&all[0], &labels), ["Douleur du coeur:Sign", "né:Time", "A:Sign"]);
    }

    #[test]
    fn phrases_are_the_largest_subtrees_of_few_words() {
        let cut = |most| {
            let phrases = Phrases::Dependency(NonZeroUsize::new(most).unwrap());
            read(file().as_bytes(), Config { phrases, ..PLAIN }).unwrap().0
        };
        assert_eq!(phrases(&cut(4)[0]), ["Douleur", "du coeur né", "."]);
        assert_eq!(phrases(&cut(3)[0]), ["Douleur", "du", "coeur", "né", "."]);
        assert_eq!(phrases(&cut(6)[0]), ["Douleur du coeur né."]);
        assert_eq!(phrases(&cut(6)[2]), ["ab c"]);
    }

    #[test]
    fn places_alone_make_a_text() {
        let rows =
            [row("1", "a", "0", "start_char=5|end_char=6"), row("2", "b", "1", "start_char=8|end_char=9")]
                .concat();
        assert_eq!(read(rows.as_bytes(), PLAIN).unwrap().0[0].text, "a  b");
        let collapsed = format!("# text = a b\n{rows}");
        assert_eq!(read(collapsed.as_bytes(), PLAIN).unwrap().0[0].text, "a  b", "the places know better");
        let far = rows.replace(
            "start_char=8|end_char=9",
            "start_char=18000000000000000000|end_char=18000000000000000001",
        );
        assert!(read(far.as_bytes(), PLAIN).unwrap_err().to_string().contains("more than 16777216 bytes"));
    }

    #[test]
    fn tags_of_other_schemes_are_read_too() {
        let rows =
            [row("1", "a", "0", "ner=B-x"), row("2", "b", "1", "ner=I-x"), row("3", "c", "1", "ner=I-y")]
                .concat();
        let (all, labels, counts) = read(rows.as_bytes(), Config { scheme: Scheme::Bio, ..PLAIN }).unwrap();
        assert_eq!(
            (said(&all[0], &labels), counts.documents.mended[MENDED]),
            (vec!["a b:x".to_owned(), "c:y".to_owned()], 1)
        );
        let message = read(row("1", "a", "0", "ner=Q-x").as_bytes(), PLAIN).unwrap_err().to_string();
        assert!(
            message.starts_with("some.conllu: line 1, column 10 (MISC): found \"ner=Q-x\", expected a tag"),
            "{message}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let file = file();
        let depend = Config { phrases: Phrases::Dependency(NonZeroUsize::MIN), ..PLAIN };
        for (from, to, expected) in [
            (
                "4\tcoeur",
                "5\tcoeur",
                "line 8, column 1 (ID): found \"5\", expected 4, the next word's number",
            ),
            (
                "2-3\tdu",
                "2-9\tdu",
                "column 1 (ID): found \"2-9\", expected a range of the sentence's 6 words",
            ),
            ("2-3\tdu", "3-3\tdu", "line 5, column 1 (ID): found \"3\", expected 2"),
            ("4\tcoeur", "x\tcoeur", "line 8, column 1 (ID): found \"x\", expected a number from 1, a range"),
            (
                "coeur né",
                "coeur nu",
                "line 4: word 4 (\"né\") does not stand at byte 17 of the text, but \"nu.\"",
            ),
            ("né.\n", "né. x\n", "line 4: the text goes on at byte 22"),
            (
                "start_char=17",
                "start_char=15",
                "line 9, column 10 (MISC): found \"start_char=15\", expected a start_char of at least 16",
            ),
            ("start_char=17|", "", "expected start_char and end_char, both or none"),
            (
                "end_char=19|ner=S",
                "end_char=x|ner=S",
                "found \"end_char=x\", expected a number of characters",
            ),
            ("coeur\t_", "coeur\t_\t_", "line 8: 11 columns, expected ten"),
            ("\tcoeur\t", "\t \t", "line 8, column 2 (FORM): found \" \", expected a word"),
            (
                "A\t_\t_\t_\t_\t2",
                "A\t_\t_\t_\t_\t3",
                "line 15, column 7 (HEAD): found \"3\", expected the number of one of the sentence's 2 words",
            ),
            (
                "A\t_\t_\t_\t_\t2",
                "A\t_\t_\t_\t_\t_",
                "line 15, column 7 (HEAD): found \"_\", expected the number of a word, or 0 (or set",
            ),
            (
                "A\t_\t_\t_\t_\t2",
                "A\t_\t_\t_\t_\t1",
                "line 15, column 7 (HEAD): the word's dependencies go round",
            ),
        ] {
            assert!(file.contains(from), "{from}");
            let message = read(file.replacen(from, to, 1).as_bytes(), depend).unwrap_err().to_string();
            assert!(
                message.starts_with("some.conllu: line ") && message.contains(expected),
                "{to}: {message}"
            );
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let depend = Phrases::Dependency(NonZeroUsize::new(3).unwrap());
        for (unit, phrases) in [(Unit::Sentence, depend), (Unit::Newdoc, Phrases::None)] {
            assert_sound_or_refuses(file().as_bytes(), |bytes| {
                let config = Config { unit, phrases, ..PLAIN };
                read(bytes, config).map(|(all, ..)| all).map_err(|error| error.to_string())
            });
        }
    }
}
