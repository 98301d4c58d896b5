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

impl Dictionary {
    /// The dictionary of the names, and of the terms that are no definitions, of `graph`, which was read from the folder `triples`.
    ///
    /// # Errors
    /// When the terms cannot be read, or [`Dictionary::build`] refuses.
    pub fn of_graph(graph: &Graph, triples: &Path, filters: &Filters) -> Result<Self, GraphError> {
        let mut terms: Vec<(String, EntityId)> = graph
            .entities()
            .iter()
            .zip(0..)
            .map(|(entity, id)| (entity.text.clone(), EntityId(id)))
            .collect();
        if triples.join("terms.parquet").exists() {
            read::terms(triples, |term| {
                if term.kind != TermKind::Definition {
                    terms.push((term.text, term.entity));
                }
                Ok(())
            })?;
        }
        let entries = terms.iter().map(|(text, entity)| {
            let types =
                graph.entities().get(entity.0 as usize).map_or(&[][..], |entity| entity.types.as_slice());
            Entry { text, entity: *entity, types }
        });
        Ok(Self::build(entries, filters)?)
    }
}
