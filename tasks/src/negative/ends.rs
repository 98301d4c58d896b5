//! Which entities stand in which column of which relation.

use rayon::slice::ParallelSliceMut;

use super::lists::Lists;
use crate::sample::{Slot, Triple};

/// An entity in a column of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The entity.
    pub(super) entity: u32,
    /// The first triple that has it there, by its place among the triples.
    pub(super) first: u32,
}

/// The entities in both entity columns of every relation, by ids.
#[derive(Debug)]
pub(super) struct Ends {
    subjects: Lists<End>,
    objects: Lists<End>,
}

impl Ends {
    /// Those of some triples.
    pub(super) fn new(triples: &[Triple]) -> Self {
        Self { subjects: column(triples, Slot::Subject), objects: column(triples, Slot::Object) }
    }

    /// Different subjects of the triples with `relation`, ascending.
    pub(super) fn subjects(&self, relation: u32) -> &[End] {
        self.subjects.get(relation)
    }

    /// Different objects of the triples with `relation`, ascending.
    pub(super) fn objects(&self, relation: u32) -> &[End] {
        self.objects.get(relation)
    }
}

fn column(triples: &[Triple], slot: Slot) -> Lists<End> {
    let mut ends: Vec<(u32, u32, u32)> =
        (0..).zip(triples).map(|(place, triple)| (triple[1], triple[slot as usize], place)).collect();
    ends.par_sort_unstable();
    ends.dedup_by_key(|(relation, entity, _)| (*relation, *entity));
    Lists::new(ends.into_iter().map(|(relation, entity, first)| (relation, End { entity, first })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_distinct_and_point_at_their_first_triple() {
        let ends = Ends::new(&[[5, 0, 1], [4, 0, 1], [5, 0, 2], [5, 2, 1]]);
        let pairs = |ends: &[End]| ends.iter().map(|end| (end.entity, end.first)).collect::<Vec<_>>();
        assert_eq!(pairs(ends.subjects(0)), [(4, 1), (5, 0)]);
        assert_eq!(pairs(ends.objects(0)), [(1, 0), (2, 2)]);
        assert_eq!((pairs(ends.subjects(2)), pairs(ends.objects(1))), (vec![(5, 3)], vec![]));
    }
}
