//! A document as brat's two files: a text, and beside it what stands in it.

use std::fmt::Write;
use std::ops::Range;

use kg::table::Entity;

use super::{Tagged, Told};
use crate::ner::context::Modifier;

/// The contents of the file `.ann`: for each mention its kind, its place in characters and what stands there (`T`), the entities that it may name
/// as references (`N`, those that hold the most likely first) and their keys in a note (`#`), and an attribute (`A`) for each thing that its sentence says of it. A
/// second note, `Match`, says how the mention was found, the score of each reference, `|` between, and its place in bytes.
/// Where a line of the text ends in a mention, it has two pieces, as brat wants it.
#[must_use]
pub fn annotations(document: &Tagged, entities: &[Entity]) -> String {
    let mut out = String::new();
    let (mut references, mut notes, mut attributes) = (0, 0, 0);
    for told in document.told(entities).filter(|told| !told.candidates.is_empty()) {
        let number = told.number + 1;
        let pieces: Vec<String> =
            pieces(&told).iter().map(|piece| format!("{} {}", piece.start, piece.end)).collect();
        let text: Vec<&str> = told.text.split(['\n', '\r']).filter(|line| !line.is_empty()).collect();
        // Writing to a string does not fail.
        let _ =
            writeln!(out, "T{number}\t{} {}\t{}", one_word(told.kind()), pieces.join(";"), text.join(" "));
        for (entity, _) in &told.candidates {
            references += 1;
            let (key, name) = (spelt(&entity.key), entity.text.replace(['\t', '\n', '\r'], " "));
            let _ = writeln!(out, "N{references}\tReference T{number} {key}\t{name}");
        }
        let keys: Vec<String> = told.candidates.iter().map(|(entity, _)| spelt(&entity.key)).collect();
        let scores: Vec<String> = told.candidates.iter().map(|(_, score)| score.to_string()).collect();
        let (how, bytes) = (told.how.name(), &told.bytes);
        let found = format!("how={how} score={} bytes={}-{}", scores.join("|"), bytes.start, bytes.end);
        for (kind, text) in [("AnnotatorNotes", keys.join(" ")), ("Match", found)] {
            notes += 1;
            let _ = writeln!(out, "#{notes}\t{kind} T{number}\t{text}");
        }
        for modifier in told.modifiers.iter() {
            attributes += 1;
            let _ = writeln!(out, "A{attributes}\t{} T{number}", attribute(modifier));
        }
    }
    out
}

/// The lines of a mention, in characters.
fn pieces(told: &Told<'_>) -> Vec<Range<usize>> {
    let (mut pieces, mut start, mut at) = (Vec::new(), told.characters.start, told.characters.start);
    for c in told.text.chars() {
        if matches!(c, '\n' | '\r') {
            if start < at {
                pieces.push(start..at);
            }
            start = at + 1;
        }
        at += 1;
    }
    if start < at {
        pieces.push(start..at);
    }
    pieces
}

/// A kind as brat may call it: letters, digits, `-` and `_`.
fn one_word(kind: &str) -> String {
    kind.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// A key without white space, which ends one: `%20` for a space, as in addresses.
fn spelt(key: &str) -> String {
    let mut spelt = String::with_capacity(key.len());
    for c in key.chars() {
        if c.is_whitespace() || c == '%' {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(spelt, "%{byte:02X}");
            }
        } else {
            spelt.push(c);
        }
    }
    spelt
}

fn attribute(modifier: Modifier) -> &'static str {
    match modifier {
        Modifier::Negated => "Negated",
        Modifier::Uncertain => "Uncertain",
        Modifier::Historical => "Historical",
        Modifier::Hypothetical => "Hypothetical",
        Modifier::Other => "Other_person",
    }
}

/// What a document's files are called: its id, and in front of it what its file is called, without what a name of a file cannot have.
#[must_use]
pub fn name(document: &Tagged) -> String {
    let id = document.id.strip_suffix(".txt").unwrap_or(&document.id);
    let file = document.file.as_deref().unwrap_or_default();
    let whole = if file.is_empty() || file == document.id { id.to_owned() } else { format!("{file}-{id}") };
    let fits = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = whole.chars().map(fits).collect();
    // One that begins with a full stop is hidden, and an empty one is none.
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}
