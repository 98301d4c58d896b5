//! The kill matrix: SIGKILL at every stage boundary and in the middle of work, then a rerun, then the same bytes.
use std::collections::BTreeMap;
use std::path::Path;

use engraft_tests::{Engraft, STAGES, artifacts, assert_same};

/// Every point of a stage's run, and moments in the middle of its work.
const POINTS: [&str; 10] = [
    "start",
    "working:1",
    "working:2",
    "working:4",
    "written",
    "synced",
    "swapped",
    "before-ledger",
    "torn-ledger",
    "after-ledger",
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

/// Kills a run from nothing at every point of `stage`, of which at least `least` must be hit, runs again and compares with an
/// undisturbed run.
fn kill_matrix(stage: &str, least: usize) {
    let reference = tempfile::tempdir().unwrap();
    Engraft::small(&["run"], reference.path()).ok();
    let reference = artifacts(reference.path());
    let mut hit = 0;
    for point in POINTS {
        let folder = tempfile::tempdir().unwrap();
        let when = format!("{stage}:{point}");
        let killed = Engraft::small(&["run"], folder.path()).kill_at(&when).output();
        hit += usize::from(killed.code().is_none());
        let beyond = killed.code() == Some(0) && point.starts_with("working");
        assert!(killed.code().is_none() || beyond, "{when} was not hit: {}", killed.text());
        assert_whole(folder.path(), &[&reference], &when);
        Engraft::small(&["run"], folder.path()).ok();
        assert_same(&reference, &artifacts(folder.path()), &when);
        Engraft::small(&["verify"], folder.path()).ok();
    }
    assert!(hit >= least, "only {hit} kills hit");
}

#[test]
fn world_killed_anywhere_and_run_again_gives_the_bytes_of_an_undisturbed_run() {
    kill_matrix("world", 8);
}

#[test]
fn triples_killed_anywhere_and_run_again_give_the_bytes_of_an_undisturbed_run() {
    kill_matrix("triples", 8);
}

#[test]
fn a_split_killed_anywhere_and_made_again_gives_the_bytes_of_an_undisturbed_run() {
    // Too quick to be hit in the middle of its work each time.
    kill_matrix("split", 7);
}

#[test]
fn a_summary_killed_anywhere_and_made_again_gives_the_bytes_of_an_undisturbed_run() {
    kill_matrix("summary", 7);
}

#[test]
fn a_vocabulary_killed_anywhere_and_run_again_gives_the_bytes_of_an_undisturbed_run() {
    kill_matrix("vocabulary", 8);
}

#[test]
fn shards_killed_anywhere_and_run_again_give_the_bytes_of_an_undisturbed_run() {
    kill_matrix("shards", 8);
}

#[test]
fn training_killed_anywhere_and_run_again_gives_the_bytes_of_an_undisturbed_run() {
    kill_matrix("retrain", 8);
}

#[test]
fn a_killed_rerun_leaves_the_old_artifact_or_the_new_one() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Engraft::small(&["run", "shards"], old.path()).ok();
    Engraft::small(&["run", "shards"], new.path()).set("world.seed=2").ok();
    let (old, new) = (artifacts(old.path()), artifacts(new.path()));
    for point in POINTS {
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
    for point in ["swapped", "before-ledger", "torn-ledger", "after-ledger"] {
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
fn training_goes_on_where_it_was_killed() {
    let (reference, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let long = |verb: &[&str], out: &Path| Engraft::small(verb, out).set("retrain.epochs=3");
    long(&["run"], reference.path()).ok();
    let killed = long(&["run"], folder.path()).kill_at("retrain:working:8").output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    let work: Vec<_> = std::fs::read_dir(folder.path().join(".work")).unwrap().flatten().collect();
    let kept = work.iter().any(|entry| entry.path().join("state/state.json").exists());
    assert!(kept, "no state to go on from: {work:?}");
    long(&["run"], folder.path()).ok();
    assert_same(&artifacts(reference.path()), &artifacts(folder.path()), "resumed training");
}
