//! Parts of a set by published lists of documents.

use std::fmt::Write as _;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::{Engraft, json_lines};
use serde_json::{Value, json as object};

const CONFIG: &str = r#"version = 5
vocabulary.file = "vocab.txt"

[[benchmarks]]
name = "notes"
[benchmarks.set]
format.jsonl = { text = "text", group = "document", answer.class = "kind" }
train = ["notes"]
listed = { dev = "dev_docids.txt", test = "test_docids.txt" }
licence = "free"
"#;

fn write(folder: &Path, name: &str, text: &str) {
    write_whole(&folder.join(name), text.as_bytes()).unwrap();
}

fn engraft(verb: &[&str], folder: &Path) -> Engraft {
    Engraft::own(verb, &folder.join("notes.toml"), &folder.join("out"))
}

#[test]
fn documents_are_for_the_parts_that_lists_name_them_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("notes")).unwrap();
    for file in ["a.first", "b"] {
        let mut rows = String::new();
        for i in 0..12 {
            let (document, kind) = (format!("{file}{}", i / 2), if i % 2 == 0 { "x" } else { "y" });
            let row = object!({ "text": format!("{file} {i}"), "document": document, "kind": kind });
            writeln!(rows, "{row}").unwrap();
        }
        write(folder, &format!("notes/{file}.jsonl"), &rows);
    }
    write(folder, "notes.toml", CONFIG);
    write(folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    // Documents by their own names, and a file by its.
    write(folder, "dev_docids.txt", "a.first1\na.first4\n\nnobody\n");
    write(folder, "test_docids.txt", "b\r\n");
    engraft(&["run", "benchmark-notes"], folder).ok();
    let examples = json_lines(folder.join("out/benchmark-notes/examples.jsonl"));
    let of = |part: &str| -> Vec<String> {
        let of = examples.iter().filter(|example| example["part"] == part);
        of.map(|example| example["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("dev"), ["a.first 2", "a.first 3", "a.first 8", "a.first 9"]);
    assert_eq!((of("test").len(), of("train").len(), of("mask_search").len()), (12, 8, 0));
    assert!(of("test").iter().all(|text| text.starts_with("b ")));
    let ledger = std::fs::read_to_string(folder.join("out/ledger.jsonl")).unwrap();
    let ledger: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    assert_eq!(
        ledger["facts"]["listed"][0],
        object!({ "part": "dev", "names": 3, "without_examples": 1, "such_as": ["nobody"] })
    );

    let refused = |dev: &str, set: &str| {
        write(folder, "dev_docids.txt", dev);
        engraft(&["run", "benchmark-notes"], folder).set(set).output().text()
    };
    let none = refused("nobody\n", "benchmarks.notes.set.licence=free");
    assert!(none.contains("none of its 1 names is that of a document with examples"), "{none}");
    let both = refused("b\n", "benchmarks.notes.set.licence=free");
    assert!(both.contains("test_docids.txt: line 1: \"b\" is listed for another part as well"), "{both}");
    let drawn = refused("a.first1\n", "benchmarks.notes.set.drawn.dev=0.2");
    assert!(drawn.contains("listed.dev names documents for dev, which is drawn as well"), "{drawn}");
}
