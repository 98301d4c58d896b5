//! KIMERA's outcomes and GLUE, and KAM-BERT's question answering, each by its preset on small files in the layouts that they are given out in.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use engraft_tests::{Engraft, json};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json as object};

use super::papers::{annotations, world};
use super::{checkpoint, files, put};
use crate::glue;

fn packed(data: &Path, path: &str, text: &[u8]) {
    let path = data.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    file.write_all(text).unwrap();
    file.finish().unwrap();
}

/// The rows of a table of scores that have a score on a benchmark.
fn rows_of<'c>(cells: &'c Value, benchmark: &str) -> Vec<&'c str> {
    let cells = cells.as_array().unwrap().iter().filter(|cell| cell["benchmark"] == benchmark);
    let rows: BTreeSet<&str> = cells.map(|cell| cell["row"].as_str().unwrap()).collect();
    rows.into_iter().collect()
}

/// MIMIC-III's tables as the embedded world has them, packed, and lists of its patients.
fn admissions(folder: &Path, data: &Path) {
    let made = folder.join("mimic");
    Engraft::plain(&["run", "world"], &made).ok();
    let tables = made.join("world/mimic");
    for table in ["NOTEEVENTS", "ADMISSIONS", "DIAGNOSES_ICD", "PROCEDURES_ICD"] {
        let text = fs::read(tables.join(format!("{table}.csv"))).unwrap();
        packed(data, &format!("mimic/{table}.csv.gz"), &text);
    }
    let text = fs::read_to_string(tables.join("ADMISSIONS.csv")).unwrap();
    let field = |row: &str, at: usize| row.split(',').nth(at).unwrap().trim_matches('"').to_owned();
    let mut rows = text.lines();
    let at = rows.next().unwrap().split(',').position(|name| name.trim_matches('"') == "SUBJECT_ID").unwrap();
    let mut patients: Vec<u64> = rows.map(|row| field(row, at).parse().unwrap()).collect();
    patients.sort_unstable();
    patients.dedup();
    for (name, of) in [("train", 0..6), ("val", 6..8), ("test", 8..10)] {
        let own = patients.iter().enumerate().filter(|(place, _)| of.contains(&(place % 10)));
        let list: String = own.map(|(_, patient)| format!("{patient}\n")).collect();
        let path = format!("clinical-outcome-prediction/tasks/mimic_{name}.csv");
        put(data, &path, &format!("SUBJECT_ID\n{list}"));
    }
}

const GRAFTED: &str = "version = 5\n\
    sources.umls.min_relation_count = 1\n\
    retrain = { max_steps = 2, warmup_steps = 1, patience = { every = 2, evaluations = 3 } }\n";

#[test]
fn kimera_predicts_outcomes_under_masks_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    world(folder);
    admissions(folder, &data);
    checkpoint(&data, "bert");
    let own = "extends = \"kimera-outcomes\"\n\
        graft = { rows = [\"base\", \"hard\"], search.tau = 0.1 }\n\
        benchmarks = [{ name = \"mortality\", cop.mask_search = 0.6 }]\n\
        finetune = { seeds = [1], epochs = 1, max_tokens = 48, search.trials = 1, search.epochs = [1], max_examples = { train = 24, dev = 100, mask_search = 200, test = 100 } }\n";
    put(&data, "outcomes.toml", &format!("{GRAFTED}{own}"));
    let out = folder.join("out");
    Engraft::own(&["run", "results"], &data.join("outcomes.toml"), &out).ok();
    let cells = json(out.join("results/grafting.json"))["cells"].clone();
    for outcome in ["mortality", "length-of-stay", "diagnoses", "procedures"] {
        assert_eq!(rows_of(&cells, outcome), ["base", "hard"], "{outcome}: {cells}");
    }
    assert!(out.join("mask-hard-diagnoses/mask.json").is_file() && out.join("mask-hard/mask.json").is_file());
}

#[test]
fn kimera_has_glue_with_the_best_of_seeds_under_the_mask_of_retrieval() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    world(folder);
    checkpoint(&data, "bert");
    glue::downloaded(&data);
    put(&data, "cdv/data/MedQuAD/MedQuAD_test_annotations.json", &annotations("MedQuAD"));
    let list = "data/MedQuAD/MedQuAD-master/1_Compendium_QA/0000001.xml\n";
    put(&data, "cdv/data/MedQuAD/MedQuAD_test_sources.tsv", list);
    let own = "extends = \"kimera-glue\"\n\
        graft.rows = [\"base\", \"hard\"]\n\
        benchmarks = [{ name = \"medquad\", capr.candidates.per_query = 4 }]\n\
        finetune = { seeds = [1, 2], epochs = 1, max_tokens = 32, max_tokens_of.medquad = 48, settings_of.medquad.epochs = 1, max_examples = { train = 16, dev = 6, mask_search = 20, test = 12 } }\n";
    put(&data, "glue.toml", &format!("{GRAFTED}{own}"));
    let out = folder.join("out");
    Engraft::own(&["run", "results"], &data.join("glue.toml"), &out).ok();
    let cells = json(out.join("results/grafting.json"))["cells"].clone();
    let glue = ["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli"];
    for set in glue.into_iter().chain(["medquad"]) {
        assert_eq!(rows_of(&cells, set), ["base", "hard"], "{set}: {cells}");
    }
    let of = |cell: &&Value| cell["benchmark"] == "cola" && cell["row"] == "hard";
    let scores = cells.as_array().unwrap().iter().find(of).unwrap()["seeds"].clone();
    let scores = scores.as_array().unwrap().iter().map(|seed| seed["test"].as_f64().unwrap());
    let best = scores.fold(f64::NEG_INFINITY, f64::max);
    let table = fs::read_to_string(out.join("results/results.csv")).unwrap();
    let row = table.lines().find(|row| row.starts_with("hard,cola,")).unwrap();
    assert_eq!(row.rsplit(',').next().unwrap().parse::<f64>().unwrap(), best);
}

/// Texts whose words are those of the graph, and the beginning of a config that makes maps of them.
const OWN: &str = "stroke disorder and pain\ncommon cold and pain at night\n";

fn by_maps(preset: &str) -> String {
    let texts = ["medquad", "hoc", "pubmedqa"].map(|name| {
        format!("{{ name = \"{name}\", paths = [\"own.txt\"], format = {{ text = \"line\" }} }}")
    });
    format!(
        "version = 5\nextends = \"{preset}\"\npmi = {{ min_count = 1 }}\ncorpus.texts = [{}]\nmaps.entities.dictionary.types = \"all\"\n",
        texts.join(", ")
    )
}

#[test]
fn kam_bert_is_asked_for_facts_after_masked_words_plainly_and_by_maps() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    files(&data);
    checkpoint(&data, "bert");
    put(&data, "own.txt", &OWN.repeat(60));
    let fact = object!({ "id": "1", "sub_label": "Squad", "obj_label": "stroke", "masked_sentences": ["[MASK] disorder and pain."] });
    put(&data, "lama/data/Squad/test.jsonl", &format!("{fact}\n"));
    let own = format!(
        "{}lama.corpora = [\"squad\"]\nfinetune = {{ max_tokens = 32, learning_rate = 1e-2, epochs = 4 }}\n[[benchmarks]]\nname = \"texts\"\n\
         set = {{ format.masked_words = {{ format.text = \"line\", unit = \"document\" }}, train = [\"own.txt\"], licence = \"free\" }}\n",
        by_maps("kam-bert-lama")
    );
    put(&data, "lama.toml", &own);
    let (out, stages) = (folder.join("out"), ["finetune-base-texts-1", "finetune-kam-texts-1"]);
    Engraft::own(
        &["run", "lama-finetune-base-texts-1", "lama-finetune-kam-texts-1"],
        &data.join("lama.toml"),
        &out,
    )
    .ok();
    for stage in stages {
        let scores = json(out.join(format!("lama-{stage}/lama.json")));
        assert_eq!(scores["Squad"]["all_facts"]["facts"], 1, "{stage}: {scores:#}");
        let knowledge = &json(out.join(stage).join("model/outputs.json"))["outputs"]["knowledge"];
        assert_eq!(knowledge.is_object(), stage.contains("kam"), "{stage}: {knowledge}");
    }
    let plan = Engraft::own(&["plan", "lama-base"], &data.join("lama.toml"), &out).ok();
    assert!(plan.contains("lama-base"), "{plan}");
}

#[test]
fn kam_bert_answers_questions_of_three_sets_by_plain_attention_and_by_maps() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, data) = (folder.path(), folder.path().join("data"));
    files(&data);
    checkpoint(&data, "bert");
    for part in ["train", "valid"] {
        let mut rows = "id,context,question,answer0,answer1,answer2,answer3,label\n".to_owned();
        for n in 0..40 {
            writeln!(
                rows,
                "{part}{n},\"Patient {n} has a fever, today\",what helps,rest,pain,a cough,a cold,{}",
                n % 4
            )
            .unwrap();
        }
        put(&data, &format!("cosmos-qa/{part}.csv"), &rows);
    }
    for (part, other) in [("train", "train"), ("dev", "val"), ("test", "test")] {
        let (mut questions, mut contexts, mut snippets) = (String::new(), String::new(), String::new());
        for n in 0..12 {
            let (sign, uid) = (["fever", "cough"][n % 2], format!("{part}{n}"));
            writeln!(
                questions,
                "{}",
                object!({ "uid": uid, "question": "which sign", "answer": sign, "tags": [] })
            )
            .unwrap();
            let found = object!([[2.0, format!("patient {n} has a {sign} .")], [1.0, "pain at night ."]]);
            writeln!(contexts, "{}", object!({ "uid": uid, "contexts": found })).unwrap();
            writeln!(snippets, "<s> patient {n} has a {sign} </s>  <s> pain </s> ||| which sign ||| {sign}")
                .unwrap();
        }
        packed(&data, &format!("quasar-t/questions/{part}_questions.json.gz"), questions.as_bytes());
        packed(&data, &format!("quasar-t/contexts/short/{part}_contexts.json.gz"), contexts.as_bytes());
        put(&data, &format!("search-qa/{other}.txt"), &snippets);
    }
    put(
        &data,
        "qa.toml",
        &format!("{}finetune = {{ seeds = [1], epochs = 1, max_tokens = 32 }}\n", by_maps("kam-bert-qa")),
    );
    put(&data, "own.txt", &OWN.repeat(6));
    let out = folder.join("out");
    Engraft::own(&["run", "results"], &data.join("qa.toml"), &out).ok();
    let scores = json(out.join("scores/scores.json"));
    for (set, metric) in [("cosmos-qa", "accuracy"), ("quasar-t", "answer_f1"), ("search-qa", "answer_f1")] {
        let of = |how: &str| {
            let found = scores.as_array().unwrap().iter();
            found
                .filter(|line| line["benchmark"] == set && line["how"] == how && line["metric"] == metric)
                .count()
        };
        assert_eq!([of("alone"), of("kam")], [1, 1], "{set}: {scores:#}");
    }
}
