//! Proposes as uniform does, but replaces rather the side where that seldom makes a false negative (Wang et al. 2014, TransH, section 3.3).
//!
//! Of a relation with tph objects per subject and hpt subjects per object on average, the subject is replaced with probability
//! tph / (tph + hpt). With n triples, S different subjects and O different objects, tph = n / S and hpt = n / O, so the
//! probability is O / (S + O), exactly. All are counted by ids on the shown triples.

use std::sync::Arc;

use base::rng::RngKey;

use super::config::Corruption;
use super::corrupt::{Corrupt, Proposal};
use super::ends::Ends;
use super::uniform::Uniform;
use crate::sample::{Slot, Triple};

/// One column in so many is the relation, where it may be replaced at all: as many as under uniform of three columns.
const RELATION: u64 = 3;

/// Chooses the side by the cardinality of the relation, and takes the column from a random donor.
#[derive(Debug)]
pub struct Bernoulli {
    donors: Uniform,
    ends: Ends,
}

impl Bernoulli {
    /// Counts subjects and objects of every relation in the shown triples.
    #[must_use]
    pub fn new(triples: &Arc<[Triple]>) -> Self {
        Self { donors: Uniform { triples: Arc::clone(triples) }, ends: Ends::new(triples) }
    }
}

impl Corrupt for Bernoulli {
    fn order(&self, slots: &mut [Slot], [_, relation, _]: Triple, seed: RngKey) {
        let subjects = self.ends.subjects(relation).len() as u64;
        let objects = self.ends.objects(relation).len() as u64;
        let mut order = [Slot::Subject, Slot::Object, Slot::Relation];
        if seed.named("side").below(subjects + objects) >= objects {
            order.swap(0, 1);
        }
        if seed.named("relation").below(RELATION) == 0 {
            order.rotate_right(1);
        }
        slots.sort_by_key(|slot| order.iter().position(|next| next == slot));
    }

    fn propose(&self, stated: Triple, slot: Slot, seed: RngKey) -> Option<Proposal> {
        let proposal = self.donors.propose(stated, slot, seed)?;
        Some(Proposal { sampler: Corruption::Bernoulli, ..proposal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each column comes first in 30,000 draws.
    fn firsts(triples: &[Triple], slots: &[Slot], relation: u32) -> [u32; 3] {
        let bernoulli = Bernoulli::new(&triples.into());
        let stated = *triples.iter().find(|triple| triple[1] == relation).unwrap();
        let mut firsts = [0; 3];
        for i in 0..30_000 {
            let mut order = slots.to_vec();
            bernoulli.order(&mut order, stated, RngKey::new(2).at(i));
            assert_eq!(order.len(), slots.len());
            firsts[order[0] as usize] += 1;
        }
        firsts
    }

    #[test]
    fn sides_are_chosen_by_cardinality() {
        // Relation 0: one subject, nine objects. Relation 1: four subjects, two objects.
        let mut triples: Vec<Triple> = (0..9).map(|i| [0, 0, 10 + i]).collect();
        triples.extend((0..8).map(|i| [i % 4, 1, 20 + i / 4]));
        let near = |found: [u32; 3], expected: [u32; 3]| {
            let close =
                found.iter().zip(expected).all(|(&n, e)| n.abs_diff(e) <= if e == 0 { 0 } else { 400 });
            assert!(close, "{found:?}, expected about {expected:?}");
        };
        let sides = [Slot::Subject, Slot::Object];
        near(firsts(&triples, &sides, 0), [27_000, 0, 3_000]);
        near(firsts(&triples, &sides, 1), [10_000, 0, 20_000]);
        near(firsts(&triples, &Slot::ALL, 0), [18_000, 10_000, 2_000]);
        near(firsts(&triples, &[Slot::Object, Slot::Relation], 0), [0, 10_000, 20_000]);
        near(firsts(&triples, &[Slot::Subject], 1), [30_000, 0, 0]);
    }
}
