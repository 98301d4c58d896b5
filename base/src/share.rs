//! A share of a whole, from 0 to 1: how much of something a config allows.

use serde::{Deserialize, Serialize};

use crate::setting::InvalidSetting;

/// A share, from 0 to 1; 0 where none is given.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

// No share is NaN.
impl Eq for Share {}

impl TryFrom<f64> for Share {
    type Error = InvalidSetting;

    fn try_from(share: f64) -> Result<Self, InvalidSetting> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(InvalidSetting::new("the share", share, "a number from 0 to 1"))
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl Share {
    /// Whether it allows nothing.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self.0 == 0.0
    }

    /// Whether it allows `part` of `whole`.
    #[must_use]
    pub fn allows(self, part: u64, whole: u64) -> bool {
        part == 0 || quotient(part, whole) <= self.0
    }

    /// The least share in so many digits that allows `part` of `whole`: what a message advises must be accepted.
    #[must_use]
    pub fn least(part: u64, whole: u64, digits: i32) -> f64 {
        let unit = 10_f64.powi(digits);
        (quotient(part, whole) * unit).ceil() / unit
    }
}

fn quotient(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_02_the_share_that_is_advised_is_accepted() {
        for whole in 1..=1000 {
            for part in 1..=whole {
                for digits in [3, 4] {
                    let advised = Share::try_from(Share::least(part, whole, digits)).unwrap();
                    assert!(advised.allows(part, whole), "{part} of {whole}: {advised:?}");
                }
            }
        }
    }

    #[test]
    fn a_share_allows_up_to_itself() {
        let tenth = Share::try_from(0.1).unwrap();
        assert!(tenth.allows(10, 100) && !tenth.allows(11, 100));
        assert!(Share::default().allows(0, 0) && !Share::default().allows(1, 1_000_000));
        assert!(Share::try_from(1.0).unwrap().allows(3, 3));
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Share::try_from(wrong).is_err(), "{wrong}");
        }
    }
}
