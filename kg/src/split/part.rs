//! The parts of a split.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a triple is for. The order is from shown to held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Learnt from.
    Train,
    /// For choosing among models.
    Valid,
    /// For the figures that are reported.
    Test,
    /// In no part: showing it would give a held-out triple away.
    Aside,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Part; 4] = [Part::Train, Part::Valid, Part::Test, Part::Aside];

    /// The word on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Valid => "valid",
            Part::Test => "test",
            Part::Aside => "aside",
        }
    }

    /// The part of that name on disk.
    #[must_use]
    pub fn named(name: &str) -> Option<Part> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    /// Whether a model is judged by it: valid and test.
    #[must_use]
    pub fn is_held_out(self) -> bool {
        matches!(self, Part::Valid | Part::Test)
    }

    /// Whether triples of this part are held out from whoever is shown those of `other`: valid and test from train, test from valid.
    #[must_use]
    pub fn is_held_out_from(self, other: Part) -> bool {
        self.is_held_out() && other < self
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for part in Part::ALL {
            assert_eq!(Part::named(part.name()), Some(part));
        }
        assert_eq!(Part::named("dev"), None);
    }
}
