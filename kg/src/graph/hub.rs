//! The entities that stand out: most triples, highest rank.

use serde::{Deserialize, Serialize};

use super::degree::Degrees;
use super::types;
use crate::table::Entity;
use crate::table::id::dense;

/// An entity that stands out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hub {
    /// Its key.
    pub key: String,
    /// Its name.
    pub text: String,
    /// Its semantic types, joined by commas.
    pub types: String,
    /// Triples with it as the subject.
    pub outgoing: u32,
    /// Triples with it as the object.
    pub incoming: u32,
    /// Its PageRank.
    pub rank: f64,
}

/// Who stands out among all.
#[derive(Debug, Clone, Copy)]
pub struct Crowd<'a> {
    /// All entities.
    pub entities: &'a [Entity],
    /// Their degrees.
    pub degrees: &'a Degrees,
    /// Their PageRanks.
    pub ranks: &'a [f64],
}

impl Crowd<'_> {
    /// The `most` entities with most triples; of equals those with the smaller keys.
    #[must_use]
    pub fn largest(&self, most: usize) -> Vec<Hub> {
        let total = self.degrees.total();
        self.chosen(most, |a, b| total[b].cmp(&total[a]))
    }

    /// The `most` entities of highest rank; of equals those with the smaller keys.
    #[must_use]
    pub fn highest(&self, most: usize) -> Vec<Hub> {
        self.chosen(most, |a, b| self.ranks[b].total_cmp(&self.ranks[a]))
    }

    fn chosen(&self, most: usize, better: impl Fn(usize, usize) -> std::cmp::Ordering) -> Vec<Hub> {
        let order = |a: &u32, b: &u32| better(*a as usize, *b as usize).then(a.cmp(b));
        let mut ids: Vec<u32> = (0..dense(self.entities.len())).collect();
        if most < ids.len() {
            ids.select_nth_unstable_by(most, order);
            ids.truncate(most);
        }
        ids.sort_unstable_by(order);
        ids.into_iter().map(|id| self.hub(id as usize)).collect()
    }

    fn hub(&self, place: usize) -> Hub {
        let entity = &self.entities[place];
        Hub {
            key: entity.key.clone(),
            text: entity.text.clone(),
            types: types::labels(entity),
            outgoing: self.degrees.outgoing[place],
            incoming: self.degrees.incoming[place],
            rank: self.ranks[place],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::{entities, triples};

    #[test]
    fn the_best_come_first_and_equals_by_key() {
        let entities = entities(5);
        let degrees = Degrees::of(5, &triples(&[(3, 0, 1), (3, 0, 2), (3, 0, 4), (4, 0, 1)]));
        let ranks = [0.1, 0.4, 0.1, 0.1, 0.3];
        let crowd = Crowd { entities: &entities, degrees: &degrees, ranks: &ranks };
        let keys = |hubs: Vec<Hub>| hubs.into_iter().map(|hub| hub.key).collect::<Vec<_>>();
        assert_eq!(keys(crowd.largest(4)), ["k00003", "k00001", "k00004", "k00002"]);
        assert_eq!(keys(crowd.highest(3)), ["k00001", "k00004", "k00000"]);
        assert_eq!(crowd.highest(99).len(), 5);
        assert!(crowd.largest(0).is_empty());
    }
}
