//! Facts as LAMA asks them of models that have read texts, and masked words that are learned, plainly and by maps.
use std::path::Path;

use engraft_tests::{Engraft, json, json_lines};
use serde_json::Value;

use super::{compared, small};
use crate::peers;

/// A line of LAMA's part from SQuAD.
fn fact(id: &str, sentence: &str, object: &str) -> String {
    format!(
        "{{\"masked_sentences\": [\"{sentence}\"], \"obj_label\": \"{object}\", \"id\": \"{id}\", \"sub_label\": \"Squad\"}}\n"
    )
}

#[test]
fn facts_are_asked_of_a_model_that_has_read_texts() {
    let folder = tempfile::tempdir().unwrap();
    let (out, data) = (folder.path().join("out"), folder.path().join("lama/Squad"));
    std::fs::create_dir_all(&data).unwrap();
    let facts = [
        fact("known", "More [MASK] is under way.", "research"),
        fact("also", "Little was known about [MASK] twenty years ago.", "it"),
        fact("several", "More [MASK] is under way.", "research research"),
        fact("long", &format!("{}[MASK].", "more ".repeat(70)), "research"),
    ];
    base::whole::write_whole(&data.join("test.jsonl"), facts.concat().as_bytes()).unwrap();
    let lama = format!(
        "lama={{ data = {:?}, corpora = [\"squad\"], wording = \"templates\", of = [\"pretrain\"], max_tokens = 64 }}",
        folder.path().join("lama")
    );
    small(&["run", "lama-pretrain"], "world-kam-bert.toml", &out).arg("--set").arg(&lama).ok();
    let scores = json(out.join("lama-pretrain/lama.json"));
    assert_eq!(scores["Squad"]["all_facts"]["facts"], 2);
    let answers = json_lines(out.join("lama-pretrain/answers.jsonl"));
    assert_eq!((answers[0]["id"].as_str(), answers[1]["object"].as_str()), (Some("known"), Some("it")));
    assert!(answers.iter().all(|of| of["place"].as_u64().unwrap() >= 1 && of["said"].is_string()));
    let ledger = std::fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    assert!(ledger.contains("an object of several tokens") && ledger.contains("a sentence that is too long"));
    let refused = small(&["plan"], "world-kam-bert.toml", &out)
        .arg("--set")
        .arg(lama.replace("pretrain", "base"))
        .output();
    assert!(refused.text().contains("`base` is a checkpoint ([encoder] with from"), "{}", refused.text());
}

#[test]
fn masked_words_are_learned_by_maps_and_facts_asked_of_what_learned_them() {
    let folder = tempfile::tempdir().unwrap();
    let (out, data) = (folder.path().join("out"), folder.path().join("lama/Squad"));
    std::fs::create_dir_all(&data).unwrap();
    let facts = [
        fact("known", "More [MASK] is under way.", "research"),
        fact("first", "[MASK] is under way in more [MASK]s.", "research"),
    ];
    base::whole::write_whole(&data.join("test.jsonl"), facts.concat().as_bytes()).unwrap();
    let set = "benchmarks=[{ name = \"texts\", set = { format.masked_words = { format.text = \"paragraph\", unit = \"sentence\" }, train = [\"world:text\"], licence = \"free\" } }]";
    let lama = format!(
        "lama={{ data = {:?}, corpora = [\"squad\"], finetuned = [\"finetune-base-texts-1\", \"finetune-kam-texts-1\"], max_tokens = 64 }}",
        folder.path().join("lama")
    );
    let run = |verb: &[&str], sets: &[&str]| {
        let with = |engraft: Engraft, set: &&str| engraft.arg("--set").arg(set);
        let all = [set, "attentions=[{ name = \"kam\", knowledge = {} }]", "finetune.max_examples.train=400"];
        let engraft = all.iter().fold(small(verb, "world-kam-bert.toml", &out), with);
        sets.iter()
            .fold(engraft, with)
            .set("finetune.max_examples.dev=100")
            .set("finetune.max_examples.test=200")
    };
    run(&["run", "scores", "lama-finetune-base-texts-1", "lama-finetune-kam-texts-1"], &[&lama]).ok();
    assert_eq!(compared(&out, "texts"), ["alone", "kam"]);
    for stage in ["finetune-base-texts-1", "finetune-kam-texts-1"] {
        let scores = json(out.join(stage).join("scores.json"));
        let test = &scores["test"];
        let [accuracy, loss] =
            [&test["value"], &test["others"]["cross_entropy"]].map(|of| of.as_f64().unwrap());
        // Of 3,000 entries one is guessed: by chance the loss is 8.
        assert!(test["metric"] == "accuracy" && accuracy > 0.05 && loss < 7.0, "{stage}: {test}");
        let said = json_lines(out.join(stage).join("test.jsonl"));
        assert_eq!(said.len(), 200);
        let outputs: Vec<&Vec<Value>> = said
            .iter()
            .flat_map(|of| of["outputs"].as_array().unwrap())
            .map(|of| of.as_array().unwrap())
            .collect();
        let hits = outputs.iter().filter(|of| of[0] == 1.0).count() as f64;
        assert!((hits / outputs.len() as f64 - accuracy).abs() < 1e-9, "{stage}");
        let answers = json_lines(out.join(format!("lama-{stage}/answers.jsonl")));
        assert!(answers.len() == 2 && answers.iter().all(|of| of["place"].as_u64().unwrap() >= 1));
    }
    let ledger = std::fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    // The second sentence has letters behind a mask, which are a word of their own there and none with it.
    assert!(ledger.contains("\"rows_without_maps\":1"));
    masks_are_filled(&out);
    are_asked_by_transformers(&out, &folder.path().join("lama"));
    goes_along(&out, folder.path());
    let other = run(&["plan"], &[&lama.replace("kam-texts", "kam-notes")]).output().text();
    assert!(
        other.contains("lama.finetuned has \"finetune-kam-notes-1\"")
            && other.contains("finetune-kam-texts-1"),
        "{other}"
    );
    let neither = run(
        &["plan"],
        &[&lama.replace("finetuned = [\"finetune-base-texts-1\", \"finetune-kam-texts-1\"]", "of = []")],
    );
    assert!(neither.output().text().contains("lama.of and lama.finetuned are empty"));
}

/// Both facts have the same places there.
fn are_asked_by_transformers(out: &Path, data: &Path) {
    let stage = "lama-finetune-base-texts-1";
    let model = out.join("finetune-base-texts-1/model");
    let [of, model, data] = [out, &model, data].map(|path| path.display().to_string());
    let Some((fine, said)) = peers::asked("facts.py", &[&of, stage, &model, &data]) else { return };
    assert!(fine && said.contains("| Squad | 2 | 2 |"), "{said}");
}

/// What predicts masked words is exported with it.
fn goes_along(out: &Path, folder: &Path) {
    let (model, into) = (out.join("finetune-base-texts-1/model"), folder.join("onnx"));
    assert_eq!(json(model.join("config.json"))["architectures"][0], "BertForMaskedLM");
    let said = Engraft::export(&model, "onnx", &into).ok();
    assert!(into.join("model.onnx").is_file() && !said.contains("stays here"), "{said}");
}

/// `engraft predict` says of masks what LAMA was told, plainly and by maps.
fn masks_are_filled(out: &Path) {
    let asked = out.join("asked.txt");
    base::whole::write_whole(&asked, b"More [MASK] is under way.\n[MASK] is under [MASK].\n").unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-kam-bert.toml");
    for row in ["base", "kam"] {
        let model = out.join(format!("finetune-{row}-texts-1/model"));
        let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap(), "--top", "3"];
        let plain = Engraft::plain(&verb, out).arg("--config").arg(&file);
        let said = plain.set("world.scale=0.6").ok();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let masks = |line: &Value| line["masks"].as_array().unwrap().clone();
        assert_eq!(lines.iter().map(|line| masks(line).len()).collect::<Vec<_>>(), [1, 2], "{said}");
        let best = &masks(&lines[0])[0];
        let shares: Vec<f64> =
            best.as_array().unwrap().iter().map(|of| of["share"].as_f64().unwrap()).collect();
        assert!(shares.len() == 3 && shares.is_sorted_by(|a, b| a >= b) && shares[0] < 1.0, "{said}");
        let answers = json_lines(out.join(format!("lama-finetune-{row}-texts-1/answers.jsonl")));
        assert_eq!(answers[0]["said"], best[0]["word"], "{row}");
        base::whole::write_whole(&out.join("none.txt"), b"Nothing is masked.\n").unwrap();
        let none = ["predict", model.to_str().unwrap(), &out.join("none.txt").display().to_string()];
        let none =
            Engraft::plain(&none, out).arg("--config").arg(&file).set("world.scale=0.6").output().text();
        assert!(none.contains("line 1: there is no [MASK] in it"), "{none}");
    }
}
