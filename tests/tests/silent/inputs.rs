//! What a folder of one's own once got without a word: outputs read as texts, texts counted twice, published parts learnt from, parts and scores with nothing in them.

use std::path::Path;

use engraft_tests::{Engraft, Ran};

use super::{put, says};

/// The texts of the file `t.txt`, counted.
fn corpus(folder: &Path, paths: &str) {
    put(folder, "t.txt", "fever and cough\ncough and chills\nfever and chills\n");
    let texts = format!("[[corpus.texts]]\nname = \"t\"\npaths = {paths}\nformat.text = \"line\"\n");
    put(
        folder,
        "c.toml",
        &format!(
            "version = 5\n{texts}[counts]\nwhat.min_count = 1\n[pmi]\nmin_count = 1\nmin_pair_count = 1\n"
        ),
    );
}

/// A graph of those rows, and the tables `more` of its config.
fn graph(folder: &Path, files: &[(&str, &str)], more: &str) {
    for (name, rows) in files {
        put(folder, name, &format!("subject\trelation\tobject\n{rows}"));
    }
    put(folder, "c.toml", &format!("version = 5\n[vocabulary.train]\nsize = 100\n{more}"));
}

fn ran(folder: &Path, out: &Path, verb: &[&str]) -> Ran {
    Engraft::own(verb, &folder.join("c.toml"), out).output()
}

#[test]
fn a_folder_of_texts_around_the_output_folder_is_refused() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    corpus(folder.path(), "[\".\"]");
    let inside = folder.path().join("deep/out");
    says(
        &ran(folder.path(), &inside, &["run", "counts"]),
        1,
        &["input folder corpus.texts.0.paths.0", "has the output folder", "deep/out", "--out"],
    );
    assert!(!inside.join("counts").exists());
    says(&ran(folder.path(), &elsewhere.path().join("out"), &["run", "counts"]), 0, &["3 documents"]);
}

#[cfg(unix)]
#[test]
fn what_can_be_read_once_alone_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    graph(folder.path(), &[], "[sources.triples.m]\ntable.files = [{ path = \"/dev/zero\" }]\n");
    let out = folder.path().join("out");
    says(&ran(folder.path(), &out, &["run", "triples"]), 1, &["/dev/zero is a pipe or a device"]);
}

#[test]
fn texts_that_are_named_twice_are_refused() {
    for paths in ["[\"t.txt\", \"./t.txt\"]", "[\"texts\", \"texts/t.txt\"]"] {
        let folder = tempfile::tempdir().unwrap();
        corpus(folder.path(), paths);
        std::fs::create_dir(folder.path().join("texts")).unwrap();
        put(folder.path(), "texts/t.txt", "fever\n");
        let out = folder.path().join("out");
        let words = ["corpus.texts.0.paths.0 and corpus.texts.0.paths.1 name the same texts"];
        says(&ran(folder.path(), &out, &["plan"]), 2, &words);
    }
}

#[test]
fn a_config_that_asks_for_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "c.toml", "version = 5\n");
    says(
        &ran(folder.path(), &folder.path().join("out"), &["run"]),
        2,
        &["the config asks for nothing", "engraft init"],
    );
}

#[test]
fn published_parts_that_are_not_taken_and_parts_without_triples_are_told() {
    let rows = [("train.tsv", "a\tr\tb\nb\tr\tc\nc\tr\td\n"), ("test.tsv", "a\tr\td\n")];
    let files = "[sources.triples.m]\ntable.files = [{ path = \"train.tsv\", part = \"train\" }, { path = \"test.tsv\", part = \"test\" }]\n";
    let split = |parts: &str| {
        let folder = tempfile::tempdir().unwrap();
        graph(folder.path(), &rows, &format!("{files}{parts}"));
        ran(folder.path(), &folder.path().join("out"), &["run", "split"])
    };
    let unused = "source m has a published split, which is not used";
    says(&split(""), 0, &[unused, "split.parts = { official = { source = \"m\" } } takes it"]);
    says(
        &split("[split]\nparts.ratio = { train = 0.98, valid = 0.01, test = 0.01 }\n"),
        0,
        &[unused, "the part test has no triple"],
    );
    let taken = split("[split]\nparts.official.source = \"m\"\n");
    says(&taken, 0, &[]);
    assert!(!taken.text().contains(unused) && !taken.text().contains("has no triple"), "{}", taken.text());
}

#[test]
fn inverses_that_contradict_each_other_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "a\tcauses\tb\nb\tcaused by\ta\nb\tdue to\tc\n";
    let inverses = "inverses = [[\"causes\", \"caused by\"], [\"causes\", \"due to\"]]\n";
    graph(
        folder.path(),
        &[("t.tsv", rows)],
        &format!("[sources.triples.m]\ntable.files = [{{ path = \"t.tsv\" }}]\n{inverses}"),
    );
    let words = [
        "several inverses are declared of a relation",
        "none of them is followed",
        "causes: caused by, due to",
    ];
    says(&ran(folder.path(), &folder.path().join("out"), &["run", "triples"]), 0, &words);
}

#[test]
fn scores_of_a_shard_and_scores_of_nothing_are_told() {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path(), "[\"t.txt\"]");
    let pmi = |set: &str, out: &str| {
        let run = Engraft::own(&["run", "pmi"], &folder.path().join("c.toml"), &folder.path().join(out));
        run.set(set).output()
    };
    says(
        &pmi("counts.shard=1/2", "shard"),
        0,
        &["the counts are of shard 1/2 of the documents", "counts.merge"],
    );
    says(&pmi("pmi.min_pair_count=1000", "few"), 0, &["no pair has a score", "min_pair_count"]);
}
