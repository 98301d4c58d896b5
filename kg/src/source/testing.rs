//! What tests of readers have in common.

use std::path::PathBuf;

use super::files::{Files, Reopened, on_disk};
use super::{Source, SourceReport};
use crate::canon::{Canon, Policy, merge};
use crate::table::builder::DraftOrigin;
use crate::table::{Builder, Entity, Origin, Relation};

/// A file in memory.
pub(super) fn reopened<'f>(name: &str, text: &'f str) -> Reopened<'f> {
    Reopened { label: PathBuf::from(name), open: Box::new(move || Ok(Box::new(text.as_bytes()))) }
}

/// Where triples of the source `s` come from, of which nothing else is known.
pub(super) fn origin(builder: &mut Builder) -> DraftOrigin {
    let (source, vocabulary) = ("s".to_owned(), None);
    builder.origin(Origin { source, vocabulary, weight: None, count: None, level: None })
}

/// What a source reads of the files that it names.
pub(super) fn read(source: &dyn Source, name: &str) -> Result<(SourceReport, Canon), String> {
    let mut builder = Builder::new();
    let found = on_disk(source).map_err(|e| e.to_string())?;
    let report = source.read(name, &Files::new(found, &|file| Box::new(file)), &mut builder);
    let report = report.map_err(|e| e.to_string())?;
    Ok((report, merge(builder, &Policy::standard()).map_err(|e| e.to_string())?))
}

/// What is told, or refused, of the things that a source leaves without a name.
pub(super) fn unnamed(read: (SourceReport, Canon)) -> Result<Vec<String>, String> {
    let naming = read.0.naming.unwrap();
    naming.settle(&read.1).map_err(|e| e.to_string())
}

/// The triples of a graph in its order, their ends and relations as a test calls them.
pub(super) fn triples(
    canon: &Canon,
    end: fn(&Entity) -> String,
    relation: fn(&Relation) -> String,
) -> Vec<String> {
    let graph = canon.graph().unwrap();
    let end = |id: crate::table::EntityId| end(&graph.entities()[id.index()]);
    let line = |triple: &crate::table::Triple| {
        let relation = relation(&graph.relations()[triple.relation.index()]);
        format!("{} {relation} {}", end(triple.subject), end(triple.object))
    };
    graph.triples().iter().map(line).collect()
}
