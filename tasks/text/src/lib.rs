//! Texts as their files have them: what a document is and what its marked spans are called.

pub mod annotated_json;
pub mod attach;
pub mod bioc;
pub mod bioc_json;
pub mod brackets;
pub mod brat;
pub mod characters;
pub mod conll;
pub mod conllu;
pub mod count;
#[cfg(any(test, feature = "damage"))]
pub mod damage;
#[cfg(test)]
mod drain;
mod fault;
pub mod file;
pub mod flatten;
pub mod i2b2;
pub mod i2b2_xml;
pub mod json;
pub mod jsonl;
pub mod lexicon;
pub mod medquad;
pub mod mention;
pub mod mention_list;
pub mod metered;
pub mod mimic_notes;
pub mod mimic_table;
pub mod ner;
pub mod parquet;
pub mod phrase;
pub mod pmi;
pub mod pubmed;
pub mod pubmedqa;
pub mod pubtator;
pub mod reader;
pub mod sentence;
pub mod share;
pub mod subtree;
pub mod tagged;
pub mod text;
pub mod wikisection;
pub mod word;
pub mod xml;

use std::collections::BTreeMap;
use std::ops::Range;

use base::funnel::Tally;
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
    /// The bytes at which its sentences begin, in order, if the file says so; empty where that is left to a rule. See [`sentence::of`].
    pub sentences: Vec<usize>,
    /// What is marked in it, in order and without overlaps.
    pub spans: Vec<Span>,
    /// What an annotation file says of it: entities, which may overlap, in order of their beginning.
    pub entities: Vec<Entity>,
    /// Its phrases, in order and without overlaps, if an annotation file says so; what is in none is a phrase by itself, word by word.
    pub phrases: Vec<Range<usize>>,
}

impl Document {
    fn clear(&mut self) {
        self.id.clear();
        self.text.clear();
        self.words.clear();
        self.sentences.clear();
        self.spans.clear();
        self.entities.clear();
        self.phrases.clear();
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

/// An entity as an annotation file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Where it stands, in bytes: one piece, or several where it is discontinuous; in order and apart, none empty, between characters.
    pub pieces: Vec<Range<usize>>,
    /// What it is.
    pub label: Label,
    /// The concepts that it names, as the file writes them (`D009270`, `C0494165`); none where it says none.
    pub concepts: Vec<String>,
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

impl SpanTally {
    /// One more span goes on.
    pub fn keep(&mut self) {
        self.read += 1;
        self.kept += 1;
    }

    /// One more span is left out for `reason`.
    pub fn drop(&mut self, reason: &'static str) {
        self.read += 1;
        *self.dropped.entry(reason).or_insert(0) += 1;
    }
}

impl Counts {
    /// Counts of documents in which nothing is marked.
    fn of(documents: Tally) -> Self {
        Self { documents, spans: SpanTally::default() }
    }

    /// The same with what was read of the file so far.
    fn with_size(&self, bytes: u64, lines: u64) -> Self {
        let mut counts = self.clone();
        (counts.documents.bytes, counts.documents.lines) = (bytes, lines);
        counts
    }
}

/// Appends a paragraph, with a blank line between it and what stands there; one of nothing but white space is none.
fn paragraph(text: &mut String, next: &str) {
    if next.trim().is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(next);
}

/// A line without the BOM that some programs put in front of a file of UTF-8.
#[must_use]
pub fn unmarked(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
}
