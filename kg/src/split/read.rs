//! Reads a split back and checks that it is one of this graph.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use base::read::ReadError;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::schema::{FILE, FORMAT, INVERSES, VERSION, columns, footer, parse_inverses};
use super::{Part, View};
use crate::table::RelationId;
use crate::table::parquet_file::noted;

/// A part and a group for every triple, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// By row of the triple table.
    pub part: Vec<Part>,
    /// By row: number of its group.
    pub group: Vec<u32>,
    /// Relations that were found to be inverse, for the audit.
    pub detected: Vec<(RelationId, RelationId)>,
}

/// What to do about a file that is damaged or of another version.
const AGAIN: &str = "make the split again";

/// A file that is no Parquet, cut short, fails a page's CRC, or breaks what the format promises behind `row` rows.
fn damaged(file: &Path, row: usize, problem: &str) -> ReadError {
    let place = format!("{}: row {row}", file.display());
    ReadError::new(place, problem, "", format!("the file is damaged, {AGAIN}"))
}

/// Reads the split that [`super::Split::write`] put into `folder`.
///
/// # Errors
/// When the file is missing, has another format version, splits another graph, or is damaged.
pub fn read(folder: &Path, view: &View) -> Result<Stored, ReadError> {
    let file = folder.join(FILE);
    let (batches, detected) = open(&file, view)?;
    let mut stored = Stored { part: Vec::new(), group: Vec::new(), detected };
    for batch in batches {
        let row = stored.part.len();
        let batch = batch.map_err(|e| damaged(&file, row, &e.to_string()))?;
        take(&batch, &mut stored).map_err(|problem| damaged(&file, stored.part.len(), &problem))?;
    }
    let (found, expected) = (stored.part.len(), view.triples().len());
    if found == expected {
        return Ok(stored);
    }
    Err(damaged(&file, found, &format!("found {found} rows, expected {expected}")))
}

/// The rows, and what was found to be inverse.
type Opened = (ParquetRecordBatchReader, Vec<(RelationId, RelationId)>);

fn open(file: &Path, view: &View) -> Result<Opened, ReadError> {
    let opened = File::open(file).map_err(|error| {
        ReadError::new(file, format!("cannot open it: {error}"), "", "make the split first")
    })?;
    let no_parquet = |e: parquet::errors::ParquetError| damaged(file, 0, &e.to_string());
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(no_parquet)?;
    let value = |key: &str| noted(builder.metadata(), key);
    let other = |found: String| {
        let expected = format!("{FORMAT} version {VERSION}");
        ReadError::new(file, format!("found {found}"), expected, format!("{AGAIN} with this version"))
    };
    let [format, version, triples, digest] = footer(view);
    if [&format, &version].iter().any(|(key, expected)| value(key) != expected.as_str()) {
        let found = format!("{} version {}", value(format.0), value(version.0));
        return Err(other(found));
    }
    if builder.schema().fields() != columns().fields() {
        return Err(other(format!("the columns {:?}", builder.schema().fields())));
    }
    for (what, (key, expected)) in [("triples:", triples), ("digest", digest)] {
        let found = value(key);
        if found != expected {
            let found = format!("it splits another triple table ({what} {found}, this one has {expected})");
            return Err(ReadError::new(file, found, "", "make the split of this table again"));
        }
    }
    let list = value(INVERSES);
    let detected = parse_inverses(list, view.relations().len()).ok_or_else(|| {
        let problem = format!("{INVERSES} is `{list}`, expected pairs of relations such as `0=1`");
        damaged(file, 0, &problem)
    })?;
    Ok((builder.build().map_err(no_parquet)?, detected))
}

fn take(batch: &RecordBatch, stored: &mut Stored) -> Result<(), String> {
    let number = |place: usize| batch.column(place).as_primitive::<UInt32Type>();
    let (triples, parts, groups) = (number(0), batch.column(1).as_string::<i32>(), number(2));
    for row in 0..batch.num_rows() {
        let expected = stored.part.len();
        if triples.value(row) as usize != expected {
            return Err(format!("found triple {}, expected {expected}", triples.value(row)));
        }
        let part =
            Part::named(parts.value(row)).ok_or_else(|| format!("unknown part `{}`", parts.value(row)))?;
        // A group is numbered by its first row, so it never exceeds its row.
        if groups.value(row) as usize > expected {
            return Err(format!("group {} before its number's turn", groups.value(row)));
        }
        stored.part.push(part);
        stored.group.push(groups.value(row));
    }
    Ok(())
}
