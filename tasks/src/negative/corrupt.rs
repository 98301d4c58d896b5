//! The trait of everything that proposes corruptions.

use std::fmt::Debug;

use base::rng::RngKey;

use super::config::Corruption;
use crate::sample::{Slot, Triple};

/// What may stand in a column instead of what does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposal {
    /// The entity or relation.
    pub value: u32,
    /// The triple whose column it is, by its place among the shown triples; none if it was not taken from a triple.
    pub donor: Option<u32>,
    /// Who proposes.
    pub sampler: Corruption,
}

/// Proposes corruptions of shown triples; whether they are false is for others to say. Everything is a pure function of its
/// arguments.
pub trait Corrupt: Debug + Send + Sync {
    /// Puts `slots` into the order in which they get their turn: the first is the one to replace, the others stand in for it. Any order
    /// comes as often as another, whatever is stated.
    fn order(&self, slots: &mut [Slot], _: Triple, seed: RngKey) {
        seed.shuffle(slots);
    }

    /// A value for a column of a shown triple. None if there is none but that which stands there, whatever the seed.
    fn propose(&self, stated: Triple, slot: Slot, seed: RngKey) -> Option<Proposal>;
}

/// One of several values, each as often as another; none where there is only what stands there already, or nothing.
pub(super) fn one_of<T>(values: &[T], seed: RngKey) -> Option<&T> {
    if values.len() < 2 {
        return None;
    }
    values.get(usize::try_from(seed.below(values.len() as u64)).ok()?)
}
