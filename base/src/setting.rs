//! The one form in which configs refuse a setting.

use std::borrow::Cow;
use std::fmt::Display;

/// A setting that is out of its range, or at odds with another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, expected {expected}")]
pub struct InvalidSetting {
    /// The setting.
    pub setting: Cow<'static, str>,
    /// Its value.
    pub found: String,
    /// What it may be.
    pub expected: String,
}

impl InvalidSetting {
    /// Refuses the value `found`.
    #[must_use]
    pub fn new(
        setting: impl Into<Cow<'static, str>>,
        found: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        Self { setting: setting.into(), found: found.to_string(), expected: expected.into() }
    }

    /// The same of a table that is the setting `table` of another.
    #[must_use]
    pub fn of(self, table: &str) -> Self {
        Self { setting: format!("{table}.{}", self.setting).into(), ..self }
    }
}

/// A number in the fewest digits that mean it, for messages.
#[must_use]
pub fn shown(number: f64) -> String {
    let digits = number.abs();
    if digits != 0.0 && !(1e-4..1e9).contains(&digits) { format!("{number:e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        assert_eq!([0.0, -0.25, 5e-324].map(shown), ["0", "-0.25", "5e-324"]);
    }
}
