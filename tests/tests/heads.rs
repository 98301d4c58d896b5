//! Retraining under a head mask through the binary: what is frozen keeps its bits and is named, and a mask that is invalid stops the run
//! with what mends it.
use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use engraft_tests::{Engraft, artifacts};

/// Two layers of four heads: in the second nothing is kept.
const MASK: &str = r#"{"format": "engraft-head-mask", "version": 1, "layers": 2, "heads": 4, "keep": [[1, 0, 1, 0.5], [0, 0, 0, 0]]}"#;

/// The small encoder has one layer otherwise.
const LAYERS: &str = "encoder.num_hidden_layers=2";

fn trained(out: &Path, heads: &str) -> BTreeMap<String, Tensor> {
    Engraft::small(&["run"], out).set(LAYERS).set(&format!("retrain.heads={heads}")).ok();
    let file = out.join("retrain/model/model.safetensors");
    candle_core::safetensors::load(file, &Device::Cpu).unwrap().into_iter().collect()
}

/// Rows of head `head` of a query weight, as bits.
fn head(params: &BTreeMap<String, Tensor>, layer: usize, head: usize) -> Vec<u32> {
    let weight = &params[&format!("encoder.layer.{layer}.attention.self.query.weight")];
    let width = weight.dim(0).unwrap() / 4;
    let rows = weight.narrow(0, head * width, width).unwrap().flatten_all().unwrap();
    rows.to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn kept_heads_keep_their_bits_and_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mask = dir.path().join("mask.json");
    base::whole::write_whole(&mask, MASK.as_bytes()).unwrap();
    let how = |mode: &str, shared: &str| {
        format!("{{ mask = {mask:?}, mode = \"{mode}\", shared = \"{shared}\", soft_on = \"step\" }}")
    };
    let out = |name: &str| dir.path().join(name);
    // Fresh weights follow from the seed, so a head that no training moves is the same in all.
    let [hard, soft] =
        [("hard", "train"), ("soft", "freeze")].map(|(mode, shared)| trained(&out(mode), &how(mode, shared)));
    let free = trained(&out("free"), "{ mode = \"none\", shared = \"train\", soft_on = \"step\" }");
    for kept in [0, 2] {
        assert_eq!(head(&hard, 0, kept), head(&soft, 0, kept));
        assert_ne!(head(&hard, 0, kept), head(&free, 0, kept));
    }
    for (layer, vacant) in [(0, 1), (1, 0), (1, 3)] {
        assert_ne!(
            head(&hard, layer, vacant),
            head(&soft, layer, vacant),
            "they learn beside other parameters"
        );
    }
    let frozen = |name: &str| std::fs::read_to_string(out(name).join("retrain/frozen.json")).unwrap();
    let (hard, soft) = (frozen("hard"), frozen("soft"));
    assert!(
        hard.contains("encoder.layer.0.attention.self.query.weight") && hard.contains("heads 0 and 2"),
        "{hard}"
    );
    assert!(!hard.contains("embeddings.") && soft.contains("embeddings.word_embeddings.weight"), "{soft}");
    assert!(!frozen("free").contains("query"));
}

#[test]
fn masks_that_cannot_be_meant_stop_the_run_with_what_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        base::whole::write_whole(&path, text.as_bytes()).unwrap();
        path
    };
    let out = dir.path().join("out");
    let refused = |heads: String| {
        let ran = Engraft::small(&["run"], &out).set(LAYERS).set(&format!("retrain.heads={heads}")).output();
        assert_ne!(ran.code(), Some(0));
        ran.text()
    };
    let rest = "shared = \"train\", soft_on = \"step\" }";
    let with = |path: &Path, mode: &str| format!("{{ mask = {path:?}, mode = \"{mode}\", {rest}");
    let text = refused(format!("{{ mode = \"hard\", {rest}"));
    assert!(text.contains("needs a head mask: name its file in retrain.heads.mask"), "{text}");
    let good = file("good.json", MASK);
    assert!(refused(with(&good, "none")).contains("uses no head mask"));
    let other =
        file("other.json", &MASK.replace("\"layers\": 2", "\"layers\": 1").replace(", [0, 0, 0, 0]", ""));
    let text = refused(with(&other, "hard"));
    assert!(text.contains("1 layers") && text.contains('2'), "both shapes: {text}");
    let all = file("all.json", &MASK.replace("0.5", "1").replace('0', "1"));
    assert!(refused(with(&all, "soft")).contains("keeps every head"));
    assert!(refused(with(&file("no.json", "{}"), "hard")).contains("no.json"));
    assert!(refused(with(&dir.path().join("gone.json"), "hard")).contains("gone.json"));
}

#[test]
fn patience_ends_a_training_and_keeps_the_best_look() {
    let (reference, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The rate rises all along, until steps are too wide for the loss to fall.
    let sets = [
        "split.parts={ ratio = { train = 0.8, valid = 0.2, test = 0.0, seed = 1, cover = \"train\" } }",
        "retrain.epochs=30",
        "retrain.learning_rate=50.0",
        "retrain.warmup_steps=1000",
        "retrain.patience={ every = 3, evaluations = 2, batches = 2 }",
    ];
    let run = |out: &Path| sets.iter().fold(Engraft::small(&["run"], out), |engraft, set| engraft.set(set));
    run(reference.path()).ok();
    let read = |name: &str| std::fs::read_to_string(reference.path().join("retrain").join(name)).unwrap();
    let ended: serde_json::Value = serde_json::from_str(&read("training.json")).unwrap();
    assert_eq!(ended["stop"], "patience", "{ended}");
    assert!(ended["steps"].as_u64() < ended["planned"].as_u64(), "{ended}");
    let looks: Vec<serde_json::Value> =
        read("held_out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let best =
        looks.iter().min_by(|a, b| a["loss"].as_f64().unwrap().total_cmp(&b["loss"].as_f64().unwrap()));
    assert_eq!(best.unwrap()["step"], ended["best"]["step"], "{looks:?}");
    assert_eq!(looks.last().unwrap()["verdict"], "stop");
    let outputs: serde_json::Value = serde_json::from_str(&read("model/outputs.json")).unwrap();
    assert_eq!(outputs["step"], ended["best"]["step"], "the kept encoder is that of the best look");
    let killed = run(folder.path()).kill_at("retrain:working:14").output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    run(folder.path()).ok();
    assert_eq!(artifacts(reference.path()), artifacts(folder.path()));
}
