//! Multiple choice: read as published, learned, asked, and attended by maps.

use std::fmt::Write as _;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json, json_lines};
use serde_json::{Value, json as object};

const DRUGS: [&str; 4] = ["aspirin", "ibuprofen", "warfarin", "metformin"];
const SIGNS: [&str; 4] = ["pain", "fever", "clots", "sugar"];

/// Which drug is for a sign, in the layout of CosmosQA and as JSON.
fn made(folder: &Path) {
    let mut rows = "id,context,question,answer0,answer1,answer2,answer3,label\n".to_owned();
    let mut objects = String::new();
    for i in 0..320_usize {
        let (sign, turn) = (i % 4, (i / 4) % 4);
        let choices: Vec<&str> = (0..4).map(|at| DRUGS[(at + turn) % 4]).collect();
        let right = (sign + 4 - turn) % 4;
        let text = format!("the patient {i} has {}", SIGNS[sign]);
        writeln!(rows, "q{i},\"{text}, today\",what helps,{},{right}", choices.join(",")).unwrap();
        let letter = ["A", "B", "C", "D"][right];
        writeln!(objects, "{}", object!({ "q": text, "options": choices, "answer": letter })).unwrap();
    }
    write_whole(&folder.join("cosmos.csv"), rows.as_bytes()).unwrap();
    write_whole(&folder.join("drugs.jsonl"), objects.as_bytes()).unwrap();
    let own = DRUGS
        .iter()
        .zip(SIGNS)
        .map(|(drug, sign)| format!("{drug} helps the patient has {sign}\n").repeat(9));
    write_whole(&folder.join("own.txt"), own.collect::<String>().as_bytes()).unwrap();
    let words = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", "the", "patient", "has", "today", "what", "helps",
    ];
    let words: String = words.iter().chain(&DRUGS).chain(&SIGNS).map(|word| format!("{word}\n")).collect();
    write_whole(&folder.join("vocab.txt"), words.as_bytes()).unwrap();
    write_whole(&folder.join("choices.toml"), CONFIG.as_bytes()).unwrap();
}

const CONFIG: &str = r#"version = 5
vocabulary.file = "vocab.txt"

[encoder]
from = "fresh"
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
intermediate_size = 64
hidden_dropout_prob = 0.0
attention_probs_dropout_prob = 0.0

[[benchmarks]]
name = "cosmos"
set = { format = "cosmos_qa", train = ["cosmos.csv"], licence = "free" }

[[benchmarks]]
name = "drugs"
set = { format.jsonl = { text = "q", answer.choice = { of = ["options"], right.letter = "answer" } }, train = ["drugs.jsonl"], licence = "free" }

[corpus]
texts = [{ name = "own", paths = ["own.txt"], format.text = "line" }]

[counts]

[pmi]
min_count = 1
min_pair_count = 1

[maps]
entities = "none"
phrases = "none"

[[attentions]]
name = "kam"
knowledge.maps = ["term"]

[finetune]
learning_rate = 5e-3
epochs = 20
batch = 16
dropout = 0.0
max_tokens = 24
"#;

fn engraft(verb: &[&str], folder: &Path) -> Engraft {
    Engraft::own(verb, &folder.join("choices.toml"), &folder.join("out"))
}

#[test]
fn one_of_several_texts_is_learned_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let out = folder.join("out");
    engraft(&["run", "scores"], folder).ok();
    let examples = json_lines(out.join("benchmark-cosmos/examples.jsonl"));
    assert_eq!(examples.len(), 320);
    assert_eq!(examples[5]["answer"]["choice"]["choices"][0], "what helps ibuprofen");
    for (benchmark, how) in [("cosmos", "base"), ("drugs", "base"), ("drugs", "kam")] {
        let scores = json(out.join(format!("finetune-{how}-{benchmark}-1/scores.json")));
        let (test, accuracy) = (&scores["test"], scores["test"]["value"].as_f64().unwrap());
        assert_eq!((&test["metric"], &test["samples"]), (&object!("accuracy"), &object!(64)));
        assert!(
            accuracy > 0.9 && test["others"]["mrr"].as_f64().unwrap() >= accuracy,
            "{how} {benchmark}: {scores}"
        );
    }
    // The pairs of a question, asked one by one, have the scores that the stage wrote.
    let tried = &json_lines(out.join("finetune-base-drugs-1/test.jsonl"))[0];
    let of = json_lines(out.join("benchmark-drugs/examples.jsonl"));
    let of = of.iter().find(|example| example["id"] == tried["id"]).unwrap();
    let choices = of["answer"]["choice"]["choices"].as_array().unwrap().iter();
    let lines: String =
        choices.map(|choice| format!("{}\n", object!({ "text": of["text"], "pair": choice }))).collect();
    let asked = folder.join("asked.jsonl");
    write_whole(&asked, lines.as_bytes()).unwrap();
    let model = out.join("finetune-base-drugs-1/model");
    let said = engraft(&["predict", model.to_str().unwrap(), asked.to_str().unwrap()], folder).ok();
    let said: Vec<f64> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap())
        .collect();
    let written = tried["outputs"].as_array().unwrap();
    assert!(
        said.len() == 4 && said.iter().zip(written).all(|(a, b)| (a - b[0].as_f64().unwrap()).abs() < 1e-5)
    );
    let refused =
        engraft(&["plan"], folder).set("finetune.quirks={ pairs = \"second_first\" }").output().text();
    assert!(refused.contains("cosmos asks for one of several texts"), "{refused}");
    let measure = engraft(&["plan"], folder).set("benchmarks.cosmos.set.measure=auroc").output().text();
    assert!(measure.contains("accuracy of choices"), "{measure}");
}
