//! What changed, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

/// What changed, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Entities.
    pub entities: Entities,
    /// Relations.
    pub relations: Relations,
    /// Texts added and removed, by kind, of what both tables have; kinds without either are left out.
    pub texts: BTreeMap<&'static str, Delta>,
    /// Types of what both tables have.
    pub types: Delta,
    /// Other keys (`same_as`) of what both tables have.
    pub same_as: Delta,
    /// Triples.
    pub triples: Triples,
    /// Triples added and removed, by relation; one without either is left out.
    pub by_relation: BTreeMap<String, Delta>,
    /// Statements added and removed, by source: a triple that another source states as well counts for each.
    pub by_source: BTreeMap<String, Delta>,
}

/// How many entities had which fate. Old ones: `kept + rekeyed + merged + removed`; new ones: `kept` + those that rekeyed ones
/// became + `added`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Entities {
    /// In the old table.
    pub old: u64,
    /// In the new table.
    pub new: u64,
    /// With the same key.
    pub kept: u64,
    /// Of the kept: with another id.
    pub renumbered: u64,
    /// Of the kept: with another text.
    pub renamed: u64,
    /// Under a key that the old table lacks.
    pub rekeyed: u64,
    /// Joined to one that the old table had as well.
    pub merged: u64,
    /// Gone.
    pub removed: u64,
    /// New, and nothing old became it.
    pub added: u64,
    /// Of the rekeyed and merged: found since the new entity says that it is the same as the old key.
    pub by_same_as: u64,
    /// Of the rekeyed and merged: found by the vocabulary's list of retired keys.
    pub by_retired: u64,
    /// Of the rekeyed: found since nothing else of either table has that text.
    pub by_text: u64,
}

/// Which relations changed, by key, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Relations {
    /// Only in the new table.
    pub added: Vec<String>,
    /// Only in the old table, without an inverse in the new one.
    pub removed: Vec<String>,
    /// Only in the old table; the new one has the inverse.
    pub turned: Vec<String>,
    /// In both, in other words.
    pub reworded: Vec<String>,
}

/// How many triples had which fate: `old` = `kept` + `merged` + `removed`, `new` = `kept` + `added`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Triples {
    /// In the old table.
    pub old: u64,
    /// In the new table.
    pub new: u64,
    /// In both, whatever became of their entities' keys; counted in the new table.
    pub kept: u64,
    /// Of the old ones in both: those that became the same as another one.
    pub merged: u64,
    /// Of the old ones in both: the other way round now.
    pub turned: u64,
    /// Only in the new table.
    pub added: u64,
    /// Only in the old table.
    pub removed: u64,
}

/// What came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// Only in the new table.
    pub added: u64,
    /// Only in the old table.
    pub removed: u64,
}
