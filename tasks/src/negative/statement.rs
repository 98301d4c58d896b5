//! What triples say, as numbers that are equal when two triples say the same.

use kg::canon::relation::Turn;
use serde::{Deserialize, Serialize};

use crate::names::numbers;
use crate::sample::{Corpus, Triple};

/// When two triples count as the same. Either way a triple and its inverse, or a symmetric one with its ends exchanged, do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// When they have the same ids; two entities with the same name are two.
    Ids,
    /// When they read the same: entities with the same name count as one, because a model that reads names cannot tell them apart.
    #[default]
    Texts,
}

/// Turns triples of one corpus into what they say.
#[derive(Debug)]
pub struct Statements {
    /// The number of each entity's text; none where ids are compared.
    texts: Option<Vec<u32>>,
    ways: Vec<(u32, Turn)>,
}

impl Statements {
    /// Learns the texts and the inverses of a corpus.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>, same: Same) -> Self {
        let texts = match same {
            Same::Ids => None,
            Same::Texts => Some(numbers(&corpus.entities)),
        };
        Self { texts, ways: corpus.ways.clone() }
    }

    /// What the triple says: each entity replaced by its number, the relation by that of its statement, ends exchanged where the
    /// relation is an inverse or symmetric.
    #[must_use]
    pub fn of(&self, [subject, relation, object]: Triple) -> Triple {
        let entity = |id: u32| self.texts.as_ref().map_or(id, |texts| texts[id as usize]);
        let (one, other) = (entity(subject), entity(object));
        let (relation, turn) = self.ways[relation as usize];
        match turn {
            Turn::Exchanges => [other, relation, one],
            Turn::Sorts => [one.min(other), relation, one.max(other)],
            Turn::Stays => [one, relation, other],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus<'static> {
        Corpus {
            entities: vec!["Fever", "Flu", "fe\u{301}ver ", "Cough"],
            types: vec![&[]; 4],
            relations: vec!["interacts with", "treats", "treated by"],
            ways: vec![(0, Turn::Sorts), (1, Turn::Stays), (1, Turn::Exchanges)],
            triples: vec![],
            rows: vec![],
            held: vec![],
        }
    }

    #[test]
    fn texts_or_ids_are_compared() {
        let (texts, ids) = (Statements::new(&corpus(), Same::Texts), Statements::new(&corpus(), Same::Ids));
        assert_eq!(texts.of([1, 1, 0]), texts.of([1, 1, 2]), "the same name under another id");
        assert_ne!(texts.of([1, 1, 0]), texts.of([1, 1, 3]));
        assert_ne!(ids.of([1, 1, 0]), ids.of([1, 1, 2]));
        assert_eq!(ids.of([1, 1, 0]), ids.of([1, 1, 0]));
    }

    #[test]
    fn a_statement_reads_the_same_from_both_its_ends() {
        for same in [Same::Texts, Same::Ids] {
            let statements = Statements::new(&corpus(), same);
            assert_eq!(statements.of([3, 0, 1]), statements.of([1, 0, 3]), "symmetric");
            assert_eq!(statements.of([3, 1, 1]), statements.of([1, 2, 3]), "inverse");
            assert_ne!(statements.of([3, 1, 1]), statements.of([1, 1, 3]), "direction matters");
            assert_ne!(statements.of([3, 1, 1]), statements.of([3, 2, 1]));
        }
    }
}
