//! The pairs of one segment.

use super::accumulate::Accumulator;
use super::{Counting, Error};

/// The rank of a word that is left out; it keeps its place.
pub(super) const OUT: u32 = u32::MAX;

/// Finds the pairs of segments.
#[derive(Debug)]
pub(super) struct Scanner {
    counting: Counting,
    /// The different words of a segment or window.
    distinct: Vec<u32>,
    /// Per rank: how many units have the word.
    pub(super) units_of: Vec<u64>,
    /// Units looked at.
    pub(super) units: u64,
}

impl Scanner {
    pub(super) fn new(counting: Counting, words: usize) -> Self {
        let counted = if matches!(counting, Counting::Distance(_)) { 0 } else { words };
        Self { counting, distinct: Vec::new(), units_of: vec![0; counted], units: 0 }
    }

    /// Counts the pairs of a segment of ranks.
    pub(super) fn segment(&mut self, ranks: &[u32], pairs: &mut Accumulator<'_>) -> Result<(), Error> {
        match self.counting {
            _ if ranks.is_empty() => Ok(()),
            Counting::Presence => self.unit(ranks, pairs),
            Counting::Window(width) if ranks.len() <= width => self.unit(ranks, pairs),
            Counting::Window(width) => ranks.windows(width).try_for_each(|window| self.unit(window, pairs)),
            Counting::Distance(distance) => {
                self.units += 1;
                places(ranks, distance.window, pairs)
            }
        }
    }

    fn unit(&mut self, ranks: &[u32], pairs: &mut Accumulator<'_>) -> Result<(), Error> {
        self.units += 1;
        self.distinct.clear();
        self.distinct.extend(ranks.iter().filter(|&&rank| rank != OUT));
        self.distinct.sort_unstable();
        self.distinct.dedup();
        for (at, &left) in self.distinct.iter().enumerate() {
            self.units_of[left as usize] += 1;
            for &right in &self.distinct[at + 1..] {
                pairs.add(left, right, 0)?;
            }
        }
        Ok(())
    }
}

/// Counts every two places not farther apart than `window`.
pub(super) fn places(ranks: &[u32], window: usize, pairs: &mut Accumulator<'_>) -> Result<(), Error> {
    for (at, &right) in ranks.iter().enumerate().filter(|(_, rank)| **rank != OUT) {
        for (distance, &left) in (1..).zip(ranks[..at].iter().rev().take(window)) {
            if left != OUT {
                pairs.add(left, right, distance)?;
            }
        }
    }
    Ok(())
}
