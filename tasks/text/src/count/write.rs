//! Counts put on disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use base::self_check;
use kg::table::parquet_file::{self, Writer};
use kg::table::row_group::{Groups, RowGroup};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSlice as _;

use super::accumulate::ranks;
use super::pass::Counts;
use super::run::{BUFFER, Entry};
use super::runs::Runs;
use super::schema::{FORMAT, INDEX, Index, Table, Total, VERSION};
use super::table::{self, BATCH_ROWS, GROUP_ROWS};
use super::{Error, Room};

impl Counts {
    /// Writes them into `folder`, the index last; equal counts give equal bytes.
    ///
    /// # Errors
    /// When the disk refuses or a sum is beyond 64 bits.
    pub fn write(self, folder: &Path) -> Result<Index, Error> {
        self.write_words(folder)?;
        let pairs = write_pairs(folder, Table::Pairs, &self.pairs)?;
        let adjacent =
            self.adjacent.as_ref().map(|runs| write_pairs(folder, Table::Adjacent, runs)).transpose()?;
        let numbers = 0..u32::try_from(self.lexicon.len()).map_err(|_| Error::TooMany)?;
        let mut index = Index {
            format: FORMAT.to_owned(),
            version: VERSION,
            xxh3: String::new(),
            corpus: self.of.corpus.digits(),
            shard: self.of.share.shard(),
            extent: self.of.share.extent(),
            documents: self.of.documents,
            segments: self.segments,
            units: self.units,
            skipped: self.skipped,
            occurrences: numbers.map(|n| self.lexicon.count(n)).sum(),
            distinct: self.lexicon.len() as u64,
            weight_unit: self.config.unit(),
            config: self.config,
            words: self.ranked.len() as u64,
            pairs,
            adjacent,
        };
        self_check::write(&folder.join(INDEX), &mut index)?;
        Ok(index)
    }

    fn write_words(&self, folder: &Path) -> Result<(), Error> {
        let words = self.ranked.iter().enumerate().map(|(rank, &number)| {
            let units = self.units_of.get(rank).copied();
            (self.lexicon.word(number), self.lexicon.count(number), units)
        });
        Ok(table::write_words(create(folder, Table::Words)?, words)?)
    }
}

fn create(folder: &Path, table: Table) -> Result<Writer, parquet_file::Error> {
    Writer::create(&folder.join(table.file()), table.columns(), GROUP_ROWS, &table.footer())
}

/// The sum of all runs: ranges of keys are added up, and row groups encoded, side by side.
fn write_pairs(folder: &Path, table: Table, runs: &Runs) -> Result<Total, Error> {
    let (path, schema, footer) = (folder.join(table.file()), table.columns(), table.footer());
    let mut file = Groups::create(&path, &schema, &footer)?;
    let mut total = Total { rows: 0, count: 0 };
    let at_once = at_once(runs);
    let pool = runs.room().pool(at_once)?;
    let encode = |entries: &[Entry]| {
        RowGroup::encode(&schema, entries.chunks(BATCH_ROWS).map(columns), &footer)
            .map_err(|source| parquet_file::Error::Encode { file: path.clone(), source })
    };
    let mut write = |entries: &[Entry]| {
        let groups: Result<Vec<RowGroup>, _> =
            pool.install(|| entries.par_chunks(GROUP_ROWS).map(encode).collect());
        groups?.iter().try_for_each(|group| file.append(group))?;
        total.rows += entries.len() as u64;
        let sum = entries.iter().try_fold(total.count, |sum, entry| sum.checked_add(entry.1));
        total.count = sum.ok_or(Error::Overflow)?;
        Ok::<(), Error>(())
    };
    let mut waiting: Vec<Entry> = Vec::new();
    for ranges in runs.ranges(GROUP_ROWS / 2).chunks(2 * at_once) {
        let summed: Result<Vec<_>, Error> =
            pool.install(|| ranges.par_iter().map(|keys| runs.entries(keys.clone())).collect());
        summed?.iter().for_each(|entries| waiting.extend_from_slice(entries));
        // A group for each thread, or none yet.
        let whole = waiting.len() / (at_once * GROUP_ROWS) * at_once * GROUP_ROWS;
        write(&waiting[..whole])?;
        waiting.drain(..whole);
    }
    write(&waiting)?;
    file.finish()?;
    Ok(total)
}

/// Bytes that a row group takes while it is made: its entries, as they are and as columns, and the encoder's own.
const GROUP_BYTES: usize = GROUP_ROWS * 64;

/// As many row groups are made side by side as there are threads and room.
fn at_once(runs: &Runs) -> usize {
    let Room { memory, threads, .. } = *runs.room();
    (memory / 4 / (GROUP_BYTES + runs.len() * BUFFER)).clamp(1, threads)
}

fn columns(entries: &[Entry]) -> Vec<ArrayRef> {
    let ranks = || entries.iter().map(|entry| ranks(entry.0));
    vec![
        Arc::new(UInt32Array::from_iter_values(ranks().map(|(left, _)| left))),
        Arc::new(UInt32Array::from_iter_values(ranks().map(|(_, right)| right))),
        Arc::new(UInt64Array::from_iter_values(entries.iter().map(|entry| entry.1))),
    ]
}
