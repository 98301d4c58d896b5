//! The order of items in one epoch: row groups shuffled, then items within windows of them.

use base::rng::RngKey;

/// An item by row group (counted over all files) and place within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Row group.
    pub group: u32,
    /// Item within the group.
    pub item: u32,
}

/// How items are mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shuffle {
    /// The order of the files, in every epoch.
    None,
    /// How many row groups, from a shuffle of all of them, are shuffled together; with as many as there are, the shuffle is perfect.
    Window(usize),
}

impl Shuffle {
    /// Row groups that are held in memory together, at least 1.
    #[must_use]
    pub fn groups(self) -> usize {
        match self {
            Shuffle::None => 1,
            Shuffle::Window(groups) => groups.max(1),
        }
    }
}

/// A pure function from (sizes of row groups, seed, epoch) to an order in which every item stands exactly once.
#[derive(Debug, Clone)]
pub struct Order {
    groups: Vec<u32>,
    shuffle: Shuffle,
    seed: RngKey,
}

/// The items of one window in their order, and where the window starts in the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Position of the first item in the epoch.
    pub start: u64,
    /// Row groups that the items come from, in the order in which they were drawn.
    pub groups: Vec<u32>,
    /// The items.
    pub items: Vec<Place>,
}

impl Order {
    /// The order over row groups of these sizes.
    #[must_use]
    pub fn new(groups: Vec<u32>, shuffle: Shuffle, seed: RngKey) -> Self {
        Self { groups, shuffle, seed }
    }

    /// Items in an epoch.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.groups.iter().map(|&items| u64::from(items)).sum()
    }

    /// Items before row group `group` in the files.
    #[must_use]
    pub fn before(&self, group: u32) -> u64 {
        self.groups.iter().take(group as usize).map(|&items| u64::from(items)).sum()
    }

    /// Items of row group `group`.
    #[must_use]
    pub fn in_group(&self, group: u32) -> u64 {
        self.groups.get(group as usize).copied().map_or(0, u64::from)
    }

    /// The window of `epoch` that holds position `at`; `None` past the end.
    #[must_use]
    pub fn window(&self, epoch: u64, at: u64) -> Option<Window> {
        let seed = self.seed.named("epoch").at(epoch);
        let mut order: Vec<u32> = (0..).take(self.groups.len()).collect();
        if self.shuffle != Shuffle::None {
            seed.named("groups").shuffle(&mut order);
        }
        let mut start = 0;
        for (number, groups) in order.chunks(self.shuffle.groups()).enumerate() {
            let count: u64 = groups.iter().map(|&g| u64::from(self.groups[g as usize])).sum();
            if at < start + count {
                let places =
                    |&group: &u32| (0..self.groups[group as usize]).map(move |item| Place { group, item });
                let mut items: Vec<Place> = groups.iter().flat_map(places).collect();
                if self.shuffle != Shuffle::None {
                    seed.named("triples").at(number as u64).shuffle(&mut items);
                }
                return Some(Window { start, groups: groups.to_vec(), items });
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
        let mut items = Vec::new();
        while let Some(window) = order.window(epoch, items.len() as u64) {
            assert_eq!(window.start, items.len() as u64);
            items.extend(window.items);
        }
        items
    }

    #[test]
    fn every_item_once_per_epoch_and_another_order_each_time() {
        let order = Order::new(vec![5, 0, 7, 3, 9], Shuffle::Window(2), RngKey::new(4));
        let (first, second) = (epoch(&order, 0), epoch(&order, 1));
        assert_eq!(first.len(), 24);
        assert_ne!(first, second);
        assert_ne!(first, epoch(&Order::new(vec![5, 0, 7, 3, 9], Shuffle::Window(2), RngKey::new(5)), 0));
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
        let order = Order::new(vec![4; 6], Shuffle::Window(3), RngKey::new(1));
        let window = order.window(2, 13).unwrap();
        assert_eq!((window.start, window.items.len(), window.groups.len()), (12, 12, 3));
        assert_eq!(order.window(2, 24), None);
    }

    #[test]
    fn without_shuffling_the_files_order_comes_back_in_every_epoch() {
        let order = Order::new(vec![2, 3], Shuffle::None, RngKey::new(1));
        let places = epoch(&order, 0);
        assert!(places.is_sorted() && places.len() == 5);
        assert_eq!(places, epoch(&order, 7));
        assert_eq!((order.before(0), order.before(1)), (0, 2));
    }
}
