//! The published graphs, where the user has them: exact counts, and the same bytes for any number of threads.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, artifacts, assert_same, skipped};
use serde_json::Value;

/// The folder with `hsdn/` and `rotmensch/`, if the environment names one.
#[allow(clippy::disallowed_methods, reason = "tests take the place of real data from the environment")]
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped("ENGRAFT_DATA does not name the folder with the published graphs");
    }
    data
}

fn run(data: &Path, out: &Path, jobs: &str) {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/open.toml");
    let engraft = Engraft::plain(&["run", "shards"], out).arg("--config").arg(config).arg("--data").arg(data);
    engraft.arg("--jobs").arg(jobs).ok();
}

#[test]
fn the_open_graphs_have_the_published_counts_and_shards_follow_from_them() {
    let Some(data) = data() else { return };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&data, one.path(), "1");
    run(&data, two.path(), "2");
    assert_same(&artifacts(one.path()), &artifacts(two.path()), "one and two jobs");

    let read =
        |file: &str| -> Value { serde_json::from_slice(&fs::read(one.path().join(file)).unwrap()).unwrap() };
    let funnel = read("triples/funnel.json");
    let source = |name: &str| {
        let sources = funnel["sources"].as_array().unwrap();
        sources.iter().find(|source| source["source"] == name).unwrap().clone()
    };
    let (hsdn, rotmensch) = (source("hsdn"), source("rotmensch"));
    assert_eq!(hsdn["triples"]["read"], 147_978);
    assert_eq!(rotmensch["triples"]["read"], 3_709);
    assert_eq!((&hsdn["objects"]["read"], &hsdn["subjects"]["read"]), (&322.into(), &4_219.into()));
    assert_eq!(rotmensch["subjects"]["read"], 156);

    let index = read("shards/index.json");
    let triples = index["triples"].as_u64().unwrap();
    assert_eq!(index["triples"], funnel["triples"]);
    let rows: Vec<u64> =
        index["tasks"].as_array().unwrap().iter().map(|t| t["rows"].as_u64().unwrap()).collect();
    let gave_up = index["negatives"]["gave_up"].as_u64().unwrap();
    assert_eq!(rows, [triples, triples, triples, 2 * triples - gave_up]);
}
