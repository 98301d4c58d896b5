//! What may be done with an artifact: as little as with anything that it was made from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Under which licence an artifact is. Of two the greater one allows less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Licence {
    /// Nothing says that it is under any.
    None,
    /// A licence level, from 0 to 9, as UMLS's source restriction levels.
    Level(u8),
    /// It stays where it is.
    Restricted,
}

impl Licence {
    /// What allows both.
    pub(crate) fn with(self, other: Self) -> Self {
        self.max(other)
    }
}

impl fmt::Display for Licence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Level(level) => write!(f, "level {level}"),
            Self::Restricted => write!(f, "restricted"),
        }
    }
}
