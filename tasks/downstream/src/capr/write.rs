//! Writes a collection with its candidates and parts: files whole, the index last, the same bytes for the same input.

use std::path::Path;

use base::self_check::{self, SelfChecked};
use tasks::Error;

use super::Collection;
use super::PassageId;
use super::candidates::{Candidates, Config};
use super::part::Parts;
use super::schema::{FORMAT, Index, PASSAGES, PassageRow, QUERIES, QueryRow, VERSION};
use crate::lines::{self, INDEX};

/// Writes a folder of candidates into `folder`, which exists: lists of all queries, in their order.
///
/// # Errors
/// When there is not a list for each query, or the disk refuses.
pub fn write(
    folder: &Path,
    collection: &Collection,
    parts: &Parts,
    config: &Config,
    lists: &[Candidates],
) -> Result<Index, Error> {
    let (found, expected) = (lists.len(), collection.queries.len());
    if found != expected {
        let problem =
            format!("{found} lists of candidates for {expected} queries: give those of this collection");
        return Err(Error::Unfit(problem));
    }
    let passages = collection.passages.iter().zip(0..).map(|(passage, number)| {
        let document = &collection.documents[passage.document.0 as usize];
        PassageRow {
            passage: PassageId(number),
            key: passage.key.clone(),
            document: document.key.clone(),
            title: document.title.clone(),
            part: parts.document(passage.document),
            text: passage.text.clone(),
        }
    });
    let queries = collection.query_ids().zip(lists).map(|(id, list)| {
        let query = collection.query(id);
        QueryRow {
            query: id,
            entity: query.entity.clone(),
            aspect: query.aspect.clone(),
            heading: query.heading.clone(),
            part: parts.query(collection, id),
            candidates: list.passages.clone(),
            relevant: query.relevant.clone(),
        }
    });
    let files = vec![
        lines::write(folder, Index::KIND, PASSAGES, passages)?,
        lines::write(folder, Index::KIND, QUERIES, queries)?,
    ];
    let mut index = Index {
        format: FORMAT.to_owned(),
        version: VERSION,
        xxh3: String::new(),
        name: collection.name.clone(),
        config: *config,
        documents: collection.documents.len() as u64,
        passages: collection.passages.len() as u64,
        queries: collection.queries.len() as u64,
        candidates: lists.iter().map(|list| list.passages.len() as u64).sum(),
        files,
    };
    self_check::write(&folder.join(INDEX), &mut index)?;
    Ok(index)
}
