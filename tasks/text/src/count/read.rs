//! Counts read back from disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use base::cancel::CancelToken;
use base::self_check;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use super::Error;
use super::piece::{Met, pieces};
use super::schema::{INDEX, Index, Table, Total};

/// A folder of counts.
#[derive(Debug)]
pub struct Read {
    folder: PathBuf,
    /// What its index says.
    pub index: Index,
    /// Its words, by rank.
    pub words: Vec<Word>,
    cancel: CancelToken,
}

/// A word of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its letters.
    pub letters: String,
    /// How often it occurs.
    pub occurrences: u64,
    /// How many units have it; nothing where pairs are counted by distance.
    pub units: Option<u64>,
}

/// How often two words occur together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Rank of the one word: the smaller one, or that of the word in front.
    pub left: u32,
    /// Rank of the other.
    pub right: u32,
    /// How often, in units of the index's `weight_unit`.
    pub count: u64,
}

impl Read {
    /// Reads the index and the words of a folder.
    ///
    /// # Errors
    /// When something is missing, damaged or of another version.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let index = self_check::read(&folder.join(INDEX))?;
        let mut read =
            Self { folder: folder.to_owned(), index, words: Vec::new(), cancel: CancelToken::NEVER };
        let mut words = Vec::new();
        let metadata = read.metadata(Table::Words)?;
        let groups = (0..metadata.metadata().num_row_groups()).collect();
        for batch in read.batches(Table::Words, metadata, groups)? {
            let batch = batch?;
            let (letters, occurrences) = (batch.column(0).as_string::<i32>(), numbers(&batch, 1));
            let units = batch.column(2).as_primitive::<UInt64Type>();
            for (row, &occurrences) in occurrences.iter().enumerate() {
                let units = (!arrow_array::Array::is_null(units, row)).then(|| units.value(row));
                words.push(Word { letters: letters.value(row).to_owned(), occurrences, units });
            }
        }
        let found = words.len() as u64;
        read.words = words;
        read.expect(Table::Words, found, read.index.words)?;
        Ok(read)
    }

    /// The same, reading until it is cancelled.
    #[must_use]
    pub fn until(self, cancel: CancelToken) -> Self {
        Self { cancel, ..self }
    }

    /// Hands all pairs of a table to `take`, in order.
    ///
    /// # Errors
    /// When the file is missing or damaged, or `take` fails.
    pub fn pairs<E: From<Error>>(
        &self,
        table: Table,
        mut take: impl FnMut(Pair) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut met = Vec::new();
        for piece in pieces(self, table)? {
            met.push(piece.pairs(met.last(), &mut take)?);
        }
        Ok(self.complete(table, &met)?)
    }

    /// Checks that the row groups of a table, of which this was met, follow each other and have what the index says.
    pub(super) fn complete(&self, table: Table, met: &[Met]) -> Result<(), Error> {
        let (mut rows, mut sum, mut last) = (0, 0_u64, None);
        for group in met {
            if let Some(first) = group.first.filter(|first| last.is_some_and(|last| last >= *first)) {
                return Err(self.misplaced(table, rows, first));
            }
            last = group.last.or(last);
            rows += group.rows;
            sum = sum.wrapping_add(group.sum);
        }
        let total = self.total(table);
        self.expect(table, rows, total.rows)?;
        if sum == total.count {
            return Ok(());
        }
        let problem = format!("its counts add up to {sum}, but the index says {}: count again", total.count);
        Err(self.refused(table, problem))
    }

    fn refused(&self, table: Table, problem: String) -> Error {
        Error::Read { file: self.folder.join(table.file()), problem }
    }

    pub(super) fn misplaced(&self, table: Table, row: u64, pair: (u32, u32)) -> Error {
        let problem =
            format!("row {row}: the pair {pair:?} has no such words or is out of order; count again");
        self.refused(table, problem)
    }

    /// What the index says of a table of pairs.
    pub(super) fn total(&self, table: Table) -> Total {
        let total = if table == Table::Pairs { Some(self.index.pairs) } else { self.index.adjacent };
        total.unwrap_or(Total { rows: 0, count: 0 })
    }

    pub(super) fn expect(&self, table: Table, found: u64, expected: u64) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        let problem = format!("has {found} rows, but the index says {expected}: count again");
        Err(self.refused(table, problem))
    }

    fn damaged(&self, table: Table) -> impl Fn(String) -> Error + use<'_> {
        move |problem| self.refused(table, format!("{problem}; count again"))
    }

    fn file(&self, table: Table) -> Result<File, Error> {
        let opened = File::open(self.folder.join(table.file()));
        opened.map_err(|e| self.damaged(table)(format!("cannot be opened: {e}")))
    }

    /// What the file says of itself.
    pub(super) fn metadata(&self, table: Table) -> Result<ArrowReaderMetadata, Error> {
        let damaged = self.damaged(table);
        let metadata = ArrowReaderMetadata::load(&self.file(table)?, ArrowReaderOptions::new())
            .map_err(|e| damaged(e.to_string()))?;
        if metadata.schema().fields() == table.columns().fields() {
            return Ok(metadata);
        }
        Err(damaged("has other columns than expected".to_owned()))
    }

    /// The rows of some row groups of a file with this metadata.
    pub(super) fn batches(
        &self,
        table: Table,
        metadata: ArrowReaderMetadata,
        groups: Vec<usize>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, Error>>, Error> {
        let damaged = self.damaged(table);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file(table)?, metadata);
        let builder = builder.with_row_groups(groups).with_batch_size(1 << 15);
        let batches = builder.build().map_err(|e| damaged(e.to_string()))?;
        Ok(batches.map(move |batch| {
            self.cancel.check()?;
            batch.map_err(|e| damaged(e.to_string()))
        }))
    }
}

pub(super) fn numbers(batch: &RecordBatch, column: usize) -> &[u64] {
    batch.column(column).as_primitive::<UInt64Type>().values()
}
