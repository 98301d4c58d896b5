//! Where a config's paths lie: in the world's artifact, or in the data folder. Knows no format.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::Input;

/// A path as a config gives it: `world:hsdn/x.tsv` lies in the artifact of stage `world`, anything else in the data
/// folder (`--data`) or, if absolute, where it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Location(pub String);

/// Where relative paths count from.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The folder given with `--data`.
    pub data: Option<&'a Path>,
    /// Whether the config has a world.
    pub world: bool,
}

/// A location that a stage can declare as an input and open while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the artifact of stage `world`.
    World {
        /// What the stage calls it.
        label: String,
        /// Path below the artifact.
        below: PathBuf,
    },
    /// A file or folder that no stage makes.
    Outside {
        /// What the stage calls it.
        label: String,
        /// Where it lies.
        path: PathBuf,
    },
}

impl Location {
    /// Finds out where the location lies. `key` is its config key, for messages.
    ///
    /// # Errors
    /// When it lies in a world that the config lacks, or in a data folder that was not given.
    pub fn place(&self, key: &str, places: &Places<'_>) -> anyhow::Result<Place> {
        let label = key.to_owned();
        if let Some(below) = self.0.strip_prefix("world:") {
            anyhow::ensure!(
                places.world,
                "{key} = {:?} lies in the world, but the config has no [world]: add one, or name a file of your own",
                self.0
            );
            let below = PathBuf::from(below);
            anyhow::ensure!(
                below.components().all(|part| matches!(part, Component::Normal(_))),
                "{key} = {:?} does not lie below the world: name a file of it, as in \"world:hsdn/Combined-Input.tsv\"",
                self.0
            );
            return Ok(Place::World { label, below });
        }
        let path = Path::new(&self.0);
        match places.data {
            _ if path.is_absolute() => Ok(Place::Outside { label, path: path.to_owned() }),
            Some(data) => Ok(Place::Outside { label, path: data.join(path) }),
            None => anyhow::bail!(
                "{key} = {:?} counts from the data folder: say where that is with --data DIR",
                self.0
            ),
        }
    }
}

impl Place {
    /// The place `name` below this one (a folder).
    #[must_use]
    pub fn file(&self, name: &str) -> Place {
        match self {
            Place::World { label, below } => {
                Place::World { label: format!("{label}/{name}"), below: below.join(name) }
            }
            Place::Outside { label, path } => {
                Place::Outside { label: format!("{label}/{name}"), path: path.join(name) }
            }
        }
    }

    /// What the stage calls it.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Place::World { label, .. } | Place::Outside { label, .. } => label,
        }
    }

    /// The input that a stage declares for it.
    #[must_use]
    pub fn input(&self) -> Input {
        match self {
            Place::World { .. } => Input::artifact("world"),
            Place::Outside { label, path } => Input::file(label, path),
        }
    }

    /// Describes which file of the world it is. An outside file is described by its contents, wherever it lies, and by its
    /// name, which stands in funnels.
    pub fn describe(&self, to: &mut dyn Describe) {
        match self {
            Place::World { label, below } => to.field(label, format!("world:{}", below.display()).into()),
            Place::Outside { label, path } => {
                to.field(label, path.file_name().unwrap_or_default().to_string_lossy().into());
            }
        }
    }

    /// Where it lies while the stage runs.
    ///
    /// # Errors
    /// When the stage did not declare it.
    pub fn path(&self, context: &Context) -> anyhow::Result<PathBuf> {
        Ok(match self {
            Place::World { below, .. } => context.artifact("world")?.join(below),
            Place::Outside { label, .. } => context.file(label)?.to_owned(),
        })
    }
}

/// The inputs for `places`, each once.
#[must_use]
pub fn inputs<'a>(places: impl IntoIterator<Item = &'a Place>) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for input in places.into_iter().map(Place::input) {
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_says_what_it_lacks() {
        let (nowhere, world) = (Places { data: None, world: false }, Places { data: None, world: true });
        let place = |text: &str, places| Location(text.to_owned()).place("sources.hsdn.path", places);
        let error = place("world:hsdn/x.tsv", &nowhere).unwrap_err().to_string();
        assert!(error.contains("no [world]"), "{error}");
        for beyond in ["world:/etc/hosts", "world:../triples"] {
            let error = place(beyond, &world).unwrap_err().to_string();
            assert!(error.contains("below the world"), "{error}");
        }
        let error = place("hsdn/x.tsv", &nowhere).unwrap_err().to_string();
        assert!(error.contains("sources.hsdn.path") && error.contains("--data DIR"), "{error}");
        let data = Places { data: Some(Path::new("/d")), world: true };
        let outside = place("hsdn/x.tsv", &data).unwrap();
        assert_eq!(outside.input(), Input::file("sources.hsdn.path", "/d/hsdn/x.tsv"));
        assert_eq!(place("world:hsdn", &data).unwrap().file("x").input(), Input::artifact("world"));
        assert!(place("/abs", &nowhere).is_ok());
    }
}
