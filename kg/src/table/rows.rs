//! Rows of four numbers, more of them than memory should hold: kept, sorted and merged, on the disk beyond a limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rayon::slice::ParallelSliceMut;

/// Four numbers, compared from the first to the last.
pub(crate) type Row = [u32; 4];

/// Bytes of a row on the disk.
const ROW_BYTES: u64 = size_of::<Row>() as u64;

/// Rows that are read from one run at a time while runs are merged: 128 KiB.
const CURSOR_ROWS: usize = 1 << 13;

/// Where rows go that memory should not hold.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    /// Folder for files without a name; they vanish with the process.
    pub(crate) folder: PathBuf,
    /// Rows in memory at most, for each set of rows.
    pub(crate) rows: usize,
}

/// Rows in the order in which they came.
#[derive(Debug)]
pub(crate) struct Rows {
    limit: Option<Limit>,
    /// The rows after those in the file.
    memory: Vec<Row>,
    file: Option<File>,
    in_file: u64,
}

impl Rows {
    pub(crate) fn new(limit: Option<Limit>) -> Self {
        Self { limit, memory: Vec::new(), file: None, in_file: 0 }
    }

    pub(crate) fn push(&mut self, row: Row) -> io::Result<()> {
        self.memory.push(row);
        match &self.limit {
            Some(limit) if self.memory.len() >= limit.rows.max(1) => self.spill(),
            _ => Ok(()),
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        let Some(limit) = &self.limit else { return Ok(()) };
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&limit.folder)?),
        };
        file.write_all(bytemuck::cast_slice(&self.memory))?;
        self.in_file += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }

    #[cfg(test)]
    fn len(&self) -> u64 {
        self.in_file + self.memory.len() as u64
    }

    /// Hands all rows to `take`, many at a time, in the order in which they came.
    pub(crate) fn each(&self, mut take: impl FnMut(&[Row]) -> io::Result<()>) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut buffer = vec![[0; 4]; CURSOR_ROWS];
            let mut at = 0;
            while at < self.in_file {
                let rows = read(file, at..self.in_file, &mut buffer)?;
                take(rows)?;
                at += rows.len() as u64;
            }
        }
        take(&self.memory)
    }

    /// All rows as `map` makes them (none: left out), sorted, each once. The rows before are given up.
    pub(crate) fn sorted(mut self, mut map: impl FnMut(Row) -> Option<Row>) -> io::Result<Sorted> {
        let Some(limit) = self.limit.take().filter(|_| self.file.is_some()) else {
            let mut rows: Vec<Row> = std::mem::take(&mut self.memory);
            let mut kept = 0;
            for at in 0..rows.len() {
                if let Some(row) = map(rows[at]) {
                    rows[kept] = row;
                    kept += 1;
                }
            }
            rows.truncate(kept);
            settle(&mut rows);
            return Ok(Sorted { runs: Vec::new(), file: None, memory: rows });
        };
        let mut sorted = Sorted {
            runs: Vec::new(),
            file: Some(tempfile::tempfile_in(&limit.folder)?),
            memory: Vec::new(),
        };
        let mut run = Vec::with_capacity(limit.rows);
        self.memory.shrink_to(0);
        self.each(|rows| {
            for &row in rows {
                run.extend(map(row));
                if run.len() == limit.rows.max(1) {
                    sorted.add(&mut run)?;
                }
            }
            Ok(())
        })?;
        sorted.add(&mut run)?;
        Ok(sorted)
    }
}

fn settle(rows: &mut Vec<Row>) {
    rows.par_sort_unstable();
    rows.dedup();
}

/// Fills `buffer` with the rows from `range.start` on and returns those there are.
fn read<'b>(file: &File, range: std::ops::Range<u64>, buffer: &'b mut [Row]) -> io::Result<&'b [Row]> {
    let rows = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(buffer.len());
    let rows = &mut buffer[..rows];
    file.read_exact_at(bytemuck::cast_slice_mut(rows), range.start * ROW_BYTES)?;
    Ok(rows)
}

/// Sorted rows, each once.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// Sorted parts of the file, as rows from and to.
    runs: Vec<std::ops::Range<u64>>,
    file: Option<File>,
    /// All rows, if there is no file.
    memory: Vec<Row>,
}

impl Sorted {
    fn add(&mut self, run: &mut Vec<Row>) -> io::Result<()> {
        settle(run);
        if let (Some(file), false) = (&mut self.file, run.is_empty()) {
            file.write_all(bytemuck::cast_slice(run))?;
            let start = self.runs.last().map_or(0, |last| last.end);
            self.runs.push(start..start + run.len() as u64);
        }
        run.clear();
        Ok(())
    }

    /// Hands the rows to `take`, one by one, in order.
    pub(crate) fn each(&self, mut take: impl FnMut(Row) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = &self.file else { return self.memory.iter().try_for_each(|&row| take(row)) };
        let mut cursors: Vec<Cursor> = self.runs.iter().map(|run| Cursor::new(run.clone())).collect();
        let mut heap = BinaryHeap::new();
        for (number, cursor) in cursors.iter_mut().enumerate() {
            if let Some(row) = cursor.next(file)? {
                heap.push(Reverse((row, number)));
            }
        }
        let mut last = None;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((row, number)) = *top;
            match cursors[number].next(file)? {
                Some(next) => *top = Reverse((next, number)),
                None => drop(PeekMut::pop(top)),
            }
            if last != Some(row) {
                take(row)?;
                last = Some(row);
            }
        }
        Ok(())
    }
}

/// A place in a run.
struct Cursor {
    left: std::ops::Range<u64>,
    buffer: Vec<Row>,
    at: usize,
}

impl Cursor {
    fn new(run: std::ops::Range<u64>) -> Self {
        Self { left: run, buffer: Vec::new(), at: 0 }
    }

    fn next(&mut self, file: &File) -> io::Result<Option<Row>> {
        if self.at == self.buffer.len() {
            let left = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX);
            self.buffer.resize(left.min(CURSOR_ROWS), [0; 4]);
            let rows = read(file, self.left.clone(), &mut self.buffer)?.len();
            self.buffer.truncate(rows);
            self.left.start += rows as u64;
            self.at = 0;
        }
        let row = self.buffer.get(self.at).copied();
        self.at += 1;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that repeat, in no order.
    fn numbers(count: u32) -> Vec<Row> {
        (0..count)
            .map(|i| i.wrapping_mul(2_654_435_761))
            .map(|x| [x >> 28, (x >> 22) & 63, x & 7, 1])
            .collect()
    }

    fn filled(limit: Option<Limit>) -> Rows {
        let mut rows = Rows::new(limit);
        numbers(50_000).into_iter().for_each(|row| rows.push(row).unwrap());
        rows
    }

    #[test]
    fn the_disk_changes_neither_order_nor_rows() {
        let folder = tempfile::tempdir().unwrap();
        let even = |row: Row| row[2].is_multiple_of(2).then_some([row[1], row[0], row[2], row[3]]);
        let all = |rows: &Sorted| {
            let mut all = Vec::new();
            rows.each(|row| {
                all.push(row);
                Ok(())
            })
            .unwrap();
            all
        };
        let expected = all(&filled(None).sorted(even).unwrap());
        assert!(expected.is_sorted_by(|a, b| a < b) && expected.len() > 1000);
        for limit in [1, 7, 999, 49_999, 50_000, 60_000] {
            let rows = filled(Some(Limit { folder: folder.path().to_owned(), rows: limit }));
            assert_eq!(rows.len(), 50_000);
            let mut came = Vec::new();
            rows.each(|rows| {
                came.extend_from_slice(rows);
                Ok(())
            })
            .unwrap();
            assert_eq!(came, numbers(50_000), "{limit}");
            if limit > 1 {
                assert_eq!(all(&rows.sorted(even).unwrap()), expected, "{limit}");
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the files have no name");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let mut rows = Rows::new(Some(Limit { folder: "/nowhere/at/all".into(), rows: 2 }));
        rows.push([0; 4]).unwrap();
        assert_eq!(rows.push([0; 4]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
