//! How whole numbers are spread: exact quantiles, and counts in bins whose width doubles.

use serde::{Deserialize, Serialize};

/// A spread of numbers. With nothing measured, all is 0 and there is no bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many were measured.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: u64,
    /// Half of the numbers are at most this.
    pub median: u64,
    /// 90 % of the numbers are at most this.
    pub p90: u64,
    /// 99 % of the numbers are at most this.
    pub p99: u64,
    /// 99.9 % of the numbers are at most this.
    pub p999: u64,
    /// The largest.
    pub max: u64,
    /// Counts of 0, 1, 2 to 3, 4 to 7, ... up to the largest; bins in between may be empty.
    pub bins: Vec<Bin>,
}

/// Numbers of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// The smallest that belongs here.
    pub from: u64,
    /// The largest that belongs here.
    pub to: u64,
    /// How many there are.
    pub count: u64,
}

impl Distribution {
    /// The spread of `values`.
    #[must_use]
    pub fn of(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        let at = |tenth_of_percent: usize| {
            // Nearest rank: the smallest number that this share of the numbers does not exceed.
            let rank = (values.len() * tenth_of_percent).div_ceil(1000).max(1);
            values.get(rank - 1).copied().map_or(0, u64::from)
        };
        let sum: u64 = values.iter().map(|&value| u64::from(value)).sum();
        let count = values.len() as u64;
        Self {
            count,
            sum,
            mean: share(sum, count),
            min: values.first().copied().map_or(0, u64::from),
            median: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: values.last().copied().map_or(0, u64::from),
            bins: bins(&values),
        }
    }
}

/// `part` of `whole`; 0 where there is nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn bins(sorted: &[u32]) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for &value in sorted {
        let value = u64::from(value);
        while bins.last().is_none_or(|bin| bin.to < value) {
            let from = bins.last().map_or(0, |bin| bin.to + 1);
            bins.push(Bin { from, to: (2 * from).saturating_sub(1).max(from), count: 0 });
        }
        if let Some(bin) = bins.last_mut() {
            bin.count += 1;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numbers_that_occur() {
        let spread = Distribution::of((1..=1000).rev().collect());
        assert_eq!((spread.min, spread.median, spread.p90, spread.p99, spread.p999), (1, 500, 900, 990, 999));
        assert_eq!((spread.max, spread.count, spread.sum), (1000, 1000, 500_500));
        assert!((spread.mean - 500.5).abs() < 1e-12);
        let one = Distribution::of(vec![7]);
        assert_eq!((one.min, one.median, one.p999, one.max), (7, 7, 7, 7));
    }

    #[test]
    fn bins_double_and_hold_every_number() {
        let spread = Distribution::of(vec![0, 0, 1, 2, 3, 8, 15, 16]);
        let bins: Vec<_> = spread.bins.iter().map(|bin| (bin.from, bin.to, bin.count)).collect();
        assert_eq!(bins, [(0, 0, 2), (1, 1, 1), (2, 3, 2), (4, 7, 0), (8, 15, 2), (16, 31, 1)]);
        assert_eq!(Distribution::of(vec![u32::MAX]).bins.last().unwrap().to, u64::from(u32::MAX));
        assert!(Distribution::of(Vec::new()).bins.is_empty());
    }
}
