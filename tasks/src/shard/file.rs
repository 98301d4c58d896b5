//! Shards put together from row groups that were encoded apart, perhaps at the same time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use base::self_check::check;
use base::whole;
use kg::table::page_crc::Sealed;
use kg::table::row_group::RowGroup;
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempPath};

use super::index::{FileIndex, GroupIndex};
use super::pages::MOST_VALUES;
use crate::Error;

/// Where a file ends and the next begins. Row groups are never divided, so a file has at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Size {
    /// A file ends after the last row group with which it has at most this many rows.
    Rows(u64),
    /// A file ends after the last row group with which it has at most this many bytes, the footer not counted.
    Bytes(u64),
}

impl Size {
    /// The number.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Size::Rows(most) | Size::Bytes(most) => most,
        }
    }
}

/// A row group of some items.
#[derive(Debug)]
pub struct Encoded {
    group: RowGroup,
    items: u32,
    rows: u32,
}

impl Encoded {
    /// Encodes the rows of `items` items. `pairs` go into the footer of the file that the group comes into.
    ///
    /// # Errors
    /// When the rows cannot be encoded.
    pub fn new(rows: &RecordBatch, items: u32, pairs: &[(&str, String)]) -> Result<Self, Error> {
        Self::encode(rows, items, pairs)
            .map_err(|error| Error::Unfit(format!("rows cannot be encoded: {error}")))
    }

    fn encode(rows: &RecordBatch, items: u32, pairs: &[(&str, String)]) -> Result<Self, ParquetError> {
        // What the reader of shards refuses is not written.
        for (column, field) in rows.columns().iter().zip(rows.schema().fields()) {
            let values = column.as_list_opt::<i32>().map_or(0, |lists| lists.values().len() as u64);
            if values > MOST_VALUES {
                let problem = format!(
                    "a row group has {values} values in column {}, expected at most {MOST_VALUES}: lower items_per_group",
                    field.name()
                );
                return Err(ParquetError::General(problem));
            }
        }
        let group = RowGroup::encode(&rows.schema(), [rows.columns().to_vec()], pairs)?;
        let rows = u32::try_from(rows.num_rows()).map_err(|e| ParquetError::General(e.to_string()))?;
        Ok(Self { group, items, rows })
    }
}

/// Counts, hashes and passes on what is written.
#[derive(Debug)]
struct Counted {
    to: BufWriter<NamedTempFile>,
    bytes: u64,
    whole: blake3::Hasher,
    /// What tools of others check a file with.
    sha256: Sha256,
    /// What came since the last row group.
    part: Vec<u8>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        self.whole.update(&bytes[..written]);
        self.sha256.update(&bytes[..written]);
        self.part.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A file that is complete but has no name, since that says how many there are.
#[derive(Debug)]
struct Unnamed {
    temporary: TempPath,
    index: FileIndex,
}

/// The file that is being written.
#[derive(Debug)]
struct Open {
    sealed: Sealed<Counted>,
    groups: Vec<GroupIndex>,
    rows: u64,
}

/// The files of one task and part.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    size: Size,
    open: Option<Open>,
    done: Vec<Unnamed>,
}

impl Files {
    /// Files in `folder`, which exists, none so far.
    #[must_use]
    pub fn new(folder: &Path, size: Size) -> Self {
        Self { folder: folder.to_owned(), size, open: None, done: Vec::new() }
    }

    /// Appends a row group, to a new file if the present one has no room for it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&mut self, group: &Encoded) -> Result<(), Error> {
        let full = |open: &Open| match self.size {
            Size::Rows(most) => open.rows + u64::from(group.rows) > most,
            Size::Bytes(most) => open.sealed.bytes() + group.group.size() > most,
        };
        if self.open.as_ref().is_some_and(full) {
            self.close()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(group)?,
        };
        let mut append = || {
            group.group.append_to(&mut open.sealed)?;
            Ok(std::mem::take(&mut open.sealed.sink()?.part))
        };
        let pages = append().map_err(|e| self.encode(&e))?;
        // The file's first four bytes are Parquet's mark.
        let pages = if open.groups.is_empty() { &pages[4..] } else { &pages };
        let (items, rows) = (group.items, group.rows);
        open.groups.push(GroupIndex { items, rows, bytes: pages.len() as u64, xxh3: check(pages) });
        open.rows += u64::from(rows);
        self.open = Some(open);
        Ok(())
    }

    fn begin(&self, like: &Encoded) -> Result<Open, Error> {
        let temporary = whole::temporary(&self.folder).map_err(|e| self.refused(&e))?;
        let to = BufWriter::new(temporary);
        let sink =
            Counted { to, bytes: 0, whole: blake3::Hasher::new(), sha256: Sha256::new(), part: Vec::new() };
        let sealed = like.group.begin(sink).map_err(|e| self.encode(&e))?;
        Ok(Open { sealed, groups: Vec::new(), rows: 0 })
    }

    /// Ends the present file: footer, fsync.
    fn close(&mut self) -> Result<(), Error> {
        let Some(Open { sealed, groups, .. }) = self.open.take() else { return Ok(()) };
        let sink = sealed.finish().map_err(|e| self.encode(&e))?;
        let (bytes, footer) = (sink.bytes, check(&sink.part));
        let blake3 = sink.whole.finalize().to_hex().to_string();
        let sha256 = sink.sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let temporary = sink.to.into_inner().map_err(|e| self.refused(e.error()))?;
        temporary.as_file().sync_all().map_err(|e| self.refused(&e))?;
        let index = FileIndex { path: String::new(), bytes, blake3, sha256, footer, groups };
        self.done.push(Unnamed { temporary: temporary.into_temp_path(), index });
        Ok(())
    }

    /// Gives all files their names, `PART-00000-of-0000N.parquet`, and returns what they are; `below`, unless empty, stands before the
    /// names in the index.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(mut self, part: &str, below: &str) -> Result<Vec<FileIndex>, Error> {
        self.close()?;
        let done = std::mem::take(&mut self.done);
        let all = done.len();
        let mut files = Vec::with_capacity(all);
        for (number, Unnamed { temporary, mut index }) in done.into_iter().enumerate() {
            let name = format!("{part}-{number:05}-of-{all:05}.parquet");
            temporary.persist(self.folder.join(&name)).map_err(|e| self.refused(&e.error))?;
            index.path = if below.is_empty() { name } else { format!("{below}/{name}") };
            files.push(index);
        }
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(|e| self.refused(&e))?;
        Ok(files)
    }

    fn encode(&self, source: &ParquetError) -> Error {
        let remedy = "make sure that there is room and run again";
        Error::at(&self.folder, format!("cannot write a shard: {source}"), remedy)
    }

    fn refused(&self, source: &io::Error) -> Error {
        let remedy = "make sure that it is writable and has room, and run again";
        Error::at(&self.folder, format!("cannot write a shard: {source}"), remedy)
    }
}
