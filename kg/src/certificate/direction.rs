//! Which way round triples were stated, and which are contradicted.

use std::collections::BTreeMap;

use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::Refused;
use crate::graph::tally;
use crate::table::id::dense;
use crate::table::{Direction, EntityId, Graph, Triple};

/// Statements by the way round they were made. A statement is one origin of one triple.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// As the table has it.
    pub stated: u64,
    /// The other way round, and folded.
    pub inverse: u64,
    /// Both ways by the same origin.
    pub both: u64,
}

impl Statements {
    fn add(&mut self, direction: u32, count: u64) {
        match direction {
            0 => self.stated += count,
            1 => self.inverse += count,
            _ => self.both += count,
        }
    }

    /// These and others.
    #[must_use]
    pub fn and(self, others: &Self) -> Self {
        Self {
            stated: self.stated + others.stated,
            inverse: self.inverse + others.inverse,
            both: self.both + others.both,
        }
    }

    /// All together.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.stated + self.inverse + self.both
    }
}

fn number(direction: Direction) -> u32 {
    match direction {
        Direction::Stated => 0,
        Direction::Inverse => 1,
        Direction::Both => 2,
    }
}

/// The statements of each relation by source.
///
/// # Errors
/// When memory ends.
pub fn statements(graph: &Graph) -> Result<Vec<BTreeMap<String, Statements>>, Refused> {
    let mut names: Vec<&str> = Vec::new();
    let (mut relations, mut sources, mut directions) = (Vec::new(), Vec::new(), Vec::new());
    for (row, triple) in graph.triples().iter().enumerate() {
        for (origin, direction) in graph.origins(row).zip(graph.directions(row)) {
            let known = names.iter().position(|&name| name == origin.source);
            let source = known.unwrap_or_else(|| {
                names.push(&origin.source);
                names.len() - 1
            });
            relations.push(triple.relation.0);
            sources.push(dense(source));
            directions.push(number(direction));
        }
    }
    let mut by_relation = vec![BTreeMap::<String, Statements>::new(); graph.relations().len()];
    for ([relation, source, direction], count) in tally::rows([relations, sources, directions])? {
        let by_source = &mut by_relation[relation as usize];
        by_source.entry(names[source as usize].to_owned()).or_default().add(direction, count);
    }
    Ok(by_relation)
}

/// For each of the sorted `triples` whether its exchange is there as well. Triples of an entity with itself have none.
#[must_use]
pub fn contradicted(entities: usize, triples: &[Triple]) -> Vec<bool> {
    let mut starts = vec![0usize; entities + 1];
    for triple in triples {
        starts[triple.subject.index() + 1] += 1;
    }
    for entity in 0..entities {
        starts[entity + 1] += starts[entity];
    }
    let of = |subject: EntityId| &triples[starts[subject.index()]..starts[subject.index() + 1]];
    let exchanged = |triple: &Triple| {
        let wanted = Triple { subject: triple.object, relation: triple.relation, object: triple.subject };
        wanted != *triple && of(wanted.subject).binary_search(&wanted).is_ok()
    };
    triples.par_iter().with_min_len(1 << 12).map(exchanged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::{random, triples};

    #[test]
    fn exchanged_triples_are_found_within_their_relation() {
        let all = triples(&[(0, 0, 1), (0, 1, 2), (1, 0, 0), (1, 1, 1), (2, 0, 0), (2, 1, 3)]);
        assert_eq!(contradicted(4, &all), [true, false, true, false, false, false]);
        assert!(contradicted(0, &[]).is_empty());
    }

    #[test]
    fn what_is_found_is_what_a_search_of_all_pairs_finds() {
        let all = random(5, 40, 300);
        let has = |t: &Triple| all.iter().any(|o| o.subject == t.object && o.object == t.subject && o != t);
        let plain: Vec<bool> = all.iter().map(has).collect();
        assert!(plain.contains(&true));
        assert_eq!(contradicted(40, &all), plain);
    }
}
