//! Proposes corruptions by putting one column of a random donor triple into a stated one, and keeps the first that is
//! unknown (paper 000, triplet classification; MODELS section 1.8). Knows no other way of proposing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::{Known, Slot, Triple};
use crate::seed::Seed;

/// How negatives are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Columns that may be replaced; one is chosen uniformly per triple.
    pub slots: Vec<Slot>,
    /// Donors tried per column before the next column gets its turn.
    pub max_draws: u32,
}

/// A triple that is not stated, and how it came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negative {
    /// The corrupted triple.
    pub triple: Triple,
    /// The column that was replaced.
    pub slot: Slot,
    /// The triple whose column stands there now, by its place among the sampler's triples.
    pub donor: u32,
}

/// What became of all proposals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Proposals drawn.
    pub proposed: u64,
    /// Proposals that read the same as the stated triple.
    pub unchanged: u64,
    /// Proposals that read the same as another stated triple: they would have been false negatives.
    pub known: u64,
    /// Negatives kept, per replaced column.
    pub kept: BTreeMap<Slot, u64>,
    /// Negatives whose first column found no donor, so that another column was replaced.
    pub other_slot: u64,
    /// Triples for which no column found a donor: they have no negative.
    pub gave_up: u64,
}

impl Counts {
    /// Adds another count; the order of addition does not matter.
    pub fn add(&mut self, other: &Counts) {
        self.proposed += other.proposed;
        self.unchanged += other.unchanged;
        self.known += other.known;
        self.other_slot += other.other_slot;
        self.gave_up += other.gave_up;
        for (slot, count) in &other.kept {
            *self.kept.entry(*slot).or_default() += count;
        }
    }
}

/// Draws negatives for the triples of one graph.
#[derive(Debug, Clone, Copy)]
pub struct Sampler<'a> {
    /// How to draw.
    pub config: &'a Config,
    /// The stated triples, which are also the donors.
    pub triples: &'a [Triple],
    /// The judge.
    pub known: &'a Known,
    /// Chance for one epoch; triple and attempt are added here.
    pub seed: Seed,
}

impl Sampler<'_> {
    /// The negative of triple `index`: a pure function of seed and index. `None` when every donor tried was refused.
    pub fn negative(&self, index: u32, counts: &mut Counts) -> Option<Negative> {
        let seed = self.seed.at(u64::from(index));
        let stated = self.triples[index as usize];
        let own_class = self.known.class(stated);
        let mut slots = self.config.slots.clone();
        seed.named("slot").shuffle(&mut slots);
        for (turn, slot) in slots.into_iter().enumerate() {
            let donors = seed.named("donor").at(turn as u64);
            for draw in 0..self.config.max_draws {
                let donor = donors.at(u64::from(draw)).below(self.triples.len() as u64);
                let donor = u32::try_from(donor).unwrap_or(u32::MAX);
                let mut triple = stated;
                triple[slot as usize] = self.triples[donor as usize][slot as usize];
                let class = self.known.class(triple);
                counts.proposed += 1;
                if class == own_class {
                    counts.unchanged += 1;
                } else if self.known.contains(class) {
                    counts.known += 1;
                } else {
                    *counts.kept.entry(slot).or_default() += 1;
                    counts.other_slot += u64::from(turn > 0);
                    return Some(Negative { triple, slot, donor });
                }
            }
        }
        counts.gave_up += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use kg::canon::relation::Turn;

    use super::*;
    use crate::sample::Corpus;

    fn config() -> Config {
        Config { slots: Slot::ALL.to_vec(), max_draws: 50 }
    }

    fn corpus(names: &[String]) -> Corpus<'_> {
        let triples = (0..300_u32).map(|i| [i % 20, i % 3, 20 + (i * 7) % 30]).collect();
        Corpus {
            entities: names.iter().map(String::as_str).collect(),
            relations: vec!["treats", "causes", "finds"],
            ways: (0..3).map(|relation| (relation, Turn::Stays)).collect(),
            triples,
            rows: (0..300).collect(),
        }
    }

    #[test]
    fn negatives_are_unknown_and_differ_in_one_column_taken_from_the_donor() {
        let names: Vec<String> = (0..50).map(|i| format!("e{i}")).collect();
        let corpus = corpus(&names);
        let known = Known::new(&corpus);
        let config = config();
        let sampler =
            Sampler { config: &config, triples: &corpus.triples, known: &known, seed: Seed::new(1) };
        let mut counts = Counts::default();
        for index in 0..300 {
            let negative = sampler.negative(index, &mut counts).unwrap();
            let stated = corpus.triples[index as usize];
            assert!(!corpus.triples.contains(&negative.triple));
            let changed: Vec<usize> = (0..3).filter(|&i| stated[i] != negative.triple[i]).collect();
            assert_eq!(changed, [negative.slot as usize]);
            assert_eq!(
                negative.triple[negative.slot as usize],
                corpus.triples[negative.donor as usize][negative.slot as usize]
            );
            assert_eq!(sampler.negative(index, &mut Counts::default()), Some(negative), "pure function");
        }
        assert_eq!(counts.kept.values().sum::<u64>(), 300);
        assert_eq!(counts.proposed, 300 + counts.unchanged + counts.known);
        assert!(counts.kept.values().all(|&n| n > 60), "slots are drawn evenly: {counts:?}");
    }

    #[test]
    fn a_complete_graph_gives_up_and_says_so() {
        let corpus = Corpus {
            entities: vec!["a", "A"],
            relations: vec!["r"],
            triples: vec![[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]],
            rows: (0..4).collect(),
            ways: vec![(0, Turn::Stays)],
        };
        let known = Known::new(&corpus);
        let config = config();
        let sampler =
            Sampler { config: &config, triples: &corpus.triples, known: &known, seed: Seed::new(1) };
        let mut counts = Counts::default();
        assert_eq!(sampler.negative(0, &mut counts), None);
        assert_eq!((counts.gave_up, counts.proposed), (1, 150));
    }
}
