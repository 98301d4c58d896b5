//! A document as spaCy's `doc.to_json()` has it, which `Doc.from_json` reads: one a line.

use std::ops::Range;

use kg::table::Entity;
use serde_json::json;

use super::Tagged;
use crate::characters::Characters;
use crate::word::{Case, Words};

/// The document, without a line end: its text, sentences, words and entities, each with its kind as `label` and its key as `kb_id`.
#[must_use]
pub fn line(document: &Tagged, entities: &[Entity]) -> String {
    let characters = Characters::new(&document.text);
    let at = |byte: usize| characters.character(byte).unwrap_or_default();
    let ents: Vec<_> = document
        .told(entities)
        .filter_map(|told| {
            let (entity, _) = told.candidates.first()?;
            let (start, end) = (told.characters.start, told.characters.end);
            Some(json!({"start": start, "end": end, "label": told.kind(), "kb_id": entity.key}))
        })
        .collect();
    let mut split = Words::new(Case::Uncased);
    split.split(&document.text);
    let all: Vec<Range<usize>> = split.iter().map(|word| word.bytes).collect();
    let tokens: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(id, word)| json!({"id": id, "start": at(word.start), "end": at(word.end)}))
        .collect();
    // Sentences of spaCy begin and end with words.
    let mut sents = Vec::new();
    let mut words = all.iter().peekable();
    for end in document.sentences.iter().copied().chain([document.text.len()]) {
        let mut sentence: Option<(usize, usize)> = None;
        while let Some(word) = words.next_if(|word| word.start < end) {
            sentence = Some((sentence.map_or(word.start, |(start, _)| start), word.end));
        }
        sents.extend(sentence.map(|(start, end)| json!({"start": at(start), "end": at(end)})));
    }
    json!({"text": document.text, "ents": ents, "sents": sents, "tokens": tokens}).to_string()
}
