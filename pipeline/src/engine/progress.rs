//! How far a stage is, in bytes, rows and tokens, and how long it waited: counters that the stage raises and a display reads. Draws nothing itself.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::cancel::{CancelToken, Cancelled};

use super::Clock;
use super::fault::{Faults, Point};

/// The counters of one running stage; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Counters>);

struct Counters {
    stage: String,
    cancel: CancelToken,
    faults: Faults,
    bytes: AtomicU64,
    total_bytes: AtomicU64,
    rows: AtomicU64,
    total_rows: AtomicU64,
    before: AtomicU64,
    tokens: AtomicU64,
    /// Microseconds.
    waited: AtomicU64,
    unit: OnceLock<&'static str>,
    clock: Clock,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// What the counters showed at one moment. A total of 0 means that it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
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
    /// Of these rows, those that an earlier run did.
    pub before: u64,
    /// Tokens that a model was trained on, padding left out.
    pub tokens: u64,
    /// Time in which a model waited for its data.
    pub waited: Duration,
}

impl Progress {
    pub(super) fn new(stage: &str, cancel: CancelToken, faults: Faults, clock: Clock) -> Self {
        let zero = || AtomicU64::new(0);
        Self(Arc::new(Counters {
            stage: stage.to_owned(),
            cancel,
            faults,
            bytes: zero(),
            total_bytes: zero(),
            rows: zero(),
            total_rows: zero(),
            before: zero(),
            tokens: zero(),
            waited: zero(),
            unit: OnceLock::new(),
            clock,
        }))
    }

    /// Says how many bytes the stage will read in all.
    pub(crate) fn total_bytes(&self, total: u64) {
        self.0.total_bytes.store(total, Ordering::Relaxed);
    }

    /// Says how many rows (or steps) the stage will do in all.
    pub(crate) fn total_rows(&self, total: u64) {
        self.0.total_rows.store(total, Ordering::Relaxed);
    }

    /// Says what the stage does its work in, if not in rows. The first word stays.
    pub(crate) fn unit(&self, unit: &'static str) {
        self.0.unit.get_or_init(|| unit);
    }

    /// Counts bytes that were read.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.faults.pass(&self.0.stage, Point::Working);
    }

    /// Counts rows (or steps) that were done.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.0.rows.fetch_add(rows, Ordering::Relaxed);
        self.0.faults.pass(&self.0.stage, Point::Working);
    }

    /// Says how many rows (or steps) an earlier run did: they are done, and took none of this one's time.
    pub(crate) fn done_before(&self, rows: u64) {
        self.0.before.store(rows, Ordering::Relaxed);
        self.add_rows(rows);
    }

    /// Counts tokens that a model was trained on.
    pub(crate) fn add_tokens(&self, tokens: u64) {
        self.0.tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    /// Does what a model waits for, and counts the time that it takes.
    pub(crate) fn waiting<T>(&self, data: impl FnOnce() -> T) -> T {
        let before = (self.0.clock)();
        let found = data();
        let waited = (self.0.clock)().saturating_sub(before);
        self.0.waited.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        found
    }

    /// Fails once the run is asked to stop.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub(crate) fn check(&self) -> Result<(), Cancelled> {
        self.0.faults.pass(&self.0.stage, Point::Working);
        self.0.cancel.check()
    }

    /// The run's cancellation for libraries that know nothing of runs. Asking it is a [`Progress::check`].
    #[must_use]
    pub(crate) fn cancel_token(&self) -> CancelToken {
        let progress = self.clone();
        CancelToken::when(move || progress.check().is_err())
    }

    /// The token of the run itself.
    pub(super) fn cancel(&self) -> &CancelToken {
        &self.0.cancel
    }

    /// The counters now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            bytes: read(&self.0.bytes),
            total_bytes: read(&self.0.total_bytes),
            rows: read(&self.0.rows),
            total_rows: read(&self.0.total_rows),
            unit: self.0.unit.get().copied().unwrap_or("rows"),
            before: read(&self.0.before),
            tokens: read(&self.0.tokens),
            waited: Duration::from_micros(read(&self.0.waited)),
        }
    }

    /// Wraps `inner` so that its bytes are counted and reading fails once the run is asked to stop.
    pub(crate) fn reader<R: Read>(&self, inner: R) -> Counted<R> {
        Counted { inner, progress: self.clone() }
    }
}

/// A reader that counts and can be stopped; see [`Progress::reader`].
#[derive(Debug)]
pub(crate) struct Counted<R> {
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
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn waiting_is_counted_by_the_clock() {
        let ticks = AtomicU64::new(0);
        let clock = move || Duration::from_millis(ticks.fetch_add(250, Ordering::Relaxed));
        let progress = Progress::new("a", CancelToken::NEVER, Faults::none(), Arc::new(clock));
        assert_eq!((progress.waiting(|| 7), progress.waiting(|| 8)), (7, 8));
        progress.add_tokens(3);
        let now = progress.snapshot();
        assert_eq!((now.tokens, now.waited), (3, Duration::from_millis(500)));
    }

    #[test]
    fn a_counted_reader_counts_and_stops_when_asked() {
        let flag = Arc::new(AtomicBool::new(false));
        let cancel = CancelToken::watching(Arc::clone(&flag));
        let progress = Progress::new("a", cancel, Faults::none(), Arc::new(|| Duration::ZERO));
        let mut text = String::new();
        progress.reader(&b"four"[..]).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), progress.snapshot().bytes), ("four", 4));
        flag.store(true, Ordering::SeqCst);
        let error = progress.reader(&b"more"[..]).read_to_string(&mut text).unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Cancelled>()));
        assert!(progress.check().is_err());
    }
}
