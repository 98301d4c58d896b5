//! Keeps the page about the output folder up to date while a run lasts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use ::report::overview::Running;

use super::{now, print};
use crate::engine::layout::Layout;
use crate::engine::observe::{Event, Observe};
use crate::engine::progress::Progress;
use crate::overview::{self, Found};

/// Time between two pages.
const PAUSE: Duration = Duration::from_secs(5);

/// Parts of the time that writing pages may take: one of so many.
const SHARE: u32 = 20;

/// Watches a run for the page, and passes on what it is told.
pub(super) struct Live<'a> {
    layout: &'a Layout,
    stages: Vec<String>,
    inner: &'a dyn Observe,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    at_work: Vec<(String, Progress)>,
    /// Whether any stage has done anything.
    changed: bool,
    ended: bool,
}

impl<'a> Live<'a> {
    pub(super) fn new(layout: &'a Layout, stages: Vec<String>, inner: &'a dyn Observe) -> Self {
        Self { layout, stages, inner, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Does `work` and writes the page from time to time meanwhile, and at the end.
    pub(super) fn while_working<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        std::thread::scope(|scope| {
            // Without a thread of its own the page is written at the end alone.
            let writer = std::thread::Builder::new().spawn_scoped(scope, || self.keep_writing());
            let done = work();
            self.state().ended = true;
            self.changed.notify_all();
            // A page that cannot be written costs the run nothing; what is wrong was said.
            let _ = writer.map(ScopedJoinHandle::join);
            // Nothing is written where a run was refused.
            if done.is_ok() || self.state().changed {
                self.finish();
            }
            done
        })
    }

    fn keep_writing(&self) {
        let mut pause = PAUSE;
        loop {
            let waiting = self.changed.wait_timeout_while(self.state(), pause, |state| !state.ended);
            let state = waiting.unwrap_or_else(PoisonError::into_inner).0;
            if state.ended {
                return;
            }
            let running: Vec<Running> =
                state.at_work.iter().map(|(stage, progress)| at(stage, progress)).collect();
            drop(state);
            if running.is_empty() {
                continue;
            }
            let before = now();
            if let Err(error) = overview::write(self.layout, &self.stages, running) {
                return print::note(&format!("note: {error:#}"));
            }
            pause = PAUSE.max(now().saturating_sub(before) * SHARE);
        }
    }

    /// The page of a run that has ended; one that nothing has changed for stays.
    fn finish(&self) {
        let ran = self.state().changed;
        let stale = |found| matches!(found, Found::Live | Found::Nothing);
        if !self.layout.ledger().exists() || !(ran || overview::found(self.layout).is_ok_and(stale)) {
            return;
        }
        if let Err(error) = overview::write(self.layout, &self.stages, vec![]) {
            print::note(&format!("note: {error:#}"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(stage: &str, progress: &Progress) -> Running {
    let now = progress.snapshot();
    Running { stage: stage.to_owned(), done: now.rows, total: now.total_rows, unit: now.unit }
}

impl Observe for Live<'_> {
    fn event(&self, event: &Event<'_>) {
        self.inner.event(event);
        let mut state = self.state();
        // Whatever is not as it was before changes the page.
        state.changed |= !matches!(
            event,
            Event::Fresh { .. }
                | Event::Skipped { .. }
                | Event::Waits { .. }
                | Event::Fetching { .. }
                | Event::Unnoted { .. }
                | Event::Away { .. }
                | Event::Pushing { .. }
                | Event::Pushed { .. }
        );
        match event {
            Event::Started { stage, progress, .. } => {
                state.at_work.push(((*stage).to_owned(), (*progress).clone()));
            }
            Event::Pulling { line, progress } => {
                state.at_work.push((line.stage.clone(), (*progress).clone()));
            }
            event => {
                if let Some(stage) = event.ends() {
                    state.at_work.retain(|(of, _)| of != stage);
                }
            }
        }
    }
}
