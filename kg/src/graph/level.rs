//! What may be passed on under which licence level.
//!
//! Levels are the source restriction levels of UMLS, 0 (no restriction) to 9; names and statements of sources without levels count as
//! `none` here, which says nothing about their licence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table::Graph;

/// Rows by licence level: `none`, `0`, `1`, ...
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Entities by the level of their preferred names.
    pub entities: BTreeMap<String, u64>,
    /// Triples by the level of their least restricted origin; `none` if no origin has a level.
    pub triples: BTreeMap<String, u64>,
    /// Triples by the level that both of their names and one of their origins permit together; `none` if one of the three is unknown.
    pub triples_with_names: BTreeMap<String, u64>,
}

/// The levels of `graph`.
#[must_use]
pub fn report(graph: &Graph) -> Report {
    let (mut entities, mut triples, mut with_names) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for entity in graph.entities() {
        *entities.entry(entity.level).or_insert(0) += 1;
    }
    for (row, triple) in graph.triples().iter().enumerate() {
        let least = graph.origins(row).filter_map(|origin| origin.level).min();
        let name = |place: usize| graph.entities()[place].level;
        let ends = [name(triple.subject.index()), name(triple.object.index())];
        // What is unknown is not free: unknown with anything is unknown.
        let whole = ends.into_iter().fold(least, |all, end| Some(all?.max(end?)));
        *triples.entry(least).or_insert(0) += 1;
        *with_names.entry(whole).or_insert(0) += 1;
    }
    Report { entities: named(entities), triples: named(triples), triples_with_names: named(with_names) }
}

fn named(counts: BTreeMap<Option<u8>, u64>) -> BTreeMap<String, u64> {
    let name = |level: Option<u8>| level.map_or_else(|| "none".to_owned(), |level| level.to_string());
    counts.into_iter().map(|(level, count)| (name(level), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Policy;
    use crate::table::{Builder, Origin};

    #[test]
    fn the_least_restricted_origin_counts_and_what_is_unknown_is_not_free() {
        let mut builder = Builder::new();
        let mut state = |subject: &str, levels: &[Option<u8>]| {
            let [free, bound] = [("x:free", 0), (subject, 3)].map(|(key, level)| {
                let entity = builder.entity("s", key, key);
                if key != "x:unknown" {
                    builder.set_level(entity, level);
                }
                entity
            });
            let relation = builder.relation("s", "r", "r");
            for (place, &level) in levels.iter().enumerate() {
                let (vocabulary, source) = (Some(place.to_string()), "s".to_owned());
                let origin = builder.origin(Origin { source, vocabulary, weight: None, count: None, level });
                builder.triple(bound, relation, free, origin).unwrap();
            }
        };
        state("x:a", &[Some(9), Some(0)]);
        state("x:b", &[None, Some(9)]);
        state("x:c", &[None]);
        state("x:unknown", &[Some(0)]);
        let report = report(&crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap());
        let counts = |of: &BTreeMap<String, u64>| {
            of.iter().map(|(k, n)| format!("{k}:{n}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(counts(&report.triples), "0:2 9:1 none:1");
        assert_eq!(counts(&report.triples_with_names), "3:1 9:1 none:2");
    }
}
