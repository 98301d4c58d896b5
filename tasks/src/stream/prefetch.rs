//! Steps made ahead of time by a thread, so that a trainer never waits for them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use batch::Batch;

use super::background::stand_behind;
use super::state::State;
use super::steps::Stream;
use super::window::{gone, no_thread};
use crate::Error;

/// A step, or none where an epoch has ended, and where the stream stands after it.
type Made = Result<(Option<Vec<Batch>>, State), Error>;

/// A stream whose next steps are made while the present one is used.
#[derive(Debug)]
pub struct Prefetched {
    made: Option<Receiver<Made>>,
    thread: Option<JoinHandle<()>>,
    state: State,
    steps_per_epoch: Option<u64>,
}

/// What there is of an epoch.
#[derive(Debug)]
pub enum Next {
    /// The batches of a step.
    Step(Vec<Batch>),
    /// The epoch has ended.
    End,
    /// The next step is still being made.
    Waits,
}

impl Prefetched {
    /// Makes up to `steps` steps (at least 1) of `stream` ahead, without end; they are all that it holds in memory besides the stream's windows.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(stream: Stream, steps: usize) -> Result<Self, Error> {
        Self::start(stream, steps, |stream| stream.next_step().map(Some))
    }

    /// The same to the end of the epoch in which the stream stands.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn of_epoch(stream: Stream, steps: usize) -> Result<Self, Error> {
        let epoch = stream.epoch();
        Self::start(stream, steps, move |stream| stream.next_step_of(epoch))
    }

    fn start(
        stream: Stream,
        steps: usize,
        next: impl Fn(&mut Stream) -> Result<Option<Vec<Batch>>, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (state, steps_per_epoch) = (stream.state(), stream.steps_per_epoch());
        // One step waits in the thread's hand.
        let (sender, made) = sync_channel(steps.max(1) - 1);
        let thread =
            Builder::new().name("engraft-stream".to_owned()).spawn(move || make(stream, next, &sender));
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
        self.take(made)?.ok_or_else(gone)
    }

    /// As [`Stream::next_step_of`], but waits for at most so long.
    ///
    /// # Errors
    /// When a shard cannot be read.
    pub fn next_within(&mut self, wait: Duration) -> Result<Next, Error> {
        let made = match self.made.as_ref().map(|made| made.recv_timeout(wait)) {
            Some(Err(RecvTimeoutError::Timeout)) => return Ok(Next::Waits),
            made => made.and_then(Result::ok),
        };
        Ok(self.take(made)?.map_or(Next::End, Next::Step))
    }

    fn take(&mut self, made: Option<Made>) -> Result<Option<Vec<Batch>>, Error> {
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

fn make(
    mut stream: Stream,
    next: impl Fn(&mut Stream) -> Result<Option<Vec<Batch>>, Error>,
    to: &SyncSender<Made>,
) {
    stand_behind();
    loop {
        let made = next(&mut stream).map(|batches| (batches, stream.state()));
        let over = !matches!(&made, Ok((Some(_), _)));
        if to.send(made).is_err() || over {
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
