//! Chance as a pure function: a number for every (seed, purpose, index), the same on any machine and thread. Knows no use of it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A named source of chance. Two sources with different names never share a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The root of all chance in a run: the number the user wrote in the config.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The source for one purpose, such as `"negatives"`.
    #[must_use]
    pub fn named(self, purpose: &str) -> Self {
        Self(xxh3_64_with_seed(purpose.as_bytes(), self.0))
    }

    /// The source for one index within this one: an epoch, a triple, an attempt.
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

/// The finaliser of SplitMix64: a bijection whose output bits all depend on all input bits.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_indices_are_independent_and_stable() {
        let seed = Seed::new(7);
        assert_eq!(seed.named("a").at(3), Seed::new(7).named("a").at(3));
        assert_ne!(seed.named("a"), seed.named("b"));
        assert_ne!(seed.at(0), seed.at(1));
        assert_ne!(seed.at(1).at(2), seed.at(2).at(1));
    }

    #[test]
    fn draws_are_uniform_enough() {
        let mut counts = [0_u32; 10];
        let seed = Seed::new(1).named("test");
        for i in 0..100_000 {
            counts[usize::try_from(seed.at(i).below(10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!(seed.below(0), 0);
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_moves_things() {
        let mut items: Vec<u32> = (0..1000).collect();
        Seed::new(3).shuffle(&mut items);
        let stayed = items.iter().enumerate().filter(|(i, x)| *i == **x as usize).count();
        assert!(stayed < 10, "{stayed}");
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}
