//! Which triples and names a task's shards show.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::index::FileIndex;
use super::read::damaged;
use crate::Error;

/// The rows of the triple table that `files` below `folder` were made of, sorted, each once. Read from the files themselves, not from
/// the index.
///
/// # Errors
/// When a file is missing or damaged.
pub fn triples(folder: &Path, files: &[FileIndex]) -> Result<Vec<u32>, Error> {
    numbers(folder, files, &["triple"])
}

/// The rows of the table of terms that they were made of, likewise.
///
/// # Errors
/// When a file is missing or damaged.
pub fn names(folder: &Path, files: &[FileIndex]) -> Result<Vec<u32>, Error> {
    numbers(folder, files, &["name", "other"])
}

/// All numbers in some columns.
fn numbers(folder: &Path, files: &[FileIndex], names: &[&str]) -> Result<Vec<u32>, Error> {
    let mut shown = Vec::new();
    for file in files {
        let path = folder.join(&file.path);
        let wrong = |problem: String| damaged(&path, &problem);
        let open = File::open(&path).map_err(|e| wrong(e.to_string()))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(open).map_err(|e| wrong(e.to_string()))?;
        let mask = ProjectionMask::columns(reader.parquet_schema(), names.iter().copied());
        let batches = reader.with_projection(mask).build().map_err(|e| wrong(e.to_string()))?;
        for batch in batches {
            let batch = batch.map_err(|e| wrong(e.to_string()))?;
            for name in names {
                let column = batch.column_by_name(name).and_then(|of| of.as_primitive_opt::<UInt32Type>());
                let column = column.ok_or_else(|| wrong(format!("there is no column `{name}` of uint32")))?;
                shown.extend_from_slice(column.values());
            }
        }
        shown.sort_unstable();
        shown.dedup();
    }
    Ok(shown)
}
