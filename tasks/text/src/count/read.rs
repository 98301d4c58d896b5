//! Counts read back from disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use base::cancel::CancelToken;
use base::self_check;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::Error;
use super::schema::{INDEX, Index, Table};

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
        read.batches::<Error>(Table::Words, |batch| {
            let (letters, occurrences) = (batch.column(0).as_string::<i32>(), numbers(batch, 1));
            let units = batch.column(2).as_primitive::<UInt64Type>();
            for (row, &occurrences) in occurrences.iter().enumerate() {
                let units = (!arrow_array::Array::is_null(units, row)).then(|| units.value(row));
                words.push(Word { letters: letters.value(row).to_owned(), occurrences, units });
            }
            Ok(())
        })?;
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
        let (mut rows, mut sum, mut last) = (0, 0u64, None);
        self.batches::<E>(table, |batch| {
            let ranks = |column| batch.column(column).as_primitive::<UInt32Type>().values().iter().copied();
            for ((left, right), &count) in ranks(0).zip(ranks(1)).zip(numbers(batch, 2)) {
                let known = u64::from(left.max(right)) < self.index.words;
                if !known || last.is_some_and(|last| last >= (left, right)) {
                    let problem = format!("row {rows}: the pair ({left}, {right}) has no such words or is out of order; count again");
                    return Err(Error::Read { file: self.folder.join(table.file()), problem }.into());
                }
                last = Some((left, right));
                rows += 1;
                sum = sum.wrapping_add(count);
                take(Pair { left, right, count })?;
            }
            Ok(())
        })?;
        let expected = if table == Table::Pairs { Some(self.index.pairs) } else { self.index.adjacent };
        let expected = expected.map_or((0, 0), |total| (total.rows, total.count));
        self.expect(table, rows, expected.0)?;
        if sum != expected.1 {
            let problem =
                format!("its counts add up to {sum}, but the index says {}: count again", expected.1);
            return Err(Error::Read { file: self.folder.join(table.file()), problem }.into());
        }
        Ok(())
    }

    fn expect(&self, table: Table, found: u64, expected: u64) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        let problem = format!("has {found} rows, but the index says {expected}: count again");
        Err(Error::Read { file: self.folder.join(table.file()), problem })
    }

    fn batches<E: From<Error>>(
        &self,
        table: Table,
        mut take: impl FnMut(&RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = self.folder.join(table.file());
        let damaged =
            |problem: String| Error::Read { file: file.clone(), problem: format!("{problem}; count again") };
        let opened = File::open(&file).map_err(|e| damaged(format!("cannot be opened: {e}")))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(|e| damaged(e.to_string()))?;
        if builder.schema().fields() != table.columns().fields() {
            return Err(damaged("has other columns than expected".to_owned()).into());
        }
        let reader = builder.with_batch_size(1 << 15).build().map_err(|e| damaged(e.to_string()))?;
        for batch in reader {
            self.cancel.check().map_err(Error::from)?;
            take(&batch.map_err(|e| damaged(e.to_string()))?)?;
        }
        Ok(())
    }
}

fn numbers(batch: &RecordBatch, column: usize) -> &[u64] {
    batch.column(column).as_primitive::<UInt64Type>().values()
}
