//! The ranges of settings that several trainings have. What lies outside is no setting but a slip: weights and gradients are f32, in which it
//! would be 0 or infinite.

use base::setting::{InvalidSetting, shown};

/// From one number to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    least: f64,
    most: f64,
    /// Whether 0 belongs to it, wherever it begins.
    or_zero: bool,
    /// In words.
    pub told: &'static str,
}

/// Shares of which not all may go: decay rates of moments.
pub const BELOW_ONE: Range =
    Range { least: 0.0, most: 1.0 - f64::EPSILON / 2.0, or_zero: false, told: "at least 0 and below 1" };
/// Dropout. With more, not one number of a small layer may be left, and no gradient reaches what lies below it.
pub const DROPOUT: Range = Range { least: 0.0, most: 0.95, or_zero: false, told: "from 0 to 0.95" };
/// The share of the steps that is warm-up.
pub const WARM_UP: Range = Range { told: "from 0 to below 1", ..BELOW_ONE };
/// Shares.
pub const SHARE: Range = Range { least: 0.0, most: 1.0, or_zero: false, told: "from 0 to 1" };
/// Learning rates. High ones are tried on purpose, to see a training fail.
pub const RATE: Range = Range { least: 1e-12, most: 1e3, or_zero: false, told: "from 1e-12 to 1000" };
/// What is added to the root of a second moment.
pub const EPSILON: Range = Range { least: 1e-30, most: 1.0, or_zero: false, told: "from 1e-30 to 1" };
/// The norm that gradients are clipped to; a high one clips nothing.
pub const CLIP: Range = Range { least: 1e-12, most: f64::MAX, or_zero: false, told: "at least 1e-12" };
/// Weights of losses that may be left out: 0, or one that f32 can tell from it.
pub const WEIGHT: Range = Range { least: 1e-12, most: 1e6, or_zero: true, told: "0, or from 1e-12 to 1e6" };
/// Weights of losses that are there.
pub const POSITIVE_WEIGHT: Range =
    Range { least: 1e-12, most: 1e6, or_zero: false, told: "from 1e-12 to 1e6" };

/// Shares that are held out, of which something must be left to learn from.
pub const HELD_OUT: Range = Range { least: 0.0, most: 0.9, or_zero: false, told: "from 0 to 0.9" };

/// Cosines.
pub const COSINE: Range = Range { least: -1.0, most: 1.0, or_zero: false, told: "from -1 to 1" };
/// Distances of vectors of length 1.
pub const DISTANCE: Range = Range { least: 0.0, most: 2.0, or_zero: false, told: "from 0 to 2" };
/// Temperatures of schedules; 1 is in proportion to size.
pub const TEMPERATURE: Range =
    Range { least: 1e-3, most: 1e6, or_zero: false, told: "above 0 (from 0.001 to 1e6)" };

impl Range {
    /// Whether a number lies in it; one that is none lies nowhere.
    #[must_use]
    pub fn holds(&self, number: f64) -> bool {
        (self.least..=self.most).contains(&number) || (self.or_zero && number == 0.0)
    }
}

/// Refuses the first of these settings that is outside its range.
///
/// # Errors
/// Names setting, value and range.
pub fn check(settings: &[(&'static str, f64, Range)]) -> Result<(), InvalidSetting> {
    match settings.iter().find(|(_, number, range)| !range.holds(*number)) {
        Some((name, number, range)) => Err(InvalidSetting::new(*name, shown(*number), range.told)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_belong_to_a_range_and_what_is_no_number_to_none() {
        assert!(RATE.holds(1e3) && RATE.holds(1e-12) && !RATE.holds(0.0) && !RATE.holds(1e308));
        assert!(BELOW_ONE.holds(0.0) && BELOW_ONE.holds(0.999_999_999_999) && !BELOW_ONE.holds(1.0));
        assert!(WEIGHT.holds(0.0) && WEIGHT.holds(-0.0) && !WEIGHT.holds(5e-324));
        assert!(!WEIGHT.holds(f64::NAN) && !WEIGHT.holds(f64::INFINITY) && !WEIGHT.holds(-1.0));
        let settings = [("a", 0.5, SHARE), ("b", 5e-324, EPSILON)];
        assert_eq!(check(&settings).unwrap_err().to_string(), "b is 5e-324, expected from 1e-30 to 1");
        assert_eq!(check(&settings[..1]), Ok(()));
    }
}
