//! Files written whole, in blocks made in parallel and written in order.

use super::{Error, FileCount};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base::whole::{folder, persist, temporary};

/// Items that one task makes at a time, and tasks whose output is held before it is written.
const BLOCK: usize = 256;
const WAVE: usize = 32;

/// Told the number of bytes just written; an error stops the writing.
type Tick<'a> = &'a mut dyn FnMut(u64) -> io::Result<()>;

/// Where the world's files go, and the count of what went there.
pub(super) struct Sink<'a> {
    dir: PathBuf,
    tick: Tick<'a>,
    counts: BTreeMap<String, FileCount>,
}

/// What stands before and after the items of a file, and how many items there are.
pub(super) struct Frame<'a> {
    pub(super) opening: &'a str,
    pub(super) items: usize,
    pub(super) closing: &'a str,
}

/// One small file, complete in memory.
pub(super) struct Small {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u64,
}

impl<'a> Sink<'a> {
    pub(super) fn new(dir: &Path, tick: Tick<'a>) -> Self {
        Self { dir: dir.to_path_buf(), tick, counts: BTreeMap::new() }
    }

    /// The counts so far, by file (or by folder for families of small files).
    pub(super) fn into_counts(self) -> BTreeMap<String, FileCount> {
        self.counts
    }

    /// Writes the file `name` (relative to the sink): the opening, every item in order, the closing.
    /// `item` appends item i to the buffer and returns the number of rows this made; it runs in parallel. Returns all rows.
    pub(super) fn items<F>(&mut self, name: &str, frame: &Frame<'_>, item: F) -> Result<u64, Error>
    where
        F: Fn(usize, &mut Vec<u8>) -> u64 + Sync,
    {
        let path = self.dir.join(name);
        let failed = |source| Error::Write { path: path.clone(), source };
        let mut file = begin(&path).map_err(failed)?;
        file.write_all(frame.opening.as_bytes()).map_err(failed)?;
        let mut count =
            FileCount { files: 1, rows: 0, bytes: (frame.opening.len() + frame.closing.len()) as u64 };
        let mut from = 0;
        while from < frame.items {
            let to = frame.items.min(from + BLOCK * WAVE);
            for (bytes, rows) in wave(from..to, &item) {
                file.write_all(&bytes).map_err(failed)?;
                count.bytes += bytes.len() as u64;
                count.rows += rows;
                (self.tick)(bytes.len() as u64).map_err(Error::Stopped)?;
            }
            from = to;
        }
        file.write_all(frame.closing.as_bytes()).map_err(failed)?;
        persist(file, &path).map_err(failed)?;
        let rows = count.rows;
        self.counts.insert(name.to_owned(), count);
        Ok(rows)
    }

    /// Writes `files` small files, made and written in parallel, and counts them under the folder `name`.
    pub(super) fn folder<F>(&mut self, name: &str, files: usize, make: F) -> Result<(), Error>
    where
        F: Fn(usize) -> Small + Sync,
    {
        let dir = self.dir.join(name);
        let mut count = FileCount { files: files as u64, rows: 0, bytes: 0 };
        for from in (0..files).step_by(WAVE) {
            let written: Vec<_> = (from..files.min(from + WAVE))
                .into_par_iter()
                .map(|index| {
                    let small = make(index);
                    let path = dir.join(&small.name);
                    let whole = begin(&path).and_then(|mut file| {
                        file.write_all(&small.bytes)?;
                        persist(file, &path)
                    });
                    whole.map_err(|source| Error::Write { path, source })?;
                    Ok::<_, Error>((small.bytes.len() as u64, small.rows))
                })
                .collect();
            for one in written {
                let (bytes, rows) = one?;
                count.bytes += bytes;
                count.rows += rows;
                (self.tick)(bytes).map_err(Error::Stopped)?;
            }
        }
        self.counts.insert(name.to_owned(), count);
        Ok(())
    }
}

/// The items of one wave as blocks of bytes with their row counts, in order whatever the threads.
fn wave<F>(range: std::ops::Range<usize>, item: &F) -> Vec<(Vec<u8>, u64)>
where
    F: Fn(usize, &mut Vec<u8>) -> u64 + Sync,
{
    let blocks = range.len().div_ceil(BLOCK);
    let block = |block: usize| {
        let start = range.start + block * BLOCK;
        let mut bytes = Vec::new();
        let rows = (start..range.end.min(start + BLOCK)).map(|index| item(index, &mut bytes)).sum();
        (bytes, rows)
    };
    (0..blocks).into_par_iter().map(block).collect()
}

/// Appends formatted text to a buffer.
pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}

/// A temporary file beside `path`, so that the final name never shows half a file.
fn begin(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    std::fs::create_dir_all(folder(path))?;
    temporary(folder(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(index: usize, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(format!("{index}\n").as_bytes());
        1
    }

    #[test]
    fn items_come_in_order_across_blocks_and_waves() {
        let dir = tempfile::tempdir().unwrap();
        let mut ticked = 0;
        let mut tick = |bytes| {
            ticked += bytes;
            Ok(())
        };
        let mut sink = Sink::new(dir.path(), &mut tick);
        let items = BLOCK * WAVE + 3;
        let rows = sink.items("a/n.txt", &Frame { opening: "<", items, closing: ">" }, numbers).unwrap();
        assert_eq!(rows, items as u64);
        let counts = sink.into_counts();
        let text = std::fs::read_to_string(dir.path().join("a/n.txt")).unwrap();
        let wanted: String = (0..items).map(|index| format!("{index}\n")).collect();
        assert_eq!(text, format!("<{wanted}>"));
        assert_eq!(counts["a/n.txt"].bytes, text.len() as u64);
        assert_eq!(ticked, wanted.len() as u64);
    }

    #[test]
    fn a_stopped_file_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let mut tick = |_| Err(io::Error::from(io::ErrorKind::Interrupted));
        let mut sink = Sink::new(dir.path(), &mut tick);
        let stopped = sink.items("n.txt", &Frame { opening: "", items: 3, closing: "" }, numbers);
        assert!(matches!(stopped, Err(Error::Stopped(_))));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
