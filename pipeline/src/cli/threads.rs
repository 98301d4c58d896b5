//! The threads that work is shared out to, started before anything is done: libraries start theirs late and panic where the system
//! gives none.

use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle, available_parallelism};

use anyhow::Context as _;

/// Readers ahead, requests, the display and what else runs beside the work.
const OTHERS: usize = 6;

/// Starts the pool of `jobs` threads, and makes sure that the system gives as many as stages (one for each job), the library that
/// counts tables (one for each core) and others will ask for.
pub(super) fn start(jobs: NonZeroUsize) -> anyhow::Result<()> {
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    let (pool, later) = (jobs.get(), jobs.get() + cores + OTHERS);
    let pooled = rayon::ThreadPoolBuilder::new().num_threads(pool).build_global();
    let started = pooled.map_err(anyhow::Error::new).and_then(|()| try_out(later));
    started.with_context(|| {
        format!(
            "the system does not give the {} threads that {pool} jobs on {cores} cores may need: allow more (`ulimit -u`) or use \
             fewer jobs with --jobs",
            pool + later
        )
    })
}

/// Has so many threads at once, and lets them go again.
fn try_out(threads: usize) -> anyhow::Result<()> {
    let mut waiting: Vec<(_, JoinHandle<()>)> = Vec::new();
    let mut tried = Ok(());
    for _ in 0..threads {
        let (release, released) = channel::<()>();
        let waits = move || {
            // Until `release` is dropped.
            let _over = released.recv();
        };
        match Builder::new().spawn(waits) {
            Ok(thread) => waiting.push((release, thread)),
            Err(cause) => {
                tried = Err(cause.into());
                break;
            }
        }
    }
    for (release, thread) in waiting {
        drop(release);
        let _ended = thread.join();
    }
    tried
}
