//! Masks of benchmarks' own, and retraining with settings drawn at random: what each trial is made with, and which of them is the row's.
use std::collections::BTreeSet;
use std::path::Path;

use engraft_tests::{json, json_lines};

use super::one_benchmark;

/// Two trials; of this seed they differ in all that is drawn of it.
const SEARCH: &str = "graft.retrain_search={ trials = 2, seed = 5, learning_rate = { least = 1e-4, most = 1e-2 }, warmup_steps = [], epochs = [], \
    pooling = [\"cls\", \"mean\"], alphas = [{ subject = 1, object = 1, relation = 1, triplet = 1 }, { relation = 1, triplet = 0.5 }], tau = [0.0, 0.5] }";

/// Trials differ in what was drawn, and each was made with what the choice among them says of it: its line of the ledger, its mask, and the tasks that it was
/// trained on.
fn made_as_drawn(out: &Path, stage: &str, mask: &str) {
    let ledger = json_lines(out.join("ledger.jsonl"));
    let told = |stage: &str| ledger.iter().rfind(|line| line["stage"] == stage).unwrap();
    let trials = told(stage)["facts"]["trials"].as_array().unwrap();
    for key in ["learning_rate", "pooling", "alphas", "tau"] {
        assert_ne!(trials[0][key], trials[1][key], "{stage}: {key}");
    }
    for (number, trial) in trials.iter().enumerate() {
        let name = format!("{stage}-trial-{number}");
        let described = &told(&name)["described"];
        let setting = |key: &str| &described["fields"][format!("retrain.{key}")];
        assert_eq!(setting("learning_rate"), &trial["learning_rate"], "{name}");
        assert_eq!(setting("task_heads.pooling"), &trial["pooling"], "{name}");
        let alphas = trial["alphas"].as_object().unwrap();
        assert!(alphas.iter().all(|(task, alpha)| setting(&format!("alphas.{task}")) == alpha), "{name}");
        let tau = trial["tau"].to_string().replace(".0", "").replace('.', "_");
        let masks =
            described["artifacts"].as_object().unwrap().keys().filter(|input| input.starts_with("mask-"));
        assert_eq!(masks.collect::<Vec<_>>(), [&format!("{mask}-tau-{tau}")], "{name}");
        let steps = json_lines(out.join(&name).join("metrics.jsonl"));
        let learnt: BTreeSet<&String> = steps[0]["tasks"].as_object().unwrap().keys().collect();
        let weighed = alphas.iter().filter(|(_, alpha)| **alpha != 0.0).map(|(task, _)| task);
        assert_eq!(learnt, weighed.collect(), "{name}");
    }
}

#[test]
fn benchmarks_have_masks_of_their_own_and_the_best_retraining_is_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let run = |verb: &[&str], own: &str| {
        let engraft = one_benchmark(verb, out, "[\"base\", \"hard\"]").set("retrain.max_steps=2");
        engraft.set(&format!("graft.own_masks={own}")).set("graft.mask_benchmark=capr").set(SEARCH)
    };
    run(&["run", "results"], "[\"diagnoses\"]").ok();
    let searched_on =
        |stage: &str| json(out.join(stage).join("search.json"))["metric"].as_str().unwrap().to_owned();
    assert_eq!(searched_on("mask-hard"), "recall_at_1");
    assert_eq!(searched_on("mask-hard-diagnoses"), "auroc_macro");
    for (stage, tau) in [("mask-hard-tau-0_5", 0.5), ("mask-hard-diagnoses-tau-0", 0.0)] {
        let search = json(out.join(stage).join("search.json"));
        let [from, to] = ["original_score", "threshold"].map(|key| search[key].as_f64().unwrap());
        assert!((from * tau - to).abs() < 1e-12, "{stage}: {search}");
    }
    // What a row is made of is the trial with the best score on dev, of its own benchmarks.
    for (stage, benchmark) in [("retrain-hard", "capr"), ("retrain-hard-diagnoses", "diagnoses")] {
        let scores =
            |trial: usize| json(out.join(format!("trial-{stage}-trial-{trial}-{benchmark}-1/scores.json")));
        let dev = [0, 1].map(|trial| scores(trial)["dev"]["value"].as_f64().unwrap());
        let best = usize::from(dev[1] > dev[0]);
        let chosen = json(out.join(stage).join("chosen.json"));
        assert_eq!(chosen["trial"].as_u64(), Some(best as u64), "{stage}: {dev:?} {chosen}");
        let weights = |stage: &str| std::fs::read(out.join(stage).join("model/model.safetensors")).unwrap();
        assert!(weights(stage) == weights(&format!("{stage}-trial-{best}")), "{stage}");
        assert!(weights(stage) != weights(&format!("{stage}-trial-{}", 1 - best)), "{stage}");
        made_as_drawn(out, stage, &stage.replace("retrain", "mask"));
    }
    let facts = json(out.join("results/grafting.json"));
    let kinds: Vec<&String> = facts["masks"].as_object().unwrap().keys().collect();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    let hard = facts["rows"].as_array().unwrap().iter().find(|row| row["name"] == "hard").unwrap();
    assert!(facts["masks"].get(hard["mask"].as_str().unwrap()).is_some(), "{hard}");
    assert!(facts["notes"].to_string().contains("retrain-hard-diagnoses: trial"), "{}", facts["notes"]);
    for (own, why) in
        [("[\"capr\"]", "whose masks the others share"), ("[\"none\"]", "but [[benchmarks]] has")]
    {
        let refused = run(&["plan"], own).output();
        assert!(refused.text().contains(why), "{}", refused.text());
    }
}
