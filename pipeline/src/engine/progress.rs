//! How far a stage is, in bytes and rows: counters that the stage raises and a display reads. Draws nothing itself.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::cancel::{Cancel, Cancelled};
use super::fault::{Faults, Point};

/// The counters of one running stage; clones share them.
#[derive(Clone, Debug)]
pub struct Progress(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    stage: String,
    cancel: Cancel,
    faults: Faults,
    bytes: AtomicU64,
    total_bytes: AtomicU64,
    rows: AtomicU64,
    total_rows: AtomicU64,
    unit: OnceLock<&'static str>,
}

/// What the counters showed at one moment. A total of 0 means that it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Bytes read so far.
    pub bytes: u64,
    /// Bytes to read in all.
    pub total_bytes: u64,
    /// Rows (or steps) done so far.
    pub rows: u64,
    /// Rows (or steps) to do in all.
    pub total_rows: u64,
    /// What a row is called: `rows`, unless the stage says otherwise.
    pub unit: &'static str,
}

impl Progress {
    pub(super) fn new(stage: &str, cancel: Cancel, faults: Faults) -> Self {
        let zero = || AtomicU64::new(0);
        Self(Arc::new(Counters {
            stage: stage.to_owned(),
            cancel,
            faults,
            bytes: zero(),
            total_bytes: zero(),
            rows: zero(),
            total_rows: zero(),
            unit: OnceLock::new(),
        }))
    }

    /// Says how many bytes the stage will read in all.
    pub fn total_bytes(&self, total: u64) {
        self.0.total_bytes.store(total, Ordering::Relaxed);
    }

    /// Says how many rows (or steps) the stage will do in all.
    pub fn total_rows(&self, total: u64) {
        self.0.total_rows.store(total, Ordering::Relaxed);
    }

    /// Says what the stage does its work in, if not in rows. The first word stays.
    pub fn unit(&self, unit: &'static str) {
        self.0.unit.get_or_init(|| unit);
    }

    /// Counts bytes that were read.
    pub fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.faults.pass(&self.0.stage, Point::Working);
    }

    /// Counts rows (or steps) that were done.
    pub fn add_rows(&self, rows: u64) {
        self.0.rows.fetch_add(rows, Ordering::Relaxed);
        self.0.faults.pass(&self.0.stage, Point::Working);
    }

    /// Fails once the run is asked to stop.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        self.0.faults.pass(&self.0.stage, Point::Working);
        self.0.cancel.check()
    }

    /// The counters now.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            bytes: read(&self.0.bytes),
            total_bytes: read(&self.0.total_bytes),
            rows: read(&self.0.rows),
            total_rows: read(&self.0.total_rows),
            unit: self.0.unit.get().copied().unwrap_or("rows"),
        }
    }

    /// Wraps `inner` so that its bytes are counted and reading fails once the run is asked to stop.
    pub fn reader<R: Read>(&self, inner: R) -> Counted<R> {
        Counted { inner, progress: self.clone() }
    }
}

/// A reader that counts and can be stopped; see [`Progress::reader`].
#[derive(Debug)]
pub struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.progress.0.cancel.check()?;
        let read = self.inner.read(buffer)?;
        self.progress.add_bytes(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_reader_counts_and_stops_when_asked() {
        let cancel = Cancel::unset();
        let progress = Progress::new("a", cancel.clone(), Faults::none());
        let mut text = String::new();
        progress.reader(&b"four"[..]).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), progress.snapshot().bytes), ("four", 4));
        cancel.set();
        let error = progress.reader(&b"more"[..]).read_to_string(&mut text).unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Cancelled>()));
        assert!(progress.check().is_err());
    }
}
