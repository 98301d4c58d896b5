//! Keyed random numbers: pure functions of a key and an index, the same on any machine and from any thread, in any order.
//!
//! Both kinds of key mix with SplitMix64 (Steele, Lea and Flood 2014). They derive their keys differently, and what was drawn with one is on disk or
//! in trained weights: neither may change.

use crate::exact;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A key named by its purpose. Two purposes never share a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RngKey(u64);

impl RngKey {
    /// The root key of a run: the seed that the user wrote in the config.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The key of one purpose, such as `"negatives"`.
    #[must_use]
    pub fn named(self, purpose: &str) -> Self {
        Self(xxh3_64_with_seed(purpose.as_bytes(), self.0))
    }

    /// The key of one index within this one: an epoch, a triple, an attempt.
    #[must_use]
    pub fn at(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index)))
    }

    /// A number below `bound`, without bias beyond `bound / 2^64`. `bound` 0 gives 0.
    #[must_use]
    pub fn below(self, bound: u64) -> u64 {
        // The high half of the product is below `bound` and so fits.
        ((u128::from(mix(self.0)) * u128::from(bound)) >> 64) as u64
    }

    /// A permutation of `items` (Fisher and Yates), in place.
    pub fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.at(last as u64).below(last as u64 + 1);
            items.swap(last, usize::try_from(chosen).unwrap_or(last));
        }
    }
}

/// A counter-based generator: any number of independent draws follow from one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRng(u64);

impl CounterRng {
    /// The root key of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        CounterRng(finalize(seed ^ 0x6a09_e667_f3bc_c909))
    }

    /// The key of one numbered branch, such as a step or a layer.
    #[must_use]
    pub fn branch(self, number: u64) -> Self {
        CounterRng(finalize(self.0 ^ finalize(number.wrapping_add(0xbb67_ae85_84ca_a73b))))
    }

    /// The key of one named branch, such as a parameter.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        name.bytes().fold(self.branch(name.len() as u64), |key, byte| key.branch(u64::from(byte)))
    }

    /// The key itself, for code elsewhere that draws the same bits: those of `counter` are the last steps of SplitMix64 on `key + counter * gamma`.
    #[must_use]
    pub fn key(self) -> u64 {
        self.0
    }

    /// 64 random bits for `counter`.
    #[must_use]
    #[inline(always)]
    pub fn bits(self, counter: u64) -> u64 {
        finalize(self.0.wrapping_add(counter.wrapping_mul(GAMMA)))
    }

    /// Uniform in the open interval (0, 1).
    #[must_use]
    #[inline(always)]
    pub fn uniform(self, counter: u64) -> f64 {
        ((self.bits(counter) >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
    }

    /// Standard normal (Box-Muller).
    #[must_use]
    pub fn normal(self, counter: u64) -> f64 {
        let (u, v) =
            (self.uniform(counter.wrapping_mul(2)), self.uniform(counter.wrapping_mul(2).wrapping_add(1)));
        (-2.0 * exact::ln(u)).sqrt() * exact::cos(std::f64::consts::TAU * v)
    }
}

/// The next output of SplitMix64 whose state is `x`.
fn mix(x: u64) -> u64 {
    finalize(x.wrapping_add(GAMMA))
}

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64, a bijection in which every bit of the input reaches every bit of the output.
#[must_use]
#[inline(always)]
pub const fn finalize(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_indices_are_independent_and_stable() {
        let seed = RngKey::new(7);
        assert_eq!(seed.named("a").at(3), RngKey::new(7).named("a").at(3));
        assert_ne!(seed.named("a"), seed.named("b"));
        assert_ne!(seed.at(0), seed.at(1));
        assert_ne!(seed.at(1).at(2), seed.at(2).at(1));
    }

    #[test]
    fn draws_are_uniform_enough() {
        let mut counts = [0_u32; 10];
        let seed = RngKey::new(1).named("test");
        for i in 0..100_000 {
            counts[usize::try_from(seed.at(i).below(10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!(seed.below(0), 0);
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_moves_things() {
        let mut items: Vec<u32> = (0..1000).collect();
        RngKey::new(3).shuffle(&mut items);
        let stayed = items.iter().enumerate().filter(|(i, x)| *i == **x as usize).count();
        assert!(stayed < 10, "{stayed}");
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn normals_have_mean_0_and_variance_1_and_branches_differ() {
        let key = CounterRng::new(7).named("embeddings");
        let draws: Vec<f64> = (0..20_000).map(|i| key.normal(i)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "mean {mean}, variance {variance}");
        let branches: std::collections::BTreeSet<u64> =
            (0..100).map(|i| CounterRng::new(7).branch(i).bits(0)).collect();
        assert_eq!(branches.len(), 100);
        assert_ne!(CounterRng::new(1).bits(0), CounterRng::new(2).bits(0));
        assert_ne!(CounterRng::new(1).named("ab").bits(0), CounterRng::new(1).named("ba").bits(0));
    }
}
