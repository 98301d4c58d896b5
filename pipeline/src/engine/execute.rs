//! One run of one stage, from the empty work folder to the ledger's line. Does not decide whether the stage should run.

use std::any::Any;
use std::fs;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};

use super::context::Context;
use super::digest::Digest;
use super::error::Error;
use super::explain::Reason;
use super::fault::Point;
use super::folder::{self, Output};
use super::graph::Graph;
use super::judge::{Judgement, Seen};
use super::kept;
use super::layout::{GONE, Layout, Resumable, owner};
use super::ledger::{self, Ledger, Line};
use super::live::Live;
use super::memo::{Belief, Memo};
use super::progress::Progress;
use super::publish::{Finished, check_place};
use super::ranks::Others;
use super::stage::{Input, Resume, Stage};
use super::{Settings, describe::Description};

/// What the stages of one run share.
pub(super) struct Records {
    pub(super) ledger: Mutex<Ledger>,
    pub(super) memo: Memo,
    /// The processes that work along.
    pub(super) others: Option<Arc<Others>>,
}

impl Records {
    /// The artifact of `stage` that is in place, if it is as the ledger says as far as the judgement goes.
    pub(super) fn in_place(&self, stage: &str, judged: &Judgement) -> Option<Digest> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let last = ledger.last(stage).filter(|_| !judged.reasons.iter().any(Reason::is_damage));
        last.map(|line| line.artifact)
    }
}

/// A stage that is to run, with everything that takes.
pub(super) struct Task<'a> {
    pub(super) stage: &'a dyn Stage,
    pub(super) layout: &'a Layout,
    pub(super) settings: &'a Settings,
    pub(super) records: &'a Records,
    /// Whether it begins anew where it could resume.
    pub(super) restart: bool,
    /// How many stages run at once, this one included, as far as that is known.
    pub(super) beside: NonZeroUsize,
}

impl Task<'_> {
    /// Runs the stage. If it fails, its work folder goes, unless it can be resumed.
    pub(super) fn execute(&self, judgement: &Judgement, progress: &Progress) -> anyhow::Result<Line> {
        let fingerprint = judgement.description.fingerprint(self.stage.name());
        let work = self.layout.work(self.stage.name(), &fingerprint);
        let line = self.attempt(judgement, progress, &fingerprint);
        if line.is_err() && self.stage.resume() == Resume::Never {
            // Whatever stays is wiped when the stage next runs; the stage's own error is the one to report.
            let _ = folder::remove(&work);
        }
        line
    }

    fn attempt(&self, judged: &Judgement, progress: &Progress, fingerprint: &Digest) -> anyhow::Result<Line> {
        let started = (self.settings.clock)();
        let work = self.layout.work(self.stage.name(), fingerprint);
        check_place(self.stage.name(), self.layout, &self.records.ledger)?;
        self.prepare(&work)?;
        self.pass(Point::Start);
        let facts = self.work(&work, progress)?;
        self.pass(Point::Written);
        self.check_inputs(&judged.seen, &judged.description)?;
        let outputs = self.seal(&work)?;
        self.pass(Point::Synced);
        let line = self.line(judged, outputs, facts, started);
        let before = self.records.in_place(self.stage.name(), judged);
        let finished = Finished { work: &work, fingerprint, line: &line, before };
        finished.publish(self.layout, self.settings, &self.records.ledger)?;
        Live::new(self.layout, self.stage.name(), &work).end();
        Ok(line)
    }

    /// Makes the work folder: empty, unless the stage goes on where it was interrupted.
    fn prepare(&self, work: &Path) -> Result<(), Error> {
        if self.stage.resume() == Resume::Never || self.restart {
            folder::remove(work)?;
        }
        fs::create_dir_all(work).map_err(Error::at(work))?;
        folder::drop_temporaries(work)
    }

    /// Lets the stage work; a panic in it is its failure, not the runner's.
    fn work(&self, work: &Path, progress: &Progress) -> anyhow::Result<Map<String, Value>> {
        let mut context = context_of(self.stage, self.layout, self.settings, work, progress);
        context.others.clone_from(&self.records.others);
        context.beside = self.beside;
        catch_unwind(AssertUnwindSafe(|| self.stage.run(&mut context))).unwrap_or_else(|panic| {
            Err(anyhow::anyhow!("the stage panicked: {}", message(panic.as_ref())))
        })?;
        Ok(context.facts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// An outside file that changed while it was read would make the ledger lie.
    fn check_inputs(&self, seen: &[Seen], description: &Description) -> anyhow::Result<()> {
        let paths: Vec<_> = seen.iter().map(|seen| seen.path.clone()).collect();
        let (jobs, cancel) = (self.settings.jobs, &self.settings.cancel);
        let known = self.records.memo.look(&paths, Belief::Stamps, jobs, cancel);
        for (seen, known) in seen.iter().zip(known) {
            let now =
                known.with_context(|| format!("input file {} at {}", seen.label, seen.path.display()))?;
            if description.files.get(&seen.label) != Some(&now.digest) {
                let path = seen.path.display();
                bail!(
                    "input file {} at {path} changed while the stage read it: run again when it rests",
                    seen.label
                );
            }
        }
        Ok(())
    }

    fn seal(&self, work: &Path) -> Result<Vec<Output>, Error> {
        let sealed = folder::seal(work, self.settings.jobs, &self.settings.cancel)?;
        let place = self.layout.artifact(self.stage.name());
        let keep = |(output, known): (Output, _)| {
            self.records.memo.learn(&place.join(&output.path), known);
            output
        };
        Ok(sealed.into_iter().map(keep).collect())
    }

    fn line(
        &self,
        judged: &Judgement,
        outputs: Vec<Output>,
        facts: Map<String, Value>,
        started: Duration,
    ) -> Line {
        Line {
            format: ledger::VERSION,
            stage: self.stage.name().to_owned(),
            fingerprint: judged.description.fingerprint(self.stage.name()),
            described: judged.description.clone(),
            artifact: folder::digest(&outputs),
            outputs,
            facts,
            reasons: judged.reasons.clone(),
            started_ms: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
            seconds: (self.settings.clock)().saturating_sub(started).as_secs_f64(),
            engraft: self.settings.version.clone(),
            licence: None,
            restored_ms: None,
        }
    }

    fn pass(&self, point: Point) {
        self.settings.faults.pass(self.stage.name(), point);
    }
}

/// What a stage sees that works in a folder.
pub(super) fn context_of(
    stage: &dyn Stage,
    layout: &Layout,
    settings: &Settings,
    work: &Path,
    progress: &Progress,
) -> Context {
    let mut context = Context {
        stage: stage.name().to_owned(),
        out: work.to_owned(),
        files: [].into(),
        artifacts: [].into(),
        jobs: settings.jobs,
        beside: NonZeroUsize::MIN,
        progress: progress.clone(),
        facts: Mutex::new(Map::new()),
        previous: Some(layout.artifact(stage.name())).filter(|folder| folder.is_dir()),
        live: Live::new(layout, stage.name(), work),
        others: None,
        local_rank: settings.launch.as_ref().map(|launch| launch.local),
    };
    for input in stage.inputs() {
        match input {
            Input::File { label, path } => context.files.insert(label, path),
            Input::Artifact(name) => {
                let folder = layout.artifact(&name);
                context.artifacts.insert(name, folder)
            }
        };
    }
    context
}

/// Removes work folders that a crash left, save those that a stage may take up again, and keeps an artifact that it left on its way.
pub(super) fn sweep(graph: &Graph, layout: &Layout, settings: &Settings, ledger: &Mutex<Ledger>) {
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    for entry in fs::read_dir(layout.works()).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let swept = match name.to_str().and_then(owner) {
            Some(_) if name.to_str().is_some_and(|name| name.ends_with(GONE)) => folder::remove(&path),
            // Its line is still to be written, by a run that has this stage.
            Some((stage, Resumable::No)) if layout.pending(stage).exists() => Ok(()),
            Some((stage, Resumable::No)) => kept::rescue(&path, stage, &ledger, layout, settings),
            // A stage of another configuration may want it back.
            Some((stage, Resumable::Yes)) => match graph.find(stage) {
                Ok(place) if graph.stage(place).resume() == Resume::Never => folder::remove(&path),
                _ => Ok(()),
            },
            None => Ok(()),
        };
        // What cannot be removed is in nobody's way: a stage that does not resume empties its folder itself.
        drop(swept);
    }
}

/// What a panic said.
pub(super) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;
    use crate::engine::testing::{Fake, run, say, settings, stage, try_run};
    use tempfile::tempdir;

    /// Counts its runs in its work folder and gives up until it has been there `needed` times.
    fn patient(needed: usize, version: u32) -> Fake {
        stage("train").version(version).resumes().works(move |context| {
            let log = context.out().join("steps");
            let steps = fs::read_to_string(&log).unwrap_or_default() + "x";
            say(context, "steps", &steps)?;
            anyhow::ensure!(steps.len() >= needed, "step {}", steps.len());
            Ok(())
        })
    }

    #[test]
    fn a_resumable_stage_goes_on_in_the_folder_it_left() {
        let dir = tempdir().unwrap();
        assert_eq!(run(dir.path(), [patient(3, 1)]), ["train failed: step 1"]);
        assert_eq!(run(dir.path(), [patient(3, 1)]), ["train failed: step 2"]);
        // Another fingerprint starts with an empty folder and takes nothing from the first.
        assert_eq!(run(dir.path(), [patient(1, 2)]), ["train done"]);
        assert_eq!(fs::read_to_string(dir.path().join("train/steps")).unwrap(), "x");
        assert_eq!(run(dir.path(), [patient(3, 1)]), ["train done"]);
        assert_eq!(fs::read_to_string(dir.path().join("train/steps")).unwrap(), "xxx");
        // The artifact of the other fingerprint must not be taken for something to resume.
        assert_eq!(run(dir.path(), [patient(1, 2)]), ["train restored"]);
        assert_eq!(fs::read_to_string(dir.path().join("train/steps")).unwrap(), "x");
    }

    #[test]
    fn silent_04_a_stage_that_is_asked_for_begins_anew_when_told() {
        let dir = tempdir().unwrap();
        let goals = |names: &[&str], restart| {
            let watch = crate::engine::testing::Watch::new();
            let goals: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let settings = Settings { restart, ..settings(dir.path()) };
            let stages = [patient(3, 1), stage("other")];
            crate::engine::testing::engine(settings, stages).run(&goals, &watch).unwrap();
            watch.events()
        };
        assert_eq!(goals(&["train"], false), ["train failed: step 1"]);
        assert_eq!(goals(&["train"], false), ["train failed: step 2"]);
        assert_eq!(goals(&["train"], true), ["train failed: step 1"]);
        assert_eq!(goals(&[], true), ["other done", "train failed: step 1"]);
        assert_eq!(goals(&[], false), ["other fresh", "train failed: step 2"]);
        // Only what is asked for: a stage that another one needs goes on.
        let needed = [patient(3, 1), stage("other").reads("train")];
        let again = Settings { restart: true, ..settings(dir.path()) };
        let watch = crate::engine::testing::Watch::new();
        crate::engine::testing::engine(again, needed).run(&["other".to_owned()], &watch).unwrap();
        assert!(watch.events().contains(&"train done".to_owned()));
    }

    #[test]
    fn a_temporary_file_that_a_kill_left_does_not_get_into_the_artifact() {
        let dir = tempdir().unwrap();
        let killed = || stage("train").field("say", "x").resumes();
        let dies = killed().works(|context| {
            // What a kill leaves of a file that was being written whole, and a file that only looks alike.
            say(context, "state/.tmpAbC123", "half")?;
            say(context, "tmp.txt", "whole")?;
            anyhow::bail!("killed")
        });
        run(dir.path(), [dies]);
        assert_eq!(run(dir.path(), [killed()]), ["train done"]);
        assert_eq!(folder::list(&dir.path().join("train")).unwrap(), ["out.txt", "tmp.txt"]);
    }

    #[test]
    fn an_undeclared_input_is_refused_by_name() {
        let dir = tempdir().unwrap();
        let nosy = stage("b").works(|context| context.artifact("a").map(|_| ()).map_err(Into::into));
        let events = run(dir.path(), [stage("a"), nosy]);
        assert!(events[1].contains("inputs() does not declare"), "{events:?}");
    }

    #[test]
    fn links_are_no_artifact() {
        let dir = tempdir().unwrap();
        let links =
            stage("a").works(|context| Ok(std::os::unix::fs::symlink("/", context.out().join("root"))?));
        let events = run(dir.path(), [links]);
        assert!(events[0].contains("neither a file nor a folder"), "{events:?}");
    }

    fn tree(out: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = ["a", "b", "c"].into_iter().flat_map(|stage| {
            let files = folder::list(&out.join(stage)).unwrap_or_default();
            files.into_iter().map(move |file| format!("{stage}/{file}"))
        });
        files.map(|file| (file.clone(), fs::read(out.join(&file)).unwrap())).collect()
    }

    fn three(say: &str) -> [Fake; 3] {
        [stage("a").field("say", say), stage("b").reads("a").resumes(), stage("c").reads("b")]
    }

    const OUT: &str = "ENGRAFT_TEST_OUT";
    const SAY: &str = "ENGRAFT_TEST_SAY";
    const KILL: &str = "ENGRAFT_TEST_KILL_AT";

    #[expect(clippy::disallowed_methods, reason = "how the parent tells its child what to do")]
    fn told(key: &str) -> Option<String> {
        std::env::var(key).ok()
    }

    /// The process that is killed; does nothing unless the tests below start it.
    #[test]
    fn victim() {
        if let (Some(out), Some(say), Some(kill)) = (told(OUT), told(SAY), told(KILL)) {
            let settings = Settings { faults: kill.parse().unwrap(), ..settings(&PathBuf::from(out)) };
            try_run(settings, three(&say)).unwrap();
        }
    }

    /// Runs the stages that say `say` in `out` in a process that dies at `stage:point`.
    fn killed(out: &Path, say: &str, stage: &str, point: Point) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "engine::execute::tests::victim"]).env(OUT, out).env(SAY, say);
        let status = child.env(KILL, format!("{stage}:{point}")).output().unwrap().status;
        assert_eq!(status.signal(), Some(9), "{stage}:{point} was not reached");
    }

    /// Both artifacts of each stage, as undisturbed runs make them.
    fn both() -> [BTreeMap<String, Vec<u8>>; 2] {
        let reference = tempdir().unwrap();
        ["old", "new"].map(|say| {
            run(reference.path(), three(say));
            tree(reference.path())
        })
    }

    const FRESH: [&str; 3] = ["a fresh", "b fresh", "c fresh"];
    const RESTORED: [&str; 3] = ["a restored", "b restored", "c restored"];

    #[test]
    fn killed_at_any_point_it_shows_only_whole_artifacts_and_mends_on_the_next_run() {
        let [old, new] = both();
        let points = || Point::ALL.into_iter().chain(Point::RENAMING);
        for (stage, point) in
            ["a", "b"].into_iter().flat_map(|stage| points().map(move |point| (stage, point)))
        {
            if (stage, point) == ("a", Point::Working) {
                continue; // It has no input, hence no step of progress.
            }
            let dir = tempdir().unwrap();
            run(dir.path(), three("old"));
            killed(dir.path(), "new", stage, point);
            for (file, bytes) in tree(dir.path()) {
                assert!(
                    old[&file] == bytes || new[&file] == bytes,
                    "{stage}:{point}: {file} is half-written"
                );
            }
            run(dir.path(), three("new"));
            assert_eq!(tree(dir.path()), new, "{stage}:{point}");
            assert_eq!(run(dir.path(), three("new")), FRESH, "{stage}:{point}");
            assert!(!dir.path().join(".work").exists(), "{stage}:{point} left a work folder");
            assert_eq!(run(dir.path(), three("old")), RESTORED, "{stage}:{point} lost what it replaced");
            assert_eq!(tree(dir.path()), old, "{stage}:{point}");
        }
    }

    #[test]
    fn killed_while_it_restores_it_shows_only_whole_artifacts_and_loses_neither() {
        let [old, new] = both();
        let points = || Point::RESTORING.into_iter().chain(Point::RENAMING);
        let points = ["a", "b"].into_iter().flat_map(|stage| points().map(move |point| (stage, point)));
        for (stage, point) in points {
            let dir = tempdir().unwrap();
            run(dir.path(), three("old"));
            run(dir.path(), three("new"));
            killed(dir.path(), "old", stage, point);
            let shown = tree(dir.path());
            // Where folders are not exchanged in one step there is a moment without one.
            let missing = usize::from(point == Point::Aside);
            assert_eq!(shown.len(), old.len() - missing, "{stage}:{point}: an artifact is missing");
            for (file, bytes) in shown {
                assert!(old[&file] == bytes || new[&file] == bytes, "{stage}:{point}: {file} is neither");
            }
            let events = run(dir.path(), three("old"));
            let ran = events.iter().any(|event| !event.ends_with("fresh") && !event.ends_with("restored"));
            assert!(!ran, "{stage}:{point}: {events:?}");
            assert_eq!(tree(dir.path()), old, "{stage}:{point}");
            assert!(!dir.path().join(".work").exists(), "{stage}:{point} left a work folder");
            assert_eq!(run(dir.path(), three("new")), RESTORED, "{stage}:{point} lost what it replaced");
            assert_eq!(tree(dir.path()), new, "{stage}:{point}");
        }
    }

    #[test]
    fn a_finished_artifact_whose_kill_came_before_the_swap_is_not_made_again() {
        for point in [Point::Moved, Point::Aside, Point::Placed, Point::Swapped, Point::TornLedger] {
            let dir = tempdir().unwrap();
            run(dir.path(), three("old"));
            killed(dir.path(), "new", "b", point);
            assert_eq!(run(dir.path(), three("new")), ["a fresh", "b fresh", "c done"], "{point}");
        }
    }
}
