//! What changed between two triple tables: the release before and the one after.
//!
//! Things are the same when their keys are. What lost its key is looked for under the keys that it was joined with, under the key
//! that a vocabulary retired it to, and by its text; only then is it gone.

mod entity;
pub mod report;
mod said;
pub mod schema;
mod triple;
pub mod write;

pub use entity::{Change, Moved};
pub use report::Report;

use std::collections::BTreeMap;
use std::path::Path;

use base::read::ReadError;

use crate::table::{EntityId, Graph};

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// What became of entities: those of the old table by id, then the added ones by id. Who keeps key, id and text is not listed; who
    /// has a new id and a new text is listed twice.
    pub moved: Vec<Moved>,
    /// All of it in numbers.
    pub report: Report,
    /// By old entity: what it is in the new table.
    new_id: Vec<Option<EntityId>>,
}

impl Diff {
    /// Counts the texts that came and went, too, of the tables in two folders.
    ///
    /// # Errors
    /// When the terms of a table cannot be read.
    pub fn read_texts(&mut self, old: &Path, new: &Path) -> Result<(), ReadError> {
        self.report.texts = said::texts(old, new, &self.new_id)?;
        Ok(())
    }
}

/// Compares two tables. `retired` knows which key took the place of one that a source gave up ([`crate::table::read::retired`] of the new one).
#[must_use]
pub fn diff(old: &Graph, new: &Graph, retired: impl Fn(&str) -> Option<String>) -> Diff {
    let matched = entity::matched(old.entities(), new.entities(), retired);
    let moved = entity::moved(old.entities(), new.entities(), &matched);
    let relations = triple::relations(old, new);
    let new_id = matched.new_id();
    let triples = triple::compare(old, new, &new_id, &relations);
    let [before, after] = [old, new].map(Graph::entities);
    let report = Report {
        entities: entity::count(old.entities().len(), new.entities().len(), &moved, &matched),
        relations: relations.report(old, new),
        texts: BTreeMap::new(),
        types: said::values(before, after, &new_id, |entity| &entity.types),
        same_as: said::values(before, after, &new_id, |entity| &entity.same_as),
        triples: triples.total,
        by_relation: triples.by_relation,
        by_source: triples.by_source,
    };
    Diff { moved, report, new_id }
}
