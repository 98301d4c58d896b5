//! GLUE, and the label-embedding paper's table on it, TREC and IMDB, each by the command that the docs give: every set is trained on and scored, and every test of GLUE has its file for the leaderboard.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, json};
use serde_json::Value;

use super::{downloaded, handed_in, sentence, write};
use crate::presets::checkpoint;

/// `engraft run STAGES --preset PRESET --data DIR` with one seed, one epoch and a small BERT.
fn run(stages: &[&str], preset: &str, folder: &Path) {
    let data = folder.join("data");
    downloaded(&data);
    checkpoint(&data, "minilm");
    let verb = [&["run"], stages, &["--preset", preset]].concat();
    let run = Engraft::plain(&verb, &folder.join("out")).arg("--data").arg(&data);
    run.set("finetune.seeds=[1]").set("finetune.epochs=1").set("finetune.max_tokens=32").ok();
}

/// TREC's two files: questions of the six coarse kinds, in Latin-1.
fn trec(data: &Path) {
    let kinds = ["ABBR:exp", "DESC:manner", "ENTY:food", "HUM:ind", "LOC:city", "NUM:date"];
    for (name, numbers) in [("train_5500.label", 0..24), ("TREC_10.label", 24..36)] {
        let line = |n: usize| format!("{} What did the caf\u{e9} of patient {n} have ?\n", kinds[n % 6]);
        let latin: Vec<u8> = numbers.flat_map(|n| line(n).chars().collect::<Vec<_>>()).map(latin_1).collect();
        assert!(latin.contains(&0xe9) && std::str::from_utf8(&latin).is_err());
        write(&data.join("trec").join(name), &latin);
    }
}

fn latin_1(letter: char) -> u8 {
    u8::try_from(u32::from(letter)).unwrap()
}

/// IMDB's folder: a review a file, called by its number and its stars, and what lies beside the reviews and is none.
fn imdb(data: &Path) {
    let folder = data.join("aclImdb");
    for (part, count) in [("train", 12), ("test", 4)] {
        for (class, stars) in [("neg", 2), ("pos", 9)] {
            for n in 0..count {
                let review = format!("A {class} film.<br /><br />{} {}", sentence(n), part.repeat(n + 1));
                write(&folder.join(format!("{part}/{class}/{n}_{stars}.txt")), review.as_bytes());
            }
            write(&folder.join(format!("{part}/urls_{class}.txt")), b"http://www.imdb.com/title/tt0064354\n");
        }
        write(&folder.join(part).join("labeledBow.feat"), b"9 0:9 1:1\n");
    }
    write(&folder.join("train/unsup/0_0.txt"), b"A film without stars.");
    write(&folder.join("imdb.vocab"), b"the\nand\na\n");
}

/// How many examples are tested, and by which measure, of a row on a benchmark; it has one line alone.
fn tested(scores: &Value, benchmark: &str, how: &str) -> (u64, String) {
    let lines = scores.as_array().unwrap().iter();
    let own: Vec<&Value> =
        lines.filter(|line| line["benchmark"] == benchmark && line["how"] == how).collect();
    assert_eq!(own.len(), 1, "{benchmark} {how}: {scores:#}");
    assert_eq!(own[0]["seeds"].as_array().unwrap().len(), 1, "{benchmark} {how}");
    assert!(own[0]["train"].as_u64().unwrap() >= 16, "{benchmark} {how}: {}", own[0]);
    (own[0]["test"].as_u64().unwrap(), own[0]["metric"].as_str().unwrap().to_owned())
}

/// The benchmarks that have scores.
fn scored(scores: &Value) -> BTreeSet<&str> {
    scores.as_array().unwrap().iter().map(|line| line["benchmark"].as_str().unwrap()).collect()
}

#[test]
fn every_set_of_the_label_embedding_papers_table_has_both_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    trec(&folder.join("data"));
    imdb(&folder.join("data"));
    run(&["scores"], "label-embedding-tables", folder);
    let sets = [
        ("trec", 12, "accuracy"),
        ("wnli", 24, "accuracy"),
        ("rte", 24, "accuracy"),
        ("mrpc", 24, "micro_f1"),
        ("cola", 24, "matthews"),
        ("imdb", 8, "accuracy"),
        ("sst2", 24, "accuracy"),
        ("mnli", 24, "accuracy"),
        ("mnli-mm", 24, "accuracy"),
        ("qqp", 24, "micro_f1"),
    ];
    let scores = json(folder.join("out/scores/scores.json"));
    assert_eq!(scored(&scores), sets.iter().map(|(set, ..)| *set).collect());
    for (set, count, metric) in sets {
        for how in ["alone", "labels"] {
            assert_eq!(tested(&scores, set, how), (count, metric.to_owned()), "{set} {how}");
        }
    }
    // Reviews are read in rows of 512 tokens, as its preset has it, whatever the others have.
    let task = json(folder.join("out/finetune-labels-imdb-1/model/task.json"));
    assert_eq!(task["max_tokens"], 512, "{task}");
    let task = json(folder.join("out/finetune-labels-trec-1/model/task.json"));
    assert_eq!(task["max_tokens"], 32, "{task}");
}

#[test]
fn glue_by_its_preset_has_scores_of_all_tasks_and_a_file_of_each_test_for_the_leaderboard() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(&["scores", "submission"], "glue", folder);
    let scores = json(folder.join("out/scores/scores.json"));
    let tasks = ["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "mnli-mm", "qnli", "rte", "wnli"];
    assert_eq!(scored(&scores), BTreeSet::from(tasks));
    for task in tasks {
        assert_eq!(tested(&scores, task, "alone").0, 24, "{task}");
    }
    let (numbered, inferred, entailed): (&[&str], &[&str], &[&str]) =
        (&["0", "1"], &["contradiction", "entailment", "neutral"], &["entailment", "not_entailment"]);
    let files = [
        ("AX", inferred),
        ("CoLA", numbered),
        ("MNLI-m", inferred),
        ("MNLI-mm", inferred),
        ("MRPC", numbered),
        ("QNLI", entailed),
        ("QQP", numbered),
        ("RTE", entailed),
        ("SST-2", numbered),
        ("STS-B", &[]),
        ("WNLI", numbered),
    ];
    let written = fs::read_dir(folder.join("out/submission/base")).unwrap();
    let mut written: Vec<String> =
        written.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    written.sort_unstable();
    assert_eq!(written, files.map(|(name, _)| format!("{name}.tsv")));
    for (name, marks) in files {
        // The header, the numbers of the rows and their count are looked at there.
        for said in handed_in(folder, &format!("base/{name}.tsv")) {
            let is_score = || said.parse().is_ok_and(|score: f64| (0.0..=5.0).contains(&score));
            assert!(marks.contains(&said.as_str()) || (marks.is_empty() && is_score()), "{name}: {said}");
        }
    }
}
