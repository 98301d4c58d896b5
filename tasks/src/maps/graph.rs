//! Which entities are beside each other in the triple table.

use kg::table::EntityId;

/// The neighbours of every entity: those that a triple joins it with, whichever way round; never itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjacency {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    /// Of `entities` entities and the ends of their triples, in any order and as often as stated. Ends that are no entity's number are
    /// left out.
    #[must_use]
    pub fn new(entities: usize, ends: impl Iterator<Item = (EntityId, EntityId)> + Clone) -> Self {
        let known = move |&(a, b): &(EntityId, EntityId)| a != b && a.index().max(b.index()) < entities;
        let mut starts = vec![0_usize; entities + 1];
        for (a, b) in ends.clone().filter(known) {
            starts[a.index() + 1] += 1;
            starts[b.index() + 1] += 1;
        }
        for entity in 0..entities {
            starts[entity + 1] += starts[entity];
        }
        let (mut next, mut all) = (starts.clone(), vec![0; starts[entities]]);
        for (a, b) in ends.filter(known) {
            for (from, to) in [(a, b), (b, a)] {
                all[next[from.index()]] = to.0;
                next[from.index()] += 1;
            }
        }
        let (mut neighbours, mut begin) = (Vec::new(), 0);
        for entity in 0..entities {
            let of = &mut all[begin..starts[entity + 1]];
            of.sort_unstable();
            begin = starts[entity + 1];
            starts[entity] = neighbours.len();
            of.iter().for_each(|&to| {
                if neighbours.len() == starts[entity] || neighbours.last() != Some(&to) {
                    neighbours.push(to);
                }
            });
        }
        starts[entities] = neighbours.len();
        neighbours.shrink_to_fit();
        Self { starts, neighbours }
    }

    /// Of a triple table.
    #[must_use]
    pub fn of_graph(graph: &kg::table::Graph) -> Self {
        let ends = graph.triples().iter().map(|triple| (triple.subject, triple.object));
        Self::new(graph.entities().len(), ends)
    }

    /// The neighbours of an entity, ascending, each once; none for a number without an entity.
    #[must_use]
    pub fn of(&self, entity: EntityId) -> &[u32] {
        match self.starts.get(entity.index()..).unwrap_or_default() {
            [start, end, ..] => &self.neighbours[*start..*end],
            _ => &[],
        }
    }

    /// Whether a triple joins two different entities.
    #[must_use]
    pub fn joins(&self, one: EntityId, other: EntityId) -> bool {
        self.of(one).binary_search(&other.0).is_ok()
    }

    /// The pairs of places in `all` of which a triple joins an entity of the one with an entity of the other: the smaller first,
    /// ascending.
    pub fn pairs<'a>(&'a self, all: &'a [&'a [EntityId]]) -> impl Iterator<Item = (usize, usize)> + 'a {
        let joined = |one: &[EntityId], other: &[EntityId]| {
            one.iter().any(|one| other.iter().any(|other| self.joins(*one, *other)))
        };
        all.iter().enumerate().flat_map(move |(first, one)| {
            let behind = all.iter().enumerate().skip(first + 1);
            behind.filter(move |(_, other)| joined(one, other)).map(move |(second, _)| (first, second))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjacency() -> Adjacency {
        let ends = [(3, 1), (1, 3), (1, 1), (0, 3), (3, 9), (4, 1), (3, 1)];
        Adjacency::new(5, ends.into_iter().map(|(a, b)| (EntityId(a), EntityId(b))))
    }

    #[test]
    fn neighbours_stand_once_both_ways_and_nobody_is_his_own() {
        let adjacency = adjacency();
        let all: Vec<&[u32]> = (0..6).map(|entity| adjacency.of(EntityId(entity))).collect();
        assert_eq!(all, [&[3][..], &[3, 4], &[], &[0, 1], &[1], &[]]);
        assert!(adjacency.joins(EntityId(1), EntityId(3)) && !adjacency.joins(EntityId(1), EntityId(1)));
        assert!(Adjacency::new(0, std::iter::empty()).of(EntityId(0)).is_empty());
    }

    #[test]
    fn pairs_are_places_of_entities_that_a_triple_joins() {
        let [zero, one, two, three, other] = [0, 1, 2, 3, 77].map(EntityId);
        let entities: [&[EntityId]; 6] = [&[two, three], &[], &[one], &[other, one], &[zero], &[other]];
        let pairs: Vec<(usize, usize)> = adjacency().pairs(&entities).collect();
        assert_eq!(pairs, [(0, 2), (0, 3), (0, 4)]);
    }
}
