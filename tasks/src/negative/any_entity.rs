//! Proposes any entity of the graph, each as often as another (KG-BERT, `run_bert_triple_classifier.py`).

use std::sync::Arc;

use base::rng::RngKey;
use rayon::slice::ParallelSliceMut;

use super::config::Corruption;
use super::corrupt::{Corrupt, Proposal, one_of};
use super::uniform::Uniform;
use crate::sample::{Slot, Triple};

/// Takes an entity of the shown triples, each as likely as another however often it stands there; it has no donor. Relations are
/// taken as under uniform.
#[derive(Debug)]
pub struct AnyEntity {
    relations: Uniform,
    entities: Vec<u32>,
}

impl AnyEntity {
    /// Gathers the entities of the shown triples.
    #[must_use]
    pub fn new(triples: &Arc<[Triple]>) -> Self {
        Self { relations: Uniform { triples: Arc::clone(triples) }, entities: shown(triples) }
    }
}

/// The entities of the shown triples, ascending: one that only held-out triples have would tell of them.
pub(super) fn shown(triples: &[Triple]) -> Vec<u32> {
    let mut entities: Vec<u32> = triples.iter().flat_map(|[s, _, o]| [*s, *o]).collect();
    entities.par_sort_unstable();
    entities.dedup();
    entities
}

impl Corrupt for AnyEntity {
    fn propose(&self, stated: Triple, slot: Slot, seed: RngKey) -> Option<Proposal> {
        if slot == Slot::Relation {
            return self.relations.propose(stated, slot, seed);
        }
        let value = *one_of(&self.entities, seed)?;
        Some(Proposal { value, donor: None, sampler: Corruption::AnyEntity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entity_comes_as_often_as_another_in_either_column() {
        // Entity 0 stands in each triple, 4 in none of them.
        let triples = [[0, 0, 1], [0, 0, 2], [0, 1, 3], [0, 1, 5], [5, 1, 0]];
        let any = AnyEntity::new(&Arc::from(triples.as_slice()));
        for slot in [Slot::Subject, Slot::Object] {
            let mut drawn = [0_u32; 6];
            for i in 0..50_000 {
                let proposal = any.propose(triples[1], slot, RngKey::new(1).at(i)).unwrap();
                assert_eq!((proposal.donor, proposal.sampler), (None, Corruption::AnyEntity));
                drawn[proposal.value as usize] += 1;
            }
            let even = [0, 1, 2, 3, 5].iter().all(|&entity| (9_600..10_400).contains(&drawn[entity]));
            assert!(even && drawn[4] == 0, "{drawn:?}");
        }
        let relation = any.propose(triples[0], Slot::Relation, RngKey::new(1)).unwrap();
        assert_eq!(relation.sampler, Corruption::Uniform);
        let alone = AnyEntity::new(&Arc::from([[7, 0, 7]].as_slice()));
        assert_eq!(alone.propose([7, 0, 7], Slot::Object, RngKey::new(1)), None);
        assert_eq!(AnyEntity::new(&Arc::from([])).propose([7, 0, 7], Slot::Object, RngKey::new(1)), None);
    }
}
