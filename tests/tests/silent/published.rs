//! What publishers say of their own rows: labels, columns and splits are never passed over.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use engraft_tests::{Engraft, json};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

fn put(folder: &Path, name: &str, text: &str) {
    base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
}

/// The shipped config for KG-BERT's folders with `source` in place of its own and without what it accepts.
fn config(folder: &Path, source: &str) -> PathBuf {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kg-bert.toml");
    let text = fs::read_to_string(whole).unwrap();
    let (before, rest) = text.split_once("[sources.triples.umls-network]").unwrap();
    let (_, after) = rest.split_once("[canon]").unwrap();
    let after: Vec<&str> = after.lines().filter(|line| !line.starts_with("suspect")).collect();
    put(folder, "config.toml", &format!("{before}{source}\n[canon]{}\n", after.join("\n")));
    folder.join("config.toml")
}

fn run(folder: &Path, verb: &[&str]) -> Engraft {
    Engraft::own(verb, &folder.join("config.toml"), &folder.join("out"))
}

/// A folder as WN11's: `dev.tsv` and `test.tsv` have labels.
fn labelled(folder: &Path) {
    let (mut train, mut dev, mut test, mut ids) =
        (String::new(), String::new(), String::new(), String::new());
    for i in 0..40 {
        writeln!(train, "e{i}\tisa\te{}", (i + 1) % 40).unwrap();
        writeln!(dev, "e{i}\tisa\te{}\t1\ne{i}\tisa\te{}\t-1", (i + 2) % 40, (i + 3) % 40).unwrap();
        writeln!(ids, "e{i}").unwrap();
    }
    // One false triple is a fact elsewhere, one names what no fact names.
    test.push_str("e0\tisa\te7\t1\ne0\tisa\te1\t-1\nonly\tisa\te1\t-1\n");
    ids.push_str("only\n");
    let texts: String = ids.lines().fold(String::new(), |all, id| format!("{all}{id}\tThing {id}\n"));
    for (name, text) in [
        ("train.tsv", train.as_str()),
        ("dev.tsv", &dev),
        ("test.tsv", &test),
        ("entities.txt", &ids),
        ("entity2text.txt", &texts),
        ("relations.txt", "isa\n"),
        ("relation2text.txt", "isa\tis a\n"),
    ] {
        put(folder, &format!("wn/{name}"), text);
    }
}

#[test]
fn silent_11_rows_labelled_as_false_are_no_facts_and_are_kept_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("wn")).unwrap();
    labelled(folder.path());
    config(folder.path(), "[sources.triples.umls-network]\nkg_bert = \"wn\"\n");
    run(folder.path(), &["run", "split"]).ok();
    let out = folder.path().join("out");
    let parts = &json(out.join("split/split.json"))["triples"];
    assert_eq!(parts, &json!({"train": 40, "valid": 40, "test": 1, "aside": 0}));
    let funnel = &json(out.join("triples/funnel.json"))["read"][0]["triples"];
    assert_eq!((&funnel["read"], &funnel["kept"]), (&json!(123), &json!(81)));
    assert_eq!(funnel["dropped"], json!({"blank_lines": 0, "published_negative": 42}));

    let file = File::open(out.join("triples/negatives.parquet")).unwrap();
    let mut rows: Vec<[String; 5]> = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let text =
            |name: &str, row| batch.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned();
        let columns = ["subject", "relation", "object", "subject_text", "part"];
        rows.extend((0..batch.num_rows()).map(|row| columns.map(|name| text(name, row))));
    }
    assert_eq!(rows.len(), 42);
    assert_eq!(rows.iter().filter(|row| row[4] == "dev").count(), 40);
    let only = ["umls-network:only", "isa", "umls-network:e1", "Thing only", "test"].map(str::to_owned);
    assert!(rows.contains(&only) && rows.is_sorted(), "{rows:?}");

    let facts: Value =
        serde_json::from_str(run(folder.path(), &["inspect", "split", "--json"]).ok().trim()).unwrap();
    let found = &facts["facts"]["published_negatives"];
    assert_eq!(found["negatives"], json!({"dev": 40, "test": 2}));
    assert_eq!((&found["also_stated"], &found["beside_the_graph"]), (&json!({"train": 1}), &json!(1)));
    let told = run(folder.path(), &["inspect", "triples"]).ok();
    assert!(told.contains("published_negative") && told.contains("negatives.parquet"), "{told}");
}

#[test]
fn silent_11_labels_that_are_none_and_rows_of_other_widths_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("wn")).unwrap();
    for (test, part) in [
        ("e0\tisa\te7\t1\ne0\tisa\te8\t0\n", "test.tsv: line 2, column 4 (label): found \"0\", expected 1"),
        ("e0\tisa\te7\t1\ne0\tisa\te8\n", "test.tsv: line 2: 3 columns, expected 4"),
        ("e0\tisa\te7\ne0\tisa\te8\t-1\n", "test.tsv: line 2: 4 columns, expected 3"),
        ("e0\tisa\te7\t1\tx\n", "test.tsv: line 1: 5 columns, expected 3 (subject, relation, object), or 4"),
    ] {
        labelled(folder.path());
        put(folder.path(), "wn/test.tsv", test);
        config(folder.path(), "[sources.triples.umls-network]\nkg_bert = \"wn\"\n");
        let ran = run(folder.path(), &["run", "triples"]).output();
        assert_eq!(ran.code(), Some(1), "{}", ran.text());
        assert!(ran.text().contains(part), "{part}: {}", ran.text());
    }
}

#[test]
fn silent_11_columns_that_nobody_asked_for_are_told() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "t.tsv", "from\tlabel\trel\tto\tnote\na\t1\tr\tb\tx\nb\t-1\tr\tc\ty\n");
    config(
        folder.path(),
        "[sources.triples.umls-network.table]\nfiles = [{ path = \"t.tsv\", part = \"train\" }]\n\
         layout = { separator = \"tab\", first_line = \"names\", columns = { subject = \"from\", relation = \"rel\", object = \"to\" } }\n",
    );
    run(folder.path(), &["run", "triples"]).ok();
    let facts: Value =
        serde_json::from_str(run(folder.path(), &["inspect", "triples", "--json"]).ok().trim()).unwrap();
    let told = &facts["facts"]["columns_not_used"];
    assert_eq!(told, &json!([{"source": "umls-network", "file": "t.tsv", "columns": "label, note"}]));
    put(folder.path(), "t.tsv", "a\tr\tb\n");
    let first = "sources.triples.umls-network.table.layout={ separator = \"tab\", first_line = \"row\", columns = { subject = 1, relation = 2, object = 3 } }";
    run(folder.path(), &["run", "triples"]).set(first).ok();
    let facts = run(folder.path(), &["inspect", "triples", "--json"]).set(first).ok();
    assert!(!facts.contains("columns_not_used"), "{facts}");
}

/// As WN18 is: an official split whose test part stands in the training part the other way round.
fn mirrored(folder: &Path) {
    let (mut train, mut test) = (String::new(), String::new());
    for i in 0..60 {
        writeln!(train, "a{i}\thypernym\tb{i}\na{i}\tnear\tc{}", i + 1).unwrap();
        let part = if i < 28 { &mut test } else { &mut train };
        writeln!(part, "b{i}\thyponym\ta{i}").unwrap();
    }
    test.push_str("a1\tnear\tb2\na2\tnear\tb3\n");
    put(folder, "train.tsv", &train);
    put(folder, "test.tsv", &test);
    config(
        folder,
        "[sources.triples.umls-network.table]\n\
         files = [{ path = \"train.tsv\", part = \"train\" }, { path = \"test.tsv\", part = \"test\" }]\n\
         layout = { separator = \"tab\", first_line = \"row\", columns = { subject = 1, relation = 2, object = 3 } }\n",
    );
}

#[test]
fn silent_12_an_official_split_that_can_be_read_off_is_refused_until_it_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    mirrored(folder.path());
    let refused = run(folder.path(), &["run", "split"]).output();
    assert_eq!(refused.code(), Some(1), "{}", refused.text());
    for says in [
        "28 of 30 triples of test (93.3 %) could be read off",
        "28 would leak if \"hypernym\" were the inverse of \"hyponym\"",
        "split.suspect.accept = 0.934",
        "leaky = \"aside\"",
    ] {
        assert!(refused.text().contains(says), "{says}: {}", refused.text());
    }
    assert!(!folder.path().join("out/split").exists(), "nothing is built on it");

    run(folder.path(), &["run", "report"]).set("split.suspect.accept=0.934").ok();
    let audit = json(folder.path().join("out/split/audit.json"));
    assert_eq!((&audit["leaks"], &audit["suspected"]["would_leak"]), (&json!(0), &json!({"test": 28})));
    let told = run(folder.path(), &["inspect", "split"]).set("split.suspect.accept=0.934").ok();
    assert!(told.contains("would_leak") && told.contains("hyponym"), "{told}");
    let page = fs::read_to_string(folder.path().join("out/report/index.html")).unwrap();
    assert!(page.contains("28 of test would leak") && !page.contains(">no leak<"));

    // What is ranked of it is told before the scores, and once more without what could be read off.
    let ranked = run(folder.path(), &["run", "rank"]).set("split.suspect.accept=0.934");
    let ranked = ranked.set(
        "encoder={ from = \"fresh\", hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1, num_attention_heads = 2 }",
    );
    let told = ranked
        .set("rank={ by = \"similarity\", from = \"encoder\", same = \"ids\", best = 4000000000 }")
        .output();
    assert_eq!(told.code(), Some(0), "{}", told.text());
    assert!(told.text().contains("of 30 triples of test 28 seem to be given away"), "{}", told.text());
    let scores = json(folder.path().join("out/rank/rank.json"));
    assert_eq!(scores["given_away"], json!({"suspected": 28}));
    assert_eq!(scores["not_given_away"]["filtered"]["ranks"], 4);
    let page = fs::read_to_string(folder.path().join("out/rank/rank.md")).unwrap();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words:?}: {page}"));
    let warned = at("Of these 28 seem to be given away");
    assert!(at("30 triples of test, ranked by") < warned && warned < at("## Link prediction"), "{page}");
    assert!(["| all |", "MRR"].iter().all(|score| warned < at(score)), "{page}");
    engraft_tests::python::python("rank.py", &folder.path().join("out"));

    let aside = "split.parts={ official = { source = \"umls-network\", leaky = \"aside\" } }";
    run(folder.path(), &["run", "split"]).set(aside).ok();
    let parts = &json(folder.path().join("out/split/split.json"))["triples"];
    assert_eq!((&parts["test"], &parts["aside"]), (&json!(30), &json!(28)));
    assert_eq!(json(folder.path().join("out/split/audit.json"))["suspected"]["would_leak"], json!({}));
    let ratio =
        "split.parts={ ratio = { train = 0.6, valid = 0.2, test = 0.2, seed = 1, cover = \"leave\" } }";
    run(folder.path(), &["run", "split"]).set(ratio).ok();
    assert_eq!(json(folder.path().join("out/split/audit.json"))["suspected"]["would_leak"], json!({}));
    for (set, says) in [
        ("split.suspect.share=0", "split.suspect.share = 0"),
        ("split.suspect.support=0", "split.suspect.support = 0"),
        ("split.suspect.accept=1.5", "split.suspect.accept = 1.5"),
    ] {
        let ran = run(folder.path(), &["plan", "split"]).set(set).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        assert!(ran.text().contains(says), "{}", ran.text());
    }
}
