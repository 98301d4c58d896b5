//! A sorted run of counted keys in a temporary file, written and read.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A key and its count.
pub(super) type Entry = (u64, u64);

/// Bytes that are read from a run at a time.
pub(super) const BUFFER: usize = 1 << 14;
/// Entries of a run after which it can be entered again.
pub(super) const MARK: usize = 1 << 9;
/// Bytes that an entry takes at most.
const MOST_BYTES: usize = 20;

/// A sorted run: the steps between keys and the counts, as variable-length numbers.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    /// Where it can be entered: in front of the first entry, and at the latest after [`MARK`] others.
    pub(super) marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// The key in front; 0 at the start.
    pub(super) last: u64,
    /// Bytes in front.
    at: u64,
}

/// A run in the making.
pub(super) struct Writing<W> {
    file: W,
    marks: Vec<Mark>,
    entries: usize,
    end: Mark,
}

impl Writing<BufWriter<File>> {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?);
        Ok(Self { file, marks: Vec::new(), entries: 0, end: Mark::default() })
    }

    /// Adds a stretch, whose keys are larger than those in front.
    pub(super) fn append(&mut self, Stretch { first, rest }: &Stretch) -> io::Result<()> {
        self.push(first.0, first.1)?;
        let in_front = self.end.at;
        self.marks.extend(rest.marks.iter().map(|mark| Mark { at: in_front + mark.at, ..*mark }));
        self.entries += rest.entries;
        self.end = Mark { at: in_front + rest.end.at, ..rest.end };
        self.file.write_all(&rest.file)
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        Ok(Run { file: self.file.into_inner().map_err(io::IntoInnerError::into_error)?, marks: self.marks })
    }
}

impl<W: Write> Writing<W> {
    pub(super) fn push(&mut self, key: u64, count: u64) -> io::Result<()> {
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
}

/// Some entries of a run, encoded while those in front are not: what the first is a step from is known later.
pub(super) struct Stretch {
    first: Entry,
    rest: Writing<Vec<u8>>,
}

impl Stretch {
    /// Nothing where there is no entry.
    pub(super) fn new(entries: &[Entry]) -> io::Result<Option<Self>> {
        let Some((&first, others)) = entries.split_first() else { return Ok(None) };
        let end = Mark { last: first.0, at: 0 };
        let mut rest = Writing { file: Vec::new(), marks: Vec::new(), entries: 0, end };
        others.iter().try_for_each(|&(key, count)| rest.push(key, count))?;
        Ok(Some(Self { first, rest }))
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
pub(super) struct Reading<'r> {
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
    pub(super) fn new(run: &'r Run, end: u64) -> Self {
        let (file, marks) = (&run.file, run.marks.as_slice());
        Self { file, marks, reached: Mark::default(), buffer: Vec::new(), used: 0, end }
    }

    /// The first entry from `start` on.
    pub(super) fn seek(&mut self, start: u64) -> io::Result<Option<(u64, u64)>> {
        let in_front = self.marks.partition_point(|mark| mark.last < start).saturating_sub(1);
        self.reached = self.marks.get(in_front).copied().unwrap_or_default();
        loop {
            match self.next()? {
                Some((key, _)) if key < start => {}
                entry => return Ok(entry),
            }
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
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
