//! Proposes the column of a random shown triple, any column as often as another (paper 000, triplet classification).

use std::sync::Arc;

use base::rng::RngKey;

use super::config::Corruption;
use super::corrupt::{Corrupt, Proposal};
use crate::sample::{Slot, Triple};

/// Takes columns from donors: shown triples, each as likely as another.
#[derive(Debug, Clone)]
pub struct Uniform {
    /// The shown triples.
    pub triples: Arc<[Triple]>,
}

impl Corrupt for Uniform {
    fn propose(&self, _: Triple, slot: Slot, seed: RngKey) -> Option<Proposal> {
        let donor = u32::try_from(seed.below(self.triples.len() as u64)).ok()?;
        let value = self.triples.get(donor as usize)?[slot as usize];
        Some(Proposal { value, donor: Some(donor), sampler: Corruption::Uniform })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_donor_and_every_order_comes_as_often_as_another() {
        let triples: Vec<Triple> = (0..10).map(|i| [i, 10 + i, 20 + i]).collect();
        let uniform = Uniform { triples: triples.as_slice().into() };
        let seed = RngKey::new(1);
        let mut donors = [0_u32; 10];
        let mut firsts = [0_u32; 3];
        for i in 0..30_000 {
            let proposal = uniform.propose(triples[0], Slot::Object, seed.at(i)).unwrap();
            assert_eq!(proposal.donor, Some(proposal.value - 20));
            donors[proposal.donor.unwrap() as usize] += 1;
            let mut slots = Slot::ALL;
            uniform.order(&mut slots, triples[0], seed.at(i));
            firsts[slots[0] as usize] += 1;
        }
        assert!(donors.iter().all(|n| (2_800..3_200).contains(n)), "{donors:?}");
        assert!(firsts.iter().all(|n| (9_700..10_300).contains(n)), "{firsts:?}");
        assert_eq!(Uniform { triples: [].into() }.propose([0, 0, 0], Slot::Subject, seed), None);
    }
}
