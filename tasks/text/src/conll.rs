//! Sentences with one word per line and an entity tag in the last column, as CoNLL-2003 and its heirs have them.
//!
//! Blank lines end sentences; `-DOCSTART-` lines are skipped. Whatever the scheme of the tags, what comes out are spans over a text
//! of the words with one space between them.

use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Label, Labels, Span, SpanTally, unmarked};

/// How tags mark entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// `I-x` inside; `B-x` only where an entity directly follows another of its kind (CoNLL-2003 as published).
    Iob1,
    /// `B-x` for the first word, `I-x` for the others (also called BIO2 and IOB2).
    Bio,
    /// As `bio`, with `L-x` for the last of several words and `U-x` for a single one (also called BIOES), which `E-x` and `S-x` mean, too.
    Bilou,
}

/// What becomes of tags that their scheme does not allow where they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrokenTags {
    /// It is an error that names the line and the scheme that the file may use.
    #[default]
    Refuse,
    /// They are read as generously as possible (a stray `I-x` starts an entity), and affected documents are counted (`fixed`).
    Fix,
}

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// One tab.
    Tab,
    /// Any number of spaces or tabs.
    Spaces,
}

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How tags mark entities.
    pub scheme: Scheme,
    /// What separates columns.
    pub separator: Separator,
    /// The kind for bare tags (`B` instead of `B-Disease`). Without it, they are an error.
    pub untyped: Option<String>,
    /// What to do with tags that are invalid in the scheme, such as `I-x` in `bio` without a preceding tag of its kind.
    ///
    /// Source: ours: because most often the file is tagged in another scheme.
    #[serde(default)]
    pub broken_tags: BrokenTags,
}

impl Scheme {
    /// What breaks it first in a file that is tagged otherwise.
    fn rule(self) -> &'static str {
        match self {
            Self::Iob1 => {
                "in `iob1` an entity begins with B- only right behind one of its kind (in `bio` always)"
            }
            Self::Bio => "in `bio` every entity begins with B- (in `iob1`, CoNLL-2003 as published, with I-)",
            Self::Bilou => {
                "in `bilou` an entity ends with L- or E- and one of a single word is U- or S- (not in `bio`)"
            }
        }
    }
}

/// What a tag says of its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Begin,
    Inside,
    Last,
    Only,
}

const TAG: &str = "tag";
const DOCUMENT: &str = "-DOCSTART-";
const DOCUMENT_LINE: &str = "document line";
pub(super) const MENDED: &str = "tags that break the scheme";

/// Reads sentence after sentence.
#[derive(Debug)]
pub struct Reader<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    config: Config,
    counts: Counts,
    columns: Option<usize>,
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Sentences of `reader`; `file` names it in messages. The last line may lack its end.
    pub fn new(reader: R, file: &'f Path, config: Config) -> Self {
        let documents = Tally { mended: [(MENDED, 0)].into(), ..Tally::new(file, &[DOCUMENT_LINE]) };
        let counts = Counts { documents, spans: SpanTally::default() };
        let lines = Lines::new(reader, file);
        Self { lines, file, config, counts, columns: None }
    }
}

/// The first and the last column of a line; all lines must have as many as the first.
fn columns<'a>(
    line: Line<'a>,
    separator: Separator,
    expected: &mut Option<usize>,
) -> Result<(&'a str, &'a str), ReadError> {
    let text = unmarked(line.text);
    let mut fields: (Option<&str>, &str, usize) = (None, "", 0);
    let mut add = |field: &'a str| fields = (fields.0.or(Some(field)), field, fields.2 + 1);
    match separator {
        Separator::Tab => text.split('\t').map(str::trim).for_each(&mut add),
        Separator::Spaces => text.split_ascii_whitespace().for_each(&mut add),
    }
    let (word, tag, found) = (fields.0.unwrap_or_default(), fields.1, fields.2);
    if word == DOCUMENT {
        return Ok((word, tag));
    }
    let wrong = |expected: String| {
        let remedy = "fix the line, or say in the config what separates the columns";
        ReadError::new(line.place(None), format!("{found} columns"), expected, remedy)
    };
    if found < 2 || word.is_empty() {
        return Err(wrong("a word in the first column and a tag in the last".to_owned()));
    }
    match *expected.get_or_insert(found) {
        number if number != found => Err(wrong(format!("{number} as in the first line"))),
        _ => Ok((word, tag)),
    }
}

/// What a tag says, `None` for `O`; bare tags mean `untyped`. An error says which tags the scheme has.
pub(super) fn tag(
    tag: &str,
    scheme: Scheme,
    untyped: Option<&str>,
    labels: &mut Labels,
) -> Result<Option<(Mark, Label)>, &'static str> {
    if tag == "O" {
        return Ok(None);
    }
    let (letter, name) = match tag.split_once('-') {
        Some((letter, name)) => (letter, Some(name).filter(|name| !name.is_empty())),
        None => (tag, untyped),
    };
    let mark = match (letter, scheme) {
        ("B", _) => Some(Mark::Begin),
        ("I", _) => Some(Mark::Inside),
        ("L" | "E", Scheme::Bilou) => Some(Mark::Last),
        ("U" | "S", Scheme::Bilou) => Some(Mark::Only),
        _ => None,
    };
    let label = name.and_then(|name| labels.intern(name));
    mark.zip(label).map(Some).ok_or(match scheme {
        Scheme::Iob1 | Scheme::Bio => "O, B-kind or I-kind (a bare B or I needs `untyped` in the config)",
        Scheme::Bilou => {
            "O or one of B, I, L, E, U, S with -kind behind it (bare ones need `untyped` in the config)"
        }
    })
}

/// The entity that the words read so far leave open; its span is the last.
pub(super) struct Open {
    label: Option<Label>,
    scheme: Scheme,
    broken_tags: BrokenTags,
    /// The last word's tag, as it is written.
    behind: String,
    /// Tags that the scheme does not allow where they stand.
    pub(super) broken: u64,
}

impl Open {
    pub(super) fn new(scheme: Scheme, broken_tags: BrokenTags) -> Self {
        Self { label: None, scheme, broken_tags, behind: String::new(), broken: 0 }
    }

    /// The next word, where it stands, what its tag says and how that is written.
    pub(super) fn tagged(
        &mut self,
        spans: &mut Vec<Span>,
        bytes: Range<usize>,
        said: Option<(Mark, Label)>,
        tag: &str,
        place: impl FnOnce() -> Place,
    ) -> Result<(), ReadError> {
        let before = self.broken;
        self.word(spans, bytes, said);
        if self.broken > before && self.broken_tags == BrokenTags::Refuse {
            let behind = Some(std::mem::take(&mut self.behind)).filter(|behind| !behind.is_empty());
            let behind = behind.unwrap_or_else(|| "the beginning of the sentence".to_owned());
            let rule = self.scheme.rule();
            let found = format!("found {tag:?} behind {behind:?}, which the scheme does not have: {rule}");
            let remedy = "set `scheme` to how the file is tagged, or `broken_tags` to \"fix\" if single tags are wrong";
            return Err(ReadError::new(place(), found, "", remedy));
        }
        tag.clone_into(&mut self.behind);
        Ok(())
    }

    /// The end of the sentence.
    pub(super) fn end(
        &mut self,
        spans: &mut Vec<Span>,
        place: impl FnOnce() -> Place,
    ) -> Result<(), ReadError> {
        self.tagged(spans, 0..0, None, "the end of the sentence", place)
    }

    /// The next word, where it stands and what its tag says; without a tag the entity ends.
    pub(super) fn word(&mut self, spans: &mut Vec<Span>, bytes: Range<usize>, tag: Option<(Mark, Label)>) {
        let before = self.label.take();
        let continues = |label| before == Some(label);
        let Some((mark, label)) = tag else {
            self.broken += u64::from(before.is_some() && self.scheme == Scheme::Bilou);
            return;
        };
        let fresh = match mark {
            Mark::Begin | Mark::Only => true,
            Mark::Inside | Mark::Last => !continues(label),
        };
        self.broken += u64::from(match self.scheme {
            Scheme::Iob1 => mark == Mark::Begin && !continues(label),
            Scheme::Bio => fresh && mark == Mark::Inside,
            // An entity must have ended before another begins, and must have begun before it goes on.
            Scheme::Bilou => fresh && (before.is_some() || matches!(mark, Mark::Inside | Mark::Last)),
        });
        match spans.last_mut().filter(|_| !fresh) {
            Some(span) => span.bytes.end = bytes.end,
            None => spans.push(Span { bytes, label }),
        }
        self.label = matches!(mark, Mark::Begin | Mark::Inside).then_some(label);
    }
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, self.clone())))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next sentence and names its spans' labels; `false` at the end of the file. A sentence with tags that break
    // the scheme is counted as fixed, if [`BrokenTags::Fix`] lets it pass.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        let mut open = Open::new(self.config.scheme, self.config.broken_tags);
        while let Some(line) = self.lines.next_line()? {
            if unmarked(line.text).trim().is_empty() {
                if document.words.is_empty() {
                    continue;
                }
                break;
            }
            let (word, tag) = columns(line, self.config.separator, &mut self.columns)?;
            if word == DOCUMENT {
                self.counts.documents.drop(DOCUMENT_LINE);
                continue;
            }
            if document.words.is_empty() {
                document.id.push_str(&line.place(None).line.to_string());
                document.sentences.push(0);
            } else {
                document.text.push(' ');
            }
            let start = document.text.len();
            document.text.push_str(word);
            let bytes = start..document.text.len();
            document.words.push(bytes.clone());
            let width = self.columns.unwrap_or(0);
            let place = || line.place(Some((width, TAG)));
            let said = self::tag(tag, self.config.scheme, self.config.untyped.as_deref(), labels);
            let said = said.map_err(|expected| {
                let remedy = "fix the tag, or say in the config how the file is tagged";
                ReadError::text(place(), tag, expected, remedy)
            })?;
            open.tagged(&mut document.spans, bytes, said, tag, place)?;
        }
        let end = || Place { file: self.file.to_owned(), line: self.lines.lines(), column: None };
        open.end(&mut document.spans, end)?;
        if document.words.is_empty() {
            return Ok(false);
        }
        self.counts.documents.keep();
        *self.counts.documents.mended.entry(MENDED).or_insert(0) += u64::from(open.broken > 0);
        self.counts.spans.read += document.spans.len() as u64;
        self.counts.spans.kept += document.spans.len() as u64;
        Ok(true)
    }

    fn counts(&self) -> Counts {
        self.counts.with_size(self.lines.bytes(), self.lines.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain;

    fn config(scheme: Scheme) -> Config {
        Config { scheme, separator: Separator::Spaces, untyped: None, broken_tags: BrokenTags::Fix }
    }

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.txt"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    /// The entities of one sentence of words `0 1 2 ...` with these tags, as "first-last kind", and whether it was fixed.
    fn entities(scheme: Scheme, tags: &str) -> (Vec<String>, u64) {
        let lines: String = tags.split(' ').enumerate().map(|(i, tag)| format!("{i} {tag}\n")).collect();
        let (all, labels, counts) = read(lines.as_bytes(), config(scheme)).unwrap();
        let name =
            |s: &Span| format!("{}:{}", &all[0].text[s.bytes.clone()], labels.names()[s.label.number()]);
        (all[0].spans.iter().map(name).collect(), counts.documents.mended[MENDED])
    }

    #[test]
    fn every_scheme_becomes_the_same_spans() {
        let expected: Vec<String> = ["1 2:x", "3:x", "4 5 6:y", "8:x"].map(str::to_owned).into();
        for (scheme, tags) in [
            (Scheme::Iob1, "O I-x I-x B-x I-y I-y I-y O I-x"),
            (Scheme::Bio, "O B-x I-x B-x B-y I-y I-y O B-x"),
            (Scheme::Bilou, "O B-x L-x U-x B-y I-y L-y O U-x"),
            (Scheme::Bilou, "O B-x E-x S-x B-y I-y E-y O S-x"),
        ] {
            assert_eq!(entities(scheme, tags), (expected.clone(), 0), "{scheme:?}");
        }
    }

    #[test]
    fn tags_that_break_their_scheme_are_fixed_and_counted() {
        let entity = |scheme, tags, expected: &[&str]| {
            let (found, mended) = entities(scheme, tags);
            assert_eq!(found, expected, "{scheme:?} {tags}");
            assert_eq!(mended, 1, "{scheme:?} {tags}");
        };
        entity(Scheme::Bio, "O I-x I-x", &["1 2:x"]);
        entity(Scheme::Bio, "B-x I-y", &["0:x", "1:y"]);
        entity(Scheme::Iob1, "O B-x", &["1:x"]);
        entity(Scheme::Bilou, "B-x O", &["0:x"]);
        entity(Scheme::Bilou, "B-x", &["0:x"]);
        entity(Scheme::Bilou, "B-x U-x", &["0:x", "1:x"]);
        entity(Scheme::Bilou, "L-x I-x L-x", &["0:x", "1 2:x"]);
    }

    #[test]
    fn sentences_end_at_blank_lines_and_keep_their_words() {
        let bytes =
            "-DOCSTART- -X- O O\n\nNé NN B-NP B-Drug\r\n5mg NN I-NP O\n \n\n-DOCSTART- O\nend NN O B-a-b";
        let (all, labels, counts) = read(bytes.as_bytes(), config(Scheme::Bio)).unwrap();
        assert_eq!(
            all.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect::<Vec<_>>(),
            [("3", "Né 5mg"), ("8", "end")]
        );
        assert_eq!((all[0].words.as_slice(), all[0].spans[0].bytes.clone()), ([0..3, 4..7].as_slice(), 0..3));
        assert_eq!(labels.names(), ["Drug", "a-b"]);
        let tally = counts.documents;
        assert_eq!((tally.read, tally.kept, tally.dropped[DOCUMENT_LINE], tally.lines), (4, 2, 2, 8));
        assert_eq!((counts.spans.read, counts.spans.kept), (2, 2));
    }

    #[test]
    fn bare_tags_need_a_kind_and_tabs_keep_spaces() {
        let tabs =
            Config { separator: Separator::Tab, untyped: Some("Disease".to_owned()), ..config(Scheme::Bio) };
        let (all, labels, _) = read(b"a b\tB\nc\tI\nd\tO\n", tabs).unwrap();
        assert_eq!(
            (all[0].text.as_str(), all[0].words[0].clone(), all[0].spans[0].bytes.clone()),
            ("a b c d", 0..3, 0..5)
        );
        assert_eq!(labels.names(), ["Disease"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refuse = |bytes: &[u8], scheme| read(bytes, config(scheme)).unwrap_err().to_string();
        let message = refuse(b"a O\nb NN O\n", Scheme::Bio);
        assert!(
            message.starts_with("some.txt: line 2: 3 columns, expected 2 as in the first line"),
            "{message}"
        );
        assert!(
            refuse(b"\na\n", Scheme::Bio).contains("line 2: 1 columns, expected a word in the first column")
        );
        let message = refuse(b"a NN U-x\n", Scheme::Bio);
        assert!(
            message.starts_with("some.txt: line 1, column 3 (tag): found \"U-x\", expected O, B-kind"),
            "{message}"
        );
        assert!(refuse(b"a B\n", Scheme::Bio).contains("needs `untyped` in the config"));
        assert!(refuse(b"a B-\n", Scheme::Bilou).contains("found \"B-\""));
    }

    #[test]
    fn silent_16_tags_of_another_scheme_are_refused_with_its_name_unless_told() {
        let refuse = |tags: &str, scheme| {
            let lines: String = tags.split(' ').map(|tag| format!("w {tag}\n")).collect();
            let strict = Config { broken_tags: BrokenTags::Refuse, ..config(scheme) };
            read(lines.as_bytes(), strict).map(drop).map_err(|error| error.to_string())
        };
        let (iob1, bio, bilou) = ("O I-x I-x B-x O I-y", "O B-x I-x B-x O B-y", "O B-x L-x U-x O U-y");
        for (tags, scheme) in [(iob1, Scheme::Iob1), (bio, Scheme::Bio), (bilou, Scheme::Bilou)] {
            assert_eq!(refuse(tags, scheme), Ok(()), "{tags}");
        }
        for (tags, scheme, place, says) in [
            (iob1, Scheme::Bio, "line 2, column 2 (tag): found \"I-x\" behind \"O\"", "in `iob1`"),
            (bio, Scheme::Iob1, "line 2, column 2 (tag): found \"B-x\" behind \"O\"", "(in `bio` always)"),
            (bio, Scheme::Bilou, "line 4, column 2 (tag): found \"B-x\" behind \"I-x\"", "(not in `bio`)"),
            ("B-x I-y", Scheme::Bio, "line 2, column 2 (tag): found \"I-y\" behind \"B-x\"", "broken_tags"),
            (
                "I-x",
                Scheme::Bio,
                "line 1, column 2 (tag): found \"I-x\" behind \"the beginning of the sentence\"",
                "`iob1`",
            ),
            ("O B-x", Scheme::Bilou, "line 2: found \"the end of the sentence\" behind \"B-x\"", "`bio`"),
        ] {
            let refused = refuse(tags, scheme).unwrap_err();
            assert!(refused.contains(place) && refused.contains(says), "{tags}: {refused}");
        }
        let told = r#"{"scheme": "bio", "separator": "tab"}"#;
        assert_eq!(serde_json::from_str::<Config>(told).unwrap().broken_tags, BrokenTags::Refuse);
    }
}
