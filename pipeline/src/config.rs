//! The config file: one TOML document, every key known, every value stated.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

mod check;
pub(crate) mod origin;
pub(crate) mod range;
mod set;

use crate::{stage, toml_text};
use origin::Origin;

/// The config that is used without `--config`: the embedded world.
pub const DEFAULT: &str = include_str!("../../configs/default.toml");

/// The version of the config format that this engraft reads.
pub(crate) const VERSION: u32 = 4;

/// A whole config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The format's version.
    pub version: u32,
    /// The invented world, if the run wants one.
    pub world: Option<world::Config>,
    /// Where triples come from, if there is a graph: then the four tables below that are about it are there too.
    pub sources: Option<kg::source::Config>,
    /// How what they state becomes one graph.
    pub canon: Option<stage::triples::Config>,
    /// What is learnt from and what is held out.
    pub split: Option<stage::split::Config>,
    /// What is measured of the graph.
    pub summary: Option<stage::summary::Config>,
    /// What turns text into token ids.
    pub vocabulary: stage::vocabulary::Config,
    /// The texts that words are counted in and maps are made of, if there are any.
    pub corpus: Option<stage::corpus::Config>,
    /// How words are counted.
    pub counts: Option<stage::counts::Config>,
    /// How counts become relevances.
    pub pmi: Option<text::pmi::Config>,
    /// How the corpus becomes semantic attention maps.
    pub maps: Option<stage::maps::Config>,
    /// How samples of the graph are built and stored.
    pub shards: Option<stage::shards::Config>,
    /// What is computed on and in; without it, the CPU and f32.
    pub compute: Option<stage::compute::Compute>,
    /// The encoder that training begins with, if there is any.
    pub encoder: Option<stage::encoder::Config>,
    /// How it is trained on the texts among them first, if it is to be.
    pub pretrain: Option<stage::retrain::Config>,
    /// How it is trained on the graph, if it is to be.
    pub retrain: Option<stage::retrain::Config>,
    /// How masked language models are asked for facts, if they are to be.
    pub lama: Option<stage::lama::Config>,
    /// What encoders are tried on.
    #[serde(default)]
    pub benchmarks: Vec<stage::benchmark::Config>,
    /// Other ways in which they attend, each tried on benchmarks one by one.
    #[serde(default)]
    pub attentions: Vec<stage::finetune::attention::Config>,
    /// How they are fine-tuned on several of them together.
    #[serde(default)]
    pub recipes: Vec<stage::finetune::together::Config>,
    /// How they are fine-tuned on it.
    pub finetune: Option<stage::finetune::config::Config>,
    /// Which encoders are compared, and how heads are measured and masked.
    pub graft: Option<stage::graft::Config>,
    /// Where each of these settings stands.
    #[serde(skip)]
    pub origin: Origin,
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
    /// The tables about the graph: all of them or none.
    ///
    /// # Errors
    /// Names those that are there and those that are not.
    pub(crate) fn graph(&self) -> anyhow::Result<Option<Graph<'_>>> {
        let Config { sources, canon, split, summary, shards, .. } = self;
        if let (Some(sources), Some(canon), Some(split), Some(summary), Some(shards)) =
            (sources, canon, split, summary, shards)
        {
            return Ok(Some(Graph { sources, canon, split, summary, shards }));
        }
        let tables = [
            ("[sources]", sources.is_some()),
            ("[canon]", canon.is_some()),
            ("[split]", split.is_some()),
            ("[summary]", summary.is_some()),
            ("[shards]", shards.is_some()),
        ];
        let of = |wanted: bool| {
            let names = tables.iter().filter(|(_, there)| *there == wanted).map(|(name, _)| *name);
            names.collect::<Vec<_>>().join(", ")
        };
        anyhow::ensure!(
            tables.iter().all(|(_, there)| !there),
            "a graph has all of the tables [sources], [canon], [split], [summary] and [shards]: the config has {} but not {}",
            of(true),
            of(false)
        );
        Ok(None)
    }

    /// What trainings compute on and in.
    #[must_use]
    pub(crate) fn compute(&self) -> stage::compute::Compute {
        self.compute.unwrap_or(stage::compute::Compute::UNSAID)
    }
}

/// Reads the config at `file`, or the embedded default, and applies `sets` (`key=value`, in order) to it.
///
/// # Errors
/// When the file cannot be read, a key is unknown or missing, or a value does not fit.
pub(crate) fn load(file: Option<&Path>, sets: &[String]) -> anyhow::Result<Config> {
    let (name, text) = match file {
        None => ("the embedded default".to_owned(), DEFAULT.to_owned()),
        Some(path) => {
            let name = path.display().to_string();
            let read = std::fs::read_to_string(path);
            let text = read.with_context(|| format!("{name}: cannot read the config"))?;
            (name, text)
        }
    };
    let parse = |problem: String| anyhow::anyhow!("{name}: {}", problem.trim_end());
    toml_text::bounded(&text).map_err(parse)?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| parse(told(&text, &e)))?;
    // Another version has other keys, so the version comes first.
    if let Some(&toml::Value::Integer(version)) = table.get("version")
        && version != i64::from(VERSION)
    {
        return Err(other_version(&name, version));
    }
    // Read as it stands first, because only then do errors carry line and column.
    let mut config: Config = toml::from_str(&text).map_err(|e| parse(told(&text, &e)))?;
    let mut whole = toml::Value::Table(table);
    for given in sets {
        let wrong = |problem: String| anyhow::anyhow!("--set {}: {problem}", set::shown(given));
        let (key, value) = set::split(given).map_err(wrong)?;
        set::put(&mut whole, &key, value).map_err(wrong)?;
    }
    let toml::Value::Table(whole) = whole else { return Err(parse("it is no table".to_owned())) };
    if !sets.is_empty() {
        // All together: one alone may leave a table half filled.
        config = whole.clone().try_into().map_err(|e| set_together(sets, &e))?;
    }
    config.origin = Origin { name: name.clone(), text, sets: sets.to_vec(), whole };
    if let Some(key) = not_finite(&config.origin.whole) {
        let place = config.origin.place(&key).unwrap_or_else(|| name.clone());
        anyhow::bail!("{place}: {key} is infinite or not a number; leave it out to set no limit");
    }
    if config.version != VERSION {
        return Err(other_version(&name, i64::from(config.version)));
    }
    check::check(&config).map_err(|error| config.origin.locate(error))?;
    Ok(config)
}

fn other_version(name: &str, version: i64) -> anyhow::Error {
    anyhow::anyhow!(
        "{name}: version {version}, but this engraft reads version {VERSION}; CHANGELOG.md says what to change"
    )
}

/// What is wrong with a config once all of `sets` are in it.
fn set_together(sets: &[String], error: &toml::de::Error) -> anyhow::Error {
    let set = sets.iter().map(|set| set::shown(set)).collect::<Vec<_>>().join(" --set ");
    let problem = match error.to_string() {
        text if text.contains("://") => "a URL stands where something else is expected".to_owned(),
        text => text.trim_end().to_owned(),
    };
    anyhow::anyhow!("--set {set}: {problem}")
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
