//! Numbers and names as the page writes them.

pub(super) use crate::number::{fixed, signed};

/// A name of the machine, formatted for people.
pub(super) fn words(name: &str) -> String {
    name.replace('_', " ")
}
