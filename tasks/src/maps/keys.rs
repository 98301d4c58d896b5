//! What a graph's entities are called in annotations.

use std::collections::HashMap;

use kg::table::{EntityId, Graph};

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
