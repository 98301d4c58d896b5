//! What sources have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::table::Graph;

/// Sources against each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Their names, sorted; the other lists have this order.
    pub sources: Vec<String>,
    /// Triples.
    pub triples: Shared,
    /// Entities.
    pub entities: Shared,
    /// Relations.
    pub relations: Shared,
}

/// What is in how many sources, by the order of [`Report::sources`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// In each source.
    pub total: Vec<u64>,
    /// In this source and no other.
    pub exclusive: Vec<u64>,
    /// In each pair of sources, whatever other source has it too; on the diagonal what is in each source.
    pub pairs: Vec<Vec<u64>>,
    /// Counts by the exact set of sources that have it, sorted.
    pub sets: Vec<Set>,
}

/// What exactly these sources have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// Places in [`Report::sources`], sorted.
    pub sources: Vec<usize>,
    /// How many.
    pub count: u64,
}

/// What the sources of `graph` have in common.
#[must_use]
pub fn report(graph: &Graph) -> Report {
    let mentioned = graph.entities().iter().flat_map(|entity| &entity.origins);
    let used = graph.relations().iter().flat_map(|relation| &relation.origins);
    let mut names: BTreeSet<&str> = mentioned.chain(used).map(String::as_str).collect();
    for row in 0..graph.triples().len() {
        for origin in graph.origins(row) {
            if !names.contains(origin.source.as_str()) {
                names.insert(&origin.source);
            }
        }
    }
    let place: BTreeMap<&str, usize> = names.iter().enumerate().map(|(place, &name)| (name, place)).collect();
    let (mut entities, mut relations, mut triples) = (Sets::new(), Sets::new(), Sets::new());
    for entity in graph.entities() {
        entities.add(entity.origins.iter().map(|name| place[name.as_str()]));
    }
    for relation in graph.relations() {
        relations.add(relation.origins.iter().map(|name| place[name.as_str()]));
    }
    for row in 0..graph.triples().len() {
        triples.add(graph.origins(row).map(|origin| place[origin.source.as_str()]));
    }
    Report {
        triples: triples.shared(names.len()),
        entities: entities.shared(names.len()),
        relations: relations.shared(names.len()),
        sources: names.into_iter().map(str::to_owned).collect(),
    }
}

/// Counts by set of sources.
struct Sets {
    counts: BTreeMap<Vec<usize>, u64>,
    set: Vec<usize>,
}

impl Sets {
    fn new() -> Self {
        Self { counts: BTreeMap::new(), set: Vec::new() }
    }

    fn add(&mut self, sources: impl Iterator<Item = usize>) {
        self.set.clear();
        self.set.extend(sources);
        self.set.sort_unstable();
        self.set.dedup();
        match self.counts.get_mut(&self.set) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(self.set.clone(), 1);
            }
        }
    }

    fn shared(self, sources: usize) -> Shared {
        let mut pairs = vec![vec![0; sources]; sources];
        let mut exclusive = vec![0; sources];
        for (set, count) in &self.counts {
            for &one in set {
                for &other in set {
                    pairs[one][other] += count;
                }
            }
            if let [only] = set.as_slice() {
                exclusive[*only] += count;
            }
        }
        let total = (0..sources).map(|source| pairs[source][source]).collect();
        let sets = self.counts.into_iter().map(|(sources, count)| Set { sources, count }).collect();
        Shared { total, exclusive, pairs, sets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_exclusives_follow_from_the_sets() {
        let mut sets = Sets::new();
        for set in [&[0][..], &[2, 0], &[1], &[0, 1, 2], &[0, 2, 2], &[0]] {
            sets.add(set.iter().copied());
        }
        let shared = sets.shared(3);
        assert_eq!(shared.total, [5, 2, 3]);
        assert_eq!(shared.exclusive, [2, 1, 0]);
        assert_eq!(shared.pairs, [[5, 1, 3], [1, 2, 1], [3, 1, 3]]);
        let sets: Vec<_> = shared.sets.iter().map(|set| (set.sources.as_slice(), set.count)).collect();
        assert_eq!(sets, [(&[0][..], 2), (&[0, 1, 2], 1), (&[0, 2], 2), (&[1], 1)]);
    }
}
