//! Sorted runs of counted keys in temporary files, and their sum in order: of all keys, or of ranges of them side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Error, Room};

/// So many runs are merged into a longer one before there are more of their kind: each open one has a buffer. More than four threads share as many as four have, since
/// each run is an open file.
const MOST_RUNS: usize = 48;
/// Every thread may have as many all the same, and as many of each longer kind.
const LEAST_RUNS: usize = 8;
/// Bytes that are read from a run at a time.
pub(super) const BUFFER: usize = 1 << 14;
/// Entries of a run after which it can be entered again.
const MARK: usize = 1 << 9;
/// Bytes that an entry takes at most.
const MOST_BYTES: usize = 20;
/// Every key.
const ALL: Range<u64> = 0..u64::MAX;

/// Runs; each has every key once, in ascending order.
#[derive(Debug)]
pub(super) struct Runs {
    /// Runs as they came, then those of so many of these, and so on: a key is written again as seldom as the number of kinds.
    kinds: Vec<Vec<Run>>,
    room: Room,
    most: usize,
}

impl Runs {
    /// None yet; those to come lie in the room's folder, without names.
    pub(super) fn new(room: &Room) -> Self {
        let most = (MOST_RUNS * 4 / room.threads.max(1)).clamp(LEAST_RUNS, MOST_RUNS);
        Self { kinds: Vec::new(), room: room.clone(), most }
    }

    /// What was to be counted with.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.iter().map(Vec::len).sum()
    }

    /// Keeps a run. Keys must ascend.
    pub(super) fn push(&mut self, mut entries: impl Iterator<Item = (u64, u64)>) -> Result<(), Error> {
        let refused = Error::temporary(&self.room.folder);
        let mut run = Writing::new(&self.room.folder).map_err(&refused)?;
        let mut keys = 0;
        entries.try_for_each(|(key, count)| {
            keys += 1;
            self.room.cancel.check_at(keys)?;
            run.push(key, count).map_err(&refused)
        })?;
        self.keep(0, run.finish().map_err(&refused)?);
        for kind in 0.. {
            let most = if kind == 0 { self.most } else { LEAST_RUNS };
            if self.kinds.get(kind).is_none_or(|runs| runs.len() < most) {
                break;
            }
            let full = std::mem::take(&mut self.kinds[kind]);
            let mut run = Writing::new(&self.room.folder).map_err(&refused)?;
            self.add_up(&full, ALL, |key, count| run.push(key, count).map_err(&refused))?;
            self.keep(kind + 1, run.finish().map_err(&refused)?);
        }
        Ok(())
    }

    fn keep(&mut self, kind: usize, run: Run) {
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, Vec::new);
        }
        self.kinds[kind].push(run);
    }

    /// Takes over the runs of another.
    pub(super) fn append(&mut self, other: Self) {
        for (kind, runs) in other.kinds.into_iter().enumerate() {
            runs.into_iter().for_each(|run| self.keep(kind, run));
        }
    }

    /// Ranges of keys that follow each other and are all there are, each with about `entries` entries of all runs together.
    pub(super) fn ranges(&self, entries: usize) -> Vec<Range<u64>> {
        let marks = self.kinds.iter().flatten().flat_map(|run| run.marks.iter().skip(1));
        let mut lasts: Vec<u64> = marks.map(|mark| mark.last).collect();
        lasts.sort_unstable();
        let step = (entries / MARK).max(1);
        let mut cuts: Vec<u64> = lasts.chunks_exact(step).map(|some| some[step - 1] + 1).collect();
        cuts.dedup();
        let starts = std::iter::once(ALL.start).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain(std::iter::once(ALL.end));
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The keys of a range with the sums of their counts.
    pub(super) fn entries(&self, keys: Range<u64>) -> Result<Vec<(u64, u64)>, Error> {
        let mut entries = Vec::new();
        self.add_up(self.kinds.iter().flatten(), keys, |key, sum| {
            entries.push((key, sum));
            Ok(())
        })?;
        Ok(entries)
    }

    fn add_up<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r Run>,
        keys: Range<u64>,
        mut take: impl FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let refused = Error::temporary(&self.room.folder);
        let mut open: Vec<Reading> = Vec::new();
        let mut heap = BinaryHeap::new();
        for run in runs {
            let mut reading = Reading::new(run, keys.end);
            if let Some((key, count)) = reading.seek(keys.start).map_err(&refused)? {
                heap.push(Reverse((key, open.len(), count)));
                open.push(reading);
            }
        }
        let mut current: Option<(u64, u64)> = None;
        let mut keys = 0;
        while let Some(mut top) = heap.peek_mut() {
            keys += 1;
            self.room.cancel.check_at(keys)?;
            let Reverse((key, run, count)) = *top;
            match open[run].next().map_err(&refused)? {
                Some((next, count)) => *top = Reverse((next, run, count)),
                None => {
                    PeekMut::pop(top);
                }
            }
            current = match current {
                Some((last, sum)) if last == key => {
                    Some((key, sum.checked_add(count).ok_or(Error::Overflow)?))
                }
                Some((last, sum)) => {
                    take(last, sum)?;
                    Some((key, count))
                }
                None => Some((key, count)),
            };
        }
        current.map_or(Ok(()), |(key, sum)| take(key, sum))
    }
}

/// A sorted run: the steps between keys and the counts, as variable-length numbers.
#[derive(Debug)]
struct Run {
    file: File,
    /// Where it can be entered: in front of every [`MARK`]th entry, the first included.
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// The key in front; 0 at the start.
    last: u64,
    /// Bytes in front.
    at: u64,
}

/// A run in the making.
struct Writing {
    file: BufWriter<File>,
    marks: Vec<Mark>,
    entries: usize,
    end: Mark,
}

impl Writing {
    fn new(folder: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?);
        Ok(Self { file, marks: Vec::new(), entries: 0, end: Mark::default() })
    }

    fn push(&mut self, key: u64, count: u64) -> io::Result<()> {
        if self.entries.is_multiple_of(MARK) {
            self.marks.push(self.end);
        }
        let mut bytes = [0; MOST_BYTES];
        let step = put(key - self.end.last, &mut bytes);
        let length = step + put(count, &mut bytes[step..]);
        self.entries += 1;
        self.end = Mark { last: key, at: self.end.at + length as u64 };
        self.file.write_all(&bytes[..length])
    }

    fn finish(self) -> io::Result<Run> {
        Ok(Run { file: self.file.into_inner().map_err(io::IntoInnerError::into_error)?, marks: self.marks })
    }
}

fn put(mut number: u64, bytes: &mut [u8]) -> usize {
    let mut length = 0;
    while number >= 0x80 {
        bytes[length] = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length] = (number & 0x7f) as u8;
    length + 1
}

/// A place in a run. Several may read one run.
struct Reading<'r> {
    file: &'r File,
    marks: &'r [Mark],
    /// The key in front, and how far the file was read.
    reached: Mark,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were made use of.
    used: usize,
    /// Keys below this are read.
    end: u64,
}

impl<'r> Reading<'r> {
    fn new(run: &'r Run, end: u64) -> Self {
        let (file, marks) = (&run.file, run.marks.as_slice());
        Self { file, marks, reached: Mark::default(), buffer: Vec::new(), used: 0, end }
    }

    /// The first entry from `start` on.
    fn seek(&mut self, start: u64) -> io::Result<Option<(u64, u64)>> {
        let in_front = self.marks.partition_point(|mark| mark.last < start).saturating_sub(1);
        self.reached = self.marks.get(in_front).copied().unwrap_or_default();
        loop {
            match self.next()? {
                Some((key, _)) if key < start => {}
                entry => return Ok(entry),
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        if self.buffer.len() - self.used < MOST_BYTES {
            self.fill()?;
        }
        if self.used == self.buffer.len() {
            return Ok(None);
        }
        self.reached.last += self.number()?;
        let count = self.number()?;
        Ok((self.reached.last < self.end).then_some((self.reached.last, count)))
    }

    /// Reads on; fewer bytes than an entry may have are left only at the end.
    fn fill(&mut self) -> io::Result<()> {
        let left = self.buffer.len() - self.used;
        self.buffer.copy_within(self.used.., 0);
        self.buffer.resize(BUFFER, 0);
        self.used = 0;
        let mut filled = left;
        while filled < MOST_BYTES {
            match self.file.read_at(&mut self.buffer[filled..], self.reached.at) {
                Ok(0) => break,
                Ok(read) => {
                    filled += read;
                    self.reached.at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }

    fn number(&mut self) -> io::Result<u64> {
        let (mut number, mut shift) = (0, 0);
        for (place, &byte) in self.buffer[self.used..].iter().enumerate() {
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                self.used += place + 1;
                return Ok(number);
            }
            shift += 7;
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::cancel::CancelToken;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn room(cancel: CancelToken) -> Room {
        Room { memory: 0, threads: 1, folder: std::env::temp_dir(), cancel }
    }

    #[test]
    fn runs_add_up_in_order_however_many_there_are() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        for run in 0..200u64 {
            runs.push(
                [(run % 7, 1), (100 + run % 3, 1 << 40), (u64::MAX - 1, u64::from(run == 0))].into_iter(),
            )
            .unwrap();
        }
        assert_eq!(runs.kinds.iter().map(Vec::len).collect::<Vec<_>>(), [200 % MOST_RUNS, 200 / MOST_RUNS]);
        let all = runs.entries(ALL).unwrap();
        assert!(all.is_sorted());
        assert_eq!(all.iter().filter(|(key, _)| *key < 7).map(|(_, count)| count).sum::<u64>(), 200);
        assert_eq!(
            all.iter().filter(|(key, _)| (100..103).contains(key)).map(|(_, c)| c >> 40).sum::<u64>(),
            200
        );
        assert_eq!(all.last(), Some(&(u64::MAX - 1, 1)));
        assert!(Runs::new(&room(CancelToken::NEVER)).entries(ALL).unwrap().is_empty());
    }

    #[test]
    fn ranges_side_by_side_are_the_sum_of_all() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        let mut expected = BTreeMap::new();
        for run in 1..=20u64 {
            let entries: Vec<(u64, u64)> =
                (0..run * 300).map(|n| (n * n % 97 + n * (100 + run), n * run)).collect();
            for (key, count) in &entries {
                *expected.entry(*key).or_insert(0) += count;
            }
            runs.push(entries.into_iter()).unwrap();
        }
        let expected: Vec<(u64, u64)> = expected.into_iter().collect();
        for entries in [0, 1, 700, 5_000, usize::MAX] {
            let ranges = runs.ranges(entries);
            assert_eq!(ranges.len() > 20, entries <= 700, "{}", ranges.len());
            assert!(ranges[0].start == 0 && ranges[ranges.len() - 1].end == u64::MAX);
            assert!(ranges.windows(2).all(|two| two[0].end == two[1].start && two[0].start < two[0].end));
            let all: Vec<_> = ranges.into_iter().flat_map(|keys| runs.entries(keys).unwrap()).collect();
            assert!(all == expected, "{entries}");
        }
        // Wherever they begin and end.
        for keys in [5..5, 0..1, 101..102, 1_000..250_000, 400_000..u64::MAX] {
            let within: Vec<_> = expected.iter().copied().filter(|(key, _)| keys.contains(key)).collect();
            assert_eq!(runs.entries(keys).unwrap(), within);
        }
    }

    #[test]
    fn a_sum_beyond_64_bits_is_an_error() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        runs.push([(1, u64::MAX)].into_iter()).unwrap();
        runs.push([(1, 1)].into_iter()).unwrap();
        assert!(matches!(runs.entries(ALL), Err(Error::Overflow)));
    }

    #[test]
    fn a_long_run_and_a_long_sum_hear_that_they_are_to_stop() {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        let mut runs = Runs::new(&room(CancelToken::when(move || flag.load(Ordering::Relaxed))));
        let many = || (0..100_000).map(|key| (key, 1));
        runs.push(many()).unwrap();
        asked.store(true, Ordering::Relaxed);
        assert!(matches!(runs.push(many()), Err(Error::Interrupted(_))));
        assert!(matches!(runs.entries(ALL), Err(Error::Interrupted(_))));
    }
}
