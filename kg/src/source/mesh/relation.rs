//! The relations that MeSH records state, by key and words.

use std::collections::BTreeSet;

/// What a record says of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    Isa,
    Action,
    Related,
    Mapped,
}

impl Relation {
    pub(super) const ALL: [Self; 4] = [Self::Isa, Self::Action, Self::Related, Self::Mapped];

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Isa => "isa",
            Self::Action => "has_pharmacologic_action",
            Self::Related => "see_related",
            Self::Mapped => "mapped_to",
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Isa => "is a",
            Self::Action => "has pharmacologic action",
            Self::Related => "see related",
            Self::Mapped => "mapped to",
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// The first of `asked` that is no key of MeSH.
pub(super) fn unknown(asked: &BTreeSet<String>) -> Option<&String> {
    asked.iter().find(|key| Relation::ALL.iter().all(|relation| relation.key() != key.as_str()))
}
