//! Maps of any texts, of benchmarks and of questions: which can be made, and with what. Knows no corpus.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasks::maps::expand::Map;
use tasks::maps::generators::Limits;
use tasks::token::encode::Case;

use super::tools::Tools;
use super::{Config, Entities, Graph, Mapping, Phrases, Terms};
use crate::engine::context::Context;
use crate::engine::describe::Description;
use crate::engine::stage::{Input, Stage as _};

/// What maps are made with besides a vocabulary: the same with the same gives the same maps of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeWith {
    /// How they are made: settings of a config, by their keys.
    pub settings: BTreeMap<String, Value>,
    /// BLAKE3 of all files of an artifact, by its stage.
    pub artifacts: BTreeMap<String, String>,
}

/// A setting or an artifact that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    what: String,
    here: String,
    there: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is {} here and {} there", self.what, self.here, self.there)
    }
}

impl MadeWith {
    /// The first thing in which `there` is not the same, by name; settings first.
    #[must_use]
    pub fn differs(&self, there: &Self) -> Option<Difference> {
        fn first<V: PartialEq>(
            (here, there): (&BTreeMap<String, V>, &BTreeMap<String, V>),
            said: impl Fn(&V) -> String,
        ) -> Option<Difference> {
            let what =
                here.keys().chain(there.keys()).filter(|key| here.get(*key) != there.get(*key)).min()?;
            let of = |side: &BTreeMap<String, V>| side.get(what).map_or_else(|| "left out".to_owned(), &said);
            Some(Difference { what: what.clone(), here: of(here), there: of(there) })
        }
        let artifact = |digest: &String| format!("of BLAKE3 {}", digest.get(..16).unwrap_or(digest));
        first((&self.settings, &there.settings), Value::to_string)
            .or_else(|| first((&self.artifacts, &there.artifacts), artifact))
    }
}

impl Mapping {
    /// Whether these maps can be made of any text: a benchmark's texts mark nothing, and a map that nothing is known for is no map.
    ///
    /// # Errors
    /// Names the setting that takes a file's marks, or that leaves a map empty.
    pub fn can_make(&self, maps: &[Map]) -> anyhow::Result<()> {
        for (map, field, none) in [
            (Map::Entity, "entities", self.config.entities == Entities::None),
            (Map::Phrase, "phrases", self.config.phrases == Phrases::None),
            (Map::Term, "terms", self.config.terms == Terms::None),
            (Map::Graph, "graph", self.config.graph == Graph::None || self.config.entities == Entities::None),
        ] {
            anyhow::ensure!(
                !none || !maps.contains(&map),
                "knowledge.maps has {:?}, but [maps] leaves it empty (maps.{field} is none): say there how it is made, or leave it out",
                map.name()
            );
        }
        for (field, marked, other) in [
            ("entities", self.config.entities == Entities::Marked, "dictionary"),
            ("phrases", self.config.phrases == Phrases::Marked, "neighbours"),
        ] {
            anyhow::ensure!(
                !marked,
                "maps.{field} = \"marked\" takes what a corpus marks, and the texts of benchmarks mark nothing: set it to {other} or none"
            );
        }
        Ok(())
    }

    /// How long rows of any texts are, which have at most so many tokens besides auxiliary terms.
    ///
    /// # Errors
    /// When there is no row so short or so long.
    pub fn limits_of(&self, most: usize) -> anyhow::Result<Limits> {
        let limits = Limits { tokens: most, ..self.config.limits };
        limits.check().map_err(|error| {
            anyhow::anyhow!("finetune.fixed.max_tokens, or max_tokens_of, with maps.limits: {error}")
        })?;
        Ok(limits)
    }

    /// Loads what these maps of any texts are made with while a stage runs that has declared [`Mapping::inputs_of_tools`].
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub fn tools_for(&self, maps: &[Map], context: &Context) -> anyhow::Result<Tools> {
        let artifact = |name: &str| Ok(context.artifact(name)?.to_owned());
        self.tools_with(maps, (&self.vocabulary.0.path(context)?, self.vocabulary.1), &artifact)
    }

    /// The same with the vocabulary of a file; `artifact` says where a stage's artifact lies.
    ///
    /// # Errors
    /// When something is missing or damaged.
    pub fn tools_with(
        &self,
        maps: &[Map],
        vocabulary: (&Path, Case),
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Tools> {
        Tools::load(&Config { terms: self.terms_of(maps), ..self.config.clone() }, vocabulary, artifact)
    }

    /// What makes these maps of any texts. All of the artifacts is read.
    ///
    /// # Errors
    /// When an artifact is missing or cannot be read.
    pub fn made_with(
        &self,
        maps: &[Map],
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<MadeWith> {
        let mut description = Description::new(self.version());
        self.describe_tools(&mut description);
        let mut artifacts = BTreeMap::new();
        for input in self.inputs_of_tools() {
            let Input::Artifact(name) = input else { continue };
            if name != "pmi" || self.terms_of(maps) != Terms::None {
                let digest = digest(&artifact(&name)?)?;
                artifacts.insert(name, digest);
            }
        }
        Ok(MadeWith { settings: description.fields, artifacts })
    }

    /// Auxiliary terms are what the map of terms brings along: without it they would have no score of their own.
    fn terms_of(&self, maps: &[Map]) -> Terms {
        if maps.contains(&Map::Term) { self.config.terms } else { Terms::None }
    }
}

/// BLAKE3 of the files in a folder, by name.
fn digest(folder: &Path) -> anyhow::Result<String> {
    let place = || folder.display().to_string();
    let entries = std::fs::read_dir(folder).with_context(place)?;
    let mut files =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(place)?;
    files.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let place = || path.display().to_string();
        let file = std::fs::File::open(&path).with_context(place)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for part in [name.len() as u64, file.metadata().with_context(place)?.len()] {
            hasher.update(&part.to_le_bytes());
        }
        hasher.update(name.as_bytes());
        hasher.update_reader(file).with_context(place)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_said_by_name_and_settings_come_first() {
        let made = |alpha: u64, names: &[(&str, &str)]| MadeWith {
            settings: BTreeMap::from([("maps.terms".to_owned(), json!(alpha))]),
            artifacts: names.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect(),
        };
        let here = made(1, &[("counts", "aa"), ("pmi", "bb")]);
        assert_eq!(here.differs(&here), None);
        let said = |there: &MadeWith| here.differs(there).unwrap().to_string();
        assert_eq!(said(&made(2, &[])), "maps.terms is 1 here and 2 there");
        assert_eq!(
            said(&made(1, &[("counts", "aa"), ("pmi", "0123456789abcdef0")])),
            "pmi is of BLAKE3 bb here and of BLAKE3 0123456789abcdef there"
        );
        assert_eq!(said(&made(1, &[("pmi", "bb")])), "counts is of BLAKE3 aa here and left out there");
    }

    #[test]
    fn a_digest_is_of_names_and_contents() {
        let of = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (name, contents) in files {
                kg::whole::write_whole(&folder.path().join(name), contents.as_bytes()).unwrap();
            }
            digest(folder.path()).unwrap()
        };
        let some = of(&[("a", "1"), ("b", "23")]);
        assert_eq!(some, of(&[("b", "23"), ("a", "1")]));
        for other in [&[("a", "12"), ("b", "3")][..], &[("a", "1"), ("c", "23")], &[("a", "1")]] {
            assert_ne!(some, of(other));
        }
        assert!(digest(Path::new("not/there")).unwrap_err().to_string().contains("not/there"));
    }
}
