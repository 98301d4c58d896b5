//! The class `Stream`: steps of shards as Python's iterators have them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tasks::stream::lane::Share;
use tasks::stream::prefetch::{Next, Prefetched};
use tasks::stream::redraw::Redraw;
use tasks::stream::state::State;
use tasks::stream::steps::{Config, Epochs, Shards, Worker};

use crate::arrays;
use crate::raised::{raised, unfit};
use crate::settings::{Arguments, Settings, shown};
use crate::shards::{Opened, Places};

/// How long Python waits for a step before it looks whether it was interrupted.
const GLANCE: Duration = Duration::from_millis(100);

/// The batches of each step of a shard folder, in an order that is a function of the shards, the settings and the seed alone.
///
/// `for step in stream` gives the steps of an epoch, each a dictionary from the name of a task to the NumPy arrays of its batch; the next
/// loop gives those of the next epoch. Threads make the next steps meanwhile, without Python's lock.
///
/// Arguments, all but the first by name:
///
///   path            folder of shards (`out/shards`), or its URL: s3://, gs://, az://, http(s)://
///   part            "train", "valid" or "test"
///   schedule        "kimera" (each step has a batch of every task), "merged", "proportional", {"temperature": T},
///                   {"round_robin": "paper"} or {"round_robin": "reference"}
///   items           triples, pairs of names or chunks of text in a batch, of all ranks together; None: 32, unless `tokens` is given
///   pool            batches (of a token budget: items) that are sorted by length together; None: not sorted, with `tokens` 4096
///   tokens          instead of items, the most tokens of a step, padding included
///   window          row groups that are shuffled together; 16. None: the order of the files
///   pack            put several samples into rows of so many positions; None: a row each
///   seed            of the order; 0
///   rank, world_size  which part of every batch; 0 of 1
///   negatives       "fresh": drawn anew for each epoch; "stored": those in the shards; None: as the shards' settings say
///   graph           output folder with the triples that fresh negatives are drawn from; None: that of the shards
///   windows_ahead, threads, steps_ahead  what is read and made ahead; 1, 1 and 2. The batches do not depend on it.
///   cache           folder for blocks of remote shards; None: the user's cache folder
#[pyclass(module = "engraft", name = "Stream", subclass)]
pub(crate) struct Stream {
    places: Places,
    settings: Settings,
    share: Share,
    /// As Python gave them, for copies.
    given: Py<PyDict>,
    inner: Mutex<Inner>,
}

/// What changes.
struct Inner {
    opened: Opened,
    redraw: Option<Arc<dyn Redraw>>,
    /// The process in which threads work, of which a fork has none.
    process: u32,
    running: Option<Prefetched>,
    state: State,
    epochs: Epochs,
    turns: Turns,
    /// Whether an epoch has ended and no loop has begun since.
    ended: bool,
}

/// Which steps are one's own.
#[derive(Clone, Copy)]
struct Turns {
    worker: u64,
    workers: u64,
    /// The step with which worker 0 begins.
    begin: u64,
}

impl Turns {
    const ALL: Turns = Turns { worker: 0, workers: 1, begin: 0 };
}

impl Stream {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What changes, in this process.
    fn here(&self) -> PyResult<MutexGuard<'_, Inner>> {
        let mut inner = self.inner();
        inner.leave_fork(&self.places)?;
        Ok(inner)
    }

    /// The stream of the present turns, at its first step.
    fn make(&self, inner: &Inner) -> Result<tasks::stream::Stream, tasks::Error> {
        let Turns { worker, workers, begin } = inner.turns;
        let number = (worker + begin % workers) % workers;
        let worker = Worker { share: self.share, number, of: workers };
        made(&inner.opened, inner.redraw.clone(), &self.settings.config, worker)
    }

    /// What comes next, as far as it is made.
    fn next(&self) -> PyResult<Next> {
        let mut inner = self.here()?;
        let next = self.advance(&mut inner);
        match &next {
            Ok(Next::Step(_)) => inner.settle(),
            Ok(Next::End) => {
                inner.settle();
                (inner.running, inner.ended) = (None, true);
            }
            Ok(Next::Waits) => {}
            Err(_) => inner.running = None,
        }
        next.map_err(|error| raised(&error))
    }

    fn advance(&self, inner: &mut Inner) -> Result<Next, tasks::Error> {
        if let Some(running) = &mut inner.running {
            return running.next_within(GLANCE);
        }
        let mut stream = self.make(inner)?;
        stream.resume(&inner.state)?;
        inner.running.insert(Prefetched::of_epoch(stream, self.settings.steps_ahead)?).next_within(GLANCE)
    }
}

fn made(
    opened: &Opened,
    redraw: Option<Arc<dyn Redraw>>,
    config: &Config,
    worker: Worker,
) -> Result<tasks::stream::Stream, tasks::Error> {
    let shards = Shards { index: &opened.index, place: Arc::clone(&opened.place), redraw };
    tasks::stream::Stream::new(&shards, config, worker)
}

impl Inner {
    /// Takes over where the stream stands.
    fn settle(&mut self) {
        if let Some(running) = &self.running {
            self.state = running.state().clone();
        }
    }

    /// Goes to `state`; steps that were made ahead are forgotten.
    fn place(&mut self, state: State) {
        (self.running, self.ended) = (None, false);
        self.state = state;
    }

    /// In a process that was forked, threads and open files are those of another: they are left alone, and the shards opened once more.
    fn leave_fork(&mut self, places: &Places) -> PyResult<()> {
        let process = std::process::id();
        if self.process != process {
            std::mem::forget(self.running.take());
            std::mem::forget(std::mem::replace(&mut self.opened, places.open()?));
            self.process = process;
        }
        Ok(())
    }
}

impl Drop for Inner {
    /// Waits for the threads to end, without Python's lock: each ends with its present step at the latest. Those of another process are left alone.
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if self.process == std::process::id() {
            let _ended = Python::try_attach(|py| py.detach(|| drop(running)));
        } else {
            std::mem::forget(running);
        }
    }
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(
        signature = (path, **settings),
        text_signature = "(path, *, part='train', schedule='kimera', items=None, pool=None, tokens=None, window=16, pack=None, seed=0, rank=0, world_size=1, negatives=None, graph=None, windows_ahead=1, threads=1, steps_ahead=2, cache=None)"
    )]
    fn new(py: Python<'_>, path: &Bound<'_, PyAny>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = match settings {
            Some(settings) => settings.copy()?,
            None => PyDict::new(py),
        };
        let shards = py.import("os")?.call_method1("fspath", (path,))?.extract::<String>()?;
        let arguments = given.copy()?;
        let from = Arguments(&arguments);
        let places = Places::take(shards, &from)?;
        let share = share(&from)?;
        let settings = Settings::take(&from)?;
        from.none_left()?;
        let opened = py.detach(|| places.open())?;
        let redraw = places.redraw(py, &opened.index, &settings)?;
        let worker = Worker { share, ..Worker::ONLY };
        let stream =
            made(&opened, redraw.clone(), &settings.config, worker).map_err(|error| raised(&error))?;
        let (state, epochs) = (stream.state(), stream.epochs());
        let process = std::process::id();
        let (running, ended, turns) = (None, false, Turns::ALL);
        let inner = Inner { opened, redraw, process, running, state, epochs, turns, ended };
        Ok(Self { places, settings, share, given: given.unbind(), inner: Mutex::new(inner) })
    }

    /// The stream itself, which goes on where it stands.
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf.inner().ended = false;
        slf
    }

    /// The batches of the next step, by task.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.inner().ended {
            return Ok(None);
        }
        let batches = loop {
            match py.detach(|| self.next())? {
                Next::Step(batches) => break batches,
                Next::End => return Ok(None),
                Next::Waits => py.check_signals()?,
            }
        };
        let step = PyDict::new(py);
        for batch in batches {
            let task = batch.task.name();
            step.set_item(task, arrays::dict(py, batch, self.settings.config.fill)?)?;
        }
        Ok(Some(step))
    }

    /// Steps of an epoch.
    fn __len__(&self) -> PyResult<usize> {
        let steps = self.inner().epochs.steps.and_then(|steps| usize::try_from(steps).ok());
        steps.ok_or_else(|| {
            PyTypeError::new_err("with a token budget only reading tells how many steps an epoch has")
        })
    }

    /// Where the stream stands, as a dictionary that JSON holds: the same on all ranks, and good for any number of them. It is the state that
    /// engraft's own trainer keeps.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.inner().state);
        let text = text.map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Goes to where `state` was taken, on this or another number of ranks.
    fn load_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let text: String = py.import("json")?.call_method1("dumps", (state,))?.extract()?;
        let state: State = serde_json::from_str(&text)
            .map_err(|error| PyValueError::new_err(format!("this is no state of a stream: {error}")))?;
        py.detach(|| {
            let mut inner = self.here()?;
            self.make(&inner).and_then(|mut stream| stream.resume(&state)).map_err(|error| raised(&error))?;
            inner.place(state);
            Ok(())
        })
    }

    /// Goes to the beginning of an epoch, from 0.
    fn seek(&self, py: Python<'_>, epoch: &Bound<'_, PyAny>) -> PyResult<()> {
        let epoch: u64 =
            epoch.extract().map_err(|_| unfit("epoch", shown(epoch), "a whole number from 0"))?;
        py.detach(|| {
            let mut inner = self.here()?;
            let seek = |inner: &Inner| {
                let mut stream = self.make(inner)?;
                stream.seek(epoch)?;
                Ok(stream.state())
            };
            let state = seek(&inner).map_err(|error| raised(&error))?;
            inner.place(state);
            Ok(())
        })
    }

    /// The epoch that the next step is of, from 0.
    #[getter]
    fn epoch(&self) -> u64 {
        let inner = self.inner();
        inner.epochs.at(&inner.state)
    }

    /// Steps taken in all epochs.
    #[getter]
    fn step(&self) -> u64 {
        self.inner().state.step
    }

    /// The tasks that are shown.
    #[getter]
    fn tasks(&self) -> Vec<&'static str> {
        let part = self.settings.config.part;
        let inner = self.inner();
        let shown = inner.opened.index.tasks.iter().filter(|task| task.part(part).is_some());
        shown.map(|task| task.task.name()).collect()
    }

    /// What the classes of task `relation` are called, by number.
    #[getter]
    fn relations(&self) -> Vec<String> {
        self.inner().opened.index.relations.clone()
    }

    /// What the classes of task `tagging` are called, by number.
    #[getter]
    fn tags(&self) -> Vec<String> {
        self.inner().opened.index.classes.clone()
    }

    /// Entries of the vocabulary that token ids belong to.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.inner().opened.index.tokenizer.size
    }

    /// Takes every `workers`-th step from the present one on, beginning with the one that is `worker` steps away: what loaders with several
    /// processes ask for.
    #[pyo3(signature = (worker, workers, begin=None))]
    fn take_turns(&self, py: Python<'_>, worker: u64, workers: u64, begin: Option<u64>) -> PyResult<()> {
        if worker >= workers {
            return Err(unfit("worker", worker, &format!("a number below workers={workers}")));
        }
        py.detach(|| {
            let mut inner = self.here()?;
            let state = inner.state.clone();
            inner.turns = Turns { worker, workers, begin: begin.unwrap_or(state.step) };
            inner.place(state);
            Ok(())
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.borrow();
        let restore = py.import("engraft")?.getattr("_restored")?;
        let state = this.state_dict(py)?;
        let Turns { worker, workers, begin } = this.inner().turns;
        let arguments =
            (slf.get_type(), &this.places.shards, this.given.bind(py), state, (worker, workers, begin));
        (restore, arguments).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        let inner = self.inner();
        let steps = inner.epochs.steps.map_or_else(String::new, |steps| format!(", {steps} steps an epoch"));
        format!("<engraft.Stream of {:?} at step {}{steps}>", self.places.shards, inner.state.step)
    }
}

/// Which part of every batch is wanted.
fn share(from: &Arguments<'_, '_>) -> PyResult<Share> {
    let number = |name: &str| from.take(name)?.map(|found| found.extract::<usize>()).transpose();
    let (rank, world) = (number("rank")?.unwrap_or(0), number("world_size")?.unwrap_or(1));
    if rank >= world {
        return Err(unfit("rank", rank, &format!("a number below world_size={world}")));
    }
    Ok(Share { rank, world })
}
