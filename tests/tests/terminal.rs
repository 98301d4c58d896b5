//! What a run says while it goes on, and what can be followed while it trains.
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, json_lines};
use serde_json::Value;

fn events(ran: &str, of: &str) -> Vec<Value> {
    let events = ran.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == of).collect()
}

#[test]
fn a_run_tells_machines_how_training_goes() {
    let folder = tempfile::tempdir().unwrap();
    let said = Engraft::small(&["run", "--json", "--progress", "0.1"], folder.path()).ok();
    let progress: Vec<Value> =
        events(&said, "progress").into_iter().filter(|event| event["stage"] == "retrain").collect();
    let metrics = json_lines(folder.path().join("retrain/metrics.jsonl"));
    let last = progress.last().unwrap();
    assert_eq!((&last["step"], &last["steps"]), (&metrics.len().into(), &metrics.len().into()));
    assert_eq!(last["loss"], metrics.last().unwrap()["loss"]);
    assert_eq!(last["learning_rate"], metrics.last().unwrap()["learning_rate"]);
    assert!(last["rate"].as_f64().unwrap() > 0.0 && last["tokens_per_second"].as_f64().unwrap() > 0.0);
    assert!(last.get("eta").is_none(), "after the last step there is nothing to wait for: {last}");
    let steps: Vec<u64> = progress.iter().map(|event| event["step"].as_u64().unwrap()).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    let again = Engraft::small(&["run", "--json"], folder.path()).ok();
    assert!(events(&again, "progress").is_empty(), "{again}");
}

#[test]
fn a_training_can_be_followed_and_says_from_where_it_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let long = |verb: &[&str], out: &Path| Engraft::small(verb, out).set("retrain.epochs=3");
    let killed = long(&["run"], folder.path()).kill_at("retrain:working:8").output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    // What the training wrote could be read while it ran: it had no time to tidy up.
    let followed = json_lines(folder.path().join("live/retrain/metrics.jsonl"));
    assert!(!followed.is_empty());
    let works: Vec<_> = fs::read_dir(folder.path().join(".work")).unwrap().flatten().collect();
    let board = works.iter().map(|work| work.path().join("events.out.tfevents.engraft"));
    assert!(board.into_iter().any(|board| fs::metadata(board).is_ok_and(|data| data.len() > 100)));
    assert!(!folder.path().join("retrain").exists(), "nothing stands half-written under its final name");
    let resumed = long(&["run", "--json"], folder.path()).ok();
    let resumed = events(&resumed, "resumed").pop().unwrap();
    let (step, steps) = (resumed["step"].as_u64().unwrap(), resumed["steps"].as_u64().unwrap());
    assert_eq!(resumed["stage"], "retrain");
    assert!(step > 0 && step <= followed.len() as u64 && step.is_multiple_of(2), "{resumed}");
    assert_eq!(steps, json_lines(folder.path().join("retrain/metrics.jsonl")).len() as u64);
    assert!(folder.path().join("retrain/events.out.tfevents.engraft").exists());
    assert!(!folder.path().join("live").exists(), "its links end with the training");
}

#[test]
fn a_fine_tuning_says_its_evaluations() {
    let folder = tempfile::tempdir().unwrap();
    let only = ["graft.rows=[\"base\"]", "finetune.seeds=[1]"];
    let stage = "finetune-base-capr-1";
    let engraft = Engraft::graft(&["run", stage, "--json"], folder.path());
    let said = only.iter().fold(engraft, |engraft, set| engraft.set(set)).ok();
    let progress = events(&said, "progress");
    let last = progress.iter().rfind(|event| event["stage"] == stage).unwrap();
    let looks = json_lines(folder.path().join(stage).join("dev.jsonl"));
    assert_eq!(last["evaluation"]["of"], "dev score");
    assert_eq!(last["evaluation"]["value"], looks.last().unwrap()["score"]);
}
