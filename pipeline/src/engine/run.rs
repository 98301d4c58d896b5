//! Runs what is not up to date: each stage as soon as its inputs are there, independent ones at once. Does no stage's work.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use super::Engine;
use super::depot::Access;
use super::digest::Digest;
use super::error::Error;
use super::execute::{Records, message, sweep};
use super::explain::{Note, Reason};
use super::failure;
use super::judge::{Bench, Judgement};
use super::kept::Store;
use super::ledger::Ledger;
use super::live;
use super::lock::{Company, Lock};
use super::memo::Memo;
use super::observe::{Event, Made, Observe};
use super::outcome::{Outcome, Summary};
use super::publish::recover;
use super::share::Shared;

/// Whether stages are made that are neither here nor in the depot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Making {
    Yes,
    /// Such a stage is an error.
    No,
}

/// A run in progress.
pub(super) struct Session<'a> {
    pub(super) engine: &'a Engine,
    goals: &'a [String],
    pub(super) observer: &'a dyn Observe,
    pub(super) records: Records,
    pub(super) shared: Shared,
    pub(super) making: Making,
    /// The artifacts of stages whose turns are over.
    pub(super) seen: Mutex<BTreeMap<String, Digest>>,
}

impl Engine {
    /// Brings the artifacts of the named stages up to date, with everything they need; of all stages if none is named.
    /// A stage that fails stops only the stages that need it.
    ///
    /// # Errors
    /// When the run cannot begin. What happens to stages stands in the summary.
    pub(crate) fn run(&self, goals: &[String], observer: &dyn Observe) -> Result<Summary, Error> {
        self.work(goals, observer, Making::Yes)
    }

    /// Brings the artifacts of the named stages, of all if none is named, from the depot where they are not up to date; makes nothing.
    ///
    /// # Errors
    /// When it cannot begin. What happens to stages stands in the summary.
    pub(crate) fn pull(&self, goals: &[String], observer: &dyn Observe) -> Result<Summary, Error> {
        self.work(goals, observer, Making::No)
    }

    fn work(&self, goals: &[String], observer: &dyn Observe, making: Making) -> Result<Summary, Error> {
        let needed = self.graph.needed(goals)?;
        let (mut lock, company) =
            Lock::join(&self.layout.lock(), &self.settings_digest()?, &self.settings.cancel)?;
        if company == Company::Others && self.settings.launch.is_some() {
            return Err(Error::new(format!(
                "another engraft is running in {}: a training that several processes share has the folder to itself; wait for the other to end, stop it, or choose another folder with --out",
                self.layout.out().display()
            )));
        }
        if let Some(depot) = &self.settings.depot {
            // What only brings artifacts need not be allowed to write.
            let access = if making == Making::Yes { depot.access() } else { Access::Read };
            depot.open(access).map_err(|error| Error::new(failure::text(&error)))?;
        }
        let ledger = Mutex::new(Ledger::read(&self.layout.ledger())?);
        self.claim()?;
        // What a run beside this one is about to finish is not to be tidied away.
        if company == Company::Alone {
            for place in self.graph.needed(&[])? {
                recover(self.graph.stage(place).name(), &self.layout, &self.settings, &ledger);
            }
            sweep(&self.graph, &self.layout, &self.settings, &ledger);
            live::sweep(&self.layout);
            lock.share(&self.settings.cancel)?;
        }
        let session = Session::new(self, goals, observer, making, ledger)?;
        let outcomes = session.schedule(&needed);
        // A memo that cannot be saved costs the next run some reading, nothing else.
        let _ = session.records.memo.save();
        session.trim(|_| true);
        if lock.is_last() {
            // These succeed only if nothing is left in them to resume or to restore.
            let _ = std::fs::remove_dir(self.layout.works());
            let _ = std::fs::remove_dir(self.layout.kept());
            let _ = std::fs::remove_dir_all(self.layout.stage_locks());
            live::sweep(&self.layout);
        }
        let name = |place| self.graph.stage(place).name().to_owned();
        Ok(Summary {
            outcomes: outcomes.into_iter().map(|(place, outcome)| (name(place), outcome)).collect(),
            unshared: session.shared.into_unshared(),
        })
    }
}

type Outcomes = BTreeMap<usize, Outcome>;

/// How a stage's turn ended.
pub(super) enum Turn {
    /// With an outcome.
    Over(Outcome),
    /// It did not begin: what it reads of the stages at these places is damaged.
    Damaged(Vec<(usize, Reason)>),
}

impl<'a> Session<'a> {
    /// A run that has not begun. Nobody else may be writing.
    pub(super) fn new(
        engine: &'a Engine,
        goals: &'a [String],
        observer: &'a dyn Observe,
        making: Making,
        ledger: Mutex<Ledger>,
    ) -> Result<Self, Error> {
        let records = Records { ledger, memo: Memo::load(&engine.layout.memo()), others: engine.others()? };
        Ok(Self {
            engine,
            goals,
            observer,
            records,
            shared: Shared::default(),
            making,
            seen: Mutex::default(),
        })
    }
}

impl Session<'_> {
    fn schedule(&self, needed: &[usize]) -> Outcomes {
        let mut outcomes = Outcomes::new();
        let mut waiting = needed.to_vec();
        let (mut running, mut again) = (0, BTreeSet::new());
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            loop {
                self.skip(&mut waiting, &mut outcomes);
                while let Some(place) = self.next(running, &mut waiting, &outcomes) {
                    running += 1;
                    let (to, same) = (sender.clone(), self.same_again(place, &outcomes));
                    let beside = self.beside(running, &waiting, &outcomes);
                    let work = move || to.send((place, self.guarded(place, same, beside)));
                    if let Err(cause) = thread::Builder::new().spawn_scoped(scope, work) {
                        let error =
                            anyhow::Error::new(cause).context("no thread can be started for the stage");
                        // This function holds a receiver, so there is always somebody to send to.
                        let _ = sender.send((place, Turn::Over(self.failed(place, &error))));
                    }
                }
                if running == 0 {
                    break;
                }
                // This function holds a sender too, so there is always somebody to wait for.
                let Ok((place, turn)) = receiver.recv() else { break };
                running -= 1;
                match turn {
                    Turn::Over(outcome) => {
                        outcomes.insert(place, outcome);
                        // What a stage may still want back stays until its turn is over.
                        self.trim(|stage| self.is_over(stage, needed, &outcomes));
                    }
                    Turn::Damaged(found) if again.insert(place) => {
                        let makers = found.iter().map(|(maker, _)| *maker).collect();
                        revive(place, &makers, &mut waiting, &mut outcomes);
                    }
                    Turn::Damaged(found) => drop(outcomes.insert(place, self.beyond_help(place, &found))),
                }
            }
        });
        for place in waiting {
            self.observer.event(&Event::Interrupted { stage: self.name(place) });
            outcomes.insert(place, Outcome::Interrupted);
        }
        outcomes
    }

    /// Whether everything that the stage reads is there.
    fn is_ready(&self, place: usize, outcomes: &Outcomes) -> bool {
        let done = |outcome: &Outcome| {
            use Outcome::{Away, Done, Fresh, Pulled, Restored};
            matches!(outcome, Fresh | Done(_) | Restored | Pulled | Away)
        };
        self.engine.graph.upstream(place).iter().all(|up| outcomes.get(up).is_some_and(done))
    }

    /// How many stages run at once, as far as that is known: those at work, and those that may begin.
    fn beside(&self, running: usize, waiting: &[usize], outcomes: &Outcomes) -> NonZeroUsize {
        let ready = waiting.iter().filter(|place| self.is_ready(**place, outcomes)).count();
        let jobs = self.engine.settings.jobs;
        NonZeroUsize::new(running + ready).map_or(jobs, |all| all.min(jobs))
    }

    /// Takes a stage whose inputs are all there out of the waiting ones, if another may start.
    fn next(&self, running: usize, waiting: &mut Vec<usize>, outcomes: &Outcomes) -> Option<usize> {
        let settings = &self.engine.settings;
        if running >= settings.jobs.get() || settings.cancel.is_cancelled() {
            return None;
        }
        let ready = |place: &usize| self.is_ready(*place, outcomes);
        let at = waiting.iter().position(ready)?;
        // What somebody else makes is left to them as long as there is something else to do.
        let free = |place: &usize| {
            ready(place) && Lock::try_of_stage(&self.engine.layout.stage_lock(self.name(*place))).is_some()
        };
        Some(waiting.remove(waiting.iter().position(free).unwrap_or(at)))
    }

    /// Gives up the waiting stages that need a failed one. Stages wait in order, so one pass reaches all of them.
    fn skip(&self, waiting: &mut Vec<usize>, outcomes: &mut Outcomes) {
        waiting.retain(|&place| {
            let failed = self.engine.graph.upstream(place).iter().find_map(|up| match outcomes.get(up) {
                Some(Outcome::Failed(_)) => Some(self.name(*up).to_owned()),
                Some(Outcome::Skipped(because)) => Some(because.clone()),
                _ => None,
            });
            let Some(because) = failed else { return true };
            self.observer.event(&Event::Skipped { stage: self.name(place), because: &because });
            outcomes.insert(place, Outcome::Skipped(because));
            false
        });
    }

    /// Removes what is kept beyond the bounds, of the stages that are `over`.
    fn trim(&self, over: impl Fn(&str) -> bool) {
        let layout = &self.engine.layout;
        let excess = {
            let mut ledger = self.ledger();
            if ledger.catch_up().is_err() {
                return;
            }
            let lines = ledger.lines().len();
            Store::list(layout, &ledger)
                .map(|store| (store.excess(self.engine.settings.keep, &ledger, layout), lines))
        };
        let Ok((excess, lines)) = excess else { return };
        for kept in excess.into_iter().filter(|kept| over(&kept.stage)) {
            // A run beside this one may want it back, or know more of it by now.
            let Some(_lock) = Lock::try_of_stage(&layout.stage_lock(&kept.stage)) else { continue };
            let mut ledger = self.ledger();
            if ledger.catch_up().is_err() || ledger.lines().len() != lines {
                return;
            }
            // What cannot be removed takes up room; the next run tries again.
            let _ = kept.discard(layout);
        }
    }

    fn is_over(&self, stage: &str, needed: &[usize], outcomes: &Outcomes) -> bool {
        let place = self.engine.graph.find(stage).ok().filter(|place| needed.contains(place));
        place.is_none_or(|place| outcomes.contains_key(&place))
    }

    fn same_again(&self, place: usize, outcomes: &Outcomes) -> Vec<Note> {
        let upstream = self.engine.graph.upstream(place).iter();
        let same = upstream.filter(|up| outcomes.get(up) == Some(&Outcome::Done(Made::Same)));
        same.map(|&up| Note::SameAgain { name: self.name(up).to_owned() }).collect()
    }

    /// Does the job; a panic outside the stage's own code must not leave the scheduler waiting.
    fn guarded(&self, place: usize, same: Vec<Note>, beside: NonZeroUsize) -> Turn {
        let done = catch_unwind(AssertUnwindSafe(|| self.job(place, same, beside)));
        let done = done
            .unwrap_or_else(|panic| Err(anyhow::anyhow!("the runner panicked: {}", message(panic.as_ref()))));
        done.unwrap_or_else(|error| Turn::Over(self.failed(place, &error)))
    }

    /// Tells of a failure, or of an interruption if somebody asked for one.
    pub(super) fn failed(&self, place: usize, error: &anyhow::Error) -> Outcome {
        let stage = self.name(place);
        if self.engine.settings.cancel.is_cancelled() {
            self.observer.event(&Event::Interrupted { stage });
            return Outcome::Interrupted;
        }
        let error = failure::with_remedy(failure::text(error));
        self.observer.event(&Event::Failed { stage, error: &error });
        Outcome::Failed(error)
    }

    /// The failure of a stage whose inputs are damaged although they were made again.
    fn beyond_help(&self, place: usize, found: &[(usize, Reason)]) -> Outcome {
        let found: Vec<_> =
            found.iter().map(|(maker, reason)| format!("{reason}, by stage {}", self.name(*maker))).collect();
        let error = anyhow::anyhow!(
            "what it reads is damaged, and was so again after it was made anew ({}): look after the disk",
            found.join("; ")
        );
        self.failed(place, &error)
    }

    /// Whether the run was asked for this stage, not only for what reads it.
    pub(super) fn is_asked(&self, stage: &str) -> bool {
        self.goals.is_empty() || self.goals.iter().any(|goal| goal == stage)
    }

    /// What is said of a stage that was to be brought and is nowhere.
    pub(super) fn not_there(&self, judged: &Judgement) -> Error {
        let place = self
            .engine
            .settings
            .depot
            .as_ref()
            .map_or_else(String::new, |depot| format!(" {}", depot.place()));
        let why = judged.reasons.first().map_or_else(String::new, |reason| format!(" ({reason})"));
        Error::new(format!(
            "it is not up to date here{why}, and the depot{place} has nothing for these settings and inputs: `engraft run` makes it"
        ))
    }

    pub(super) fn bench(&self) -> Bench<'_> {
        self.engine.bench(&self.records.memo)
    }

    pub(super) fn name(&self, place: usize) -> &str {
        self.engine.graph.stage(place).name()
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.records.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the stages at `makers` judged once more, now that the memo knows what is damaged of theirs, and then the one at `place`.
fn revive(place: usize, makers: &BTreeSet<usize>, waiting: &mut Vec<usize>, outcomes: &mut Outcomes) {
    // One that was made in this run is as it should be by now; one without an outcome is being made.
    let there = |maker: &&usize| matches!(outcomes.get(maker), Some(Outcome::Fresh | Outcome::Away));
    let fresh = makers.iter().filter(there);
    waiting.extend(fresh.copied().chain([place]));
    waiting.sort_unstable();
    outcomes.retain(|place, _| !waiting.contains(place));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use base::cancel::CancelToken;

    use super::*;
    use crate::engine::Settings;
    use crate::engine::testing::{run, say, scribble, settings, stage, try_run};
    use tempfile::tempdir;

    #[test]
    fn a_second_run_does_nothing_and_a_touched_input_is_no_change() {
        let dir = tempdir().unwrap();
        let (out, input) = (dir.path().join("out"), dir.path().join("in.txt"));
        scribble(&input, "a");
        let stages = || [stage("one").file("IN", &input), stage("two").reads("one")];
        assert_eq!(run(&out, stages()), ["one done", "two done"]);
        assert_eq!(run(&out, stages()), ["one fresh", "two fresh"]);
        scribble(&input, "a");
        let touched = "one fresh: input file IN was touched, its content is unchanged";
        assert_eq!(run(&out, stages()), [touched, "two fresh"]);
        assert_eq!(run(&out, stages()), ["one fresh", "two fresh"]);
        scribble(&input, "b");
        assert_eq!(run(&out, stages()), ["one done", "two done"]);
        assert_eq!(fs::read_to_string(out.join("two/out.txt")).unwrap(), "bonetwo");
    }

    #[test]
    fn a_version_a_field_and_a_damaged_output_make_a_stage_run() {
        let dir = tempdir().unwrap();
        let out = dir.path();
        assert_eq!(run(out, [stage("one")]), ["one done"]);
        assert_eq!(run(out, [stage("one").version(2)]), ["one same"]);
        assert_eq!(run(out, [stage("one").version(2).field("n", 1)]), ["one same"]);
        assert_eq!(run(out, [stage("one").version(2).field("n", 1)]), ["one fresh"]);
        scribble(&out.join("one/out.txt"), "eno");
        assert_eq!(run(out, [stage("one").version(2).field("n", 1)]), ["one same"]);
        fs::remove_dir_all(out.join("one")).unwrap();
        assert_eq!(run(out, [stage("one").version(2).field("n", 1)]), ["one same"]);
        assert_eq!(fs::read_to_string(out.join("one/out.txt")).unwrap(), "one");
    }

    #[test]
    fn a_rerun_with_the_same_result_runs_nothing_downstream() {
        let dir = tempdir().unwrap();
        let stages = |n: u32| [stage("a").field("n", n), stage("b").reads("a"), stage("c").reads("b")];
        assert_eq!(run(dir.path(), stages(1)), ["a done", "b done", "c done"]);
        let again = ["a same", "b fresh: a ran again with the same result", "c fresh"];
        assert_eq!(run(dir.path(), stages(2)), again);
    }

    #[test]
    fn only_what_a_goal_needs_runs() {
        let dir = tempdir().unwrap();
        let stages = [stage("a"), stage("b").reads("a"), stage("c")];
        let engine = crate::engine::testing::engine(settings(dir.path()), stages);
        let summary = engine.run(&["b".to_owned()], &crate::engine::testing::Watch::new()).unwrap();
        assert_eq!(summary.outcomes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(!dir.path().join("c").exists());
    }

    #[test]
    fn independent_stages_run_at_once() {
        let dir = tempdir().unwrap();
        let (to_b, from_a) = sync_channel::<()>(0);
        let (to_a, from_b) = sync_channel::<()>(0);
        let (from_a, from_b) = (Mutex::new(from_a), Mutex::new(from_b));
        // Each sends and waits for the other; one after the other, the first would wait in vain.
        let patience = Duration::from_secs(20);
        let a = stage("a").works(move |_| {
            to_b.send(())?;
            Ok(from_b.lock().unwrap().recv_timeout(patience)?)
        });
        let b = stage("b").works(move |_| {
            from_a.lock().unwrap().recv_timeout(patience)?;
            Ok(to_a.send(())?)
        });
        assert_eq!(run(dir.path(), [a, b]), ["a done", "b done"]);
    }

    #[test]
    fn one_job_means_one_stage_at_a_time() {
        let dir = tempdir().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = |name: &str| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            stage(name).works(move |_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        };
        let one = Settings { jobs: NonZeroUsize::MIN, ..settings(dir.path()) };
        try_run(one, ["a", "b", "c", "d"].map(work)).unwrap();
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_failure_and_a_panic_stop_only_what_needs_them() {
        let dir = tempdir().unwrap();
        let out = dir.path();
        let broken = stage("broken").works(|context| {
            say(context, "half", "h")?;
            anyhow::bail!("line 3: expected 4 columns")
        });
        let wild = stage("wild").works(|_| panic!("index out of bounds"));
        let stages = [broken, wild, stage("b").reads("broken"), stage("c").reads("b"), stage("fine")];
        let expected = [
            "b skipped: broken",
            "broken failed: line 3: expected 4 columns",
            "c skipped: broken",
            "fine done",
            "wild failed: the stage panicked: index out of bounds",
        ];
        assert_eq!(run(out, stages), expected);
        assert!(!out.join("broken").exists() && !out.join(".work").exists());
        assert_eq!(run(out, [stage("broken"), stage("fine")]), ["broken done", "fine fresh"]);
    }

    #[test]
    fn a_failure_leaves_the_earlier_artifact_alone() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a")]);
        let failing = stage("a").version(2).works(|_| anyhow::bail!("no"));
        assert_eq!(run(dir.path(), [failing]), ["a failed: no"]);
        assert_eq!(run(dir.path(), [stage("a")]), ["a fresh"]);
    }

    #[test]
    fn a_missing_input_file_is_said_with_its_path_and_a_remedy() {
        let dir = tempdir().unwrap();
        let events = run(&dir.path().join("out"), [stage("a").file("MRREL", &dir.path().join("MRREL.RRF"))]);
        assert!(events[0].contains("input file MRREL") && events[0].contains("MRREL.RRF"), "{events:?}");
        assert!(events[0].contains("--data"), "{events:?}");
    }

    #[test]
    fn an_input_that_changes_under_a_running_stage_is_not_believed() {
        let dir = tempdir().unwrap();
        let input = dir.path().join("in.txt");
        scribble(&input, "before");
        let meddled = input.clone();
        let stages = [stage("a").file("IN", &input).works(move |_| {
            scribble(&meddled, "after");
            Ok(())
        })];
        let events = run(&dir.path().join("out"), stages);
        assert!(events[0].contains("changed while the stage read it"), "{events:?}");
    }

    #[test]
    fn stopping_leaves_no_work_folder_and_no_ledger_line() {
        let dir = tempdir().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let settings = Settings { cancel: CancelToken::watching(Arc::clone(&flag)), ..settings(dir.path()) };
        let stops = stage("a").works(move |context| {
            say(context, "half", "h")?;
            flag.store(true, Ordering::SeqCst);
            Ok(context.check()?)
        });
        let summary = try_run(settings, [stops, stage("b").reads("a")]).unwrap();
        assert_eq!(summary.count(|outcome| *outcome == Outcome::Interrupted), 2);
        assert!(!dir.path().join(".work").exists());
        assert!(!dir.path().join("ledger.jsonl").exists());
        assert_eq!(run(dir.path(), [stage("a"), stage("b").reads("a")]), ["a done", "b done"]);
    }

    #[test]
    fn a_second_runner_is_turned_away() {
        let dir = tempdir().unwrap();
        let _held = Lock::take(&dir.path().join(".lock")).unwrap();
        let error = try_run(settings(dir.path()), [stage("a")]).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    }
}
