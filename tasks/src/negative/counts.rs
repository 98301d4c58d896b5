//! What became of all proposals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::Slot;

/// What became of all proposals: `proposed` = `unchanged` + `known` + `held` + `repeated` + all `kept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Proposals drawn.
    pub proposed: u64,
    /// Refused: they say the same as the stated triple.
    pub unchanged: u64,
    /// Refused: another shown triple says the same, so they would have been false negatives.
    pub known: u64,
    /// Refused: a held-out triple says the same, so they would have been false negatives.
    pub held: u64,
    /// Refused: an earlier negative of the same triple says the same.
    pub repeated: u64,
    /// Negatives kept though a shown triple says the same, since nothing is refused: false negatives.
    pub known_kept: u64,
    /// Negatives kept though a held-out triple says the same, since those are not consulted: false negatives.
    pub held_kept: u64,
    /// Columns that were skipped because there was nothing to put there.
    pub no_candidate: u64,
    /// Negatives kept, per replaced column.
    pub kept: BTreeMap<Slot, u64>,
    /// Negatives whose first column found nothing, so that another column was replaced.
    pub other_slot: u64,
    /// Negatives that were asked for and that no column could give.
    pub gave_up: u64,
}

impl Counts {
    /// Adds another count; the order of addition does not matter.
    pub fn add(&mut self, other: &Counts) {
        self.proposed += other.proposed;
        self.unchanged += other.unchanged;
        self.known += other.known;
        self.held += other.held;
        self.repeated += other.repeated;
        self.known_kept += other.known_kept;
        self.held_kept += other.held_kept;
        self.no_candidate += other.no_candidate;
        for (slot, count) in &other.kept {
            *self.kept.entry(*slot).or_default() += count;
        }
        self.other_slot += other.other_slot;
        self.gave_up += other.gave_up;
    }

    /// Negatives kept in all columns.
    #[must_use]
    pub fn negatives(&self) -> u64 {
        self.kept.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_added() {
        let once = Counts {
            proposed: 1,
            unchanged: 2,
            known: 3,
            held: 4,
            repeated: 5,
            known_kept: 6,
            held_kept: 7,
            no_candidate: 8,
            kept: BTreeMap::from([(Slot::Subject, 9), (Slot::Object, 10)]),
            other_slot: 11,
            gave_up: 12,
        };
        let mut twice = once.clone();
        twice.add(&once);
        let (once, twice) = (serde_json::to_value(&once).unwrap(), serde_json::to_value(&twice).unwrap());
        let doubled = |(key, count): (&String, &serde_json::Value)| match count {
            serde_json::Value::Object(per_slot) => {
                per_slot.iter().all(|(slot, n)| twice[key][slot].as_u64() == n.as_u64().map(|n| 2 * n))
            }
            count => twice[key].as_u64() == count.as_u64().map(|n| 2 * n),
        };
        assert!(once.as_object().unwrap().iter().all(doubled), "{once} and {twice}");
    }
}
