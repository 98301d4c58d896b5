//! Sorted runs of counted keys in temporary files, and their sum in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use base::cancel::CancelToken;

use super::{Error, Room};

/// So many runs are merged into a longer one before there are more of their kind: each open one has a buffer. More than four threads share as many as four have, since
/// each run is an open file.
const MOST_RUNS: usize = 48;
/// Every thread may have as many all the same, and as many of each longer kind.
const LEAST_RUNS: usize = 8;
const BUFFER: usize = 1 << 16;

/// Runs; each has every key once, in ascending order.
#[derive(Debug)]
pub(super) struct Runs {
    /// Runs as they came, then those of so many of these, and so on: a key is written again as seldom as the number of kinds.
    kinds: Vec<Vec<File>>,
    folder: PathBuf,
    cancel: CancelToken,
    most: usize,
}

impl Runs {
    /// None yet; those to come lie in the room's folder, without names.
    pub(super) fn new(room: &Room) -> Self {
        let most = (MOST_RUNS * 4 / room.threads.max(1)).clamp(LEAST_RUNS, MOST_RUNS);
        Self { kinds: Vec::new(), folder: room.folder.clone(), cancel: room.cancel.clone(), most }
    }

    /// Keeps a run. Keys must ascend.
    pub(super) fn push(&mut self, mut entries: impl Iterator<Item = (u64, u64)>) -> Result<(), Error> {
        let refused = Error::temporary(&self.folder);
        let mut run = Writing::new(&self.folder).map_err(&refused)?;
        let mut keys = 0;
        entries.try_for_each(|(key, count)| {
            keys += 1;
            self.cancel.check_at(keys)?;
            run.push(key, count).map_err(&refused)
        })?;
        self.keep(0, run.finish().map_err(&refused)?);
        for kind in 0.. {
            let most = if kind == 0 { self.most } else { LEAST_RUNS };
            if self.kinds.get(kind).is_none_or(|files| files.len() < most) {
                break;
            }
            let full = std::mem::take(&mut self.kinds[kind]);
            let mut run = Writing::new(&self.folder).map_err(&refused)?;
            self.add_up(full, |key, count| run.push(key, count).map_err(&refused))?;
            self.keep(kind + 1, run.finish().map_err(&refused)?);
        }
        Ok(())
    }

    fn keep(&mut self, kind: usize, run: File) {
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, Vec::new);
        }
        self.kinds[kind].push(run);
    }

    /// Takes over the runs of another.
    pub(super) fn append(&mut self, other: Self) {
        for (kind, files) in other.kinds.into_iter().enumerate() {
            files.into_iter().for_each(|file| self.keep(kind, file));
        }
    }

    /// Hands each key to `take` with the sum of its counts, in ascending order.
    pub(super) fn merge(&mut self, take: impl FnMut(u64, u64) -> Result<(), Error>) -> Result<(), Error> {
        let files = std::mem::take(&mut self.kinds).into_iter().flatten().collect();
        self.add_up(files, take)
    }

    fn add_up(
        &self,
        files: Vec<File>,
        mut take: impl FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let refused = Error::temporary(&self.folder);
        let mut open: Vec<Reading> = Vec::with_capacity(files.len());
        let mut heap = BinaryHeap::with_capacity(files.len());
        for file in files {
            let mut reading = Reading::new(file).map_err(&refused)?;
            if let Some((key, count)) = reading.next().map_err(&refused)? {
                heap.push(Reverse((key, open.len(), count)));
            }
            open.push(reading);
        }
        let mut current: Option<(u64, u64)> = None;
        let mut keys = 0;
        while let Some(mut top) = heap.peek_mut() {
            keys += 1;
            self.cancel.check_at(keys)?;
            let Reverse((key, run, count)) = *top;
            match open[run].next().map_err(&refused)? {
                Some((next, count)) => *top = Reverse((next, run, count)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(top);
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

/// A run in the making: the steps between keys and the counts, as variable-length numbers.
struct Writing {
    file: BufWriter<File>,
    last: u64,
}

impl Writing {
    fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?), last: 0 })
    }

    fn push(&mut self, key: u64, count: u64) -> io::Result<()> {
        let mut bytes = [0; 20];
        let step = put(key - self.last, &mut bytes);
        let length = step + put(count, &mut bytes[step..]);
        self.last = key;
        self.file.write_all(&bytes[..length])
    }

    fn finish(self) -> io::Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
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

struct Reading {
    file: BufReader<File>,
    last: u64,
}

impl Reading {
    fn new(mut file: File) -> io::Result<Self> {
        file.rewind()?;
        Ok(Self { file: BufReader::with_capacity(BUFFER, file), last: 0 })
    }

    fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        let Some(step) = self.number()? else { return Ok(None) };
        let count = self.number()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.last += step;
        Ok(Some((self.last, count)))
    }

    fn number(&mut self) -> io::Result<Option<u64>> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let buffer = self.file.fill_buf()?;
            let Some(&byte) = buffer.first() else {
                return if shift == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            };
            self.file.consume(1);
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(number));
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn room(cancel: CancelToken) -> Room {
        Room { memory: 0, threads: 1, folder: std::env::temp_dir(), cancel }
    }

    fn merged(mut runs: Runs) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        runs.merge(|key, count| {
            all.push((key, count));
            Ok(())
        })
        .unwrap();
        all
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
        let all = merged(runs);
        assert!(all.is_sorted());
        assert_eq!(all.iter().filter(|(key, _)| *key < 7).map(|(_, count)| count).sum::<u64>(), 200);
        assert_eq!(
            all.iter().filter(|(key, _)| (100..103).contains(key)).map(|(_, c)| c >> 40).sum::<u64>(),
            200
        );
        assert_eq!(all.last(), Some(&(u64::MAX - 1, 1)));
        assert!(merged(Runs::new(&room(CancelToken::NEVER))).is_empty());
    }

    #[test]
    fn a_sum_beyond_64_bits_is_an_error() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        runs.push([(1, u64::MAX)].into_iter()).unwrap();
        runs.push([(1, 1)].into_iter()).unwrap();
        assert!(matches!(runs.merge(|_, _| Ok(())), Err(Error::Overflow)));
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
        assert!(matches!(runs.merge(|_, _| Ok(())), Err(Error::Interrupted(_))));
    }
}
