//! What some settings are where they are left out, because others say so.

use toml::{Table, Value as Toml};

/// Settings that fine-tunings of single benchmarks and recipes take from `[finetune]` where they have none of their own.
const SHARED: [&str; 5] = ["learning_rate", "warmup", "epochs", "batch", "dropout"];

/// What `[pretrain]` has that `[retrain]` has otherwise: it trains on texts, not on triples.
const PRETRAIN: &str = r#"
[pretrain]
alphas = { subject = 0.0, object = 0.0, relation = 0.0, triplet = 0.0, masked_lm = 1.0 }
task_heads = { entity = "masked_lm" }
stream = { schedule = "merged" }
"#;

/// The weights that [retrain] has where it states no others: one that is stated leaves the others.
const RETRAIN: &str = "
[retrain]
alphas = { subject = 1.0, object = 1.0, relation = 1.0, triplet = 1.0, masked_lm = 0.0 }
";

/// The layer of defaults that a config with these tables begins with.
pub(super) fn under(whole: &Table) -> String {
    let tables = [("pretrain", PRETRAIN), ("retrain", RETRAIN)];
    tables.into_iter().filter(|(table, _)| whole.contains_key(*table)).map(|(_, text)| text).collect()
}

/// Fills in what follows from other settings.
pub(super) fn fill(whole: &mut Table) {
    if let Some(Toml::Table(shards)) = whole.get_mut("shards") {
        tasks(shards);
    }
    counted(whole);
    pooled(whole);
    spelt(whole);
    // A comparison searches its masks on a part of their own.
    let mask_search = if whole.contains_key("graft") { 0.1 } else { 0.0 };
    if let Some(Toml::Array(benchmarks)) = whole.get_mut("benchmarks") {
        for benchmark in benchmarks {
            if is_tried_alone(benchmark) {
                continue;
            }
            if let Some(Toml::Table(set)) = benchmark.get_mut("set") {
                drawn(set, mask_search);
            }
        }
    }
    named(whole);
    let Some(Toml::Table(finetune)) = whole.get("finetune") else { return };
    let shared: Table =
        SHARED.iter().filter_map(|key| Some(((*key).to_owned(), finetune.get(*key)?.clone()))).collect();
    if let Some(of) = whole.get_mut("finetune").and_then(|finetune| finetune.get_mut("settings_of")) {
        each(of, &shared);
    }
    let Some(Toml::Array(recipes)) = whole.get_mut("recipes") else { return };
    for recipe in recipes {
        take(recipe, &shared);
        if let Some(then) = recipe.get_mut("then") {
            take(then, &shared);
        }
        if let Some(of) = recipe.get_mut("then_of") {
            each(of, &shared);
        }
    }
}

/// Tasks are those of triples and those whose texts are named.
fn tasks(shards: &mut Table) {
    if shards.contains_key("tasks") {
        return;
    }
    let texts = ["masked_lm", "tagging"].into_iter().filter(|task| shards.contains_key(*task));
    let all = ["subject", "object", "relation", "triplet"].into_iter().chain(texts);
    let all = all.map(|task| Toml::String(task.to_owned())).collect();
    shards.insert("tasks".to_owned(), Toml::Array(all));
}

fn each(of: &mut Toml, shared: &Table) {
    if let Toml::Table(of) = of {
        of.iter_mut().for_each(|(_, settings)| take(settings, shared));
    }
}

fn take(settings: &mut Toml, shared: &Table) {
    if let Toml::Table(settings) = settings {
        for (key, value) in shared {
            settings.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
}

/// A graph's names are learnt to be spelt, unless a file says how, or the checkpoint of the encoder.
fn spelt(whole: &mut Table) {
    let has = |table: &str, key: &str| whole.get(table).is_some_and(|table| table.get(key).is_some());
    let is_published =
        whole.get("encoder").and_then(|encoder| encoder.get("from")?.as_str()) == Some("checkpoint");
    if !whole.contains_key("sources")
        || is_published
        || has("vocabulary", "file")
        || has("vocabulary", "train")
    {
        return;
    }
    let vocabulary = whole.entry("vocabulary").or_insert_with(|| Toml::Table(Table::new()));
    if let Toml::Table(vocabulary) = vocabulary {
        vocabulary.insert("train".to_owned(), Toml::Table(Table::new()));
    }
}

/// Names are linked, and triples ranked, by vectors pooled as they were aligned.
fn pooled(whole: &mut Table) {
    let Some(Toml::Table(align)) = whole.get("align") else { return };
    let pooling = align.get("pooling").cloned().unwrap_or_else(|| "cls".into());
    if !matches!(pooling.as_str(), Some("cls" | "mean" | "max")) {
        return;
    }
    if let Some(Toml::Table(link)) = whole.get_mut("link") {
        link.entry("pooling").or_insert(pooling.clone());
    }
    let Some(Toml::Table(rank)) = whole.get_mut("rank") else { return };
    let says = |key: &str| rank.get(key).and_then(Toml::as_str);
    if says("by") == Some("similarity") && matches!(says("from"), None | Some("align")) {
        rank.entry("pooling").or_insert(pooling);
    }
}

/// Maps of related terms are made from counts and their scores.
fn counted(whole: &mut Table) {
    let Some(Toml::Table(maps)) = whole.get("maps") else { return };
    let is_none = |key: &str| maps.get(key).and_then(Toml::as_str) == Some("none");
    let (terms, phrases) = (!is_none("terms"), maps.get("phrases").is_none_or(Toml::is_table));
    for (table, is_needed) in [("counts", terms || phrases), ("pmi", terms)] {
        if is_needed {
            whole.entry(table).or_insert_with(|| Toml::Table(Table::new()));
        }
    }
}

/// Recipes are of all benchmarks, and masks are searched on the first that has a part for it.
fn named(whole: &mut Table) {
    let Some(Toml::Array(benchmarks)) = whole.get("benchmarks") else { return };
    let name = |benchmark: &Toml| benchmark.get("name").and_then(Toml::as_str).map(str::to_owned);
    let trained = || benchmarks.iter().filter(|benchmark| !is_tried_alone(benchmark));
    let all: Vec<Toml> = trained().filter_map(name).map(Toml::String).collect();
    let first = trained().find(|benchmark| has_mask_search(benchmark)).and_then(name);
    if let Some(Toml::Array(recipes)) = whole.get_mut("recipes") {
        for recipe in recipes.iter_mut().filter_map(Toml::as_table_mut) {
            recipe.entry("tasks").or_insert_with(|| Toml::Array(all.clone()));
        }
    }
    if let (Some(Toml::Table(graft)), Some(first)) = (whole.get_mut("graft"), first) {
        graft.entry("mask_benchmark").or_insert(Toml::String(first));
    }
}

/// Whether the models of another benchmark are tried on it, so that it has a part `test` alone.
fn is_tried_alone(benchmark: &Toml) -> bool {
    benchmark.get("trained_on").is_some()
}

fn has_mask_search(benchmark: &Toml) -> bool {
    let share =
        |path: &[&str]| path.iter().try_fold(benchmark, |at, key| at.get(key)).and_then(Toml::as_float);
    let listed = benchmark.get("set").and_then(|set| set.get("listed")?.get("mask_search"));
    benchmark.get("capr").is_some()
        || listed.is_some()
        || [share(&["cop", "mask_search"]), share(&["set", "drawn", "mask_search"])]
            .iter()
            .flatten()
            .any(|share| *share > 0.0)
}

/// A set without files of its own for a part has a share of those for training drawn for it.
fn drawn(set: &mut Table, mask_search: f64) {
    let parts = [("dev", 0.1), ("test", 0.2), ("mask_search", mask_search)];
    let is_listed = |part: &str| set.get("listed").is_some_and(|listed| listed.get(part).is_some());
    let missing = parts.into_iter().filter(|(part, _)| !set.contains_key(*part) && !is_listed(part));
    let missing: Vec<(&str, f64)> = missing.collect();
    let drawn = set.entry("drawn").or_insert_with(|| Toml::Table(Table::new()));
    if let Toml::Table(drawn) = drawn {
        for (part, share) in missing {
            drawn.entry(part).or_insert(Toml::Float(share));
        }
    }
}
