//! The world's random numbers: a pure function of (seed, purpose, index).

use base::rng::{GAMMA, finalize};

/// A named stream of draws: the same (seed, purpose) always gives the same draws, whoever asks and in whatever order.
#[derive(Clone, Copy)]
pub(super) struct WorldRng(u64);

impl WorldRng {
    /// The stream called `purpose` of the world with `seed`.
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("engraft world chance 1");
        hasher.update(&seed.to_le_bytes()).update(purpose.as_bytes());
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        Self(u64::from_le_bytes(first))
    }

    /// The draws that belong to item `index`.
    pub(super) fn at(self, index: usize) -> Draw {
        Draw(finalize(self.0 ^ finalize(index as u64 + 1)))
    }

    /// The draws that belong to the ordered pair (`one`, `other`).
    pub(super) fn at_pair(self, one: usize, other: usize) -> Draw {
        Self(finalize(self.0 ^ finalize(one as u64 + 1))).at(other)
    }
}

/// A short sequence of draws (SplitMix64: a counter and a mixing function).
pub(super) struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        finalize(self.0)
    }

    /// Uniform in `0..bound`; 0 for an empty range.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of the product is below `bound`, a usize"
    )]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Uniform in `low..high`.
    pub(super) fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low))
    }

    /// True with probability `percent` / 100.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, each as likely as the others; `choices` is not empty.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_pure_and_differ_by_seed_purpose_and_index() {
        let first = |seed, purpose, index| WorldRng::new(seed, purpose).at(index).next();
        assert_eq!(first(1, "a", 7), first(1, "a", 7));
        let mut seen = vec![first(1, "a", 7), first(2, "a", 7), first(1, "b", 7), first(1, "a", 8)];
        seen.push(WorldRng::new(1, "a").at_pair(7, 8).next());
        seen.push(WorldRng::new(1, "a").at_pair(8, 7).next());
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn below_stays_in_range_and_is_roughly_uniform() {
        let mut counts = [0u32; 7];
        let mut draw = WorldRng::new(3, "dice").at(0);
        for _ in 0..7000 {
            counts[draw.below(7)] += 1;
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
        assert_eq!(draw.below(0), 0);
    }
}
