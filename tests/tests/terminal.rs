//! What a run says while it goes on and at its end, on a terminal's streams and to machines, and what can be followed while it trains.
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, json_lines};
use serde_json::Value;

fn events(ran: &str, of: &str) -> Vec<Value> {
    let events = ran.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == of).collect()
}

#[test]
fn a_run_tells_machines_how_training_goes_and_what_it_made() {
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
    let end = events(&said, "end").pop().unwrap();
    let made = |stage: &str| {
        end["made"].as_array().unwrap().iter().find(|thing| thing["stage"] == stage).unwrap().clone()
    };
    assert_eq!(made("retrain")["path"].as_str(), folder.path().join("retrain/model").to_str());
    assert_eq!((&made("retrain")["kind"], &made("report")["kind"]), (&"encoder".into(), &"page".into()));
    let loss = format!("mean loss {:.4}", mean(&metrics));
    assert!(made("retrain")["text"].as_str().unwrap().starts_with(&loss), "{loss}: {end}");
    // A run that made nothing has nothing to say of it.
    let again = Engraft::small(&["run", "--json"], folder.path()).ok();
    assert!(events(&again, "progress").is_empty(), "{again}");
    let end = events(&again, "end").pop().unwrap();
    assert!(end.get("made").is_none() && end.get("next").is_none(), "{end}");
    let again = Engraft::small(&["run"], folder.path()).ok();
    assert_eq!(again.lines().count(), 1, "{again}");
}

fn mean(metrics: &[Value]) -> f64 {
    metrics.iter().map(|step| step["loss"].as_f64().unwrap()).sum::<f64>() / metrics.len() as f64
}

#[test]
fn a_run_ends_with_what_it_made_and_what_can_be_done_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Engraft::small(&["run"], folder.path()).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    let text = ran.text();
    let (out, model) = (folder.path().display(), folder.path().join("retrain/model"));
    let expected = [
        "made:".to_owned(),
        format!("engraft encode {} FILE > vectors.jsonl", model.display()),
        format!("xdg-open {out}/report/index.html"),
        format!("tensorboard --logdir {out}"),
        "retrain: 100%, ".to_owned(),
        "10 ran (".to_owned(),
    ];
    for expected in expected {
        assert!(text.contains(&expected), "{expected}: {text}");
    }
    // The command that it names works.
    let texts = folder.path().join("texts.txt");
    base::whole::write_whole(&texts, b"Fever and a cough.\n").unwrap();
    let vectors = Engraft::plain(&["encode", &model.display().to_string()], folder.path()).arg(&texts).ok();
    assert_eq!(vectors.lines().count(), 1, "{vectors}");
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
fn a_fine_tuning_says_its_scores() {
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
    let end = events(&said, "end").pop().unwrap();
    let made = end["made"].as_array().unwrap().iter().find(|thing| thing["stage"] == stage).unwrap();
    let scores = engraft_tests::json(folder.path().join(stage).join("scores.json"));
    let score = scores["test"]["value"].as_f64().unwrap();
    let expected = format!("test {} {score:.4}", scores["test"]["metric"].as_str().unwrap());
    assert_eq!((made["kind"].as_str(), made["text"].as_str()), (Some("model"), Some(&*expected)));
    let model = folder.path().join(stage).join("model");
    assert_eq!(end["next"][0], format!("engraft predict {} FILE", model.display()));
}
