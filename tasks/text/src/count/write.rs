//! Counts put on disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use base::self_check;
use kg::table::parquet_file::{self, Writer};

use super::Error;
use super::accumulate::ranks;
use super::pass::Counts;
use super::runs::Runs;
use super::schema::{FORMAT, INDEX, Index, Table, Total, VERSION};
use super::table::{self, BATCH_ROWS, GROUP_ROWS};

impl Counts {
    /// Writes them into `folder`, the index last; equal counts give equal bytes.
    ///
    /// # Errors
    /// When the disk refuses or a sum is beyond 64 bits.
    pub fn write(mut self, folder: &Path) -> Result<Index, Error> {
        self.write_words(folder)?;
        let pairs = write_pairs(folder, Table::Pairs, &mut self.pairs)?;
        let adjacent =
            self.adjacent.as_mut().map(|runs| write_pairs(folder, Table::Adjacent, runs)).transpose()?;
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

fn write_pairs(folder: &Path, table: Table, runs: &mut Runs) -> Result<Total, Error> {
    let mut writer = create(folder, table)?;
    let (mut left, mut right, mut count) = (Vec::new(), Vec::new(), Vec::new());
    let mut total = Total { rows: 0, count: 0 };
    runs.merge(|key, times| {
        let (a, b) = ranks(key);
        left.push(a);
        right.push(b);
        count.push(times);
        total.rows += 1;
        total.count = total.count.checked_add(times).ok_or(Error::Overflow)?;
        if left.len() == BATCH_ROWS {
            writer.write_columns(columns([&mut left, &mut right], &mut count))?;
        }
        Ok(())
    })?;
    writer.write_columns(columns([&mut left, &mut right], &mut count))?;
    writer.finish()?;
    Ok(total)
}

fn columns(ranks: [&mut Vec<u32>; 2], count: &mut Vec<u64>) -> Vec<ArrayRef> {
    let [left, right] = ranks.map(|ranks| Arc::new(UInt32Array::from(std::mem::take(ranks))));
    vec![left, right, Arc::new(UInt64Array::from(std::mem::take(count)))]
}
