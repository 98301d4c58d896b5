//! Random numbers as a pure function of a key and a counter. Knows no tensor and keeps no state.

/// A key from which any number of independent draws follow; the same key and counter give the same number on every
/// machine, in any order and from any thread (SplitMix64 used as a counter-based generator).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// The root key of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Chance(mix(seed ^ 0x6a09_e667_f3bc_c909))
    }

    /// The key of one numbered branch, such as a step or a layer.
    #[must_use]
    pub fn branch(self, number: u64) -> Self {
        Chance(mix(self.0 ^ mix(number.wrapping_add(0xbb67_ae85_84ca_a73b))))
    }

    /// The key of one named branch, such as a parameter.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        name.bytes().fold(self.branch(name.len() as u64), |key, byte| key.branch(u64::from(byte)))
    }

    /// 64 random bits for `counter`.
    #[must_use]
    #[inline(always)]
    pub fn bits(self, counter: u64) -> u64 {
        mix(self.0.wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
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
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_have_the_right_moments_and_branches_differ() {
        let key = Chance::new(7).named("embeddings");
        let draws: Vec<f64> = (0..20_000).map(|i| key.normal(i)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "mean {mean}, variance {variance}");
        let branches: std::collections::BTreeSet<u64> =
            (0..100).map(|i| Chance::new(7).branch(i).bits(0)).collect();
        assert_eq!(branches.len(), 100);
        assert_ne!(Chance::new(1).bits(0), Chance::new(2).bits(0));
        assert_ne!(Chance::new(1).named("ab").bits(0), Chance::new(1).named("ba").bits(0));
    }
}
