//! A line that moves for each running stage, on a terminal. Reads the counters; the stage does not know of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use terminal_size::{Width, terminal_size_of};

use super::live::Said;
use super::{Detail, Display, plain};
use crate::cli::{measure, print};
use crate::engine::observe::Event;
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
        Self { detail, colour, all: MultiProgress::new(), running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, ProgressBar>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, stage: &str, progress: &Progress) {
        let template = match self.colour {
            Colour::On => "{spinner:.green} {prefix:.bold}  {counters}",
            Colour::Off => "{spinner} {prefix}  {counters}",
        };
        // The spinner, the stage and the gaps stand before the counters.
        let (progress, before) = (progress.clone(), stage.chars().count() + 4);
        let counters = move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
            // Writing to the line in memory cannot fail.
            let _ = to.write_str(&measure::running(&progress.snapshot(), state.elapsed(), room(before)));
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = self.all.add(ProgressBar::new_spinner());
        bar.set_style(style.with_key("counters", counters));
        bar.set_prefix(stage.to_owned());
        bar.tick();
        self.running().insert(stage.to_owned(), bar);
    }

    fn end(&self, stage: &str) {
        if let Some(bar) = self.running().remove(stage) {
            bar.finish_and_clear();
        }
    }

    fn print(&self, text: &str) {
        if self.all.println(print::safe(text)).is_err() {
            print::note(text);
        }
    }
}

/// Columns of the terminal that are left beside so many.
fn room(before: usize) -> usize {
    let all = terminal_size_of(std::io::stderr()).map_or(usize::MAX, |(Width(columns), _)| columns.into());
    all.saturating_sub(before)
}

impl Display for Bars {
    fn event(&self, event: &Event<'_>) {
        if let Some((stage, progress)) = event.begins() {
            self.start(stage, progress);
        } else if let Some(stage) = event.ends() {
            self.end(stage);
        }
        self.print(&plain::line(event, self.detail));
    }

    fn said(&self, said: &Said<'_>) {
        self.print(&plain::said(said));
    }

    fn tick(&self) {
        self.running().values().for_each(ProgressBar::tick);
    }
}
