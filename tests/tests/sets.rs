//! Published sets and recipes through the binary: what is read of them, what is learned of several together, what is answered in one pass; and
//! the real sets, where the user has them.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use engraft_tests::python::at_home;
use engraft_tests::{Engraft, artifacts, assert_same, json, json_lines};
use serde_json::Value;

mod choices;
mod licensed;
mod listed;
mod real;
mod shards;
mod shared;
mod spans;

const DRUGS: [&str; 4] = ["aspirin", "ibuprofen", "warfarin", "metformin"];
const OTHERS: [&str; 6] = ["helps", "after", "pain", "fever", "often", "today"];

/// Three small sets in three layouts, a vocabulary and a config of them below `folder`.
fn made(folder: &Path) -> PathBuf {
    let (mut tagged, mut rows, mut pairs) = (String::new(), "note,kind\n".to_owned(), String::new());
    for i in 0..60_usize {
        let (drug, other) = (DRUGS[i % 4], OTHERS[i % 6]);
        let more = OTHERS[(i / 6) % 6];
        writeln!(tagged, "{other}\tO\n{drug}\tB-Drug\n{more}\tO\n").unwrap();
        let kind = if i % 3 == 0 { "fever" } else { "pain" };
        writeln!(rows, "\"{more}, {kind}\",{kind}").unwrap();
        let (second, score) = if i % 2 == 0 { (other, 4) } else { (drug, 1) };
        writeln!(pairs, "{{\"a\": \"{other} {more}\", \"b\": \"{second}\", \"score\": {score}}}").unwrap();
    }
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ","].iter().chain(&DRUGS).chain(&OTHERS);
    let vocabulary: String = words.map(|word| format!("{word}\n")).collect();
    let write =
        |name: &str, text: &str| base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
    write("tags.tsv", &tagged);
    write("kinds.csv", &rows);
    write("pairs.jsonl", &pairs);
    write("vocab.txt", &vocabulary);
    let set = |name: &str, format: &str, file: &str| {
        format!(
            "[[benchmarks]]\nname = \"{name}\"\n[benchmarks.set]\nformat = {format}\ntrain = [\"{file}\"]\n\
             drawn = {{ seed = 1, dev = 0.2, mask_search = 0.0, test = 0.2 }}\nlicence = \"free\"\n"
        )
    };
    let tags = "{ tagged = { format = { conll = { scheme = \"bio\", separator = \"tab\" } }, unit = \"document\" } }";
    let kinds = "{ separated = { between = \"commas\", fields = { text = \"note\", answer = { class = \"kind\" } } } }";
    let alike = "{ jsonl = { text = \"a\", pair = \"b\", answer = { score = [\"score\"] } } }";
    let settings = "learning_rate = 1e-2\nepochs = 12\nbatch = 8\ndropout = 0.0\n";
    let config = [
        "version = 5\n[vocabulary]\ncase = \"uncased\"\nfile = \"vocab.txt\"\n[encoder]\nfrom = \"fresh\"\nseed = 1\nhidden_size = 32\nnum_hidden_layers = 1\n\
         num_attention_heads = 2\nintermediate_size = 32\nmax_position_embeddings = 32\nhidden_dropout_prob = 0.0\nattention_probs_dropout_prob = 0.0\n",
        &set("tags", tags, "tags.tsv"),
        &set("kinds", kinds, "kinds.csv"),
        &set("alike", alike, "pairs.jsonl"),
        "[[recipes]]\nname = \"all\"\ntasks = [\"tags\", \"kinds\", \"alike\"]\nschedule = \"merged\"\n",
        settings,
        "then = { learning_rate = 1e-2, warmup = 0.1, epochs = 6, batch = 8, dropout = 0.0 }\n",
        "[finetune]\nseeds = [1, 2]\n",
        settings,
        "max_tokens = 16\npatience = { evaluations = 20 }\ncheckpoint_every = 3\n",
    ];
    write("sets.toml", &config.concat());
    folder.join("sets.toml")
}

fn engraft(verb: &[&str], folder: &Path, out: &str) -> Engraft {
    Engraft::own(verb, &folder.join("sets.toml"), &folder.join(out))
}

#[test]
fn data_are_prepared_as_the_released_code_does_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    // Some sentences of more words than a row has room for; most of them are for training.
    let tags = folder.join("tags.tsv");
    let longer = format!("pain\tO\n{}\n", "today\tO\n".repeat(9));
    let long = std::fs::read_to_string(&tags).unwrap().replace("pain\tO\n\n", &longer);
    base::whole::write_whole(&tags, long.as_bytes()).unwrap();
    let prepared =
        "finetune.quirks={ pairs = \"second_first\", train = \"train_and_dev\", long_sentences = \"drop\" }";
    let sets = [prepared, "finetune.max_tokens=8", "finetune.epochs=2", "recipes=[]"];
    let run =
        sets.iter().fold(engraft(&["run", "scores"], folder, "out"), |run, set| run.arg("--set").arg(set));
    run.ok();
    let train = |benchmark: &str| {
        let scores = json(folder.join(format!("out/finetune-base-{benchmark}-1/scores.json")));
        scores["train"].as_u64().unwrap()
    };
    // 36 for training and 12 for development.
    assert_eq!((train("kinds"), train("alike")), (48, 48));
    let ledger = std::fs::read_to_string(folder.join("out/ledger.jsonl")).unwrap();
    let dropped = 48 - train("tags");
    assert!(dropped > 2 && ledger.contains(&format!("\"too_long_to_train_on\":{dropped}")), "{dropped}");
    // Cut behind words outside entities, none is too long.
    let cut = "finetune.quirks={ train = \"train_and_dev\", long_sentences = \"drop\", behind_outside = 2 }";
    let out = tagged_with(folder, "cut", &[cut, "finetune.max_tokens=8", "finetune.epochs=1"]);
    // Pieces are what is shown, one behind the other.
    assert!(json(out.join("finetune-base-tags-1/scores.json"))["train"].as_u64() > Some(48));
    assert!(!std::fs::read_to_string(out.join("ledger.jsonl")).unwrap().contains("too_long_to_train_on"));
    let model = folder.join("out/finetune-base-alike-1/model");
    assert_eq!(json(model.join("task.json"))["pairs"], "second_first");
    // What is asked is turned round as what was trained on: `test.jsonl` has the model's own answers.
    let said = json_lines(folder.join("out/finetune-base-alike-1/test.jsonl")).swap_remove(0);
    let examples = json_lines(folder.join("out/benchmark-alike/examples.jsonl"));
    let example = examples.iter().find(|of| of["id"] == said["id"]).unwrap();
    let asked = folder.join("asked.jsonl");
    let object = serde_json::json!({"text": example["text"], "pair": example["pair"]}).to_string();
    base::whole::write_whole(&asked, object.as_bytes()).unwrap();
    let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
    let answer: Value = serde_json::from_str(&Engraft::plain(&verb, folder).ok()).unwrap();
    let (found, expected) = (answer["score"].as_f64().unwrap(), said["outputs"][0][0].as_f64().unwrap());
    assert!((found - expected).abs() < 1e-4, "{answer} {said}");
}

/// A fine-tuning on the tags alone with these settings; gives the output folder.
fn tagged_with(folder: &Path, out: &str, sets: &[&str]) -> PathBuf {
    let all = [&["recipes=[]", "finetune.on=[\"tags\"]", "finetune.seeds=[1]"][..], sets].concat();
    let run = engraft(&["run", "scores"], folder, out);
    all.iter().fold(run, |run, set| run.arg("--set").arg(set)).ok();
    folder.join(out)
}

#[test]
fn classes_of_the_released_codes_are_learned_scored_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    // Entities of several words, one of which has several subwords.
    let tags = folder.join("tags.tsv");
    let longer = std::fs::read_to_string(&tags)
        .unwrap()
        .replace("warfarin\tB-Drug\n", "warfarin\tB-Drug\nwarfarins\tI-Drug\n");
    base::whole::write_whole(&tags, longer.as_bytes()).unwrap();
    let vocabulary = folder.join("vocab.txt");
    let more = std::fs::read_to_string(&vocabulary).unwrap() + "##s\n";
    base::whole::write_whole(&vocabulary, more.as_bytes()).unwrap();
    let peng = "finetune.quirks={ tags = { others = \"later_and_special\" }, dropout = \"rows\", order = \"fixed_batches\" }";
    let mulyar = "finetune.quirks={ tags = { scheme = \"bilou\", others = \"special\" }, full_behind = 5, order = \"as_given\", \
                  padding = \"trained\", chosen_on = \"test\" }";
    let dropout = "finetune.dropout=0.1";
    let all = "finetune.subwords=\"all\"";
    let asked = folder.join("asked.txt");
    base::whole::write_whole(&asked, b"often warfarin warfarins fever\n").unwrap();
    for (out, sets, on_test) in [("peng", [peng, dropout], false), ("mulyar", [mulyar, all], true)] {
        let out = tagged_with(folder, out, &sets);
        let scores = json(out.join("finetune-base-tags-1/scores.json"));
        assert!(scores["test"]["value"].as_f64().unwrap() > 0.95, "{scores}");
        assert_eq!(scores.get("chosen_on"), on_test.then(|| Value::from("test")).as_ref());
        let looks = json_lines(out.join("finetune-base-tags-1/dev.jsonl"));
        let best = looks.iter().map(|line| line["score"].as_f64().unwrap()).fold(0.0, f64::max);
        let chosen = scores[if on_test { "test" } else { "dev" }]["value"].as_f64().unwrap();
        assert!((best - chosen).abs() < 1e-9, "{best} {scores}");
        let said = json_lines(out.join("finetune-base-tags-1/test.jsonl")).swap_remove(0);
        let outputs = said["outputs"].as_array().unwrap();
        assert_eq!(outputs[0].as_array().unwrap().len(), 6, "O, B, I and three; B, I, L, O, U and one");
        let table = std::fs::read_to_string(out.join("scores/scores.md")).unwrap();
        assert_eq!(table.contains("best of the looks at test"), on_test, "{table}");
        let model = out.join("finetune-base-tags-1/model").display().to_string();
        let verb = ["predict", &model, asked.to_str().unwrap()];
        let said = Engraft::plain(&verb, folder).ok();
        let lines = folder.join("asked.jsonl");
        base::whole::write_whole(&lines, b"{\"text\": \"often warfarin warfarins fever\"}\n").unwrap();
        // The other one hears the last subword, and decodes by which entity is open.
        if !on_test {
            at_home(Path::new(&model), &lines, &said);
        }
        let answer: Value = serde_json::from_str(&said).unwrap();
        let found: Vec<&str> =
            answer["entities"].as_array().unwrap().iter().map(|of| of["text"].as_str().unwrap()).collect();
        assert_eq!(found, ["warfarin warfarins"], "{answer}");
    }
    let refused = engraft(&["run", "scores"], folder, "no").set(peng).set(all).output();
    assert!(refused.text().contains("set finetune.subwords = \"first\""), "{}", refused.text());
    assert_ne!(refused.code(), Some(0));
}

/// Each task by itself answers in transformers as it does among the others.
fn exported_by_task(folder: &Path, model: &str) {
    for (task, line) in [
        ("tags", "{\"text\": \"often warfarin warfarins fever\"}\n"),
        ("kinds", "{\"text\": \"Often  Warfarin, after metformin fever\"}\n"),
        ("alike", "{\"text\": \"warfarin\", \"pair\": \"metformin\"}\n"),
    ] {
        let (lines, alone) = (folder.join(format!("{task}.jsonl")), folder.join(format!("alone-{task}")));
        base::whole::write_whole(&lines, line.as_bytes()).unwrap();
        let verb = ["export", model, "--task", task, "--to", "transformers"];
        let listed = Engraft::plain(&verb, folder).arg("--into").arg(&alone).ok();
        assert!(!listed.contains("note:") && !alone.join("task.json").exists(), "{listed}");
        let verb = ["predict", model, lines.to_str().unwrap(), "--task", task];
        let said: Value = serde_json::from_str(&Engraft::plain(&verb, folder).ok()).unwrap();
        at_home(&alone, &lines, &said["tasks"][task].to_string());
    }
    let verb = ["export", model, "--task", "none", "--to", "onnx", "--into", "none"];
    let refused = Engraft::plain(&verb, folder).output();
    assert!(
        refused.text().contains("was not fine-tuned on \"none\" but on tags, kinds, alike"),
        "{}",
        refused.text()
    );
}

#[test]
fn one_encoder_learns_several_sets_and_answers_all_in_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    engraft(&["run", "scores"], folder, "out").ok();
    let scores = json(folder.join("out/scores/scores.json"));
    let lines = scores.as_array().unwrap();
    let of = |benchmark: &str, how: &str| {
        lines.iter().find(|line| line["benchmark"] == benchmark && line["how"] == how).unwrap().clone()
    };
    for how in ["alone", "all", "all, then alone"] {
        let [tags, kinds, alike] = ["tags", "kinds", "alike"].map(|benchmark| of(benchmark, how));
        assert_eq!(tags["metric"], "entity_f1");
        assert!(tags["mean"].as_f64().unwrap() > 0.95, "{how}: {tags}");
        assert!(kinds["metric"] == "accuracy" && kinds["mean"].as_f64().unwrap() > 0.95, "{how}: {kinds}");
        assert!(alike["metric"] == "pearson" && alike["mean"].as_f64().unwrap() > 0.8, "{how}: {alike}");
        assert_eq!((&tags["train"], &tags["test"]), (&Value::from(36), &Value::from(12)));
        assert_eq!(tags["interval"].as_array().unwrap().len(), 2);
    }
    let table = std::fs::read_to_string(folder.join("out/scores/scores.md")).unwrap();
    assert_eq!(table.lines().count(), 2 + 9);
    assert!(!table.contains("best_look"), "models are chosen on the part dev");
    // An epoch shows every batch of every task, and each step moves the output of its task alone.
    let metrics = json_lines(folder.join("out/recipe-all-1/metrics.jsonl"));
    let first = &metrics[..15];
    let turns = |task: &str| first.iter().filter(|line| line["tasks"].get(task).is_some()).count();
    assert_eq!((turns("tags"), turns("kinds"), turns("alike")), (5, 5, 5));
    assert!(first.iter().all(|line| line["tasks"].as_object().unwrap().len() == 1));

    let asked = folder.join("asked.txt");
    base::whole::write_whole(&asked, "Often  Warfarin, after metformin fever\n".as_bytes()).unwrap();
    let model = folder.join("out/recipe-all-1/model").display().to_string();
    exported_by_task(folder, &model);
    let ask = |more: &[&str]| {
        let verb = [&["predict", &model, asked.to_str().unwrap()][..], more].concat();
        serde_json::from_str::<Value>(&Engraft::plain(&verb, folder).ok()).unwrap()
    };
    let said = ask(&[]);
    let entities = said["tasks"]["tags"]["entities"].as_array().unwrap();
    let places: Vec<(&Value, &Value, &Value)> =
        entities.iter().map(|of| (&of["text"], &of["start"], &of["end"])).collect();
    assert!(places.contains(&(&"Warfarin".into(), &7.into(), &15.into())), "{said}");
    assert!(said["tasks"]["kinds"]["class"].is_string() && said["tasks"].get("alike").is_none(), "{said}");
    let pairs = folder.join("pairs-asked.jsonl");
    base::whole::write_whole(&pairs, b"{\"text\": \"pain\", \"pair\": \"fever\"}\n").unwrap();
    let of_pair = Engraft::plain(&["predict", &model, pairs.to_str().unwrap()], folder).ok();
    let of_pair: Value = serde_json::from_str(&of_pair).unwrap();
    assert!(of_pair["tasks"]["alike"]["score"].is_number() && of_pair["tasks"].get("tags").is_none());
    let one = ask(&["--task", "kinds"]);
    assert_eq!(one["tasks"].as_object().unwrap().len(), 1);
    let wrong = Engraft::plain(&["predict", &model, asked.to_str().unwrap(), "--task", "x"], folder).output();
    assert_eq!(wrong.code(), Some(2));
    assert!(wrong.text().contains("not fine-tuned on \"x\" but on tags, kinds, alike"), "{}", wrong.text());
}

#[test]
fn tasks_have_rows_of_their_own_length_in_training_and_where_they_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    // Notes whose end no row has room for.
    let kinds = folder.join("kinds.csv");
    let longer = std::fs::read_to_string(&kinds).unwrap().replace("\",", " today after often helps today\",");
    base::whole::write_whole(&kinds, longer.as_bytes()).unwrap();
    let on_test = "finetune.quirks.chosen_on=test";
    let run = |verb| {
        let run = engraft(&[verb, "recipe-all-1"], folder, "out").set("recipes.all.epochs=10");
        run.set("finetune.max_tokens_of.kinds=8").set(on_test)
    };
    run("run").ok();
    let metrics = json_lines(folder.join("out/recipe-all-1/metrics.jsonl"));
    let of_kinds = metrics.iter().filter(|line| line["tasks"].get("kinds").is_some());
    assert!(of_kinds.map(|line| (&line["tokens"], &line["rows"])).any(|of| of == (&64.into(), &8.into())));
    // Each task's own best look stands beside the scores of the model with the best mean.
    let (scores, looks) = (
        json(folder.join("out/recipe-all-1/scores.json")),
        json_lines(folder.join("out/recipe-all-1/dev.jsonl")),
    );
    for task in ["tags", "kinds", "alike"] {
        let best = looks.iter().map(|look| look["tasks"][task].as_f64().unwrap()).fold(-1.0, f64::max);
        assert_eq!(scores[task]["test"]["others"]["best_look"].as_f64(), Some(best));
    }
    // Another length of a task that is not the first is another training.
    assert!(run("plan").ok().contains("up to date"));
    let other = run("plan").set("finetune.max_tokens_of.kinds=9").ok();
    assert!(
        other.lines().any(|line| line.starts_with("recipe-all-1") && line.contains("will run")),
        "{other}"
    );
    let model = folder.join("out/recipe-all-1/model");
    let file = json(model.join("task.json"));
    let lengths: Vec<&Value> = file["tasks"].as_array().unwrap().iter().map(|of| &of["max_tokens"]).collect();
    assert_eq!((lengths, &file["max_tokens"]), (vec![&Value::Null, &8.into(), &Value::Null], &16.into()));
    let ask = |text: &str| {
        let asked = folder.join("asked.txt");
        base::whole::write_whole(&asked, text.as_bytes()).unwrap();
        let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
        serde_json::from_str::<Value>(&Engraft::plain(&verb, folder).ok()).unwrap()["tasks"].clone()
    };
    // Two rows of words, of 14 and 3; the whole text's row has the first six.
    let first = "pain after fever helps often today";
    let long = ask(&format!("{first} today after helps often pain pain fever today helps warfarin pain"));
    let entities = long["tags"]["entities"].as_array().unwrap();
    assert!(entities.iter().any(|of| of["text"] == "warfarin"), "{long}");
    let share = |of: &Value| of["kinds"]["shares"]["pain"].as_f64().unwrap();
    assert!((share(&long) - share(&ask(first))).abs() < 1e-5, "{long}");
}

#[test]
fn a_recipe_that_was_killed_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let stage = ["run", "recipe-all-1"];
    engraft(&stage, folder, "whole").arg("--jobs").arg("1").ok();
    let killed = engraft(&stage, folder, "killed").kill_at("recipe-all-1:working:9").output();
    assert_ne!(killed.code(), Some(0), "{}", killed.text());
    engraft(&stage, folder, "killed").ok();
    assert_same(&artifacts(&folder.join("whole")), &artifacts(&folder.join("killed")), "after a kill");
}

#[test]
fn what_cannot_be_meant_stops_before_anything_runs_and_bad_files_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let refused = |sets: &[&str]| {
        let run = engraft(&["run", "scores"], folder, "out");
        let ran = sets.iter().fold(run, |engraft, set| engraft.set(set)).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    let graph = "split={ parts = { ratio = { train = 0.9, valid = 0.1, test = 0.0, seed = 1, cover = \"train\" } }, together = \"inverse\", on_leak = \"fail\" }";
    assert!(refused(&[graph]).contains("[split] is about a graph, and the config has none"));
    assert!(refused(&["finetune.max_tokens=4"]).contains("max_tokens is 4, expected at least 8"));
    let text = refused(&["finetune.max_tokens_of.kinds=4"]);
    assert!(text.contains("max_tokens_of.kinds is 4, expected at least 8"), "{text}");
    let text = refused(&["finetune.max_tokens_of.x=8"]);
    assert!(text.contains("max_tokens_of.x: there is no such benchmark; [[benchmarks]] has tags"), "{text}");
    let text =
        refused(&["vocabulary={ case = \"uncased\", train = { size = 90, min_frequency = 1, text = [] } }"]);
    assert!(
        text.contains("[vocabulary.train] learns the names of a graph, but the config has none"),
        "{text}"
    );
    let failed = |file: &str, content: &str| {
        base::whole::write_whole(&folder.join(file), content.as_bytes()).unwrap();
        let ran = engraft(&["run", "scores"], folder, "out").output();
        assert!(ran.code().is_some_and(|code| code != 0), "{}", ran.text());
        made(folder);
        ran.text()
    };
    let text = failed("kinds.csv", "note,kind\nfever,\n");
    assert!(text.contains("kinds.csv: line 2: found nothing as \"kind\", expected a class"), "{text}");
    let text = failed("tags.tsv", "fever\tX-Drug\n");
    assert!(text.contains("tags.tsv: line 1") && text.contains("X-Drug"), "{text}");
    let text = refused(&[
        "benchmarks=[{ name = \"x\", set = { format = { tagged = { format = { text = \"line\" }, unit = \"document\" } }, train = [\"a.txt\"], drawn = { seed = 1, dev = 0.1, mask_search = 0.0, test = 0.1 }, licence = \"free\" } }]",
        "recipes=[]",
    ]);
    assert!(text.contains("benchmarks.x.set.format: tagged.format marks no entities"), "{text}");
    let text = failed("pairs.jsonl", "{\"a\": \"x\", \"b\": \"y\", \"score\": 1}\n");
    assert!(text.contains("benchmarks.alike.set: no text is for dev, of 1"), "{text}");
}
