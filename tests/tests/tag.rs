//! `engraft tag` and the stage `mentions`: texts in, mentions out, in every form, from whatever files.
use std::fs;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use base::whole::write_whole;
use engraft_tests::{Engraft, json, json_lines};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// A graph of a few names.
const GRAPH: &str = "format-version: 1.2
default-namespace: disorders
ontology: x

[Term]
id: DOID:1
name: heart failure
synonym: \"cardiac failure\" EXACT []
is_a: DOID:3

[Term]
id: DOID:2
name: Ménière's disease
is_a: DOID:3

[Term]
id: DOID:3
name: disorder of the body

[Term]
id: DOID:4
name: pneumonia
synonym: \"cardiac failure\" EXACT []
is_a: DOID:3
";

/// Characters of one to four bytes, the line ends of Windows and the mark with which its editors begin a file.
const TEXTS: &str = "\u{feff}No cardiac failure (CF)\u{1f912}. CF?\r\n\r\nPossible Me\u{301}nie\u{300}re disease.\r\nHeart failures, pneumonai.\r\n";

fn config(folder: &Path, tag: &str) -> std::path::PathBuf {
    write_whole(&folder.join("graph.obo"), GRAPH.as_bytes()).unwrap();
    write_whole(&folder.join("texts.txt"), TEXTS.as_bytes()).unwrap();
    let config = folder.join("engraft.toml");
    let text = format!("version = 5\n[sources.obo]\npath = \"graph.obo\"\n{tag}");
    write_whole(&config, text.as_bytes()).unwrap();
    config
}

/// Of each mention: its text, its best entity, how, and what is said of it.
fn told(row: &Value) -> Vec<String> {
    let text: Vec<char> = row["text"].as_str().unwrap().chars().collect();
    let mentions = row["mentions"].as_array().unwrap();
    let one = |mention: &Value| {
        let place = |key: &str| usize::try_from(mention[key].as_u64().unwrap()).unwrap();
        let by_characters: String = text[place("start")..place("end")].iter().collect();
        let by_bytes = &row["text"].as_str().unwrap()[place("byte_start")..place("byte_end")];
        assert_eq!((by_characters.as_str(), mention["text"].as_str().unwrap()), (by_bytes, by_bytes));
        let modifiers: Vec<&str> =
            mention["modifiers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let (entity, how) = (mention["entity"].as_str().unwrap(), mention["how"].as_str().unwrap());
        format!("{by_bytes}={entity} {how} {}", modifiers.join(","))
    };
    mentions.iter().map(one).collect()
}

#[test]
fn texts_of_standard_input_become_lines_and_the_graph_is_made_before() {
    let folder = tempfile::tempdir().unwrap();
    let (out, tag) = (folder.path().join("out"), "[tag.near]\nthreshold = 0.5\n");
    let config = config(folder.path(), tag);
    let texts = folder.path().join("texts.txt");
    let first = Engraft::own(&["tag"], &config, &out).fed(&texts).output();
    assert!(first.text().contains("note: documents that are not tagged: blank 1"), "{}", first.text());
    let printed = Engraft::own(&["tag"], &config, &out).fed(&texts).ok();
    let rows: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>(), ["1", "3", "4"]);
    assert_eq!(
        told(&rows[0]),
        ["cardiac failure=doid:1 name negated", "CF=doid:1 abbreviation negated", "CF=doid:1 abbreviation "]
    );
    assert_eq!(rows[0]["mentions"][0]["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(told(&rows[1]), ["Me\u{301}nie\u{300}re disease=doid:2 name uncertain"]);
    assert_eq!(told(&rows[2]), ["Heart failures=doid:1 name ", "pneumonai=doid:4 near "]);
    // Again, of files: the same but for their names; threads change nothing.
    let again = Engraft::own(&["tag", "texts.txt", "-j", "1"], &config, &out);
    let again = again.arg(&texts).output();
    assert_ne!(again.code(), Some(0), "texts.txt is not in this folder");
    let of_file = Engraft::own(&["tag", "-j", "1"], &config, &out).arg(&texts).ok();
    assert_eq!(of_file, printed);
    let of_folder = Engraft::plain(&["tag"], &out).arg("--triples").arg(out.join("triples"));
    let of_folder = of_folder.set("tag.near.threshold=0.5").fed(&texts).ok();
    assert_eq!(of_folder, printed);
}

#[test]
fn every_form_has_the_same_mentions() {
    let folder = tempfile::tempdir().unwrap();
    let (out, config) = (folder.path().join("out"), config(folder.path(), "[tag]\ncontext = \"english\"\n"));
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    write_whole(&notes.join("a.txt"), TEXTS.as_bytes()).unwrap();
    write_whole(&notes.join("b.txt"), b"pneumonia").unwrap();
    let tag = |to: &str, into: &str| {
        let run = Engraft::own(&["tag", "--to", to], &config, &out);
        let run = run.arg("--into").arg(folder.path().join(into));
        run.arg(&notes).set("tag.format={text=\"file\"}").ok()
    };
    for (to, into) in [
        ("jsonl", "m.jsonl"),
        ("spacy", "m.spacy"),
        ("bioc", "m.xml"),
        ("html", "m.html"),
        ("brat", "m"),
        ("parquet", "m.parquet"),
    ] {
        assert_eq!(tag(to, into), "", "{to}");
    }
    let rows = json_lines(folder.path().join("m.jsonl"));
    assert_eq!((rows[0]["file"].as_str(), rows[1]["id"].as_str()), (Some("a.txt"), Some("b.txt")));
    // As it stands in the file, but for the mark.
    assert_eq!(rows[0]["text"].as_str(), TEXTS.strip_prefix('\u{feff}'));
    let expected: Vec<Vec<String>> = rows.iter().map(told).collect();
    assert_eq!(expected.concat().len(), 6);
    // What a stage of ours reads of the other forms is the same: their kinds and their texts, found again.
    let read = |of: &str, format: &str| {
        let run = Engraft::own(&["tag"], &config, &out).arg(folder.path().join(of));
        let printed = run.set(&format!("tag.format={format}")).ok();
        printed.lines().map(|line| told(&serde_json::from_str(line).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(read("m.spacy", "{annotated_json={layout=\"spacy\",phrases=\"none\"}}"), expected);
    assert_eq!(read("m.xml", "{bioc={concepts=[\"identifier\"],composites=\"whole\"}}"), expected);
    assert_eq!(read("m", "{brat={concepts=\"any\"}}"), expected);
    let page = fs::read_to_string(folder.path().join("m.html")).unwrap();
    assert_eq!(page.matches("<mark ").count(), 6);
    assert!(page.contains("heart failure (doid:1)") && page.contains("negated"), "{page}");
    engraft_tests::python::python("mentions_table.py", folder.path());
    engraft_tests::python::python("tagged_forms.py", folder.path());
    let full =
        Engraft::own(&["tag", "--to", "brat"], &config, &out).arg("--into").arg(folder.path().join("m"));
    let refused = full.arg(&notes).set("tag.format={text=\"file\"}").output();
    assert!(
        refused.text().contains("the folder is not empty: name a new one, or empty it"),
        "{}",
        refused.text()
    );
}

/// The files that mentions are of, in the order of rows.
fn files_of(mentions: &Path) -> Vec<String> {
    let file = fs::File::open(mentions).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let of = |batch: RecordBatch| {
        let files = batch.column_by_name("file").unwrap().as_string::<i32>().clone();
        files.iter().map(|file| file.unwrap_or("none").to_owned()).collect::<Vec<_>>()
    };
    let mut files: Vec<String> = batches.flat_map(|batch| of(batch.unwrap())).collect();
    files.dedup();
    files
}

#[test]
fn no_two_files_are_called_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for name in ["one/a.txt", "one/deep/a.txt", "two/a.txt", "a.txt"] {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        write_whole(&file, format!("pneumonia in {name}\n").as_bytes()).unwrap();
    }
    let corpus = |paths: &str| {
        format!(
            "[tag]\n[[corpus.texts]]\nname = \"notes\"\npaths = {paths}\nformat = {{ text = \"line\" }}\n"
        )
    };
    let config_of = |paths: &str| config(folder.path(), &corpus(paths));
    let mentions = out.join("mentions/mentions.parquet");
    for (paths, expected) in [
        ("[\"one\"]", vec!["notes/a.txt", "notes/deep/a.txt"]),
        (
            "[\"one\", \"two\", \"a.txt\"]",
            vec!["notes/0/a.txt", "notes/0/deep/a.txt", "notes/1/a.txt", "notes/2/a.txt"],
        ),
    ] {
        for parts in ["counts.memory=\"64MiB\"", "corpus.parts.bytes=\"20B\""] {
            Engraft::own(&["run", "mentions"], &config_of(paths), &out).set(parts).ok();
            assert_eq!(files_of(&mentions), expected, "{parts}");
        }
    }
    let named = |names: &[&str]| -> Vec<String> {
        let run = Engraft::own(&["tag"], &config_of("[\"one\"]"), &out);
        let run = names.iter().fold(run, |run, name| run.arg(folder.path().join(name)));
        let rows: Vec<Value> = run.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.iter().map(|row| row["file"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(&["one"]), ["a.txt", "deep/a.txt"]);
    let whole = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(named(&["one", "two"]), ["one/a.txt", "one/deep/a.txt", "two/a.txt"].map(whole));
}

#[test]
fn the_stage_tags_the_corpus_and_says_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let corpus =
        "[tag]\n[[corpus.texts]]\nname = \"notes\"\npaths = [\"texts.txt\"]\nformat = { text = \"line\" }\n";
    let config = config(folder.path(), corpus);
    Engraft::own(&["run", "mentions"], &config, &out).ok();
    let report = json(out.join("mentions/mentions.json"));
    assert_eq!(report["found"]["mentions"], serde_json::json!({"abbreviation": 2, "name": 3}));
    assert_eq!(report["found"]["documents"], 3);
    let before = fs::read(out.join("mentions/mentions.parquet")).unwrap();
    fs::remove_dir_all(out.join("mentions")).unwrap();
    Engraft::own(&["run", "mentions", "-j", "1"], &config, &out).ok();
    assert_eq!(fs::read(out.join("mentions/mentions.parquet")).unwrap(), before);
    // Triggers are an input like any other.
    write_whole(&folder.path().join("triggers.tsv"), b"no\tuncertain\tafter\n").unwrap();
    let own = || Engraft::own(&["run", "mentions"], &config, &out).set("tag.context={file=\"triggers.tsv\"}");
    own().ok();
    assert_eq!(
        json(out.join("mentions/mentions.json"))["found"]["modifiers"],
        serde_json::json!({"uncertain": 2})
    );
    write_whole(&folder.path().join("triggers.tsv"), b"no\tuncertain\tbehind\n").unwrap();
    let refused = own().output();
    assert!(
        refused.text().contains("line 1: \"behind\", expected after, before or both"),
        "{}",
        refused.text()
    );
}

#[test]
fn what_cannot_be_tagged_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (out, texts) = (folder.path().join("out"), folder.path().join("texts.txt"));
    let config = config(folder.path(), "");
    let into = folder.path().join("m.jsonl");
    let tag = |more: &[&str]| {
        let run = Engraft::own(&["tag"], &config, &out);
        more.iter().fold(run, |run, one| run.arg(one)).fed(&texts).output()
    };
    write_whole(&folder.path().join("bad.txt"), b"fine\nb\xffd\n").unwrap();
    let bad = folder.path().join("bad.txt");
    let nowhere = folder.path().join("nowhere");
    for (more, expected) in [
        (vec!["--to", "parquet"], "Parquet is no text: name a file with --into FILE.parquet"),
        (vec!["--to", "brat"], "brat has two files for each text: name a folder with --into"),
        (vec!["--set", "tag.near.threshold=2"], "tag.near.threshold is 2, expected above 0 and at most 1"),
        (vec!["--set", "tag.candidates=0"], "tag.candidates is 0"),
        (vec!["--set", "tag.dictionary.max_words=0"], "tag.dictionary.max_words is 0"),
        (
            vec!["--set", "tag.dictionary.types={only=[\"T999\"]}"],
            "no name of the graph passes tag.dictionary (dropped: semantic_type 10)",
        ),
        (
            vec!["--set", "tag.format={brat={concepts=\"any\"}}"],
            "cannot come from standard input: name their files",
        ),
        (vec!["--set", "tag.context={file=\"none.tsv\"}"], "none.tsv"),
        (
            vec![bad.to_str().unwrap(), "--into", into.to_str().unwrap()],
            "bad.txt: line 2: byte 2 of the line is not valid UTF-8",
        ),
        (vec![nowhere.to_str().unwrap()], "nowhere"),
        (vec!["--triples", nowhere.to_str().unwrap()], "entities.parquet"),
        (vec!["--into", "s3://bucket/m.jsonl"], "--into is a URL"),
    ] {
        let ran = tag(&more);
        assert!(ran.code() != Some(0) && ran.text().contains(expected), "{more:?}: {}", ran.text());
        assert!(!ran.text().contains("panicked"), "{}", ran.text());
    }
    assert!(!into.exists());
    let left = fs::read_dir(folder.path()).unwrap().flatten();
    assert!(left.map(|file| file.file_name()).all(|name| !name.to_string_lossy().starts_with(".tmp")));
    write_whole(&config, b"version = 5\n[vocabulary]\nfile = \"texts.txt\"\n").unwrap();
    let none = Engraft::own(&["tag"], &config, &folder.path().join("other")).fed(&texts).output();
    assert!(
        none.text().contains("the config has no graph whose names could be found: add [sources]"),
        "{}",
        none.text()
    );
}

#[test]
fn what_is_in_no_triple_is_told_of_and_found_where_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "");
    let alone = "\n[Term]\nid: DOID:9\nname: whooping cough\n";
    write_whole(&folder.path().join("graph.obo"), format!("{GRAPH}{alone}").as_bytes()).unwrap();
    let texts = folder.path().join("cough.txt");
    write_whole(&texts, b"Whooping cough and heart failure.\n").unwrap();
    let tag = |out: &str, unrelated: &str| {
        let run = Engraft::own(&["tag"], &config, &folder.path().join(out));
        run.set(&format!("canon.unrelated={unrelated}")).fed(&texts).output()
    };
    let dropped = tag("dropped", "drop");
    assert!(
        dropped.text().contains("not looked for, since in no triple: 1 of the things"),
        "{}",
        dropped.text()
    );
    assert!(!dropped.text().contains("doid:9") && dropped.text().contains("doid:1"), "{}", dropped.text());
    let kept = tag("kept", "keep");
    assert!(kept.text().contains("doid:9") && !kept.text().contains("in no triple"), "{}", kept.text());
    // What it takes to be an entity of a graph like others.
    let run = || {
        let run = Engraft::own(&["run", "shards", "report"], &config, &folder.path().join("kept"));
        run.set("canon.unrelated=keep").set("vocabulary.train={ size = 60, min_frequency = 1 }")
    };
    // Two triples have no false one beside them, so nothing is learnt of true and false ones.
    let refused = run().output();
    assert!(
        refused.code() == Some(1) && refused.text().contains("no triple of the part train has a negative"),
        "{}",
        refused.text()
    );
    run().set("shards.tasks=[\"subject\", \"object\"]").ok();
    assert!(folder.path().join("kept/shards/index.json").is_file());
}
