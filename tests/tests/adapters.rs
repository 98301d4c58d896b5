//! Adapters trained in the encoder's place, through the binary: PEFT adds them as engraft does, any number of threads trains the same, and what
//! contradicts them is refused.
use std::path::Path;
use std::process::Command;

use engraft_tests::{Engraft, json};

fn retrain(verb: &[&str], out: &Path, lora: &str) -> Engraft {
    let sets =
        ["retrain.epochs=1", "retrain.max_steps=4", "retrain.warmup_steps=1", "retrain.learning_rate=0.01"];
    let engraft = Engraft::small(verb, out).set(&format!("retrain.lora={lora}"));
    sets.iter().fold(engraft, |engraft, set| engraft.set(set))
}

fn export(model: &Path, into: &Path) -> Engraft {
    Engraft::export(model, "peft", into)
}

/// Whether PEFT makes of base and adapters what engraft has made; nothing where no Python is named.
fn compare(base: &Path, adapters: &Path, added: &Path) {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return };
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/adapters.py"));
    command
        .args([base, adapters, added])
        .env("HF_HUB_OFFLINE", "1")
        .env("HF_HOME", adapters.with_extension("hf"));
    let ran = command.output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn peft_adds_adapters_as_engraft_does_and_threads_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lora =
        "{ rank = 4, targets = [\"query\", \"value\", \"attention_output\", \"intermediate\", \"output\"] }";
    let pooled = "retrain.task_heads.pooling=learned_pooler";
    retrain(&["run", "retrain"], &at("out"), lora).set(pooled).arg("--jobs").arg("3").ok();
    retrain(&["run", "retrain"], &at("one"), lora).set(pooled).arg("--jobs").arg("1").ok();
    for file in ["adapters.safetensors", "model.safetensors", "outputs.safetensors"] {
        let of = |out: &str| std::fs::read(at(out).join("retrain/model").join(file)).unwrap();
        assert!(of("out") == of("one"), "{file}");
    }
    let (base, model) = (at("out/encoder/model"), at("out/retrain/model"));
    let frozen = json(at("out/retrain/frozen.json"));
    let of = |name: &str| frozen[name].as_str().unwrap_or("trained").to_owned();
    assert_eq!(of("encoder.layer.0.attention.self.query.weight"), "its adapter moves it");
    assert_eq!(of("encoder.layer.0.attention.self.key.weight"), "adapters are trained in its place");
    assert_eq!(of("pooler.dense.weight"), "trained");
    let listed = export(&model, &at("adapters")).ok();
    for file in ["adapter_config.json", "adapter_model.safetensors", "README.md"] {
        assert!(listed.contains(&format!("/{file}  ")), "{listed}");
    }
    compare(&base, &at("adapters"), &model);
    let card = std::fs::read_to_string(at("adapters/README.md")).unwrap();
    let digest = blake3::hash(&std::fs::read(base.join("model.safetensors")).unwrap()).to_hex();
    assert!(
        card.contains("of rank 4 and alpha 16, on query, value, attention_output")
            && card.contains(digest.as_str()),
        "{card}"
    );
    // What is exported for others has the adapters added, and no files that only engraft reads.
    let listed = Engraft::export(&model, "transformers", &at("plain")).ok();
    assert!(listed.contains("model.safetensors") && !listed.contains("adapters."), "{listed}");
    let refused = export(&base, &at("none")).output();
    assert!(
        refused.code() == Some(2)
            && refused.text().contains("it has no adapters.json: adapters are there where retrain.lora"),
        "{}",
        refused.text()
    );
    assert!(!at("none").exists());
}

#[test]
fn adapters_beside_what_says_otherwise_what_is_trained_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |engraft: Engraft, why: &str| {
        let ran = engraft.output();
        assert!(ran.code() == Some(2) && ran.text().contains(why), "{}", ran.text());
    };
    let plan = |lora: &str| retrain(&["plan", "retrain"], folder.path(), lora);
    refused(plan("{ rank = 0 }"), "retrain.lora.rank is 0, expected at least 1");
    refused(plan("{ rank = 4000 }"), "retrain.lora.rank is 4000, expected from 1 to ");
    refused(plan("{ targets = [\"keys\"] }"), "retrain.lora.targets");
    refused(
        plan("{}").set("retrain.frozen=[\"embeddings.\"]"),
        "retrain.lora trains adapters in the place of the whole encoder, and retrain.frozen says what of it is trained",
    );
    refused(plan("{}").set("retrain.heads={ mode = \"none\" }"), "and retrain.heads says");
}
