//! From the hash of a group to its part, in whole numbers.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::part::Part;
use crate::Refused;

/// Ratios are counted in billionths.
const WHOLE: u64 = 1_000_000_000;

/// Shares of train, valid and test; they sum to exactly 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratios {
    train: u64,
    valid: u64,
}

impl Ratios {
    /// The shares of the groups for train, valid and test.
    ///
    /// # Errors
    /// When one is no share, has more than nine decimals, or the three do not sum to 1.
    pub fn new(train: f64, valid: f64, test: f64) -> Result<Self, Refused> {
        let [train, valid, test] =
            [billionths(Part::Train, train)?, billionths(Part::Valid, valid)?, billionths(Part::Test, test)?];
        match train + valid + test {
            WHOLE => Ok(Self { train, valid }),
            sum => Err(Refused::new(format!(
                "train, valid and test sum to {}, expected 1; for example 0.8, 0.1 and 0.1",
                sum as f64 / WHOLE as f64
            ))),
        }
    }

    /// The part of a group with this hash: the first `train` of all numbers are for train, and so on.
    #[must_use]
    pub fn part(self, hash: u64) -> Part {
        let ends = |billionths: u64| (u128::from(billionths) << 64) / u128::from(WHOLE);
        match u128::from(hash) {
            hash if hash < ends(self.train) => Part::Train,
            hash if hash < ends(self.train + self.valid) => Part::Valid,
            _ => Part::Test,
        }
    }
}

/// A number for (name, seed), evenly over all 64 bits.
pub(super) fn hash(name: u128, seed: u64) -> u64 {
    xxh3_64_with_seed(&name.to_le_bytes(), seed)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 1,000,000,000, checked above it"
)]
fn billionths(part: Part, share: f64) -> Result<u64, Refused> {
    let exact = share * WHOLE as f64;
    let whole = exact.round();
    if !(0.0..=1.0).contains(&share) || (exact - whole).abs() > 1e-4 {
        let expected = "a share from 0 to 1 with at most nine decimals, for example 0.1";
        return Err(Refused::new(format!("{part} = {share}: expected {expected}")));
    }
    Ok(whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_exact() {
        let ratios = Ratios::new(0.7, 0.2, 0.1).unwrap();
        let end = u64::try_from((700_000_000_u128 << 64) / 1_000_000_000).unwrap();
        assert_eq!(
            (ratios.part(0), ratios.part(end - 1), ratios.part(end)),
            (Part::Train, Part::Train, Part::Valid)
        );
        assert_eq!(ratios.part(u64::MAX), Part::Test);
        let all = Ratios::new(1.0, 0.0, 0.0).unwrap();
        assert_eq!((all.part(0), all.part(u64::MAX)), (Part::Train, Part::Train));
        assert_eq!(Ratios::new(0.0, 0.0, 1.0).unwrap().part(0), Part::Test);
    }

    #[test]
    fn nonsense_is_refused_with_what_is_wrong() {
        let refused = |train, valid, test| Ratios::new(train, valid, test).unwrap_err().to_string();
        assert!(refused(0.8, 0.1, 0.2).contains("sum to 1.1, expected 1;"));
        assert!(refused(0.8, -0.1, 0.3).contains("valid = -0.1"));
        assert!(refused(f64::NAN, 0.5, 0.5).contains("train = NaN"));
        assert!(refused(1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0).contains("nine decimals"));
    }

    #[test]
    fn another_seed_is_another_split() {
        let half = Ratios::new(0.5, 0.0, 0.5).unwrap();
        let parts = |seed| (0..64).map(|name| half.part(hash(name, seed))).collect::<Vec<_>>();
        assert_eq!(parts(1), parts(1));
        assert_ne!(parts(1), parts(2));
    }
}
