//! Documents whose names of entities were found, in the forms that other programs read.
//!
//! Places are told in characters (Unicode scalar values, as Python counts them) of the document's text, which each form has beside them, and in bytes of UTF-8
//! where a form has room for both.

pub mod bioc;
pub mod brat;
pub mod json;
pub mod spacy;
pub mod table;

use std::ops::Range;

use kg::table::{Entity, SemanticType};

use crate::characters::Characters;
use crate::ner::annotate::{Annotation, Candidate, How};
use crate::ner::context::Modifiers;

/// A document with its mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged {
    /// What its file is called; none where all documents are of one.
    pub file: Option<String>,
    /// What its file calls it.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The bytes at which its sentences begin, in order, if its file says so.
    pub sentences: Vec<usize>,
    /// What was found, in order, without overlaps.
    pub mentions: Vec<Annotation>,
}

/// A mention as files have it.
#[derive(Debug, Clone)]
pub struct Told<'t> {
    /// Its number in the document, from 0.
    pub number: usize,
    /// Where it stands, in characters.
    pub characters: Range<usize>,
    /// The same in bytes.
    pub bytes: Range<usize>,
    /// What stands there.
    pub text: &'t str,
    /// How it names its entity.
    pub how: How,
    /// What its sentence says of it.
    pub modifiers: Modifiers,
    /// The entities that it may name, the most likely first, with their scores.
    pub candidates: Vec<(&'t Entity, f32)>,
}

impl Told<'_> {
    /// What kind of thing it is, for forms in which a mention has one kind: the first semantic type or role of the most likely entity, else `entity`.
    #[must_use]
    pub fn kind(&self) -> &str {
        let types = self.candidates.first().map_or(&[][..], |(entity, _)| &entity.types);
        types.first().map_or("entity", |kind: &SemanticType| kind.name.as_str())
    }
}

impl Tagged {
    /// Its mentions as files have them; `entities` are those of the graph, by id.
    pub fn told<'t>(&'t self, entities: &'t [Entity]) -> impl Iterator<Item = Told<'t>> {
        let characters = Characters::new(&self.text);
        self.mentions.iter().enumerate().map(move |(number, one)| {
            let of = |&Candidate { entity, score }: &Candidate| Some((entities.get(entity.index())?, score));
            Told {
                number,
                // The ends of a mention lie between characters.
                characters: characters.range(&one.bytes).unwrap_or_default(),
                bytes: one.bytes.clone(),
                text: self.text.get(one.bytes.clone()).unwrap_or_default(),
                how: one.how,
                modifiers: one.modifiers,
                candidates: one.candidates.iter().filter_map(of).collect(),
            }
        })
    }
}

/// A document that a form cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("document {document:?} has {found}, which {form} cannot hold; write another form")]
pub struct Unheld {
    /// What its file calls it.
    pub document: String,
    /// What it has.
    pub found: String,
    /// The form.
    pub form: &'static str,
}

#[cfg(test)]
mod tests;
