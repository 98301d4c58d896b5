//! Texts to predict on, line by line, and predictions as JSON lines.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::path::Path;

use base::line::{self, Lines, Place};
use base::object::Object;
use base::read::ReadError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// A text, for want of a word on it: one that reads as a JSON object is refused.
    Untold,
    /// A JSON object with `text` and, if wanted, `pair` (a second text) and `id` (a text or a number).
    Json,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    /// Its line, from 1.
    pub line: u64,
    /// What its line calls it: a text or a number, to be handed out with its prediction.
    pub id: Option<Value>,
    pub text: String,
    /// The second text.
    pub pair: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    text: String,
    pair: Option<String>,
    id: Option<Value>,
}

/// Reads input after input.
#[derive(Debug)]
pub(crate) struct Inputs<'f, R> {
    lines: Lines<'f, R>,
    form: Form,
    ids: BTreeSet<String>,
}

impl<'f, R: BufRead> Inputs<'f, R> {
    /// Inputs of `reader`; `file` names it in messages. The last line may lack its end.
    pub(crate) fn new(reader: R, file: &'f Path, form: Form) -> Self {
        Inputs { lines: Lines::new(reader, file), form, ids: BTreeSet::new() }
    }

    /// The next `most` inputs, fewer at the end of the file, none behind it.
    ///
    /// # Errors
    /// When a line cannot be read, is of another form, or has no text or an identifier that stood before.
    pub(crate) fn batch(&mut self, most: usize) -> Result<Vec<Input>, ReadError> {
        let mut batch = Vec::new();
        while batch.len() < most {
            match self.read()? {
                Some(input) => batch.push(input),
                None => break,
            }
        }
        Ok(batch)
    }

    fn read(&mut self) -> Result<Option<Input>, ReadError> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let place = line.place(None);
        // Some editors mark the beginning of a file.
        let text = if place.line == 1 { line.text.trim_start_matches('\u{feff}') } else { line.text };
        let row = match self.form {
            Form::Untold if is_object(text) => {
                return Err(ReadError::new(
                    place,
                    "the line begins as a JSON object",
                    "a text, as no word says otherwise",
                    "say --lines json, or --lines text if it is one",
                ));
            }
            Form::Text | Form::Untold => Row { text: text.to_owned(), pair: None, id: None },
            Form::Json if text.trim().is_empty() => return Err(empty(place)),
            Form::Json => {
                let Object(row) = serde_json::from_str(text).map_err(|error| parsing(line, &error))?;
                row
            }
        };
        let blank = |text: &String| text.trim().is_empty();
        if blank(&row.text) || row.pair.as_ref().is_some_and(blank) {
            return Err(empty(place));
        }
        if let Some(id) = &row.id {
            match id {
                // A text and a number with the same digits differ.
                Value::String(_) | Value::Number(_) if self.ids.insert(id.to_string()) => {}
                Value::String(_) | Value::Number(_) => {
                    return Err(ReadError::new(
                        place,
                        format!("`id` {id} stands on an earlier line too"),
                        "another for each line",
                        "fix the line, or leave all out",
                    ));
                }
                other => {
                    let found = format!("`id` is {other}");
                    return Err(ReadError::new(place, found, "a text or a number", "fix the line"));
                }
            }
        }
        let Row { text, pair, id } = row;
        Ok(Some(Input { line: place.line, id, text, pair }))
    }
}

/// Whether a line begins as an object does, whole or broken.
fn is_object(line: &str) -> bool {
    line.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
}

fn parsing(line: line::Line<'_>, error: &serde_json::Error) -> ReadError {
    let text = error.to_string();
    // The parser counts lines within this one.
    let problem = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let place = line.place(Some((error.column(), "byte of the line")));
    let expected = "one JSON object with `text` and, if wanted, `pair` and `id`";
    ReadError::new(place, problem, expected, "fix the line, or read the file as plain text")
}

fn empty(place: Place) -> ReadError {
    let expected = "one on every line, so that predictions have the order of lines";
    ReadError::new(place, "there is no text", expected, "fill the line or remove it")
}

/// Writes `value` as one JSON line in which nothing steers a terminal.
///
/// # Errors
/// When the operating system refuses, or `value` has no JSON form.
pub(crate) fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", base::visible::shown(&serde_json::to_string(value)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, form: Form, most: usize) -> (Vec<Vec<Input>>, Option<String>) {
        let mut inputs = Inputs::new(text.as_bytes(), Path::new("in.txt"), form);
        let mut batches = Vec::new();
        loop {
            match inputs.batch(most) {
                Ok(batch) if batch.is_empty() => return (batches, None),
                Ok(batch) => batches.push(batch),
                Err(error) => return (batches, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn texts_come_in_batches_with_their_lines() {
        let (batches, error) = read("\u{feff}fever\r\ncold feet\nCough", Form::Text, 2);
        let found: Vec<Vec<(u64, &str)>> = batches
            .iter()
            .map(|batch| batch.iter().map(|input| (input.line, &*input.text)).collect())
            .collect();
        assert_eq!(found, [vec![(1, "fever"), (2, "cold feet")], vec![(3, "Cough")]]);
        assert_eq!(error, None);
        assert_eq!(read("", Form::Text, 2), (Vec::new(), None));
    }

    #[test]
    fn objects_have_pairs_and_ids() {
        let text =
            "{\"text\":\"a\"}\n{\"text\":\"b\",\"pair\":\"c\",\"id\":\"7\"}\n{\"text\":\"d\",\"id\":7}\n";
        let (batches, error) = read(text, Form::Json, 10);
        assert_eq!(error, None);
        let [one, two, three] = &batches[0][..] else { panic!("{batches:?}") };
        assert_eq!((&*one.text, &one.pair, &one.id), ("a", &None, &None));
        assert_eq!((&*two.text, two.pair.as_deref(), &two.id), ("b", Some("c"), &Some(json!("7"))));
        assert_eq!((three.line, &three.id), (3, &Some(json!(7))));
    }

    #[test]
    fn what_is_no_input_is_refused_with_its_line() {
        let error = |text: &str, form| read(text, form, 10).1.unwrap();
        let good = "{\"text\":\"a\",\"id\":1}\n";
        for (line, part) in [
            ("{\"txt\":\"a\"}", "in.txt: line 2, column 6 (byte of the line): unknown field `txt`"),
            ("{\"text\":\"a\"", "in.txt: line 2, column 11"),
            ("plain", "or read the file as plain text"),
            ("[\"a\", \"b\", 7]", "in.txt: line 2"),
            ("[\"a\", \"b\", 7]", "expected an object"),
            ("{\"pair\":\"a\"}", "missing field `text`, expected"),
            ("", "in.txt: line 2: there is no text"),
            ("{\"text\":\"a\",\"pair\":\" \"}", "in.txt: line 2: there is no text"),
            ("{\"text\":\"a\",\"id\":[1]}", "in.txt: line 2: `id` is [1]"),
            ("{\"text\":\"a\",\"id\":1}", "in.txt: line 2: `id` 1 stands on an earlier line"),
        ] {
            let found = error(&format!("{good}{line}\n"), Form::Json);
            assert!(found.contains(part), "{line}: {found}");
            assert!(!found.contains("at line 1"), "{found}");
        }
        for line in ["{\"text\": \"fever\"}", " { \"text", "{}"] {
            assert!(error(line, Form::Untold).contains("line 1: the line begins as a JSON object"), "{line}");
            assert_eq!(read(line, Form::Text, 1).0[0][0].text, line);
        }
        assert_eq!(read("{fever} and \"x\"", Form::Untold, 1).0[0][0].text, "{fever} and \"x\"");
        assert!(error("a\n\nb\n", Form::Text).contains("in.txt: line 2: there is no text"));
    }

    #[test]
    fn predictions_are_lines() {
        let mut out = Vec::new();
        write_line(&mut out, &json!({"label": "yes\nno"})).unwrap();
        write_line(&mut out, &json!({"label": "no"})).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"label\":\"yes\\nno\"}\n{\"label\":\"no\"}\n");
    }

    #[test]
    fn silent_22_a_class_steers_no_terminal() {
        let mut out = Vec::new();
        write_line(&mut out, &json!({"label": "\u{1b}[2J\u{9b}31m\u{202e}"})).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"label\":\"\\u001b[2J\\u009b31m\\u202e\"}\n");
    }
}
