//! Titles and abstracts with their mentions as PubTator has them.
//!
//! A document is `PMID|t|title`, `PMID|a|abstract`, then a mention a line (`PMID`, start, end, words, kind, concepts, with tabs
//! between them; composite mentions print their parts in a seventh column), relations (`PMID`, name, what it holds between), a
//! blank line. Places are characters of the title, one character and the abstract.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::mention::{self, Misfits, Printed, Text};
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, sentence, unmarked};

/// The one character between title and abstract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// A space: title and abstract are one paragraph.
    #[default]
    Space,
    /// A line break: no sentence spans both.
    Newline,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The character between title and abstract, which offsets count.
    ///
    /// Source: ours: because it leaves sentences to the rules; the format itself only says that it is one character.
    #[serde(default)]
    pub between: Between,
    /// What to do with a mention whose offsets are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong offset often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

/// Mentions of one document, at most: so many fit no abstract.
const MOST: usize = 1 << 20;

const BLANK: &str = "blank line";
const RELATION: &str = "relation";
const TITLE: &str = "PMID|t|title, the beginning of a document";
const BODY: &str = "PMID|a|abstract";
const MENTION: &str = "a mention (PMID, start, end, words, kind and concepts, with tabs), a relation (PMID, name, what \
    it holds between) or a blank line";

/// Reads document after document.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    config: Config,
    counts: Counts,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Documents of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let counts = Counts { documents: Tally::new(file, &[BLANK, RELATION]), spans: mention::tally(&[]) };
        Self { lines: Lines::new(reader, file), file, config, counts }
    }

    /// The lines behind the abstract.
    fn mentions(&mut self, document: &mut Document, labels: &mut Labels) -> Result<(), ReadError> {
        let characters = Characters::new(&document.text);
        while let Some(line) = self.lines.next_line()? {
            if line.text.trim().is_empty() {
                break;
            }
            let columns: Vec<&str> = line.text.splitn(8, '\t').collect();
            let shape = || shape(line, MENTION);
            let (id, second) = match columns[..] {
                [id, second, _, ..] => (id, second),
                _ => return Err(shape()),
            };
            same(line, id, &document.id)?;
            if columns.len() < 6 && second.starts_with(char::is_alphabetic) {
                self.counts.documents.drop(RELATION);
                continue;
            }
            let [_, start, end, words, kind, ref more @ ..] = columns[..] else { return Err(shape()) };
            let place = number(line, 2, start)?..number(line, 3, end)?;
            let label = labels.intern(kind.trim()).filter(|_| !kind.trim().is_empty()).ok_or_else(shape)?;
            if more.len() > 2 {
                return Err(shape());
            }
            if document.entities.len() == MOST {
                let found = format!("more than {MOST} mentions in one document");
                let expected = "blank lines between documents";
                return Err(ReadError::new(line.place(None), found, expected, "fix the file"));
            }
            let text = Text { text: &document.text, characters: &characters };
            let printed = Printed { pieces: std::slice::from_ref(&place), words: Some(words) };
            let (misfits, tally) = (self.config.misfits, &mut self.counts.spans);
            let place = || line.place(None);
            let Some(pieces) = mention::admit(text, printed, misfits, tally, place)? else { continue };
            let concepts = more.first().map(|ids| mention::concepts(ids)).unwrap_or_default();
            document.entities.push(Entity { pieces, label, concepts });
        }
        Ok(())
    }
}

/// Id and text of a line `id|letter|text`.
fn piped<'a>(line: Line<'a>, letter: char, expected: &'static str) -> Result<(&'a str, &'a str), ReadError> {
    let text = unmarked(line.text);
    let parts = text.split_once('|').and_then(|(id, rest)| {
        let rest = rest.strip_prefix(letter)?.strip_prefix('|')?;
        let id = id.trim();
        (!id.is_empty() && !id.contains('\t')).then_some((id, rest))
    });
    parts.ok_or_else(|| shape(line, expected))
}

const FIX: &str = "fix the line, or fetch the file again";

fn shape(line: Line<'_>, expected: &str) -> ReadError {
    ReadError::text(line.place(None), line.text, expected, FIX)
}

fn same(line: Line<'_>, id: &str, expected: &str) -> Result<(), ReadError> {
    let id = id.trim();
    if id == expected {
        return Ok(());
    }
    let found = format!("the line is of document {id:?}");
    let expected = format!("{expected:?} or a blank line before the next document");
    Err(ReadError::new(line.place(None), found, expected, "fix the line"))
}

fn number(line: Line<'_>, column: usize, found: &str) -> Result<usize, ReadError> {
    let name = if column == 2 { "start" } else { "end" };
    let place = || line.place(Some((column, name)));
    let wrong = |_| ReadError::text(place(), found, "a number of characters", "fix the line");
    found.trim().parse().map_err(wrong)
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, *self))))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one and names its entities' labels; `false` at the end of the file. Relations, and blank
    // lines that end no document, are left out and counted. The concept `-1` means none.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        loop {
            let Some(line) = self.lines.next_line()? else { return Ok(false) };
            if !unmarked(line.text).trim().is_empty() {
                let (id, title) = piped(line, 't', TITLE)?;
                document.id.push_str(id);
                document.text.push_str(title);
                break;
            }
            self.counts.documents.drop(BLANK);
        }
        let Some(line) = self.lines.next_line()? else {
            let place = Place { file: self.file.to_owned(), line: self.lines.lines(), column: None };
            return Err(ReadError::text(place, "the end of the file", BODY, FIX));
        };
        let (id, body) = piped(line, 'a', BODY)?;
        same(line, id, &document.id)?;
        let title = document.text.len();
        document.text.push(match self.config.between {
            Between::Space => ' ',
            Between::Newline => '\n',
        });
        document.text.push_str(body);
        if self.config.between == Between::Newline {
            let parts = [0..title, title + 1..document.text.len()];
            document.sentences = sentence::of_parts(&document.text, &parts);
        }
        self.mentions(document, labels)?;
        mention::sort(document);
        self.counts.documents.keep();
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

    const STRICT: Config = Config { between: Between::Newline, misfits: Misfits::Refuse };

    const FILE: &str = "\u{feff}12|t|Née: heart\n12|a|and lung failure | pain\n\
        12\t11\t34\tand lung failure | pain\tDisease\tD1|D2\theart|lung failure\n\
        12\t0\t3\tNée\tChemical\t-1\n\
        12\tCID\tD3\tD1\n\
        12\t15\t19\tlung\tDisease\tD2\r\n\n\n\
        13|t|a\n13|a|\n";

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.txt"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    #[test]
    fn documents_come_with_their_mentions_in_order() {
        let (all, labels, counts) = read(FILE.as_bytes(), STRICT).unwrap();
        assert_eq!(
            (all.len(), all[0].id.as_str(), all[1].id.as_str(), all[1].text.as_str()),
            (2, "12", "13", "a\n")
        );
        assert_eq!(all[0].text, "Née: heart\nand lung failure | pain");
        let said = |e: &Entity| {
            let words = &all[0].text[e.pieces[0].clone()];
            format!("{words}:{}:{}", labels.names()[e.label.number()], e.concepts.join("+"))
        };
        let said: Vec<String> = all[0].entities.iter().map(said).collect();
        assert_eq!(said, ["Née:Chemical:", "and lung failure | pain:Disease:D1+D2", "lung:Disease:D2"]);
        assert_eq!(
            (counts.documents.kept, counts.documents.dropped[RELATION], counts.documents.dropped[BLANK]),
            (2, 1, 1)
        );
        assert_eq!((counts.spans.read, counts.spans.kept, counts.documents.lines), (3, 3, 10));
        let space = Config { between: Between::Space, ..STRICT };
        assert_eq!(read(FILE.as_bytes(), space).unwrap().0[1].text, "a ");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refuse = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            read(FILE.replacen(from, to, 1).as_bytes(), STRICT).unwrap_err().to_string()
        };
        for (from, to, expected) in [
            (
                "12\t15\t19",
                "12\t14\t19",
                "line 6: the mention does not fit: \" lung\" stands at its places, expected \"lung\"",
            ),
            ("12\t15\t19", "12\t15\t49", "line 6: the mention does not fit: 15..49 reaches beyond the text"),
            ("12\t15\t19", "12\tx\t19", "line 6, column 2 (start): found \"x\", expected a number"),
            ("12\t15\t19", "12\t15\t-1", "line 6, column 3 (end): found \"-1\""),
            ("12\t15\t19", "14\t15\t19", "line 6: the line is of document \"14\", expected \"12\""),
            ("12|a|", "12|b|", "line 2: found \"12|b|and lung failure | pain\", expected PMID|a|abstract"),
            ("12|a|", "13|a|", "line 2: the line is of document \"13\""),
            ("12|t|", "12 t ", "expected PMID|t|title"),
            ("13|a|\n", "", "line 9: found \"the end of the file\", expected PMID|a|abstract"),
            ("\tChemical\t-1", "", "line 4: found \"12\\t0\\t3\\tNée\", expected a mention"),
            ("\tChemical", "\t", "line 4"),
            ("12\tCID\tD3\tD1", "12 CID", "line 5: found"),
        ] {
            let message = refuse(from, to);
            assert!(message.starts_with("some.txt: line ") && message.contains(expected), "{to}: {message}");
        }
    }

    #[test]
    fn mentions_that_do_not_fit_may_be_dropped() {
        let lenient = Config { misfits: Misfits::Drop, ..STRICT };
        let file = FILE.replace("12\t15\t19", "12\t14\t19").replace("12\t11\t34", "12\t11\t35");
        let (all, _, counts) = read(file.as_bytes(), lenient).unwrap();
        assert_eq!(all[0].entities.len(), 1);
        let spans = counts.spans;
        let dropped = (spans.dropped[mention::OUTSIDE], spans.dropped[mention::OTHER_TEXT]);
        assert_eq!((spans.read, spans.kept, dropped), (3, 1, (1, 1)));
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for misfits in [Misfits::Refuse, Misfits::Drop] {
            let config = Config { misfits, ..STRICT };
            assert_sound_or_refuses(FILE.as_bytes(), |bytes| {
                read(bytes, config).map(|(all, ..)| all).map_err(|error| error.to_string())
            });
        }
    }
}
