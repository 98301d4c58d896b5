//! The one form in which configs refuse a setting.

use std::fmt::Display;

/// A setting that is out of its range, or at odds with another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, expected {expected}")]
pub struct InvalidSetting {
    /// The setting.
    pub setting: &'static str,
    /// Its value.
    pub found: String,
    /// What it may be.
    pub expected: String,
}

impl InvalidSetting {
    /// Refuses the value `found`.
    #[must_use]
    pub fn new(setting: &'static str, found: impl Display, expected: impl Into<String>) -> Self {
        Self { setting, found: found.to_string(), expected: expected.into() }
    }
}
