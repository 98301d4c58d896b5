//! Proposes entities that stand in the same column of the same relation elsewhere.

use std::sync::Arc;

use base::rng::RngKey;

use super::config::Corruption;
use super::corrupt::{Corrupt, Proposal, one_of};
use super::ends::Ends;
use super::uniform::Uniform;
use crate::sample::{Slot, Triple};

/// Takes an entity from the domain or the range that a relation has in the shown triples, each entity as likely as another however
/// often it stands there. The donor is the first triple that has it there. Relations are taken as under uniform.
#[derive(Debug)]
pub struct ByRange {
    relations: Uniform,
    ends: Ends,
}

impl ByRange {
    /// Gathers the domain and the range of every relation in the shown triples.
    #[must_use]
    pub fn new(triples: &Arc<[Triple]>) -> Self {
        Self { relations: Uniform { triples: Arc::clone(triples) }, ends: Ends::new(triples) }
    }
}

impl Corrupt for ByRange {
    fn propose(&self, stated: Triple, slot: Slot, seed: RngKey) -> Option<Proposal> {
        let ends = match slot {
            Slot::Subject => self.ends.subjects(stated[1]),
            Slot::Relation => return self.relations.propose(stated, slot, seed),
            Slot::Object => self.ends.objects(stated[1]),
        };
        let end = one_of(ends, seed)?;
        Some(Proposal { value: end.entity, donor: Some(end.first), sampler: Corruption::TypedByRange })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_come_from_the_column_of_the_relation_each_as_often() {
        let triples = [[0, 0, 5], [0, 0, 6], [1, 0, 6], [2, 0, 6], [3, 1, 7]];
        let by_range = ByRange::new(&Arc::from(triples.as_slice()));
        let mut drawn = [0_u32; 8];
        for i in 0..30_000 {
            let proposal = by_range.propose(triples[3], Slot::Subject, RngKey::new(1).at(i)).unwrap();
            assert_eq!(triples[proposal.donor.unwrap() as usize][0], proposal.value);
            assert_eq!(proposal.sampler, Corruption::TypedByRange);
            drawn[proposal.value as usize] += 1;
        }
        assert!(drawn[..3].iter().all(|n| (9_700..10_300).contains(n)), "{drawn:?}");
        assert_eq!(drawn[3..], [0; 5]);
        assert_eq!(
            by_range.propose(triples[4], Slot::Object, RngKey::new(1)),
            None,
            "the range is one entity"
        );
        let relation = by_range.propose(triples[4], Slot::Relation, RngKey::new(1)).unwrap();
        assert_eq!(relation.sampler, Corruption::Uniform);
    }
}
