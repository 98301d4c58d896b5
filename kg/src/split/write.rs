//! Puts a split on the disk.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array};

use super::schema::{FILE, INVERSES, columns, footer, inverses};
use super::{Part, Split, View};
use crate::table::id::dense;
use crate::table::parquet_file::{Error, Writer};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

impl Split {
    /// Writes `split.parquet` into `folder`, whole; equal splits give equal bytes. `view` is the graph that was split.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path, view: &View) -> Result<(), Error> {
        let file = folder.join(FILE);
        let mut footer = footer(view).to_vec();
        footer.push((INVERSES, inverses(&self.detected)));
        let mut writer = Writer::create(&file, columns(), GROUP_ROWS, &footer)?;
        for start in (0..self.part.len()).step_by(BATCH_ROWS) {
            let rows = start..self.part.len().min(start + BATCH_ROWS);
            writer.write_columns(self.columns(rows))?;
        }
        writer.finish()
    }

    fn columns(&self, rows: Range<usize>) -> Vec<ArrayRef> {
        let parts = self.part[rows.clone()].iter().map(|part: &Part| part.name());
        vec![
            Arc::new(UInt32Array::from_iter_values(rows.clone().map(dense))),
            Arc::new(StringArray::from_iter_values(parts)),
            Arc::new(UInt32Array::from_iter_values(self.group[rows].iter().copied())),
        ]
    }
}
