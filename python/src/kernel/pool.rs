//! The threads that kernels work with.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads of a process, by its number.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// As many threads as the process may use, started once. A process that was forked has none of its parent's threads, so it starts its own.
///
/// # Errors
/// When the system gives no threads.
pub(crate) fn pool(_: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    // Python forks with its lock held, and it is held here: no fork can happen while the mutex is locked.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, pool)) = pool.as_ref().filter(|(of, _)| *of == process) {
        return Ok(Arc::clone(pool));
    }
    let threads = ThreadPoolBuilder::new().thread_name(|number| format!("engraft-{number}")).build();
    let threads =
        threads.map_err(|error| PyRuntimeError::new_err(format!("threads cannot be started: {error}")))?;
    let threads = Arc::new(threads);
    // Those of the parent are not joined: they do not exist here.
    std::mem::forget(pool.replace((process, Arc::clone(&threads))));
    Ok(threads)
}

/// What threads work with and leave for the next piece: what it has learnt stays known.
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Spare<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Does some work with one that is free, or a new one.
    pub(crate) fn with<R>(&self, new: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = spare().pop();
        let mut one = free.unwrap_or_else(new);
        let done = work(&mut one);
        spare().push(one);
        done
    }
}
