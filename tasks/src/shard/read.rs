//! Rows of a shard, one row group at a time, checked against the index.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::read::Location;
use base::self_check::check;
use batch::task::{Answer, Predicts, Task};
use bytes::Bytes;
use kg::table::guard::guarded;
use kg::table::pages::check_schema;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int32Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;

use super::index::{FileIndex, GroupIndex};
use super::pages::{MOST_VALUES, Slice, values};
use super::schema::{columns, has_slots};
use crate::Error;
use crate::builder::Form;

/// A shard that is not as it was written.
pub(crate) fn damaged(place: impl Into<Location>, problem: &dyn std::fmt::Display) -> Error {
    let remedy = "the shard is damaged: `engraft verify` lists all damaged files, `engraft run shards` builds them again";
    Error::at(place, problem, remedy)
}

/// A shard that could not be opened.
pub(crate) fn unopened(path: &Path, problem: &dyn std::fmt::Display) -> Error {
    damaged(format!("{}: the file", path.display()), problem)
}

/// The rows of one row group as flat arrays. Item `t` of the group has the rows `firsts[t]..firsts[t + 1]`, row `i` the tokens
/// `starts[i]..starts[i + 1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// First row of each item, and the end of the last.
    pub firsts: Vec<u32>,
    /// Where each row starts, and the end of the last.
    pub starts: Vec<u32>,
    /// Token ids of all rows, none below 0.
    pub input_ids: Vec<i32>,
    /// Segments of all rows; none where all are 0.
    pub token_type_ids: Option<Vec<i32>>,
    /// 1 for a token, 0 for the padding inside a slot; none where all are tokens.
    pub attention: Option<Vec<i32>>,
    /// What is to be predicted.
    pub answers: Answers,
}

/// The labels of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// One per token.
    Tokens(Vec<i32>),
    /// One per row.
    Classes(Vec<i32>),
}

/// A file that is read by place. Where it lies is the reader's concern.
pub trait Blob: Send + Sync + std::fmt::Debug {
    /// The `length` bytes from `start`.
    ///
    /// # Errors
    /// When they are not to be had.
    fn read_at(&self, start: u64, length: usize) -> io::Result<Bytes>;
}

impl Blob for File {
    fn read_at(&self, start: u64, length: usize) -> io::Result<Bytes> {
        // An index may ask for anything; room is made for what is there.
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| self.metadata().is_ok_and(|of| of.is_file() && end > of.len())) {
            let problem =
                format!("the index asks for {length} bytes from {start} on, and the file ends before");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        let mut bytes = vec![0; length];
        #[cfg(unix)]
        std::os::unix::fs::FileExt::read_exact_at(self, &mut bytes, start)?;
        #[cfg(not(unix))]
        {
            use std::io::{Read, Seek, SeekFrom};
            let mut file = self.try_clone()?;
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut bytes)?;
        }
        Ok(bytes.into())
    }
}

/// What a shard's rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of {
    /// The task that they belong to.
    pub task: Task,
    /// How the columns of a triple stand in them.
    pub form: Form,
}

/// An open shard.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    blob: Box<dyn Blob>,
    task: Task,
    index: FileIndex,
    metadata: ParquetMetaData,
    columns: Columns,
}

/// Places of the columns among the leaves of the schema.
#[derive(Debug)]
struct Columns {
    input_ids: usize,
    attention: Option<usize>,
    token_type_ids: usize,
    answers: usize,
}

impl Shard {
    /// Opens a shard of `task` that `index` lists, and checks that it has the columns of this format.
    ///
    /// # Errors
    /// When the file is missing, is not as the index says, or has other columns.
    pub fn open(folder: &Path, index: &FileIndex, of: Of) -> Result<Self, Error> {
        let path = folder.join(&index.path);
        match File::open(&path) {
            Ok(file) => Self::over(Box::new(file), path, index, of),
            Err(error) => Err(unopened(&path, &error)),
        }
    }

    /// A shard that lies in `blob`; `path` names it in messages.
    ///
    /// # Errors
    /// As [`Shard::open`].
    pub fn over(blob: Box<dyn Blob>, path: PathBuf, index: &FileIndex, of: Of) -> Result<Self, Error> {
        let bad = |problem: String| damaged(format!("{}: footer", path.display()), &problem);
        let metadata = footer(blob.as_ref(), index).map_err(bad)?;
        let columns = Columns::find(&metadata, of).map_err(bad)?;
        Ok(Self { path, blob, task: of.task, index: index.clone(), metadata, columns })
    }

    /// Reads row group `group`, after checking its bytes against the index.
    ///
    /// # Errors
    /// When it is damaged or does not exist.
    pub fn group(&self, group: usize) -> Result<Group, Error> {
        let bad = |problem: String| damaged(format!("{}: row group {group}", self.path.display()), &problem);
        let Some(listed) = self.index.groups.get(group) else {
            return Err(bad("it does not exist".to_owned()));
        };
        let pages = Arc::new(pages(self.blob.as_ref(), &self.index, group).map_err(bad)?);
        guarded(|| self.decode(&pages, self.metadata.row_group(group), listed))
            .map_err(|e| bad(e.to_string()))
    }

    fn decode(
        &self,
        pages: &Arc<Slice>,
        described: &RowGroupMetaData,
        listed: &GroupIndex,
    ) -> Result<Group, ParquetError> {
        let rows = listed.rows as usize;
        if described.num_rows() != i64::from(listed.rows) {
            let found = described.num_rows();
            return Err(wrong(format!("{found} rows, but the index says {rows}")));
        }
        let leaf = |column: usize| Leaf { pages, described, column, rows };
        let (starts, input_ids) = leaf(self.columns.input_ids).lists()?;
        // The sign of them all at once.
        if input_ids.iter().fold(0, |signs, id| signs | id) < 0 {
            return Err(wrong("a token id is below 0".to_owned()));
        }
        let optional = |column: usize, constant: i32| -> Result<Option<Vec<i32>>, ParquetError> {
            if constant_of(described.column(column)) == Some(constant) {
                return Ok(None);
            }
            let (found, values) = leaf(column).lists()?;
            if found == starts { Ok(Some(values)) } else { Err(unlike()) }
        };
        let token_type_ids = optional(self.columns.token_type_ids, 0)?;
        let attention = self.columns.attention.map(|column| optional(column, 1)).transpose()?.flatten();
        let answers = match self.task.answer() {
            Answer::Class => Answers::Classes(leaf(self.columns.answers).flat()?),
            Answer::Tokens => match leaf(self.columns.answers).lists()? {
                (found, values) if found == starts => Answers::Tokens(values),
                _ => return Err(unlike()),
            },
        };
        let firsts = match &answers {
            // What is true, and behind it what is false: what is true begins an item.
            Answers::Classes(classes) if self.task.predicts() == Predicts::Truth => stated(classes),
            // One row each: the first rows are the rows.
            _ => (0..=listed.rows).collect(),
        };
        if firsts.len() != listed.items as usize + 1 {
            let (found, expected) = (firsts.len() - 1, listed.items);
            return Err(wrong(format!("{found} items, but the index says {expected}")));
        }
        Ok(Group { firsts, starts, input_ids, token_type_ids, attention, answers })
    }
}

/// What the footer of a file that `index` lists says, after checking its bytes against it.
pub(crate) fn footer(blob: &dyn Blob, index: &FileIndex) -> Result<ParquetMetaData, String> {
    let start = index.start(index.groups.len());
    let length = index.bytes.checked_sub(start).ok_or("the index gives it no footer")?;
    let part = checked(blob, start, length, &index.footer)?;
    let metadata = guarded(|| {
        check_schema(&part)?;
        ParquetMetaDataReader::new().parse_and_finish(&part)
    });
    let metadata = metadata.map_err(|e| e.to_string())?;
    let (found, expected) = (metadata.num_row_groups(), index.groups.len());
    if found == expected {
        Ok(metadata)
    } else {
        Err(format!("{found} row groups, but the index says {expected}"))
    }
}

/// The pages of a row group of a file that `index` lists, after checking them against it.
pub(crate) fn pages(blob: &dyn Blob, index: &FileIndex, group: usize) -> Result<Slice, String> {
    let listed = index.groups.get(group).ok_or("it does not exist")?;
    checked(blob, index.start(group), listed.bytes, &listed.xxh3)
}

fn checked(blob: &dyn Blob, start: u64, length: u64, expected: &str) -> Result<Slice, String> {
    let most = usize::try_from(length).map_err(|e| e.to_string())?;
    let bytes = blob.read_at(start, most).map_err(|e| e.to_string())?;
    let found = check(&bytes);
    if found == expected {
        Ok(Slice::new(bytes, start))
    } else {
        Err(format!("its check is {found}, but the index says {expected}"))
    }
}

/// The rows of class 1, and the end of all.
fn stated(classes: &[i32]) -> Vec<u32> {
    let of_class_1 = (0_u32..).zip(classes).filter(|&(_, &class)| class == 1).map(|(row, _)| row);
    of_class_1.chain(std::iter::once(u32::try_from(classes.len()).unwrap_or(u32::MAX))).collect()
}

/// The value that all of a column's values have, if its footer says that there is one.
fn constant_of(column: &ColumnChunkMetaData) -> Option<i32> {
    match column.statistics() {
        Some(Statistics::Int32(of)) => of.min_opt().filter(|least| Some(*least) == of.max_opt()).copied(),
        _ => None,
    }
}

fn wrong(problem: String) -> ParquetError {
    ParquetError::General(problem)
}

fn unlike() -> ParquetError {
    wrong("the columns of a row have different lengths".to_owned())
}

impl Columns {
    fn find(metadata: &ParquetMetaData, of: Of) -> Result<Self, String> {
        let Of { task, form } = of;
        let schema = metadata.file_metadata().schema_descr();
        let find = |name: &str| {
            let mut leaves =
                (0..schema.num_columns()).filter(|&leaf| schema.get_column_root(leaf).name() == name);
            let leaf = leaves.next().ok_or_else(|| format!("column {name} is missing"))?;
            let found = schema.column(leaf);
            let list = u8::from(name != "label");
            let levels = (i16::from(list), i16::from(list));
            let right = found.physical_type() == parquet::basic::Type::INT32
                && (found.max_def_level(), found.max_rep_level()) == levels;
            if right {
                Ok(leaf)
            } else {
                Err(format!("column {name} is not of the type that this format has"))
            }
        };
        for field in columns(task, form).fields() {
            if schema.root_schema().get_fields().iter().all(|found| found.name() != field.name()) {
                return Err(format!("column {} is missing", field.name()));
            }
        }
        Ok(Self {
            input_ids: find("input_ids")?,
            attention: has_slots(task, form).then(|| find("attention_mask")).transpose()?,
            token_type_ids: find("token_type_ids")?,
            answers: find(if task.answer() == Answer::Class { "label" } else { "labels" })?,
        })
    }
}

/// One column of a row group.
struct Leaf<'a> {
    pages: &'a Arc<Slice>,
    described: &'a RowGroupMetaData,
    column: usize,
    rows: usize,
}

impl Leaf<'_> {
    fn reader(&self) -> Result<ColumnReaderImpl<Int32Type>, ParquetError> {
        let chunk = self.described.column(self.column);
        let pages = SerializedPageReader::new(Arc::clone(self.pages), chunk, self.rows, None)?;
        Ok(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)))
    }

    /// The values of a column that has one in each row.
    fn flat(&self) -> Result<Vec<i32>, ParquetError> {
        self.values()?;
        let (mut reader, mut values) = (self.reader()?, Vec::with_capacity(self.rows));
        while values.len() < self.rows {
            if reader.read_records(self.rows - values.len(), None, None, &mut values)?.0 == 0 {
                return Err(wrong("a column ends too early".to_owned()));
            }
        }
        Ok(values)
    }

    /// Values of the column, of which its pages may have any number in a few bytes.
    fn values(&self) -> Result<usize, ParquetError> {
        let chunk = self.described.column(self.column);
        let column = || chunk.column_path().string();
        let values = values(self.pages.as_ref(), chunk, MOST_VALUES)
            .map_err(|e| wrong(format!("column {}: {e}", column())))?;
        // No row is empty.
        if values < self.rows { Err(wrong("a column ends too early".to_owned())) } else { Ok(values) }
    }

    /// Where each row's values start, and all values, of a column that has a list in each row.
    fn lists(&self) -> Result<(Vec<u32>, Vec<i32>), ParquetError> {
        let most = self.values()?;
        let (mut definition, mut repetition) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let (mut reader, mut values) = (self.reader()?, Vec::with_capacity(most));
        let mut read = 0;
        while read < self.rows {
            let left = self.rows - read;
            let (definition, repetition) = (Some(&mut definition), Some(&mut repetition));
            match reader.read_records(left, definition, repetition, &mut values)?.0 {
                0 => return Err(wrong("a column ends too early".to_owned())),
                records => read += records,
            }
        }
        if values.len() != repetition.len() {
            return Err(wrong("a row is empty".to_owned()));
        }
        // One more place than there are rows: each number is written where the next start belongs, and stays if it is one.
        let (mut starts, mut found) = (vec![0; self.rows + 2], 0);
        for (at, &level) in (0_u32..).zip(&repetition) {
            starts[found] = at;
            found += usize::from(level == 0);
            if found > self.rows {
                return Err(wrong("a column has more rows than its row group".to_owned()));
            }
        }
        starts.truncate(found);
        starts.push(u32::try_from(values.len()).map_err(|e| wrong(e.to_string()))?);
        Ok((starts, values))
    }
}
