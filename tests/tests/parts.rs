//! A corpus in parts: the same bytes as in one piece, made by one process or several in one output folder, whatever dies on the way.
use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, assert_same, below, names_below};
use serde_json::Value;

mod served;

/// Texts in files, and a config that counts and maps them.
struct Corpus {
    dir: tempfile::TempDir,
}

impl Corpus {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
        let made = dir.path().join("made");
        Engraft::plain(&["run", "world"], &made).arg("--config").arg(&world).set("world.scale=0.3").ok();
        fs::create_dir(dir.path().join("texts")).unwrap();
        let corpus = Self { dir };
        // Files of many sizes, one of them without a document.
        let texts = below(&made.join("world/text"), |name| name.ends_with(".txt"));
        let text = String::from_utf8(texts.into_values().flatten().collect()).unwrap();
        let paragraphs: Vec<&str> = text.split("\n\n").collect();
        for (number, some) in paragraphs.chunks(paragraphs.len() / 7).enumerate() {
            corpus.write(
                &format!("{number}.txt"),
                &some[..some.len().saturating_sub(number).max(1)].join("\n\n"),
            );
        }
        corpus.write("empty.txt", "\n");
        corpus
    }

    fn write(&self, name: &str, text: &str) {
        base::whole::write_whole(&self.at("texts").join(name), text.as_bytes()).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, goals: &[&str], out: &str) -> Engraft {
        let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
        let texts = self.at("texts");
        let corpus = format!(
            "corpus.texts=[{{ name = \"notes\", paths = [{texts:?}], format.text = \"paragraph\" }}]"
        );
        let run = Engraft::plain(&[&["run"], goals].concat(), &self.at(out)).arg("--config").arg(&world);
        run.set("world.scale=0.3").set("maps.items_per_group=7").set(&corpus)
    }

    fn parts(&self, goals: &[&str], out: &str) -> Engraft {
        self.run(goals, out).set("corpus.parts.bytes=\"20kB\"")
    }

    fn assert_whole(&self, out: &str, when: &str) {
        self.assert_stages(&["counts", "pmi", "maps"], out, when);
    }

    fn assert_stages(&self, stages: &[&str], out: &str, when: &str) {
        for stage in stages {
            let [whole, parts] = ["whole", out].map(|out| below(&self.at(out).join(stage), |_| true));
            assert!(!whole.is_empty());
            assert_same(&whole, &parts, &format!("{stage}: {when}"));
        }
    }
}

#[test]
fn parts_give_the_bytes_of_the_whole_and_only_those_that_change_are_made_again() {
    let corpus = Corpus::new();
    corpus.run(&["maps"], "whole").ok();
    corpus.parts(&["maps"], "parts").ok();
    corpus.assert_whole("parts", "in parts");
    let told = |out: &str, stage: &str| -> Value {
        let lines = engraft_tests::json_lines(corpus.at(out).join("ledger.jsonl"));
        lines.iter().rfind(|line| line["stage"] == stage).unwrap()["facts"].clone()
    };
    for stage in ["counts", "maps"] {
        assert_eq!(told("whole", stage), told("parts", stage), "{stage}: facts");
    }
    let stages = names_below(&corpus.at("parts"));
    assert!(stages.iter().filter(|name| name.ends_with("texts.json")).count() > 6, "{stages:?}");
    // The last part, and what joins.
    corpus.write("zz.txt", "Fever and cough.\n\nA cough.");
    let again = corpus.parts(&["counts"], "parts").ok();
    assert!(again.starts_with("2 ran,"), "{again}");
    // Neither the size of parts nor that there are any is part of what is counted.
    corpus.run(&["maps"], "whole").ok();
    corpus.parts(&["maps"], "parts").set("corpus.parts.bytes=\"1MB\"").ok();
    corpus.assert_whole("parts", "one large part");
}

#[test]
fn mentions_in_parts_are_those_of_the_whole() {
    let corpus = Corpus::new();
    let run = |out: &str, parts: &str| corpus.run(&["mentions"], out).set("tag={ near = {} }").set(parts);
    run("whole", "counts.memory=\"64MiB\"").ok();
    run("parts", "corpus.parts.bytes=\"20kB\"").ok();
    let of = |out: &str| below(&corpus.at(out).join("mentions"), |_| true);
    assert_same(&of("whole"), &of("parts"), "in parts");
    let facts = |out: &str| -> Value {
        let lines = engraft_tests::json_lines(corpus.at(out).join("ledger.jsonl"));
        lines.iter().rfind(|line| line["stage"] == "mentions").unwrap()["facts"].clone()
    };
    assert_eq!(facts("whole"), facts("parts"));
    let found = &facts("whole")["mentions"]["mentions"];
    let all: u64 = found.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert!(all > 100, "{found}");
    let stages = names_below(&corpus.at("parts"));
    assert!(stages.iter().any(|name| name.starts_with("mentions.part-0003")), "{stages:?}");
    // The last part, and what joins.
    corpus.write("zz.txt", "Fever and cough.\n\nA cough.");
    let again = run("parts", "corpus.parts.bytes=\"20kB\"").ok();
    assert!(again.starts_with("2 ran,"), "{again}");
}

#[test]
fn texts_of_shards_in_parts_give_the_same_shards() {
    let corpus = Corpus::new();
    // One sentence with a mention a file, of kinds that files meet in different orders.
    for (name, kinds) in [("a", ["Drug", "Sign"]), ("b", ["Sign", "Place"]), ("c", ["Place", "Drug"])] {
        let line = |(number, kind): (usize, &str)| {
            let text = format!("{name} {number} pain and fever");
            let span = format!("{{\"start\": 4, \"end\": 8, \"label\": \"{kind}\"}}");
            format!("{{\"text\": \"{text}\", \"spans\": [{span}]}}\n")
        };
        let lines: String = (0..30).flat_map(|_| kinds).enumerate().map(line).collect();
        corpus.write(&format!("{name}.jsonl"), &lines);
    }
    let texts = corpus.at("texts");
    let shards = |out: &str, masked: &str, tagging: &str| {
        let files = |format: &str, parts: &str| {
            format!(
                "{{ files = {{ paths = [{texts:?}], format = {{ {format} }}, max_tokens = 32{parts} }} }}"
            )
        };
        let tagged = "jsonl = { unit = \"characters\" }";
        corpus
            .run(&["audit"], out)
            .set("shards.tasks=[\"relation\", \"masked_lm\", \"tagging\"]")
            .set(&format!("shards.masked_lm={}", files("text = \"paragraph\"", masked)))
            .set(&format!("shards.tagging={}", files(tagged, tagging)))
    };
    let parts = ", parts = { bytes = \"20kB\" }";
    shards("whole", "", "").ok();
    let facts = |out: &str| -> Value {
        let lines = engraft_tests::json_lines(corpus.at(out).join("ledger.jsonl"));
        lines.iter().rfind(|line| line["stage"] == "shards").unwrap()["facts"].clone()
    };
    for (out, masked, tagging) in
        [("both", parts, ", parts = { bytes = \"3kB\" }"), ("one", parts, ""), ("other", "", parts)]
    {
        shards(out, masked, tagging).ok();
        let [whole, cut] = ["whole", out].map(|out| below(&corpus.at(out).join("shards"), |_| true));
        assert_same(&whole, &cut, out);
        assert_eq!(facts("whole"), facts(out), "{out}");
    }
    assert_eq!(
        facts("whole")["corpus"][1],
        serde_json::json!({"texts": "tagging", "files": 3, "bytes": 15150, "read": 180, "kept": 180, "dropped": 0})
    );
    let stages = names_below(&corpus.at("both"));
    for part in ["masked_lm.part-0002", "tagging.part-0003"] {
        assert!(stages.iter().any(|name| name.starts_with(part)), "{part}: {stages:?}");
    }
    // What is read of one file is read again when that file changes.
    corpus.write("c.jsonl", "{\"text\": \"fever\"}\n");
    let again = shards("both", parts, ", parts = { bytes = \"3kB\" }").ok();
    assert!(again.starts_with("3 ran,"), "{again}");
    let whole = shards("whole", "", "").set("shards.tagging.files.parts.bytes=\"0B\"").output();
    assert!(whole.text().contains("shards.tagging.files.parts.bytes is 0"), "{}", whole.text());
}

#[test]
fn processes_share_a_folder_and_a_killed_one_costs_only_its_part() {
    let corpus = Corpus::new();
    let texts = corpus.at("texts");
    // Maps, mentions and the texts of shards, all of them in parts.
    let all = |run: Engraft, parts: &str| {
        let masked = format!(
            "{{ files = {{ paths = [{texts:?}], format.text = \"paragraph\", max_tokens = 32{parts} }} }}"
        );
        run.set("tag={}")
            .set("shards.tasks=[\"relation\", \"masked_lm\"]")
            .set(&format!("shards.masked_lm={masked}"))
    };
    let goals = ["maps", "mentions", "shards"];
    all(corpus.run(&goals, "whole"), "").ok();
    let run = |goals: &[&str]| all(corpus.parts(goals, "shared"), ", parts = { bytes = \"20kB\" }");
    // What all of them read.
    run(&["split", "vocabulary"]).ok();
    let killed = run(&goals).kill_at("counts.part-0002:synced").start();
    let killed = killed.once_it_says("counts.part-0002: started");
    let others: Vec<_> = (0..3).map(|_| run(&goals).start()).collect();
    assert_ne!(killed.wait().code(), Some(0));
    for other in others {
        let ran = other.wait();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
    }
    corpus.assert_stages(
        &["counts", "pmi", "maps", "mentions", "shards"],
        "shared",
        "four processes, one of which died",
    );
    let lines = engraft_tests::json_lines(corpus.at("shared/ledger.jsonl"));
    let mut stages: Vec<&str> = lines.iter().map(|line| line["stage"].as_str().unwrap()).collect();
    stages.sort_unstable();
    let all = stages.len();
    stages.dedup();
    assert_eq!(stages.len(), all, "no stage was made twice");
    let left = names_below(&corpus.at("shared"));
    assert!(left.iter().all(|name| !name.starts_with(".locks") && !name.starts_with(".work")), "{left:?}");
}

#[test]
fn a_run_of_other_settings_or_files_does_not_join() {
    let corpus = Corpus::new();
    corpus.parts(&["counts"], "out").ok();
    // Somebody who has not ended holds the folder for such a run.
    let held = fs::File::open(corpus.at("out/.lock")).unwrap();
    held.try_lock_shared().unwrap();
    corpus.parts(&["counts"], "out").ok();
    let others = Corpus::new();
    let elsewhere = others.at("texts");
    let files = format!(
        "corpus.texts=[{{ name = \"notes\", paths = [{elsewhere:?}], format.text = \"paragraph\" }}]"
    );
    for other in ["pmi.min_count=9", files.as_str()] {
        let refused = corpus.parts(&["counts"], "out").set(other).output();
        let said = refused.text();
        assert!(refused.code() == Some(2) && said.contains("with other settings or inputs"), "{said}");
    }
    drop(held);
    corpus.parts(&["counts"], "out").set("pmi.min_count=9").ok();
}

#[test]
fn what_cannot_be_cut_is_refused_with_the_remedy() {
    let corpus = Corpus::new();
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
    let in_world = Engraft::plain(&["plan", "counts"], &corpus.at("out")).arg("--config").arg(&world);
    let refused = in_world.set("corpus.parts.bytes=\"1MB\"").output().text();
    assert!(refused.contains("make the world first, in another output folder"), "{refused}");
    for (set, says) in [
        ("corpus.parts.bytes=\"0B\"", "corpus.parts.bytes is 0"),
        ("counts.shard=\"1/2\"", "counts.shard counts some of the documents"),
    ] {
        let refused = corpus.parts(&["counts"], "out").set(set).output();
        assert!(refused.code() == Some(2) && refused.text().contains(says), "{set}: {}", refused.text());
    }
    // What cannot be looked at stops what reads it, and nothing else.
    let away = |verb: &[&str]| {
        let run = Engraft::plain(verb, &corpus.at("away")).arg("--config").arg(&world);
        let texts = "corpus.texts=[{ name = \"n\", paths = [\"/nowhere\"], format.text = \"line\" }]";
        run.set("world.scale=0.3").set(texts).set("corpus.parts.bytes=\"1MB\"")
    };
    away(&["run", "triples"]).ok();
    let refused = away(&["run", "counts"]).output();
    assert!(refused.code() == Some(1), "{}", refused.text());
    for said in [refused.text(), away(&["plan", "counts"]).output().text()] {
        assert!(
            said.contains("/nowhere") && said.contains("must be there when stages are planned"),
            "{said}"
        );
    }
}
