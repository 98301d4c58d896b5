//! A leak and the ways in which one triple gives another away.

use serde::Serialize;

use crate::split::Part;

/// How a shown triple gives a held-out one away, the plainest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The same subject, relation and object.
    Exact,
    /// Turned round, with the same symmetric relation.
    Symmetric,
    /// Turned round with an inverse relation, or as it is with an inverse of an inverse.
    Inverse,
    /// Other entities or relations, but the same texts once folded, perhaps with an inverse relation.
    SameText,
    /// Another relation over the same two texts.
    SamePair,
}

impl Kind {
    /// The word on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Symmetric => "symmetric",
            Kind::Inverse => "inverse",
            Kind::SameText => "same_text",
            Kind::SamePair => "same_pair",
        }
    }
}

/// A held-out row that rows of another part give away. Only the plainest of the kinds between it and that part is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leak {
    /// The held-out row.
    pub held: u32,
    /// Its part: valid or test.
    pub held_part: Part,
    /// The part that gives it away: train, or valid for a row of test.
    pub shown_part: Part,
    /// How.
    pub kind: Kind,
    /// A row of that part and kind.
    pub shown: u32,
    /// How many rows of that part give it away: those that say the same or, for [`Kind::SamePair`], those over the same texts.
    pub times: u32,
}
