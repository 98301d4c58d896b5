//! From texts to counts, relevance and maps through the binary: the same bytes whatever the threads, the memory and the shards; on the
//! published corpora, where the user has them, what a dictionary of MeSH finds.
use std::fs;
use std::path::{Path, PathBuf};

use engraft_tests::{Engraft, assert_same, below, skipped};
use serde_json::Value;

fn config(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/{name}.toml"))
}

fn world(verb: &[&str], out: &Path) -> Engraft {
    Engraft::plain(verb, out).arg("--config").arg(config("world-maps")).set("world.scale=0.5")
}

fn facts(engraft: Engraft) -> Value {
    let told: Value = serde_json::from_str(engraft.arg("--json").ok().lines().next().unwrap()).unwrap();
    told["facts"].clone()
}

#[test]
fn threads_memory_and_shards_change_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    world(&["run", "maps"], &at("one")).arg("--jobs").arg("1").ok();
    world(&["run", "maps"], &at("two")).arg("--jobs").arg("3").set("counts.memory=32MiB").ok();
    let of = |out: &str, stage: &str| below(&at(out).join(stage), |_| true);
    for stage in ["counts", "pmi", "maps"] {
        assert!(!of("one", stage).is_empty());
        assert_same(&of("one", stage), &of("two", stage), stage);
    }
    for shard in ["1", "2", "3"] {
        world(&["run", "counts"], &at(shard)).set(&format!("counts.shard={shard}/3")).ok();
    }
    let folders = ["1", "2", "3"].map(|shard| at(shard).join("counts").display().to_string());
    world(&["run", "counts"], &at("merged")).set(&format!("counts.merge={folders:?}")).ok();
    assert_same(&of("one", "counts"), &of("merged", "counts"), "three shards put together");
    // Whoever puts shards together need not have the texts.
    let text = fs::read_to_string(config("world-maps")).unwrap();
    let bare = text.replace("extends = \"parts/world-corpus.toml\"\n", "") + "\n[counts]\n";
    assert!(!bare.contains("extends"));
    let bare = (dir.path().join("bare.toml"), bare);
    base::whole::write_whole(&bare.0, bare.1.as_bytes()).unwrap();
    let without = |out: &str| {
        Engraft::plain(&["run", "counts"], &at(out)).arg("--config").arg(&bare.0).set("world.scale=0.5")
    };
    without("bare").set(&format!("counts.merge={folders:?}")).ok();
    assert_same(&of("one", "counts"), &of("bare", "counts"), "three shards put together without texts");
    let refused = without("none").output();
    assert!(refused.text().contains("[counts] reads the texts of [corpus]"), "{}", refused.text());
    let again = world(&["run", "maps"], &at("one")).set("counts.memory=1GiB").ok();
    assert!(
        again.contains("0 ran") || again.contains("nothing to do") || again.contains("up to date"),
        "{again}"
    );
}

#[test]
fn the_maps_of_a_text_are_drawn_with_what_the_stage_would_use() {
    let dir = tempfile::tempdir().unwrap();
    let early = world(&["inspect", "maps", "--text", "x"], dir.path()).output();
    assert!(early.code() == Some(2) && early.text().contains("engraft run maps"), "{}", early.text());
    world(&["run", "maps"], dir.path()).ok();
    let found = facts(world(&["inspect", "maps"], dir.path()));
    let number = |key: &str| found["found"][key].as_u64().unwrap();
    assert!(
        number("mentions") > 100 && number("term_pairs") > 1_000 && number("auxiliary_terms") > 100,
        "{found}"
    );
    // A sentence of the world's own, so that its words are known.
    let texts = below(&dir.path().join("world/text"), |name| name.ends_with(".txt"));
    let text = String::from_utf8(texts.values().next().unwrap().clone()).unwrap();
    let sentence = text.split_inclusive('.').find(|sentence| sentence.split(' ').count() > 6).unwrap().trim();
    let svg = dir.path().join("svg");
    let drawn = world(&["inspect", "maps", "--text", sentence], dir.path()).arg("--svg").arg(&svg).ok();
    for map in ["entity", "phrase", "term", "graph"] {
        assert!(drawn.contains(map), "{drawn}");
        let picture = fs::read_to_string(svg.join(format!("{map}.svg"))).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    }
    let json = world(&["inspect", "maps", "--text", sentence], dir.path()).arg("--json").ok();
    let json: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let words = json["words"].as_array().unwrap().len();
    assert_eq!(json["maps"]["term"].as_array().unwrap().len(), words * words);
    let term = |row: usize, column: usize| json["maps"]["term"][row * words + column].as_f64().unwrap();
    assert!((0..words).all(|word| term(word, word) > 0.999), "a word is relevant to itself");
    let empty = world(&["inspect", "maps", "--text", "zzyzx qwrtp"], dir.path()).arg("--svg").arg(&svg).ok();
    for why in [
        "entity: empty beside the diagonal: no term of the graph stands in this text",
        "term: empty",
        "graph: empty",
    ] {
        assert!(empty.contains(why), "{why}: {empty}");
    }
    assert!(
        fs::read_to_string(svg.join("entity.svg"))
            .unwrap()
            .contains("no term of the graph stands in this text")
    );
    let wrong = world(&["inspect", "triples", "--text", "x"], dir.path()).output();
    assert!(wrong.text().contains("inspect maps"), "{}", wrong.text());
}

#[test]
fn settings_that_cannot_be_meant_are_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (set, says) in [
        ("counts.what.case=cased", "vocabulary.case"),
        ("counts.what.pairs={window=1}", "2 to 255"),
        ("counts.memory=1MiB", "at least 32 MiB"),
        ("counts.memory=lots", "2GiB"),
        ("counts.shard=5/4", "1/4"),
        ("pmi.smoothing=0.75", "npmi"),
        ("pmi.smooothing=0.75", "smooothing"),
        ("maps.limits.tokens=2", "at least 4"),
        ("maps.entities.dictionary.max_words=0", "max_words"),
        ("maps.phrases.neighbours.threshold=2.0", "-1 to 1"),
        ("corpus.texts=[]", "names no text"),
    ] {
        let ran = world(&["plan"], dir.path()).set(set).output();
        assert!(ran.code() == Some(2) && ran.text().contains(says), "{set}: {}", ran.text());
    }
    let missing = world(&["run", "counts"], dir.path()).set("corpus.texts.0.x=1").output();
    assert_eq!(missing.code(), Some(2), "{}", missing.text());
    let none = world(&["run", "counts"], dir.path())
        .set(r#"corpus.texts=[{name="w",paths=["world:text"],format="wikisection"}]"#)
        .output();
    assert!(none.text().contains(".json"), "{}", none.text());
}

/// The folder with the published corpora, if the environment names one.
#[allow(clippy::disallowed_methods, reason = "tests take the place of real data from the environment")]
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    let needed = ["medquad", "hoc", "bc5cdr", "pubmedqa", "mesh", "hsdn"];
    let there = data.filter(|data| needed.iter().all(|name| data.join(name).is_dir()));
    if there.is_none() {
        skipped("ENGRAFT_DATA does not name a folder with medquad, hoc, bc5cdr, pubmedqa, mesh and hsdn");
    }
    there
}

#[test]
fn the_published_corpora_become_maps() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let kam = |verb: &[&str]| {
        let kam = Engraft::plain(verb, dir.path()).arg("--config").arg(config("kam-maps"));
        // Auxiliary terms, which other tests hold, are half of the work.
        kam.arg("--data").arg(&data).set("maps.limits.terms=0")
    };
    kam(&["run", "maps"]).ok();
    let counts = facts(kam(&["inspect", "counts"]));
    let documents: Vec<(&str, u64)> = counts["corpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|texts| (texts["texts"].as_str().unwrap(), texts["kept"].as_u64().unwrap()))
        .collect();
    assert_eq!(documents, [("medquad", 16_423), ("hoc", 1_852), ("bc5cdr", 1_500), ("pubmedqa", 1_000)]);
    let maps = facts(kam(&["inspect", "maps"]));
    let samples = maps["samples"]["samples"].as_u64().unwrap();
    assert!(samples > 200_000, "{maps}");
    // Words that belong together, whatever a reader's taste in filters.
    let told =
        kam(&["inspect", "maps", "--json", "--text", "Insulin lowers glucose in diabetes mellitus."]).ok();
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let words: Vec<&str> =
        told["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let term = |a: &str, b: &str| {
        let at = |word: &str| words.iter().position(|found| *found == word).unwrap();
        told["maps"]["term"][at(a) * words.len() + at(b)].as_f64().unwrap()
    };
    assert!(
        term("insulin", "glucose") > term("insulin", "lowers") && term("diabetes", "mellitus") > 0.5,
        "{told}"
    );
    let entity = told["maps"]["entity"].as_array().unwrap();
    let diabetes = words.iter().position(|word| *word == "diabetes").unwrap();
    assert_eq!(entity[diabetes * words.len() + diabetes + 1], 1.0, "diabetes mellitus is one entity");
}
