//! The formulas: a pair's count and its words' shares in, a score out.

use base::exact;

use super::{Config, Measure};
use crate::count::{self, Counting, Order, Pair, Read, Table};

/// How much of all counts each word has.
#[derive(Debug)]
pub struct Marginals {
    /// All counts.
    pub total: f64,
    /// Of each word, as the left one of a pair.
    pub left: Vec<f64>,
    /// Of each word, as the right one; empty where that is the same.
    pub right: Vec<f64>,
}

impl Marginals {
    /// Of the words that `keep` names, of which others are as if they were not there. `table` is what pairs are scored.
    ///
    /// # Errors
    /// When the counts cannot be read.
    pub fn of(read: &Read, table: Table, keep: &[bool]) -> Result<Self, count::Error> {
        if table == Table::Pairs && !matches!(read.index.config.pairs, Counting::Distance(_)) {
            let left = read.words.iter().map(|word| word.units.unwrap_or(0) as f64).collect();
            return Ok(Self { total: read.index.units as f64, left, right: Vec::new() });
        }
        let symmetric = table == Table::Pairs && read.index.config.order() == Order::Symmetric;
        let (mut left, mut right) = (vec![0u128; read.words.len()], vec![0u128; read.words.len()]);
        read.pairs(table, |pair| {
            let (a, b) = (pair.left as usize, pair.right as usize);
            if keep[a] && keep[b] {
                left[a] += u128::from(pair.count);
                right[b] += u128::from(pair.count);
            }
            Ok::<(), count::Error>(())
        })?;
        if symmetric {
            // Both orders of each pair, as a square of counts would have them.
            left.iter_mut().zip(&mut right).for_each(|(left, right)| *left += std::mem::take(right));
            right.clear();
        }
        let total = left.iter().sum::<u128>() as f64;
        let floats = |counts: Vec<u128>| counts.into_iter().map(|count| count as f64).collect();
        Ok(Self { total, left: floats(left), right: floats(right) })
    }

    fn right(&self, word: u32) -> f64 {
        *if self.right.is_empty() { &self.left } else { &self.right }.get(word as usize).unwrap_or(&0.0)
    }

    /// PMI of a pair in nats.
    #[must_use]
    pub fn pmi(&self, pair: Pair) -> f64 {
        let count = pair.count as f64;
        exact::ln(count * self.total / (self.left[pair.left as usize] * self.right(pair.right)))
    }

    /// NPMI of a pair, in [-1, 1].
    #[must_use]
    pub fn npmi(&self, pair: Pair) -> f64 {
        npmi(self.pmi(pair), pair.count as f64 / self.total)
    }
}

/// PMI / -ln p(x, y), in [-1, 1]; 0 for words that are together always and everywhere, of which nothing can be learned.
#[must_use]
pub fn npmi(pmi: f64, share: f64) -> f64 {
    if share >= 1.0 { 0.0 } else { (pmi / -exact::ln(share)).clamp(-1.0, 1.0) }
}

/// Scores pairs as a config asks.
#[derive(Debug)]
pub(super) struct Scorer {
    marginals: Marginals,
    measure: Measure,
    shift: f64,
    /// Per word, its share as a context: its count to the power of `smoothing` in the sum of those; empty for none.
    contexts: Vec<f64>,
}

impl Scorer {
    pub(super) fn new(config: &Config, marginals: Marginals, keep: &[bool]) -> Self {
        let mut contexts = Vec::new();
        if config.smoothing < 1.0 {
            let plain = if marginals.right.is_empty() { &marginals.left } else { &marginals.right };
            let powers = plain
                .iter()
                .zip(keep)
                .map(|(count, keep)| if *keep { exact::pow(*count, config.smoothing) } else { 0.0 });
            contexts = powers.collect();
            let sum: f64 = contexts.iter().sum();
            contexts.iter_mut().for_each(|share| *share /= sum);
        }
        Self { marginals, measure: config.measure, shift: exact::ln(config.shift), contexts }
    }

    /// Whether a pair has another score when its words change places.
    pub(super) fn is_turned(&self) -> bool {
        !self.contexts.is_empty()
    }

    /// The score of a pair whose right word is the context.
    pub(super) fn score(&self, pair: Pair) -> f64 {
        let pmi = match self.contexts.get(pair.right as usize) {
            None => self.marginals.pmi(pair),
            Some(context) => {
                exact::ln(pair.count as f64 / (self.marginals.left[pair.left as usize] * context))
            }
        };
        match self.measure {
            Measure::Pmi | Measure::Ppmi => pmi - self.shift,
            Measure::Npmi => npmi(pmi, pair.count as f64 / self.marginals.total),
        }
    }

    pub(super) fn npmi(&self, pair: Pair) -> f64 {
        self.marginals.npmi(pair)
    }
}
