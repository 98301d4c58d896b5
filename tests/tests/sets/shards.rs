//! Tasks of shards beside sets in one recipe.

use engraft_tests::{artifacts, assert_same, json, json_lines};

use super::engraft;

/// A recipe of a set and of tasks of shards, with every setting of trainings that is not usual.
const WITH_SHARDS: &str = r#"
version = 5
extends = "world"
world.scale = 0.3
vocabulary.train.size = 600
compute.recompute = "layers"

[shards]
tasks = ["relation", "masked_lm", "synonyms"]
items_per_group = 50
masked_lm.files = { paths = ["world:text"], format.text = "paragraph" }

[encoder]
from = "fresh"
hidden_size = 16
num_hidden_layers = 2
num_attention_heads = 4
intermediate_size = 32

[[benchmarks]]
name = "questions"
set = { format.trec.classes = "coarse", train = ["world:sets/questions.label"], drawn = { dev = 0.2, test = 0.2 }, licence = "free" }

[finetune]
on = []
epochs = 1
checkpoint_every = 2
accumulate = 2
max_steps = 20
schedule = "cosine"
optimiser.kind = "adamax"
hidden_dropout = 0.1
attention_dropout = 0.2
patience = { every = 3, measure = "macro_f1", evaluations = 30 }
max_examples = { train = 40, dev = 20, test = 20 }

[[recipes]]
name = "beside"
tasks = ["questions"]
shards = ["relation", "masked_lm", "synonyms"]
schedule = { round_robin = "paper" }
weights = { masked_lm = 0.5 }
batch_of = { masked_lm = 6, relation = 8 }
batch = 4
"#;

#[test]
fn tasks_of_shards_take_turns_with_a_set_and_a_killed_recipe_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    base::whole::write_whole(&folder.join("sets.toml"), WITH_SHARDS.as_bytes()).unwrap();
    engraft(&["run", "recipe-beside-1"], folder, "out").ok();
    let stage = folder.join("out/recipe-beside-1");
    let steps = json_lines(stage.join("metrics.jsonl"));
    for task in ["questions", "relation", "masked_lm", "synonyms"] {
        assert!(steps.iter().any(|step| step["tasks"][task]["accuracy"].is_number()), "{task}");
    }
    assert!(steps.len() == 20 && steps.iter().any(|step| step["tasks"].as_object().unwrap().len() == 2));
    let looks = json_lines(stage.join("dev.jsonl"));
    let at: Vec<u64> = looks.iter().map(|look| look["step"].as_u64().unwrap()).collect();
    assert_eq!(at, [3, 6, 9, 12, 15, 18, 20]);
    let outputs = json(stage.join("model/outputs.json"));
    assert_eq!(outputs["outputs"]["tasks"].as_array().unwrap().len(), 4);
    assert_eq!(json(stage.join("model/task.json"))["tasks"].as_array().unwrap().len(), 1);
    // What was learned of masked texts is there under published names, and the rates of training in the sizes.
    let weights = std::fs::read(stage.join("model/model.safetensors")).unwrap();
    let names = safetensors::SafeTensors::deserialize(&weights).unwrap();
    assert!(names.tensor("cls.predictions.transform.dense.weight").is_ok());
    assert_eq!(json(stage.join("model/config.json"))["attention_probs_dropout_prob"], 0.2);
    let killed = engraft(&["run", "recipe-beside-1"], folder, "killed").kill_at("recipe-beside-1:working:12");
    assert_eq!(killed.output().code(), None);
    engraft(&["run", "recipe-beside-1"], folder, "killed").ok();
    assert_same(&artifacts(&folder.join("out")), &artifacts(&folder.join("killed")), "killed");
    let refused = |set: &str| engraft(&["plan"], folder, "no").set(set).output().text();
    let text = refused(r#"recipes.beside.shards=["relation", "masked_lm", "tagging"]"#);
    assert!(text.contains("recipes.beside.shards has \"tagging\", but shards.tasks has"), "{text}");
    let text = refused("finetune.patience.measure=\"pearson\"");
    assert!(text.contains("finetune.patience.measure is \"pearson\", which questions does not have, expected one of accuracy"), "{text}");
}

/// Texts and tags, and no graph.
const TEXTS: &str = r#"
version = 5
vocabulary.file = "vocab.txt"

[encoder]
from = "fresh"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 32

[shards]
tasks = ["masked_lm", "tagging"]
items_per_group = 20
masked_lm.files = { paths = ["texts.txt"], format.text = "line" }
tagging.files = { paths = ["tags.tsv"], format.conll = { scheme = "bio", separator = "tab" } }

[pretrain]
epochs = 20
learning_rate = 1e-2
warmup_steps = 1
alphas = { masked_lm = 1, tagging = 1 }
stream.batching.items = 20
checkpoint_every = 10
"#;

#[test]
fn texts_alone_are_learned_without_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    super::made(folder);
    let text: String = (0..60).map(|i| format!("{} helps after fever\n", super::DRUGS[i % 4])).collect();
    base::whole::write_whole(&folder.join("texts.txt"), text.as_bytes()).unwrap();
    base::whole::write_whole(&folder.join("sets.toml"), TEXTS.as_bytes()).unwrap();
    let killed = engraft(&["run"], folder, "out").kill_at("pretrain:working:15").output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    engraft(&["run"], folder, "out").ok();
    engraft(&["run"], folder, "whole").ok();
    assert_same(&artifacts(&folder.join("out")), &artifacts(&folder.join("whole")), "after a kill");
    let stages: Vec<String> =
        json_lines(folder.join("out/ledger.jsonl")).iter().map(|line| line["stage"].to_string()).collect();
    for of_graph in ["triples", "split", "audit"] {
        assert!(!stages.contains(&format!("{of_graph:?}")), "{stages:?}");
    }
    let steps = json_lines(folder.join("out/pretrain/metrics.jsonl"));
    for task in ["masked_lm", "tagging"] {
        let losses: Vec<f64> = steps.iter().filter_map(|step| step["tasks"][task]["loss"].as_f64()).collect();
        assert!(losses[losses.len() - 1] < 0.7 * losses[0], "{task}: {losses:?}");
    }
    let outputs = json(folder.join("out/pretrain/model/outputs.json")).to_string();
    assert!(outputs.contains("masked_lm") && !outputs.contains("relation"), "{outputs}");
    let readme = std::fs::read_to_string(folder.join("out/shards/README.md")).unwrap();
    assert!(readme.contains("Texts as encoded training samples") && !readme.contains("relation"), "{readme}");
    let croissant = std::fs::read_to_string(folder.join("out/shards/croissant.json")).unwrap();
    assert!(
        croissant.contains("\"Texts as 120 encoded") && !croissant.contains("names no source"),
        "{croissant}"
    );
    let refused = |set: &str| {
        let ran = engraft(&["plan"], folder, "out").set(set).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        ran.text()
    };
    assert!(
        refused("shards.tasks=[\"relation\", \"masked_lm\", \"tagging\"]")
            .contains("shards.tasks has tasks that are made of a graph")
    );
    assert!(refused("rank={}").contains("[rank] asks for triples of a graph, but the config has none"));
    assert!(
        refused("pretrain.patience={}")
            .contains("pretrain.patience looks at samples of the part `valid`, and tasks on texts have none")
    );
    let none = refused("shards.masked_lm.files.valid=0.95");
    assert!(none.contains("shards.masked_lm.files.valid is 0.95, expected from 0 to 0.9"), "{none}");
    assert!(refused("retrain={}").contains("retrain.alphas.subject is 1, but shards.tasks has no subject"));
}

#[test]
fn texts_that_are_held_out_say_when_a_pretraining_stops() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    super::made(folder);
    // Every text twice: both are learnt from, or neither is.
    let text = |i: usize| format!("{} helps {}after fever\n", super::DRUGS[i % 4], "helps ".repeat(i % 15));
    let texts: String = (0..120).map(text).collect();
    base::whole::write_whole(&folder.join("texts.txt"), texts.as_bytes()).unwrap();
    base::whole::write_whole(&folder.join("sets.toml"), TEXTS.as_bytes()).unwrap();
    let run = |out: &str| {
        engraft(&["run"], folder, out)
            .set("shards.masked_lm.files.valid=0.2")
            .set("pretrain.patience={ every = 4, evaluations = 2, measure = \"masked_lm.loss\" }")
            .set("pretrain.checkpoint_every=3")
    };
    let killed = run("out").kill_at("pretrain:working:9").output();
    assert_eq!(killed.code(), None, "{}", killed.text());
    run("out").ok();
    run("whole").ok();
    assert_same(&artifacts(&folder.join("out")), &artifacts(&folder.join("whole")), "after a kill");
    let index = json(folder.join("out/shards/index.json"));
    let tasks = index["tasks"].as_array().unwrap();
    let items = |task: &str, part: usize| {
        let of = tasks.iter().find(|of| of["task"] == task).unwrap();
        (of["parts"][part]["part"].clone(), of["parts"][part]["items"].as_u64())
    };
    let [(train, shown), (valid, held_out)] = [0, 1].map(|part| items("masked_lm", part));
    assert_eq!((train, valid), ("train".into(), "valid".into()));
    let (shown, held_out) = (shown.unwrap(), held_out.unwrap());
    assert!(shown + held_out == 120 && (10..40).contains(&held_out), "{shown} and {held_out}");
    assert_eq!(held_out % 2, 0, "equal texts stay together");
    assert_eq!((items("tagging", 0).0, items("tagging", 1).1), ("train".into(), None));
    let looks = json_lines(folder.join("out/pretrain/held_out.jsonl"));
    let losses: Vec<f64> = looks.iter().map(|look| look["loss"].as_f64().unwrap()).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(losses.len() > 1 && least < losses[0], "{losses:?}");
    assert!(
        looks.iter().all(|look| look["tasks"].as_object().unwrap().keys().eq(["masked_lm"])),
        "{looks:?}"
    );
    let ended = json(folder.join("out/pretrain/training.json"));
    assert_eq!(ended["best"]["loss"].as_f64(), Some(least), "{ended}");
    let none = engraft(&["run", "shards"], folder, "few").set("shards.masked_lm.files.valid=1e-9").output();
    assert!(
        none.text().contains("by which none of 120 documents comes to the part `valid`: raise it"),
        "{}",
        none.text()
    );
}

#[test]
fn shards_of_texts_do_not_read_a_graph_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let config = WITH_SHARDS.split("[[benchmarks]]").next().unwrap();
    let config = config.replace("\"relation\", \"masked_lm\", \"synonyms\"", "\"masked_lm\"");
    base::whole::write_whole(&folder.path().join("sets.toml"), config.as_bytes()).unwrap();
    let plan = engraft(&["plan", "--graph", "--json"], folder.path(), "out").ok();
    let stages: Vec<serde_json::Value> = plan
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shards = stages.iter().find(|stage| stage["stage"] == "shards").unwrap().to_string();
    assert!(!shards.contains("split") && shards.contains("vocabulary"), "{shards}");
    // Who asks for triples reads the graph all the same.
    let ranked = engraft(&["run", "rank"], folder.path(), "out")
        .set("rank={ by = \"similarity\", from = \"encoder\", max_triples = 5, classification = false }")
        .set("split.parts.ratio={}");
    ranked.ok();
    assert!(json(folder.path().join("out/rank/rank.json"))["triples"] == 5);
}
