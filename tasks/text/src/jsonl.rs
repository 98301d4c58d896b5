//! Documents with marked spans as JSON lines.
//!
//! A line is `{"text": "...", "id": "...", "spans": [{"start": 0, "end": 4, "label": "Disease"}]}`; `id` and `spans` may be missing.
//! `end` is the place behind the last character of the span.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Line, Lines};
use base::object::Object;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::fault;
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels, Span, SpanTally, unmarked};

/// What `start` and `end` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Unicode characters, as in Python.
    Characters,
    /// Bytes of UTF-8.
    Bytes,
}

/// What becomes of spans that overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlaps {
    /// They are an error.
    #[default]
    Refuse,
    /// The longest is kept, the first of equally long ones; those that overlap it are dropped and counted.
    Longest,
}

/// What becomes of keys that have no meaning here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherKeys {
    /// They are an error, so that a misspelt key loses no spans.
    #[default]
    Refuse,
    /// They are ignored.
    Ignore,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The unit of span offsets; `end` is exclusive. Needed where a line has spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// What to do with overlapping spans.
    ///
    /// Source: ours: because tags cannot express them, and dropping annotations should be a decision.
    #[serde(default)]
    pub overlaps: Overlaps,
    /// What to do with unknown keys.
    ///
    /// Source: ours: because a misspelt key would otherwise lose spans unnoticed.
    #[serde(default)]
    pub other_keys: OtherKeys,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    spans: Vec<Object<Marked<'a>>>,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marked<'a> {
    start: usize,
    end: usize,
    #[serde(borrow)]
    label: Cow<'a, str>,
}

const OVERLAP: &str = "overlaps a longer span";

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
        let spans = SpanTally { dropped: [(OVERLAP, 0)].into(), ..SpanTally::default() };
        let counts = Counts { documents: Tally::new(file, &["blank line", "no text"]), spans };
        Self { lines: Lines::new(reader, file), config, counts }
    }
}

fn parse(line: Line<'_>, other_keys: OtherKeys) -> Result<Row<'_>, ReadError> {
    let row: Row<'_> = serde_json::from_str(unmarked(line.text)).map_err(|error| {
        let place = line.place(Some((error.column(), "byte of the line")));
        let expected =
            "one JSON object with `text` and, if wanted, `id` and `spans` (each with `start`, `end` and `label`)";
        ReadError::new(place, fault::json(&error), expected, "fix the line")
    })?;
    match row.others.keys().next() {
        Some(key) if other_keys == OtherKeys::Refuse => {
            let remedy = "rename it, or set `other_keys` to `ignore`";
            Err(ReadError::new(
                line.place(None),
                format!("unknown key {key:?}"),
                "`text`, `id` or `spans`",
                remedy,
            ))
        }
        _ => Ok(row),
    }
}

/// Checks a row's spans and appends them in bytes.
fn mark(
    line: Line<'_>,
    row: &Row<'_>,
    unit: Option<Unit>,
    spans: &mut Vec<Span>,
    labels: &mut Labels,
) -> Result<(), ReadError> {
    if row.spans.is_empty() {
        return Ok(());
    }
    let unit = unit.ok_or_else(|| {
        let remedy = "set `unit` to `characters`, as Python counts them, or to `bytes` of UTF-8";
        ReadError::new(line.place(None), "spans", "a config that says what their places count", remedy)
    })?;
    let characters = Characters::new(&row.text);
    let (length, unit_name) = match unit {
        Unit::Characters => (characters.len(), "characters"),
        Unit::Bytes => (row.text.len(), "bytes"),
    };
    for (number, Object(marked)) in row.spans.iter().enumerate() {
        let place = || line.place(Some((number + 1, "number of the span")));
        let (start, end) = (marked.start, marked.end);
        let wrong = |problem| {
            let expected = format!("start < end <= {length} {unit_name}");
            let remedy = "fix the span, or say in which unit its places are";
            ReadError::new(place(), format!("span {start}..{end} {problem}"), expected, remedy)
        };
        if start >= end {
            return Err(wrong("is empty or inverted"));
        }
        if end > length {
            return Err(wrong("reaches beyond the text"));
        }
        let bytes = match unit {
            Unit::Characters => characters.byte(start).zip(characters.byte(end)),
            Unit::Bytes => {
                let whole = row.text.is_char_boundary(start) && row.text.is_char_boundary(end);
                whole.then_some((start, end))
            }
        };
        let (start, end) = bytes.ok_or_else(|| wrong("cuts a character"))?;
        let name = marked.label.trim();
        let label = labels.intern(name).filter(|_| !name.is_empty());
        let unnamed =
            || ReadError::new(place(), "the span's label is empty", "the name of its kind", "fix the span");
        spans.push(Span { bytes: start..end, label: label.ok_or_else(unnamed)? });
    }
    Ok(())
}

/// Sorts the spans and leaves none that overlap; says how many had to go.
fn resolve(line: Line<'_>, document: &mut Document, overlaps: Overlaps) -> Result<u64, ReadError> {
    let Document { text, spans, .. } = document;
    spans.sort_by_key(|span| (span.bytes.start, span.bytes.end));
    let Some(pair) = spans.windows(2).find(|pair| pair[1].bytes.start < pair[0].bytes.end) else {
        return Ok(0);
    };
    if overlaps == Overlaps::Refuse {
        let [first, second] = [&pair[0], &pair[1]].map(|span| text[span.bytes.clone()].to_owned());
        let found = format!("spans {first:?} and {second:?} overlap");
        let remedy = "fix them, or set `overlaps` to `longest`";
        return Err(ReadError::new(line.place(None), found, "spans apart from each other", remedy));
    }
    let read = spans.len();
    let mut by_length = std::mem::take(spans);
    by_length.sort_by_key(|span| Reverse(span.bytes.len()));
    for span in by_length {
        // Those kept lie apart and in order, so one neighbour on either side decides.
        let at = spans.partition_point(|kept| kept.bytes.end <= span.bytes.start);
        if spans.get(at).is_none_or(|next| span.bytes.end <= next.bytes.start) {
            spans.insert(at, span);
        }
    }
    Ok((read - spans.len()) as u64)
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Reader::new(bytes, file, *self)))
    }
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    // Fills `document` with the next one and names its spans' labels; `false` at the end of the file. Blank lines and texts of
    // nothing but white space are left out and counted.
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while let Some(line) = self.lines.next_line()? {
            if unmarked(line.text).trim().is_empty() {
                self.counts.documents.drop("blank line");
                continue;
            }
            let row = parse(line, self.config.other_keys)?;
            if row.text.trim().is_empty() && row.spans.is_empty() {
                self.counts.documents.drop("no text");
                continue;
            }
            mark(line, &row, self.config.unit, &mut document.spans, labels)?;
            document.text.push_str(&row.text);
            match row.id {
                Some(id) => document.id.push_str(&id),
                None => document.id.push_str(&line.place(None).line.to_string()),
            }
            self.counts.spans.read += row.spans.len() as u64;
            let dropped = resolve(line, document, self.config.overlaps)?;
            self.counts.spans.kept += document.spans.len() as u64;
            *self.counts.spans.dropped.entry(OVERLAP).or_insert(0) += dropped;
            self.counts.documents.keep();
            return Ok(true);
        }
        Ok(false)
    }

    fn counts(&self) -> Counts {
        self.counts.with_size(self.lines.bytes(), self.lines.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain;

    const STRICT: Config =
        Config { unit: Some(Unit::Characters), overlaps: Overlaps::Refuse, other_keys: OtherKeys::Refuse };

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<Document>, Labels, Counts), ReadError> {
        let mut reader = Reader::new(bytes, Path::new("some.jsonl"), config);
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels))?;
        Ok((all, labels, reader.counts()))
    }

    fn refuse(line: &str, config: Config) -> String {
        read(format!("\n{line}\n").as_bytes(), config).unwrap_err().to_string()
    }

    fn pieces(document: &Document) -> Vec<(&str, usize)> {
        document.spans.iter().map(|s| (&document.text[s.bytes.clone()], s.label.number())).collect()
    }

    #[test]
    fn spans_are_counted_in_the_unit_asked_for() {
        let line = r#"{"spans":[{"start":4,"end":6,"label":"Drug"},{"start":0,"end":3,"label":"Sign"}],"text":"née 𝔾中"}"#;
        let (all, labels, counts) = read(line.as_bytes(), STRICT).unwrap();
        assert_eq!(pieces(&all[0]), [("née", 1), ("𝔾中", 0)], "in the order of the text");
        assert_eq!(labels.names(), ["Drug", "Sign"], "in the order of the file");
        assert_eq!((all[0].id.as_str(), counts.spans.read, counts.spans.kept), ("1", 2, 2));
        let bytes = Config { unit: Some(Unit::Bytes), ..STRICT };
        let line = r#"{"text":"née 𝔾中","id":"a","spans":[{"start":5,"end":12,"label":"Drug"}]}"#;
        let (all, _, _) = read(line.as_bytes(), bytes).unwrap();
        assert_eq!((pieces(&all[0]), all[0].id.as_str()), (vec![("𝔾中", 0)], "a"));
        let message = refuse(&line.replace("12", "11"), bytes);
        assert!(message.contains("span 5..11 cuts a character"), "{message}");
    }

    #[test]
    fn spans_without_a_unit_are_refused_and_texts_need_none() {
        let unsaid = Config { unit: None, ..STRICT };
        let (all, _, _) = read(br#"{"text":"a","spans":[]}"#, unsaid).unwrap();
        assert_eq!(all.len(), 1);
        let message = refuse(r#"{"text":"ab","spans":[{"start":0,"end":1,"label":"X"}]}"#, unsaid);
        let expected = "some.jsonl: line 2: spans, expected a config that says what their places count; set `unit` to `characters`";
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn documents_without_text_are_counted_and_left_out() {
        let (all, _, counts) =
            read(b"\xef\xbb\xbf{\"text\":\"a\"}\n\n{\"text\":\" \\n\"}\r\n{\"text\":\"b\"}", STRICT).unwrap();
        assert_eq!(all.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["1", "4"]);
        let tally = counts.documents;
        assert_eq!((tally.read, tally.kept, tally.lines), (4, 2, 4));
        assert_eq!((tally.dropped["blank line"], tally.dropped["no text"]), (1, 1));
    }

    #[test]
    fn overlaps_are_refused_or_the_longest_stays() {
        let span = |start, end| format!(r#"{{"start":{start},"end":{end},"label":"X"}}"#);
        let spans = [span(2, 4), span(0, 4), span(3, 9), span(9, 10), span(9, 10), span(4, 6)].join(",");
        let line = format!(r#"{{"text":"0123456789","spans":[{spans}]}}"#);
        let message = refuse(&line, STRICT);
        assert!(message.contains("line 2: spans \"0123\" and \"23\" overlap"), "{message}");
        let longest = Config { overlaps: Overlaps::Longest, ..STRICT };
        let (all, _, counts) = read(line.as_bytes(), longest).unwrap();
        let kept: Vec<&str> = pieces(&all[0]).into_iter().map(|(text, _)| text).collect();
        assert_eq!(kept, ["345678", "9"]);
        assert_eq!((counts.spans.read, counts.spans.kept, counts.spans.dropped[OVERLAP]), (6, 2, 4));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let spans =
            |start, end| format!(r#"{{"text":"né","spans":[{{"start":{start},"end":{end},"label":"X"}}]}}"#);
        let list = refuse(r#"{"text":"ab","spans":[[0,1,"X"]]}"#, STRICT);
        assert!(list.contains("expected an object"), "{list}");
        let empty = refuse(&spans(1, 1), STRICT);
        assert!(
            empty.starts_with("some.jsonl: line 2, column 1 (number of the span): span 1..1 is empty"),
            "{empty}"
        );
        assert!(
            refuse(&spans(0, 3), STRICT)
                .contains("reaches beyond the text, expected start < end <= 2 characters")
        );
        assert!(refuse(&spans(0, 1).replace('X', " "), STRICT).contains("the span's label is empty"));
        assert!(refuse(r#"{"text":"a","span":[]}"#, STRICT).contains("unknown key \"span\""));
        let ignore = Config { other_keys: OtherKeys::Ignore, ..STRICT };
        assert_eq!(read(br#"{"text":"a","title":{"b":[1]}}"#, ignore).unwrap().0.len(), 1);
        let cut = refuse(r#"{"text":"a"#, STRICT);
        assert!(
            cut.starts_with("some.jsonl: line 2, column 10 (byte of the line): EOF while parsing a string, "),
            "{cut}"
        );
        assert!(refuse(r#"{"id":"a"}"#, STRICT).contains("missing field `text`"));
        assert!(
            refuse(r#"{"text":"a","spans":[{"start":-1,"end":1,"label":"X"}]}"#, STRICT).contains("line 2")
        );
    }
}
