//! What merging came to, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

/// What became of the statements of one source. `rows` = `self_loops` + `unnamed` + `below_min_relation_count` + `merged` + `distinct`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Stated {
    /// Statements that its reader kept.
    pub rows: u64,
    /// Of those, inverted into the relation whose inverse they state.
    pub turned: u64,
    /// Of those, of a symmetric relation with subject and object exchanged.
    pub exchanged: u64,
    /// Dropped because subject and object are the same entity after the crosswalk.
    pub self_loops: u64,
    /// Dropped because an end or the relation has no name.
    pub unnamed: u64,
    /// Dropped because the source has too few triples of the relation.
    pub below_min_relation_count: u64,
    /// Repeat another statement of the source.
    pub merged: u64,
    /// Different triples.
    pub distinct: u64,
    /// Different subjects of those triples.
    pub subjects: u64,
    /// Different objects of those triples.
    pub objects: u64,
}

/// A relation of the table, or one that lost all its statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelationCount {
    /// Its key.
    pub relation: String,
    /// The relation that says the same the other way round; folded into this one unless inverses are kept.
    pub inverse: Option<String>,
    /// Whether it says the same both ways round.
    pub symmetric: bool,
    /// Statements, without self-loops and those that were dropped for a missing name.
    pub rows: u64,
    /// Those that were dropped for a missing name.
    pub unnamed: u64,
    /// Of `rows`, inverted or exchanged.
    pub turned: u64,
    /// Different triples before [`crate::table::Builder::min_relation_count`], by source.
    pub distinct: BTreeMap<String, u64>,
    /// Triples in the table.
    pub triples: u64,
}

/// How many keys of a namespace came to what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Crossing {
    /// Namespace of the key as stated.
    pub from: String,
    /// Namespace of the key that it means.
    pub to: String,
    /// How it is known.
    pub how: &'static str,
    /// Keys, those in no triple of the table too.
    pub keys: u64,
    /// Of those, in a triple of the table.
    pub used: u64,
}

/// What merging came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// By source.
    pub sources: BTreeMap<String, Stated>,
    /// By relation, in the order of keys.
    pub relations: Vec<RelationCount>,
    /// Relations with several declared inverses; none of them was followed.
    pub conflicting_inverses: Vec<(String, Vec<String>)>,
    /// The crosswalk, sorted.
    pub crosswalk: Vec<Crossing>,
    /// Triples that more than one source states, counted once less than there are sources.
    pub merged_across_sources: u64,
    /// Entities in the table.
    pub entities: u64,
    /// Entities that sources named, but that are in no triple.
    pub unused_entities: u64,
    /// Terms in the table.
    pub terms: u64,
    /// Triples in the table.
    pub triples: u64,
    /// What is told of it, though nothing failed.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

impl Report {
    /// Why merging has left no triple of what sources state.
    #[must_use]
    pub fn nothing_left(&self) -> String {
        let sum = |of: fn(&Stated) -> u64| self.sources.values().map(of).sum::<u64>();
        let (rows, loops) = (sum(|one| one.rows), sum(|one| one.self_loops));
        match rows > 0 && loops == rows {
            true => format!(
                "merging kept none: all {rows} rows have the same subject and object (see which columns they are read from, or say canon.self_loops = \"keep\")"
            ),
            false => "merging kept none".to_owned(),
        }
    }
}
