//! A line that moves for each running stage, on a terminal. Reads the counters; the stage does not know of it.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use super::{Detail, plain};
use crate::cli::{measure, print};
use crate::engine::observe::{Event, Observe};
use crate::engine::progress::Progress;

/// Whether bars have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// They have.
    On,
    /// `NO_COLOR` is set.
    Off,
}

/// Draws bars.
pub(super) struct Bars {
    detail: Detail,
    colour: Colour,
    all: MultiProgress,
    running: Running,
    /// Draws the bars again and again. Ours, because that of a bar panics where the system gives no thread; then bars move with
    /// the events alone.
    ticker: Option<Ticker>,
}

type Running = Arc<Mutex<BTreeMap<String, ProgressBar>>>;

struct Ticker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

fn locked(running: &Running) -> MutexGuard<'_, BTreeMap<String, ProgressBar>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticker(running: &Running) -> Option<Ticker> {
    let (running, (stop, stopped)) = (Arc::clone(running), channel());
    let ticks = move || {
        while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
            locked(&running).values().for_each(ProgressBar::tick);
        }
    };
    Builder::new().spawn(ticks).ok().map(|thread| Ticker { stop, thread })
}

impl Drop for Bars {
    fn drop(&mut self) {
        if let Some(Ticker { stop, thread }) = self.ticker.take() {
            drop(stop);
            let _ended = thread.join();
        }
    }
}

impl Bars {
    pub(super) fn new(detail: Detail, colour: Colour) -> Self {
        let running = Running::default();
        let ticker = ticker(&running);
        Self { detail, colour, all: MultiProgress::new(), running, ticker }
    }

    fn start(&self, stage: &str, progress: &Progress) {
        let template = match self.colour {
            Colour::On => "{spinner:.green} {prefix:.bold}  {counters}",
            Colour::Off => "{spinner} {prefix}  {counters}",
        };
        let progress = progress.clone();
        let counters = move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
            // Writing to the line in memory cannot fail.
            let _ = to.write_str(&measure::running(&progress.snapshot(), state.elapsed()));
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = self.all.add(ProgressBar::new_spinner());
        bar.set_style(style.with_key("counters", counters));
        bar.set_prefix(stage.to_owned());
        bar.tick();
        locked(&self.running).insert(stage.to_owned(), bar);
    }

    fn end(&self, stage: &str) {
        if let Some(bar) = locked(&self.running).remove(stage) {
            bar.finish_and_clear();
        }
    }
}

impl Observe for Bars {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Started { stage, progress, .. } => self.start(stage, progress),
            Event::Done { line, .. } => self.end(&line.stage),
            Event::Failed { stage, .. } | Event::Interrupted { stage } => self.end(stage),
            Event::Fresh { .. } | Event::Restored { .. } | Event::Skipped { .. } => {}
        }
        let text = plain::line(event, self.detail);
        if self.all.println(print::safe(&text)).is_err() {
            print::note(&text);
        }
    }
}
