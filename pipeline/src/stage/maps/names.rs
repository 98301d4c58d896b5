//! What a graph's entities are called: by the keys of annotations, and as a dictionary.

use std::collections::HashMap;
use std::path::Path;

use kg::table::row::TermKind;
use kg::table::{EntityId, Graph, read};
use text::ner::{Dictionary, Entry, Filters};

/// Entities by the keys that annotations may use: `mesh:D009270`, and `D009270` where no two entities share it.
pub(super) fn keys(graph: &Graph) -> HashMap<String, EntityId> {
    let mut keys: HashMap<String, Option<EntityId>> = HashMap::new();
    for (entity, id) in graph.entities().iter().zip(0..) {
        for key in std::iter::once(&entity.key).chain(&entity.same_as) {
            let bare = key.split_once(':').map(|(_, bare)| bare);
            for key in std::iter::once(key.as_str()).chain(bare) {
                // `MESH:D009270` to some, `mesh:D009270` to others.
                let slot = keys.entry(key.to_lowercase()).or_insert(Some(EntityId(id)));
                if *slot != Some(EntityId(id)) {
                    *slot = None;
                }
            }
        }
    }
    keys.into_iter().filter_map(|(key, id)| Some((key, id?))).collect()
}

/// The dictionary of a graph's names and terms.
pub(super) fn dictionary(graph: &Graph, triples: &Path, filters: &Filters) -> anyhow::Result<Dictionary> {
    let mut terms: Vec<(String, EntityId)> =
        graph.entities().iter().zip(0..).map(|(entity, id)| (entity.text.clone(), EntityId(id))).collect();
    if triples.join("terms.parquet").exists() {
        read::terms(triples, |term| {
            if term.kind != TermKind::Definition {
                terms.push((term.text, term.entity));
            }
            Ok(())
        })?;
    }
    let entries = terms.iter().map(|(text, entity)| {
        let types = graph.entities().get(entity.0 as usize).map_or(&[][..], |entity| entity.types.as_slice());
        Entry { text, entity: *entity, types }
    });
    Ok(Dictionary::build(entries, filters)?)
}
