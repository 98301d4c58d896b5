//! Puts the full list of leaks on the disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray, UInt32Array};

use super::schema::{FILE, FORMAT, VERSION, columns};
use super::{Audit, Leak};
use crate::table::parquet_file::{Error, Writer};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

impl Audit {
    /// Writes `leaks.parquet` into `folder`, whole, and empty if nothing leaks.
    ///
    /// # Errors
    /// When the folder is missing or the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let file = folder.join(FILE);
        let footer = [("engraft.format", FORMAT.to_owned()), ("engraft.version", VERSION.to_string())];
        let mut writer = Writer::create(&file, columns(), GROUP_ROWS, &footer)?;
        for leaks in self.leaks.chunks(BATCH_ROWS) {
            writer.write_columns(rows(leaks))?;
        }
        writer.finish()
    }
}

fn rows(leaks: &[Leak]) -> Vec<ArrayRef> {
    let number =
        |of: fn(&Leak) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(leaks.iter().map(of))) };
    let word = |of: fn(&Leak) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(leaks.iter().map(of)))
    };
    vec![
        number(|leak| leak.held),
        word(|leak| leak.held_part.name()),
        word(|leak| leak.shown_part.name()),
        word(|leak| leak.kind.name()),
        number(|leak| leak.shown),
        number(|leak| leak.times),
    ]
}
