//! Stage `rank` through the binary: ranks and means that another implementation counts again, the same bytes for any number of threads, refusals; and presets
//! as configs.

use std::path::Path;

use engraft_tests::python::python;
use engraft_tests::{Engraft, artifacts, json};
use serde_json::Value;

const PARTS: &str =
    "split.parts={ ratio = { train = 0.6, valid = 0.2, test = 0.2, seed = 1, cover = \"leave\" } }";

fn ranking(out: &Path, rank: &str) -> Engraft {
    Engraft::small(&["run", "rank"], out).set(PARTS).set(&format!("rank={rank}"))
}

#[test]
fn ranks_and_their_means_are_what_another_implementation_counts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    for (by, from) in [("triplet", "retrain"), ("relation", "retrain"), ("similarity", "encoder")] {
        ranking(
            out,
            &format!(
                "{{ by = \"{by}\", from = \"{from}\", max_triples = 40, same = \"ids\", best = 4000000000 }}"
            ),
        )
        .ok();
        python("rank.py", out);
        let scores = json(out.join("rank/rank.json"));
        assert_eq!((&scores["by"], &scores["triples"]), (&by.into(), &40.into()), "{scores}");
        let classified = &scores["triple_classification"];
        assert_eq!(classified["valid_negatives"], "drawn");
        assert_eq!((&classified["stated"], &classified["negatives"]), (&40.into(), &"drawn".into()));
        let share = |key: &str| classified[key].as_f64().unwrap();
        assert!(
            (0.0..=1.0).contains(&share("auroc")) && (0.3..=1.0).contains(&share("accuracy")),
            "{classified}"
        );
        assert_eq!(classified["accuracy_argmax"].is_f64(), by == "triplet");
        // One pass for each pair of entities, whatever the relation, gives the relation's own rank too.
        assert_eq!(scores["relation_prediction"]["filtered"]["ranks"], 40);
    }
}

#[test]
fn ranks_of_several_runs_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let run = ranking(
        &folder.path().join("out"),
        "{ by = \"similarity\", from = \"encoder\", max_triples = 20, classification = false }",
    );
    let said = run.arg("--each").arg("encoder.seed=[1, 2]").output();
    assert_eq!(said.code(), Some(0), "{}", said.text());
    assert!(said.text().contains("| entities | MRR | 40 |"), "{}", said.text());
    let outs = ["1", "2"].map(|seed| folder.path().join(format!("out-encoder.seed-{seed}")));
    let named: Vec<String> = outs.iter().map(|out| out.display().to_string()).collect();
    let told = Engraft::plain(&["compare", &named[0], &named[1], "--json"], &outs[0]).ok();
    let cells: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cells.len(), 4, "entities and relations in two folders: {told}");
    for (cell, out) in cells[..2].iter().zip(&outs) {
        let scores = json(out.join("rank/rank.json"));
        for key in ["mrr", "mr", "hits_1", "hits_3", "hits_10"] {
            let [own, told] = [&scores["filtered"][key], &cell["filtered"][key]["value"]].map(Value::as_f64);
            assert!((own.unwrap() - told.unwrap()).abs() < 1e-9, "{key}: {own:?} {told:?}");
        }
    }
}

#[test]
fn the_preset_of_link_prediction_ranks_the_worlds_held_out_triples() {
    let folder = tempfile::tempdir().unwrap();
    let (config, out) = (folder.path().join("link.toml"), folder.path().join("out"));
    base::whole::write_whole(&config, b"version = 5\nextends = [\"world\", \"link-prediction\"]\n").unwrap();
    let run = Engraft::own(&["run", "rank"], &config, &out).set("world.scale=0.05");
    run.set("retrain.max_steps=4").set("retrain.warmup_steps=1").set("rank.candidates.sampled=20").ok();
    let scores = json(out.join("rank/rank.json"));
    let ranks = scores["filtered"]["ranks"].as_u64().unwrap();
    assert!(ranks > 20 && Some(ranks) == scores["triples"].as_u64().map(|triples| 2 * triples), "{scores}");
    assert!(scores["triple_classification"]["auroc"].is_number(), "{scores}");
}

#[test]
fn ranks_have_the_same_bytes_for_any_number_of_threads() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, jobs) in folders.iter().zip(["1", "3"]) {
        ranking(folder.path(), "{ candidates = { sampled = 20 }, max_triples = 30 }")
            .arg("--jobs")
            .arg(jobs)
            .ok();
    }
    let of = |out: &Path| {
        let all = artifacts(out).into_iter().filter(|(name, _)| name.starts_with("rank/"));
        all.collect::<Vec<_>>()
    };
    let [one, three] = folders.each_ref().map(|folder| of(folder.path()));
    assert_eq!(one.len(), 4, "{:?}", one.iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert!(one == three);
    let scores = json(folders[0].path().join("rank/rank.json"));
    assert_eq!(scores["candidates"]["sampled"], 20);
    assert!(scores["raw"]["mr"].as_f64().unwrap() <= 21.0);
}

#[test]
fn what_cannot_be_ranked_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let refused = |sets: &[&str], words: &[&str]| {
        let run = sets.iter().fold(Engraft::small(&["plan"], &out), |run, set| run.set(set));
        let ran = run.output();
        assert_ne!(ran.code(), Some(0), "{sets:?}: {}", ran.text());
        for word in words {
            assert!(ran.text().contains(word), "{sets:?}: {}", ran.text());
        }
    };
    refused(&["rank={}"], &["rank.part is \"test\"", "split.parts"]);
    let none =
        "split.parts={ ratio = { train = 0.9, valid = 0.1, test = 0.0, seed = 1, cover = \"leave\" } }";
    refused(&[none, "rank={}"], &["rank.part is \"test\"", "split.parts.ratio.test"]);
    refused(&[PARTS, "rank.by=\"name\""], &["rank.by", "triplet"]);
    refused(&[PARTS, "rank.from=\"encoder\""], &["add [retrain]", "similarity"]);
    refused(&[PARTS, "rank={}", "retrain.alphas.triplet=0.0"], &["retrain.alphas.triplet is 0"]);
    refused(&[PARTS, "rank.pooling=\"learned_attn\""], &["rank.pooling", "cls, mean or max"]);
    refused(&[PARTS, "rank.candidates.sampled=0"], &["rank.candidates.sampled", "at least 1"]);
    assert!(!out.exists());
}

#[test]
fn a_preset_is_a_config_that_owns_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = |args: &[&str]| Engraft::plain(args, &out).arg("--set").arg("world.scale=0.05");
    run(&["run", "world", "--preset", "world"]).ok();
    let other = run(&["run", "world"]).output();
    assert_ne!(other.code(), Some(0));
    assert!(other.text().contains("say --preset world"), "{}", other.text());
    run(&["status", "--preset", "world"]).ok();
    let unknown = run(&["plan", "--preset", "worlds"]).output();
    assert!(unknown.text().contains("there is no preset \"worlds\""), "{}", unknown.text());
    for args in
        [&["--config", "x.toml", "plan", "--preset", "world"][..], &["diff", "a", "b", "--preset", "world"]]
    {
        let both = Engraft::plain(args, &out).output();
        assert_ne!(both.code(), Some(0));
        assert!(both.text().contains("--preset"), "{}", both.text());
    }
    let without =
        Engraft::plain(&["plan", "rank", "--preset", "kg-bert"], &folder.path().join("kg")).output();
    assert!(without.text().contains("--data"), "{}", without.text());
}
