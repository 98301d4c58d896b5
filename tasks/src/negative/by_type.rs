//! Proposes entities that share a semantic type with the replaced one.

use std::sync::Arc;

use base::rng::RngKey;
use kg::table::SemanticType;
use rayon::slice::ParallelSliceMut;

use super::any_entity::shown;
use super::config::Corruption;
use super::corrupt::{Corrupt, Proposal};
use super::lists::Lists;
use super::uniform::Uniform;
use crate::sample::{Corpus, Slot, Triple};

/// Takes an entity of the shown triples that has one of the replaced one's semantic types, each as likely as another however many
/// they share; it has no donor. Roles are no types ([`SemanticType::is_role`]). Relations are taken as under uniform.
#[derive(Debug)]
pub struct ByType {
    relations: Uniform,
    /// The types of each entity, as numbers.
    types: Lists<u32>,
    /// The entities of each type.
    entities: Lists<u32>,
}

impl ByType {
    /// Gathers the types of the entities of the shown triples.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>, triples: &Arc<[Triple]>) -> Self {
        let shown = shown(triples);
        let of = |entity: u32| {
            let types: &[SemanticType] = corpus.types.get(entity as usize).copied().unwrap_or_default();
            types.iter().filter(|semantic_type| !semantic_type.is_role())
        };
        let mut all: Vec<&SemanticType> = shown.iter().flat_map(|entity| of(*entity)).collect();
        all.par_sort_unstable();
        all.dedup();
        let number = |semantic_type| u32::try_from(all.partition_point(|t| *t < semantic_type)).ok();
        let pair = |entity| of(entity).filter_map(move |found| Some((entity, number(found)?)));
        let mut typed: Vec<(u32, u32)> = shown.iter().flat_map(|entity| pair(*entity)).collect();
        typed.sort_unstable();
        typed.dedup();
        let mut members: Vec<(u32, u32)> = typed.iter().map(|(entity, number)| (*number, *entity)).collect();
        members.par_sort_unstable();
        Self {
            relations: Uniform { triples: Arc::clone(triples) },
            types: Lists::new(typed),
            entities: Lists::new(members),
        }
    }

    /// Whether no entity of the shown triples has a type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The entity at place `at` of the lists of all `types`, one after the other, unless it stands in an earlier one of them as well.
    fn at(&self, types: &[u32], at: u64) -> Option<u32> {
        let mut at = usize::try_from(at).ok()?;
        for (before, number) in types.iter().enumerate() {
            let entities = self.entities.get(*number);
            if let Some(&entity) = entities.get(at) {
                let theirs = self.types.get(entity);
                return types[..before].iter().all(|earlier| !theirs.contains(earlier)).then_some(entity);
            }
            at -= entities.len();
        }
        None
    }
}

impl Corrupt for ByType {
    fn propose(&self, stated: Triple, slot: Slot, seed: RngKey) -> Option<Proposal> {
        if slot == Slot::Relation {
            return self.relations.propose(stated, slot, seed);
        }
        let types = self.types.get(stated[slot as usize]);
        let places: usize = types.iter().map(|number| self.entities.get(*number).len()).sum();
        if places == types.len() {
            return None; // each list holds only the one that stands there
        }
        // Places are drawn until one counts. Every entity has exactly one that does, so each is as likely as another; the places of
        // the first list all count, so that no more draws are needed on average than it has types.
        let value = (0..).find_map(|draw| self.at(types, seed.at(draw).below(places as u64)))?;
        Some(Proposal { value, donor: None, sampler: Corruption::TypedByType })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> Vec<SemanticType> {
        let kind = |name: &&str| SemanticType {
            code: (!SemanticType::ROLES.contains(name)).then(|| format!("T-{name}")),
            name: (*name).to_owned(),
        };
        names.iter().map(kind).collect()
    }

    #[test]
    fn entities_share_a_type_and_come_each_as_often() {
        let types: Vec<Vec<SemanticType>> = [
            &["drug", "hormone"][..],
            &["drug"],
            &["drug", "hormone", "symptom"],
            &["hormone"],
            &["finding", "symptom"],
            &["symptom"],
            &["drug"],
        ]
        .map(kinds)
        .into();
        let corpus = Corpus {
            entities: vec!["0", "1", "2", "3", "4", "5", "6"],
            types: types.iter().map(Vec::as_slice).collect(),
            relations: vec!["r"],
            ways: vec![(0, kg::canon::relation::Turn::Stays)],
            triples: vec![[0, 0, 4], [1, 0, 4], [2, 0, 5], [3, 0, 5]],
            rows: (0..4).collect(),
            held: vec![[6, 0, 5]],
        };
        let by_type = ByType::new(&corpus, &Arc::from(corpus.triples.as_slice()));
        let mut drawn = [0_u32; 7];
        for i in 0..40_000 {
            let proposal = by_type.propose([0, 0, 4], Slot::Subject, RngKey::new(1).at(i)).unwrap();
            assert_eq!((proposal.donor, proposal.sampler), (None, Corruption::TypedByType));
            drawn[proposal.value as usize] += 1;
        }
        assert!(drawn[..4].iter().all(|n| (9_600..10_400).contains(n)), "{drawn:?}");
        assert_eq!(drawn[4..], [0; 3], "other types, roles, and what is shown nowhere");
        let none = |stated, slot| by_type.propose(stated, slot, RngKey::new(1));
        assert_eq!(none([0, 0, 4], Slot::Object), None, "alone with its type; a role is none");
        assert_eq!(none([2, 0, 5], Slot::Object), None, "without a type");
        assert_eq!(none([0, 0, 4], Slot::Relation).unwrap().sampler, Corruption::Uniform);
        assert!(!by_type.is_empty());
    }
}
