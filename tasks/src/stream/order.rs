//! The order of triples in one epoch: row groups shuffled, then triples within windows of them. Knows no file and no task.

use crate::seed::Seed;

/// A triple by row group (counted over all files) and place within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Row group.
    pub group: u32,
    /// Triple within the group.
    pub triple: u32,
}

/// A pure function from (sizes of row groups, seed, epoch) to an order in which every triple stands exactly once.
///
/// Row groups are shuffled over the whole epoch; `window` of them at a time are then held in memory and their triples
/// shuffled together. With a window as large as the graph the shuffle is perfect.
#[derive(Debug, Clone)]
pub struct Order {
    groups: Vec<u32>,
    window: usize,
    seed: Seed,
}

/// The triples of one window in their order, and where the window starts in the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Position of the first triple in the epoch.
    pub start: u64,
    /// Row groups that the triples come from, in the order in which they were drawn.
    pub groups: Vec<u32>,
    /// The triples.
    pub triples: Vec<Place>,
}

impl Order {
    /// The order over row groups of these sizes, `window` groups (at least one) shuffled together.
    #[must_use]
    pub fn new(groups: Vec<u32>, window: usize, seed: Seed) -> Self {
        Self { groups, window: window.max(1), seed }
    }

    /// Triples in an epoch.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.groups.iter().map(|&triples| u64::from(triples)).sum()
    }

    /// The window of `epoch` that holds position `at`; `None` past the end.
    #[must_use]
    pub fn window(&self, epoch: u64, at: u64) -> Option<Window> {
        let seed = self.seed.named("epoch").at(epoch);
        let mut order: Vec<u32> = (0..).take(self.groups.len()).collect();
        seed.named("groups").shuffle(&mut order);
        let mut start = 0;
        for (number, groups) in order.chunks(self.window).enumerate() {
            let count: u64 = groups.iter().map(|&g| u64::from(self.groups[g as usize])).sum();
            if at < start + count {
                let places = |&group: &u32| {
                    (0..self.groups[group as usize]).map(move |triple| Place { group, triple })
                };
                let mut triples: Vec<Place> = groups.iter().flat_map(places).collect();
                seed.named("triples").at(number as u64).shuffle(&mut triples);
                return Some(Window { start, groups: groups.to_vec(), triples });
            }
            start += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(order: &Order, epoch: u64) -> Vec<Place> {
        let mut triples = Vec::new();
        while let Some(window) = order.window(epoch, triples.len() as u64) {
            assert_eq!(window.start, triples.len() as u64);
            triples.extend(window.triples);
        }
        triples
    }

    #[test]
    fn every_triple_once_per_epoch_and_another_order_each_time() {
        let order = Order::new(vec![5, 0, 7, 3, 9], 2, Seed::new(4));
        let (first, second) = (epoch(&order, 0), epoch(&order, 1));
        assert_eq!(first.len(), 24);
        assert_ne!(first, second);
        assert_ne!(first, epoch(&Order::new(vec![5, 0, 7, 3, 9], 2, Seed::new(5)), 0));
        let (mut a, mut b) = (first.clone(), second);
        a.sort();
        b.sort();
        assert_eq!(a, b);
        a.dedup();
        assert_eq!(a.len(), 24);
        assert_eq!(first, epoch(&order, 0), "pure function");
    }

    #[test]
    fn a_position_within_a_window_gives_that_window() {
        let order = Order::new(vec![4; 6], 3, Seed::new(1));
        let window = order.window(2, 13).unwrap();
        assert_eq!((window.start, window.triples.len(), window.groups.len()), (12, 12, 3));
        assert_eq!(order.window(2, 24), None);
    }
}
