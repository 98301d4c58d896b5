//! The published graphs, where the user has them: exact counts, and the same bytes for any number of threads.
use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, artifacts, assert_same, skipped};
use serde_json::{Value, json};

/// The folder with `hsdn/` and `rotmensch/`, if the environment names one.
#[allow(clippy::disallowed_methods, reason = "tests take the place of real data from the environment")]
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped("ENGRAFT_DATA does not name the folder with the published graphs");
    }
    data
}

fn config(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/{name}.toml"))
}

fn run(data: &Path, out: &Path, jobs: &str) {
    let engraft =
        Engraft::plain(&["run", "audit"], out).arg("--config").arg(config("open")).arg("--data").arg(data);
    engraft.arg("--jobs").arg(jobs).ok();
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_open_graphs_have_the_published_counts_and_shards_follow_from_them() {
    let Some(data) = data() else { return };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&data, one.path(), "1");
    run(&data, two.path(), "2");
    assert_same(&artifacts(one.path()), &artifacts(two.path()), "one and two jobs");

    let funnel = read_json(&one.path().join("triples/funnel.json"));
    let source = |name: &str| {
        let sources = funnel["read"].as_array().unwrap();
        sources.iter().find(|source| source["source"] == name).unwrap().clone()
    };
    let (hsdn, rotmensch, mesh) = (source("hsdn"), source("rotmensch"), source("mesh"));
    assert_eq!(hsdn["triples"]["read"], 147_978);
    assert_eq!((&hsdn["objects"], &hsdn["subjects"]), (&322.into(), &4_219.into()));
    assert_eq!((&rotmensch["triples"]["read"], &rotmensch["subjects"]), (&3_709.into(), &156.into()));
    assert_eq!(mesh["triples"]["read"], 56_341);
    let merged = &funnel["merged"]["sources"]["hsdn"];
    assert_eq!((&merged["self_loops"], &merged["rows"]), (&248.into(), &147_978.into()));

    let told =
        Engraft::plain(&["inspect", "triples", "--json"], one.path()).arg("--config").arg(config("open"));
    let told: Value =
        serde_json::from_str(told.arg("--data").arg(&data).ok().lines().next().unwrap()).unwrap();
    assert_eq!(told["facts"]["hsdn_symptoms"]["with_id"], 322, "every symptom joins to a MeSH id");
    let without = told["facts"]["hsdn_diseases"]["without_id"].as_array().unwrap();
    // The published list lacks three ids; one of the three is not in the table.
    assert_eq!(without, &["Overdose", "Poisoning"].map(Value::from));

    let index = read_json(&one.path().join("shards/index.json"));
    let triples = index["triples"]["train"].as_u64().unwrap();
    assert_eq!(index["triples"]["train"], funnel["merged"]["triples"]);
    let rows: Vec<u64> =
        index["tasks"].as_array().unwrap().iter().map(|t| t["parts"][0]["rows"].as_u64().unwrap()).collect();
    let gave_up = index["negatives"]["counts"]["train"]["gave_up"].as_u64().unwrap();
    assert_eq!(rows, [triples, triples, triples, 2 * triples - gave_up]);
}

#[test]
fn kg_berts_benchmark_keeps_its_official_split() {
    let Some(data) = data().filter(|data| data.join("kg-bert").exists()) else {
        skipped("there is no kg-bert/ in ENGRAFT_DATA");
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let engraft = Engraft::plain(&["run", "audit"], out.path()).arg("--config").arg(config("kg-bert"));
    engraft.arg("--data").arg(&data).ok();
    let split = read_json(&out.path().join("split/split.json"));
    let parts = &split["triples"];
    assert_eq!((&parts["train"], &parts["valid"], &parts["test"]), (&5_216.into(), &652.into(), &661.into()));
    let table = &read_json(&out.path().join("triples/funnel.json"))["merged"];
    assert_eq!((&table["entities"], &table["triples"]), (&135.into(), &6_529.into()));
    assert_eq!(split["relations"].as_object().unwrap().len(), 46);
    assert_eq!(
        read_json(&out.path().join("split/audit.json"))["leaks"],
        0,
        "by declared inverses; it declares none"
    );
    assert_eq!(
        read_json(&out.path().join("shards/index.json"))["triples"],
        json!({"train": 5_216, "valid": 652, "test": 661})
    );
}
