//! Attention by maps where its texts come from elsewhere than a set of examples: the pairs of a ranking, rows of tagged words.

mod annotated;

use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json, json_lines};
use serde_json::{Value, json as object};

/// The world's passages and pairs of texts, an encoder that begins afresh, and maps.
const CONFIG: &str = r#"version = 5
extends = ["CONFIGS/parts/world-corpus.toml", "world"]

[corpus]

[counts]

[[benchmarks]]
name = "capr"
capr = { train.medquad = "world:medquad", test.share = 0.4, candidates.per_query = 8, held_out = { dev = 0.1, mask_search = 0 } }

[[benchmarks]]
name = "alike"
set = { format = "sts_b", train = ["world:sets/alike.tsv"], drawn = { dev = 0.15, test = 0.25 }, licence = "free" }

[[attentions]]
name = "kam"
knowledge.maps = ["entity", "phrase", "term"]

[finetune]
learning_rate = 1e-3
epochs = 1
max_tokens = 48
max_examples = { train = 16, dev = 8, test = 10 }
ranking = { negatives = 2 }

[encoder]
num_hidden_layers = 2
hidden_size = 32
intermediate_size = 32
num_attention_heads = 4
"#;

fn with(folder: &Path, verb: &[&str], sets: &[&str]) -> Engraft {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let config = folder.join("known.toml");
    write_whole(&config, CONFIG.replace("CONFIGS", configs.to_str().unwrap()).as_bytes()).unwrap();
    let run = Engraft::own(verb, &config, &folder.join("out"));
    sets.iter().fold(run, |run, set| run.set(set))
}

/// The scores of the first test question, as its stage wrote them and as `predict` says them of the same pairs.
fn said_twice(folder: &Path, sets: &[&str]) -> [Vec<f64>; 2] {
    let out = folder.join("out");
    let tried = &json_lines(out.join("finetune-kam-capr-1/test.jsonl"))[0];
    let [queries, passages] =
        ["queries", "passages"].map(|of| json_lines(out.join(format!("benchmark-capr/test/{of}.jsonl"))));
    let text = |query: &Value| {
        format!("{} ; {}", query["entity"].as_str().unwrap(), query["aspect"].as_str().unwrap())
    };
    let query = queries.iter().find(|query| tried["id"] == text(query)).unwrap();
    let passage = |at: &Value| &passages[usize::try_from(at.as_u64().unwrap()).unwrap()]["text"];
    let pairs = query["candidates"].as_array().unwrap().iter();
    let lines: String =
        pairs.map(|at| format!("{}\n", object!({ "text": tried["id"], "pair": passage(at) }))).collect();
    let asked = folder.join("asked.jsonl");
    write_whole(&asked, lines.as_bytes()).unwrap();
    let model = out.join("finetune-kam-capr-1/model");
    let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
    let said = with(folder, &verb, sets).ok();
    let said =
        said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap());
    let written = tried["outputs"].as_array().unwrap().iter().map(|row| row[0].as_f64().unwrap());
    [written.collect(), said.collect()]
}

#[test]
fn rankings_are_attended_by_maps_of_their_pairs_and_of_texts_read_apart() {
    let folder = tempfile::tempdir().unwrap();
    for scorer in ["cross_encoder", "bi_encoder"] {
        let sets = [format!("finetune.ranking.scorer={scorer}"), "finetune.pooling=mean".to_owned()];
        let sets = sets.each_ref().map(String::as_str);
        // All of it: a ranking has no stage of maps.
        with(folder.path(), &["run"], &sets).ok();
        let [written, said] = said_twice(folder.path(), &sets);
        assert!(written.len() > 2 && written.len() == said.len(), "{written:?} {said:?}");
        assert!(
            written.iter().zip(&said).all(|(a, b)| (a - b).abs() < 1e-4),
            "{scorer}: {written:?} {said:?}"
        );
        let model = folder.path().join("out/finetune-kam-capr-1/model");
        assert_eq!(json(model.join("outputs.json"))["outputs"]["knowledge"]["maps"], 3);
    }
}

#[test]
fn a_model_that_reads_pairs_together_and_apart_answers_each_line_by_its_own_maps() {
    let folder = tempfile::tempdir().unwrap();
    let sets = [
        "finetune.ranking.scorer=bi_encoder",
        "finetune.pooling=mean",
        "recipes=[{ name = \"both\", attention = \"kam\", tasks = [\"capr\", \"alike\"] }]",
    ];
    with(folder.path(), &["run", "recipe-both-1"], &sets).ok();
    let model = folder.path().join("out/recipe-both-1/model");
    let asked = folder.path().join("asked.jsonl");
    let said = |pairs: &[[&str; 2]]| -> Vec<[f64; 2]> {
        let line = |[text, pair]: &[&str; 2]| format!("{}\n", object!({ "text": text, "pair": pair }));
        write_whole(&asked, pairs.iter().map(line).collect::<String>().as_bytes()).unwrap();
        let said =
            with(folder.path(), &["predict", model.to_str().unwrap(), asked.to_str().unwrap()], &sets).ok();
        let of = |line: &str| {
            let said: Value = serde_json::from_str(line).unwrap();
            ["capr", "alike"].map(|task| said["tasks"][task]["score"].as_f64().unwrap())
        };
        said.lines().map(of).collect()
    };
    let pairs = [["fever", "a cough and pain"], ["pain of the chest", "fever"], ["cough", "cough"]];
    let together = said(&pairs);
    for (at, pair) in pairs.iter().enumerate() {
        let alone = said(&[*pair])[0];
        let near = alone.iter().zip(together[at]).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{pair:?}: {alone:?} {:?}", together[at]);
    }
    assert!((together[2][0] - 1.0).abs() < 1e-5, "a text is nearest to itself: {together:?}");
}

#[test]
fn tagged_words_are_attended_by_maps_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut tagged = String::new();
    for number in 0..60 {
        let sign = ["fever", "cough", "pain"][number % 3];
        tagged += &format!("the\tO\n{sign}\tB-Sign\nand\tO\na\u{200b}\tO\nsevere\tO\n{sign}\tB-Sign\n\n");
    }
    write_whole(&root.join("signs.tsv"), tagged.as_bytes()).unwrap();
    let set = "benchmarks=[{ name = \"signs\", set = { format.tagged = { format.conll = { scheme = \"bio\", separator = \"tab\" }, unit = \"sentence\" }, \
        train = [\"signs.tsv\"], drawn = { dev = 0.2, test = 0.2 }, licence = \"free\" } }]";
    let sets = [set, "finetune.epochs=6", "finetune.max_examples={}", "finetune.max_tokens=12"];
    with(root, &["run", "finetune-kam-signs-1"], &sets).ok();
    let out = root.join("out/finetune-kam-signs-1");
    let tried = json_lines(out.join("test.jsonl"));
    let scores = json(out.join("scores.json"));
    assert!(scores["test"]["value"].as_f64().unwrap() > 0.9, "{scores}");
    // What `predict` finds in a test's text is what was found when it was tried; words that share no token with the text's are without maps.
    let examples = json_lines(root.join("out/benchmark-signs/examples.jsonl"));
    let example = examples.iter().find(|of| of["id"] == tried[0]["id"]).unwrap();
    let asked = root.join("asked.jsonl");
    write_whole(&asked, format!("{}\n", object!({ "text": example["text"] })).as_bytes()).unwrap();
    let verb = ["predict", &out.join("model").display().to_string(), &asked.display().to_string()];
    let said: Value = serde_json::from_str(&with(root, &verb, &sets).ok()).unwrap();
    assert_eq!(said["entities"].as_array().unwrap().len(), 2, "{said}");
    let ledger = std::fs::read_to_string(root.join("out/ledger.jsonl")).unwrap();
    let line: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    let known = &line["facts"]["known.signs"];
    assert!(known["rows"].as_u64().unwrap() >= 60 && known["rows_without_maps"].is_u64(), "{known}");
    let padded = with(root, &["run", "finetune-kam-signs-1"], &sets);
    let refused = padded.set("finetune.quirks={ padding = \"trained\" }").output().text();
    assert!(refused.contains("padding that is trained on has no maps"), "{refused}");
}

#[test]
fn tasks_of_shards_take_turns_with_a_set_that_is_attended_by_maps() {
    let folder = tempfile::tempdir().unwrap();
    let shards = r#"shards={ tasks = ["relation", "triplet", "masked_lm"], masked_lm.files = { paths = ["world:text"], format.text = "paragraph" } }"#;
    let recipe = r#"recipes=[{ name = "both", tasks = ["alike"], shards = ["relation", "triplet", "masked_lm"], attention = "kam", schedule = { round_robin = "paper" }, batch = 8 }]"#;
    let sets = [shards, recipe, "finetune.max_steps=12", "finetune.checkpoint_every=4"];
    with(folder.path(), &["run", "recipe-both-1"], &sets).ok();
    let stage = folder.path().join("out/recipe-both-1");
    let steps = json_lines(stage.join("metrics.jsonl"));
    for task in ["alike", "relation", "triplet", "masked_lm"] {
        assert!(steps.iter().any(|step| step["tasks"][task]["loss"].is_number()), "{task}: {steps:?}");
    }
    let outputs = json(stage.join("model/outputs.json"));
    assert_eq!(outputs["outputs"]["knowledge"]["maps"], 3, "{outputs}");
    assert_eq!(outputs["outputs"]["tasks"].as_array().unwrap().len(), 4);
    // The set's task is asked of new texts, with maps.
    let asked = folder.path().join("asked.jsonl");
    write_whole(&asked, b"{\"text\": \"a fever\", \"pair\": \"a cough\"}\n").unwrap();
    let verb = ["predict", stage.join("model").to_str().unwrap(), asked.to_str().unwrap()].map(str::to_owned);
    let said = with(folder.path(), &verb.each_ref().map(String::as_str), &sets).ok();
    assert!(said.contains("score"), "{said}");
}
