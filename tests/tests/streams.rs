//! What the order and the shape of batches change in a training, and what they must not.
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, json_lines};
use serde_json::Value;

/// What each step says of itself after a training with these settings.
fn metrics(out: &Path, settings: &[&str]) -> String {
    let engraft = Engraft::small(&["run"], out);
    settings.iter().fold(engraft, |engraft, set| engraft.set(set)).ok();
    fs::read_to_string(out.join("retrain/metrics.jsonl")).unwrap()
}

#[test]
fn packing_and_reading_ahead_change_no_number_of_a_training() {
    let folder = tempfile::tempdir().unwrap();
    let plain = metrics(&folder.path().join("plain"), &[]);
    let packed = metrics(&folder.path().join("packed"), &["retrain.stream.pack=128"]);
    assert_eq!(plain, packed);
    let ahead = ["retrain.stream.ahead={ windows = 0, threads = 1 }", "retrain.stream.steps_ahead=5"];
    assert_eq!(plain, metrics(&folder.path().join("plain"), &ahead), "nor does anything run again");
    let weights =
        |name: &str| fs::read(folder.path().join(name).join("retrain/model/model.safetensors")).unwrap();
    assert_eq!(weights("plain"), weights("packed"));
}

#[test]
fn every_schedule_trains_and_shows_the_tasks_that_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = |schedule: &str| -> Vec<Vec<String>> {
        let set = format!("retrain.stream.schedule={schedule}");
        let batching = "retrain.stream.batching={ bucketed = { items = 256, pool = 2 } }";
        let lines = metrics(folder.path(), &[&set, batching]);
        let of = |line: &str| -> Vec<String> {
            let step: Value = serde_json::from_str(line).unwrap();
            step["tasks"].as_object().unwrap().keys().cloned().collect()
        };
        lines.lines().map(of).collect()
    };
    assert!(tasks("\"kimera\"").iter().all(|tasks| tasks.len() == 4));
    for schedule in ["\"merged\"", "{ round_robin = \"paper\" }", "\"proportional\"", "{ temperature = 2.0 }"]
    {
        let steps = tasks(schedule);
        assert!(steps.iter().all(|tasks| tasks.len() == 1), "{schedule}");
        let mut seen = steps.concat();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, ["object", "relation", "subject", "triplet"], "{schedule}");
    }
}

#[test]
fn a_budget_of_tokens_bounds_every_step_and_resumes_to_the_same_bits() {
    let budget = [
        "split.parts={ ratio = { train = 0.8, valid = 0.2, test = 0.0, seed = 1, cover = \"train\" } }",
        "retrain.stream.batching={ tokens = { tokens = 6000, pool = 64 } }",
        "retrain.max_steps=40",
        "retrain.warmup_steps=4",
        "retrain.checkpoint_every=8",
        "retrain.patience={ every = 16, batches = 2 }",
    ];
    let engraft =
        |out: &Path| budget.iter().fold(Engraft::small(&["run"], out), |engraft, set| engraft.set(set));
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    engraft(whole.path()).ok();
    let lines = |file: &str| json_lines(whole.path().join("retrain").join(file));
    let steps = lines("metrics.jsonl");
    let tokens: Vec<u64> = steps.iter().map(|step| step["tokens"].as_u64().unwrap()).collect();
    assert!(steps.len() == 40 && tokens.iter().all(|of| (1..=6000).contains(of)), "{tokens:?}");
    let epochs: Vec<u64> = steps.iter().map(|step| step["epoch"].as_u64().unwrap()).collect();
    assert!(epochs.is_sorted() && epochs[0] == 0 && *epochs.last().unwrap() > 0, "{epochs:?}");
    assert_eq!(lines("held_out.jsonl").len(), 3);
    let ran = engraft(killed.path()).kill_at("retrain:working:20").output();
    assert_eq!(ran.code(), None, "{}", ran.text());
    engraft(killed.path()).ok();
    for file in ["metrics.jsonl", "held_out.jsonl", "model/model.safetensors"] {
        let [one, other] =
            [&whole, &killed].map(|out| fs::read(out.path().join("retrain").join(file)).unwrap());
        assert!(one == other, "{file}");
    }
}

#[test]
fn settings_without_a_sample_are_refused_before_any_stage_runs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |set: &str| {
        let ran = Engraft::small(&["run"], folder.path()).set(set).output();
        assert_ne!(ran.code(), Some(0), "{set}");
        ran.text()
    };
    let found = refused("retrain.stream.batching={ items = 0 }");
    assert!(found.contains("retrain.stream.batching.items is 0, expected at least 1"), "{found}");
    let found = refused("retrain.stream.batching={ tokens = { tokens = 100, pool = 50 } }");
    assert!(found.contains("token budget") && found.contains("give `retrain.max_steps`"), "{found}");
    let found = refused(
        "retrain={ max_steps = 3, stream = { schedule = \"merged\", batching.tokens = { tokens = 100, pool = 50 } } }",
    );
    assert!(
        found.contains("retrain.stream.schedule is merged") && found.contains("take \"kimera\""),
        "{found}"
    );
    let found = refused("retrain.stream.schedule={ temperature = 0.0 }");
    assert!(found.contains("temperature is 0, expected above 0"), "{found}");
    let found = refused("shards.tasks=[\"subject\", \"masked_lm\"]");
    assert!(found.contains("shards.tasks and [shards.masked_lm] go together"), "{found}");
    let found = refused(
        "shards.layout={ form = \"packed\", token_types = \"zero\", blanks = \"whole_slot\", limits = { node = 9, edge = 9 } }",
    );
    assert!(found.contains("slotted"), "{found}");
    assert!(!folder.path().join("world").exists(), "no stage has run");
}

#[test]
fn text_is_masked_beside_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let masked = "shards.masked_lm={ files = { paths = [\"world:text\"], format = { text = \"paragraph\" }, max_tokens = 64 }, \
                  rates = { rate = 0.15, mask = 0.8, random = 0.1 }, hide = \"words\" }";
    // What is trained on texts is a matter of [pretrain]; this config ends with the audit.
    let config = folder.path().join("texts.toml");
    base::whole::write_whole(
        &config,
        engraft_tests::DEFAULT_CONFIG.split("[retrain]").next().unwrap().as_bytes(),
    )
    .unwrap();
    let shards = |jobs: &str, out: &Path| {
        Engraft::plain(&["run", "audit", "--jobs", jobs], out)
            .arg("--config")
            .arg(&config)
            .set("world.scale=0.1")
            .set("vocabulary.train.size=500")
            .set("shards.tasks=[\"relation\", \"masked_lm\"]")
            .set(masked)
            .ok();
        fs::read(out.join("shards/index.json")).unwrap()
    };
    let index = shards("1", &folder.path().join("one"));
    assert_eq!(index, shards("2", &folder.path().join("two")));
    let index: Value = serde_json::from_slice(&index).unwrap();
    let texts = &index["texts"]["masked_lm"];
    let share = texts["masked"]["targets"].as_f64().unwrap() / texts["masked"]["maskable"].as_f64().unwrap();
    assert!((0.13..0.17).contains(&share), "{share}");
    assert_eq!(index["tasks"][1]["parts"][0]["rows"], texts["masked"]["rows"]);
}
