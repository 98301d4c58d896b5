//! Rankings by the cosines of vectors: trained, asked, encoded, and left as the encoder is.

use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json, json_lines};
use serde_json::{Value, json as object};

/// Passages of the invented world, ranked by an encoder that begins afresh.
const CONFIG: &str = r#"version = 5
extends = "world"

[[benchmarks]]
name = "capr"
capr = { train.medquad = "world:medquad", test.share = 0.4, candidates.per_query = 12, held_out = { dev = 0.1, mask_search = 0 } }

[finetune]
learning_rate = 1e-3
epochs = 2
max_tokens = 64
pooling = "mean"
ranking = { scorer = "bi_encoder", negatives = 2, negatives_from = "candidates" }
max_examples = { train = 48, dev = 16, test = 30 }
"#;

fn ran(folder: &Path, out: &Path, sets: &[&str]) -> Engraft {
    let config = folder.join("bi.toml");
    write_whole(&config, CONFIG.as_bytes()).unwrap();
    let run = Engraft::plain(&["run", "scores", "--config", &config.display().to_string()], out);
    sets.iter().fold(run, |run, set| run.set(set))
}

/// What a verb says of lines.
fn asked(verb: &[&str], lines: &[Value], out: &Path) -> Vec<Value> {
    let file = out.join("asked.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write_whole(&file, text.as_bytes()).unwrap();
    let file = file.display().to_string();
    let said = Engraft::plain(&[verb, &[&file]].concat(), out).ok();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The first question that was looked at with its candidates, as pairs of texts.
fn pairs(out: &Path) -> Vec<Value> {
    let [queries, passages] =
        ["queries", "passages"].map(|of| json_lines(out.join(format!("benchmark-capr/test/{of}.jsonl"))));
    let asked = json_lines(out.join("finetune-base-capr-1/test.jsonl"))[0]["id"].clone();
    let text = |query: &Value| {
        format!("{} ; {}", query["entity"].as_str().unwrap(), query["aspect"].as_str().unwrap())
    };
    let query = queries.iter().find(|query| asked == text(query)).unwrap();
    let candidates = query["candidates"].as_array().unwrap().iter();
    let passage = |at: &Value| &passages[usize::try_from(at.as_u64().unwrap()).unwrap()]["text"];
    candidates.map(|at| object!({ "text": asked, "pair": passage(at) })).collect()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Asserts that cosines are those of the vectors that a model's folder encodes.
fn are_cosines(said: &[f64], model: &str, pairs: &[Value], out: &Path) {
    let verb = ["encode", model, "--pooling", "mean", "--max-tokens", "64"];
    let [ones, others] = ["text", "pair"].map(|of| {
        let texts: Vec<Value> = pairs.iter().map(|pair| object!({ "text": pair[of] })).collect();
        asked(&verb, &texts, out).iter().map(|line| numbers(&line["vector"])).collect::<Vec<_>>()
    });
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert!(said.len() > 2 && said.len() == ones.len());
    for ((said, one), other) in said.iter().zip(&ones).zip(&others) {
        let cosine = dot(one, other) / (dot(one, one) * dot(other, other)).sqrt();
        assert!((said - cosine).abs() < 1e-5, "{said} {cosine}");
    }
}

/// The scores of the first test question as a stage wrote them.
fn written(out: &Path) -> Vec<f64> {
    let said = &json_lines(out.join("finetune-base-capr-1/test.jsonl"))[0]["outputs"];
    said.as_array().unwrap().iter().map(|row| numbers(row)[0]).collect()
}

#[test]
fn a_bi_encoder_ranks_by_the_cosines_of_the_vectors_that_its_folder_encodes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    ran(folder.path(), &out, &[]).ok();
    let tuned = out.join("finetune-base-capr-1");
    let scores = json(tuned.join("scores.json"));
    assert_eq!((&scores["parameters"]["outputs"], &scores["steps"]), (&object!(0), &object!(6)));
    let steps = json_lines(tuned.join("metrics.jsonl"));
    // A question, its answer and two that are wrong.
    assert_eq!((&steps[0]["rows"], &steps[0]["tasks"]["capr"]["samples"]), (&object!(64), &object!(16)));
    assert!(steps[5]["loss"].as_f64() < steps[0]["loss"].as_f64(), "{} {}", steps[0], steps[5]);
    let (model, pairs, written) = (tuned.join("model").display().to_string(), pairs(&out), written(&out));
    let said: Vec<f64> = asked(&["predict", &model], &pairs, &out)
        .iter()
        .map(|line| line["score"].as_f64().unwrap())
        .collect();
    assert!(said.iter().zip(&written).all(|(a, b)| (a - b).abs() < 1e-5), "{said:?} {written:?}");
    are_cosines(&said, &model, &pairs, &out);
    let card = std::fs::read_to_string(tuned.join("model/README.md")).unwrap();
    assert!(
        card.contains("sentence-similarity") && card.contains("the cosine of two texts' vectors"),
        "{card}"
    );
}

#[test]
fn without_an_epoch_an_encoder_is_measured_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    ran(folder.path(), &out, &["finetune.epochs=0"]).ok();
    let scores = json(out.join("finetune-base-capr-1/scores.json"));
    assert_eq!((&scores["steps"], &scores["test"]["samples"]), (&object!(0), &object!(30)));
    let encoder = out.join("encoder/model").display().to_string();
    are_cosines(&written(&out), &encoder, &pairs(&out), &out);
    let refused = |sets: &[&str]| {
        let ran = ran(folder.path(), &out, sets).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    let text = refused(&["finetune.epochs=0", "finetune.ranking.scorer=cross_encoder"]);
    assert!(
        text.contains("finetune.epochs is 0") && text.contains("not capr: give at least 1 epoch"),
        "{text}"
    );
    let text = refused(&["finetune.ranking.loss=binary"]);
    assert!(text.contains("a bi-encoder is trained by a softmax over the batch"), "{text}");
}

#[test]
fn a_comparison_of_retrained_encoders_ranks_by_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = Engraft::graft(&["run", "results"], &out)
        .set("graft.rows=[\"base\", \"hard\", \"forward\"]")
        .set("graft.search={ tau = 0.0, rho = 0.3, keep_per_layer = 1 }")
        .set("finetune.seeds=[1]")
        .set("graft.mask_benchmark=\"capr\"")
        .set("finetune.pooling=\"mean\"")
        .set("finetune.ranking={ scorer = \"bi_encoder\", negatives = 1, negatives_from = \"candidates\" }");
    run.ok();
    let found = json(out.join("results/grafting.json"));
    let rows: Vec<&str> =
        found["cells"].as_array().unwrap().iter().map(|cell| cell["row"].as_str().unwrap()).collect();
    assert_eq!(rows.iter().filter(|row| **row == "hard").count(), 4, "{rows:?}");
    for row in ["base", "hard", "forward"] {
        let scores = json(out.join(format!("finetune-{row}-capr-1/scores.json")));
        assert_eq!(
            (&scores["parameters"]["outputs"], &scores["test"]["samples"]),
            (&object!(0), &object!(60)),
            "{row}"
        );
    }
    let mask = json(out.join("mask-hard/mask.json"));
    let gates: Vec<f64> = mask["keep"].as_array().unwrap().iter().flat_map(numbers).collect();
    assert!(gates.contains(&0.0) && gates.contains(&1.0), "{mask}");
}

#[test]
fn each_value_is_run_in_a_folder_of_its_own_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = |each: &[&str]| {
        let run = ran(folder.path(), &out, &["finetune.max_examples.train=16", "finetune.epochs=1"]);
        each.iter().fold(run, |run, each| run.arg("--each").arg(each)).output()
    };
    let said = run(&["encoder.seed=[1, 2]", "finetune.learning_rate=[1e-3, 2e-3]"]);
    assert_eq!(said.code(), Some(0), "{}", said.text());
    let [one, two] = ["1", "2"].map(|seed| folder.path().join(format!("out-encoder.seed-{seed}")));
    for (folder, seed, rate) in [(&one, 1, 1e-3), (&two, 2, 2e-3)] {
        let ledger = json_lines(folder.join("ledger.jsonl"));
        let of = |stage: &str, key: &str| {
            let line = ledger.iter().rfind(|line| line["stage"] == stage).unwrap();
            line["described"]["fields"][key].clone()
        };
        assert_eq!(of("encoder", "encoder.seed"), seed, "{folder:?}");
        assert_eq!(of("finetune-base-capr-1", "finetune.learning_rate"), rate, "{folder:?}");
    }
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("| capr ")).count();
    assert_eq!(rows(&said.text()), 1, "{}", said.text());
    let alone =
        Engraft::plain(&["compare", &one.display().to_string(), &two.display().to_string()], &out).ok();
    assert!(said.text().contains(alone.trim()), "{alone}\n{}", said.text());
    for (each, expected) in [
        (&["encoder.seed=[1]"][..], "with two values at least"),
        (&["encoder.seed=[1, 2]", "finetune.batch=[4, 8, 16]"], "give each as many"),
        (&["encoder.sed=[1, 2]"], "encoder.sed"),
        (&["out=[\"a\", \"b\"]"], "use --out FOLDER"),
    ] {
        let refused = run(each);
        assert!(
            refused.code() == Some(2) && refused.text().contains(expected),
            "{each:?}: {}",
            refused.text()
        );
    }
    // Nothing is run where a later value is refused.
    let refused = run(&["finetune.ranking.scorer=[\"bi_encoder\", \"nobody\"]"]);
    assert!(refused.code() == Some(2) && refused.text().contains("nobody"), "{}", refused.text());
    let made =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(made.len(), 3, "nothing else was made: {made:?}");
    // As JSON each run is announced; without stage `scores` nothing is compared.
    let lines = |stage: &str| {
        let run = Engraft::plain(&["run", stage, "--json"], &out)
            .arg("--config")
            .arg(folder.path().join("bi.toml"));
        let said = run.arg("--each").arg("encoder.seed=[1, 2]").ok();
        said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let said = lines("encoder");
    let each: Vec<&Value> = said.iter().filter(|line| line["event"] == "each").collect();
    assert_eq!((each.len(), &each[1]["set"]), (2, &object!(["encoder.seed=2"])));
    assert!(said.iter().all(|line| line["event"].is_string()), "{said:?}");
}
