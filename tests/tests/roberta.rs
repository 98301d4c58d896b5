//! RoBERTa: a checkpoint as `transformers` saves it is read, trained with whatever attention, and given back as one.
//!
//! `ENGRAFT_TORCH` names a Python with tests/python/requirements-torch.txt; without it the test is skipped.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use base::whole::write_whole;
use batch::rows::Rows;
use candle_core::Device;
use downstream::encode::{Cut, Frame, Framed};
use engraft_tests::python::at_home;
use engraft_tests::{Engraft, json, json_lines};
use model::fill::Filler;
use serde_json::Value;
use tasks::token::encode::{Case, Vocabulary};

/// The world's graph and texts, an encoder that is a RoBERTa, plain and with maps.
const CONFIG: &str = r#"version = 5
extends = "CONFIGS/world-kam-bert.toml"
encoder = { from = "checkpoint", path = "CHECKPOINT" }
vocabulary = { case = "cased", file = "CHECKPOINT/VOCABULARY" }
counts.what.case = "cased"
world.scale = 0.6
shards = { tasks = ["subject", "object", "relation", "triplet", "masked_lm"], masked_lm.files = { paths = ["world:text"], format = { text = "paragraph" } } }

[pretrain]
max_steps = 3

[retrain]
max_steps = 3

[finetune]
epochs = 1
seeds = [1]
max_tokens = 64
max_examples = { train = 40, dev = 20, test = 20 }
"#;

fn python(python: &OsStr, arguments: &[&Path]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/roberta.py");
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn ids(of: &Value) -> Vec<u32> {
    serde_json::from_value(of["ids"].clone()).unwrap()
}

/// Rows are those of `transformers`, from both kinds of files.
fn rows_are_the_publishers(folder: &Path, case: &Value) {
    for file in ["published/tokenizer.json", "old/vocab.json"] {
        let vocabulary = Vocabulary::load(&folder.join(file), Case::Cased).unwrap();
        let frame = Frame { special: vocabulary.special(), most: 128, cut: Cut::Longest };
        let encode = |text: &Value| vocabulary.encode(text.as_str().unwrap()).unwrap();
        for of in case["texts"].as_array().unwrap() {
            let mut rows = Framed::new(frame).unwrap();
            rows.single(&encode(&of["text"]));
            assert_eq!(rows.rows.ids, ids(of), "{file}: {of}");
        }
        for of in case["pairs"].as_array().unwrap() {
            let mut rows = Framed::new(frame).unwrap();
            rows.pair(&encode(&of["text"]), &encode(&of["pair"]));
            assert_eq!(rows.rows.ids, ids(of), "{file}: {of}");
            assert!(rows.rows.types.iter().all(|kind| *kind == 0));
        }
        let special = vocabulary.special().all();
        for text in ["<mask>", "a <s> b", "</s></s>"] {
            let found = vocabulary.encode(text).unwrap();
            assert!(!found.iter().any(|id| special.contains(id)), "{text} is text: {found:?}");
        }
    }
}

/// What `engraft encode` says of the case's texts.
fn vectors(model: &Path, case: &Value, out: &Path, extra: &[&str]) -> Vec<Vec<f64>> {
    let lines = case["texts"].as_array().unwrap().iter();
    let lines: String = lines.map(|of| format!("{}\n", serde_json::json!({ "text": of["text"] }))).collect();
    let file = out.with_extension("jsonl");
    write_whole(&file, lines.as_bytes()).unwrap();
    let verb = ["encode", model.to_str().unwrap(), file.to_str().unwrap(), "--pooling", "mean"];
    let said = Engraft::plain(&[&verb, extra].concat(), out).ok();
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["vector"].clone();
    said.lines().map(|line| serde_json::from_value(of(line)).unwrap()).collect()
}

fn alike(found: &[Vec<f64>], expected: &Value) {
    let expected: Vec<Vec<f64>> = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    }
}

/// What the model's output of masked words says where the case has a mask.
fn fills(folder: &Path, case: &Value) {
    let masked: Vec<u32> = serde_json::from_value(case["masked"].clone()).unwrap();
    let expected: Vec<f32> = serde_json::from_value(case["logits"].clone()).unwrap();
    let blank = Vocabulary::load(&folder.join("tokenizer.json"), Case::Cased).unwrap().special().blank;
    let mut rows = Rows::default();
    rows.push(masked.iter().map(|id| (*id, 0)));
    let at = masked.iter().position(|id| *id == blank).unwrap();
    let found = Filler::load(folder, &Device::Cpu).unwrap().logits(&rows, &[at]).unwrap();
    assert!(found[0].iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?}");
}

/// Names are aligned and linked by a RoBERTa, too, and sentence-transformers computes its vectors.
fn synonyms_are_aligned_and_linked(torch: &OsStr, root: &Path, config: &Path, asked: &Path) {
    let graph = kg::table::Graph::read(&root.join("out/triples")).unwrap();
    let known = graph.entities().iter().find_map(|entity| entity.key.strip_prefix("umls:")).unwrap();
    let text = format!("1|t|fever\n1|a|\n1\t0\t5\tfever\tDisease\t{known}\n\n");
    write_whole(&root.join("texts.PubTator.txt"), text.as_bytes()).unwrap();
    let text = format!(
        "version = 5\nextends = {config:?}\nalign = {{ max_steps = 3, batch = 8, pooling = \"mean\" }}\n[link]\nof = [\"encoder\", \"align\"]\n\
         [[link.sets]]\nnamespace = \"umls\"\ntexts = {{ name = \"set\", paths = [{:?}], format = {{ pubtator = {{ between = \"space\" }} }} }}\n",
        root.join("texts.PubTator.txt")
    );
    let own = root.join("align.toml");
    write_whole(&own, text.as_bytes()).unwrap();
    let out = root.join("aligned");
    Engraft::plain(&["run", "link"], &out).arg("--config").arg(&own).ok();
    let scores = json(out.join("link/link.json"));
    for model in ["encoder", "align"] {
        assert!(scores["sets"]["set"][model]["accuracy_1"]["value"].as_f64().is_some(), "{scores}");
    }
    let (model, exported) = (out.join("align/model"), root.join("exported"));
    Engraft::export(&model, "sentence-transformers", &exported).ok();
    let said = root.join("said.jsonl");
    let verb = ["encode", model.to_str().unwrap(), asked.to_str().unwrap(), "--pooling", "mean"];
    write_whole(&said, Engraft::plain(&verb, root).ok().as_bytes()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/exported.py");
    let mut command = Command::new(torch);
    command.arg(script).arg(asked).arg("sentence-transformers").arg(exported).arg(said);
    let output = command.env("HF_HUB_OFFLINE", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_published_roberta_is_read_trained_and_given_back() {
    let Some(torch) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    python(&torch, &[Path::new("make"), root]);
    let case = json(root.join("case.json"));
    rows_are_the_publishers(root, &case);
    for published in ["published", "old"].map(|name| root.join(name)) {
        alike(&vectors(&published, &case, &root.join("none"), &[]), &case["vectors"]);
    }
    fills(&root.join("published"), &case);

    let out = root.join("out");
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let written = |checkpoint: &str, vocabulary: &str| {
        let text = CONFIG.replace("CONFIGS", configs.to_str().unwrap());
        let text = text.replace("CHECKPOINT", root.join(checkpoint).to_str().unwrap());
        let text = text.replace("VOCABULARY", vocabulary);
        write_whole(&root.join("roberta.toml"), text.as_bytes()).unwrap();
    };
    written("old", "vocab.json");
    let config = root.join("roberta.toml");
    let run = |verb: &[&str]| Engraft::plain(verb, &out).arg("--config").arg(&config);
    run(&["run", "finetune-base-questions-1", "finetune-kam-entailed-1", "retrain"]).ok();
    let asked = root.join("asked.jsonl");
    write_whole(&asked, b"{\"text\": \"fever and a cough\"}\n{\"text\": \"What treats asthma?\"}\n").unwrap();
    for pooling in ["cls", "learned_pooler"] {
        let set = format!("finetune.pooling={pooling}");
        run(&["run", "finetune-base-questions-1"]).set(&set).ok();
        let model = out.join("finetune-base-questions-1/model");
        let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
        at_home(&model, &asked, &Engraft::plain(&verb, root).ok());
    }
    run(&["run", "finetune-base-questions-1"]).ok();
    for stage in ["finetune-base-questions-1", "retrain"] {
        let model = out.join(stage).join("model");
        let found = vectors(&model, &case, &root.join("again"), &[]);
        let mut said = case.clone();
        said["vectors"] = serde_json::to_value(found).unwrap();
        write_whole(&root.join("said.json"), said.to_string().as_bytes()).unwrap();
        python(&torch, &[Path::new("check"), &model, &root.join("said.json")]);
    }
    synonyms_are_aligned_and_linked(&torch, root, &config, &asked);
    let steps = json_lines(out.join("finetune-kam-entailed-1/metrics.jsonl"));
    assert!(steps.iter().all(|step| step["loss"].as_f64().is_some_and(f64::is_finite)), "{steps:?}");
    // The same vocabulary in one file is the same to whoever asks.
    written("published", "tokenizer.json");
    let refused = run(&["plan"]).set("vocabulary.case=uncased").set("counts.what.case=uncased").output();
    assert!(refused.text().contains("cased"), "{}", refused.text());
    let refused = run(&["run", "shards"]).set("shards.layout.token_types=by_column").output();
    assert!(refused.text().contains("RoBERTa has one segment"), "{}", refused.text());
    let bert =
        run(&["run", "retrain"]).set("vocabulary={ case = \"cased\", train = { size = 500 } }").output();
    assert!(
        bert.text().contains("the vocabulary is BERT's WordPiece and the encoder RoBERTa"),
        "{}",
        bert.text()
    );
}
