//! What KIMERA claims, on the world: an encoder that the graph was grafted onto codes diagnoses better than the same encoder without it. The config
//! is the one of docs/results.md, with fewer facts and fewer rounds.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::path::Path;

use engraft_tests::{Engraft, json};
use model::eval::interval::across_seeds;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// What makes minutes of an hour. Fewer facts are learned by heart in fewer rounds; fewer rounds than these leave families of diseases instead of facts.
const SHORTER: [&str; 4] = [
    "sources.umls.relations=[\"has_manifestation\", \"may_treat\"]",
    "pretrain.epochs=8",
    "retrain.epochs=16",
    "finetune.epochs=12",
];

fn scores(out: &Path, row: &str) -> [f64; 5] {
    SEEDS.map(|seed| {
        let scores = json(out.join(format!("finetune-{row}-diagnoses-{seed}/scores.json")));
        assert_eq!(scores["test"]["metric"], "auroc_macro");
        scores["test"]["value"].as_f64().unwrap()
    })
}

/// Takes some minutes: the encoder reads its texts eight times and sees every fact sixteen times.
#[test]
fn facts_of_the_graph_help_where_no_text_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let rows = ["base", "no_mask"];
    let stages: Vec<String> =
        rows.iter().flat_map(|row| SEEDS.map(|seed| format!("finetune-{row}-diagnoses-{seed}"))).collect();
    let verb: Vec<&str> = std::iter::once("run").chain(stages.iter().map(String::as_str)).collect();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/graft.toml");
    let run = Engraft::plain(&verb, folder.path()).arg("--config").arg(config);
    SHORTER.iter().fold(run, |run, setting| run.set(setting)).ok();
    let [base, grafted] = rows.map(|row| scores(folder.path(), row));
    let above: Vec<f64> = grafted.iter().zip(base).map(|(grafted, base)| grafted - base).collect();
    let runs = across_seeds(&above, 0.95).unwrap();
    assert!(runs.low > 0.0, "grafted {grafted:?}, base {base:?}: {runs:?}");
    // Chance is 0.5: a base that learned nothing would make the claim an empty one.
    let learned = across_seeds(&base, 0.95).unwrap();
    assert!(learned.low > 0.5, "{learned:?}");
}
