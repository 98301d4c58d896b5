//! One row of a table of triples, and why it may not fit.

use std::io;

use super::names::NameFiles;

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

/// What is wrong with a row; the table adds the place.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) role: Role,
    pub(super) found: String,
    pub(super) expected: String,
}

impl Wrong {
    pub(super) fn new(role: Role, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { role, found: found.into(), expected: expected.into() }
    }
}

/// Why a row is not stated.
#[derive(Debug)]
pub(super) enum Refused {
    /// A field is not as expected.
    Field(Wrong),
    /// The rows read so far cannot be kept.
    Keep(io::Error),
}

/// Refuses an id that cannot be one, or that is not listed.
pub(super) fn check(id: &str, role: Role, names: &NameFiles) -> Result<(), Refused> {
    let refused = |expected: String| Err(Refused::Field(Wrong::new(role, id, expected)));
    if id.is_empty() {
        return refused("an id".to_owned());
    }
    if id.contains(['\n', '\r']) {
        return refused("an id without line break (a quote may be missing)".to_owned());
    }
    match names.lacks(id) {
        Some(list) => refused(format!("an id that is listed in {list}")),
        None => Ok(()),
    }
}

/// A weight.
pub(super) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|weight: &f64| weight.is_finite())
}
