//! Which pairs are among the best of a word.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A pair's place among those of a word: the higher score, then the more frequent other word.
#[derive(Debug, Clone, Copy)]
struct Place {
    score: f64,
    other: u32,
}

impl Ord for Place {
    fn cmp(&self, that: &Self) -> Ordering {
        self.score.total_cmp(&that.score).then(that.other.cmp(&self.other))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, that: &Self) -> Option<Ordering> {
        Some(self.cmp(that))
    }
}

impl PartialEq for Place {
    fn eq(&self, that: &Self) -> bool {
        self.cmp(that) == Ordering::Equal
    }
}

impl Eq for Place {}

/// The best pairs of each word.
#[derive(Debug)]
pub(super) struct Best {
    most: usize,
    heaps: Vec<BinaryHeap<Reverse<Place>>>,
}

impl Best {
    /// At most `most` pairs of each of `words` words; nothing for all.
    pub(super) fn new(words: usize, most: Option<usize>) -> Self {
        Self {
            most: most.unwrap_or(0),
            heaps: vec![BinaryHeap::new(); if most.is_some() { words } else { 0 }],
        }
    }

    /// Looks at a pair of a word.
    pub(super) fn offer(&mut self, word: u32, other: u32, score: f64) {
        let Some(heap) = self.heaps.get_mut(word as usize) else { return };
        heap.push(Reverse(Place { score, other }));
        if heap.len() > self.most {
            heap.pop();
        }
    }

    /// Whether a pair is among the best of the word.
    pub(super) fn has(&self, word: u32, other: u32, score: f64) -> bool {
        let last = self.heaps.get(word as usize).and_then(BinaryHeap::peek);
        self.heaps.is_empty() || last.is_some_and(|Reverse(last)| Place { score, other } >= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_scores_stay_and_of_equal_ones_the_more_frequent_word() {
        let mut best = Best::new(2, Some(2));
        let pairs = [(3, 0.5), (4, 0.9), (5, 0.5), (1, 0.1)];
        pairs.iter().for_each(|&(other, score)| best.offer(0, other, score));
        let kept: Vec<u32> = pairs.iter().filter(|&&(o, s)| best.has(0, o, s)).map(|(o, _)| *o).collect();
        assert_eq!(kept, [3, 4]);
        assert!(!best.has(1, 0, 9.0), "nothing was offered");
        assert!(Best::new(2, None).has(1, 0, 0.0));
    }
}
