//! One row of a table of triples, and why it may not fit.

use std::io;

use super::names::Names;
use super::start;

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Subject,
    Relation,
    Object,
    Weight,
    Active,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Subject => "subject",
            Role::Relation => "relation",
            Role::Object => "object",
            Role::Weight => "weight",
            Role::Active => "active",
        }
    }
}

/// One row of a table.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) subject: &'a str,
    pub(super) relation: &'a str,
    pub(super) object: &'a str,
    pub(super) weight: Option<f64>,
}

/// Why a row is not stated; the table adds the place.
#[derive(Debug)]
pub(super) enum Refused {
    /// A field is not as expected.
    Field { role: Role, found: String, expected: String },
    /// The rows read so far cannot be kept.
    Keep(io::Error),
}

/// Refuses an id that cannot be one, or that is not listed.
pub(super) fn check(id: &str, role: Role, names: &Names) -> Result<(), Refused> {
    if id.is_empty() {
        return Err(refused(id, role, "an id".to_owned()));
    }
    if id.contains(['\n', '\r']) {
        return Err(refused(id, role, "an id without line break (a quote may be missing)".to_owned()));
    }
    match names.lacks(id) {
        Some(list) => Err(refused(id, role, format!("an id that is listed in {list}"))),
        None => Ok(()),
    }
}

fn refused(id: &str, role: Role, expected: String) -> Refused {
    Refused::Field { role, found: start(id), expected }
}

/// A weight.
pub(super) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|weight: &f64| weight.is_finite())
}
