//! The task tagging through the binary: shards of texts whose words are marked, trained beside triples with an output of its own, exact resume.
use engraft_tests::Engraft;

use crate::interop::tagged;
use crate::synonyms::learnt_and_resumed;

const TASKS: &str = "shards.tasks=[\"subject\", \"object\", \"relation\", \"triplet\", \"tagging\"]";

#[test]
fn tags_are_learnt_beside_triples_with_an_output_of_their_own_and_resume_exactly() {
    let texts = tempfile::tempdir().unwrap();
    let setting = tagged(texts.path(), 64);
    let steps = learnt_and_resumed("tagging", |out| {
        let run = Engraft::small(&["run"], out).set(TASKS).set(&setting);
        run.set("retrain.alphas.tagging=1.0").set("retrain.epochs=6")
    });
    let shown: Vec<_> =
        steps.iter().map(|step| &step["tasks"]["tagging"]).filter(|of| of.is_object()).collect();
    let of = |at: usize, what: &str| shown[at][what].as_f64().unwrap();
    // Four words of each text are answered, what precedes and follows them is not.
    assert_eq!(of(0, "targets"), 4.0 * of(0, "samples"));
    let accuracies = (of(0, "accuracy"), of(shown.len() - 1, "accuracy"));
    assert!(accuracies.1 > accuracies.0, "{accuracies:?}");
}
