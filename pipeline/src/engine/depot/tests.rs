//! What several machines do to a depot, in memory: share, race, damage, fill, clean.

mod damaged;
mod files;
mod licences;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use super::*;
use crate::engine::Settings;
use crate::engine::clean::Scope;
use crate::engine::kept::Bounds;
use crate::engine::outcome::{Outcome, Summary};
use crate::engine::survey::State;
use crate::engine::testing::{Fake, Watch, engine, say, scribble, settings, stage};
use tempfile::tempdir;

/// Objects in memory, which remembers what it was asked.
#[derive(Default)]
struct Memory {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    asked: Mutex<Vec<String>>,
    /// Whether conditions are ignored, as some stores do.
    careless: bool,
    /// Whether nothing can be put there.
    full: AtomicBool,
    /// How many objects may still be removed, if that is bounded.
    removals: Mutex<Option<usize>>,
    /// What its machines take for the time.
    ticks: Arc<AtomicU64>,
}

impl Memory {
    fn asked(&self, verb: &str) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.into_iter().filter_map(|line| Some(line.strip_prefix(verb)?.trim().to_owned())).collect()
    }

    fn note(&self, verb: &str, key: &str) {
        self.asked.lock().unwrap().push(format!("{verb} {key}"));
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        self.objects.lock().unwrap().keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    fn damage(&self, prefix: &str, how: impl Fn(&mut Vec<u8>)) {
        self.objects
            .lock()
            .unwrap()
            .iter_mut()
            .filter(|(key, _)| key.starts_with(prefix))
            .for_each(|(_, bytes)| how(bytes));
    }
}

impl Objects for Memory {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn read(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        self.note("read", key);
        Ok(self.objects.lock().unwrap().get(key).cloned())
    }

    fn length(&self, key: &str) -> anyhow::Result<Option<u64>> {
        Ok(self.objects.lock().unwrap().get(key).map(|bytes| bytes.len() as u64))
    }

    fn fetch(&self, key: &str, to: Sink<'_>) -> anyhow::Result<bool> {
        self.note("fetch", key);
        let found = self.objects.lock().unwrap().get(key).cloned();
        Ok(match found {
            Some(bytes) => bytes.chunks(2).try_for_each(to).map(|()| true)?,
            None => false,
        })
    }

    fn put(&self, key: &str, from: &Path, sent: &dyn Fn(u64)) -> anyhow::Result<()> {
        anyhow::ensure!(!self.full.load(Ordering::SeqCst), "no room for {key}");
        self.note("put", key);
        let bytes = fs::read(from)?;
        sent(bytes.len() as u64);
        self.objects.lock().unwrap().insert(key.to_owned(), bytes);
        Ok(())
    }

    fn create(&self, key: &str, bytes: &[u8]) -> anyhow::Result<bool> {
        let mut objects = self.objects.lock().unwrap();
        let new = self.careless || !objects.contains_key(key);
        if new {
            objects.insert(key.to_owned(), bytes.to_vec());
        }
        Ok(new)
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let objects = self.objects.lock().unwrap();
        let below = objects.iter().filter(|(key, _)| key.starts_with(&format!("{prefix}/")));
        Ok(below
            .map(|(key, bytes)| Object { key: key.clone(), bytes: bytes.len() as u64, modified: 5 })
            .collect())
    }

    fn unfinished(&self) -> anyhow::Result<Vec<Object>> {
        Ok(Vec::new())
    }

    fn remove(&self, key: &str) -> anyhow::Result<()> {
        if let Some(left) = self.removals.lock().unwrap().as_mut() {
            *left = left.checked_sub(1).ok_or_else(|| anyhow::anyhow!("{key} stays"))?;
        }
        self.objects.lock().unwrap().remove(key);
        Ok(())
    }
}

fn with(out: &Path, memory: &Arc<Memory>, access: Access) -> Settings {
    let objects: Arc<dyn Objects> = memory.clone();
    let ticks = Arc::clone(&memory.ticks);
    let clock = Arc::new(move || Duration::from_secs(ticks.fetch_add(1, Ordering::SeqCst)));
    Settings { depot: Some(Depot::new(objects, access)), clock, ..settings(out) }
}

fn chain(say: &str) -> [Fake; 3] {
    [stage("a"), stage("b").reads("a"), stage("c").reads("b").field("say", say)]
}

fn names(goals: &[&str]) -> Vec<String> {
    goals.iter().map(|&goal| goal.to_owned()).collect()
}

/// Runs these goals; gives what happened to the stages and how it ended.
fn run(
    out: &Path,
    memory: &Arc<Memory>,
    stages: impl IntoIterator<Item = Fake>,
    goals: &[&str],
) -> (Vec<String>, Summary) {
    let watch = Watch::new();
    let summary = engine(with(out, memory, Access::Write), stages).run(&names(goals), &watch).unwrap();
    (watch.events(), summary)
}

const PUSHED: [&str; 6] = ["a done", "a pushed", "b done", "b pushed", "c done", "c pushed"];

#[test]
fn a_second_machine_makes_nothing_and_downloads_what_is_asked_for_alone() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = |n: u32| dir.path().join(n.to_string());
    assert_eq!(run(&out(1), &memory, chain("c"), &[]).0, PUSHED);
    memory.asked("");
    assert_eq!(run(&out(2), &memory, chain("c"), &["c"]).0, ["a away", "b away", "c pulled"]);
    assert_eq!(memory.asked("fetch").len(), 1, "c has one file");
    assert!(!out(2).join("a").exists() && !out(2).join("b").exists());
    assert_eq!(fs::read_to_string(out(2).join("c/out.txt")).unwrap(), "abc");
    // Then it is up to date, and what it was made from still need not be here.
    assert_eq!(run(&out(2), &memory, chain("c"), &["c"]).0, ["a away", "b away", "c fresh"]);
    // Another setting of the last: what it reads is brought, what that reads is not.
    let (events, summary) = run(&out(2), &memory, chain("d"), &["c"]);
    assert_eq!(events, ["a away", "b away", "b pulled", "c done", "c pushed"]);
    assert_eq!(fs::read_to_string(out(2).join("c/out.txt")).unwrap(), "abd");
    assert_eq!(summary.count(|outcome| *outcome == Outcome::Away), 2);
    // The first one goes on with what the second made.
    assert_eq!(run(&out(1), &memory, chain("d"), &[]).0, ["a fresh", "b fresh", "c pulled"]);
}

#[test]
fn planning_downloads_nothing_and_says_what_is_there() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    run(&dir.path().join("1"), &memory, chain("c"), &[]);
    memory.asked("");
    let other = engine(with(&dir.path().join("2"), &memory, Access::Write), chain("d"));
    let found = other.survey(&[]).unwrap();
    assert_eq!(
        found.iter().map(|found| found.state).collect::<Vec<_>>(),
        [State::Depot, State::Depot, State::Stale]
    );
    assert_eq!(other.why("b").unwrap().state, State::Depot);
    assert!(memory.asked("fetch").is_empty() && !dir.path().join("2").exists());
    let here = other.survey_here(&[]).unwrap();
    assert_eq!(here.iter().map(|found| found.state).collect::<Vec<_>>(), [State::Stale; 3]);
}

#[test]
fn of_eight_that_race_one_line_stays_and_whoever_made_something_else_is_told_both() {
    for differs in [false, true] {
        let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
        let barrier = Barrier::new(8);
        let (barrier, memory) = (Arc::new(barrier), &memory);
        let ended: Vec<Summary> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|n| {
                    let (out, barrier) = (dir.path().join(n.to_string()), Arc::clone(&barrier));
                    let racer = stage("a").works(move |context| {
                        barrier.wait();
                        say(context, "out.txt", &if differs { n.to_string() } else { "same".to_owned() })
                    });
                    scope.spawn(move || run(&out, memory, [racer], &[]).1)
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(memory.keys("lines/").len(), 1);
        let failed: Vec<_> = ended
            .iter()
            .filter_map(|summary| match &summary.outcomes[0].1 {
                Outcome::Failed(error) => Some(error.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(failed.len(), if differs { 7 } else { 0 }, "{failed:?}");
        let both =
            |error: &String| error.contains("here it is") && error.contains("in the depot memory it is");
        assert!(failed.iter().all(both), "{failed:?}");
    }
}

#[test]
fn what_is_damaged_in_the_depot_is_made_again_and_mended_there() {
    let flip = |bytes: &mut Vec<u8>| bytes[0] ^= 1;
    let cut = |bytes: &mut Vec<u8>| bytes.clear();
    for (n, how) in [flip as fn(&mut Vec<u8>), cut].into_iter().enumerate() {
        let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
        let out = |n: u32| dir.path().join(n.to_string());
        run(&out(1), &memory, chain("c"), &[]);
        memory.damage("blobs/", how);
        let (events, _) = run(&out(2), &memory, chain("c"), &["c"]);
        // Every artifact is damaged: what c reads is found to be only when it is brought.
        let expected = [
            "a done",
            "a pushed",
            "a not pulled",
            "a away",
            "b away",
            "b done",
            "b not pulled",
            "b pushed",
            "c done",
            "c not pulled",
            "c pushed",
        ];
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(events, expected, "{n}");
        assert_eq!(fs::read_to_string(out(2).join("c/out.txt")).unwrap(), "abc");
        assert_eq!(run(&out(3), &memory, chain("c"), &[]).0, ["a pulled", "b pulled", "c pulled"], "{n}");
    }
}

#[test]
fn a_damaged_line_is_named_and_nothing_is_done() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    run(&dir.path().join("1"), &memory, [stage("a")], &[]);
    memory.damage("lines/", |bytes| bytes[40] ^= 1);
    let (_, summary) = run(&dir.path().join("2"), &memory, [stage("a")], &[]);
    let Outcome::Failed(error) = &summary.outcomes[0].1 else { panic!("{summary:?}") };
    assert!(error.contains("lines/a/") && error.contains("damaged"), "{error}");
    assert!(!dir.path().join("2/a").exists());
}

#[test]
fn a_store_that_ignores_conditions_is_found_before_anything_runs() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory { careless: true, ..Memory::default() }));
    let settings = with(&dir.path().join("1"), &memory, Access::Write);
    let error = engine(settings, [stage("a")]).run(&[], &Watch::new()).unwrap_err().to_string();
    assert!(error.contains("If-None-Match") && error.contains("read_only"), "{error}");
    assert!(!dir.path().join("1/a").exists());
    let settings = with(&dir.path().join("1"), &memory, Access::Read);
    engine(settings, [stage("a")]).run(&[], &Watch::new()).unwrap();
}

#[test]
fn what_is_only_read_from_gets_nothing_and_must_be_there() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let none = engine(with(dir.path(), &memory, Access::Read), chain("c"));
    let refused = none.run(&[], &Watch::new()).unwrap_err().to_string();
    assert!(refused.contains("memory is no depot"), "{refused}");
    assert!(none.survey(&[]).unwrap_err().to_string().contains("is no depot"));
    run(&dir.path().join("other"), &memory, [stage("z")], &[]);
    let before = memory.keys("");
    let watch = Watch::new();
    engine(with(dir.path(), &memory, Access::Read), chain("c")).run(&[], &watch).unwrap();
    assert_eq!(watch.events(), ["a done", "b done", "c done"]);
    let depot = with(dir.path(), &memory, Access::Read).depot.unwrap();
    assert!(depot.going(&[], Scope::All, 6).unwrap_err().to_string().contains("only read from"));
    // Bringing is no reason to put anything there either.
    engine(with(dir.path(), &memory, Access::Write), chain("c")).pull(&[], &Watch::new()).unwrap();
    assert_eq!(memory.keys(""), before);
    let refused = engine(with(dir.path(), &memory, Access::Read), chain("c")).push(&[], &Watch::new());
    assert!(refused.unwrap_err().to_string().contains("only read from"));
}

#[test]
fn what_cannot_be_put_there_is_said_and_put_there_by_the_next_run() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    memory.full.store(true, Ordering::SeqCst);
    let (events, summary) = run(dir.path(), &memory, chain("c"), &[]);
    assert_eq!(summary.unshared, ["a", "b", "c"]);
    assert!(events.iter().any(|event| event.starts_with("c not shared: no room for blobs/")), "{events:?}");
    assert!(memory.keys("lines/").is_empty());
    memory.full.store(false, Ordering::SeqCst);
    let expected = ["a fresh", "a pushed", "b fresh", "b pushed", "c fresh", "c pushed"];
    assert_eq!(run(dir.path(), &memory, chain("c"), &[]).0, expected);
    assert_eq!(run(dir.path(), &memory, chain("c"), &[]).0, ["a fresh", "b fresh", "c fresh"]);
}

#[test]
fn pull_makes_nothing_and_push_puts_what_is_up_to_date() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    crate::engine::testing::run(&first, chain("c"));
    let pushed = engine(with(&first, &memory, Access::Write), chain("d")).push(&[], &Watch::new()).unwrap();
    assert_eq!((pushed.there, pushed.new, pushed.stale.as_slice()), (2, 2, names(&["c"]).as_slice()));
    let pull = |goals: &[&str]| {
        let watch = Watch::new();
        engine(with(&second, &memory, Access::Write), chain("d")).pull(&names(goals), &watch).unwrap();
        watch.events()
    };
    let events = pull(&["c"]);
    assert!(
        events[..2] == ["a away", "b away"] && events[2].contains("`engraft run` makes it"),
        "{events:?}"
    );
    assert_eq!(pull(&["b"]), ["a away", "b pulled"]);
    assert!(!second.join("c").exists());
}

#[test]
fn a_damaged_file_here_does_not_get_into_the_depot() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    crate::engine::testing::run(dir.path(), [stage("a")]);
    let file = dir.path().join("a/out.txt");
    let times = fs::metadata(&file).unwrap().modified().unwrap();
    scribble(&file, "b");
    File::open(&file).unwrap().set_modified(times).unwrap();
    let pushed =
        engine(with(dir.path(), &memory, Access::Write), [stage("a")]).push(&[], &Watch::new()).unwrap();
    assert_eq!(pushed.there, 0, "{pushed:?}");
    assert!(memory.keys("lines/").is_empty());
}

#[test]
fn gc_keeps_what_lines_name_and_what_is_new() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    for say in ["c", "d", "e"] {
        run(&dir.path().join("1"), &memory, chain(say), &[]);
    }
    memory.objects.lock().unwrap().insert("blobs/00/00".to_owned(), vec![0; 7]);
    let depot = with(dir.path(), &memory, Access::Write).depot.unwrap();
    let all = Scope::Excess(Bounds { artifacts: usize::MAX, bytes: u64::MAX });
    let young = depot.going(&[], all, 5).unwrap();
    assert_eq!((young.lines.len(), young.blobs.len(), young.young), (0, 0, 1));
    let old = depot.going(&[], all, 6).unwrap();
    assert_eq!((old.lines.len(), old.blobs.as_slice()), (0, [("blobs/00/00".to_owned(), 7)].as_slice()));
    let last = Scope::Excess(Bounds { artifacts: 1, bytes: u64::MAX });
    let going = depot.going(&names(&["c"]), last, 6).unwrap();
    assert_eq!((going.lines.len(), going.blobs.len()), (2, 3));
    depot.drop(&going, &|| ()).unwrap();
    assert_eq!((memory.keys("lines/").len(), memory.keys("blobs/").len()), (3, 3));
    assert_eq!(run(&dir.path().join("2"), &memory, chain("e"), &[]).0, ["a pulled", "b pulled", "c pulled"]);
    let everything = depot.going(&[], Scope::All, 6).unwrap();
    assert_eq!((everything.lines.len(), everything.blobs.len()), (3, 3));
    memory.objects.lock().unwrap().clear();
    assert!(depot.going(&[], all, 6).unwrap_err().to_string().contains("is no depot"));
}

#[test]
fn a_gc_that_ends_early_leaves_lines_whose_files_are_there_and_the_next_goes_on() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    for say in ["c", "d"] {
        run(&dir.path().join("1"), &memory, chain(say), &[]);
    }
    let depot = with(dir.path(), &memory, Access::Write).depot.unwrap();
    let whole = memory.objects.lock().unwrap().clone();
    let everything = || depot.going(&[], Scope::All, 6).unwrap();
    let many = everything().lines.len() + everything().blobs.len();
    for removed in 0..many {
        whole.clone_into(&mut memory.objects.lock().unwrap());
        *memory.removals.lock().unwrap() = Some(removed);
        depot.drop(&everything(), &|| ()).unwrap_err();
        let lines = depot.lines().unwrap();
        let outputs = lines.iter().flat_map(|(_, line)| &line.outputs);
        assert!(
            outputs.map(|output| blob(&output.blake3)).all(|key| !memory.keys(&key).is_empty()),
            "{removed}"
        );
        *memory.removals.lock().unwrap() = None;
        depot.drop(&everything(), &|| ()).unwrap();
        assert_eq!((memory.keys("lines/"), memory.keys("blobs/")), (vec![], vec![]), "{removed}");
    }
}
