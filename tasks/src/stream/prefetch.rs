//! Steps made ahead of time by a thread, so that a trainer never waits for them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use batch::Batch;

use super::state::State;
use super::steps::Stream;
use super::window::{gone, no_thread};
use crate::Error;

/// A step and where the stream stands after it.
type Made = Result<(Vec<Batch>, State), Error>;

/// A stream whose next steps are made while the present one is used.
#[derive(Debug)]
pub struct Prefetched {
    made: Option<Receiver<Made>>,
    thread: Option<JoinHandle<()>>,
    state: State,
    steps_per_epoch: Option<u64>,
}

impl Prefetched {
    /// Makes up to `steps` steps (at least 1) of `stream` ahead; they are all that it holds in memory besides the stream's windows.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(stream: Stream, steps: usize) -> Result<Self, Error> {
        let (state, steps_per_epoch) = (stream.state(), stream.steps_per_epoch());
        // One step waits in the thread's hand.
        let (sender, made) = sync_channel(steps.max(1) - 1);
        let thread = Builder::new().name("engraft-stream".to_owned()).spawn(move || make(stream, &sender));
        let thread = thread.map_err(|error| no_thread(&error))?;
        Ok(Self { made: Some(made), thread: Some(thread), state, steps_per_epoch })
    }

    /// As [`Stream::steps_per_epoch`].
    #[must_use]
    pub fn steps_per_epoch(&self) -> Option<u64> {
        self.steps_per_epoch
    }

    /// As [`Stream::next_step`].
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn next_step(&mut self) -> Result<Vec<Batch>, Error> {
        let made = self.made.as_ref().and_then(|made| made.recv().ok());
        let (batches, state) = made.unwrap_or(Err(gone()))?;
        self.state = state;
        Ok(batches)
    }

    /// Where the stream stands after the step that was taken last; steps made ahead do not count.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }
}

fn make(mut stream: Stream, to: &SyncSender<Made>) {
    loop {
        let made = stream.next_step().map(|batches| (batches, stream.state()));
        let failed = made.is_err();
        if to.send(made).is_err() || failed {
            return;
        }
    }
}

impl Drop for Prefetched {
    fn drop(&mut self) {
        self.made = None;
        if let Some(thread) = self.thread.take() {
            // It ends with its present step at the latest; a panic in it was reported when it happened.
            let _ended = thread.join();
        }
    }
}
