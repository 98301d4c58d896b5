//! Texts and their counts: shards that are put together, sentences of files, tags of another scheme.

use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, Ran, json};

/// Sentences of words and tags; the rule would cut the second one at the stop of its number.
const TAGGED: &str =
    "Fever\tO\nrose\tO\n.\tO\n\nOdds\tO\nwere\tO\n0\tO\n.\tO\n64\tO\nfor\tO\nasthma\tB-Disease\n.\tO\n";

/// A config that counts words of the texts in `folder`, which has no graph.
fn made(folder: &Path, format: &str) -> PathBuf {
    let write =
        |name: &str, text: &str| base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    write(
        "counts.toml",
        &format!(
            "version = 5\n[vocabulary]\ncase = \"uncased\"\nfile = \"vocab.txt\"\n[[corpus.texts]]\nname = \"texts\"\npaths = [\"texts\"]\n\
             format = {format}\n[counts]\nmemory = \"64MiB\"\n[counts.what]\ncase = \"uncased\"\nwithin = \"sentence\"\n\
             pairs = \"presence\"\nadjacent = \"leave\"\nmin_count = 1\n"
        ),
    );
    std::fs::create_dir_all(folder.join("texts")).unwrap();
    folder.join("texts")
}

fn count(folder: &Path, out: &str, sets: &[&str]) -> Ran {
    let engraft = Engraft::own(&["run", "counts"], &folder.join("counts.toml"), &folder.join(out));
    sets.iter().fold(engraft, |engraft, set| engraft.set(set)).output()
}

#[test]
fn silent_03_a_shard_that_is_missing_or_there_twice_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let texts = made(dir.path(), "{ text = \"line\" }");
    base::whole::write_whole(&texts.join("a.txt"), b"fever and cough\ncough\nheart and lung\nlung\n")
        .unwrap();
    for (out, set) in [("1", "counts.shard=1/2"), ("2", "counts.shard=2/2"), ("whole", "counts.memory=32MiB")]
    {
        let ran = count(dir.path(), out, &[set]);
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
    }
    let index = |out: &str| json(dir.path().join(out).join("counts/index.json"));
    assert_eq!((&index("1")["shard"], &index("1")["documents"]), (&"1/2".into(), &2.into()));
    assert_eq!(index("1")["corpus"], index("whole")["corpus"]);
    let merged = |out: &str, of: &[&str]| {
        let folders: Vec<String> =
            of.iter().map(|shard| dir.path().join(shard).join("counts").display().to_string()).collect();
        count(dir.path(), out, &[&format!("counts.merge={folders:?}")])
    };
    for (of, says) in [
        (&["1", "1"][..], "shard 1/2 is there 2 times: "),
        (&["1"], "missing: shard 2/2"),
        (&["1", "2", "whole"], "whole/counts is shard 1/1, but "),
    ] {
        let ran = merged("refused", of);
        assert!(ran.code() == Some(1) && ran.text().contains(says), "{:?} {}", ran.code(), ran.text());
    }
    let ran = merged("merged", &["2", "1"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    assert_eq!(index("merged"), index("whole"));
    // One document more than when the first shard was counted.
    base::whole::write_whole(&texts.join("b.txt"), b"skin\n").unwrap();
    assert_eq!(count(dir.path(), "2", &["counts.shard=2/2"]).code(), Some(0));
    let ran = merged("refused", &["1", "2"]);
    assert!(ran.text().contains("2/counts is of another corpus than"), "{}", ran.text());
}

#[test]
fn silent_14_gold_sentences_are_units() {
    let dir = tempfile::tempdir().unwrap();
    let texts = made(dir.path(), "{ conll = { scheme = \"bio\", separator = \"tab\" } }");
    base::whole::write_whole(&texts.join("a.conll"), TAGGED.as_bytes()).unwrap();
    let ran = count(dir.path(), "out", &[]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    let index = json(dir.path().join("out/counts/index.json"));
    assert_eq!([&index["documents"], &index["units"]], [&2, &2], "{index}");
}

#[test]
fn silent_16_tags_of_another_scheme_are_refused_or_counted() {
    let dir = tempfile::tempdir().unwrap();
    let texts = made(dir.path(), "{ conll = { scheme = \"bio\", separator = \"tab\" } }");
    base::whole::write_whole(&texts.join("a.conll"), TAGGED.replace("B-", "I-").as_bytes()).unwrap();
    let ran = count(dir.path(), "out", &[]);
    let says = "a.conll: line 11, column 2 (tag): found \"I-Disease\" behind \"O\"";
    assert!(ran.code() == Some(1) && ran.text().contains(says), "{:?} {}", ran.code(), ran.text());
    assert!(ran.text().contains("iob1") && !dir.path().join("out/counts").exists(), "{}", ran.text());
    for set in
        ["corpus.texts.texts.format.conll.scheme=iob1", "corpus.texts.texts.format.conll.broken_tags=fix"]
    {
        let ran = count(dir.path(), "out", &[set]);
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
    }
    let (config, out) = (dir.path().join("counts.toml"), dir.path().join("out"));
    let told = Engraft::own(&["inspect", "counts", "--json"], &config, &out).ok();
    assert!(
        told.contains("tags that break the scheme"),
        "what was read otherwise than published is said: {told}"
    );
}

#[test]
fn silent_23_sentences_of_too_many_words_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let texts = made(dir.path(), "{ text = \"line\" }");
    let long: String = (0..1_001).map(|word| format!("w{word} ")).collect();
    base::whole::write_whole(&texts.join("a.txt"), long.as_bytes()).unwrap();
    let ran = count(dir.path(), "out", &[]);
    let says = "all sentences of the corpus have more different words than counts.what.max_distinct";
    assert!(ran.code() == Some(1) && ran.text().contains(says), "{:?} {}", ran.code(), ran.text());
    let ran = count(dir.path(), "out", &["counts.what.max_distinct=1001"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    base::whole::write_whole(&texts.join("b.txt"), b"fever and cough\n").unwrap();
    let ran = count(dir.path(), "out", &[]);
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    let index = json(dir.path().join("out/counts/index.json"));
    assert_eq!([&index["skipped"], &index["units"], &index["pairs"]["rows"]], [&1, &1, &3], "{index}");
    let ran =
        count(dir.path(), "refused", &["counts.what.pairs={ window = 9 }", "counts.what.max_distinct=9"]);
    assert!(ran.code() == Some(2) && ran.text().contains("counts.what.max_distinct"), "{}", ran.text());
}
