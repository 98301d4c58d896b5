//! The config: what differs from the defaults, in a TOML file and in those that it extends.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

mod check;
mod derive;
pub(crate) mod layer;
mod merge;
pub(crate) mod origin;
pub(crate) mod range;
pub(crate) mod reference;
pub(crate) mod resolved;
pub(crate) mod schema;
pub(crate) mod set;
mod validate;

use crate::{stage, toml_text};
use origin::Origin;

/// The config that is used without `--config`: the embedded world.
pub const DEFAULT: &str = include_str!("../../configs/default.toml");

/// The version of the config format that this engraft reads.
pub(crate) const VERSION: u32 = 5;

/// A whole config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The version of the config format. A config of another version is refused.
    ///
    /// Source: the one version that this engraft reads.
    #[serde(default = "version")]
    pub version: u32,
    /// Configs that this one goes over: names of presets, and paths of `.toml` files from this file's folder. Later ones go over earlier ones, and
    /// this one over all of them: tables key by key, lists of named tables by their names (an empty list takes the place of all of them),
    /// everything else as a whole.
    #[serde(default, skip_serializing)]
    pub extends: Option<Extends>,
    /// What relative locations count from: a path from this file's folder (if another config extends this one, from that one's),
    /// or an address. `--data` takes precedence.
    #[serde(default, skip_serializing)]
    pub data: Option<String>,
    /// The folder of artifacts, as a path from this file's folder (if another config extends this one, from that one's). `--out` takes precedence; left out, `out`.
    #[serde(default, skip_serializing)]
    pub out: Option<String>,
    /// The synthetic world. Leave the table out to use only your own data.
    pub world: Option<world::Config>,
    /// The sources of the graph's triples, read in the order below, whatever their order in the file. `[canon]`, `[split]`, `[summary]` and,
    /// unless its tasks are on texts alone, `[shards]` are about this graph and need at least one source.
    pub sources: Option<kg::source::Config>,
    /// How statements are merged into one graph.
    #[serde(default)]
    pub canon: stage::triples::Config,
    /// Which triples are for training and which are held out.
    #[serde(default)]
    pub split: stage::split::Config,
    /// What is measured of the graph.
    #[serde(default)]
    pub summary: stage::summary::Config,
    /// The vocabulary: `file`, or `train`, or neither. Left out, the checkpoint's own (`tokenizer.json`, else `vocab.txt`), or else one trained on
    /// the graph's names.
    #[serde(default)]
    pub vocabulary: stage::vocabulary::Config,
    /// The texts used for word counts and maps.
    pub corpus: Option<stage::corpus::Config>,
    /// How often words occur and co-occur. Needs `[corpus]`, unless `counts.merge` is given; left out, made by default settings where `[maps]`
    /// needs it.
    pub counts: Option<stage::counts::Config>,
    /// How related words are, from their co-occurrence. Needs `[counts]`; left out, made by default settings where `[maps]` needs it.
    pub pmi: Option<text::pmi::Config>,
    /// How the corpus becomes map samples. Needs `[corpus]`; `counts.what.case` must equal `vocabulary.case`.
    pub maps: Option<stage::maps::Config>,
    /// How names of the graph are found in texts: by `engraft tag`, and with `[corpus]` by stage `mentions`. Left out, `engraft tag` takes the defaults.
    pub tag: Option<stage::mentions::Config>,
    /// How samples are built and stored.
    #[serde(default)]
    pub shards: stage::shards::Config,
    /// Device and dtype for training.
    #[serde(default)]
    pub compute: stage::compute::Compute,
    /// The initial encoder: a checkpoint, or random weights. Needed by `[pretrain]`, `[retrain]`, `[align]`, `[rank]`, `[link]`, `[lama]`, `[finetune]` and `[graft]`.
    pub encoder: Option<stage::encoder::Config>,
    /// Trains that encoder before everything else. Its keys are those of `[retrain]` except `heads`; left out, they are set for masked language
    /// modelling: `alphas.masked_lm` 1 and the others 0, `task_heads.entity = "masked_lm"`, `stream.schedule = "merged"`.
    pub pretrain: Option<stage::retrain::Config>,
    /// Trains on the graph; leave it out to stop at the shards. Stages `retrain`, or `retrain-ROW` with `[graft]`.
    pub retrain: Option<stage::retrain::Config>,
    /// Trains the encoder so that names of one entity have near vectors (SapBERT): stage `align`. Needs `[encoder]` and `[sources]` with synonyms.
    pub align: Option<stage::align::Config>,
    /// Link prediction, relation prediction and triple classification on a held-out part: stage `rank`. Needs `[encoder]` and a graph that is split.
    pub rank: Option<stage::rank::Config>,
    /// Mentions with ids linked to the graph's entities by the vectors of their names, and how often rightly: stage `link`. Needs `[encoder]` and `[sources]`. Not with `[graft]`.
    pub link: Option<stage::link::Config>,
    /// Cloze sentences for facts, completed by masked language models (LAMA): stages `lama-MODEL`. Needs `[encoder]`.
    pub lama: Option<stage::lama::Config>,
    /// What encoders are evaluated on, any number; each has a stage `benchmark-NAME`.
    ///
    /// Source: none: which are used is the config's to say.
    #[serde(default)]
    pub benchmarks: Vec<stage::benchmark::Config>,
    /// Other attention mechanisms, any number, each tried on each benchmark with the settings of `[finetune]`: stages
    /// `finetune-NAME-BENCHMARK-SEED`. Not with `[graft]`.
    ///
    /// Source: none: BERT's own attention alone.
    #[serde(default)]
    pub attentions: Vec<stage::finetune::attention::Config>,
    /// Multi-task fine-tunings of an encoder on several benchmarks, any number: stage `recipe-NAME-SEED` for each of `finetune.seeds`. Not with
    /// `[graft]`.
    ///
    /// Source: none: each benchmark by itself.
    #[serde(default)]
    pub recipes: Vec<stage::finetune::together::Config>,
    /// How encoders are fine-tuned on every benchmark. Needs `[[benchmarks]]` and `[encoder]`. Without `[graft]`, stage `scores` tabulates one
    /// encoder (`finetune.from`) by itself, with other attentions, and in recipes.
    pub finetune: Option<stage::finetune::config::Config>,
    /// The encoders to compare, and how heads are measured and masked; stage `results` makes the table and the page. Needs `[finetune]` and
    /// `[encoder]`.
    pub graft: Option<stage::graft::Config>,
    /// How many earlier artifacts of each stage are kept when others replace them; without it, 3. Ours: going back and forth between a few settings is
    /// common, more deserves its own folder. Shapes no artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
    /// How many bytes the kept artifacts of all stages may have; without it, 20 GB (some forty checkpoints of BERT base). Shapes no artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_bytes: Option<u64>,
    /// Where artifacts are shared with other machines; left out, they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depot: Option<crate::depot::Config>,
    /// Where each of these settings stands.
    #[serde(skip)]
    pub origin: Origin,
}

/// One config that another differs from, or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum Extends {
    /// The name of a preset, or the path of a file.
    One(String),
    /// Several of these; later ones go over earlier ones.
    Several(Vec<String>),
}

/// The tables about a graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graph<'a> {
    /// `[sources]`.
    pub sources: &'a kg::source::Config,
    /// `[canon]`.
    pub canon: &'a stage::triples::Config,
    /// `[split]`.
    pub split: &'a stage::split::Config,
    /// `[summary]`.
    pub summary: &'a stage::summary::Config,
    /// `[shards]`.
    pub shards: &'a stage::shards::Config,
}

impl Config {
    /// The tables about the graph, if there is one.
    ///
    /// # Errors
    /// When a config without sources says how its graph, or what of it, is made.
    pub(crate) fn graph(&self) -> anyhow::Result<Option<Graph<'_>>> {
        let Config { sources, canon, split, summary, shards, .. } = self;
        if let Some(sources) = sources {
            return Ok(Some(Graph { sources, canon, split, summary, shards }));
        }
        if let Some(table) = ["canon", "split", "summary"].into_iter().find(|table| self.origin.has(table)) {
            anyhow::bail!(
                "[{table}] is about a graph, and the config has none: add [sources], or leave [{table}] out"
            );
        }
        anyhow::ensure!(
            !self.origin.has("shards") || !shards.is_of_graph(),
            "shards.tasks has tasks that are made of a graph, and the config has none: add [sources], or name tasks on texts alone (\"masked_lm\", \"tagging\")"
        );
        Ok(None)
    }

    /// The tables of shards that are made of texts alone, if there are such.
    pub(crate) fn shards_of_texts(&self) -> Option<&stage::shards::Config> {
        (self.sources.is_none() && self.origin.has("shards")).then_some(&self.shards)
    }
}

fn version() -> u32 {
    VERSION
}

/// Reads the config at `file`, or the embedded default, with what it extends, and applies `sets` (`key=value`, in order) to it.
///
/// # Errors
/// When a file cannot be read, or a setting is unknown, missing, of another kind or out of its range; all such are named together.
pub(crate) fn load(file: Option<&Path>, sets: &[String]) -> anyhow::Result<Config> {
    match file {
        None => {
            let mut layers = layer::all("the embedded default", DEFAULT, None)?;
            let named = named_sources(sets)?;
            if !beside_world(named.clone())?.is_empty() {
                layers.iter_mut().for_each(|layer| without_world(&mut layer.table, &named));
            }
            of_layers(layers, sets)
        }
        Some(path) => of_layers(read(path)?, sets),
    }
}

/// Sources that `sets` name and the embedded default lacks: they are read in place of its own, which are of an invented world.
///
/// # Errors
/// When a set is none.
pub(crate) fn in_place_of_world(sets: &[String]) -> anyhow::Result<BTreeSet<String>> {
    beside_world(named_sources(sets)?)
}

/// Those of `sources` that the embedded default lacks.
fn beside_world(mut sources: BTreeSet<String>) -> anyhow::Result<BTreeSet<String>> {
    let world: toml::Table = DEFAULT.parse()?;
    sources.retain(|source| world["sources"].get(source).is_none());
    Ok(sources)
}

/// The sources that `sets` name.
fn named_sources(sets: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for set in sets {
        let wrong = |problem: String| anyhow::anyhow!("--set {}: {problem}", set::shown(set));
        if let ["sources", source, ..] = set::split(set).map_err(wrong)?.0[..] {
            named.insert(source.to_owned());
        }
    }
    Ok(named)
}

/// Takes the world's sources out of the embedded default, but for those that are named, and its texts out of what the vocabulary is learnt from.
fn without_world(table: &mut toml::Table, named: &BTreeSet<String>) {
    if let Some(toml::Value::Table(sources)) = table.get_mut("sources") {
        sources.retain(|source, _| named.contains(source));
    }
    let train = table.get_mut("vocabulary").and_then(|vocabulary| vocabulary.get_mut("train"));
    if let Some(toml::Value::Table(train)) = train {
        train.remove("text");
    }
}

/// As [`load`], of a text; `folder` is where the paths of what it extends count from.
pub(crate) fn of_text(
    name: &str,
    text: &str,
    folder: Option<&Path>,
    sets: &[String],
) -> anyhow::Result<Config> {
    of_layers(layer::all(name, text, folder)?, sets)
}

fn of_layers(layers: Vec<layer::Layer>, sets: &[String]) -> anyhow::Result<Config> {
    let whole = together(&layers, sets)?;
    let origin = Origin { layers, sets: sets.to_vec(), whole };
    let config = typed(&origin)?;
    check::check(&config).map_err(|error| config.origin.locate(error))?;
    Ok(config)
}

/// What a config says of folders, as it says it.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    pub(crate) data: Option<String>,
    pub(crate) out: Option<String>,
}

/// The folders of the config at `file`, whatever else is in it.
///
/// # Errors
/// When it, or what it extends, cannot be read.
pub(crate) fn folders(file: &Path) -> anyhow::Result<Folders> {
    let layers = read(file)?;
    // The last that names one counts; a merge of everything would say the same.
    let of = |key: &str| {
        let value = layers.iter().rev().find_map(|layer| layer.table.get(key));
        value.and_then(toml::Value::as_str).map(str::to_owned)
    };
    Ok(Folders { data: of("data"), out: of("out") })
}

/// The layers of the config at `file`.
fn read(file: &Path) -> anyhow::Result<Vec<layer::Layer>> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("{name}: cannot read the config"))?;
    layer::all(&name, &text, Some(file.parent().unwrap_or(Path::new(""))))
}

/// All layers and `sets` in one, with what follows from them.
fn together(layers: &[layer::Layer], sets: &[String]) -> anyhow::Result<toml::Table> {
    let mut whole = toml::Table::new();
    for layer in layers {
        merge::merge(&mut whole, layer.table.clone());
    }
    let mut given = toml::Value::Table(whole);
    for set in sets {
        let wrong = |problem: String| anyhow::anyhow!("--set {}: {problem}", set::shown(set));
        let (key, value) = set::split(set).map_err(wrong)?;
        set::check(&key).map_err(wrong)?;
        set::put(&mut given, &key, value).map_err(wrong)?;
    }
    let toml::Value::Table(given) = given else { anyhow::bail!("--set: the config is no table") };
    let mut whole: toml::Table = derive::under(&given).parse()?;
    merge::merge(&mut whole, given);
    derive::fill(&mut whole);
    Ok(whole)
}

/// The settings of a merged config.
fn typed(origin: &Origin) -> anyhow::Result<Config> {
    if let Some(key) = not_finite(&origin.whole) {
        let place = origin.place(&key).unwrap_or_else(|| origin.name().to_owned());
        anyhow::bail!("{place}: {key} is infinite or not a number; leave it out to set no limit");
    }
    let placed = |key: &str, problem: &str| {
        let place = origin.place(key).unwrap_or_else(|| origin.name().to_owned());
        match key {
            "" => format!("{place}: {problem}"),
            key if store::location::is_address(key) => format!("{place}: a URL {problem}"),
            key => format!("{place}: {key} {problem}"),
        }
    };
    let faults = validate::faults(&origin.whole);
    let told: Vec<String> = faults.iter().map(|fault| placed(&fault.key, &fault.problem)).collect();
    anyhow::ensure!(told.is_empty(), "{}", told.join("\n"));
    let whole = toml::Value::Table(origin.whole.clone());
    let mut config: Config = serde_path_to_error::deserialize(whole).map_err(|error| {
        let problem = match error.inner().message() {
            text if text.contains("://") => "is a URL, expected something else".to_owned(),
            text => format!("is invalid: {}", text.trim_end()),
        };
        anyhow::anyhow!(placed(&error.path().to_string(), &problem))
    })?;
    if config.version != VERSION {
        return Err(other_version(origin.name(), i64::from(config.version)));
    }
    config.origin = origin.clone();
    Ok(config)
}

pub(super) fn other_version(name: &str, version: i64) -> anyhow::Error {
    anyhow::anyhow!(
        "{name}: version {version}, but this engraft reads version {VERSION}; CHANGELOG.md says what to change"
    )
}

/// What is wrong with a config, with the line it is in, unless a URL stands there: it may be signed.
fn told(text: &str, error: &toml::de::Error) -> String {
    let whole = error.to_string();
    if whole.contains("://") { toml_text::told(text, error) } else { whole }
}

/// The first key whose value is no finite number. Such a value has no JSON form, so no fingerprint could tell it from none.
fn not_finite(table: &toml::Table) -> Option<String> {
    fn below(key: &str, value: &toml::Value) -> Option<String> {
        match value {
            toml::Value::Float(x) if !x.is_finite() => Some(key.to_owned()),
            toml::Value::Table(table) => {
                table.iter().find_map(|(name, value)| below(&format!("{key}.{name}"), value))
            }
            toml::Value::Array(items) => {
                items.iter().enumerate().find_map(|(i, value)| below(&format!("{key}.{i}"), value))
            }
            _ => None,
        }
    }
    table.iter().find_map(|(name, value)| below(name, value))
}

#[cfg(test)]
mod tests;
