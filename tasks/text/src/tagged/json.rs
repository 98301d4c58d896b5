//! A document as one line of JSON.

use kg::table::Entity;
use serde::Serialize;

use super::{Tagged, Told};

#[derive(Serialize)]
struct Row<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'t str>,
    id: &'t str,
    text: &'t str,
    mentions: Vec<Mention<'t>>,
}

/// A mention with all that is known of it.
#[derive(Serialize)]
pub(super) struct Mention<'t> {
    start: usize,
    end: usize,
    byte_start: usize,
    byte_end: usize,
    text: &'t str,
    entity: &'t str,
    name: &'t str,
    types: Vec<Type<'t>>,
    how: &'static str,
    score: f32,
    modifiers: Vec<&'static str>,
    candidates: Vec<Candidate<'t>>,
}

#[derive(Serialize)]
struct Type<'t> {
    code: Option<&'t str>,
    name: &'t str,
}

#[derive(Serialize)]
struct Candidate<'t> {
    entity: &'t str,
    name: &'t str,
    score: f32,
}

/// The document as a JSON object, without a line end: `id`, `text`, `mentions`, and `file` where there are several.
#[must_use]
pub fn line(document: &Tagged, entities: &[Entity]) -> String {
    let row = Row {
        file: document.file.as_deref(),
        id: &document.id,
        text: &document.text,
        mentions: document.told(entities).filter_map(|told| mention(&told)).collect(),
    };
    // Nothing in it can fail to be JSON.
    serde_json::to_string(&row).unwrap_or_default()
}

/// Nothing where no entity is meant.
pub(super) fn mention<'t>(told: &Told<'t>) -> Option<Mention<'t>> {
    let &(entity, score) = told.candidates.first()?;
    let types = entity.types.iter().map(|kind| Type { code: kind.code.as_deref(), name: &kind.name });
    let candidates = told.candidates.iter();
    let candidates = candidates.map(|(entity, score)| Candidate {
        entity: &entity.key,
        name: &entity.text,
        score: *score,
    });
    Some(Mention {
        start: told.characters.start,
        end: told.characters.end,
        byte_start: told.bytes.start,
        byte_end: told.bytes.end,
        text: told.text,
        entity: &entity.key,
        name: &entity.text,
        types: types.collect(),
        how: told.how.name(),
        score,
        modifiers: told.modifiers.iter().map(crate::ner::context::Modifier::name).collect(),
        candidates: candidates.collect(),
    })
}
