//! How far a stage is, in bytes, rows and tokens, how long it waited, and how its training goes: what the stage says and a display reads. Draws nothing
//! itself.

use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    training: Mutex<Option<Begun>>,
    clock: Clock,
}

/// A training, and when its first step of this run began.
#[derive(Clone, Copy)]
struct Begun {
    at: Duration,
    now: Training,
}

/// How many steps a training makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// So many.
    Exactly(u64),
    /// So many, unless patience ends it before.
    AtMost(u64),
}

/// How a training goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Training {
    /// Since its first step of this run began.
    pub elapsed: Duration,
    /// Whether patience may end it before its last planned step.
    pub may_end_sooner: bool,
    /// The last step, once there is one.
    pub step: Option<Step>,
    /// The last evaluation, once there is one.
    pub evaluation: Option<Evaluation>,
}

/// What is told of a training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub loss: f64,
    pub learning_rate: f64,
    /// Without padding.
    pub tokens: u64,
}

/// What a training came to on samples that it does not learn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evaluation {
    /// What the value is, such as `dev score`.
    pub of: &'static str,
    pub value: f64,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// What the counters showed at one moment. A total of 0 means that it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// How training goes, from its first step on.
    pub training: Option<Training>,
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
            training: Mutex::new(None),
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

    /// Counts bytes that moved between machines, which is no step of the stage's work.
    pub(super) fn count_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts rows (or steps) that were done.
    pub(crate) fn add_rows(&self, rows: u64) {
        self.0.rows.fetch_add(rows, Ordering::Relaxed);
        self.0.faults.pass(&self.0.stage, Point::Working);
    }

    /// A training begins, or goes on after the steps that an earlier run made: they are done, and took none of this one's time.
    pub(crate) fn training(&self, steps: Steps, before: u64) {
        let (planned, may_end_sooner) = match steps {
            Steps::Exactly(planned) => (planned, false),
            Steps::AtMost(planned) => (planned, true),
        };
        self.unit("steps");
        self.total_rows(planned);
        self.0.before.store(before, Ordering::Relaxed);
        let now = Training { elapsed: Duration::ZERO, may_end_sooner, step: None, evaluation: None };
        *self.goes() = Some(Begun { at: (self.0.clock)(), now });
        self.add_rows(before);
    }

    /// Counts a training step.
    pub(crate) fn trained(&self, step: Step) {
        if let Some(begun) = self.goes().as_mut() {
            begun.now.step = Some(step);
        }
        self.0.tokens.fetch_add(step.tokens, Ordering::Relaxed);
        self.add_rows(1);
    }

    /// Tells what an evaluation between two steps came to.
    pub(crate) fn evaluated(&self, evaluation: Evaluation) {
        if let Some(begun) = self.goes().as_mut() {
            begun.now.evaluation = Some(evaluation);
        }
    }

    fn goes(&self) -> MutexGuard<'_, Option<Begun>> {
        self.0.training.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The token of the run itself: asking it is no step of work.
    pub(crate) fn cancel(&self) -> &CancelToken {
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
            training: self
                .goes()
                .map(|Begun { at, now }| Training { elapsed: (self.0.clock)().saturating_sub(at), ..now }),
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
pub(crate) mod testing {
    use super::*;

    /// Counters of a stage, under a clock that stands still.
    pub(crate) fn progress(stage: &str) -> Progress {
        Progress::new(stage, CancelToken::NEVER, Faults::none(), Arc::new(|| Duration::ZERO))
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
        assert_eq!(progress.snapshot().waited, Duration::from_millis(500));
    }

    #[test]
    fn a_training_goes_on_after_the_steps_of_an_earlier_run_and_counts_its_own_time() {
        let ticks = AtomicU64::new(0);
        let clock = move || Duration::from_secs(ticks.fetch_add(1, Ordering::Relaxed));
        let progress = Progress::new("a", CancelToken::NEVER, Faults::none(), Arc::new(clock));
        progress.evaluated(Evaluation { of: "dev score", value: 0.5 });
        assert_eq!(progress.snapshot().training, None);
        progress.training(Steps::AtMost(8), 5);
        let begun = progress.snapshot();
        assert_eq!((begun.rows, begun.total_rows, begun.before, begun.unit), (5, 8, 5, "steps"));
        let step = Step { loss: 0.25, learning_rate: 1e-3, tokens: 3 };
        progress.trained(step);
        progress.evaluated(Evaluation { of: "dev score", value: 0.75 });
        let now = progress.snapshot();
        let training = now.training.unwrap();
        assert_eq!((now.rows, now.tokens, training.step), (6, 3, Some(step)));
        assert_eq!(training.evaluation.unwrap().value, 0.75);
        assert!(training.may_end_sooner && training.elapsed == Duration::from_secs(2));
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
