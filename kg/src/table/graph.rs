//! The triple table in memory. Knows no source and no file.

use super::row::{Entity, Origin, Relation, Triple};

/// Entities, relations and triples; an id is a place in its slice. Made by [`super::Builder::finish`] or read from a folder.
#[derive(Debug)]
pub struct Graph {
    parts: Parts,
}

/// What a graph is made of. Triple `i` has the origins `origin_of[starts[i]..starts[i + 1]]`, which are places in `origins`.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) entities: Vec<Entity>,
    pub(super) relations: Vec<Relation>,
    pub(super) triples: Vec<Triple>,
    pub(super) origins: Vec<Origin>,
    pub(super) starts: Vec<usize>,
    pub(super) origin_of: Vec<u32>,
}

impl Graph {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// The entities; entity `id` stands at `id.index()`.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.parts.entities
    }

    /// The relations; relation `id` stands at `id.index()`.
    #[must_use]
    pub fn relations(&self) -> &[Relation] {
        &self.parts.relations
    }

    /// The triples, sorted by subject, relation and object, each once.
    #[must_use]
    pub fn triples(&self) -> &[Triple] {
        &self.parts.triples
    }

    /// Where the triple at place `triple` comes from: sorted, at least one, each source and vocabulary once.
    ///
    /// # Panics
    /// When there is no triple at that place.
    pub fn origins(&self, triple: usize) -> impl ExactSizeIterator<Item = &Origin> {
        let places = &self.parts.origin_of[self.parts.starts[triple]..self.parts.starts[triple + 1]];
        places.iter().map(|&place| &self.parts.origins[place as usize])
    }
}
