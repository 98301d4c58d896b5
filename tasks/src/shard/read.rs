//! Rows of a shard, one row group at a time. Knows no order and no batch.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, UInt32Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use super::schema::columns;
use crate::task::Task;

/// Why a shard cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: row group {group}: {problem}; the shard is damaged: `engraft verify` lists all damaged files, `engraft run shards` builds them again", path.display())]
pub struct Error {
    path: PathBuf,
    group: usize,
    problem: String,
}

impl Error {
    /// Shards without a single triple.
    pub(crate) fn no_triples() -> Self {
        Self { path: super::index::FILE.into(), group: 0, problem: "no task has a triple".to_owned() }
    }
}

/// The rows of one row group as flat arrays. Triple `t` of the group has the rows `firsts[t]..firsts[t + 1]`, row `i` the
/// tokens `starts[i]..starts[i + 1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// First row of each triple, and the end of the last.
    pub firsts: Vec<usize>,
    /// Where each row starts, and the end of the last.
    pub starts: Vec<usize>,
    /// Token ids of all rows.
    pub input_ids: Vec<u32>,
    /// Segments of all rows.
    pub token_type_ids: Vec<u32>,
    /// What is to be predicted: as many as tokens, or as rows.
    pub answers: Answers,
}

/// The labels of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// One per token.
    Tokens(Vec<i64>),
    /// One per row.
    Classes(Vec<u32>),
}

/// An open shard.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    file: File,
    task: Task,
    metadata: ArrowReaderMetadata,
}

impl Shard {
    /// Opens a shard of `task` and checks that it has the columns of this format.
    ///
    /// # Errors
    /// When the file is missing, no Parquet, or has other columns.
    pub fn open(path: &Path, task: Task) -> Result<Self, Error> {
        let bad = |problem: String| Error { path: path.to_owned(), group: 0, problem };
        let file = File::open(path).map_err(|e| bad(e.to_string()))?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        let metadata = metadata.map_err(|e| bad(e.to_string()))?;
        let (found, expected) = (metadata.schema(), columns(task));
        for field in expected.fields() {
            match found.field_with_name(field.name()) {
                Ok(other) if other.data_type() == field.data_type() => {}
                Ok(other) => {
                    let (name, is, should) = (field.name(), other.data_type(), field.data_type());
                    return Err(bad(format!("column {name} has type {is}, expected {should}")));
                }
                Err(_) => return Err(bad(format!("column {} is missing", field.name()))),
            }
        }
        Ok(Self { path: path.to_owned(), file, task, metadata })
    }

    /// Reads row group `group` and checks every page's CRC on the way.
    ///
    /// # Errors
    /// When a page is damaged or the group does not exist.
    pub fn group(&self, group: usize) -> Result<Group, Error> {
        let bad = |problem: String| Error { path: self.path.clone(), group, problem };
        let Some(described) = self.metadata.metadata().row_groups().get(group) else {
            return Err(bad("it does not exist".to_owned()));
        };
        let row_count = usize::try_from(described.num_rows()).map_err(|e| bad(e.to_string()))?;
        let file = self.file.try_clone().map_err(|e| bad(e.to_string()))?;
        let wanted = ["triple", "input_ids", "token_type_ids", "labels", "label"];
        let mask = ProjectionMask::columns(self.metadata.parquet_schema(), wanted);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(row_count.max(1))
            .build()
            .map_err(|e| bad(e.to_string()))?;
        let batches: Result<Vec<RecordBatch>, _> = reader.collect();
        let batches = batches.map_err(|e| bad(e.to_string()))?;
        let mut rows = Group {
            firsts: Vec::new(),
            starts: vec![0],
            input_ids: Vec::new(),
            token_type_ids: Vec::new(),
            answers: match self.task {
                Task::Subject | Task::Object => Answers::Tokens(Vec::new()),
                Task::Relation | Task::Triplet => Answers::Classes(Vec::new()),
            },
        };
        let mut last = None;
        batches.iter().try_for_each(|batch| append(&mut rows, &mut last, batch)).map_err(bad)?;
        rows.firsts.push(rows.starts.len() - 1);
        Ok(rows)
    }
}

/// Adds the rows of `batch`; `last` is the triple of the row before them.
fn append(rows: &mut Group, last: &mut Option<u32>, batch: &RecordBatch) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"));
    let before = rows.starts.len() - 1;
    for (row, &triple) in column("triple")?.as_primitive::<UInt32Type>().values().iter().enumerate() {
        if *last != Some(triple) {
            rows.firsts.push(before + row);
            *last = Some(triple);
        }
    }
    let ids = column("input_ids")?.as_list::<i32>();
    let types = column("token_type_ids")?.as_list::<i32>();
    if ids.offsets() != types.offsets() {
        return Err("input_ids and token_type_ids have different lengths".to_owned());
    }
    let base = rows.input_ids.len();
    let lengths = ids.offsets().lengths();
    rows.starts.extend(lengths.scan(base, |at, length| {
        *at += length;
        Some(*at)
    }));
    let negative = |_| "a negative id".to_owned();
    for &id in ids.values().as_primitive::<Int32Type>().values() {
        rows.input_ids.push(u32::try_from(id).map_err(negative)?);
    }
    for &segment in types.values().as_primitive::<Int8Type>().values() {
        rows.token_type_ids.push(u32::try_from(segment).map_err(negative)?);
    }
    match &mut rows.answers {
        Answers::Tokens(labels) => {
            let list = column("labels")?.as_list::<i32>();
            if list.offsets() != ids.offsets() {
                return Err("input_ids and labels have different lengths".to_owned());
            }
            labels.extend(list.values().as_primitive::<Int32Type>().values().iter().map(|&l| i64::from(l)));
        }
        Answers::Classes(classes) => {
            for &class in column("label")?.as_primitive::<Int32Type>().values() {
                classes.push(u32::try_from(class).map_err(negative)?);
            }
        }
    }
    Ok(())
}
