//! What `run` would refuse for a setting, `plan` refuses before it: thousands of settings are changed, and those that `plan` accepts are run on little
//! worlds with tiny models. Only data may have the last word, in the phrases listed here.
mod bases;
mod mutate;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use base::cancel::CancelToken;
use base::rng::RngKey;
use engraft::in_process::{Became, Trial};

use bases::{Base, bases};
use mutate::{Mutation, mutations};

/// What a run may fail with although `plan` accepted its settings, and why only the data tell.
const DATA: [(&str, &str); 25] = [
    ("which never occurs", "which types, relations and attributes a release of UMLS has"),
    ("the file has no relation", "which relations an ontology has"),
    ("expected a column named", "which columns a file has"),
    ("expected no more than the first line has", "how many columns a file has"),
    ("expected a finite number, or nothing", "what stands in a column"),
    ("expected 1 or 0", "what stands in a column"),
    (": line 1: found", "what a file looks like: it is of another format"),
    (": line 1, column", "as before"),
    ("is neither beside it nor in", "which files lie beside one"),
    ("is there, expected the report's disorders", "as before"),
    ("which is what the format", "which files a folder has"),
    ("expected LAMA's folder `data`", "which corpora were unpacked"),
    ("no text is for", "a share of so few texts is none"),
    ("no example is for", "a share of so few patients is none"),
    ("no query is for", "a share of so few documents is none"),
    ("that means nothing is none of", "which classes a set has"),
    ("has no sample, so no weight makes it count", "which classes a part has"),
    ("more different words than counts.what.max_distinct lets pass", "how long sentences are"),
    ("average precision is undefined", "whether a part has a sample of a class"),
    ("keywords.", "which classes a set has, and which words a vocabulary"),
    ("no term is left", "which names a graph has"),
    ("the head mask keeps every head", "which heads a search keeps"),
    ("the graph has one relation only", "which relations a release of UMLS has"),
    ("which the scheme does not have", "how a file's tags are written"),
    ("if `kinds` names some, the files have none of these", "which kinds of entities a file has"),
];

/// Settings of which large values are meant but take long or much memory: those are planned and not run.
const COSTLY: [&str; 12] = [
    "encoder.hidden_size",
    "encoder.intermediate_size",
    "encoder.max_position_embeddings",
    "encoder.num_attention_heads",
    "encoder.num_hidden_layers",
    "epochs",
    "finetune.search.trials",
    "finetune_seeds",
    "max_steps",
    "per_triple",
    "ranking.negatives",
    "world.scale",
];
/// Values up to this are run all the same.
const CHEAP: f64 = 9.0;

/// Settings that depend on each other, by base.
const TOGETHER: [(&str, &[&str]); 14] = [
    ("default", &["encoder.hidden_size=12", "encoder.num_attention_heads=5"]),
    ("default", &["encoder.hidden_size=2", "encoder.num_attention_heads=2"]),
    ("default", &["shards.layout.limits.node=200", "encoder.max_position_embeddings=64"]),
    ("default", &["encoder.max_position_embeddings=8"]),
    ("default", &["vocabulary.train.size=6", "encoder.max_position_embeddings=512"]),
    ("default", &["retrain.warmup_steps=1000000", "retrain.max_steps=1"]),
    ("default", &["retrain.stream.batching={ items = 1000000 }", "shards.size={ rows = 1 }"]),
    ("whole", &["pretrain.stream.batching={ items = 1000000 }"]),
    ("whole", &["finetune.batch=1000000", "recipes.mt.batch=1000000"]),
    ("whole", &["finetune.max_tokens=300"]),
    ("whole", &["finetune.max_tokens=240", "maps.limits.auxiliary=16"]),
    ("whole", &["shards.masked_lm.files.max_tokens=300"]),
    ("default", &["world.scale=1000"]),
    ("default", &["retrain.adamw.beta1=2"]),
];

/// Which changes are tried.
enum Tried {
    /// A part of them, chosen by a seed.
    Part,
    /// All of them, as `just nightly` does.
    All,
    /// Those that have one of these texts.
    With(Vec<String>),
}

#[expect(clippy::disallowed_methods, reason = "how nightly runs ask for all settings")]
fn tried() -> Tried {
    match std::env::var("ENGRAFT_SETTINGS") {
        Err(_) => Tried::Part,
        Ok(settings) if settings == "all" => Tried::All,
        Ok(settings) => Tried::With(settings.split(';').map(str::to_owned).collect()),
    }
}

/// So many changes are planned, and of those that are accepted so many run, where not all are.
const PLANNED: usize = 2_200;
const RUN: usize = 24;
/// A run that takes longer is a fault of this test: its base is too large.
const LONGEST: Duration = Duration::from_secs(60);

fn until(limit: Duration) -> CancelToken {
    let begun = Instant::now();
    CancelToken::when(move || begun.elapsed() > limit)
}

/// A base with other settings.
fn with(base: &Base, sets: &[String]) -> Trial {
    let trial = base.trial.clone();
    Trial { sets: [&trial.sets[..], sets].concat(), ..trial }
}

fn is_costly(mutation: &Mutation) -> bool {
    let of =
        COSTLY.iter().any(|key| mutation.general == *key || mutation.general.ends_with(&format!(".{key}")));
    of && mutation.value().parse::<f64>().is_ok_and(|value| value > CHEAP)
}

/// What is asked: sets over a base.
struct Case {
    base: usize,
    sets: Vec<String>,
    is_costly: bool,
}

fn cases(bases: &[Base]) -> Vec<Case> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.schema.json");
    let schema: serde_json::Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let (mut seen, mut cases) = (BTreeSet::new(), Vec::new());
    for (place, base) in bases.iter().enumerate() {
        let config: toml::Table = base.trial.resolved().unwrap().parse().unwrap();
        for mutation in mutations(&config, &schema) {
            if seen.insert((mutation.general.clone(), mutation.value().to_owned())) {
                let is_costly = is_costly(&mutation);
                cases.push(Case { base: place, sets: vec![mutation.set], is_costly });
            }
        }
    }
    for (name, sets) in TOGETHER {
        let base = bases.iter().position(|base| base.name == name).unwrap();
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        cases.push(Case { base, sets, is_costly: false });
    }
    cases
}

/// So many of some cases, chosen by a seed, those of a base together.
fn some(mut cases: Vec<Case>, count: usize) -> Vec<Case> {
    cases.sort_by_key(|case| RngKey::new(23).named(&case.sets.concat()).below(u64::MAX));
    cases.truncate(count);
    cases.sort_by_key(|case| case.base);
    cases
}

/// What a run of `case` fails with, if that is for its settings.
fn fault(bases: &[Base], case: &Case) -> Option<String> {
    let base = &bases[case.base];
    let began = Instant::now();
    let became = with(base, &case.sets).run(&[], until(LONGEST));
    let said = format!("{}: {}", base.name, case.sets.join(" "));
    let became = match became {
        Ok(became) => became,
        Err(error) => return Some(format!("{said}: {error:#}")),
    };
    let failed = became.iter().find_map(|(stage, of)| match of {
        Became::Failed(error) => Some(format!("{stage}: {error}")),
        _ => None,
    });
    println!("{:.1} s {said} {}", began.elapsed().as_secs_f64(), failed.as_deref().unwrap_or_default());
    let is_data = |error: &String| DATA.iter().any(|(phrase, _)| error.contains(phrase));
    let not_made = became.values().any(|of| *of == Became::NotMade);
    match failed {
        Some(error) if is_data(&error) => None,
        Some(error) => Some(format!("{said}: {error}")),
        None if not_made => Some(format!("{said}: takes longer than {} s", LONGEST.as_secs())),
        None => None,
    }
}

#[test]
fn what_run_refuses_for_settings_plan_refuses_before() {
    let folder = tempfile::tempdir().unwrap();
    let bases = bases(folder.path());
    let began = Instant::now();
    let all = cases(&bases);
    assert!(all.len() > PLANNED, "{}", all.len());
    let tried = tried();
    let cases = match &tried {
        Tried::Part => some(all, PLANNED),
        Tried::All => all,
        Tried::With(texts) => {
            let has = |case: &Case| texts.iter().any(|text| case.sets.iter().any(|set| set.contains(text)));
            all.into_iter().filter(has).collect()
        }
    };
    for base in &bases {
        let became =
            base.trial.run(&[], until(LONGEST)).unwrap_or_else(|error| panic!("{}: {error:#}", base.name));
        assert!(became.values().all(|of| *of == Became::Made), "{}: {became:#?}", base.name);
        println!("{:.1} s: {} is made", began.elapsed().as_secs_f64(), base.name);
    }
    let of_cases = cases.len();
    let accepted = cases.into_iter().filter(|case| with(&bases[case.base], &case.sets).plan().is_ok());
    let accepted: Vec<Case> = accepted.collect();
    println!("{:.1} s: {} of {of_cases} are accepted", began.elapsed().as_secs_f64(), accepted.len());
    let mut run: Vec<Case> = accepted.into_iter().filter(|case| !case.is_costly).collect();
    if matches!(tried, Tried::Part) {
        run = some(run, RUN);
    }
    let mut faults = Vec::new();
    for case in run {
        faults.extend(fault(&bases, &case));
        // What it replaced is put back, so that the next one finds everything but what it changes.
        let _ = bases[case.base].trial.run(&[], until(LONGEST));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
