//! Artifacts of earlier settings: which are kept, which is wanted back, which go first.
//!
//! An artifact that another one replaces is moved, by a rename, to `.kept/STAGE-DIGEST`, named after its contents. The ledger is the index: its
//! lines say which fingerprint had which artifact, and in which order artifacts were replaced. So keeping needs no file of its own that could
//! disagree with what is there, and no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use base::cancel::CancelToken;

use super::digest::{Digest, each};
use super::error::Error;
use super::explain::Reason;
use super::folder::Output;
use super::judge::Judgement;
use super::layout::{Layout, Resumable, owner};
use super::ledger::{Ledger, Line};
use super::memo::{Known, Stamp};
use super::{Settings, folder};

/// How much is kept. What was replaced last stays longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How many artifacts of each stage.
    pub artifacts: usize,
    /// How many bytes of all stages together.
    pub bytes: u64,
}

impl Default for Bounds {
    /// Ours. Three: going back and forth between a few settings is what people do; more is an experiment that deserves its own folder. 20 GB: some
    /// forty checkpoints of BERT base, a fraction of the disks that these are trained on.
    fn default() -> Self {
        Self { artifacts: 3, bytes: 20_000_000_000 }
    }
}

/// An artifact that another one has replaced.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The stage that made it.
    pub stage: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// The digest of its contents.
    pub artifact: Digest,
    /// Its files.
    pub outputs: Vec<Output>,
    /// The place in the ledger of the line that replaced it.
    replaced: usize,
}

impl Kept {
    /// How many bytes its files have.
    pub(crate) fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.bytes).sum()
    }

    /// Files in its folder that it does not have: engraft did not put them there, so they are not removed.
    pub(crate) fn strangers(&self) -> Result<Vec<PathBuf>, Error> {
        let named = names(&self.outputs);
        let there = folder::list(&self.folder)?.into_iter();
        Ok(there.filter(|file| !named.contains(file.as_str())).map(|file| self.folder.join(file)).collect())
    }

    /// Removes it, unless there are strangers in its folder.
    pub(super) fn discard(&self, layout: &Layout) -> Result<(), Error> {
        if !self.strangers()?.is_empty() {
            return Ok(());
        }
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let gone = layout.gone(&name);
        folder::remove(&gone)?;
        fs::create_dir_all(layout.works()).map_err(Error::at(&layout.works()))?;
        fs::rename(&self.folder, &gone).map_err(Error::at(&self.folder))?;
        folder::remove(&gone)
    }
}

fn names(outputs: &[Output]) -> BTreeSet<&str> {
    outputs.iter().map(|output| output.path.as_str()).collect()
}

/// What lies among the kept artifacts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// Artifacts, those first that were replaced first.
    pub kept: Vec<Kept>,
    /// What no line of the ledger names: engraft did not put it there, or its line is gone.
    pub unknown: Vec<PathBuf>,
}

impl Store {
    /// Looks at what is kept.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(crate) fn list(layout: &Layout, ledger: &Ledger) -> Result<Self, Error> {
        let entries = match fs::read_dir(layout.kept()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            entries => entries.map_err(Error::at(&layout.kept()))?,
        };
        let mut store = Self::default();
        for entry in entries {
            let folder = entry.map_err(Error::at(&layout.kept()))?.path();
            match named(&folder, ledger) {
                Some((at, line)) => store.kept.push(Kept {
                    stage: line.stage.clone(),
                    folder,
                    artifact: line.artifact,
                    outputs: line.outputs.clone(),
                    replaced: replaced(ledger, at),
                }),
                None => store.unknown.push(folder),
            }
        }
        store.kept.sort_by_key(|kept| kept.replaced);
        store.unknown.sort();
        Ok(store)
    }

    /// Those that are more than `bounds` allow, and those whose contents stand in their stage's place again.
    pub(crate) fn excess(self, bounds: Bounds, ledger: &Ledger, layout: &Layout) -> Vec<Kept> {
        let (mut counts, mut bytes) = (BTreeMap::<String, usize>::new(), 0_u64);
        let mut over = Vec::new();
        for kept in self.kept.into_iter().rev() {
            let count = counts.entry(kept.stage.clone()).or_default();
            let stands = ledger.last(&kept.stage).is_some_and(|line| line.artifact == kept.artifact)
                && layout.artifact(&kept.stage).is_dir();
            let all = bytes.saturating_add(kept.bytes());
            if stands || *count >= bounds.artifacts || all > bounds.bytes {
                over.push(kept);
            } else {
                (*count, bytes) = (*count + 1, all);
            }
        }
        over.reverse();
        over
    }
}

/// The last line that names the artifact kept in `folder`, and its place.
fn named<'l>(folder: &Path, ledger: &'l Ledger) -> Option<(usize, &'l Line)> {
    let name = folder.file_name()?.to_str()?;
    let (stage, Resumable::Yes) = owner(name)? else { return None };
    let stem = name.get(stage.len() + 1..)?;
    let of = |(_, line): &(usize, &Line)| line.stage == stage && line.artifact.stem() == stem;
    ledger.lines().iter().enumerate().rev().find(of)
}

/// The place of the line after the one at `at` of the same stage, by which its artifact was replaced.
fn replaced(ledger: &Ledger, at: usize) -> usize {
    let lines = ledger.lines();
    let next = lines.iter().skip(at + 1).position(|line| line.stage == lines[at].stage);
    next.map_or(lines.len(), |after| at + 1 + after)
}

/// An artifact that an earlier run left with just the settings and inputs of now.
pub(super) struct Candidate<'l> {
    /// Its last line.
    pub(super) line: &'l Line,
    /// Where it lies: among the kept ones, or in its place, where a run with other settings left the same contents.
    pub(super) folder: PathBuf,
}

/// Looks for what a stage would make if it ran as judged.
pub(super) fn candidate<'l>(
    stage: &str,
    judged: &Judgement,
    ledger: &'l Ledger,
    layout: &Layout,
) -> Option<Candidate<'l>> {
    if judged.reasons.is_empty() || judged.is_open {
        return None;
    }
    let fingerprint = judged.description.fingerprint(stage);
    let standing = ledger.last(stage).filter(|_| !judged.reasons.iter().any(Reason::is_damage));
    let place = |line: &Line| match standing {
        Some(last) if last.artifact == line.artifact => layout.artifact(stage),
        _ => layout.kept_as(stage, &line.artifact),
    };
    let lines = ledger.lines().iter().rev();
    let such = lines.filter(|line| line.stage == stage && line.fingerprint == fingerprint);
    such.map(|line| Candidate { line, folder: place(line) }).find(|found| found.folder.is_dir())
}

impl Candidate<'_> {
    /// The first file that is not there, is too many or has another length. Reads no file.
    pub(super) fn misfit(&self) -> Option<String> {
        let Ok(there) = folder::list(&self.folder) else { return Some(String::new()) };
        let named = names(&self.line.outputs);
        let fits = |output: &&Output| {
            fs::metadata(self.folder.join(&output.path)).is_ok_and(|data| data.len() == output.bytes)
        };
        let misfit = self.line.outputs.iter().find(|output| !fits(output)).map(|output| output.path.clone());
        misfit.or_else(|| there.into_iter().find(|file| !named.contains(file.as_str())))
    }

    /// Reads every file: what is known of each, in the order of the line's outputs, or the first that is not what the line says.
    pub(super) fn check(&self, jobs: NonZeroUsize, cancel: &CancelToken) -> Result<Vec<Known>, String> {
        if let Some(file) = self.misfit() {
            return Err(file);
        }
        let read = each(&self.line.outputs, jobs, |output| {
            let path = self.folder.join(&output.path);
            // The stamp is taken first: if the file changes while it is read, the next look sees another stamp.
            let known = Stamp::of(&path).and_then(|stamp| Ok((Digest::of_file(&path, cancel)?, stamp)));
            match known {
                Ok((digest, stamp)) if digest == output.blake3 => Ok(Known::read(digest, stamp)),
                _ => Err(output.path.clone()),
            }
        });
        read.into_iter().collect()
    }

    /// The reason for which it is not restored, if `file` is damaged.
    pub(super) fn damage(&self, file: &str, layout: &Layout) -> Reason {
        let path = self.folder.join(file);
        let path = path.strip_prefix(layout.out()).unwrap_or(&path).display().to_string();
        Reason::KeptDamaged { path }
    }
}

/// Moves the artifact in `folder` among the kept ones.
pub(super) fn put(folder: &Path, stage: &str, artifact: &Digest, layout: &Layout) -> Result<(), Error> {
    let kept = layout.kept_as(stage, artifact);
    if kept.exists() {
        // The same contents are kept already.
        return folder::remove(folder);
    }
    fs::create_dir_all(layout.kept()).map_err(Error::at(&layout.kept()))?;
    fs::rename(folder, &kept).map_err(Error::at(&kept))?;
    folder::sync(&layout.kept())?;
    folder::sync(layout.out())
}

/// Keeps what a crash left on its way in `folder`, if it is an artifact that the ledger names; removes it if it is not. Only the contents tell: before
/// the swap they are those of the new artifact, after it those of the old one.
pub(super) fn rescue(
    folder: &Path,
    stage: &str,
    ledger: &Ledger,
    layout: &Layout,
    settings: &Settings,
) -> Result<(), Error> {
    let sealed = folder::seal(folder, settings.jobs, &settings.cancel)?;
    let outputs: Vec<Output> = sealed.into_iter().map(|(output, _)| output).collect();
    let artifact = folder::digest(&outputs);
    if settings.keep.artifacts > 0
        && ledger.lines().iter().any(|line| line.stage == stage && line.artifact == artifact)
    {
        return put(folder, stage, &artifact, layout);
    }
    folder::remove(folder)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::engine::memo::Belief;
    use crate::engine::survey::State;
    use crate::engine::testing::{Fake, Watch, engine, run, scribble, settings, stage};
    use crate::engine::verify::Verify;
    use serde_json::json;
    use tempfile::tempdir;

    fn chain(say: &str) -> [Fake; 3] {
        [stage("a").field("say", say), stage("b").reads("a"), stage("c").reads("b")]
    }

    fn run_keeping(out: &Path, keep: Bounds, stages: impl IntoIterator<Item = Fake>) -> Vec<String> {
        let watch = Watch::new();
        engine(Settings { keep, ..settings(out) }, stages).run(&[], &watch).unwrap();
        watch.events()
    }

    /// How many artifacts are kept.
    fn count(out: &Path) -> usize {
        fs::read_dir(out.join(".kept")).into_iter().flatten().count()
    }

    const RESTORED: [&str; 3] = ["a restored", "b restored", "c restored"];

    #[test]
    fn going_back_in_settings_restores_the_stage_and_all_below_it() {
        let dir = tempdir().unwrap();
        let text = || fs::read_to_string(dir.path().join("c/out.txt")).unwrap();
        run(dir.path(), chain("x"));
        run(dir.path(), chain("y"));
        for (say, expected) in [("x", "xbc"), ("y", "ybc"), ("x", "xbc")] {
            assert_eq!(run(dir.path(), chain(say)), RESTORED);
            assert_eq!((text().as_str(), count(dir.path())), (expected, 3));
            assert_eq!(run(dir.path(), chain(say)), ["a fresh", "b fresh", "c fresh"]);
        }
        let found = engine(settings(dir.path()), chain("x")).survey(&[]).unwrap();
        let line = found[0].last.as_ref().unwrap();
        assert!(line.restored_ms.is_some() && line.facts["letters"] == 1, "{line:?}");
    }

    #[test]
    fn the_plan_says_what_is_restored_down_to_the_last_stage_and_why() {
        let dir = tempdir().unwrap();
        run(dir.path(), chain("x"));
        run(dir.path(), chain("y"));
        let engine = engine(settings(dir.path()), chain("x"));
        let states: Vec<_> = engine.survey(&[]).unwrap().into_iter().map(|found| found.state).collect();
        assert_eq!(states, [State::Restore; 3]);
        let why = engine.why("c").unwrap();
        let root = &why.causes[0].because[0].because[0].reason;
        let (path, from, to) = ("a.say".to_owned(), Some(json!("y")), Some(json!("x")));
        assert_eq!((why.state, root), (State::Restore, &Reason::Field { path, from, to }));
        engine.run(&[], &Watch::new()).unwrap();
        let why = engine.why("c").unwrap();
        assert!(
            why.restored && why.last[0].because[0].because[0].reason.to_string() == "a.say: \"y\" -> \"x\""
        );
    }

    #[test]
    fn a_damaged_kept_artifact_is_said_and_made_again() {
        for (damage, seen) in [("!", false), ("longer", true)] {
            let dir = tempdir().unwrap();
            run(dir.path(), chain("x"));
            run(dir.path(), chain("y"));
            let kept = Kept::of(dir.path(), "a");
            scribble(&kept.join("out.txt"), damage);
            let (layout, cancel) = (Layout::new(dir.path()), CancelToken::NEVER);
            let verify = Verify { layout: &layout, jobs: NonZeroUsize::MIN, cancel: &cancel };
            let found = verify.verify(&["a".to_owned()]).unwrap();
            assert!(!found.is_sound() && found.artifacts[0].damages.is_empty(), "{found:?}");
            assert!(found.artifacts[1].kept.is_some() && found.artifacts[1].damages.len() == 1, "{found:?}");
            let plan = |belief| {
                let found =
                    engine(Settings { belief, ..settings(dir.path()) }, chain("x")).survey(&[]).unwrap();
                found.into_iter().next().unwrap()
            };
            assert_eq!(plan(Belief::Stamps).state == State::Stale, seen);
            let checked = plan(Belief::Reading);
            assert!(checked.reasons[0].to_string().starts_with("kept output .kept/a-"), "{checked:?}");
            // The same contents come out, so what is below is restored.
            assert_eq!(run(dir.path(), chain("x")), ["a done", "b restored", "c restored"]);
            let last = plan(Belief::Stamps).last.unwrap();
            assert!(matches!(&last.reasons[0], Reason::KeptDamaged { path } if path.ends_with("/out.txt")));
            assert!(!kept.exists(), "the damaged one is of no use once the sound one is in place");
        }
    }

    impl Kept {
        /// The folder of the one artifact kept of `stage`.
        fn of(out: &Path, stage: &str) -> PathBuf {
            let ledger = Ledger::read(&out.join("ledger.jsonl")).unwrap();
            let kept = Store::list(&Layout::new(out), &ledger).unwrap().kept;
            kept.into_iter().find(|kept| kept.stage == stage).unwrap().folder
        }
    }

    #[test]
    fn what_was_replaced_last_stays_longest_within_the_bounds() {
        let dir = tempdir().unwrap();
        let two = Bounds { artifacts: 2, ..Bounds::default() };
        for say in ["1", "2", "3", "4"] {
            run_keeping(dir.path(), two, chain(say));
        }
        assert_eq!(count(dir.path()), 6);
        assert_eq!(run_keeping(dir.path(), two, chain("2")), RESTORED);
        // Now 4 and 3 are kept, 4 was replaced last; three stages have 1 + 2 + 3 bytes each time.
        let bytes = Bounds { bytes: 7, ..two };
        assert_eq!(run_keeping(dir.path(), bytes, chain("2")), ["a fresh", "b fresh", "c fresh"]);
        assert_eq!(count(dir.path()), 4, "a of 3 has room where b and c of 3 have none");
        assert_eq!(run_keeping(dir.path(), two, chain("4")), RESTORED);
        let none = Bounds { artifacts: 0, ..two };
        assert_eq!(run_keeping(dir.path(), none, chain("5")), ["a done", "b done", "c done"]);
        assert!(!dir.path().join(".kept").exists());
    }

    #[test]
    fn equal_contents_under_other_settings_move_nothing() {
        let dir = tempdir().unwrap();
        let stages = |n: u32| [stage("a").field("n", n), stage("b").reads("a")];
        run(dir.path(), stages(1));
        assert_eq!(run(dir.path(), stages(2)), ["a same", "b fresh: a ran again with the same result"]);
        assert!(!dir.path().join(".kept").exists());
        assert_eq!(run(dir.path(), stages(1)), ["a restored", "b fresh"]);
        // It is read all the same.
        scribble(&dir.path().join("a/out.txt"), "?");
        assert_eq!(run(dir.path(), stages(2)), ["a same", "b fresh: a ran again with the same result"]);
    }

    #[test]
    fn what_is_damaged_in_its_place_is_not_kept_and_what_is_not_ours_stops_a_restoration() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a").field("say", "x")]);
        run(dir.path(), [stage("a").field("say", "y")]);
        scribble(&dir.path().join("a/out.txt"), "?");
        assert_eq!(run(dir.path(), [stage("a").field("say", "x")]), ["a restored"]);
        assert_eq!(count(dir.path()), 0);
        run(dir.path(), [stage("a").field("say", "y")]);
        scribble(&dir.path().join("a/mine.txt"), "mine");
        let events = run(dir.path(), [stage("a").field("say", "x")]);
        assert!(events[0].contains("a/mine.txt was not made by engraft"), "{events:?}");
        assert_eq!(fs::read_to_string(dir.path().join("a/mine.txt")).unwrap(), "mine");
        fs::remove_file(dir.path().join("a/mine.txt")).unwrap();
        assert_eq!(run(dir.path(), [stage("a").field("say", "x")]), ["a restored"]);
    }

    #[test]
    fn a_restoration_whose_line_cannot_be_written_changes_nothing() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a").field("say", "x")]);
        run(dir.path(), [stage("a").field("say", "y")]);
        let (ledger, aside) = (dir.path().join("ledger.jsonl"), dir.path().join("aside"));
        let clock = {
            let (ledger, aside) = (ledger.clone(), aside.clone());
            // From the moment when the line is made there is no file to append to.
            move || {
                let _ = fs::rename(&ledger, &aside).and_then(|()| fs::create_dir(&ledger));
                Duration::ZERO
            }
        };
        let watch = Watch::new();
        let broken = Settings { clock: Arc::new(clock), ..settings(dir.path()) };
        engine(broken, [stage("a").field("say", "x")]).run(&[], &watch).unwrap();
        let events = watch.events();
        assert!(events[0].starts_with("a failed"), "{events:?}");
        assert_eq!(fs::read_to_string(dir.path().join("a/out.txt")).unwrap(), "y");
        fs::remove_dir(&ledger).unwrap();
        fs::rename(&aside, &ledger).unwrap();
        assert_eq!(run(dir.path(), [stage("a").field("say", "y")]), ["a fresh"]);
        assert_eq!(run(dir.path(), [stage("a").field("say", "x")]), ["a restored"]);
    }

    #[test]
    fn an_interrupted_training_is_resumed_where_nothing_is_kept_of_it() {
        let dir = tempdir().unwrap();
        let train = |n: u32| {
            stage("train").field("n", n).resumes().works(move |context| {
                let log = context.out().join("steps");
                let steps = fs::read_to_string(&log).unwrap_or_default() + "x";
                crate::engine::testing::say(context, "steps", &steps)?;
                anyhow::ensure!(n == 1 || steps.len() == 2, "interrupted");
                Ok(())
            })
        };
        assert_eq!(run(dir.path(), [train(2)]), ["train failed: interrupted"]);
        assert_eq!(run(dir.path(), [train(1)]), ["train done"]);
        assert_eq!(run(dir.path(), [train(2)]), ["train done"]);
        assert_eq!(fs::read_to_string(dir.path().join("train/steps")).unwrap(), "xx");
        assert_eq!(run(dir.path(), [train(1)]), ["train restored"]);
        assert_eq!(run(dir.path(), [train(2)]), ["train restored"]);
    }
}
