//! A document as spaCy's `doc.to_json()` has it, which `Doc.from_json` reads: one a line.

use std::ops::Range;

use kg::table::Entity;
use serde_json::json as object;

use super::{Tagged, json};
use crate::characters::Characters;
use crate::sentence;
use crate::word::{Case, Words};

/// The group of spans that has the entities once more: of those spaCy 3.7 and 3.8 keep the key, of `ents` they don't.
const SPANS: &str = "engraft";

/// The document, without a line end: its text, sentences, words and entities, each with its kind as `label` and its key as `kb_id`, as `ents` and as the spans
/// `engraft`; and as `mentions`, which spaCy passes over, all that is known of each, as [`super::json`] writes it, with the document's `id`, and `file` where there are several.
#[must_use]
pub fn line(document: &Tagged, entities: &[Entity]) -> String {
    let characters = Characters::new(&document.text);
    let at = |byte: usize| characters.character(byte).unwrap_or_default();
    let ents: Vec<_> = document
        .told(entities)
        .filter_map(|told| {
            let (entity, _) = told.candidates.first()?;
            let (start, end) = (told.characters.start, told.characters.end);
            Some(object!({"start": start, "end": end, "label": told.kind(), "kb_id": entity.key}))
        })
        .collect();
    let mentions: Vec<_> = document.told(entities).filter_map(|told| json::mention(&told)).collect();
    let mut split = Words::new(Case::Uncased);
    split.split(&document.text);
    let all: Vec<Range<usize>> = split.iter().map(|word| word.bytes).collect();
    let tokens: Vec<_> = covering(&document.text, &all)
        .iter()
        .enumerate()
        .map(|(id, token)| object!({"id": id, "start": at(token.start), "end": at(token.end)}))
        .collect();
    // Sentences of spaCy begin and end with words.
    let mut sents = Vec::new();
    let mut words = all.iter().peekable();
    let starts = sentence::of(&document.text, &document.sentences);
    for end in starts.iter().copied().chain([document.text.len()]) {
        let mut sentence: Option<(usize, usize)> = None;
        while let Some(word) = words.next_if(|word| word.start < end) {
            sentence = Some((sentence.map_or(word.start, |(start, _)| start), word.end));
        }
        sents.extend(sentence.map(|(start, end)| object!({"start": at(start), "end": at(end)})));
    }
    let mut doc = object!({
        "id": document.id, "text": document.text, "ents": ents, "spans": {SPANS: ents}, "sents": sents, "tokens": tokens,
        "mentions": mentions
    });
    if let Some(file) = &document.file {
        doc["file"] = file.as_str().into();
    }
    doc.to_string()
}

/// The words with what is between them, as spaCy's tokens have it: they cover the text but for one space behind each, and further white space is a token.
fn covering(text: &str, words: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut tokens, mut end) = (Vec::with_capacity(words.len()), 0);
    let rest = text.len()..text.len();
    for word in words.iter().chain([&rest]) {
        if end < word.start {
            tokens.push(end..word.start);
        }
        if word.is_empty() {
            break;
        }
        tokens.push(word.clone());
        end = word.end + usize::from(text[word.end..].starts_with(' '));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cover_the_text_but_for_a_space_behind_each() {
        let text = " a b  c\n\nd ";
        let words = [1..2, 3..4, 6..7, 9..10];
        let tokens: Vec<&str> = covering(text, &words).into_iter().map(|token| &text[token]).collect();
        assert_eq!(tokens, [" ", "a", "b", " ", "c", "\n\n", "d"]);
        assert!(covering("", &[]).is_empty());
        assert_eq!(covering("  ", &[]), std::iter::once(0..2).collect::<Vec<_>>());
    }
}
