//! The concepts that have a name, and those of them that are in the graph.

use super::cui::Cui;
use super::name::{Found, Named, Names};
use super::rel::Used;
use crate::table::builder::DraftEntity;

/// The named concepts, and the entities of those that triples and other sources speak of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drafts<'a> {
    pub(super) names: &'a Names,
    pub(super) used: &'a Used,
}

impl Drafts<'_> {
    /// The concept by its name's number, and its entity if it has one.
    pub(super) fn find(&self, cui: Cui) -> Option<(Named, DraftEntity)> {
        match self.names.find(cui) {
            Found::Named(named) => Some((named, self.used.get(named)?)),
            _ => None,
        }
    }
}
