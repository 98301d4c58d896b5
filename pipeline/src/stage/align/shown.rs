//! Batches of pairs of names, and of triples beside them.

use base::rng::RngKey;
use downstream::encode::{Frame, Framed};
use model::output::{Batch, Targets};

use super::facts::{Fact, Facts};
use super::names::Names;
use super::{Config, RELATIONS};
use crate::stage::training::steps::Batches;

/// What is learnt.
#[derive(Clone, Copy)]
pub(super) struct Learnt<'n> {
    pub(super) names: &'n Names,
    /// With `align.relations` alone.
    pub(super) facts: Option<&'n Facts>,
}

impl Learnt<'_> {
    /// Batches of pairs in an epoch.
    pub(super) fn batches(&self, config: &Config) -> usize {
        self.names.pairs().div_ceil(config.batch)
    }
}

/// So many items in the order in which they are shown: each epoch a permutation of all, cut into batches whose sizes differ by one at most, for a last one of a few would have next to
/// nothing to tell them from.
pub(super) struct Turns {
    items: usize,
    /// Batches of an epoch.
    batches: usize,
    seed: RngKey,
    /// The next batch.
    step: u64,
    order: Order,
}

impl Turns {
    /// Those of so many items in so many batches.
    pub(super) fn new(items: usize, batches: usize, seed: u64, step: u64) -> Self {
        Self { items, batches, seed: RngKey::new(seed).named("order"), step, order: Order::default() }
    }

    /// The epoch and the items of the next batch.
    ///
    /// # Errors
    /// Never, where numbers have 64 bits.
    pub(super) fn advance(&mut self) -> anyhow::Result<(u64, &[usize])> {
        let of_epoch = self.batches as u64;
        let (epoch, within) = (self.step / of_epoch, usize::try_from(self.step % of_epoch)?);
        self.step += 1;
        let order = self.order.of(epoch, self.items, self.seed);
        let border = |batch: usize| order.len() * batch / self.batches;
        Ok((epoch, &order[border(within)..border(within + 1)]))
    }
}

/// Pairs of names, batch after batch.
pub(super) struct Shown<'n> {
    names: &'n Names,
    frame: Frame,
    turns: Turns,
    /// What is shown beside them.
    facts: Option<ShownFacts<'n>>,
}

/// Triples in the order in which they are shown: one permutation of all after the other, so many beside each batch of pairs.
struct ShownFacts<'n> {
    facts: &'n Facts,
    batch: usize,
    seed: RngKey,
    order: Order,
}

/// The order of an epoch, kept while it lasts.
#[derive(Default)]
struct Order(Option<(u64, Vec<usize>)>);

impl Order {
    /// The one of an epoch of so many.
    fn of(&mut self, epoch: u64, count: usize, seed: RngKey) -> &[usize] {
        if self.0.as_ref().is_none_or(|(of, _)| *of != epoch) {
            self.0 = None;
        }
        let drawn = || {
            let mut order: Vec<usize> = (0..count).collect();
            seed.at(epoch).shuffle(&mut order);
            (epoch, order)
        };
        &self.0.get_or_insert_with(drawn).1
    }
}

impl ShownFacts<'_> {
    /// The batch of a step.
    fn batch(&mut self, step: u64, names: &Names, frame: Frame) -> anyhow::Result<Batch> {
        let (mut rows, mut links) = (Framed::new(frame)?, vec![]);
        let (all, batch) = (self.facts.len() as u64, self.batch as u64);
        for number in step * batch..(step + 1) * batch {
            let order = self.order.of(number / all, self.facts.len(), self.seed);
            let at = order[usize::try_from(number % all)?];
            let Fact { names, relation } = self.facts.draw(at, names, self.seed.named("names").at(number))?;
            names.iter().for_each(|tokens| rows.single(tokens));
            links.push(relation);
        }
        Ok(Batch { task: 1, rows: rows.rows, targets: Targets::Links(links) })
    }
}

impl<'n> Shown<'n> {
    /// They after so many batches.
    pub(super) fn new(learnt: Learnt<'n>, config: &Config, frame: Frame, step: u64) -> Self {
        let facts = config.relations.zip(learnt.facts).map(|(relations, facts)| ShownFacts {
            facts,
            batch: relations.batch,
            seed: RngKey::new(config.seed).named(RELATIONS),
            order: Order::default(),
        });
        let names = learnt.names;
        let turns = Turns::new(names.pairs(), learnt.batches(config), config.seed, step);
        Self { names, frame, turns, facts }
    }
}

impl Batches for Shown<'_> {
    fn advance(&mut self) -> anyhow::Result<(u64, Vec<Batch>)> {
        let step = self.turns.step;
        let (epoch, pairs) = self.turns.advance()?;
        let (mut rows, mut identities) = (Framed::new(self.frame)?, vec![]);
        for &pair in pairs {
            for (tokens, identity) in self.names.pair_of(pair) {
                rows.single(tokens);
                identities.push(identity);
            }
        }
        let batch = Batch { task: 0, rows: rows.rows, targets: Targets::Identities(identities) };
        let mut batches = vec![batch];
        if let Some(facts) = &mut self.facts {
            batches.push(facts.batch(step, self.names, self.frame)?);
        }
        Ok((epoch, batches))
    }
}
