//! The task tagging through the binary: shards of texts whose words are marked, trained beside triples with an output of its own, exact resume.
use engraft_tests::{Engraft, artifacts, assert_same, json, json_lines};

use crate::interop::tagged;

const TASKS: &str = "shards.tasks=[\"subject\", \"object\", \"relation\", \"triplet\", \"tagging\"]";

#[test]
fn tags_are_learnt_beside_triples_with_an_output_of_their_own_and_resume_exactly() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let texts = tempfile::tempdir().unwrap();
    let setting = tagged(texts.path(), 64);
    let run = |out| {
        let run = Engraft::small(&["run"], out).set(TASKS).set(&setting);
        run.set("retrain.alphas.tagging=1.0").set("retrain.epochs=6")
    };
    run(whole.path()).ok();
    let steps = json_lines(whole.path().join("retrain/metrics.jsonl"));
    let shown: Vec<_> =
        steps.iter().map(|step| &step["tasks"]["tagging"]).filter(|of| of.is_object()).collect();
    let of = |at: usize, what: &str| shown[at][what].as_f64().unwrap();
    let last = shown.len() - 1;
    assert!(of(last, "loss") < of(0, "loss"), "{} to {}", of(0, "loss"), of(last, "loss"));
    // Four words of each text are answered, what precedes and follows them is not.
    assert_eq!(of(0, "targets"), 4.0 * of(0, "samples"));
    let accuracies = (of(0, "accuracy"), of(last, "accuracy"));
    assert!(accuracies.1 > accuracies.0, "{accuracies:?}");
    let frozen = json(whole.path().join("retrain/frozen.json"));
    assert!(!frozen.as_object().unwrap().keys().any(|name| name.contains("tagging")), "{frozen}");
    let stopped = run(killed.path()).kill_at("retrain:working:8").output();
    assert_eq!(stopped.code(), None, "{}", stopped.text());
    run(killed.path()).ok();
    assert_same(&artifacts(whole.path()), &artifacts(killed.path()), "resumed training");
    let weights = std::fs::read(whole.path().join("retrain/model/outputs.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&weights[..4096.min(weights.len())]).into_owned();
    assert!(header.contains("\"tagging.weight\""), "{header}");
}
