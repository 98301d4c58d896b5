//! A line that moves for each running stage, on a terminal. Reads the counters; the stage does not know of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
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
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Bars {
    pub(super) fn new(detail: Detail, colour: Colour) -> Self {
        Self { detail, colour, all: MultiProgress::new(), running: Mutex::new(BTreeMap::new()) }
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
        bar.enable_steady_tick(Duration::from_millis(100));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(stage.to_owned(), bar);
    }

    fn end(&self, stage: &str) {
        if let Some(bar) = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(stage) {
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
            Event::Fresh { .. } | Event::Skipped { .. } => {}
        }
        let text = plain::line(event, self.detail);
        if self.all.println(&text).is_err() {
            print::note(&text);
        }
    }
}
