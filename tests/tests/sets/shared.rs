//! Instances of stages that several processes make in one output folder.
use engraft_tests::{artifacts, assert_same, json_lines};

use super::{engraft, made};

#[test]
fn processes_share_trials_finetunings_and_recipes_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let scores = |out: &str| {
        let search = "finetune.search={ trials = 2, learning_rate = { least = 1e-3, most = 1e-2 } }";
        engraft(&["run", "scores"], folder, out).set(search).set("finetune.epochs=2").arg("--jobs").arg("1")
    };
    scores("whole").ok();
    // What all of them read; then one dies while it learns, and the others go on.
    let sets = ["run", "benchmark-tags", "benchmark-kinds", "benchmark-alike", "encoder"];
    engraft(&sets, folder, "shared").ok();
    let killed = scores("shared").kill_at("trial-base-kinds-1-1:working:2").start();
    let killed = killed.once_it_says("trial-base-kinds-1-1: started");
    let others: Vec<_> = (0..2).map(|_| scores("shared").start()).collect();
    let killed = killed.wait();
    assert_eq!(killed.code(), None, "{}", killed.text());
    for other in others {
        let ran = other.wait();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
    }
    let lines = json_lines(folder.join("shared/ledger.jsonl"));
    let mut stages: Vec<&str> = lines.iter().map(|line| line["stage"].as_str().unwrap()).collect();
    stages.sort_unstable();
    for kind in ["trial-", "finetune-", "recipe-"] {
        assert!(stages.iter().any(|stage| stage.starts_with(kind)), "{kind}: {stages:?}");
    }
    let all = stages.len();
    stages.dedup();
    assert_eq!(stages.len(), all, "no stage was made twice");
    assert_same(&artifacts(&folder.join("whole")), &artifacts(&folder.join("shared")), "three processes");
}
