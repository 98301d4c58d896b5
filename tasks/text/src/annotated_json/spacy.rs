//! One document as spaCy's `doc.to_json()` has it.

use std::borrow::Cow;
use std::ops::Range;

use base::line::Line;
use base::read::ReadError;
use serde::Deserialize;

use super::super::characters::Characters;
use super::super::conllu::Phrases;
use super::super::{Document, Entity, Labels};
use super::{Dependencies, ENTITY, SENTENCE, WORD, parse, phrases, value};

#[derive(Deserialize)]
struct Doc<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    ents: Vec<Ent<'a>>,
    #[serde(default)]
    sents: Vec<Sent>,
    #[serde(default)]
    tokens: Vec<Word>,
}

#[derive(Deserialize)]
struct Sent {
    start: usize,
    end: usize,
}

#[derive(Deserialize)]
struct Ent<'a> {
    start: usize,
    end: usize,
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(borrow, default)]
    kb_id: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Word {
    start: usize,
    end: usize,
    /// The word on which it depends, counted from 0 through the document; a root depends on itself.
    head: Option<usize>,
}

/// Fills `document`; says how many tags broke their scheme, which has none here.
pub(super) fn fill(
    line: Line<'_>,
    wanted: Phrases,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<u64, ReadError> {
    let doc: Doc<'_> = parse(
        line,
        "an object with `text`, and `ents` (`start`, `end`, `label`) and `tokens` (`start`, `end`, `head`)",
    )?;
    let characters = Characters::new(&doc.text);
    let place = |start: usize, end: usize| -> Option<Range<usize>> {
        (start < end).then_some(())?;
        Some(characters.byte(start)?..characters.byte(end)?)
    };
    for (number, ent) in doc.ents.iter().enumerate() {
        let wrong = |found: String, expected: String| value(line, (number + 1, ENTITY), &found, expected);
        let piece = place(ent.start, ent.end).ok_or_else(|| {
            let expected = format!("a piece of the text of {} characters", characters.len());
            wrong(format!("{}..{}", ent.start, ent.end), expected)
        })?;
        let name = ent.label.trim();
        let label = labels.intern(name).filter(|_| !name.is_empty());
        let label =
            label.ok_or_else(|| wrong("an empty label".to_owned(), "the name of its kind".to_owned()))?;
        let concepts = Some(ent.kb_id.trim()).filter(|id| !id.is_empty()).map(str::to_owned);
        document.entities.push(Entity {
            pieces: vec![piece],
            label,
            concepts: concepts.into_iter().collect(),
        });
    }
    document.sentences = sentences(line, &doc.sents, &characters)?;
    let (mut governors, mut firsts, mut before) = (Vec::with_capacity(doc.tokens.len()), Vec::new(), 0);
    for (number, word) in doc.tokens.iter().enumerate() {
        let wrong = |found: String, expected: String| value(line, (number + 1, WORD), &found, expected);
        let piece = place(word.start, word.end).filter(|piece| piece.start >= before).ok_or_else(|| {
            let expected =
                format!("a piece behind the word before, of the text's {} characters", characters.len());
            wrong(format!("{}..{}", word.start, word.end), expected)
        })?;
        if wanted != Phrases::None {
            let count = doc.tokens.len();
            let head = word.head.filter(|head| *head < count).ok_or_else(|| {
                let found = word.head.map_or_else(|| "no head".to_owned(), |head| format!("the head {head}"));
                wrong(found, format!("one of the document's {count} words"))
            })?;
            governors.push(Some(head).filter(|head| *head != number));
        }
        before = piece.end;
        // spaCy has words of white space; they take part in the dependencies only.
        if !doc.text[piece.clone()].trim().is_empty() {
            firsts.push(number);
            document.words.push(piece);
        }
    }
    document.text.push_str(&doc.text);
    let rows: Vec<usize> = (1..=doc.tokens.len()).collect();
    let words = Dependencies { rows: &rows, governors: &governors, firsts: &firsts };
    phrases(line, wanted, &words, document, 0)?;
    Ok(0)
}

/// The bytes at which sentences begin.
fn sentences(line: Line<'_>, sents: &[Sent], characters: &Characters) -> Result<Vec<usize>, ReadError> {
    let (mut starts, mut before) = (Vec::with_capacity(sents.len()), 0);
    for (number, Sent { start, end }) in sents.iter().enumerate() {
        let within = *start >= before && start < end && *end <= characters.len();
        let Some(byte) = characters.byte(*start).filter(|_| within) else {
            let expected =
                format!("a piece behind the sentence before, of the text's {} characters", characters.len());
            return Err(value(line, (number + 1, SENTENCE), &format!("{start}..{end}"), expected));
        };
        starts.push(byte);
        before = *end;
    }
    Ok(starts)
}
