//! Which entities hang together, whatever the direction.

use petgraph::unionfind::UnionFind;
use serde::{Deserialize, Serialize};

use super::distribution::share;
use crate::table::Triple;

/// The weakly connected components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How many there are; an entity without a neighbour is one.
    pub components: u64,
    /// Entities without a neighbour other than themselves.
    pub isolated: u64,
    /// Entities of the largest.
    pub largest: u64,
    /// Share of the entities that are in the largest.
    pub largest_share: f64,
    /// How many components there are of each size, the smallest first.
    pub sizes: Vec<Size>,
}

/// Components of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Entities in each.
    pub entities: u64,
    /// How many there are.
    pub components: u64,
}

/// The components of `entities` entities.
#[must_use]
pub fn report(entities: usize, triples: &[Triple]) -> Report {
    let mut together = UnionFind::<u32>::new(entities);
    for triple in triples {
        together.union(triple.subject.0, triple.object.0);
    }
    let mut members = vec![0u64; entities];
    for label in together.into_labeling() {
        members[label as usize] += 1;
    }
    members.retain(|&size| size > 0);
    members.sort_unstable();
    let sizes: Vec<Size> = members
        .chunk_by(|a, b| a == b)
        .map(|same| Size { entities: same[0], components: same.len() as u64 })
        .collect();
    let largest = members.last().copied().unwrap_or(0);
    Report {
        components: members.len() as u64,
        isolated: sizes.first().filter(|size| size.entities == 1).map_or(0, |size| size.components),
        largest,
        largest_share: share(largest, entities as u64),
        sizes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::triples;

    #[test]
    fn direction_does_not_matter_and_every_entity_is_somewhere() {
        let found = report(7, &triples(&[(0, 0, 1), (2, 0, 1), (3, 1, 4), (6, 0, 6)]));
        let sizes: Vec<_> = found.sizes.iter().map(|size| (size.entities, size.components)).collect();
        assert_eq!(sizes, [(1, 2), (2, 1), (3, 1)]);
        assert_eq!((found.components, found.isolated, found.largest), (4, 2, 3));
        assert!((found.largest_share - 3.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_has_no_component() {
        let found = report(0, &[]);
        assert_eq!((found.components, found.largest, found.sizes.len()), (0, 0, 0));
    }
}
