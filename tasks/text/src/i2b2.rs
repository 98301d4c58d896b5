//! Reports and their concepts as i2b2 2010 has them (Uzuner et al. 2011): a text `.txt` and a file `.con`.
//!
//! The `.con` lies beside the text or, as published, in `../concept`. The text has a sentence a line, its words between blanks.
//! `c="the fever" 3:4 3:5||t="problem"` says that its words 4 and 5 on line 3 are a problem: lines count from 1, words from 0, both ends belong
//! to it. In front of a line that begins with a blank an empty word counts.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::fault::{self, LONGEST};
use super::mention::{self, Misfit, Misfits, OUTSIDE};
use super::reader::{Bytes, Flattened, Only, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, SpanTally, unmarked};

/// How a report is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What to do with a concept whose line or word numbers are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong position often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

const BLANK: &str = "blank line";
const CONCEPT: &str = "a concept, as c=\"the fever\" 3:4 3:5||t=\"problem\"";
const PLACES: &str = "the first and the last word of one line of the text, lines from 1, words from 0";

/// A text of which every line is a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The text.
    pub text: String,
    /// Its lines.
    pub lines: Vec<Row>,
}

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where it stands, in bytes of the text, without its end.
    pub bytes: Range<usize>,
    /// Where its words stand, in bytes of the text.
    words: Vec<Range<usize>>,
    /// The number of its first word.
    first: usize,
}

/// A concept of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concept {
    /// Its line in the file of concepts, from 1.
    pub number: u64,
    /// Which of the report's lines it is on, from 0.
    pub line: usize,
    /// Where it stands, in bytes of the text.
    pub bytes: Range<usize>,
    /// What it is.
    pub kind: String,
}

/// `c="the fever" 3:4 3:5`: words, and the line and number of the first and of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted<'a> {
    text: &'a str,
    first: (usize, usize),
    last: (usize, usize),
}

impl<'a> Quoted<'a> {
    /// What a row quotes at its beginning, and the rest of it.
    pub fn parse(row: &'a str) -> Option<(Self, &'a str)> {
        let number = |place: &str| {
            let (line, word) = place.split_once(':')?;
            Some((line.parse().ok()?, word.parse().ok()?))
        };
        let rest = row.strip_prefix("c=\"")?;
        // Words may be quotes themselves: only behind the last one there are places.
        rest.match_indices("\" ").find_map(|(end, mark)| {
            let behind = &rest[end + mark.len()..];
            let of_places = |byte: &u8| byte.is_ascii_digit() || matches!(*byte, b':' | b' ');
            let (places, behind) = behind.split_at(behind.bytes().take_while(of_places).count());
            let (first, last) = places.trim().split_once(' ')?;
            let (first, last) = (number(first)?, number(last.trim_start())?);
            Some((Self { text: &rest[..end], first, last }, behind))
        })
    }
}

impl Report {
    /// Reads a text; `file` names it in messages.
    ///
    /// # Errors
    /// When it is no text of UTF-8, or too long.
    pub fn read<R: BufRead>(reader: R, file: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::new(reader, file);
        let mut report = Self::default();
        while let Some(line) = lines.next_line()? {
            let start = report.text.len();
            report.text.push_str(if report.lines.is_empty() { unmarked(line.text) } else { line.text });
            if report.text.len() > LONGEST {
                let found = format!("the text has more than {LONGEST} bytes up to here");
                return Err(ReadError::new(line.place(None), found, "a report", "split it"));
            }
            let row = &report.text[start..];
            let first = usize::from(row.starts_with(char::is_whitespace));
            let (words, bytes) = (words(row, start), start..report.text.len());
            report.lines.push(Row { bytes, words, first });
            report.text.push('\n');
        }
        Ok(report)
    }

    /// Which line, from 0, the quoted words stand on, and where in the text, which may have others there; none if there are no such places.
    fn find(&self, quoted: Quoted<'_>) -> Option<(usize, Range<usize>)> {
        let ((line, first), (same, last)) = (quoted.first, quoted.last);
        let number = line.checked_sub(1).filter(|_| line == same && first <= last)?;
        let row = self.lines.get(number)?;
        let word = |at: usize| row.words.get(at.checked_sub(row.first)?);
        Some((number, word(first)?.start..word(last)?.end))
    }

    /// Counts the words that a line of a file quotes, and says where they stand as `find` does; `None` if they were dropped.
    ///
    /// # Errors
    /// When they do not stand there, and `misfits` does not say that such are dropped.
    pub fn admit(
        &self,
        line: Line<'_>,
        quoted: Quoted<'_>,
        misfits: Misfits,
        tally: &mut SpanTally,
    ) -> Result<Option<(usize, Range<usize>)>, ReadError> {
        let (reason, error) = match self.find(quoted) {
            None => (OUTSIDE, fault::line(line, line.text, PLACES)),
            Some((number, bytes)) if alike(&self.text[bytes.clone()], quoted.text) => {
                tally.keep();
                return Ok(Some((number, bytes)));
            }
            Some((_, bytes)) => {
                let misfit = Misfit::other_text(&self.text[bytes], quoted.text);
                (misfit.reason, misfit.refused(line.place(None)))
            }
        };
        if misfits == Misfits::Refuse {
            return Err(error);
        }
        tally.drop(reason);
        Ok(None)
    }
}

/// The error that a line does not say what it must.
#[must_use]
pub fn shape(line: Line<'_>, found: &str, expected: impl Into<String>) -> ReadError {
    fault::line(line, found, expected)
}

/// The file that says something of a text: beside it, under its name with another ending, or in a folder beside the text's.
///
/// # Errors
/// When it is at neither place.
pub fn beside(text: &Path, ending: &str, folder: &'static str) -> Result<PathBuf, ReadError> {
    let near = text.with_extension(ending);
    let name = near.file_name().unwrap_or_default();
    let far = text.parent().and_then(Path::parent).unwrap_or(Path::new("")).join(folder).join(name);
    if near.is_file() {
        return Ok(near);
    }
    if far.is_file() {
        return Ok(far);
    }
    let found = format!("{} is neither beside it nor in ../{folder}", name.to_string_lossy());
    let expected = "it for every text, empty if there is nothing to say";
    Err(ReadError::new(text, found, expected, "add the file"))
}

/// Opens a file.
///
/// # Errors
/// When that cannot be done.
pub fn opened(file: &Path) -> Result<BufReader<File>, ReadError> {
    fault::open(file, "a file of i2b2 2010")
}

/// The concepts of a report, as their file has them, and what became of its lines.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
pub fn concepts<R: BufRead>(
    report: &Report,
    reader: R,
    file: &Path,
    misfits: Misfits,
) -> Result<(Vec<Concept>, Counts), ReadError> {
    let mut counts = Counts { documents: Tally::new(file, &[BLANK]), spans: mention::tally(&[]) };
    let mut lines = Lines::new(reader, file);
    let (mut all, mut number) = (vec![], 0);
    while let Some(line) = lines.next_line()? {
        number += 1;
        let row = unmarked(line.text).trim();
        if row.is_empty() {
            counts.documents.drop(BLANK);
            continue;
        }
        let parsed = Quoted::parse(row).and_then(|(quoted, rest)| {
            let (kind, _) = rest.strip_prefix("||t=\"")?.split_once('"')?;
            Some((quoted, kind)).filter(|(_, kind)| !kind.trim().is_empty())
        });
        let (quoted, kind) = parsed.ok_or_else(|| fault::line(line, row, CONCEPT))?;
        if let Some((line, bytes)) = report.admit(line, quoted, misfits, &mut counts.spans)? {
            all.push(Concept { number, line, bytes, kind: kind.to_owned() });
        }
    }
    let counts = counts.with_size(lines.bytes(), lines.lines());
    Ok((all, counts))
}

/// Fills `document` with the report in `file`, whose concepts lie beside it or in `../concept`.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn open<R: BufRead>(
    reader: R,
    file: &Path,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    let beside = beside(file, "con", "concept")?;
    read(reader, file, opened(&beside)?, &beside, config, document, labels)
}

/// Fills `document` with a report and the concepts that its other file says are in it, and names their labels. Its words and sentences are the
/// file's.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn read<R: BufRead, C: BufRead>(
    reader: R,
    file: &Path,
    of_concepts: C,
    beside: &Path,
    config: Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    document.clear();
    let report = Report::read(reader, file)?;
    let (all, mut counts) = concepts(&report, of_concepts, beside, config.misfits)?;
    for Concept { number, bytes, kind, .. } in all {
        let label = labels.intern(&kind).ok_or_else(|| {
            let place = Place { file: beside.to_owned(), line: number, column: None };
            ReadError::text(place, &kind, "fewer than 2^32 kinds of concepts", "fix the line")
        })?;
        document.entities.push(Entity { pieces: vec![bytes], label, concepts: vec![] });
    }
    document.id.push_str(&file.file_stem().unwrap_or_default().to_string_lossy());
    let sentences = report.lines.iter().filter(|row| !row.words.is_empty());
    document.sentences.extend(sentences.map(|row| row.bytes.start));
    document.words.extend(report.lines.iter().flat_map(|row| row.words.iter().cloned()));
    document.text = report.text;
    mention::sort(document);
    counts.documents.keep();
    Ok(counts)
}

/// Where the words of a piece of text stand that begins at byte `from`.
fn words(text: &str, from: usize) -> Vec<Range<usize>> {
    let (mut words, mut open) = (vec![], None);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_whitespace(), open) {
            (false, None) => open = Some(from + at),
            (true, Some(start)) => {
                words.push(start..from + at);
                open = None;
            }
            _ => {}
        }
    }
    words
}

/// Whether two texts have the same words, in capitals or not, whatever blanks stand between them.
fn alike(one: &str, other: &str) -> bool {
    let lower = |word: &str| word.to_lowercase();
    one.split_whitespace().map(lower).eq(other.split_whitespace().map(lower))
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        let fill =
            move |document: &mut Document, labels: &mut Labels| open(bytes, file, *self, document, labels);
        Ok(Box::new(Flattened::new(Only::new(file, fill))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::mention::OTHER_TEXT;

    const STRICT: Config = Config { misfits: Misfits::Refuse };
    const TEXT: &str = "1. Née was given  Aspirin\r\n\n for her \" chest pain \" and fever .\n";
    const CON: &str = "c=\"aspirin\" 1:4 1:4||t=\"treatment\"\n\nc=\"\" chest pain \"\" 3:3 3:6||t=\"problem\"\r\n\
        c=\"chest pain\" 3:4 3:5||t=\"problem\"||a=\"present\"\nc=\"fever\" 3:8 3:8||t=\"problem\"";

    fn get(con: &[u8], config: Config) -> Result<(Document, Labels, Counts), ReadError> {
        let (mut document, mut labels) = (Document::default(), Labels::default());
        let (file, beside) = (Path::new("some.1.txt"), Path::new("some.1.con"));
        let counts = read(TEXT.as_bytes(), file, con, beside, config, &mut document, &mut labels)?;
        Ok((document, labels, counts))
    }

    fn said(document: &Document, labels: &Labels) -> Vec<String> {
        let name = |e: &Entity| {
            format!("{}:{}", &document.text[e.pieces[0].clone()], labels.names()[e.label.number()])
        };
        document.entities.iter().map(name).collect()
    }

    #[test]
    fn words_and_sentences_are_the_files() {
        let (document, labels, counts) = get(CON.as_bytes(), STRICT).unwrap();
        let expected =
            ["Aspirin:treatment", "\" chest pain \":problem", "chest pain:problem", "fever:problem"];
        assert_eq!(said(&document, &labels), expected);
        assert_eq!(document.id, "some.1");
        let words: Vec<&str> = document.words.iter().map(|word| &document.text[word.clone()]).collect();
        assert_eq!(words[..6], ["1.", "Née", "was", "given", "Aspirin", "for"]);
        let sentences: Vec<&str> = document.sentences.iter().map(|at| &document.text[*at..][..4]).collect();
        assert_eq!(sentences, ["1. N", " for"]);
        assert_eq!((counts.spans.read, counts.spans.kept, counts.documents.dropped[BLANK]), (4, 4, 1));
        assert_eq!(get(b"", STRICT).unwrap().0.entities, []);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, expected) in [
            (
                "\"fever\" 3:8",
                "\"fevers\" 3:8",
                "line 5: the mention does not fit: \"fever\" stands at its places, expected \"fevers\"",
            ),
            (
                "3:8 3:8",
                "3:0 3:8",
                "line 5: found \"c=\\\"fever\\\" 3:0 3:8||t=\\\"problem\\\"\", expected the first and the last word",
            ),
            ("3:8 3:8", "3:8 3:11", "line 5: found"),
            ("3:8 3:8", "2:8 3:8", "line 5: found"),
            ("3:8 3:8", "9:8 9:8", "line 5: found"),
            (
                "3:8 3:8",
                "3:8",
                "line 5: found \"c=\\\"fever\\\" 3:8||t=\\\"problem\\\"\", expected a concept, as c=\"the",
            ),
            ("1:4||t=\"treatment\"", "1:4||r=\"TrAP\"", "line 1: found"),
        ] {
            assert!(CON.contains(from), "{from}");
            let message = get(CON.replacen(from, to, 1).as_bytes(), STRICT).unwrap_err().to_string();
            assert!(
                message.starts_with("some.1.con: line ") && message.contains(expected),
                "{to}: {message}"
            );
        }
        let lenient = Config { misfits: Misfits::Drop };
        let wrong = CON.replace("\"fever\"", "\"fevers\"").replace("1:4 1:4", "1:4 1:5");
        let (document, labels, counts) = get(wrong.as_bytes(), lenient).unwrap();
        assert_eq!(said(&document, &labels).len(), 2);
        assert_eq!(
            (counts.spans.read, counts.spans.dropped[OUTSIDE], counts.spans.dropped[OTHER_TEXT]),
            (4, 1, 1)
        );
    }

    #[test]
    fn concepts_lie_beside_a_text_or_in_a_folder_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, content.as_bytes()).unwrap();
            path
        };
        let text = put("txt/record-13.txt", TEXT);
        let read = || {
            let (mut document, mut labels) = (Document::default(), Labels::default());
            let reader = BufReader::new(File::open(&text).unwrap());
            open(reader, &text, STRICT, &mut document, &mut labels).map(|_| document)
        };
        let message = read().unwrap_err().to_string();
        assert!(
            message.contains("record-13.txt: record-13.con is neither beside it nor in ../concept"),
            "{message}"
        );
        put("concept/record-13.con", CON);
        assert_eq!(read().unwrap().entities.len(), 4);
        put("txt/record-13.con", "");
        assert_eq!(read().unwrap().entities.len(), 0);
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for misfits in [Misfits::Refuse, Misfits::Drop] {
            assert_sound_or_refuses(CON.as_bytes(), |bytes| {
                let read = get(bytes, Config { misfits });
                read.map(|(document, ..)| vec![document]).map_err(|error| error.to_string())
            });
        }
    }
}
