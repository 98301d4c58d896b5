//! The task synonyms through the binary: rows that stand what another implementation recounts, other tasks as without it, training with its own
//! output, exact resume, refusals.
use std::path::Path;

use engraft_tests::python::python;
use engraft_tests::{Engraft, artifacts, assert_same, json, json_lines};
use serde_json::Value;

const TASKS: &str = "shards.tasks=[\"subject\", \"object\", \"relation\", \"triplet\", \"synonyms\"]";
const WEIGHED: &str = "retrain.alphas.synonyms=1.0";
/// So much is held out that training never shows some entities with synonyms.
const PARTS: [&str; 2] = [
    "split.parts={ ratio = { train = 0.3, valid = 0.3, test = 0.4, seed = 1, cover = \"leave\" } }",
    "world.scale=0.3",
];

#[test]
fn synonyms_are_what_another_implementation_recounts_and_change_no_other_task() {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |out: &Path| PARTS.iter().fold(Engraft::small(&["run", "audit"], out), |run, set| run.set(set));
    run(with.path()).set(TASKS).ok();
    run(without.path()).ok();
    let of = |out: &Path| {
        let shards = artifacts(out).into_iter();
        shards
            .filter(|(name, _)| name.starts_with("shards/") && name.ends_with(".parquet"))
            .collect::<Vec<_>>()
    };
    let others: Vec<_> =
        of(with.path()).into_iter().filter(|(name, _)| !name.contains("/synonyms/")).collect();
    assert_eq!(others.len(), of(without.path()).len());
    assert!(others == of(without.path()), "the files of other tasks are the same, byte for byte");
    let audit = json(with.path().join("audit/audit.json"));
    assert_eq!(audit["names"]["leaks"], 0, "{audit}");
    let counted = audit["tasks"].as_array().unwrap();
    assert!(counted.iter().any(|of| of["task"] == "synonyms" && of["part"] == "valid"), "{audit}");
    let index = json(with.path().join("shards/index.json"));
    let named = index["sources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|of| of["name"] == "names that synonyms shows, counted in names");
    assert_eq!(named.count(), 1, "the names' licence levels are told: {}", index["sources"]);
    python("synonyms.py", with.path());
}

#[test]
fn synonyms_are_trained_with_an_output_of_their_own_and_resume_exactly() {
    let run = |out: &Path| Engraft::small(&["run"], out).set(TASKS).set(WEIGHED).set("retrain.epochs=6");
    let steps = learnt_and_resumed("synonyms", run);
    assert!(
        steps.iter().all(|step| step["tasks"].as_object().unwrap().len() == 5),
        "with kimera, every step shows all"
    );
    let first = &steps[0]["tasks"]["synonyms"];
    assert!((0.0..=1.0).contains(&first["accuracy"].as_f64().unwrap()));
    assert!(first["targets"].as_f64().unwrap() > 512.0);
}

/// Trains whole, and killed and resumed: the task's loss falls, it has an output of its own, no parameter of which is frozen, and both come to the same
/// bytes. Gives the steps.
pub(crate) fn learnt_and_resumed(task: &str, run: impl Fn(&Path) -> Engraft) -> Vec<Value> {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(whole.path()).ok();
    let steps = json_lines(whole.path().join("retrain/metrics.jsonl"));
    let losses: Vec<_> = steps.iter().filter_map(|step| step["tasks"][task]["loss"].as_f64()).collect();
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(last < first, "{first} to {last}");
    let frozen = json(whole.path().join("retrain/frozen.json"));
    assert!(!frozen.as_object().unwrap().keys().any(|name| name.contains(task)), "{frozen}");
    let stopped = run(killed.path()).kill_at("retrain:working:8").output();
    assert_eq!(stopped.code(), None, "{}", stopped.text());
    run(killed.path()).ok();
    assert_same(&artifacts(whole.path()), &artifacts(killed.path()), "resumed training");
    let weights = std::fs::read(whole.path().join("retrain/model/outputs.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&weights[..4096.min(weights.len())]).into_owned();
    assert!(header.contains(&format!("\"{task}.weight\"")), "{header}");
    steps
}

#[test]
fn every_schedule_shows_synonyms() {
    let folder = tempfile::tempdir().unwrap();
    for schedule in ["\"merged\"", "{ round_robin = \"paper\" }", "\"proportional\"", "{ temperature = 2.0 }"]
    {
        let schedule = format!("retrain.stream.schedule={schedule}");
        let sets = [TASKS, WEIGHED, &schedule, "retrain.stream.batching={ items = 32 }"];
        sets.iter().fold(Engraft::small(&["run"], folder.path()), |run, set| run.set(set)).ok();
        let steps = json_lines(folder.path().join("retrain/metrics.jsonl"));
        let shown = steps.iter().filter(|step| step["tasks"]["synonyms"].is_object()).count();
        assert!(shown > 0 && shown < steps.len(), "{schedule}: {shown} of {}", steps.len());
    }
}

#[test]
fn synonyms_without_names_or_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = |sets: &[&str]| {
        let ran = sets.iter().fold(Engraft::small(&["run"], folder.path()), |run, set| run.set(set)).output();
        assert_ne!(ran.code(), Some(0), "{sets:?}");
        ran.text()
    };
    let rotmensch =
        ["sources={ rotmensch = { path = \"world:rotmensch/DerivedKnowledgeGraph_final.csv\" } }", TASKS];
    let none = text(&rotmensch);
    assert!(none.contains("the task synonyms needs entities with at least two names"), "{none}");
    let unbuilt = text(&[WEIGHED]);
    assert!(unbuilt.contains("retrain.alphas.synonyms is 1, but shards.tasks has no synonyms"), "{unbuilt}");
    let tags = text(&["retrain.alphas.tagging=1.0"]);
    assert!(tags.contains("retrain.alphas.tagging is 1, but shards.tasks has no tagging"), "{tags}");
}
