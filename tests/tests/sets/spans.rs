//! Answers in passages: read as published, learned, asked, and attended by maps.

use std::fmt::Write as _;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::python::at_home;
use engraft_tests::{Engraft, json, json_lines};
use serde_json::{Value, json as object};

const DRUGS: [&str; 4] = ["aspirin", "ibuprofen", "warfarin", "metformin"];
const SIGNS: [&str; 4] = ["pain", "fever", "clots", "sugar"];
const FILLING: [&str; 6] = ["today", "often", "after", "rest", "at", "night"];

/// A passage longer than a row, with a drug and a sign somewhere.
fn passage(i: usize) -> (String, &'static str, &'static str) {
    let (drug, sign) = (DRUGS[i % 4], SIGNS[(i / 4) % 4]);
    let filling: Vec<&str> = (0..24).map(|at| FILLING[(i + at * (1 + i % 5)) % 6]).collect();
    let (early, late) = (i % 11, 12 + i % 9);
    let (first, second) = if i.is_multiple_of(2) { (drug, sign) } else { (sign, drug) };
    let text = [&filling[..early], &[first], &filling[early..late], &[second], &filling[late..]].concat();
    (format!("É: {}.", text.join(" ")), drug, sign)
}

/// The same questions in the layouts of SQuAD 2.0 and Quasar-T.
fn made(folder: &Path) {
    let (mut paragraphs, mut questions, mut contexts) = (vec![], String::new(), String::new());
    for i in 0..160_usize {
        let (text, drug, sign) = passage(i);
        let at = |answer: &str| text[..text.find(answer).unwrap()].chars().count();
        let asked = |id: &str, question: &str, answer: Option<&str>| {
            let answers: Vec<Value> =
                answer.iter().map(|answer| object!({ "text": answer, "answer_start": at(answer) })).collect();
            object!({ "id": format!("{id}{i}"), "question": question, "answers": answers, "is_impossible": answer.is_none() })
        };
        let mut qas = vec![asked("d", "which drug", Some(drug)), asked("s", "what sign", Some(sign))];
        qas.extend(i.is_multiple_of(2).then(|| asked("n", "why", None)));
        paragraphs.push(object!({ "paragraphs": [{ "context": text, "qas": qas }] }));
        let (question, answer) = if i % 3 == 0 { ("what sign", sign) } else { ("which drug", drug) };
        let uid = format!("q{i}");
        let own = format!("at night {drug} after {sign} rest .");
        let mut found = vec![object!([2.0, "rest at night ."]), object!([1.0, own])];
        found.rotate_left(i % 2);
        let asked =
            object!({ "uid": uid, "question": question, "answer": answer.to_uppercase(), "tags": [] });
        writeln!(questions, "{asked}").unwrap();
        writeln!(contexts, "{}", object!({ "uid": uid, "contexts": found })).unwrap();
    }
    let write = |name: &str, text: &str| write_whole(&folder.join(name), text.as_bytes()).unwrap();
    std::fs::create_dir_all(folder.join("quasar-t/questions")).unwrap();
    std::fs::create_dir_all(folder.join("quasar-t/contexts/short")).unwrap();
    write("squad.json", &object!({ "version": "2.0", "data": paragraphs }).to_string());
    write("quasar-t/questions/train_questions.json", &questions);
    write("quasar-t/contexts/short/train_contexts.json", &contexts);
    write("own.txt", &"aspirin pain\nibuprofen fever\nwarfarin clots\nmetformin sugar\n".repeat(9));
    let words =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ":", "e", "which", "drug", "what", "sign", "why"];
    let words = words.iter().chain(&DRUGS).chain(&SIGNS).chain(&FILLING);
    write("vocab.txt", &words.map(|word| format!("{word}\n")).collect::<String>());
    write("spans.toml", CONFIG);
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
name = "squad"
set = { format.squad.misfits = "refuse", train = ["squad.json"], licence = "free" }

[[benchmarks]]
name = "quasar"
set = { format.quasar_t.contexts = "short", train = ["quasar-t/questions/train_questions.json"], licence = "free", measure = "exact_match" }

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
on = ["squad"]
knowledge.maps = ["term"]

[finetune]
learning_rate = 5e-3
epochs = 40
batch = 8
dropout = 0.0
max_tokens = 20
spans = { overlap = 4, longest = 3, negatives = 1 }
patience.evaluations = 40
"#;

fn engraft(verb: &[&str], folder: &Path) -> Engraft {
    Engraft::own(verb, &folder.join("spans.toml"), &folder.join("out"))
}

/// Passages of one row.
fn read_alike_by_transformers(folder: &Path, model: &Path) {
    let short = folder.join("short.jsonl");
    let lines = ["people rest at home", "a cough is treated"]
        .map(|pair| object!({ "text": "which drug", "pair": pair }).to_string());
    write_whole(&short, lines.join("\n").as_bytes()).unwrap();
    let said = engraft(&["predict", model.to_str().unwrap(), short.to_str().unwrap()], folder).ok();
    at_home(model, &short, &said);
}

fn what_is_wrong_is_named(folder: &Path, model: &Path) {
    let alone = folder.join("alone.jsonl");
    write_whole(&alone, b"{\"text\": \"which drug\"}\n").unwrap();
    let refused =
        engraft(&["predict", model.to_str().unwrap(), alone.to_str().unwrap()], folder).output().text();
    assert!(
        refused.contains("line 1: there is no `pair`, in which the answer to `text` is looked for"),
        "{refused}"
    );
    let half = engraft(&["plan"], folder).set("finetune.spans.overlap=10").output().text();
    assert!(half.contains("finetune.spans.overlap is 10, expected below 10"), "{half}");
    let measure = engraft(&["plan"], folder).set("benchmarks.squad.set.measure=accuracy").output().text();
    assert!(measure.contains("answer_f1 or exact_match of spans"), "{measure}");
}

#[test]
fn answers_in_passages_are_learned_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let out = folder.join("out");
    engraft(&["run", "scores"], folder).ok();
    for (stage, metric, other) in [
        ("finetune-base-squad-1", "answer_f1", "exact_match"),
        ("finetune-kam-squad-1", "answer_f1", "exact_match"),
        ("finetune-base-quasar-1", "exact_match", "answer_f1"),
    ] {
        let test = &json(out.join(stage).join("scores.json"))["test"];
        let others = &test["others"];
        assert_eq!(test["metric"], metric);
        assert!(
            test["value"].as_f64().unwrap() > 0.8 && others[other].as_f64().unwrap() > 0.8,
            "{stage}: {test}"
        );
        assert_eq!(others["unanswerable_accuracy"].is_number(), stage.contains("squad"), "{stage}: {test}");
    }
    // What the model says when it is asked is what the stage scored.
    let of = json_lines(out.join("benchmark-squad/examples.jsonl"));
    let tried = json_lines(out.join("finetune-base-squad-1/test.jsonl"));
    let mut lines = String::new();
    for tried in &tried {
        let of = of.iter().find(|example| example["id"] == tried["id"]).unwrap();
        let passage = &of["answer"]["span"]["passages"][0]["text"];
        writeln!(lines, "{}", object!({ "id": tried["id"], "text": of["text"], "pair": passage })).unwrap();
    }
    let asked = folder.join("asked.jsonl");
    write_whole(&asked, lines.as_bytes()).unwrap();
    let model = out.join("finetune-base-squad-1/model");
    let said = engraft(&["predict", model.to_str().unwrap(), asked.to_str().unwrap()], folder).ok();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), tried.len());
    let mut none = 0;
    for (said, tried) in said.iter().zip(&tried) {
        let number = |of: &Value| of.as_f64().unwrap();
        let windows = tried["outputs"].as_array().unwrap();
        assert!(windows.len() > 1);
        let best = windows.iter().map(|window| number(&window[0])).fold(f64::MIN, f64::max);
        let first = &said["spans"][0];
        assert!(said["id"] == tried["id"] && (number(&first["score"]) - best).abs() < 1e-4, "{said} {tried}");
        let window = windows.iter().find(|window| (number(&window[0]) - best).abs() < 1e-6).unwrap();
        let place = [&window[2], &window[3]].map(number);
        assert_eq!(place, ["start", "end"].map(|end| number(&first[end])), "{said} {tried}");
        assert_eq!(said["answer"].is_null(), best <= 0.0, "{said}");
        none += usize::from(said["answer"].is_null());
    }
    assert!(none > 0 && none < said.len());
    read_alike_by_transformers(folder, &model);
    what_is_wrong_is_named(folder, &model);
}

#[test]
fn passages_that_lie_elsewhere_are_inputs_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let run = |stage: &str| engraft(&["run", stage], folder).ok();
    run("benchmark-quasar");
    assert!(run("benchmark-quasar").contains("up to date"));
    let contexts = folder.join("quasar-t/contexts/short/train_contexts.json");
    let text = std::fs::read_to_string(&contexts).unwrap().replacen("rest at", "rest after", 1);
    write_whole(&contexts, text.as_bytes()).unwrap();
    let why = engraft(&["why", "benchmark-quasar"], folder).output().text();
    assert!(why.contains("contexts/short/train_contexts.json"), "{why}");
    std::fs::rename(&contexts, folder.join("moved.json")).unwrap();
    let refused = engraft(&["plan"], folder).output().text();
    assert!(
        refused.contains("is read with ../contexts/short/train_contexts.json")
            && refused.contains("as published"),
        "{refused}"
    );
}
