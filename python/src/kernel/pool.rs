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
