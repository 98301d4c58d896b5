//! The dictionary of a triple table: what its entities are called.

use std::path::Path;

use base::read::ReadError;
use kg::table::row::TermKind;
use kg::table::{EntityId, Graph, read};

use super::dictionary::{Dictionary, Entry, Error};
use super::filters::Filters;

/// Why a triple table gives no dictionary.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// Its terms cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Nothing passes the filters, or there are too many terms.
    #[error(transparent)]
    Dictionary(#[from] Error),
}

/// Hands on the names of a graph's entities, and the terms of the folder `triples`, which it was read from, that are no definitions.
///
/// # Errors
/// When the terms cannot be read.
pub fn each_name(
    graph: &Graph,
    triples: &Path,
    mut each: impl FnMut(&str, EntityId),
) -> Result<(), ReadError> {
    graph.entities().iter().zip(0..).for_each(|(entity, id)| each(&entity.text, EntityId(id)));
    if triples.join("terms.parquet").exists() {
        read::terms(triples, |term| {
            if term.kind != TermKind::Definition {
                each(&term.text, term.entity);
            }
            Ok(())
        })?;
    }
    Ok(())
}

impl Dictionary {
    /// The dictionary of the names, and of the terms that are no definitions, of `graph`, which was read from the folder `triples`.
    ///
    /// # Errors
    /// When the terms cannot be read, or [`Dictionary::build`] refuses.
    pub fn of_graph(graph: &Graph, triples: &Path, filters: &Filters) -> Result<Self, GraphError> {
        let mut terms: Vec<(String, EntityId)> = Vec::new();
        each_name(graph, triples, |text, entity| terms.push((text.to_owned(), entity)))?;
        let entries = terms.iter().map(|(text, entity)| {
            let types =
                graph.entities().get(entity.0 as usize).map_or(&[][..], |entity| entity.types.as_slice());
            Entry { text, entity: *entity, types }
        });
        Ok(Self::build(entries, filters)?)
    }
}
