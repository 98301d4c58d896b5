//! Puts a diff's list of entities on the disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array};

use super::schema::{FILE, FORMAT, VERSION, columns};
use super::{Diff, Moved};
use crate::table::parquet_file::{Error, Writer};
use crate::table::{Entity, EntityId, Graph};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 18;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

impl Diff {
    /// Writes `moved.parquet` into `folder`, whole. The graphs are those that were compared.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path, old: &Graph, new: &Graph) -> Result<(), Error> {
        let file = folder.join(FILE);
        let footer = [("engraft.format", FORMAT.to_owned()), ("engraft.version", VERSION.to_string())];
        let mut writer = Writer::create(&file, columns(), GROUP_ROWS, &footer)?;
        for moved in self.moved.chunks(BATCH_ROWS) {
            writer.write_columns(rows(moved, old, new))?;
        }
        writer.finish()
    }
}

fn rows(moved: &[Moved], old: &Graph, new: &Graph) -> Vec<ArrayRef> {
    let id = |of: fn(&Moved) -> Option<EntityId>| -> ArrayRef {
        Arc::new(moved.iter().map(|moved| of(moved).map(|id| id.0)).collect::<UInt32Array>())
    };
    let (of_old, of_new) = (entities(moved, old, |moved| moved.old), entities(moved, new, |moved| moved.new));
    let word = |entities: &[Option<&Entity>], of: fn(&Entity) -> &str| -> ArrayRef {
        Arc::new(entities.iter().map(|entity| entity.map(of)).collect::<StringArray>())
    };
    vec![
        Arc::new(StringArray::from_iter_values(moved.iter().map(|moved| moved.change.name()))),
        id(|moved| moved.old),
        id(|moved| moved.new),
        word(&of_old, |entity| &entity.key),
        word(&of_new, |entity| &entity.key),
        word(&of_old, |entity| &entity.text),
        word(&of_new, |entity| &entity.text),
    ]
}

fn entities<'a>(
    moved: &[Moved],
    graph: &'a Graph,
    of: fn(&Moved) -> Option<EntityId>,
) -> Vec<Option<&'a Entity>> {
    moved.iter().map(|moved| of(moved).and_then(|id| graph.entities().get(id.index()))).collect()
}
