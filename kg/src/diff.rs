//! What changed between two triple tables: the release before and the one after.
//!
//! Things are the same when their keys are. What lost its key is looked for under the keys that it was joined with, under the key
//! that a vocabulary retired it to, and by its text; only then is it gone.

mod entity;
pub mod report;
pub mod schema;
mod triple;
pub mod write;

pub use entity::{Change, Moved};
pub use report::Report;

use crate::table::Graph;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// What became of entities: those of the old table by id, then the added ones by id. Who keeps key, id and text is not listed; who
    /// has a new id and a new text is listed twice.
    pub moved: Vec<Moved>,
    /// All of it in numbers.
    pub report: Report,
}

/// Compares two tables. `retired` knows which key took the place of one that a source gave up ([`crate::table::read::retired`] of the new one).
#[must_use]
pub fn diff(old: &Graph, new: &Graph, retired: impl Fn(&str) -> Option<String>) -> Diff {
    let matched = entity::matched(old.entities(), new.entities(), retired);
    let moved = entity::moved(old.entities(), new.entities(), &matched);
    let relations = triple::relations(old, new);
    let triples = triple::compare(old, new, &matched.new_id(), &relations);
    let report = Report {
        entities: entity::count(old.entities().len(), new.entities().len(), &moved, &matched),
        relations: relations.report(old, new),
        triples: triples.total,
        by_relation: triples.by_relation,
        by_source: triples.by_source,
    };
    Diff { moved, report }
}
