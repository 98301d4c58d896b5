//! Reads a split back and checks that it is one of this graph.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::schema::{FILE, FORMAT, INVERSES, VERSION, columns, footer, parse_inverses};
use super::{Part, View};
use crate::table::RelationId;

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

/// Why a folder holds no split of this graph.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error("{}: cannot open it: {source}; make the split first", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
    /// The file is of another format or version, or has other columns.
    #[error("{}: expected {FORMAT} version {VERSION}, found {found}; make the split again with this version", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What is there.
        found: String,
    },
    /// The file is the split of another triple table.
    #[error(
        "{}: it splits another triple table ({what} {found}, this one has {expected}); make the split of this table again",
        file.display()
    )]
    Other {
        /// The file.
        file: PathBuf,
        /// What differs.
        what: &'static str,
        /// What this graph has.
        expected: String,
        /// What the file says.
        found: String,
    },
    /// The file is no Parquet, cut short, fails a page's CRC, or breaks what the format promises.
    #[error("{}: row {row}: {problem}; the file is damaged, make the split again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Rows read before, so the row of the damage at the earliest; from 0.
        row: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Reads the split that [`super::Split::write`] put into `folder`.
///
/// # Errors
/// When the file is missing, has another format version, splits another graph, or is damaged.
pub fn read(folder: &Path, view: &View) -> Result<Stored, Error> {
    let file = folder.join(FILE);
    let damaged = |row, problem| Error::Damaged { file: file.clone(), row, problem };
    let (batches, detected) = open(&file, view)?;
    let mut stored = Stored { part: Vec::new(), group: Vec::new(), detected };
    for batch in batches {
        let row = stored.part.len();
        let batch = batch.map_err(|e| damaged(row, e.to_string()))?;
        take(&batch, &mut stored).map_err(|problem| damaged(stored.part.len(), problem))?;
    }
    let (found, expected) = (stored.part.len(), view.triples().len());
    if found == expected {
        return Ok(stored);
    }
    Err(damaged(found, format!("found {found} rows, expected {expected}")))
}

/// The rows, and what was found to be inverse.
type Opened = (ParquetRecordBatchReader, Vec<(RelationId, RelationId)>);

fn open(file: &Path, view: &View) -> Result<Opened, Error> {
    let file = || file.to_owned();
    let opened = File::open(file()).map_err(|source| Error::Open { file: file(), source })?;
    let damaged =
        |e: parquet::errors::ParquetError| Error::Damaged { file: file(), row: 0, problem: e.to_string() };
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(damaged)?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let value = |key: &str| {
        let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.clone()).unwrap_or_else(|| "none".to_owned())
    };
    let [format, version, triples, digest] = footer(view);
    if [&format, &version].iter().any(|(key, expected)| value(key) != *expected) {
        let found = format!("{} version {}", value(format.0), value(version.0));
        return Err(Error::Format { file: file(), found });
    }
    if builder.schema().fields() != columns().fields() {
        return Err(Error::Format {
            file: file(),
            found: format!("the columns {:?}", builder.schema().fields()),
        });
    }
    for (what, (key, expected)) in [("triples:", triples), ("digest", digest)] {
        let found = value(key);
        if found != expected {
            return Err(Error::Other { file: file(), what, expected, found });
        }
    }
    let list = value(INVERSES);
    let detected = parse_inverses(&list, view.relations().len()).ok_or_else(|| Error::Damaged {
        file: file(),
        row: 0,
        problem: format!("{INVERSES} is `{list}`, expected pairs of relations such as `0=1`"),
    })?;
    Ok((builder.build().map_err(damaged)?, detected))
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
