//! From nothing to a trained encoder through the binary, and what the runner then knows about it.
use std::fs;

use engraft_tests::{Engraft, STAGES, artifacts};
use serde_json::Value;

#[test]
fn one_command_goes_from_nothing_to_a_checkpoint_and_a_second_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let first = Engraft::small(&["run"], &out).output();
    assert_eq!(first.code(), Some(0), "{}", first.text());
    for stage in STAGES {
        assert!(out.join(stage).is_dir(), "{stage}");
    }
    for file in ["config.json", "model.safetensors", "outputs.safetensors"] {
        assert!(out.join("retrain/model").join(file).exists(), "{file}");
    }
    assert!(!out.join("retrain/state").exists());
    let card = fs::read_to_string(out.join("retrain/model/README.md")).unwrap();
    for part in [
        "library_name: transformers",
        "AutoModel.from_pretrained",
        "engraft encode",
        "| umls | 9 |",
        "random numbers of seed",
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    for part in
        ["Loss: retrain", "Learning rate: retrain", "Accuracy: retrain", "href=\"retrain/model/README.md\""]
    {
        assert!(page.contains(part), "{part}");
    }
    let ledger = fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    let before = artifacts(&out);
    Engraft::small(&["run"], &out).ok();
    assert_eq!(fs::read_to_string(out.join("ledger.jsonl")).unwrap(), ledger, "nothing ran");
    assert_eq!(artifacts(&out), before);
    Engraft::small(&["verify"], &out).ok();
    assert!(Engraft::small(&["plan", "--check"], &out).output().code() == Some(0));
    // How often a training can be resumed shapes nothing.
    let often = Engraft::small(&["plan", "--check"], &out).set("retrain.checkpoint_every=7").output();
    assert_eq!(often.code(), Some(0), "{}", often.text());
}

#[test]
fn the_encoder_learns_from_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    let run = [
        "retrain.epochs=12",
        "retrain.stream.batching={ items = 64 }",
        "retrain.learning_rate=3e-3",
        "retrain.checkpoint_every=1000",
    ];
    run.iter().fold(Engraft::small(&["run"], folder.path()), |engraft, set| engraft.set(set)).ok();
    let metrics = fs::read_to_string(folder.path().join("retrain/metrics.jsonl")).unwrap();
    let steps: Vec<Value> = metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mean = |steps: &[Value], task: &str, field: &str| {
        steps.iter().map(|s| s["tasks"][task][field].as_f64().unwrap()).sum::<f64>() / steps.len() as f64
    };
    let tenth = steps.len() / 10;
    let (first, last) = (&steps[..tenth], &steps[steps.len() - tenth..]);
    for task in ["subject", "object", "relation", "triplet"] {
        assert!(mean(last, task, "loss") < mean(first, task, "loss"), "{task}");
    }
    assert!(mean(last, "relation", "loss") < 0.7 * mean(first, "relation", "loss"));
}

#[test]
fn the_funnel_accounts_for_every_row_and_samples_follow_from_the_triples() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).ok();
    let read = |file: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(file)).unwrap()).unwrap()
    };
    let funnel = read("triples/funnel.json");
    let number = |value: &Value| value.as_u64().unwrap();
    let mut distinct = 0;
    for source in funnel["read"].as_array().unwrap() {
        let rows = &source["triples"];
        let dropped: u64 = rows["dropped"].as_object().unwrap().values().map(number).sum();
        assert_eq!(number(&rows["read"]), dropped + number(&rows["kept"]), "{source}");
        let merged = &funnel["merged"]["sources"][source["source"].as_str().unwrap()];
        assert_eq!(number(&merged["rows"]), number(&rows["kept"]), "{source}: every kept row is merged");
        let ways =
            ["self_loops", "below_min_relation_count", "merged", "distinct"].map(|way| number(&merged[way]));
        assert_eq!(number(&merged["rows"]), ways.iter().sum::<u64>(), "{merged}");
        assert!(ways[3] > 0, "{source}");
        distinct += ways[3];
    }
    let merged = &funnel["merged"];
    assert_eq!(distinct, number(&merged["triples"]) + number(&merged["merged_across_sources"]));
    let index = read("shards/index.json");
    assert_eq!(index["triples"]["train"], merged["triples"], "split.parts is all");
    let triples = index["triples"]["train"].as_u64().unwrap();
    let rows: Vec<u64> =
        index["tasks"].as_array().unwrap().iter().map(|t| t["parts"][0]["rows"].as_u64().unwrap()).collect();
    let gave_up = index["negatives"]["counts"]["train"]["gave_up"].as_u64().unwrap();
    assert_eq!(rows, [triples, triples, triples, 2 * triples - gave_up]);
    let inspect = Engraft::small(&["inspect", "triples"], folder.path()).ok();
    assert!(inspect.contains("dropped_because") && inspect.contains("Combined-Input.tsv"), "{inspect}");
}

#[test]
fn why_names_the_field_with_both_values_and_the_root_cause() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).ok();
    let why = Engraft::small(&["why", "shards"], folder.path()).set("shards.seed=7").ok();
    assert!(why.contains("shards.seed") && why.contains('1') && why.contains('7'), "{why}");
    let why = Engraft::small(&["why", "shards"], folder.path()).set("world.seed=5").ok();
    assert!(why.contains("world.seed: 1 -> 5"), "{why}");
    let ran = Engraft::small(&["plan", "--check"], folder.path()).set("world.seed=5").output();
    assert_eq!(ran.code(), Some(3), "{}", ran.text());
}

#[test]
fn a_rerun_with_the_same_bytes_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).ok();
    let ledger = || fs::read_to_string(folder.path().join("ledger.jsonl")).unwrap();
    let before = ledger();
    // A threshold below every score drops nothing: the triples run again and come out the same.
    Engraft::small(&["run", "shards"], folder.path()).set("sources.hsdn.min_tfidf=0.0").ok();
    let after = ledger();
    let new: Vec<Value> =
        after[before.len()..].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(new.len(), 1, "only one stage ran: {new:?}");
    assert_eq!(new[0]["stage"], "triples");
}
