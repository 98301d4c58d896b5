//! A graph as JSON lines (`nodes.jsonl`, `edges.jsonl`) or as one document (`{"nodes": [...], "edges": [...]}`): turned into rows of a table while it is read.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use base::funnel::Tally;
use base::line::Lines;
use base::object::{Distinct, DistinctObject};
use base::read::{Location, ReadError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::source::files::{Counted, Input, ending, json};

/// What a file's name says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Lines,
    Document,
}

impl Kind {
    pub(super) fn of(file: &Path) -> Self {
        match ending(file).as_str() {
            "jsonl" | "ndjson" => Self::Lines,
            "json" => Self::Document,
            _ => Self::Table,
        }
    }
}

/// Which list of a graph is read.
#[derive(Debug, Clone)]
pub(super) struct List<'c> {
    /// Its key in a document.
    pub(super) key: &'static str,
    /// The columns of its table; of a pair the second stands in where the first is missing.
    pub(super) columns: &'c [(&'c str, Option<&'c str>)],
    /// What to do about a record that is none.
    pub(super) remedy: &'static str,
}

/// What stands between and behind the values of a list, since each may have any letter of a table's.
pub(super) const BETWEEN: char = '\u{1f}';

/// Reads a file by `read`, which takes it for a table, and gives `tally` what the file has. Of the keys that are `missing` so far those stay that no record has.
pub(super) fn read<R: BufRead, T>(
    file: Input<R>,
    list: &List<'_>,
    missing: &mut BTreeSet<String>,
    read: impl FnOnce(Input<Box<dyn BufRead + '_>>) -> Result<T, ReadError>,
    tally: impl FnOnce(&mut T) -> &mut Tally,
) -> Result<T, ReadError> {
    let Input { reader, label } = file;
    let kind = Kind::of(&label);
    if kind == Kind::Table {
        return read(Input::new(Box::new(reader), label));
    }
    let mut counted = Counted::new(reader);
    let records = match kind {
        Kind::Document => Records::List(document(&mut counted, &label, list)?.into_iter()),
        Kind::Lines | Kind::Table => Records::Lines(Lines::new(BufReader::new(&mut counted), &label)),
    };
    let mut turned = Turned {
        records,
        missing,
        list,
        label: &label,
        number: 0,
        text: header(list).into_bytes(),
        at: 0,
        unused: BTreeSet::new(),
        error: None,
    };
    let result = read(Input::new(Box::new(BufReader::new(&mut turned)), label.clone()));
    let Turned { error, unused, number, .. } = turned;
    let mut done = match (error, result) {
        (Some(error), _) => return Err(error),
        (None, Err(error)) => return Err(placed(&error, &label, kind, list.key)),
        (None, Ok(done)) => done,
    };
    let tally = tally(&mut done);
    tally.bytes = counted.bytes;
    tally.lines = if kind == Kind::Lines { number } else { counted.lines };
    tally.columns_not_used = unused.into_iter().collect();
    Ok(done)
}

/// Fails if a key that is asked for is in no record of `label`, or of the files that it is the last of.
///
/// # Errors
/// Names the first such key.
pub(super) fn met(missing: &BTreeSet<String>, label: &Path) -> Result<(), ReadError> {
    let Some(key) = missing.first() else { return Ok(()) };
    let found = format!("no record has the key {key:?}");
    Err(ReadError::new(label, found, "one at least", "fix the config, which asks for it"))
}

/// The same error, at a record instead of a row of the table that it was turned into.
fn placed(error: &ReadError, label: &Path, kind: Kind, key: &str) -> ReadError {
    let Location::Line(place) = error.place() else { return error.clone() };
    // The names of the columns were the first line.
    let number = place.line.saturating_sub(1);
    let unit = if kind == Kind::Lines { "line" } else { key };
    let field = place.column.map_or_else(String::new, |(_, name)| format!(" ({name})"));
    let at = format!("{}: {unit} {number}{field}", label.display());
    ReadError::new(at, error.found(), error.expected(), error.remedy())
}

#[derive(Deserialize)]
struct Document {
    nodes: Option<Vec<DistinctObject>>,
    edges: Option<Vec<DistinctObject>>,
}

/// A list of a document.
fn document(reader: impl Read, label: &Path, list: &List<'_>) -> Result<Vec<DistinctObject>, ReadError> {
    let key = list.key;
    let mut all: Document = json(reader, label, "a graph as JSON", list.remedy)?;
    match if key == "nodes" { all.nodes.take() } else { all.edges.take() } {
        Some(list) => Ok(list),
        None => {
            let expected = "a document {\"nodes\": [...], \"edges\": [...]}";
            Err(ReadError::new(label, format!("the document has no list {key:?}"), expected, list.remedy))
        }
    }
}

fn header(list: &List<'_>) -> String {
    let names: Vec<&str> = list.columns.iter().map(|(name, _)| *name).collect();
    names.join("\t") + "\n"
}

/// The records of a file.
enum Records<'f, R> {
    Lines(Lines<'f, R>),
    List(std::vec::IntoIter<DistinctObject>),
}

/// Records as rows of a table.
struct Turned<'f, R> {
    records: Records<'f, R>,
    list: &'f List<'f>,
    label: &'f Path,
    /// Records so far, blank lines included.
    number: u64,
    /// The row that is handed on, and how much of it was.
    text: Vec<u8>,
    at: usize,
    unused: BTreeSet<String>,
    /// The keys that are still to be met.
    missing: &'f mut BTreeSet<String>,
    error: Option<ReadError>,
}

/// Above it not every whole number is a number of JSON as others read them.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl<R: BufRead> Turned<'_, R> {
    /// Goes on to the next row; none at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        let value = match &mut self.records {
            Records::List(list) => list.next().map(|DistinctObject(record)| Value::Object(record)),
            Records::Lines(lines) => match lines.next_line()? {
                None => None,
                Some(line) => {
                    let first = line.place(None).line == 1;
                    let text = line.text.strip_prefix('\u{feff}').filter(|_| first).unwrap_or(line.text);
                    if text.trim().is_empty() {
                        // The table's reader counts it.
                        Some(Value::Null)
                    } else {
                        let parsed = serde_json::from_str(text).map(|Distinct(record)| record);
                        Some(parsed.map_err(|error| {
                            let found = error.to_string();
                            ReadError::new(line.place(None), found, "a record as JSON", self.list.remedy)
                        })?)
                    }
                }
            },
        };
        let Some(value) = value else { return Ok(false) };
        self.number += 1;
        let row = match value {
            Value::Object(record) => self.row(&record)?,
            Value::Null => String::new(),
            _ => {
                let first = self.missing.first().map(String::as_str);
                let first =
                    first.or_else(|| self.list.columns.first().map(|(name, _)| *name)).unwrap_or("id");
                return Err(self.wrong("", "the record is no object", &format!("{{{first:?}: ...}}")));
            }
        };
        self.text.clear();
        self.text.extend_from_slice(row.as_bytes());
        self.text.push(b'\n');
        self.at = 0;
        Ok(true)
    }

    fn wrong(&self, field: &str, found: &str, expected: &str) -> ReadError {
        let unit = if matches!(self.records, Records::Lines(_)) { "line" } else { self.list.key };
        let field = if field.is_empty() { String::new() } else { format!(" ({field})") };
        let at = format!("{}: {unit} {}{field}", self.label.display(), self.number);
        ReadError::new(at, found, expected, self.list.remedy)
    }

    fn row(&mut self, record: &Map<String, Value>) -> Result<String, ReadError> {
        let read =
            |key: &str| self.list.columns.iter().any(|(name, other)| *name == key || *other == Some(key));
        let unused: Vec<String> =
            record.keys().filter(|key| !read(key) && !self.unused.contains(*key)).cloned().collect();
        self.unused.extend(unused);
        let mut fields = Vec::with_capacity(self.list.columns.len());
        let list = self.list;
        for (name, other) in list.columns {
            if !self.missing.is_empty() && record.contains_key(*name) {
                self.missing.remove(*name);
            }
            let first = record.get(*name).filter(|value| !value.is_null());
            let value = first.or_else(|| record.get((*other)?));
            fields.push(self.field(name, value)?);
        }
        if fields.iter().all(|field| field.trim().is_empty()) {
            let keys: Vec<&str> = self.list.columns.iter().map(|(name, _)| *name).take(3).collect();
            return Err(self.wrong("", "the record has none of the keys that are read", &keys.join(", ")));
        }
        Ok(fields.join("\t"))
    }

    /// A value as a field.
    fn field(&self, name: &str, value: Option<&Value>) -> Result<String, ReadError> {
        let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        match value {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(plain(text)),
            Some(Value::Bool(of)) => Ok(of.to_string()),
            // What does not fit was rounded when it was read.
            Some(Value::Number(of)) if of.is_f64() && of.as_f64().is_some_and(|of| of.abs() >= EXACT) => {
                Err(self.wrong(
                    name,
                    &format!("found a number as large as {of}"),
                    "a smaller one, or its digits in quotes",
                ))
            }
            Some(Value::Number(of)) => Ok(of.to_string()),
            Some(Value::Array(list)) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                let texts = texts.ok_or_else(|| self.wrong(name, "found a list of no texts", "texts"))?;
                Ok(texts.into_iter().map(|text| plain(text) + &BETWEEN.to_string()).collect())
            }
            Some(Value::Object(_)) => Err(self.wrong(name, "found an object", "a text, or a list of texts")),
        }
    }
}

impl<R: BufRead> Read for Turned<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() && !out.is_empty() {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.error = Some(error);
                    return Err(io::Error::other("a record is none"));
                }
            }
        }
        let read = out.len().min(self.text.len() - self.at);
        out[..read].copy_from_slice(&self.text[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}
