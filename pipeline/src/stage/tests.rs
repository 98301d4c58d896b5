//! Tests of the stages that configs describe: what each training begins with, and that no number outside its range gets as far as a stage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use store::options::Options;

use super::*;
use crate::config;
use crate::config::resolved::Origins;

/// Every kind of stage but those of `[graft]` and `[lama]`.
const WHOLE: &str = include_str!("../../../tests/fixtures/whole.toml");

fn remotes() -> Arc<remote::Remotes> {
    Arc::new(remote::Remotes::new(Options::new(Path::new("/cache"))))
}

/// What `plan` does before it looks at a file.
fn planned(file: &Path, sets: &[&str]) -> anyhow::Result<Vec<Box<dyn Stage>>> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let config = config::load(Some(file), &sets)?;
    all(&config, Some(Path::new("/data")), &remotes())
}

fn refused(file: &Path, sets: &[&str]) -> String {
    format!("{:#}", planned(file, sets).err().unwrap())
}

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

fn whole(folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("whole.toml");
    base::whole::write_whole(&file, WHOLE.as_bytes()).unwrap();
    file
}

/// What fine-tunings, recipes and trials begin with.
fn begun(stages: &[Box<dyn Stage>]) -> BTreeSet<String> {
    let of_tasks = |name: &str| ["finetune-", "recipe-", "trial-"].iter().any(|kind| name.starts_with(kind));
    let tried = stages.iter().filter(|stage| of_tasks(stage.name()));
    tried.filter_map(|stage| stage.begins_with()).collect()
}

#[test]
fn silent_01_fine_tuning_begins_with_what_was_trained_last_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = whole(&folder);
    let with = |sets: &[&str]| begun(&planned(&file, sets).unwrap());
    assert_eq!(with(&[]), ["retrain".to_owned()].into());
    assert_eq!(with(&["finetune.from=pretrain"]), ["pretrain".to_owned()].into());
    assert_eq!(with(&["finetune.from=encoder"]), ["encoder".to_owned()].into());
    let stages = planned(&file, &[]).unwrap();
    let inputs = stages.iter().find(|stage| stage.name() == "finetune-base-questions-1").unwrap().inputs();
    assert!(inputs.contains(&crate::engine::stage::Input::artifact("retrain")), "{inputs:?}");
    let from = |name: &str| stages.iter().find(|stage| stage.name() == name).unwrap().begins_with();
    assert_eq!(from("pretrain").as_deref(), Some("encoder"));
    assert_eq!(from("retrain").as_deref(), Some("pretrain"));
    assert_eq!((from("scores"), from("recipe-mt-1").as_deref()), (None, Some("retrain")));
}

/// What each shipped config fine-tunes: the encoder of `[encoder]`, or what `[pretrain]` makes of it; with `[graft]`, what its rows say.
#[test]
fn silent_01_every_shipped_config_begins_with_what_it_means() {
    let mut found = BTreeMap::new();
    for file in shipped() {
        let stages = planned(&file, &[]).unwrap();
        let begun = begun(&stages).into_iter().collect::<Vec<_>>().join(" ");
        if !begun.is_empty() {
            found.insert(file.file_stem().unwrap().to_string_lossy().into_owned(), begun);
        }
    }
    let rows = "retrain-forward retrain-hard retrain-no_mask retrain-scratch retrain-soft";
    let graft = format!("pretrain {rows}");
    let minilm = format!("checkpoint minilm {rows}");
    let recipes = |base: &str| format!("{base} recipe-mt-bert-1 recipe-mt-bert-2 recipe-mt-bert-3");
    let wanted: BTreeMap<String, String> = [
        ("graft", graft),
        ("kam-bert", "checkpoint minilm".to_owned()),
        ("label-embedding", "checkpoint minilm".to_owned()),
        ("minilm", minilm),
        ("mt-bert", recipes("checkpoint minilm")),
        ("mt-clinical", "checkpoint minilm".to_owned()),
        ("sets", "checkpoint minilm".to_owned()),
        ("world-kam-bert", "pretrain".to_owned()),
        ("world-label-embedding", "pretrain".to_owned()),
        ("world-mt-bert", recipes("pretrain")),
        ("world-mt-clinical", "pretrain".to_owned()),
    ]
    .map(|(name, begun)| (name.to_owned(), begun))
    .into();
    assert_eq!(found, wanted);
    let graft = shipped().into_iter().find(|file| file.ends_with("graft.toml")).unwrap();
    let told = refused(&graft, &["finetune.from=encoder"]);
    assert!(told.contains("each row says what it begins with"), "{told}");
}

/// A setting that is a number, as `--set` names it, and by the names of its tables alone.
struct Leaf {
    key: String,
    general: String,
    whole: bool,
}

fn leaves(value: &toml::Value, (key, general): (&str, &str), found: &mut Vec<Leaf>) {
    let join =
        |above: &str, name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                leaves(value, (&join(key, name), &join(general, name)), found);
            }
        }
        toml::Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                leaves(value, (&join(key, &place.to_string()), general), found);
            }
        }
        toml::Value::Integer(_) | toml::Value::Float(_) => {
            found.push(Leaf { key: key.to_owned(), general: general.to_owned(), whole: value.is_integer() });
        }
        _ => {}
    }
}

/// Whole numbers that may be any; of them no time and no memory depends on the number itself.
const ANY: [&str; 29] = [
    "checkpoint_every",
    "counts.what.min_count",
    "every",
    "evaluations",
    "finetune.search.finetune_seeds",
    "finetune.seeds",
    "keep_per_layer",
    "maps.entities.dictionary.max_words",
    "maps.entities.dictionary.min_letters",
    "maps.entities.dictionary.upper_case",
    "maps.phrases.neighbours.max_words",
    "maps.phrases.neighbours.min_count",
    "maps.size.bytes",
    "maps.size.rows",
    "max_steps",
    "min_characters",
    "min_relation_count",
    "max_examples.dev",
    "max_examples.mask_search",
    "max_examples.test",
    "max_examples.train",
    "pmi.min_count",
    "pmi.min_pair_count",
    "pmi.top_k",
    "seed",
    "shards.size.bytes",
    "split.suspect.support",
    "vocabulary.train.min_frequency",
    "warmup_steps",
];

/// Numbers that may be 0.
const NOTHING: [&str; 42] = [
    "accept",
    "alpha",
    "auxiliary",
    "beta1",
    "beta2",
    "mask",
    "detect_inverses",
    "dev",
    "dropout",
    "examples",
    "finetune.search.warmup",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "hubs",
    "damping",
    "lambda",
    "level",
    "mask_search",
    "masked_lm",
    "max_reversed",
    "max_unfit",
    "max_untexted",
    "max_unused_texts",
    "max_srl",
    "min_share",
    "min_tfidf",
    "min_probability",
    "object",
    "random",
    "relation",
    "sample",
    "subject",
    "tau",
    "terms",
    "test",
    "threshold",
    "tolerance",
    "triplet",
    "valid",
    "warmup",
    "weight_decay",
    "windows",
];

/// Keys whose last parts are these; 0 is a number of them too.
fn is(general: &str, of: &[&str]) -> bool {
    of.iter().any(|key| general == *key || general.ends_with(&format!(".{key}")))
}

#[test]
fn silent_25_no_number_outside_its_range_gets_as_far_as_a_stage() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = shipped();
    files.push(whole(&folder));
    let (mut tried, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        planned(&file, &[]).unwrap();
        let whole = config::load(Some(&file), &[]).unwrap().resolved(Origins::Unsaid);
        let table: toml::Table = whole.parse().unwrap();
        let mut found = vec![];
        leaves(&toml::Value::Table(table), ("", ""), &mut found);
        for Leaf { key, general, whole } in found {
            let any = is(&general, &ANY);
            let none = is(&general, &NOTHING) || (whole && any);
            let mut impossible = vec!["nan", "inf", "-inf", "true", "\"x\"", "[]"];
            if whole {
                impossible.extend(["-1", "0.5", "9223372036854775808"]);
                impossible.extend((!any).then_some("9223372036854775807"));
            } else {
                impossible.extend((!is(&general, &["min_tfidf", "clip_norm"])).then_some("1e308"));
                impossible.extend((!is(&general, &["min_tfidf", "threshold"])).then_some("-0.5"));
            }
            impossible.extend((!none).then_some("0"));
            for value in impossible {
                let set = format!("{key}={value}");
                // An impossible number that once got through, and no key twice.
                if tried.insert((general.clone(), value)) && planned(&file, &[&set]).is_ok() {
                    silent.insert(format!("{general} = {value}"));
                }
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(tried.len() > 1000, "{}", tried.len());
}

#[test]
fn silent_25_a_refusal_names_the_key_the_value_the_range_and_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = whole(&folder);
    let line = |text: &str| 1 + WHOLE.lines().position(|line| line.starts_with(text)).unwrap();
    let told = |sets: &[&str]| refused(&file, sets);
    assert_eq!(
        told(&["encoder.num_attention_heads=3"]),
        "--set encoder.num_attention_heads=3: encoder.num_attention_heads is 3, expected a divisor of hidden_size, which is 32; change one of them"
    );
    assert!(
        told(&["retrain.adamw.beta2=-1.0"])
            .contains("retrain.adamw.beta2 is -1, expected at least 0 and below 1")
    );
    assert!(
        told(&["pretrain.task_heads.dropout=255.0"]).contains("pretrain.task_heads.dropout is 255, expected")
    );
    assert!(told(&["world.scale=1000.0"]).contains("world.scale is 1000, expected from 0.01 to 500"));
    assert!(told(&["recipes.mt.batch=0"]).contains("recipes.mt.batch is 0, expected at least 1"));
    assert!(told(&["finetune.max_tokens=300"]).contains("but the encoder has 256 positions"));
    assert!(told(&["finetune.max_steps=1"]).contains("finetune.max_steps is 1, and recipes."));
    let broken = WHOLE.replace("tolerance = 1e-9", "tolerance = -1e-9");
    base::whole::write_whole(&file, broken.as_bytes()).unwrap();
    let wanted =
        format!("whole.toml:{}:47: summary.graph.rank.tolerance is -1e-9, expected", line("graph = { hubs"));
    assert!(told(&[]).contains(&wanted), "{} {wanted}", told(&[]));
    let broken =
        WHOLE.replace("tasks = [\"questions\", \"entailed\"]", "tasks = [\"questions\", \"questions\"]");
    base::whole::write_whole(&file, broken.as_bytes()).unwrap();
    assert!(
        told(&[]).contains(&format!("whole.toml:{}:1: recipes.mt.tasks has", line("tasks = [\"questions\""))),
        "{}",
        told(&[])
    );
}
