//! In which order a fine-tuner sees its items, epoch after epoch. Knows no item.
//!
//! An epoch is a permutation of all items, cut into batches; the last batch of an epoch may be smaller, none is left out. Order is a function
//! of seed and epoch, so the number of steps that were made is all that says where a training stands.

use crate::seed::Seed;
use crate::unfit::Unfit;

/// Batches of items by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    items: usize,
    batch: usize,
    seed: Seed,
}

impl Turns {
    /// Turns of `items` items, `batch` of them a step.
    ///
    /// # Errors
    /// When there is no item, or a batch has none.
    pub fn new(items: usize, batch: usize, seed: Seed) -> Result<Self, Unfit> {
        if items == 0 {
            return Err(Unfit::new("items", items, "at least 1: there is nothing to learn from"));
        }
        if batch == 0 {
            return Err(Unfit::new("batch", batch, "at least 1"));
        }
        Ok(Self { items, batch, seed: seed.named("turns") })
    }

    /// Steps that show every item once.
    #[must_use]
    pub fn steps_per_epoch(&self) -> u64 {
        self.items.div_ceil(self.batch) as u64
    }

    /// The items of an epoch, from 0, in order.
    #[must_use]
    pub fn epoch(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items).collect();
        self.seed.at(epoch).shuffle(&mut order);
        order
    }

    /// The epoch of step `step` (both from 0) and the items of its batch.
    #[must_use]
    pub fn step(&self, step: u64) -> (u64, Vec<usize>) {
        let (epoch, within) = (step / self.steps_per_epoch(), step % self.steps_per_epoch());
        // Below the number of batches, which is a usize.
        let first = usize::try_from(within).unwrap_or(usize::MAX).saturating_mul(self.batch);
        let mut order = self.epoch(epoch);
        order.truncate(first.saturating_add(self.batch));
        (epoch, order.split_off(first.min(order.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_item_once_in_another_order() {
        let turns = Turns::new(10, 4, Seed::new(1)).unwrap();
        assert_eq!(turns.steps_per_epoch(), 3);
        let mut orders = Vec::new();
        for epoch in 0..5 {
            let batches: Vec<_> = (0..3).map(|within| turns.step(epoch * 3 + within)).collect();
            assert!(batches.iter().all(|(of, _)| *of == epoch));
            let sizes: Vec<_> = batches.iter().map(|(_, batch)| batch.len()).collect();
            assert_eq!(sizes, [4, 4, 2]);
            let order: Vec<usize> = batches.into_iter().flat_map(|(_, batch)| batch).collect();
            assert_eq!(order, turns.epoch(epoch));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
            orders.push(order);
        }
        orders.dedup();
        assert_eq!(orders.len(), 5, "{orders:?}");
    }

    #[test]
    fn a_step_follows_from_its_number_and_the_seed_alone() {
        let turns = |seed| Turns::new(100, 7, Seed::new(seed)).unwrap();
        assert_eq!(turns(1).step(40), turns(1).step(40));
        assert_ne!(turns(1).step(40), turns(2).step(40));
        let whole = Turns::new(3, 8, Seed::new(1)).unwrap();
        assert_eq!((whole.steps_per_epoch(), whole.step(7).0, whole.step(7).1.len()), (1, 7, 3));
    }

    #[test]
    fn nothing_to_show_is_refused() {
        let refused = |items, batch| Turns::new(items, batch, Seed::new(1)).unwrap_err().to_string();
        assert!(refused(0, 4).starts_with("items is 0, expected at least 1"));
        assert!(refused(4, 0).starts_with("batch is 0, expected at least 1"));
    }
}
