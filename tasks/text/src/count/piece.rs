//! The row groups of tables of pairs, several of which may be read side by side.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::Error;
use super::read::{Pair, Read, numbers};
use super::schema::Table;

/// A row group of a table of pairs.
#[derive(Debug)]
pub(super) struct Piece<'r> {
    read: &'r Read,
    table: Table,
    metadata: ArrowReaderMetadata,
    group: usize,
    /// Rows in the groups before it.
    before: usize,
    /// How many it has.
    pub(super) rows: usize,
}

/// What was met in a row group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Met {
    pub(super) first: Option<(u32, u32)>,
    pub(super) last: Option<(u32, u32)>,
    pub(super) rows: u64,
    /// Of all counts, beyond 64 bits begun anew.
    pub(super) sum: u64,
}

/// The row groups of a table of pairs, in order.
pub(super) fn pieces(read: &Read, table: Table) -> Result<Vec<Piece<'_>>, Error> {
    let metadata = read.metadata(table)?;
    let mut before = 0;
    let groups = metadata.metadata().row_groups().iter().enumerate();
    let pieces = groups.map(|(group, of)| {
        let rows = usize::try_from(of.num_rows()).unwrap_or(0);
        let piece = Piece { read, table, metadata: metadata.clone(), group, before, rows };
        before = rows.saturating_add(before);
        piece
    });
    let pieces = pieces.collect();
    // Before room is made for so many.
    read.expect(table, before as u64, read.total(table).rows)?;
    Ok(pieces)
}

impl Piece<'_> {
    /// Hands all of its pairs to `take`, in order. What was met in the group in front is given where that was read before.
    pub(super) fn pairs<E: From<Error>>(
        &self,
        in_front: Option<&Met>,
        mut take: impl FnMut(Pair) -> Result<(), E>,
    ) -> Result<Met, E> {
        let words = self.read.index.words;
        let mut last = in_front.and_then(|met| met.last);
        let mut met = Met::default();
        for batch in self.read.batches(self.table, self.metadata.clone(), vec![self.group])? {
            let batch = batch?;
            let ranks = |column| batch.column(column).as_primitive::<UInt32Type>().values().iter().copied();
            for ((left, right), &count) in ranks(0).zip(ranks(1)).zip(numbers(&batch, 2)) {
                let known = u64::from(left.max(right)) < words;
                if !known || last.is_some_and(|last| last >= (left, right)) {
                    let row = self.before as u64 + met.rows;
                    return Err(self.read.misplaced(self.table, row, (left, right)).into());
                }
                last = Some((left, right));
                met.first = met.first.or(last);
                met.rows += 1;
                met.sum = met.sum.wrapping_add(count);
                take(Pair { left, right, count })?;
            }
        }
        Ok(Met { last, ..met })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
    use base::cancel::CancelToken;
    use kg::table::parquet_file::Writer;

    use super::super::{Config, Counts, Limits, Room, Share, count, join};
    use super::*;

    pub(in super::super) fn room(folder: &Path) -> Room {
        Room {
            memory: super::super::LEAST_MEMORY,
            threads: 2,
            folder: folder.to_owned(),
            cancel: CancelToken::NEVER,
        }
    }

    /// Writes rows in groups of two.
    pub(in super::super) fn write(folder: &Path, rows: &[(u32, u32, u64)]) {
        let (file, footer) = (folder.join(Table::Pairs.file()), Table::Pairs.footer());
        let mut writer = Writer::create(&file, Table::Pairs.columns(), 2, &footer).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2))),
        ];
        writer.write_columns(columns).unwrap();
        writer.finish().unwrap();
    }

    /// Makes the counts of three words in a folder.
    pub(in super::super) fn three_words(folder: &Path) -> PathBuf {
        std::fs::create_dir(folder).unwrap();
        let counted: Result<Counts, Error> =
            count(&Config::default(), Share::Part, &room(folder), |feed| feed.text("fever cough pain"));
        counted.unwrap().write(folder).unwrap();
        folder.to_owned()
    }

    #[test]
    fn row_groups_out_of_order_or_missing_are_an_error_side_by_side_too() {
        let dir = tempfile::tempdir().unwrap();
        let folder = three_words(&dir.path().join("part"));
        let limits = Limits { min_count: 1, max_words: None };
        let failed = || {
            let alone = Read::open(&folder).unwrap().pairs(Table::Pairs, |_| Ok::<(), Error>(())).err();
            let joined = join(std::slice::from_ref(&folder), Share::Whole, limits, &room(dir.path())).err();
            let [alone, joined] = [alone, joined].map(|error| error.map(|error| error.to_string()));
            assert_eq!(alone, joined);
            alone.unwrap_or_default()
        };
        write(&folder, &[(0, 1, 1), (0, 2, 1), (1, 2, 1)]);
        assert_eq!(failed(), "");
        write(&folder, &[(0, 2, 1), (1, 2, 1), (0, 1, 1)]);
        assert!(
            failed().contains("row 2: the pair (0, 1) has no such words or is out of order"),
            "{}",
            failed()
        );
        write(&folder, &[(0, 1, 1), (0, 1, 1), (1, 2, 1)]);
        assert!(failed().contains("row 1: the pair (0, 1)"), "{}", failed());
        write(&folder, &[(0, 1, 1), (0, 2, 1), (1, 3, 1)]);
        assert!(failed().contains("row 2: the pair (1, 3)"), "{}", failed());
        write(&folder, &[(0, 1, 1), (0, 2, 1)]);
        assert!(failed().contains("has 2 rows, but the index says 3"), "{}", failed());
        write(&folder, &[(0, 1, 1), (0, 2, 1), (1, 2, 2)]);
        assert!(failed().contains("its counts add up to 4, but the index says 3"), "{}", failed());
    }
}
