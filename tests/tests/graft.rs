//! The whole of KIMERA through the binary, on a small world: every row of the table, what stages leave, kills, and questions to what was
//! fine-tuned.
use std::collections::BTreeSet;
use std::path::Path;

use base::whole::write_whole;
use engraft_tests::python::{at_home, loaded};
use engraft_tests::{Engraft, artifacts, json};
use serde_json::Value;

mod retraining;

/// Beside the settings that all tests of it have.
const OWN: [&str; 7] = [
    "retrain.epochs=1",
    "retrain.stream.batching={ items = 96 }",
    "retrain.checkpoint_every=2",
    "finetune.seeds=[1, 2]",
    // Every step is taken, so that there is a mask whatever was learned.
    "graft.search.tau=0.0",
    "graft.search.rho=0.3",
    "graft.search.keep_per_layer=1",
];

fn graft(verb: &[&str], out: &Path) -> Engraft {
    OWN.iter().fold(Engraft::graft(verb, out), |engraft, set| engraft.set(set))
}

/// A benchmark of two classes, one of which holds.
const MORTALITY: &str = "{ name = \"mortality\", cop = { notes = \"world:mimic/NOTEEVENTS.csv\", admissions = \"world:mimic/ADMISSIONS.csv\", diagnoses = \"world:mimic/DIAGNOSES_ICD.csv\", procedures = \"world:mimic/PROCEDURES_ICD.csv\", outcome = \"mortality\", variant = \"fixed\", split = { drawn = { valid = 0.2, test = 0.4 } }, mask_search = 0.2, seed = 1 } }";

const ROWS: [&str; 9] =
    ["base", "pruned", "scratch", "no_mask", "hard", "soft", "forward", "lora", "synonyms"];

/// The stages of one benchmark and seed, all rows, with what they need; fast enough for several tests.
fn one_benchmark(verb: &[&str], out: &Path, rows: &str) -> Engraft {
    graft(verb, out).set(&format!("graft.rows={rows}")).set("finetune.seeds=[1]")
}

#[test]
fn every_row_is_in_the_table_and_nothing_runs_twice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let run = || {
        let engraft = graft(&["run", "results"], out).set("align={ batch = 8, max_steps = 4 }");
        let engraft = engraft.set("graft.lora={ rank = 4 }").set("graft.lora_learning_rate=0.001");
        engraft.set(&format!("graft.rows={ROWS:?}"))
    };
    run().ok();
    let facts = json(out.join("results/grafting.json"));
    let cells = facts["cells"].as_array().unwrap();
    let of = |cell: &Value, key: &str| cell[key].as_str().unwrap().to_owned();
    let found: BTreeSet<[String; 3]> =
        cells.iter().map(|cell| ["row", "benchmark", "metric"].map(|key| of(cell, key))).collect();
    for row in ROWS {
        for (benchmark, metric) in
            [("capr", "recall_at_1"), ("capr", "recall_at_5"), ("capr", "mrr"), ("diagnoses", "auroc_macro")]
        {
            assert!(
                found.contains(&[row, benchmark, metric].map(str::to_owned)),
                "{row} {benchmark} {metric}"
            );
        }
    }
    assert_eq!(found.len(), cells.len(), "each once");
    for cell in cells {
        assert_eq!(cell["seeds"].as_array().unwrap().len(), 2);
        assert!(cell["low"].as_f64().unwrap() <= cell["mean"].as_f64().unwrap());
        assert_eq!(cell["difference_to_base"].is_null(), cell["row"] == "base");
    }
    let page = std::fs::read_to_string(out.join("results/index.html")).unwrap();
    assert!(
        page.contains("hard mask") && page.contains("synonyms") && !page.contains("<script"),
        "a page without scripts"
    );
    assert!(out.join("retrain-hard/events.out.tfevents.engraft").exists());
    // One head of each layer is protected, all others are vacant; those are what `hard` retrains.
    let mask = json(out.join("mask-hard/mask.json"));
    for layer in mask["keep"].as_array().unwrap() {
        let kept = layer.as_array().unwrap().iter().filter(|gate| gate.as_f64() == Some(1.0)).count();
        assert_eq!(kept, 1, "{mask}");
    }
    let frozen = std::fs::read_to_string(out.join("retrain-hard/frozen.json")).unwrap();
    assert!(frozen.contains("the head mask keeps head"), "{frozen}");
    let frozen = std::fs::read_to_string(out.join("retrain-synonyms/frozen.json")).unwrap();
    assert!(frozen.contains("the head mask keeps head"), "{frozen}");
    let frozen = std::fs::read_to_string(out.join("retrain-lora/frozen.json")).unwrap();
    assert!(frozen.contains("its adapter moves it"), "{frozen}");
    assert_eq!(json(out.join("retrain-lora/model/adapters.json"))["r"], 4);
    let before = artifacts(out);
    let again = run().output();
    assert!(!again.text().contains(" ran"), "{}", again.text());
    assert_eq!(artifacts(out), before);
    stand_beside(out, cells);
}

/// Rows of a grafting are compared with those of another folder by every metric, from a file that is as the ledger has it.
fn stand_beside(out: &Path, cells: &[Value]) {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::create_dir_all(other.join("results")).unwrap();
    let facts = std::fs::read(out.join("results/grafting.json")).unwrap();
    let write = |bytes: &[u8]| write_whole(&other.join("results/grafting.json"), bytes).unwrap();
    write(&facts);
    write_whole(&other.join("ledger.jsonl"), &std::fs::read(out.join("ledger.jsonl")).unwrap()).unwrap();
    let named = [out, &other].map(|out| out.display().to_string());
    let compare = |more: &[&str]| {
        Engraft::plain(&[&["compare", named[0].as_str(), named[1].as_str()], more].concat(), out)
    };
    let told = compare(&["--json"]).ok();
    let found: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 2 * cells.len(), "{told}");
    for cell in cells {
        let same = |of: &&Value| {
            of["benchmark"] == cell["benchmark"] && of["how"] == cell["row"] && of["metric"] == cell["metric"]
        };
        let both: Vec<&Value> = found.iter().filter(same).collect();
        assert!(both.len() == 2 && both.iter().all(|of| of["mean"] == cell["mean"]), "{cell} {both:?}");
        let zero = &both[1]["more"];
        assert!(both[0]["more"].is_null() && zero["mean"] == 0.0 && zero["seeds"] == 2, "{both:?}");
    }
    write(&facts[1..]);
    let damaged = compare(&[]).output();
    let words = ["left out: results of ", "other/results/grafting.json: its contents are not those"];
    assert!(words.iter().all(|word| damaged.text().contains(word)), "{}", damaged.text());
    assert!(
        damaged.code() == Some(1) && damaged.text().contains("| capr | hard | recall_at_5 |"),
        "{}",
        damaged.text()
    );
}

#[test]
fn one_mask_is_searched_over_several_tests_of_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let capr = |name: &str, more: &str, seed: u64| {
        format!(
            "{{ name = \"{name}\"{more}, capr = {{ train.medquad = \"world:medquad\", test.share = 0.4, candidates.per_query = 12, held_out = {{ dev = 0.1, mask_search = 0.15 }}, seed = {seed} }} }}"
        )
    };
    let (one, other) = (capr("capr", "", 1), capr("other", ", trained_on = \"capr\"", 2));
    let run = |verb: &[&str], also: &str| {
        let engraft = one_benchmark(verb, out, "[\"base\", \"pruned\"]");
        engraft.set(&format!("benchmarks=[{one}, {other}]")).set("graft.mask_benchmark=capr").set(also)
    };
    run(&["run", "results"], "graft.mask_also=[\"other\"]").ok();
    let searched = json(out.join("mask-hard/search.json"))["samples"].as_u64().unwrap();
    let measured = json(out.join("importance-base/importance.json"))["samples"].as_u64().unwrap();
    let facts = json(out.join("results/grafting.json"));
    let cells = facts["cells"].as_array().unwrap();
    for row in ["base", "pruned"] {
        assert!(
            cells.iter().any(|cell| cell["row"] == row && cell["benchmark"] == "other"),
            "{row}: {facts}"
        );
    }
    assert!(facts["notes"].to_string().contains("mask_search of capr and other"), "{}", facts["notes"]);
    assert!(!out.join("finetune-base-other-1/model").exists() && !out.join("pruned-other-1/model").exists());
    run(&["run", "mask-hard", "importance-base"], "graft.mask_also=[]").ok();
    let alone = json(out.join("mask-hard/search.json"))["samples"].as_u64().unwrap();
    assert!(searched > alone && searched == measured, "{searched} {measured} {alone}");
    let twice = run(&["plan"], "graft.mask_also=[\"capr\"]").output();
    assert!(twice.text().contains("expected a benchmark whose trained_on is \"capr\""), "{}", twice.text());
}

#[test]
fn fine_tuning_and_searching_go_on_where_they_were_killed_with_any_number_of_threads() {
    let (reference, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |out: &Path| one_benchmark(&["run", "mask-hard"], out, "[\"base\", \"pruned\"]");
    run(reference.path()).arg("--jobs").arg("1").ok();
    for point in [
        "pretrain:working:6",
        "finetune-base-diagnoses-1:working:8",
        // Its training has ended, and its classes are named.
        "finetune-base-diagnoses-1:written",
        "mask-hard:working:1",
    ] {
        let killed = run(folder.path()).arg("--jobs").arg("4").kill_at(point).output();
        assert_eq!(killed.code(), None, "{point}: {}", killed.text());
    }
    run(folder.path()).ok();
    assert_eq!(artifacts(reference.path()), artifacts(folder.path()));
}

#[test]
fn a_search_of_settings_takes_the_best_trial_and_more_trials_change_none() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let search = |rows: &str, trials: u64, stages: &[&str]| {
        let search = format!(
            "finetune.search={{ rows = \"{rows}\", trials = {trials}, seed = 1, finetune_seeds = [1, 2], learning_rate = {{ least = 1e-5, most = 1e-2 }}, warmup = [0.1], epochs = [1], batch = [8], dropout = [0.1] }}"
        );
        one_benchmark(&[&["run"], stages].concat(), out, "[\"base\", \"no_mask\"]")
            .set("finetune.settings_of={}")
            .set(&search)
    };
    search("base", 2, &["settings-base-capr"]).ok();
    let trial = out.join("trial-base-capr-1-2/scores.json");
    let first = json(&trial);
    let more = search("base", 3, &["settings-base-capr"]).output();
    assert!(more.text().contains("3 ran"), "a trial with two seeds and the choice: {}", more.text());
    assert_eq!(json(&trial), first);
    // The highest mean over both seeds.
    let best = |row: &str, trials: u64| {
        let of = |n: u64| {
            let scores =
                [1, 2].map(|seed| json(out.join(format!("trial-{row}-capr-{n}-{seed}/scores.json"))));
            let dev = scores.each_ref().map(|scores| scores["dev"]["value"].as_f64().unwrap());
            (dev[0] + dev[1], scores[0]["settings"].clone())
        };
        (0..trials).map(of).fold((f64::MIN, Value::Null), |a, b| if b.0 > a.0 { b } else { a }).1
    };
    let chosen = |row: &str| json(out.join(format!("settings-{row}-capr/settings.json")));
    assert_eq!(chosen("base"), best("base", 3));
    // Each row by the same trials, on its own encoder; the base's own stand.
    search("each", 3, &["settings-no_mask-capr"]).ok();
    assert_eq!(chosen("no_mask"), best("no_mask", 3));
    let each = search("each", 3, &["finetune-base-capr-1", "finetune-no_mask-capr-1"]).output();
    assert!(each.text().contains("2 ran"), "the settings are there: {}", each.text());
    for row in ["base", "no_mask"] {
        let tuned = json(out.join(format!("finetune-{row}-capr-1/scores.json")));
        assert_eq!(tuned["settings"], chosen(row));
    }
    let without = search("base", 3, &["finetune-no_mask-capr-1"]).ok();
    let tuned = json(out.join("finetune-no_mask-capr-1/scores.json"));
    assert_eq!(tuned["settings"], chosen("base"), "{without}");
}

#[test]
fn a_fine_tuned_model_is_asked_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    one_benchmark(&["run", "finetune-base-diagnoses-1", "finetune-base-capr-1"], folder.path(), "[\"base\"]")
        .ok();
    let model = |name: &str| folder.path().join(name).join("model").display().to_string();
    let lines = folder.path().join("asked.jsonl");
    write_whole(
        &lines,
        b"{\"text\": \"fever\", \"pair\": \"a cough\", \"id\": 7}\n{\"text\": \"pain\", \"pair\": \"People may notice pain\"}\n",
    )
    .unwrap();
    let ask = |verb: &str, model: &str, more: &[&str]| {
        let asked = lines.display().to_string();
        let verb = [&[verb, model, &asked][..], more].concat();
        let said = Engraft::plain(&verb, folder.path()).ok();
        if verb[0] == "predict" && more.is_empty() {
            at_home(Path::new(model), &lines, &said);
        }
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    ask("predict", &model("finetune-base-diagnoses-1"), &[]);
    let said = ask("predict", &model("finetune-base-diagnoses-1"), &["--top", "2"]);
    assert_eq!((said.len(), &said[0]["id"]), (2, &Value::from(7)));
    assert_eq!(said[0]["shares"].as_object().unwrap().len(), 2);
    assert!(said[0]["classes"].is_array(), "any number of them");
    one_benchmark(&["run", "finetune-base-mortality-1"], folder.path(), "[\"base\"]")
        .set(&format!("benchmarks=[{MORTALITY}]"))
        .set("graft.mask_benchmark=mortality")
        .set("finetune.settings_of={}")
        .ok();
    let said = ask("predict", &model("finetune-base-mortality-1"), &[]);
    let shares = said[1]["shares"].as_object().unwrap();
    assert!(said[1]["class"].is_string() && shares.len() == 2, "one of two: {}", said[1]);
    assert!((shares.values().map(|share| share.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-5);
    let said = ask("predict", &model("finetune-base-capr-1"), &[]);
    assert!(said[1]["score"].is_number());
    loaded(Path::new(&model("finetune-base-capr-1")), &lines, &said);
    let alone = folder.path().join("alone.txt");
    write_whole(&alone, b"pain\n").unwrap();
    let text = [model("finetune-base-capr-1"), alone.display().to_string()];
    let ran = Engraft::plain(&["predict", &text[0], &text[1]], folder.path()).output();
    assert!(
        ran.code() == Some(2)
            && ran.text().contains("line 1: there is no `pair`, but this model is asked of two texts"),
        "{}",
        ran.text()
    );
    let vectors = ask("encode", &model("finetune-base-capr-1"), &["--pooling", "mean"]);
    assert_eq!(vectors[0]["vector"].as_array().unwrap().len(), 16);
    attention_is_drawn(&model("finetune-base-capr-1"), &model("pretrain"), folder.path());
    let refused = |model: &str| {
        let ran = Engraft::plain(&["predict", model], folder.path()).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    let text = refused(&model("pretrain"));
    assert!(text.contains("task.json") && text.contains("of a fine-tuning"), "{text}");
    let task = folder.path().join("finetune-base-capr-1/model/outputs.safetensors");
    std::fs::remove_file(task).unwrap();
    let text = refused(&model("finetune-base-capr-1"));
    assert!(text.contains("outputs.safetensors"), "{text}");
}

#[test]
fn tables_that_contradict_each_other_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |sets: &[&str]| {
        let ran = sets.iter().fold(graft(&["run"], folder.path()), |engraft, set| engraft.set(set)).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        assert!(!folder.path().join("world").exists(), "nothing ran");
        ran.text()
    };
    let text = refused(&["graft.rows=[\"hard\"]"]);
    assert!(text.contains("graft.rows has no `base`"), "{text}");
    let text = refused(&["graft.mask_benchmark=x"]);
    assert!(text.contains("graft.mask_benchmark is \"x\", but [[benchmarks]] has diagnoses, capr"), "{text}");
    let text = refused(&["finetune.seeds=[1, 1]"]);
    assert!(text.contains("names a seed twice"), "{text}");
    let text = refused(&["finetune.warmup=1.0"]);
    assert!(text.contains("finetune.warmup is 1, expected from 0 to below 1"), "{text}");
    let text = refused(&["retrain.heads={ mode = \"none\", shared = \"train\", soft_on = \"step\" }"]);
    assert!(text.contains("leave [retrain.heads] out"), "{text}");
    let lora = "graft.rows=[\"base\", \"lora\"]";
    for (sets, why) in [
        (&["graft.lora={ rank = 2 }"][..], "graft.lora is for row `lora`, which graft.rows has not"),
        (
            &["graft.rows=[\"base\", \"synonyms\"]", "align={ answers = {} }"],
            "leave [align.answers] or the row out",
        ),
        (&[lora, "retrain.frozen=[\"embeddings.\"]"], "retrain.frozen says what of it is trained"),
        (&[lora, "retrain.lora={}"], "leave [retrain.lora] out, and say in [graft.lora] how"),
        (&[lora, "graft.lora={ rank = 5000 }"], "graft.lora.rank is 5000, expected from 1 to "),
        (&[lora, "graft.retrain_search={}", "graft.lora_learning_rate=0.1"], "draws the rates of all rows"),
    ] {
        let text = refused(sets);
        assert!(text.contains(why), "{why}: {text}");
    }
    let text = refused(&["pretrain.alphas.masked_lm=0.0"]);
    assert!(text.contains("pretrain.alphas are all 0"), "{text}");
    let text = refused(&["encoder.path=x"]);
    assert!(text.contains("encoder.path is no key of [encoder]"), "{text}");
}

/// What tokens attend to in a fine-tuned model and in any other checkpoint, and what each is not asked.
fn attention_is_drawn(fine_tuned: &str, checkpoint: &str, out: &Path) {
    let ask = |more: &[&str]| Engraft::plain(&[&["attention"][..], more].concat(), out);
    let svg = out.join("attention");
    let told =
        ask(&[fine_tuned, "--text", "fever", "--pair", "a cough", "--svg", svg.to_str().unwrap()]).ok();
    assert!(told.starts_with("what [CLS] attends to, mean over the heads\n"), "{told}");
    let layers = told.lines().filter(|line| line.starts_with("layer ")).count();
    let said: Value = serde_json::from_str(&ask(&[checkpoint, "--text", "fever", "--json"]).ok()).unwrap();
    let heads = said["layers"][0].as_array().unwrap().len();
    assert_eq!(said["layers"].as_array().unwrap().len(), layers);
    let drawn = std::fs::read_dir(&svg).unwrap().count();
    assert_eq!(drawn, 1 + layers * (1 + heads), "one of [CLS], one of each layer, one of each head");
    let alone = ask(&[fine_tuned, "--text", "fever"]).output();
    assert!(alone.code() == Some(2) && alone.text().contains("no `pair`"), "{}", alone.text());
    let none = ask(&["none", "--text", "fever"]).output();
    assert!(none.code() == Some(2) && none.text().contains("none"), "{}", none.text());
}
