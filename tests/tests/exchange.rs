//! Where the system cannot exchange two folders in one step, as on NFS: the same artifacts, and whatever dies, neither the old nor the new one is lost.
use std::path::Path;

use engraft_tests::python::interpreter;
use engraft_tests::{Engraft, artifacts, assert_same};

#[test]
fn without_an_exchange_of_folders_artifacts_are_the_same_and_a_kill_loses_none() {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/no_exchange.py");
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str, seed: u32| {
        let run = Engraft::small(&["run", "triples"], &folder.path().join(out));
        run.set(&format!("world.seed={seed}"))
    };
    let without = |seed: u32| run("without", seed).under(&python, &[&script]);
    let tree = |out: &str| artifacts(&folder.path().join(out));
    run("with", 1).ok();
    without(1).ok();
    let old = tree("with");
    assert_same(&old, &tree("without"), "the first run");
    run("with", 2).ok();
    let new = tree("with");
    // Between its renames nothing is in place, or the old one is not put away yet.
    for point in ["world:aside", "triples:aside", "triples:placed"] {
        let killed = without(2).kill_at(point).output();
        assert_eq!(killed.code(), None, "{point}: {}", killed.text());
        without(2).ok();
        assert_same(&new, &tree("without"), point);
        let back = without(1).output();
        assert!(back.code() == Some(0) && !back.text().contains("started"), "{point}: {}", back.text());
        assert_same(&old, &tree("without"), point);
    }
    // So it is with what is restored, and with what comes from a depot in the place of something else.
    let depot = folder.path().join("depot");
    let triples = |out: &str| engraft_tests::below(&folder.path().join(out).join("triples"), |_| true);
    run("with", 2).arg("--depot").arg(&depot).ok();
    for (point, other) in [("triples:aside", "first"), ("triples:placed", "second")] {
        let shared = |seed: u32| run(other, seed).arg("--depot").arg(&depot).under(&python, &[&script]);
        shared(1).ok();
        for (out, again, name) in [(without(2), without(2), "without"), (shared(2), shared(2), other)] {
            let killed = out.kill_at(point).output();
            assert_eq!(killed.code(), None, "{name}, {point}: {}", killed.text());
            let ran = again.output();
            assert!(
                ran.code() == Some(0) && !ran.text().contains("started"),
                "{name}, {point}: {}",
                ran.text()
            );
            assert_same(&triples("with"), &triples(name), point);
        }
        without(1).ok();
    }
}
