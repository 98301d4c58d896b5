//! The negatives of every triple of a graph: proposed, judged, counted.

use std::sync::Arc;

use base::rng::RngKey;

use super::any_entity::AnyEntity;
use super::bernoulli::Bernoulli;
use super::by_range::ByRange;
use super::by_type::ByType;
use super::config::{Config, Corruption, Draw};
use super::corrupt::Corrupt;
use super::counts::Counts;
use super::judge::{Falsely, Judge, Ruling, Verdict};
use super::uniform::Uniform;
use crate::Error;
use crate::sample::{Corpus, Slot, Triple};

/// A corrupted triple, and how it came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negative {
    /// The corrupted triple.
    pub triple: Triple,
    /// The column that was replaced.
    pub slot: Slot,
    /// Who proposed it: the configured sampler, or uniform where that takes relations as uniform does.
    pub sampler: Corruption,
    /// The triple whose column stands there now, by its place among the shown triples; none if it was not taken from a triple.
    pub donor: Option<u32>,
    /// What the filter said of it.
    pub verdict: Verdict,
}

/// Why entities are not told apart by their types.
const NO_TYPES: &str = "the sampler of negatives is \"typed_by_type\", but no entity of the shown triples has a semantic type; add a source with \
    types (UMLS with MRSTY, KGX with categories), or use \"typed_by_range\", which needs none";

/// Draws negatives for the shown triples of one graph. Any thread may ask for any triple in any order.
#[derive(Debug)]
pub struct Sampler {
    config: Config,
    triples: Arc<[Triple]>,
    corrupt: Box<dyn Corrupt>,
    judge: Judge,
    seed: RngKey,
}

impl Sampler {
    /// A sampler over the triples of `corpus`; all its chance comes from `seed`.
    ///
    /// # Errors
    /// When a setting is out of range, or entities are to share types and none has one.
    pub fn new(config: &Config, corpus: &Corpus<'_>, seed: RngKey) -> Result<Self, Error> {
        config.check()?;
        let triples: Arc<[Triple]> = corpus.triples.as_slice().into();
        let corrupt: Box<dyn Corrupt> = match config.sampler {
            Corruption::Uniform => Box::new(Uniform { triples: Arc::clone(&triples) }),
            Corruption::Bernoulli => Box::new(Bernoulli::new(&triples)),
            Corruption::AnyEntity => Box::new(AnyEntity::new(&triples)),
            Corruption::TypedByRange => Box::new(ByRange::new(&triples)),
            Corruption::TypedByType => {
                let by_type = ByType::new(corpus, &triples);
                if by_type.is_empty() && config.slots.iter().any(|slot| *slot != Slot::Relation) {
                    return Err(Error::unfit(NO_TYPES));
                }
                Box::new(by_type)
            }
        };
        let judge = Judge::new(corpus, config.same, config.filter);
        Ok(Self { config: config.clone(), triples, corrupt, judge, seed })
    }

    /// Whether every epoch has its own negatives.
    #[must_use]
    pub fn draws_anew(&self) -> bool {
        self.config.draw == Draw::Fresh
    }

    /// The negatives of triple `index` (its place among the shown triples) in `epoch`, at most as many as the config asks for: a pure
    /// function of (seed, epoch, index), and of (seed, index) where the draw is fixed. Adds what happened to `counts`.
    ///
    /// # Panics
    /// When there is no such triple.
    pub fn negatives(&self, epoch: u64, index: u32, counts: &mut Counts) -> Vec<Negative> {
        self.negatives_of(self.triples[index as usize], epoch, index, counts)
    }

    /// The negatives of a triple that need not be a shown one; `index` is its number among those that are asked for.
    #[must_use]
    pub fn negatives_of(&self, stated: Triple, epoch: u64, index: u32, counts: &mut Counts) -> Vec<Negative> {
        let epoch = match self.config.draw {
            Draw::Fixed => 0,
            Draw::Fresh => epoch,
        };
        let seed = self.seed.at(epoch).at(u64::from(index));
        let mut asked = Asked { stated, said: self.judge.said(stated), negatives: Vec::new() };
        for copy in 0..self.config.per_triple {
            // The first draws as if it were the only one: asking for more changes no earlier negative.
            let seed = if copy == 0 { seed } else { seed.named("copy").at(u64::from(copy)) };
            match self.draw(&asked, seed, counts) {
                Some(negative) => asked.negatives.push(negative),
                None => counts.gave_up += 1,
            }
        }
        asked.negatives
    }

    /// One more negative. None when no column gave one.
    fn draw(&self, asked: &Asked, seed: RngKey, counts: &mut Counts) -> Option<Negative> {
        let mut slots = Slot::ALL;
        let slots = &mut slots[..self.config.slots.len()];
        slots.copy_from_slice(&self.config.slots);
        self.corrupt.order(slots, asked.stated, seed.named("slot"));
        let seed = seed.named("donor");
        for (turn, slot) in (0..).zip(slots) {
            if let Some(negative) = self.replace(asked, *slot, seed.at(turn), counts) {
                *counts.kept.entry(*slot).or_default() += 1;
                counts.other_slot += u64::from(turn > 0);
                return Some(negative);
            }
        }
        None
    }

    /// Replaces one column. None when every proposal was refused, or there was none.
    fn replace(&self, asked: &Asked, slot: Slot, seed: RngKey, counts: &mut Counts) -> Option<Negative> {
        for draw in 0..self.config.max_draws {
            let Some(proposal) = self.corrupt.propose(asked.stated, slot, seed.at(u64::from(draw))) else {
                counts.no_candidate += 1;
                return None;
            };
            counts.proposed += 1;
            let mut triple = asked.stated;
            triple[slot as usize] = proposal.value;
            let said = self.judge.said(triple);
            match self.judge.judge(asked.said, said) {
                Ruling::Unchanged => counts.unchanged += 1,
                Ruling::Known => counts.known += 1,
                Ruling::Held => counts.held += 1,
                Ruling::Kept { .. } if asked.has(&self.judge, said) => counts.repeated += 1,
                Ruling::Kept { verdict, falsely } => {
                    counts.known_kept += u64::from(falsely == Falsely::Known);
                    counts.held_kept += u64::from(falsely == Falsely::Held);
                    let (sampler, donor) = (proposal.sampler, proposal.donor);
                    return Some(Negative { triple, slot, sampler, donor, verdict });
                }
            }
        }
        None
    }
}

/// A triple whose negatives are drawn, and those that it has.
struct Asked {
    stated: Triple,
    /// What the stated triple says.
    said: Triple,
    negatives: Vec<Negative>,
}

impl Asked {
    /// Whether one of the negatives says `said`.
    fn has(&self, judge: &Judge, said: Triple) -> bool {
        self.negatives.iter().any(|negative| judge.said(negative.triple) == said)
    }
}
