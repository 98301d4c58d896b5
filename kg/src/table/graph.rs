//! The triple table in memory.

use super::row::{Direction, Entity, Origin, Relation, Triple};

/// Entities, relations and triples; an id is a place in its slice. Made by [`crate::canon::Canon::graph`] or read from a folder.
#[derive(Debug)]
pub struct Graph {
    parts: Parts,
}

/// What a graph is made of. Triple `i` has the origins `origin_of[starts[i]..starts[i + 1]]`, which are places in `origins`, in the
/// directions of the same places in `direction_of`.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) entities: Vec<Entity>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) triples: Vec<Triple>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) starts: Vec<usize>,
    pub(crate) origin_of: Vec<u32>,
    pub(crate) direction_of: Vec<Direction>,
}

impl Parts {
    /// Parts without a triple.
    pub(crate) fn empty() -> Self {
        Self {
            entities: Vec::new(),
            relations: Vec::new(),
            triples: Vec::new(),
            origins: Vec::new(),
            starts: vec![0],
            origin_of: Vec::new(),
            direction_of: Vec::new(),
        }
    }
}

impl Graph {
    /// A graph of nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self { parts: Parts::empty() }
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// The entities; entity `id` stands at `id.index()`.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.parts.entities
    }

    /// The entities alone, by their ids.
    #[must_use]
    pub fn into_entities(self) -> Vec<Entity> {
        self.parts.entities
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

    /// Which way round each of [`Graph::origins`] states the triple at place `triple`.
    ///
    /// # Panics
    /// When there is no triple at that place.
    pub fn directions(&self, triple: usize) -> impl ExactSizeIterator<Item = Direction> {
        self.parts.direction_of[self.parts.starts[triple]..self.parts.starts[triple + 1]].iter().copied()
    }
}
