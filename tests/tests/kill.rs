//! The kill matrix: SIGKILL at every stage boundary and in the middle of work, then a rerun, then the same bytes.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use engraft_tests::{Engraft, STAGES, artifacts, assert_same};

/// Every point of a stage's run, and moments in the middle of its work.
const POINTS: [&str; 12] = [
    "start",
    "working:1",
    "working:2",
    "working:4",
    "written",
    "synced",
    "moved",
    "swapped",
    "before-ledger",
    "torn-ledger",
    "after-ledger",
    "kept",
];

type Files = BTreeMap<String, Vec<u8>>;

fn of(files: &Files, stage: &str) -> Files {
    let below = format!("{stage}/");
    files.iter().filter(|(name, _)| name.starts_with(&below)).map(|(n, b)| (n.clone(), b.clone())).collect()
}

/// What stands under a final name is whole: nothing at all, or one of the `allowed` artifacts to the last byte.
fn assert_whole(out: &Path, allowed: &[&Files], when: &str) {
    let found = artifacts(out);
    for stage in STAGES {
        let found = of(&found, stage);
        let whole = found.is_empty() || allowed.iter().any(|files| of(files, stage) == found);
        assert!(whole, "{when}: half of {stage} is visible: {:?}", found.keys().collect::<Vec<_>>());
    }
}

/// Whether all points are asked for, as `just nightly` does. Else a stage dies in the middle of its work and at one boundary, each stage at another one: the
/// engine's own tests kill stages of their own at every point.
#[expect(clippy::disallowed_methods, reason = "how nightly runs ask for all kills")]
fn all_points() -> bool {
    std::env::var_os("ENGRAFT_KILLS").is_some_and(|kills| kills == "all")
}

/// What a run that nobody disturbs leaves: made once for all stages.
fn undisturbed() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        Engraft::small(&["run"], folder.path()).ok();
        artifacts(folder.path())
    })
}

/// Kills a run from nothing in the middle of `stage` and at `boundary` of it, runs again and compares with an undisturbed run.
fn kill(stage: &str, boundary: &str) {
    let reference = undisturbed();
    let points = POINTS.iter().filter(|point| all_points() || **point == boundary || **point == "working:1");
    for point in points {
        let folder = tempfile::tempdir().unwrap();
        let when = format!("{stage}:{point}");
        let killed = Engraft::small(&["run"], folder.path()).kill_at(&when).output();
        // A quick stage may be over before the moment comes; a boundary is always met.
        let beyond = killed.code() == Some(0) && point.starts_with("working");
        assert!(killed.code().is_none() || beyond, "{when} was not hit: {}", killed.text());
        assert_whole(folder.path(), &[reference], &when);
        Engraft::small(&["run"], folder.path()).ok();
        assert_same(reference, &artifacts(folder.path()), &when);
        Engraft::small(&["verify"], folder.path()).ok();
    }
}

#[test]
fn a_world_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("world", "start");
}

#[test]
fn triples_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("triples", "torn-ledger");
}

#[test]
fn a_split_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("split", "written");
}

#[test]
fn a_vocabulary_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("vocabulary", "after-ledger");
}

#[test]
fn a_summary_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("summary", "before-ledger");
}

#[test]
fn shards_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("shards", "synced");
}

#[test]
fn a_training_killed_and_made_again_has_the_bytes_of_an_undisturbed_run() {
    kill("retrain", "swapped");
}

#[test]
fn a_killed_rerun_leaves_the_old_artifact_or_the_new_one() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Engraft::small(&["run", "shards"], old.path()).ok();
    Engraft::small(&["run", "shards"], new.path()).set("world.seed=2").ok();
    let (old, new) = (artifacts(old.path()), artifacts(new.path()));
    let points = POINTS.iter().filter(|point| all_points() || ["written", "swapped"].contains(point));
    for point in points {
        let when = format!("triples:{point}");
        let folder = tempfile::tempdir().unwrap();
        Engraft::small(&["run", "shards"], folder.path()).ok();
        let _ = Engraft::small(&["run", "shards"], folder.path()).set("world.seed=2").kill_at(&when).output();
        assert_whole(folder.path(), &[&old, &new], &when);
        Engraft::small(&["run", "shards"], folder.path()).set("world.seed=2").ok();
        assert_same(&new, &artifacts(folder.path()), &when);
    }
}

#[test]
fn a_finished_training_is_not_made_again_when_the_kill_came_before_the_ledger() {
    let points = ["moved", "before-ledger", "swapped", "torn-ledger", "after-ledger", "kept"];
    for point in points.into_iter().take(if all_points() { points.len() } else { 1 }) {
        let folder = tempfile::tempdir().unwrap();
        let killed = Engraft::small(&["run"], folder.path()).kill_at(&format!("retrain:{point}")).output();
        assert_eq!(killed.code(), None, "{}", killed.text());
        let again = Engraft::small(&["run"], folder.path()).output();
        assert_eq!(again.code(), Some(0), "{}", again.text());
        assert!(again.text().contains("10 up to date"), "{point}: {}", again.text());
        Engraft::small(&["verify"], folder.path()).ok();
    }
}

#[test]
fn training_resumes_where_it_was_killed() {
    let (reference, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let long = |verb: &[&str], out: &Path| Engraft::small(verb, out).set("retrain.epochs=3");
    long(&["run"], reference.path()).ok();
    // A thread of its own writes states: on a busy machine the first may not be whole yet.
    let kept = (8..16).any(|at| {
        let killed = long(&["run"], folder.path()).kill_at(&format!("retrain:working:{at}")).output();
        assert_eq!(killed.code(), None, "{}", killed.text());
        let mut work = std::fs::read_dir(folder.path().join(".work")).unwrap().flatten();
        work.any(|entry| entry.path().join("state/state.json").exists())
    });
    assert!(kept, "no state to resume from");
    long(&["run"], folder.path()).ok();
    assert_same(&artifacts(reference.path()), &artifacts(folder.path()), "resumed training");
}
