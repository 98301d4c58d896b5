//! Reads ranks back.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use arrow_array::{Array as _, RecordBatch};
use base::read::ReadError;
use kg::table::parquet_file::noted;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use super::schema::{FORMAT, VERSION, columns};

/// A question that was asked, and where its answer stood without other true ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The triple's row in the triple table.
    pub triple: u32,
    /// What was asked for.
    pub side: String,
    /// From 1; the mean of the best and the worst place that ties allow.
    pub rank: f64,
    /// How many it stood among.
    pub candidates: u32,
    /// Whether a shown triple gives the answer away, or seems to.
    pub is_given_away: bool,
}

/// What to do about a file that is damaged or of another version.
const AGAIN: &str = "`engraft run rank` makes it again";

/// The ranks that [`super::write::write`] put into `file`, in their order.
///
/// # Errors
/// When the file is missing, of another format or version, or damaged.
pub fn read(file: &Path) -> Result<Vec<Ranked>, ReadError> {
    let opened = File::open(file)
        .map_err(|error| ReadError::new(file, format!("cannot open it: {error}"), "", AGAIN))?;
    let damaged = |error: ParquetError| ReadError::new(file, error.to_string(), "", AGAIN);
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(damaged)?;
    let value = |key: &str| noted(builder.metadata(), key);
    let (format, version) = (value("engraft.format"), value("engraft.version"));
    if format != FORMAT || version != VERSION.to_string() || builder.schema().fields() != columns().fields() {
        let found =
            format!("found {format} version {version} with {} columns", builder.schema().fields().len());
        return Err(ReadError::new(file, found, format!("{FORMAT} version {VERSION}"), AGAIN));
    }
    let mut ranks = Vec::new();
    for batch in builder.build().map_err(damaged)? {
        let batch = batch.map_err(|error| ReadError::new(file, error.to_string(), "", AGAIN))?;
        ranks.extend(rows(&batch));
    }
    Ok(ranks)
}

fn rows(batch: &RecordBatch) -> impl Iterator<Item = Ranked> {
    let triples = batch.column(0).as_primitive::<UInt32Type>();
    let sides = batch.column(1).as_string::<i32>();
    let ranks = batch.column(2).as_primitive::<Float64Type>();
    let candidates = batch.column(3).as_primitive::<UInt32Type>();
    let given_away = batch.column(9).as_string::<i32>();
    (0..batch.num_rows()).map(|row| Ranked {
        triple: triples.value(row),
        side: sides.value(row).to_owned(),
        rank: ranks.value(row),
        candidates: candidates.value(row),
        is_given_away: given_away.is_valid(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Question;
    use crate::link::write::{Answered, Place, write, write_candidates};
    use crate::sample::Slot;

    #[test]
    fn ranks_come_back_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ranks.parquet");
        let place = |rank, candidates| Place { rank, candidates, ties: 1 };
        let of = |row, slot, rank| Answered {
            question: Question { slot, triple: [1, 2, 3], row },
            filtered: place(rank, 7),
            raw: place(rank + 2.0, 9),
            score: 0.5,
            given_away: (row == 9).then_some("suspected"),
        };
        write(&file, &[of(4, Slot::Subject, 1.5), of(4, Slot::Object, 2.0), of(9, Slot::Relation, 7.0)])
            .unwrap();
        let back = read(&file).unwrap();
        assert_eq!(back.iter().map(|of| of.is_given_away).collect::<Vec<_>>(), [false, false, true]);
        let rows: Vec<_> =
            back.iter().map(|of| (of.triple, of.side.as_str(), of.rank, of.candidates)).collect();
        assert_eq!(rows, [(4, "subject", 1.5, 7), (4, "object", 2.0, 7), (9, "relation", 7.0, 7)]);
        let refused = |file: &Path| read(file).unwrap_err().to_string();
        assert!(refused(&folder.path().join("none")).contains("cannot open it"));
        let bytes = std::fs::read(&file).unwrap();
        let cut = folder.path().join("cut");
        base::whole::write_whole(&cut, &bytes[..bytes.len() / 2]).unwrap();
        assert!(refused(&cut).contains("makes it again"), "{}", refused(&cut));
        let other = folder.path().join("candidates");
        write_candidates(&other, []).unwrap();
        assert!(refused(&other).contains("found engraft-candidates version 1"), "{}", refused(&other));
    }
}
