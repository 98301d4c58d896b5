//! Texts as their files have them: what a document is and what its marked spans are called. Knows no token and no task.

pub mod characters;
pub mod conll;
pub mod file;
pub mod jsonl;
pub mod sentence;
pub mod text;

use std::collections::BTreeMap;
use std::ops::Range;

use kg::source::funnel::Tally;
use serde::Serialize;

/// One document; readers fill the same one again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// What its file calls it, or else the number of the line on which it begins.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Where its words stand (bytes), in order, if the file says so; empty where that is left to the tokenizer.
    pub words: Vec<Range<usize>>,
    /// What is marked in it, in order and without overlaps.
    pub spans: Vec<Span>,
}

impl Document {
    fn clear(&mut self) {
        self.id.clear();
        self.text.clear();
        self.words.clear();
        self.spans.clear();
    }
}

/// A marked piece of a text: never empty, its ends lie between characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where it stands, in bytes.
    pub bytes: Range<usize>,
    /// What it is.
    pub label: Label,
}

/// The kind of a span: its number in [`Labels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// Number in the order in which names were first met.
    #[must_use]
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// Names of span kinds, numbered as they are first met; share one among all files of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    names: Vec<String>,
    numbers: BTreeMap<String, Label>,
}

impl Labels {
    /// The label of that name, a new one if it was not met before. `None` when there are 2^32 already.
    pub fn intern(&mut self, name: &str) -> Option<Label> {
        if let Some(label) = self.numbers.get(name) {
            return Some(*label);
        }
        let label = Label(u32::try_from(self.names.len()).ok()?);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), label);
        Some(label)
    }

    /// The label of that name, if it was met.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Label> {
        self.numbers.get(name).copied()
    }

    /// All names, by number.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// What became of the spans of a file. `read` = the sum of `dropped` + `kept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpanTally {
    /// Spans read.
    pub read: u64,
    /// Spans that were left out, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Spans that went on.
    pub kept: u64,
}

/// What became of a file with marked spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Its documents, or sentences where the file has only those.
    pub documents: Tally,
    /// Their spans.
    pub spans: SpanTally,
}

impl Counts {
    /// The same with what was read of the file so far.
    fn with_size(&self, bytes: u64, lines: u64) -> Self {
        let mut counts = self.clone();
        (counts.documents.bytes, counts.documents.lines) = (bytes, lines);
        counts
    }
}

fn keep(tally: &mut Tally) {
    tally.read += 1;
    tally.kept += 1;
}

fn drop_for(tally: &mut Tally, reason: &'static str) {
    tally.read += 1;
    *tally.dropped.entry(reason).or_insert(0) += 1;
}

/// A line without the mark that some programs put in front of a file of UTF-8.
fn unmarked(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
}
