//! The peers of fine-tunings, recipes and rankings (`benches/sets.py`, `benches/recipes.py`, `benches/rankings.py`) and of ranks (`benches/rank.py`; that of answers, `benches/answers.py`, stands with its preset): they train as the ledger has it, measure as engraft does, and refuse what they do not have.

use std::path::Path;
use std::process::Command;

use base::whole::write_whole;
use engraft_tests::python::interpreter;
use engraft_tests::{Engraft, json};
use serde_json::{Value, json as object};

use crate::{glue, presets};

const CONFIG: &str = r#"version = 5
extends = "mt-clinical-bert"
vocabulary.file = "bert/vocab.txt"
encoder = { from = "checkpoint", path = "bert" }
benchmarks = [
    { name = "mrpc", set = { format.glue = "mrpc", train = ["glue/MRPC/train.tsv"], test = ["glue/MRPC/dev.tsv"], drawn.dev = 0.3 } },
    { name = "signs", set = { format.tagged.format.conll = { scheme = "bio", separator = "tab" }, train = ["signs.tsv"], drawn = { dev = 0.3, test = 0.3 } } },
]
recipes = [{ name = "mt-clinical", epochs = 1, then = { epochs = 1 } }, { name = "merged", schedule = "merged", epochs = 1 }]
finetune = { seeds = [1], epochs = 1, max_tokens = 32, schedule = "constant", clip_norm = 1e12, optimiser.kind = "adamax" }
"#;

/// What a peer says of an output folder.
pub(crate) fn asked(script: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches").join(script);
    let ran = Command::new(interpreter("ENGRAFT_TORCH")?)
        .args(["-B", "-W", "ignore"])
        .arg(script)
        .args(arguments)
        .output();
    let ran = ran.unwrap();
    Some((ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()))
}

#[test]
fn peers_draw_the_examples_that_engraft_draws() {
    let Some((fine, said)) = asked("drawn.py", &["1000", "10", "capr", "dev"]) else { return };
    // As engraft's own draw has them (`pipeline/src/stage/finetune/benchmark.rs`).
    assert!(fine && said.trim() == "114 303 335 451 501 617 835 858 920 969", "{said}");
}

#[test]
fn peers_train_what_the_ledger_tells_and_refuse_what_they_do_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    presets::files(folder);
    presets::checkpoint(folder, "bert");
    glue::downloaded(folder);
    let signs: String = (0..24).map(|n| format!("patient\tO\nhas\tO\nfever\tB-Sign\n{n}\tO\n\n")).collect();
    write_whole(&folder.join("signs.tsv"), signs.as_bytes()).unwrap();
    write_whole(&folder.join("peers.toml"), CONFIG.as_bytes()).unwrap();
    let out = folder.join("out");
    let run = || Engraft::own(&["run", "results"], &folder.join("peers.toml"), &out);
    run().ok();
    // The table is found by either name, whatever is asked of it.
    for verb in ["why", "inspect", "clean"] {
        let asked = |name: &str| {
            let yes: &[&str] = if verb == "clean" { &["--yes"] } else { &[] };
            let asked = Engraft::own(&[&[verb, name], yes].concat(), &folder.join("peers.toml"), &out);
            let said = asked.ok();
            run().ok();
            said
        };
        let (own, other) = (asked("scores"), asked("results"));
        let timeless = |said: &str| {
            let said = said.split_once("took").map_or(said, |(first, _)| first);
            // How long ago it was made, and in what time.
            let aged = said.split_once(": made ").zip(said.split_once(", by engraft "));
            aged.map_or(said.to_owned(), |((name, _), (_, rest))| format!("{name} {rest}"))
        };
        assert_eq!(timeless(&own), timeless(&other), "{verb}");
    }
    // Adamax in all three arms: alone, together, and alone again.
    let ledger = std::fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    let made: Vec<Value> = ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for stage in ["finetune-base-mrpc-1", "recipe-mt-clinical-1", "finetune-mt-clinical-mrpc-1"] {
        let line = made.iter().find(|line| line["stage"] == stage).unwrap();
        assert_eq!(line["described"]["fields"]["finetune.optimiser.kind"], "adamax", "{stage}");
    }
    let [of, bert] = [out.display().to_string(), folder.join("bert").display().to_string()];
    let Some((fine, said)) = asked("sets.py", &[&of, &bert]) else { return };
    assert!(fine && said.contains("| mrpc | base |") && said.contains("| signs | base |"), "{said}");
    for (recipe, rows) in [("mt-clinical", 4), ("merged", 2)] {
        let (fine, said) = asked("recipes.py", &[&of, &bert, recipe]).unwrap();
        let found = said.lines().filter(|line| line.starts_with("| mrpc |") || line.starts_with("| signs |"));
        assert!(fine && found.count() == rows, "{recipe}: {said}");
    }
    run().set("finetune.accumulate=2").ok();
    let (fine, said) = asked("sets.py", &[&of, &bert, "mrpc"]).unwrap();
    assert!(!fine && said.contains("finetune.accumulate = 2 is not done here"), "{said}");
    run().set("recipes.mt-clinical.schedule=proportional").ok();
    let (fine, said) = asked("recipes.py", &[&of, &bert, "mt-clinical"]).unwrap();
    assert!(!fine && said.contains("the schedule proportional is not done here"), "{said}");
}

/// Sets of every kind that has a peer, on the embedded world where it has them.
const KINDS: &str = r#"version = 5
extends = "world"
vocabulary.file = "bert/vocab.txt"
encoder = { from = "checkpoint", path = "bert" }
benchmarks = [
    { name = "questions", set = { format.trec.classes = "coarse", train = ["world:sets/questions.label"], drawn = { dev = 0.2, test = 0.2 } } },
    { name = "again", trained_on = "questions", set = { format.trec.classes = "coarse", test = ["world:sets/questions.label"] } },
    { name = "alike", set = { format = "sts_b", measure = "spearman", train = ["world:sets/alike.tsv"], drawn = { dev = 0.2, test = 0.2 } } },
    { name = "mortality", cop = { notes = "world:mimic/NOTEEVENTS.csv", admissions = "world:mimic/ADMISSIONS.csv", diagnoses = "world:mimic/DIAGNOSES_ICD.csv", procedures = "world:mimic/PROCEDURES_ICD.csv", outcome = "mortality", split.drawn = { valid = 0.2, test = 0.3 } } },
    { name = "diagnoses", cop = { notes = "world:mimic/NOTEEVENTS.csv", admissions = "world:mimic/ADMISSIONS.csv", diagnoses = "world:mimic/DIAGNOSES_ICD.csv", procedures = "world:mimic/PROCEDURES_ICD.csv", outcome = "diagnoses", split.drawn = { valid = 0.2, test = 0.3 } } },
    { name = "helps", set = { format.jsonl = { text = "q", answer.choice = { of = ["of"], right.letter = "right" } }, train = ["helps.jsonl"], drawn = { dev = 0.2, test = 0.2 } } },
    { name = "asked", set = { format.squad.misfits = "refuse", train = ["asked.json"], drawn = { dev = 0.2, test = 0.2 } } },
    { name = "texts", set = { format.masked_words = { format.text = "paragraph", unit = "sentence" }, train = ["world:text"], licence = "free" } },
    { name = "found", capr = { train.medquad = "world:medquad", test.share = 0.4, candidates.per_query = 6, held_out = { dev = 0.1, mask_search = 0 } } },
    { name = "refound", trained_on = "found", capr = { train.medquad = "world:medquad", test.share = 0.5, candidates.per_query = 6, held_out = { dev = 0.1, mask_search = 0 } } },
]
attentions = [{ name = "labels", labels = {}, on = ["questions"] }]

[finetune]
pooling = "learned_pooler"
seeds = [1]
epochs = 1
max_tokens = 32
max_examples = { train = 48, dev = 40, test = 40 }
"#;

/// Rows of the table that `benches/sets.py` makes of these, and what they are measured by.
const CELLS: [(&str, &str, &str); 10] = [
    ("questions", "base", "accuracy"),
    ("questions", "labels", "accuracy"),
    ("again", "base", "accuracy"),
    ("again", "labels", "accuracy"),
    ("alike", "base", "spearman"),
    ("mortality", "base", "auroc"),
    ("diagnoses", "base", "auroc_macro"),
    ("helps", "base", "accuracy"),
    ("asked", "base", "answer_f1"),
    ("texts", "base", "accuracy"),
];

const DRUGS: [&str; 4] = ["aspirin", "ibuprofen", "warfarin", "metformin"];
const SIGNS: [&str; 4] = ["pain", "fever", "clots", "sugar"];

/// Which of four drugs helps a patient, in lines.
fn choices() -> String {
    let row = |n: usize| {
        let (sign, turn) = (n % 4, (n / 4) % 4);
        let of: Vec<&str> = (0..4).map(|at| DRUGS[(at + turn) % 4]).collect();
        let (text, right) =
            (format!("patient {n} has {}", SIGNS[sign]), ["A", "B", "C", "D"][(sign + 4 - turn) % 4]);
        format!("{}\n", object!({ "q": text, "of": of, "right": right }))
    };
    (0..48).map(row).collect()
}

/// Which drug a patient takes, in the layout of SQuAD.
fn passages() -> String {
    let paragraph = |n: usize| {
        let drug = DRUGS[n % 3];
        let text = format!("patient {n} has {} and takes {drug}", SIGNS[n % 4]);
        let answer = object!({ "text": drug, "answer_start": text.len() - drug.len() });
        let asked = object!({ "id": format!("q{n}"), "question": "which drug", "answers": [answer] });
        object!({ "context": text, "qas": [asked] })
    };
    let paragraphs: Vec<Value> = (0..24).map(paragraph).collect();
    object!({ "version": "1.1", "data": [{ "paragraphs": paragraphs }] }).to_string()
}

#[test]
fn sets_of_every_kind_and_those_that_are_only_scored_have_a_peer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    presets::checkpoint(folder, "bert");
    write_whole(&folder.join("helps.jsonl"), choices().as_bytes()).unwrap();
    write_whole(&folder.join("asked.json"), passages().as_bytes()).unwrap();
    write_whole(&folder.join("kinds.toml"), KINDS.as_bytes()).unwrap();
    let out = folder.join("out");
    Engraft::own(&["run", "scores"], &folder.join("kinds.toml"), &out).ok();
    let [of, bert] = [out.display().to_string(), folder.join("bert").display().to_string()];
    let Some((fine, said)) = asked("sets.py", &[&of, &bert, "--rows", "base", "labels"]) else { return };
    assert!(fine, "{said}");
    for (name, row, metric) in CELLS {
        let test = &json(out.join(format!("finetune-{row}-{name}-1/scores.json")))["test"];
        assert_eq!(test["metric"], metric, "{name} {row}");
        let ours = format!("| {name} | {row} | {:.1} |", 100.0 * test["value"].as_f64().unwrap());
        let line = said.lines().find(|line| line.starts_with(&ours));
        let line = line.unwrap_or_else(|| panic!("no {ours}: {said}"));
        assert_eq!(line.contains("| the model of questions |"), name == "again", "{line}");
    }
    let lines = said.lines().filter(|line| line.starts_with("| ") && line.contains(" | labels | "));
    assert!(lines.count() == 2 && said.contains("alike, labels is left out"), "{said}");
    let (fine, said) = asked("sets.py", &[&of, &bert, "--rows", "labelled"]).unwrap();
    assert!(!fine && said.contains("no finetune-labelled-NAME-SEED"), "{said}");
    // What is only scored is asked of the model of the other, which is trained here once.
    let (fine, said) = asked("rankings.py", &[&of, &bert]).unwrap();
    for name in ["found", "refound"] {
        let start = format!("| {name}, 1 | ");
        assert!(fine && said.lines().filter(|line| line.starts_with(&start)).count() == 3, "{said}");
    }
}

const WORDS: [&str; 6] = ["fever", "asthma", "migraine", "stroke", "cold", "hay"];

/// What one of thirty things is called: two words, in either order.
fn thing(number: usize) -> String {
    let (first, step) = (number % 6, 1 + (number / 6) % 5);
    format!("{} {}", WORDS[first], WORDS[(first + step) % 6])
}

/// A graph of these in KG-BERT's layout, whose parts dev and test ask for eight triples each.
fn network() -> [(&'static str, String); 7] {
    let key = |number: usize| thing(number).replace(' ', "_");
    let all = |row: &dyn Fn(usize) -> String| (0..30).map(row).collect::<String>();
    let held =
        |step: usize| (0..8).map(|n| format!("{}\tisa\t{}\n", key(n), key(n + step))).collect::<String>();
    let shown = |n: usize| format!("{0}\tisa\t{1}\n{0}\tnear\t{2}\n", key(n), key(n + 1), key(n + 7));
    [
        ("entities.txt", all(&|n| format!("{}\n", key(n)))),
        ("entity2text.txt", all(&|n| format!("{}\t{}\n", key(n), thing(n)))),
        ("relations.txt", "isa\nnear\n".to_owned()),
        ("relation2text.txt", "isa\tis a\nnear\tis near\n".to_owned()),
        ("train.tsv", all(&shown)),
        ("dev.tsv", held(2)),
        ("test.tsv", held(3)),
    ]
}

#[test]
fn the_same_weights_rank_and_tell_true_triples_from_false_ones_alike() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    presets::checkpoint(&data, "minilm");
    let graph = data.join("kg-bert/data/umls");
    std::fs::create_dir_all(&graph).unwrap();
    for (name, text) in network() {
        write_whole(&graph.join(name), text.as_bytes()).unwrap();
    }
    let run = Engraft::plain(&["run", "rank", "--preset", "kg-bert"], &out).arg("--data").arg(&data);
    run.set("retrain.max_steps=3").set("retrain.warmup_steps=1").ok();
    let [of, data] = [&out, &data].map(|folder| folder.display().to_string());
    let Some((fine, said)) = asked("rank.py", &[&data, "--out", &of]) else { return };
    let told: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let largest = told.iter().find_map(|line| line["largest_difference_of_a_score"].as_f64());
    assert!(fine && largest.is_some_and(|largest| largest < 1e-5), "{said}");
    let classified = told.iter().map(|line| &line["triple_classification"]).find(|of| of.is_object());
    let classified = classified.unwrap_or_else(|| panic!("nothing is classified: {said}"));
    let own = &json(out.join("rank/rank.json"))["triple_classification"];
    assert_eq!((&classified["true"], &classified["false"]), (&object!(8), &own["corrupted"]), "{said}");
    // That of all, between two scores of `valid`: of other triples it would be another.
    let [ours, theirs] = ["engraft", "pytorch"].map(|by| classified[by]["threshold"].as_f64().unwrap());
    assert!((ours - theirs).abs() < 1e-4, "{said}");
    for key in ["auroc", "accuracy", "accuracy_one_threshold", "accuracy_argmax"] {
        let [ours, theirs] = ["engraft", "pytorch"].map(|by| classified[by][key].as_f64().unwrap());
        assert_eq!(Some(ours), own[key].as_f64(), "{key}");
        // Of 16 triples one may change sides where scores are nearly the same.
        assert!((ours - theirs).abs() < 0.07, "{key}: {said}");
    }
}
