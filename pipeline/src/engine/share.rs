//! A run that shares artifacts: what the depot has is not made again and is downloaded only where it is asked for or read; what was made here is put
//! there. Does not decide whether a stage is up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Engine;
use super::depot::{Access, Depot, Known, Moving, Pulled, Trust};
use super::digest::{Digest, each};
use super::error::Error;
use super::explain::Reason;
use super::failure;
use super::fault::Point;
use super::folder;
use super::judge::Judgement;
use super::ledger::{Ledger, Line};
use super::lock::{For, Lock};
use super::observe::{Event, Observe};
use super::outcome::Outcome;
use super::progress::Progress;
use super::restore::Restore;
use super::run::{Making, Session};
use super::stage::Input;
use super::survey::State;

/// What a run knows of the depot.
#[derive(Default)]
pub(super) struct Shared {
    /// Stages whose artifacts the depot has and that were not brought here.
    away: Mutex<BTreeMap<String, Arc<Away>>>,
    /// Stages whose artifacts in the depot are damaged, and what says so: they are made here, and put there anew.
    damaged: Mutex<BTreeMap<String, Reason>>,
    /// What was made and could not be put there.
    unshared: Mutex<Vec<String>>,
}

/// An artifact in the depot.
struct Away {
    line: Line,
    judged: Judgement,
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The digest of the artifact of a stage that is not here.
    pub(super) fn artifact(&self, stage: &str) -> Option<Digest> {
        held(&self.away).get(stage).map(|away| away.line.artifact)
    }

    /// Why what the depot has of a stage is not used.
    pub(super) fn damage(&self, stage: &str) -> Option<Reason> {
        held(&self.damaged).get(stage).cloned()
    }

    /// A stage has been made here. Until then others are judged by what it will be, even if what the depot has of it is damaged.
    pub(super) fn made(&self, stage: &str) {
        held(&self.away).remove(stage);
    }

    /// The stages that could not be put into the depot.
    pub(super) fn into_unshared(self) -> Vec<String> {
        self.unshared.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is looked at to find out whether the depot has an artifact.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Its line, which is written last.
    AtTheLine,
    /// Every file as well: somebody may have removed one.
    AtAll,
}

/// What was put into the depot, and what was not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pushed {
    /// How many artifacts are there now.
    pub there: usize,
    /// How many of them were not there before.
    pub new: usize,
    /// Stages that are not up to date here.
    pub stale: Vec<String>,
    /// Stages that are, and could not be put there.
    pub failed: Vec<String>,
    /// Stages that are, and stay here for their licence level.
    pub withheld: Vec<String>,
}

impl Engine {
    /// Puts what is up to date of the named stages and of everything they need into the depot; of all stages if none is named.
    ///
    /// # Errors
    /// When it cannot begin, or somebody asks to stop.
    pub(crate) fn push(&self, goals: &[String], observer: &dyn Observe) -> anyhow::Result<Pushed> {
        let mut pushed = Pushed::default();
        let Some(depot) = &self.settings.depot else { return Ok(pushed) };
        anyhow::ensure!(
            depot.access() == Access::Write,
            "the depot {} is only read from: nothing can be put there",
            depot.place()
        );
        let _lock = Lock::take(&self.layout.lock())?;
        depot.open(Access::Write)?;
        let findings = self.survey(goals)?;
        let ledger = Mutex::new(Ledger::read(&self.layout.ledger())?);
        let session = Session::new(self, goals, observer, Making::No, ledger)?;
        for finding in findings {
            let stage = &finding.stage;
            if finding.state == State::Depot {
                pushed.there += 1;
                continue;
            }
            let line = finding.last.as_ref().filter(|_| finding.state == State::Fresh);
            let Some(line) = line else {
                pushed.stale.push(stage.clone());
                continue;
            };
            let licence = session.licence(session.engine.graph.find(stage)?)?;
            if let Some(why) = depot.withholds(&licence) {
                observer.event(&Event::Withheld { stage, why: &why });
                pushed.withheld.push(stage.clone());
                continue;
            }
            let line = Line { licence: licence.ok(), ..line.clone() };
            match session.push(depot, &line, Look::AtAll) {
                Ok(new) => {
                    session.note_files(depot, stage);
                    (pushed.there, pushed.new) = (pushed.there + 1, pushed.new + usize::from(new));
                }
                Err(error) => {
                    self.settings.cancel.check()?;
                    observer.event(&Event::Unshared { stage, error: &failure::text(&error) });
                    pushed.failed.push(stage.clone());
                }
            }
        }
        Ok(pushed)
    }
}

impl Session<'_> {
    /// What becomes of a stage that is not up to date, if the depot has what it would make.
    pub(super) fn had_elsewhere(&self, stage: &str, judged: Judgement) -> anyhow::Result<Option<Outcome>> {
        let Some(depot) = &self.engine.settings.depot else { return Ok(None) };
        if self.shared.damage(stage).is_some() {
            return Ok(None);
        }
        let Some(line) = depot.made(stage, &judged)? else { return Ok(None) };
        // What was read here to find it need not be read by the next machine.
        if depot.access() == Access::Write && self.making == Making::Yes {
            self.note_files(depot, stage);
        }
        let away = Away { line, judged };
        if !self.is_asked(stage) {
            self.observer.event(&Event::Away { line: &away.line });
            held(&self.shared.away).insert(stage.to_owned(), Arc::new(away));
            return Ok(Some(Outcome::Away));
        }
        let damage = self.bring(depot, stage, &away)?;
        let Some(damage) = damage else { return Ok(Some(Outcome::Pulled)) };
        held(&self.shared.damaged).insert(stage.to_owned(), damage);
        Ok(None)
    }

    /// Brings what the stage at `place` reads and is not here; gives those whose artifacts in the depot are damaged, with their places.
    pub(super) fn bring_upstream(
        &self,
        place: usize,
        judged: &Judgement,
    ) -> anyhow::Result<Vec<(usize, Reason)>> {
        let mut found = Vec::new();
        let Some(depot) = &self.engine.settings.depot else { return Ok(found) };
        // From a stage to those before it, as all locks are taken.
        let upstream: BTreeSet<usize> = self.engine.graph.upstream(place).iter().copied().collect();
        for up in upstream.into_iter().rev() {
            let stage = self.name(up);
            // Only one that is to be replaced is waited for; by then it may have been.
            let mut away = self.still_away(stage)?;
            let _making = match away {
                Some(_) => {
                    let making = self.lock(up, place, For::Making)?;
                    away = self.still_away(stage)?;
                    Some(making)
                }
                None => None,
            };
            if let Some(damage) = self.shared.damage(stage) {
                // Unless it was made again meanwhile.
                let here = self.ledger().last(stage).map(|line| line.artifact);
                if here.as_ref() != judged.description.artifacts.get(stage) {
                    found.push((up, damage));
                }
                continue;
            }
            let Some(away) = away else { continue };
            let brought = self.bring(depot, stage, &away).inspect_err(|error| {
                self.observer.event(&Event::NotPulled { stage, why: &failure::text(error) });
            })?;
            match brought {
                Some(damage) => {
                    held(&self.shared.damaged).insert(stage.to_owned(), damage.clone());
                    found.push((up, damage));
                }
                // Only now that the ledger has it: whoever looks meanwhile is told the digest that it will have.
                None => drop(held(&self.shared.away).remove(stage)),
            }
        }
        Ok(found)
    }

    /// What the depot has of a stage and is not here, unless another run has brought it meanwhile.
    fn still_away(&self, stage: &str) -> anyhow::Result<Option<Arc<Away>>> {
        let Some(away) = held(&self.shared.away).get(stage).cloned() else { return Ok(None) };
        let mut ledger = self.ledger();
        ledger.catch_up()?;
        let is_it =
            |line: &Line| line.artifact == away.line.artifact && line.fingerprint == away.line.fingerprint;
        let is_here = ledger.last(stage).is_some_and(is_it);
        drop(ledger);
        if is_here {
            held(&self.shared.away).remove(stage);
        }
        Ok((!is_here).then_some(away))
    }

    /// Downloads an artifact and puts it in its place; gives what is damaged of it, if anything is, and then leaves everything as it was.
    fn bring(&self, depot: &Depot, stage: &str, away: &Away) -> anyhow::Result<Option<Reason>> {
        let (layout, settings) = (&self.engine.layout, &self.engine.settings);
        let Away { line, judged } = away;
        let progress = self.moves(line);
        self.observer.event(&Event::Pulling { line, progress: &progress });
        let work = layout.pulled(stage, &line.fingerprint);
        folder::remove(&work)?;
        std::fs::create_dir_all(&work).map_err(Error::at(&work))?;
        let moved = |bytes| {
            settings.faults.pass(stage, Point::Pulling);
            progress.count_bytes(bytes);
        };
        let moving =
            Moving { jobs: settings.jobs, cancel: &settings.cancel, moved: &moved, before_line: &|| () };
        let known = match depot.pull(line, &work, &moving) {
            Ok(Pulled::Whole(known)) => known,
            Ok(Pulled::Damaged(object)) => {
                folder::remove(&work)?;
                let damage = Reason::DepotDamaged { object };
                self.observer.event(&Event::NotPulled { stage, why: &damage.to_string() });
                return Ok(Some(damage));
            }
            Err(error) => {
                // What stays is swept by the next run; the depot's own error is the one to report.
                let _ = folder::remove(&work);
                return Err(error);
            }
        };
        settings.faults.pass(stage, Point::Pulled);
        let restore = Restore { stage, layout, settings, records: &self.records };
        let line = restore.put(line, &work, known, judged)?;
        self.observer.event(&Event::Pulled { line: &line });
        Ok(None)
    }

    /// Puts what is in place of a stage into the depot, if that lacks it. Of what cannot be put there something is said, and the run goes on: it is
    /// here all the same.
    ///
    /// # Errors
    /// When the depot has another artifact of the same settings and inputs.
    pub(super) fn share(&self, stage: &str) -> anyhow::Result<()> {
        let settings = &self.engine.settings;
        let may = |depot: &&Depot| depot.access() == Access::Write && self.making == Making::Yes;
        let Some(depot) = settings.depot.as_ref().filter(may) else {
            return Ok(());
        };
        let Some(line) = self.ledger().last(stage).cloned() else { return Ok(()) };
        let licence = self.licence(self.engine.graph.find(stage)?)?;
        if let Some(why) = depot.withholds(&licence) {
            self.observer.event(&Event::Withheld { stage, why: &why });
            return Ok(());
        }
        let line = Line { licence: licence.ok(), ..line };
        match self.push(depot, &line, Look::AtTheLine) {
            Err(error) if settings.cancel.is_cancelled() || error.is::<super::depot::Differs>() => Err(error),
            Err(error) => {
                self.observer.event(&Event::Unshared { stage, error: &failure::text(&error) });
                held(&self.shared.unshared).push(stage.to_owned());
                Ok(())
            }
            Ok(_) => {
                self.note_files(depot, stage);
                Ok(())
            }
        }
    }

    /// Has the depot note what the files are that the stage reads from stores; says of one why it is not.
    fn note_files(&self, depot: &Depot, stage: &str) {
        let (Some(files), Ok(place)) = (&self.engine.settings.elsewhere, self.engine.graph.find(stage))
        else {
            return;
        };
        let paths = self.engine.graph.stage(place).inputs().into_iter().filter_map(Input::outside);
        let news: Vec<_> = paths.filter_map(|path| files.news(&path)).collect();
        let noted = each(&news, self.engine.settings.jobs, |told| depot.note(told));
        if let Some(error) = noted.into_iter().find_map(Result::err) {
            self.observer.event(&Event::Unnoted { stage, error: &failure::text(&error) });
        }
    }

    /// The licence of the artifact of the stage at `place`, by the files that it comes from as they are now: their level may have changed since the stage read
    /// them, and its bytes not.
    fn licence(&self, place: usize) -> anyhow::Result<Known> {
        let mut wanted = BTreeSet::from([place]);
        let mut all = Vec::new();
        // Each stands behind those that it reads.
        while let Some(place) = wanted.pop_last() {
            wanted.extend(self.engine.graph.upstream(place));
            all.push(place);
        }
        let mut known = BTreeMap::new();
        for place in all.into_iter().rev() {
            known.insert(place, self.licence_by(place, &known)?);
        }
        Ok(known.remove(&place).unwrap_or_else(|| Err(self.name(place).to_owned())))
    }

    /// The same, where it is known of what the stage reads.
    fn licence_by(&self, place: usize, known: &BTreeMap<usize, Known>) -> anyhow::Result<Known> {
        let stage = self.name(place);
        let unknown = || stage.to_owned();
        let away = held(&self.shared.away).get(stage).map(|away| away.line.licence);
        if let Some(licence) = away {
            return Ok(licence.ok_or_else(unknown));
        }
        let Some(licence) = self.ledger().last(stage).map(|line| line.licence) else {
            return Ok(Err(unknown()));
        };
        let folder = self.engine.layout.artifact(stage);
        if !folder.is_dir() {
            return Ok(licence.ok_or_else(unknown));
        }
        let mut licence = self.engine.graph.stage(place).licence(&folder)?;
        for up in self.engine.graph.upstream(place) {
            match known.get(up) {
                Some(Ok(of)) => licence = licence.with(*of),
                Some(Err(unknown)) => return Ok(Err(unknown.clone())),
                None => return Ok(Err(unknown())),
            }
        }
        Ok(Ok(licence))
    }

    /// Puts an artifact into the depot; whether it was not there.
    fn push(&self, depot: &Depot, line: &Line, look: Look) -> anyhow::Result<bool> {
        let (stage, settings) = (line.stage.as_str(), &self.engine.settings);
        let progress = self.moves(line);
        let moved = |bytes| {
            settings.faults.pass(stage, Point::Blob);
            progress.count_bytes(bytes);
        };
        let moving = Moving {
            jobs: settings.jobs,
            cancel: &settings.cancel,
            moved: &moved,
            before_line: &|| settings.faults.pass(stage, Point::Blobs),
        };
        let trust = if self.shared.damage(stage).is_some() { Trust::Nothing } else { Trust::Lengths };
        let has = depot.has(line)?;
        if has && trust == Trust::Lengths && look == Look::AtTheLine {
            return Ok(false);
        }
        self.observer.event(&Event::Pushing { line, progress: &progress });
        let place = self.engine.layout.artifact(stage);
        let pushed = if has {
            depot.blobs(line, &place, trust, &moving)
        } else {
            depot.push(line, &place, trust, &moving)
        };
        let bytes = progress.snapshot().bytes;
        self.observer.event(&Event::Pushed { stage, bytes: pushed.is_ok().then_some(bytes) });
        pushed?;
        settings.faults.pass(stage, Point::Shared);
        Ok(!has)
    }

    /// Counts the bytes of an artifact that is on its way.
    fn moves(&self, line: &Line) -> Progress {
        let settings = &self.engine.settings;
        let (cancel, faults) = (settings.cancel.clone(), settings.faults.clone());
        let progress = Progress::new(&line.stage, cancel, faults, Arc::clone(&settings.clock));
        progress.total_bytes(line.bytes());
        progress
    }
}
