//! Puts back what an earlier run made with just the settings and inputs of now, instead of making it again: read and compared with the ledger
//! first, then published as a finished artifact is. Does not decide whether the stage is up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Settings;
use super::error::Error;
use super::execute::Records;
use super::explain::Reason;
use super::judge::Judgement;
use super::kept::{Candidate, candidate};
use super::layout::Layout;
use super::ledger::{self, Ledger, Line};
use super::memo::Known;
use super::publish::{Finished, check_place};

/// What became of the attempt to restore an artifact.
pub(super) enum Restored {
    /// It is in place; this is its line.
    Yes(Box<Line>),
    /// No earlier run made it, or it is no longer kept.
    Nothing,
    /// It is kept, but damaged, as the reason says: the stage has to run.
    Damaged(Reason),
}

/// A stage that is not up to date and may have been once.
pub(super) struct Restore<'a> {
    pub(super) stage: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) settings: &'a Settings,
    pub(super) records: &'a Records,
}

impl Restore<'_> {
    /// Restores the artifact that the stage would make if it ran as judged, if it is kept.
    pub(super) fn attempt(&self, judged: &Judgement) -> anyhow::Result<Restored> {
        let Settings { jobs, cancel, .. } = self.settings;
        let Some((line, folder)) = self.find(judged) else { return Ok(Restored::Nothing) };
        let found = Candidate { line: &line, folder };
        let known = match found.check(*jobs, cancel) {
            Ok(known) => known,
            Err(file) => {
                // Reading fails too when somebody asks to stop.
                cancel.check()?;
                self.records.memo.forget(&found.folder.join(&file));
                return Ok(Restored::Damaged(found.damage(&file, self.layout)));
            }
        };
        self.put(&line, &found.folder, known, judged).map(|line| Restored::Yes(Box::new(line)))
    }

    /// Puts the artifact of `made`, which is whole in `folder`, in its place; gives its new line.
    pub(super) fn put(
        &self,
        made: &Line,
        folder: &Path,
        known: Vec<Known>,
        judged: &Judgement,
    ) -> anyhow::Result<Line> {
        check_place(self.stage, self.layout, &self.records.ledger)?;
        let place = self.layout.artifact(self.stage);
        for (output, known) in made.outputs.iter().zip(known) {
            self.records.memo.learn(&place.join(&output.path), known);
        }
        let again = self.line(made, judged);
        if folder == place {
            // A run with other settings left the same contents: only the ledger has to know.
            lock(&self.records.ledger).append(again.clone(), &self.settings.faults)?;
            return Ok(again);
        }
        let before = self.records.in_place(self.stage, judged);
        fs::create_dir_all(self.layout.works()).map_err(Error::at(&self.layout.works()))?;
        let finished = Finished { work: folder, fingerprint: &again.fingerprint, line: &again, before };
        finished.publish(self.layout, self.settings, &self.records.ledger)?;
        Ok(again)
    }

    fn find(&self, judged: &Judgement) -> Option<(Line, PathBuf)> {
        let ledger = lock(&self.records.ledger);
        let found = candidate(self.stage, judged, &ledger, self.layout)?;
        Some((found.line.clone(), found.folder))
    }

    /// The line of the run that made it, with the reasons for which it is wanted again.
    fn line(&self, made: &Line, judged: &Judgement) -> Line {
        let now = (self.settings.clock)().as_millis();
        Line {
            format: ledger::VERSION,
            described: judged.description.clone(),
            reasons: judged.reasons.clone(),
            restored_ms: Some(u64::try_from(now).unwrap_or(u64::MAX)),
            ..made.clone()
        }
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
