//! The turn of one stage in a run: left alone, restored, brought or made, with locks that keep other runs away meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError};

use super::digest::Digest;
use super::execute::Task;
use super::explain::{Note, Reason};
use super::judge::{Bench, Judgement, damage, judge};
use super::ledger::Line;
use super::lock::{For, Lock};
use super::memo::Belief;
use super::observe::{Event, Made};
use super::outcome::Outcome;
use super::progress::Progress;
use super::publish::recover;
use super::restore::{Restore, Restored};
use super::run::{Making, Session, Turn};
use super::stage::{Input, Stage};

impl Session<'_> {
    /// Leaves a stage alone that is up to date, or else has it for this process alone while it makes it.
    pub(super) fn job(&self, place: usize, same: Vec<Note>, beside: NonZeroUsize) -> anyhow::Result<Turn> {
        let stage = self.engine.graph.stage(place);
        let reading = self.lock(place, place, For::Reading)?;
        self.ledger().catch_up()?;
        let last = self.ledger().last(stage.name()).cloned();
        let judgement = judge(stage, last.as_ref(), &self.artifacts(place), &self.bench())?;
        self.engine.settings.cancel.check()?;
        if judgement.reasons.is_empty() {
            return self.fresh(stage.name(), judgement, same);
        }
        drop(reading);
        let _making = self.lock(place, place, For::Making)?;
        self.ledger().catch_up()?;
        recover(stage.name(), &self.engine.layout, &self.engine.settings, &self.records.ledger);
        let turn = self.bring_about(place, same, beside)?;
        if matches!(&turn, Turn::Over(Outcome::Done(_) | Outcome::Restored | Outcome::Pulled)) {
            self.remember(stage.name());
        }
        Ok(turn)
    }

    /// Keeps in mind which artifact the stage has at the end of its turn.
    fn remember(&self, stage: &str) {
        let artifact = self.ledger().last(stage).map(|line| line.artifact);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(artifact.map(|artifact| (stage.to_owned(), artifact)));
    }

    /// Fails if another run has replaced what the stage reads since this one looked at it: its files have changed meanwhile.
    fn check_upstream(&self, place: usize) -> anyhow::Result<()> {
        self.ledger().catch_up()?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for up in self.engine.graph.upstream(place).iter().map(|&up| self.name(up)) {
            let now = self.ledger().last(up).map(|line| line.artifact);
            let same = seen.get(up).is_none_or(|before| now.as_ref() == Some(before));
            anyhow::ensure!(
                same,
                "another run has made {up} anew since this one looked at it, because a file that it reads has changed: run again"
            );
        }
        Ok(())
    }

    fn fresh(&self, stage: &str, mut judgement: Judgement, same: Vec<Note>) -> anyhow::Result<Turn> {
        judgement.notes.extend(same);
        self.observer.event(&Event::Fresh { stage, notes: &judgement.notes });
        self.remember(stage);
        self.share(stage)?;
        Ok(Turn::Over(Outcome::Fresh))
    }

    /// The lock of the stage at `place`, which the one at `of` waits for.
    pub(super) fn lock(&self, place: usize, of: usize, what: For) -> anyhow::Result<Lock> {
        let (stage, cancel) = (self.name(of), &self.engine.settings.cancel);
        let path = self.engine.layout.stage_lock(self.name(place));
        let mut wait =
            |holder: &str| self.observer.event(&Event::Waits { stage, of: self.name(place), holder });
        Ok(Lock::of_stage(&path, what, cancel, &mut wait)?)
    }

    /// Keeps what the stage reads as it is. All locks are taken from a stage to those before it, so that nobody waits in a circle.
    fn read_upstream(&self, place: usize) -> anyhow::Result<Vec<Lock>> {
        let upstream: BTreeSet<usize> = self.engine.graph.upstream(place).iter().copied().collect();
        upstream.into_iter().rev().map(|up| self.lock(up, place, For::Reading)).collect()
    }

    /// The artifacts that the stage reads, here or in the depot.
    fn artifacts(&self, place: usize) -> BTreeMap<String, Option<Digest>> {
        let upstream = self.engine.graph.upstream(place).iter().map(|&up| self.name(up));
        let here = |name: &str| self.ledger().last(name).map(|line| line.artifact);
        upstream.map(|name| (name.to_owned(), self.shared.artifact(name).or_else(|| here(name)))).collect()
    }

    fn bring_about(&self, place: usize, same: Vec<Note>, beside: NonZeroUsize) -> anyhow::Result<Turn> {
        let cancel = &self.engine.settings.cancel;
        let stage = self.engine.graph.stage(place);
        let last = self.ledger().last(stage.name()).cloned();
        let artifacts = self.artifacts(place);
        let bench = self.bench();
        let mut judgement = judge(stage, last.as_ref(), &artifacts, &bench)?;
        if !judgement.reasons.is_empty() {
            // As with what is up to date, time stamps are trusted for what goes in, and everything that comes out is read.
            let damaged = match self.restore(stage.name(), &judgement)? {
                Restored::Yes(line) => {
                    self.observer.event(&Event::Restored { line: &line });
                    self.share(stage.name())?;
                    return Ok(Turn::Over(Outcome::Restored));
                }
                Restored::Damaged(reason) => Some(reason),
                Restored::Nothing => None,
            };
            if let Some(outcome) = self.had_elsewhere(stage.name(), judgement)? {
                return Ok(Turn::Over(outcome));
            }
            if self.making == Making::Yes {
                self.bring_files(stage)?;
            }
            // Time stamps are good enough to leave a stage alone, not for what goes into an artifact.
            let reading = Bench { inputs: Belief::Reading, ..bench };
            judgement = judge(stage, last.as_ref(), &artifacts, &reading)?;
            if !judgement.reasons.is_empty() {
                // First, where it is said even if only one reason is.
                judgement.reasons.splice(0..0, damaged.into_iter().chain(self.shared.damage(stage.name())));
            }
        }
        cancel.check()?;
        if judgement.reasons.is_empty() {
            return self.fresh(stage.name(), judgement, same);
        }
        if self.making == Making::No {
            return Err(self.not_there(&judgement).into());
        }
        let mut damaged = self.bring_upstream(place, &judgement)?;
        let _reading = self.read_upstream(place)?;
        self.check_upstream(place)?;
        cancel.check()?;
        let elsewhere: BTreeSet<usize> = damaged.iter().map(|(up, _)| *up).collect();
        damaged.extend(self.damaged(place).into_iter().filter(|(up, _)| !elsewhere.contains(up)));
        cancel.check()?;
        if !damaged.is_empty() {
            return Ok(Turn::Damaged(damaged));
        }
        self.make(stage, last.as_ref(), &judgement, beside)
    }

    /// Brings what the stage reads from stores and is not here.
    fn bring_files(&self, stage: &dyn Stage) -> anyhow::Result<()> {
        let Some(files) = &self.engine.settings.elsewhere else { return Ok(()) };
        let paths: Vec<_> = stage.inputs().into_iter().filter_map(Input::outside).collect();
        let stage = stage.name();
        files.bring(&paths, &|from| self.observer.event(&Event::Fetching { stage, from }))
    }

    /// Runs the stage, as judged.
    fn make(
        &self,
        stage: &dyn Stage,
        last: Option<&Line>,
        judgement: &Judgement,
        beside: NonZeroUsize,
    ) -> anyhow::Result<Turn> {
        let settings = &self.engine.settings;
        let (cancel, faults) = (settings.cancel.clone(), settings.faults.clone());
        let progress = Progress::new(stage.name(), cancel, faults, Arc::clone(&settings.clock));
        let reasons = &judgement.reasons;
        self.observer.event(&Event::Started { stage: stage.name(), reasons, progress: &progress });
        let restart = settings.restart && self.is_asked(stage.name());
        let task =
            Task { stage, layout: &self.engine.layout, settings, records: &self.records, restart, beside };
        let line = task.execute(judgement, &progress)?;
        self.shared.made(stage.name());
        let result = made(last, &line);
        self.observer.event(&Event::Done { line: &line, progress: progress.snapshot(), result });
        self.share(stage.name())?;
        Ok(Turn::Over(Outcome::Done(result)))
    }

    fn restore(&self, stage: &str, judgement: &Judgement) -> anyhow::Result<Restored> {
        let (layout, settings, records) = (&self.engine.layout, &self.engine.settings, &self.records);
        Restore { stage, layout, settings, records }.attempt(judgement)
    }

    /// What is damaged of the artifacts that the stage reads, each with the place of the stage that makes it: whatever this process
    /// has not itself read or written is read and compared with the ledger.
    fn damaged(&self, place: usize) -> Vec<(usize, Reason)> {
        let reading = Bench { artifacts: Belief::Reading, ..self.bench() };
        let of = |&up: &usize| {
            let line = self.ledger().last(self.name(up)).cloned();
            let found = line.map_or_else(Vec::new, |line| damage(&line, &reading));
            found.into_iter().map(move |reason| (up, reason))
        };
        self.engine.graph.upstream(place).iter().flat_map(of).collect()
    }
}

fn made(before: Option<&Line>, line: &Line) -> Made {
    if before.is_some_and(|before| before.artifact == line.artifact) { Made::Same } else { Made::New }
}
