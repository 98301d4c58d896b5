//! Models as other tools take them: ONNX Runtime and sentence-transformers compute what engraft does, and what cannot be exported leaves nothing behind.
use std::path::{Path, PathBuf};
use std::process::Command;

use base::whole::write_whole;
use engraft_tests::{Engraft, below};

const TEXTS: [&str; 4] = [
    "Fever.",
    "Cough and chest pain for three days, then worse; no rash, no history of asthma.",
    "Élodie's naïve résumé — 37.5 °C",
    "a",
];

/// `engraft export MODEL`.
fn export(model: &Path, arguments: &[&str], into: &Path) -> Engraft {
    let run = Engraft::plain(&["export"], &into.with_extension("out")).arg(model);
    arguments.iter().fold(run, |run, argument| run.arg(argument)).arg("--into").arg(into)
}

/// Compares what Python computes with folders with what `engraft encode` says; nothing where no Python is named.
fn compare(asked: &Path, of: &[(&str, PathBuf, PathBuf)]) {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return };
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/exported.py")).arg(asked);
    for (form, folder, said) in of {
        command.arg(form).arg(folder).arg(said);
    }
    let home = asked.with_file_name(".hf");
    let ran = command.env("HF_HUB_OFFLINE", "1").env("HF_HOME", home).output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn exported_encoders_compute_what_engraft_encodes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    Engraft::small(&["run", "encoder"], &out).ok();
    let model = out.join("encoder/model");
    let asked = folder.path().join("asked.jsonl");
    let lines: Vec<_> = TEXTS.iter().map(|text| serde_json::json!({"text": text}).to_string()).collect();
    write_whole(&asked, (lines.join("\n") + "\n").as_bytes()).unwrap();
    let mut made = Vec::new();
    let onnx = ["mean", "max", "cls", "learned_pooler"].map(|pooling| ("onnx", pooling));
    for (form, pooling) in
        onnx.into_iter().chain(["mean", "max", "cls"].map(|pooling| ("sentence-transformers", pooling)))
    {
        let said = folder.path().join(format!("{form}-{pooling}.said"));
        let encoded =
            Engraft::plain(&["encode"], &out).arg(&model).arg(&asked).arg("--pooling").arg(pooling).ok();
        write_whole(&said, encoded.as_bytes()).unwrap();
        let into = folder.path().join(format!("{form}-{pooling}"));
        let listed = export(&model, &["--to", form, "--pooling", pooling], &into).ok();
        let has = |name: &str| listed.contains(&format!("/{name}  "));
        assert!(has("config.json") && !has("digests.json"), "{listed}");
        assert_eq!(
            (has("model.onnx"), has("model.safetensors")),
            (form == "onnx", form != "onnx"),
            "{listed}"
        );
        made.push((form, into, said));
    }
    let card = std::fs::read_to_string(folder.path().join("sentence-transformers-mean/README.md")).unwrap();
    assert!(
        card.contains("library_name: sentence-transformers") && card.contains("SentenceTransformer(FOLDER)")
    );
    assert!(!card.contains("AutoModel"), "{card}");
    // As checkpoints, which are asked for the first token's state.
    for form in ["transformers", "hub"] {
        let into = folder.path().join(form);
        export(&model, &["--to", form], &into).ok();
        made.push(("transformers", into, folder.path().join("onnx-cls.said")));
    }
    compare(&asked, &made);
}

#[test]
fn an_export_is_whole_or_not_there_and_says_what_is_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    Engraft::small(&["run", "encoder"], &out).ok();
    let (model, into) = (out.join("encoder/model"), folder.path().join("to/there"));
    let refused = |arguments: &[&str], model: &Path, why: &str| {
        let ran = export(model, arguments, &into).output();
        assert!(ran.code() == Some(2) && ran.text().contains(why), "{}", ran.text());
        assert!(!into.exists());
    };
    refused(&["--to", "sentence-transformers"], &model, "say --pooling");
    refused(
        &["--to", "sentence-transformers", "--pooling", "learned_pooler"],
        &model,
        "pools by cls, mean or max",
    );
    refused(&["--to", "hub", "--pooling", "mean"], &model, "goes with --to onnx");
    refused(&["--to", "onnx", "--pooling", "learned_attn"], &model, "belongs to a training's outputs");
    refused(&["--to", "tflite"], &model, "possible values");
    refused(&["--to", "onnx"], folder.path(), "it is not there");
    // Nothing of a failed one is left beside it.
    assert!(below(&folder.path().join("to"), |_| true).is_empty());
    let listed = export(&model, &["--to", "hub"], &into).ok();
    assert!(listed.contains(".gitattributes") && listed.contains("README.md"), "{listed}");
    let again = export(&model, &["--to", "transformers"], &into).output();
    assert!(again.code() == Some(2) && again.text().contains("is there already"), "{}", again.text());
    let json = export(&model, &["--to", "transformers", "--json"], &folder.path().join("plain")).ok();
    assert!(json.contains("\"path\":\"model.safetensors\"") && !json.contains("digests.json"), "{json}");
    // A damaged one is none.
    let weights = model.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    write_whole(&weights, &bytes).unwrap();
    let damaged = export(&model, &["--to", "onnx"], &folder.path().join("damaged")).output();
    assert!(damaged.code() == Some(2) && damaged.text().contains("model.safetensors"), "{}", damaged.text());
}
