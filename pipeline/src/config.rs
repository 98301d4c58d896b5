//! The config file: one TOML document, every key known, every value stated. Knows no stage's work.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{stage, toml_error, world};

/// The config that is used without `--config`: the embedded world.
pub const DEFAULT: &str = include_str!("../../configs/default.toml");

/// The version of the config format that this engraft reads.
pub const VERSION: u32 = 4;

/// A whole config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The format's version.
    pub version: u32,
    /// The invented world, if the run wants one.
    pub world: Option<world::Config>,
    /// Where triples come from, if there is a graph: then the four tables below that are about it are there too.
    pub sources: Option<stage::source::Config>,
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
    pub pmi: Option<tasks::corpus::pmi::Config>,
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
}

/// The tables about a graph.
#[derive(Debug, Clone, Copy)]
pub struct Graph<'a> {
    /// `[sources]`.
    pub sources: &'a stage::source::Config,
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
    pub fn graph(&self) -> anyhow::Result<Option<Graph<'_>>> {
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
    pub fn compute(&self) -> stage::compute::Compute {
        self.compute.unwrap_or(stage::compute::Compute::UNSAID)
    }
}

/// Why a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: cannot read the config: {source}", path.display())]
    Read {
        /// The config file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no config.
    #[error("{name}: {problem}")]
    Parse {
        /// The config file, or `the embedded default`.
        name: String,
        /// Line, column and what is wrong.
        problem: String,
    },
    /// A `--set` is wrong.
    #[error("--set {set}: {problem}")]
    Set {
        /// The argument.
        set: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The config is of another version.
    #[error(
        "{name}: version {version}, but this engraft reads version {VERSION}; CHANGELOG.md says what to change"
    )]
    Version {
        /// The config file, or `the embedded default`.
        name: String,
        /// The version it names.
        version: i64,
    },
}

/// Reads the config at `file`, or the embedded default, and applies `sets` (`key=value`, in order) to it.
///
/// # Errors
/// When the file cannot be read, a key is unknown or missing, or a value does not fit.
pub fn load(file: Option<&Path>, sets: &[String]) -> Result<Config, Error> {
    let (name, text) = match file {
        None => ("the embedded default".to_owned(), DEFAULT.to_owned()),
        Some(path) => {
            let read = std::fs::read_to_string(path);
            (
                path.display().to_string(),
                read.map_err(|source| Error::Read { path: path.to_owned(), source })?,
            )
        }
    };
    let parse = |problem: String| Error::Parse { name: name.clone(), problem: problem.trim_end().to_owned() };
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| parse(told(&text, &e)))?;
    // Another version has other keys, so the version comes first.
    if let Some(&toml::Value::Integer(version)) = table.get("version")
        && version != i64::from(VERSION)
    {
        return Err(Error::Version { name, version });
    }
    // Read as it stands first, because only then do errors carry line and column.
    let mut config: Config = toml::from_str(&text).map_err(|e| parse(told(&text, &e)))?;
    let mut whole = toml::Value::Table(table);
    for set in sets {
        let wrong = |problem: String| Error::Set { set: set.clone(), problem };
        let (key, value) = set.split_once('=').ok_or_else(|| wrong("expected KEY=VALUE".to_owned()))?;
        put(&mut whole, key.trim(), value.trim()).map_err(wrong)?;
    }
    if !sets.is_empty() {
        // All together: one alone may leave a table half filled.
        let set = sets.join(" --set ");
        let wrong = |e: toml::de::Error| Error::Set { set, problem: e.to_string().trim_end().to_owned() };
        config = whole.clone().try_into().map_err(wrong)?;
    }
    if let Some(key) = not_finite(&whole) {
        return Err(parse(format!("{key} is infinite or not a number; leave it out to set no limit")));
    }
    if config.version != VERSION {
        return Err(Error::Version { name, version: i64::from(config.version) });
    }
    Ok(config)
}

/// What is wrong with a config, with the line it is in, unless a URL stands there: it may be signed.
fn told(text: &str, error: &toml::de::Error) -> String {
    let whole = error.to_string();
    if whole.contains("://") { toml_error::told(text, error) } else { whole }
}

/// The first key whose value is no finite number. Such a value has no JSON form, so no fingerprint could tell it from none.
fn not_finite(value: &toml::Value) -> Option<String> {
    let below = |key: String, value: &toml::Value| {
        not_finite(value).map(|inner| if inner.is_empty() { key.clone() } else { format!("{key}.{inner}") })
    };
    match value {
        toml::Value::Float(x) if !x.is_finite() => Some(String::new()),
        toml::Value::Table(table) => table.iter().find_map(|(key, value)| below(key.clone(), value)),
        toml::Value::Array(list) => {
            list.iter().enumerate().find_map(|(i, value)| below(i.to_string(), value))
        }
        _ => None,
    }
}

/// Puts `value` (TOML, or else a plain text) under the dotted `key`, whose parts are keys of tables and names or places of items of lists.
fn put(config: &mut toml::Value, key: &str, value: &str) -> Result<(), String> {
    let parsed: Result<toml::Table, _> = format!("value = {value}").parse();
    let value = match parsed {
        Ok(mut parsed) => parsed.remove("value").ok_or("no value")?,
        Err(_) => toml::Value::String(value.to_owned()),
    };
    let (above, last) = key.rsplit_once('.').map_or((None, key), |(above, last)| (Some(above), last));
    if last.is_empty() {
        return Err("the key is empty".to_owned());
    }
    let mut at = config;
    for part in above.into_iter().flat_map(|above| above.split('.')) {
        at = match at {
            toml::Value::Table(table) => {
                table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()))
            }
            other => item(other, part)?,
        };
    }
    match at {
        toml::Value::Table(table) => {
            table.insert(last.to_owned(), value);
        }
        other => *item(other, last)? = value,
    }
    Ok(())
}

/// The item of a list that has `name`, or else the one at that place, from 0.
fn item<'a>(list: &'a mut toml::Value, name: &str) -> Result<&'a mut toml::Value, String> {
    let toml::Value::Array(items) = list else {
        return Err(format!(
            "`{name}` cannot be below a value that is no table and no list, but a {}",
            list.type_str()
        ));
    };
    let named = |item: &toml::Value| item.get("name").and_then(toml::Value::as_str).map(str::to_owned);
    let names: Vec<String> = items.iter().filter_map(named).collect();
    let place =
        items.iter().position(|item| named(item).as_deref() == Some(name)).or_else(|| name.parse().ok());
    let among = items.len();
    place.and_then(|place| items.get_mut(place)).ok_or_else(|| {
        format!("there is no item `{name}` among {among}, whose names are: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: &[&str]) -> Result<Config, Error> {
        load(None, &sets.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn sets_change_values_of_every_kind() {
        let config =
            sets(&["shards.seed=77", "vocabulary.case=cased", "shards.tasks=[\"triplet\"]"]).unwrap();
        assert_eq!(config.shards.as_ref().unwrap().seed, 77);
        assert_eq!(config.vocabulary.case, tasks::token::encode::Case::Cased);
        assert_eq!(config.shards.unwrap().tasks, [tasks::task::Task::Triplet]);
    }

    #[test]
    fn sets_are_applied_together_and_infinity_is_refused() {
        let together = ["encoder.fresh.hidden_size=64", "encoder.fresh.num_attention_heads=2"];
        assert_eq!(sets(&together).unwrap().encoder.unwrap().fresh.unwrap().hidden_size, 64);
        for value in ["inf", "nan", "-inf"] {
            let error = sets(&[&format!("sources.hsdn.min_tfidf={value}")]).unwrap_err().to_string();
            assert!(error.contains("sources.hsdn.min_tfidf is infinite"), "{error}");
        }
    }

    #[test]
    fn sets_reach_items_of_lists_by_name_or_place() {
        let text =
            "version = 4\n[[recipes]]\nname = \"a\"\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"y\"]\n";
        let mut config = toml::Value::Table(text.parse().unwrap());
        put(&mut config, "recipes.b.settings.epochs", "3").unwrap();
        put(&mut config, "recipes.0.tasks", "[]").unwrap();
        put(&mut config, "recipes.b.tasks.1", "z").unwrap();
        let wanted = "version = 4\n[[recipes]]\nname = \"a\"\ntasks = []\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"z\"]\n\
                      settings = { epochs = 3 }";
        assert_eq!(config, toml::Value::Table(wanted.parse().unwrap()));
        let wrong = put(&mut config, "recipes.c.tasks", "[]").unwrap_err();
        assert!(wrong.contains("no item `c` among 2, whose names are: a, b"), "{wrong}");
        let wrong = put(&mut config, "version.of.what", "1").unwrap_err();
        assert!(wrong.contains("`of` cannot be below") && wrong.contains("integer"), "{wrong}");
        assert!(put(&mut config, "recipes.2", "1").is_err() && put(&mut config, "", "1").is_err());
    }

    #[test]
    fn a_signed_url_is_in_no_error() {
        for line in [
            "version = 4\nurl = \"https://h/x?sig=secret\" more",
            "version = 4\nurl = \"https://h/x?sig=secret\"",
        ] {
            let error = toml::from_str::<Config>(line).unwrap_err();
            let told = told(line, &error);
            assert!(told.contains("line 2") && !told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_the_keys_there_are() {
        let error = sets(&["shards.sede=7"]).unwrap_err().to_string();
        assert!(error.contains("--set shards.sede=7") && error.contains("`seed`"), "{error}");
        assert!(sets(&["shards.seed"]).unwrap_err().to_string().contains("expected KEY=VALUE"));
        assert!(sets(&["shards.seed.x=1"]).unwrap_err().to_string().contains("no table"));
    }

    #[test]
    fn a_bad_file_is_named_with_line_and_column() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let broken = DEFAULT.replace("[shards]", "[shards]\nspeed = 3");
        kg::whole::write_whole(&path, broken.as_bytes()).unwrap();
        let error = load(Some(&path), &[]).unwrap_err().to_string();
        assert!(error.contains("x.toml") && error.contains("line") && error.contains("speed"), "{error}");
        assert!(
            load(Some(&folder.path().join("none.toml")), &[]).unwrap_err().to_string().contains("none.toml")
        );
        assert!(sets(&["version=9"]).unwrap_err().to_string().contains("version 9"));
    }
}
