//! The four other systems on the embedded world, small, through the binary and the configs that are shipped: what is compared with what, what is
//! frozen and why, what is refused.
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use engraft_tests::{Engraft, below, json, json_lines};
use model::eval::correlation::pearson;
use serde_json::Value;

mod lama;

/// A shipped config, made small: little world, little training, two seeds.
fn small(verb: &[&str], config: &str, out: &Path) -> Engraft {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(config);
    let sets = [
        "world.scale=0.6",
        "pretrain.epochs=1",
        "finetune.epochs=2",
        "finetune.seeds=[1, 2]",
        "encoder.num_hidden_layers=2",
        "encoder.hidden_size=64",
        "encoder.intermediate_size=64",
        "finetune.max_tokens=64",
    ];
    sets.iter().fold(Engraft::plain(verb, out).arg("--config").arg(file), |engraft, set| {
        engraft.arg("--set").arg(set)
    })
}

/// What was compared on a benchmark, in the order of the table.
fn compared(out: &Path, benchmark: &str) -> Vec<String> {
    let scores = json(out.join("scores/scores.json"));
    let of = scores.as_array().unwrap().iter().filter(|line| line["benchmark"] == benchmark);
    of.map(|line| line["how"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn labels_begin_in_three_ways_and_their_loss_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    small(&["run", "scores"], "world-label-embedding.toml", out).ok();
    let all = ["alone", "paper-random", "paper-keywords", "paper-class-means", "repo-random"];
    assert_eq!(compared(out, "questions"), all);
    assert_eq!(compared(out, "mortality"), ["alone", "labels"]);
    let mut first = vec![];
    for how in &all[1..] {
        let metrics = json_lines(out.join(format!("finetune-{how}-questions-1/metrics.jsonl")));
        assert!(metrics.iter().all(|step| step["labels"].as_f64().unwrap() > 0.0), "{how}");
        let step = &metrics[0];
        let parts = step["labels"].as_f64().unwrap() + step["tasks"]["questions"]["loss"].as_f64().unwrap();
        assert!((step["loss"].as_f64().unwrap() - parts).abs() < 1e-4, "{how}: {step}");
        first.push(step["labels"].as_f64().unwrap());
        let outputs = json(out.join(format!("finetune-{how}-questions-1/model/outputs.json")));
        assert_eq!(outputs["outputs"]["labels"]["mode"], how.split('-').next().unwrap());
    }
    // Another beginning, another first loss.
    assert!(first[0] != first[1] && first[0] != first[2] && first[1] != first[2], "{first:?}");
    let model = out.join("finetune-paper-keywords-questions-1/model");
    let asked = folder.path().join("asked.txt");
    base::whole::write_whole(&asked, b"What causes it ?\n").unwrap();
    let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
    let said: Value = serde_json::from_str(&Engraft::plain(&verb, out).ok()).unwrap();
    assert!(said["class"].is_string(), "{said}");
    let verb = ["attention", model.to_str().unwrap(), "--text", "What causes it ?", "--json"];
    attended(&Engraft::plain(&verb, out).ok(), "it");

    let refused = small(&["plan"], "world-label-embedding.toml", out)
        .arg("--set")
        .arg("attentions=[{ name = \"x\", on = [\"entailed\"], labels = { mode = \"paper\", lambda = 3.0, begin = \"keywords\" } }]")
        .output();
    let told = refused.text();
    assert!(refused.code() != Some(0) && told.contains("the benchmark entailed has none"), "{told}");
}

#[test]
fn maps_are_attended_by_and_what_no_loss_reaches_is_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let attentions = "attentions=[{ name = \"kam\", knowledge = { maps = [\"entity\", \"phrase\", \"term\", \"graph\"], alpha = 0.2, skip = \"post_add\", auxiliary = \"qk\", merge = \"convolution\" } }, \
        { name = \"mean\", knowledge = { maps = [\"term\"], alpha = 0.2, skip = \"none\", auxiliary = \"zero_pad\", merge = \"mean\" } }]";
    let recipe = "recipes=[{ name = \"both\", attention = \"kam\", tasks = [\"questions\", \"alike\"], schedule = \"merged\", \
        learning_rate = 1e-3, warmup = 0.1, epochs = 1, batch = 16, dropout = 0.1 }]";
    let sets = [
        attentions,
        recipe,
        "finetune.quirks={ pairs = \"second_first\" }",
        "finetune.max_tokens_of={ alike = 40 }",
    ];
    sets.iter().fold(small(&["run", "scores"], "world-kam-bert.toml", out), |run, set| run.set(set)).ok();
    assert_eq!(compared(out, "questions"), ["alone", "kam", "mean", "both"]);
    assert_eq!(compared(out, "entailed"), ["alone", "kam", "mean"]);
    // Four heads and four maps: a layer's convolution has 4 * 8 * 9 weights and 4 biases.
    let parameters = |stage: &str| json(out.join(stage).join("scores.json"))["parameters"].clone();
    let (kam, plain) = (parameters("finetune-kam-alike-2"), parameters("finetune-base-alike-2"));
    assert_eq!((&kam["attention"], &plain["attention"]), (&Value::from(2 * 292), &Value::from(0)));
    assert_eq!((&kam["encoder"], &kam["outputs"]), (&plain["encoder"], &plain["outputs"]));
    let table = std::fs::read_to_string(out.join("scores/scores.md")).unwrap();
    assert!(table.contains("of which attention brings 584 |"), "{table}");
    let frozen = json(out.join("finetune-kam-alike-2/frozen.json"));
    let reason = &frozen["outputs.knowledge.layer.1.convolution.bias"];
    assert!(reason.as_str().unwrap().contains("a softmax does not see"), "{frozen}");
    assert!(frozen.get("outputs.knowledge.layer.1.convolution.weight").is_none());
    let ledger = std::fs::read_to_string(out.join("ledger.jsonl")).unwrap();
    let known = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<Value> = known
        .filter(|line| line["stage"] == "maps-questions" || line["stage"] == "maps-alike")
        .map(|line| line["facts"]["found"].clone())
        .filter(Value::is_object)
        .collect();
    assert_eq!(found.len(), 2, "one stage makes the maps of a benchmark for all: {ledger}");
    for of in &found {
        let count = |key: &str| of[key].as_u64().unwrap();
        assert!(count("mentions") > 0 && count("term_pairs") > 0 && count("auxiliary_terms") > 0, "{of}");
    }
    let knowledge = &json(out.join("recipe-both-1/model/outputs.json"))["outputs"]["knowledge"];
    assert_eq!((&knowledge["maps"], &knowledge["auxiliary"]), (&Value::from(4), &Value::from("qk")));
    maps_are_made_again_for_questions(out, &sets);
    maps_made_otherwise_are_refused(out, &sets);
    let planned = |set: &str| small(&["plan"], "world-kam-bert.toml", out).arg("--set").arg(set).output();
    let cut = planned("finetune.truncation=\"second\"");
    assert!(cut.text().contains("set finetune.truncation = \"longest\""), "{}", cut.text());
    let none = planned("maps.terms=\"none\"");
    assert!(none.text().contains("has \"term\", but [maps] leaves it empty"), "{}", none.text());
    let model = out.join("finetune-kam-alike-1/model");
    let without = Engraft::plain(&["encode", model.to_str().unwrap()], &out.join("elsewhere")).output();
    assert!(without.text().contains("this model attends by maps of what is known"), "{}", without.text());
    knowing_encoders_give_vectors(out, &model, &sets);
}

/// A model that attends by maps gives vectors by them: those of a text do not depend on what is encoded beside it, and are others where the same weights see
/// no map.
fn knowing_encoders_give_vectors(out: &Path, model: &Path, sets: &[&str]) {
    let texts = out.join("texts.txt");
    let vectors = |model: &Path, lines: &str| -> Vec<Vec<f64>> {
        base::whole::write_whole(&texts, lines.as_bytes()).unwrap();
        let verb = ["encode", model.to_str().unwrap(), texts.to_str().unwrap(), "--pooling", "mean"];
        let said = sets.iter().fold(small(&verb, "world-kam-bert.toml", out), |run, set| run.set(set)).ok();
        let line = |line: &str| serde_json::from_str::<Value>(line).unwrap()["vector"].clone();
        said.lines().map(|said| serde_json::from_value(line(said)).unwrap()).collect()
    };
    let difference = |a: &[f64], b: &[f64]| {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    // In training this short a convolution learns so little that its maps would hardly be noticed.
    let weighed = |name: &str, factor| with_maps_weighed(model, &out.join(name), factor);
    let (loud, blind) = (weighed("loud", 100.0), weighed("blind", 0.0));
    let text = "fever and a cough\n";
    for model in [model, &loud] {
        let (together, alone) = (vectors(model, &format!("{text}pain\n")), vectors(model, text));
        assert_eq!((together.len(), alone.len()), (2, 1));
        let beside = difference(&together[0], &alone[0]);
        assert!(beside < 1e-4 && together[0] != together[1], "{beside}: {together:?} {alone:?}");
    }
    let by_maps = difference(&vectors(&loud, text)[0], &vectors(&blind, text)[0]);
    assert!(by_maps > 1e-3, "{by_maps}");
}

/// A copy of a model whose convolutions weigh the four maps by a factor, and the scores of tokens as before.
fn with_maps_weighed(model: &Path, to: &Path, factor: f64) -> PathBuf {
    std::fs::create_dir(to).unwrap();
    for (name, bytes) in below(model, |name| name != "digests.json") {
        base::whole::write_whole(&to.join(name), &bytes).unwrap();
    }
    let file = to.join("outputs.safetensors");
    let mut weights = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    for layer in ["0", "1"] {
        let name = format!("knowledge.layer.{layer}.convolution.weight");
        let [of_scores, of_maps] = [0, 4].map(|from| weights[&name].narrow(1, from, 4).unwrap());
        let of_maps = of_maps.affine(factor, 0.0).unwrap();
        weights.insert(name, Tensor::cat(&[of_scores, of_maps], 1).unwrap());
    }
    candle_core::safetensors::save(&weights, &file).unwrap();
    model::checkpoint::digests::seal(to).unwrap();
    to.to_owned()
}

/// Whether attention to a text is told: every token of every head takes in one whole, and `token` is among them.
fn attended(said: &str, token: &str) {
    let said: Value = serde_json::from_str(said).unwrap();
    let tokens = said["tokens"].as_array().unwrap();
    assert!(tokens[0] == "[CLS]" && tokens.iter().any(|own| own == token), "{tokens:?}");
    for layer in said["layers"].as_array().unwrap() {
        for of in layer.as_array().unwrap().iter().flat_map(|head| head.as_array().unwrap()) {
            let shares = of.as_array().unwrap();
            let sum: f64 = shares.iter().map(|share| share.as_f64().unwrap()).sum();
            assert!(shares.len() == tokens.len() && (sum - 1.0).abs() < 1e-4, "{of}");
        }
    }
}

/// Asks a model of what benchmark `alike` is tested on, as the run in `out` was made.
fn ask_alike(out: &Path, stage: &str, sets: &[&str]) -> Engraft {
    let benchmark = json_lines(out.join("benchmark-alike/examples.jsonl"));
    let tested = benchmark.iter().filter(|line| line["part"] == "test");
    let line = |of: &Value| {
        format!("{}\n", serde_json::json!({"id": of["id"], "text": of["text"], "pair": of["pair"]}))
    };
    let asked = out.join("asked.jsonl");
    base::whole::write_whole(&asked, tested.map(line).collect::<String>().as_bytes()).unwrap();
    let model = out.join(stage).join("model");
    let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
    sets.iter().fold(small(&verb, "world-kam-bert.toml", out), |run, set| run.set(set))
}

/// A model that attends by maps answers as it did when it was tried, and refuses maps that are made otherwise.
fn maps_are_made_again_for_questions(out: &Path, sets: &[&str]) {
    let scores = |stage: &str| -> Vec<(Value, f64)> {
        let said = ask_alike(out, stage, sets).ok();
        let said = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        said.map(|line| {
            let score = line.get("tasks").map_or(&line["score"], |tasks| &tasks["alike"]["score"]);
            (line["id"].clone(), score.as_f64().unwrap())
        })
        .collect()
    };
    for stage in ["finetune-kam-alike-1", "finetune-mean-alike-2"] {
        let (tried, answered) = (json_lines(out.join(stage).join("test.jsonl")), scores(stage));
        assert_eq!(answered.len(), tried.len(), "{stage}");
        for ((id, score), tried) in answered.iter().zip(&tried) {
            assert_eq!(*id, tried["id"], "{stage}");
            let before = tried["outputs"][0][0].as_f64().unwrap();
            assert!((score - before).abs() < 1e-4, "{stage}, {id}: {score} and {before}");
        }
    }
    let model = out.join("finetune-kam-alike-1/model");
    let verb = ["attention", model.to_str().unwrap(), "--text", "fever", "--pair", "a cough", "--json"];
    let said = sets.iter().fold(small(&verb, "world-kam-bert.toml", out), |run, set| run.set(set));
    let said = said.ok();
    attended(&said, "a");
    let said: Value = serde_json::from_str(&said).unwrap();
    let tokens = said["tokens"].as_array().unwrap().len();
    let maps = said["maps"].as_object().unwrap();
    assert_eq!(maps.keys().collect::<Vec<_>>(), ["entity", "phrase", "term", "graph"]);
    let mut filled = 0;
    for rows in maps.values().map(|map| map.as_array().unwrap()) {
        assert!(rows.len() == tokens && rows.iter().all(|row| row.as_array().unwrap().len() == tokens));
        filled += usize::from(rows.iter().flat_map(|row| row.as_array().unwrap()).any(|value| *value != 0.0));
    }
    assert!(filled > 0, "{said}");
    let folder = out.join("pictures");
    let verb = [&verb[..6], &["--svg", folder.to_str().unwrap()]].concat();
    sets.iter().fold(small(&verb, "world-kam-bert.toml", out), |run, set| run.set(set)).ok();
    let picture = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
    let drawn = |name: &str| picture(name).matches("<title>").count();
    assert_eq!(drawn("layer-0"), tokens * tokens);
    for (name, map) in maps {
        let values = map.as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        assert_eq!(drawn(&format!("map-{name}")), values.filter(|value| **value != 0.0).count(), "{name}");
    }
    // A recipe leaves no answers; what it scored follows from them.
    let gold = json_lines(out.join("benchmark-alike/examples.jsonl")).into_iter();
    let gold =
        gold.filter(|line| line["part"] == "test").map(|line| line["answer"]["score"].as_f64().unwrap());
    let answered: Vec<f64> = scores("recipe-both-1").into_iter().map(|(_, score)| score).collect();
    let found = pearson(&gold.collect::<Vec<_>>(), &answered).unwrap().value;
    let test = &json(out.join("recipe-both-1/scores.json"))["alike"]["test"];
    assert_eq!(test["metric"], "pearson");
    let before = test["value"].as_f64().unwrap();
    assert!((found - before).abs() < 1e-3, "{found} and {before}");
    assert_eq!(json(out.join("recipe-both-1/model/task.json"))["tasks"][1]["max_tokens"], 40);
}

/// What maps were made with is told, and anything else is refused by name.
fn maps_made_otherwise_are_refused(out: &Path, sets: &[&str]) {
    let file = json(out.join("finetune-mean-alike-1/model/task.json"));
    let files = file["knowledge"]["made_with"]["files"].as_object().unwrap();
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            "counts/adjacent.parquet",
            "counts/index.json",
            "counts/words.parquet",
            "pmi/matrix.csr",
            "triples/entities.parquet",
            "triples/terms.parquet",
            "triples/triples.parquet"
        ]
    );
    let told = |sets: &[&str]| {
        let refused = ask_alike(out, "finetune-kam-alike-1", sets).output();
        assert!(refused.code() != Some(0));
        refused.text()
    };
    let model = out.join("finetune-kam-alike-1/model");
    let alone = Engraft::plain(&["predict", model.to_str().unwrap()], out).output().text();
    assert!(alone.contains("give the config that it was fine-tuned with"), "{alone}");
    let other = told(&["maps.limits.terms=3"]);
    assert!(other.contains("maps.limits.terms is 3, and was "), "{other}");
    let cased = told(&["vocabulary.case=\"cased\"", "counts.what.case=\"cased\""]);
    assert!(cased.contains("vocabulary.case is \"cased\", and was \"uncased\" then"), "{cased}");
    let words = out.join("counts/words.parquet");
    let bytes = std::fs::read(&words).unwrap();
    base::whole::write_whole(&words, &[&bytes[..], b"x"].concat()).unwrap();
    let changed = told(sets);
    assert!(changed.contains("counts/words.parquet is not what it was then"), "{changed}");
    std::fs::remove_file(&words).unwrap();
    let missing = told(sets);
    assert!(missing.contains("give the folder of the run that fine-tuned it (--out)"), "{missing}");
    base::whole::write_whole(&words, &bytes).unwrap();
}

#[test]
fn tasks_take_turns_and_pairs_tell_which_helps_which() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let few = "recipes=[{ name = \"turns\", tasks = [\"diseases\", \"questions\", \"alike\", \"diagnoses\"], schedule = { round_robin = \"paper\" }, \
        learning_rate = 1e-3, warmup = 0.1, epochs = 1, batch = 16, dropout = 0.1 }, \
        { name = \"pairs\", pairwise = true, tasks = [\"diseases\", \"drugs\", \"questions\"], schedule = \"merged\", \
        learning_rate = 1e-3, warmup = 0.1, epochs = 2, batch = 16, dropout = 0.1 }]";
    small(&["run", "scores", "matrix-pairs"], "world-mt-bert.toml", out).arg("--set").arg(few).ok();
    assert_eq!(compared(out, "alike"), ["alone", "turns"]);
    let matrix = json(out.join("matrix-pairs/matrix.json"));
    let gains = matrix.as_array().unwrap();
    assert_eq!(gains.len(), 6, "each of three with each other");
    let score = |stage: &str| json(out.join(stage).join("scores.json"));
    for gain in gains {
        let (task, with) = (gain["task"].as_str().unwrap(), gain["with"].as_str().unwrap());
        let mut pair = [task, with];
        pair.sort_unstable();
        let together =
            score(&format!("recipe-pairs-{}-{}-1", pair[0], pair[1]))[task]["test"]["value"].as_f64();
        let alone = score(&format!("finetune-base-{task}-1"))["test"]["value"].as_f64();
        let found = gain["seeds"][0].as_f64().unwrap();
        assert!((found - (together.unwrap() - alone.unwrap())).abs() < 1e-9, "{gain}");
    }
    let picture = std::fs::read_to_string(out.join("matrix-pairs/matrix.svg")).unwrap();
    // Of two seeds: numbers without intervals and colours, and no arrow where nothing changed.
    assert!(picture.contains(">diseases<") && picture.contains("fewer than 3 seeds"));
    assert!(!picture.contains(" [+") && !picture.contains("fill-opacity"), "{picture}");
    let arrows = std::fs::read_to_string(out.join("matrix-pairs/matrix-arrows.svg")).unwrap();
    let shown = gains.iter().filter(|gain| (gain["mean"].as_f64().unwrap() * 1000.0).round() != 0.0).count();
    assert_eq!((arrows.matches("<circle").count(), arrows.matches(" tip\"").count()), (3, shown));
    assert!(out.join("matrix-pairs/index.html").is_file());
    let table = std::fs::read_to_string(out.join("matrix-pairs/matrix.md")).unwrap();
    assert_eq!(table.lines().count(), 5);
}
