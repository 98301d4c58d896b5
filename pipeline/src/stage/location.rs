//! Where a config's paths lie: in the world's artifact, in the data folder, or in a store elsewhere.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use store::location::shown;

use super::remote::{Remote, Remotes, is_remote};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::Input;

/// A path as a config gives it: `world:hsdn/x.tsv` lies in the artifact of stage `world`, `s3://bucket/x.tsv` in a store, anything
/// else in the data folder (`--data`, which may itself be in a store) or, if absolute, where it says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub(crate) struct Location(pub String);

impl std::fmt::Debug for Location {
    /// Without what may be secret.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&shown(&self.0), to)
    }
}

/// Where relative paths count from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The folder given with `--data`.
    pub data: Option<&'a Path>,
    /// Whether the config has a world.
    pub world: bool,
    /// Where remote files are expected.
    pub remotes: &'a Arc<Remotes>,
}

/// A location that a stage can declare as an input and open while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
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
    /// A file in a store elsewhere.
    Remote {
        /// What the stage calls it.
        label: String,
        remote: Remote,
        /// Where its neighbours are asked for.
        remotes: Neighbours,
    },
}

/// Where the neighbours of a remote file are asked for. All are alike to comparisons: a file is told by its location.
#[derive(Debug, Clone)]
pub(crate) struct Neighbours(Arc<Remotes>);

impl PartialEq for Neighbours {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Neighbours {}

impl Location {
    /// Finds out where the location lies. `key` is its config key, for messages.
    ///
    /// # Errors
    /// When it lies in a world that the config lacks, or in a data folder that was not given.
    pub(crate) fn place(&self, key: &str, places: &Places<'_>) -> anyhow::Result<Place> {
        let label = key.to_owned();
        anyhow::ensure!(
            !self.0.trim().is_empty(),
            "{key} is empty: name a file or folder, or \".\" for the data folder itself"
        );
        if let Some(below) = self.0.strip_prefix("world:") {
            anyhow::ensure!(
                places.world,
                "{key} = {self:?} lies in the world, but the config has no [world]: add one, or name a file of your own"
            );
            let below = PathBuf::from(below);
            anyhow::ensure!(
                below.components().all(|part| matches!(part, Component::Normal(_)))
                    && !self.0.contains("://"),
                "{key} = {self:?} does not lie below the world: name a file of it, as in \"world:hsdn/Combined-Input.tsv\""
            );
            let name = below.to_string_lossy();
            anyhow::ensure!(
                world::has(&name),
                "{key} = {self:?}: the world has no such file or folder, but {}",
                world::places()
            );
            return Ok(Place::World { label, below });
        }
        let path = Path::new(&self.0);
        let path = match places.data {
            _ if path.is_absolute() || is_remote(path) => path.to_owned(),
            // A signed URL has its path in front of its query.
            Some(data) if is_remote(data) => {
                let data = store::location::Location::parse(&data.to_string_lossy());
                let location = data.context("--data is invalid")?.child(&self.0);
                return Ok(remote(label, location, places));
            }
            Some(data) => data.join(path),
            None => anyhow::bail!(
                "{key} = {self:?} counts from the data folder: say where that is with --data DIR, or give a whole path"
            ),
        };
        if !is_remote(&path) {
            return Ok(Place::Outside { label, path });
        }
        let location = store::location::Location::parse(&path.to_string_lossy());
        let location = location.with_context(|| format!("{key} is invalid"))?;
        Ok(remote(label, location, places))
    }
}

fn remote(label: String, location: store::location::Location, places: &Places<'_>) -> Place {
    let remote = places.remotes.expect(location);
    Place::Remote { label, remote, remotes: Neighbours(Arc::clone(places.remotes)) }
}

impl Place {
    /// The place `name` below this one (a folder).
    #[must_use]
    pub(crate) fn file(&self, name: &str) -> Place {
        match self {
            Place::World { label, below } => {
                Place::World { label: format!("{label}/{name}"), below: below.join(name) }
            }
            Place::Outside { label, path } => {
                Place::Outside { label: format!("{label}/{name}"), path: path.join(name) }
            }
            Place::Remote { label, remote, remotes } => Place::Remote {
                label: format!("{label}/{name}"),
                remote: remotes.0.expect(remote.location().child(name)),
                remotes: remotes.clone(),
            },
        }
    }

    /// Whether the file `name` lies below this place. What lies in a world is not known before it is made.
    ///
    /// # Errors
    /// When a store cannot be asked.
    pub(crate) fn has(&self, name: &str) -> anyhow::Result<bool> {
        match self {
            Place::World { .. } => Ok(false),
            Place::Outside { path, .. } => Ok(path.join(name).is_file()),
            Place::Remote { remote, remotes, .. } => remotes.0.has(&remote.location().child(name)),
        }
    }

    /// The size of a file in a store.
    ///
    /// # Errors
    /// When it cannot be asked, or does not say.
    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        let Place::Remote { remote, remotes, .. } = self else {
            anyhow::bail!("only a file in a store is asked for its size");
        };
        let bytes = remotes.0.bytes(remote.location())?;
        bytes.with_context(|| format!("{} does not say how long it is", remote.location()))
    }

    /// Whether it is a folder, as far as that is known before anything is made.
    pub(crate) fn is_folder(&self) -> bool {
        match self {
            Place::World { below, .. } => !world::has_file(&below.to_string_lossy()),
            Place::Outside { path, .. } => path.is_dir(),
            Place::Remote { .. } => false,
        }
    }

    /// Whether it is a file, as far as that is known before anything is made.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Place::World { below, .. } => world::has_file(&below.to_string_lossy()),
            Place::Outside { path, .. } => path.is_file(),
            Place::Remote { .. } => false,
        }
    }

    /// Whether another place is this one, whatever the stage calls it.
    pub(crate) fn is_same(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::World { below: one, .. }, Place::World { below: two, .. })
            | (Place::Outside { path: one, .. }, Place::Outside { path: two, .. }) => one == two,
            (Place::Remote { remote: one, .. }, Place::Remote { remote: two, .. }) => one == two,
            _ => false,
        }
    }

    /// Whether something may lie there: of a world it is known what it has.
    pub(crate) fn may_be(&self) -> bool {
        match self {
            Place::World { below, .. } => world::has(&below.to_string_lossy()),
            Place::Outside { .. } | Place::Remote { .. } => true,
        }
    }

    /// The place `name` in the folder of this file, where there is such a file. What lies in a world is not known before it is made, and
    /// a web address with a query is that of one file alone.
    ///
    /// # Errors
    /// When a store cannot be asked.
    pub(crate) fn beside(&self, name: &str) -> anyhow::Result<Option<Place>> {
        Ok(match self {
            Place::World { .. } => None,
            Place::Outside { label, path } => {
                let path = path.with_file_name(name);
                path.is_file().then(|| Place::Outside { label: format!("{label}, {name}"), path })
            }
            Place::Remote { label, remote, remotes } => match remote.location().beside(name) {
                Some(beside) if remotes.0.has(&beside)? => Some(Place::Remote {
                    label: format!("{label}, {name}"),
                    remote: remotes.0.expect(beside),
                    remotes: remotes.clone(),
                }),
                _ => None,
            },
        })
    }

    /// The file at this path relative to the folder of this one, if there is one. What lies in a store is cached by itself, and what lies in a world not known before it is made.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn relative(&self, path: &str) -> anyhow::Result<Place> {
        let Place::Outside { label, path: own } = self else {
            anyhow::bail!("only files on this machine are looked for in another folder");
        };
        let found = own.with_file_name(path);
        // Of a file that is not there itself that is said, and nothing of what belongs beside it.
        anyhow::ensure!(found.is_file() || !own.exists(), "{} is not there", found.display());
        Ok(Place::Outside { label: format!("{label}, {path}"), path: found })
    }

    /// Whether the name of the file ends so.
    #[must_use]
    pub(crate) fn ends_in(&self, ending: &str) -> bool {
        match self {
            Place::World { below: path, .. } | Place::Outside { path, .. } => {
                path.to_string_lossy().ends_with(ending)
            }
            Place::Remote { remote, .. } => remote.location().name().ends_with(ending),
        }
    }

    /// What the stage calls it.
    #[must_use]
    pub(crate) fn label(&self) -> &str {
        match self {
            Place::World { label, .. } | Place::Outside { label, .. } | Place::Remote { label, .. } => label,
        }
    }

    /// The input that a stage declares for it.
    #[must_use]
    pub(crate) fn input(&self) -> Input {
        match self {
            Place::World { .. } => Input::artifact("world"),
            Place::Outside { label, path } => Input::file(label, path),
            Place::Remote { label, remote, .. } => Input::file(label, remote.path()),
        }
    }

    /// The name of the file or folder itself.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        let last = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self {
            Place::World { below, .. } => last(below),
            Place::Outside { path, .. } => last(path),
            Place::Remote { remote, .. } => remote.location().name(),
        }
    }

    /// Describes which file of the world it is. An outside file is described by its contents, wherever it lies, and by its
    /// name, which stands in funnels.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        match self {
            Place::World { label, below } => to.field(label, format!("world:{}", below.display()).into()),
            Place::Outside { label, .. } | Place::Remote { label, .. } => to.field(label, self.name().into()),
        }
    }

    /// Where it lies while the stage runs.
    ///
    /// # Errors
    /// When the stage did not declare it.
    pub(crate) fn path(&self, context: &Context) -> anyhow::Result<PathBuf> {
        Ok(match self {
            Place::World { below, .. } => context.artifact("world")?.join(below),
            Place::Outside { label, .. } | Place::Remote { label, .. } => context.file(label)?.to_owned(),
        })
    }

    /// How messages name it: a remote file as the config does, any other by `path`, where it lies.
    #[must_use]
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match self {
            Place::World { .. } | Place::Outside { .. } => path.to_owned(),
            Place::Remote { remote, .. } => remote.shown(),
        }
    }
}

/// The inputs for `places`, each once.
#[must_use]
pub(crate) fn inputs<'a>(places: impl IntoIterator<Item = &'a Place>) -> Vec<Input> {
    once(places.into_iter().map(Place::input))
}

/// Each input once, in order.
#[must_use]
pub(crate) fn once(all: impl IntoIterator<Item = Input>) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for input in all {
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::describe::Description;
    use store::options::Options;

    fn remotes() -> Arc<Remotes> {
        Arc::new(Remotes::new(Options::new(Path::new("/cache"))))
    }

    #[test]
    fn a_location_says_what_it_lacks() {
        let remotes = &remotes();
        let (nowhere, world) =
            (Places { data: None, world: false, remotes }, Places { data: None, world: true, remotes });
        let place = |text: &str, places| Location(text.to_owned()).place("sources.hsdn.path", places);
        let error = place("world:hsdn/x.tsv", &nowhere).unwrap_err().to_string();
        assert!(error.contains("no [world]"), "{error}");
        let error = place("world:hsdn/x.tsv", &world).unwrap_err().to_string();
        assert!(
            error.contains("the world has no such file or folder, but hsdn/Combined-Input.tsv, "),
            "{error}"
        );
        for beyond in ["world:/etc/hosts", "world:../triples"] {
            let error = place(beyond, &world).unwrap_err().to_string();
            assert!(error.contains("below the world"), "{error}");
        }
        let error = place("hsdn/x.tsv", &nowhere).unwrap_err().to_string();
        assert!(error.contains("sources.hsdn.path") && error.contains("--data DIR"), "{error}");
        let data = Places { data: Some(Path::new("/d")), world: true, remotes };
        let outside = place("hsdn/x.tsv", &data).unwrap();
        assert_eq!(outside.input(), Input::file("sources.hsdn.path", "/d/hsdn/x.tsv"));
        assert_eq!(place("world:hsdn", &data).unwrap().file("x").input(), Input::artifact("world"));
        assert!(place("/abs", &nowhere).is_ok());
    }

    #[test]
    fn a_remote_file_is_described_as_a_local_one_of_its_name_and_shows_no_secret() {
        let remotes = &remotes();
        let place = |text: &str, data: Option<&Path>| {
            Location(text.to_owned()).place("key", &Places { data, world: false, remotes })
        };
        let described = |place: &Place| {
            let (fields, files, artifacts) = Default::default();
            let mut description =
                Description { version: 1, fields, files, artifacts, unfit: Default::default() };
            place.describe(&mut description);
            description
        };
        let url = place("https://host/a/x.tsv?sig=hidden", None).unwrap();
        assert_eq!(described(&url), described(&place("/d/x.tsv", None).unwrap()));
        assert!(!format!("{url:?}").contains("hidden"));
        assert_eq!(url.shown(Path::new("/cache/x.tsv")), Path::new("https://host/a/x.tsv"));
        // Data that all lie in a bucket.
        let below = place("hsdn/x.tsv", Some(Path::new("s3://bucket/data"))).unwrap();
        assert_eq!(below.shown(Path::new("")), Path::new("s3://bucket/data/hsdn/x.tsv"));
        assert_eq!(below.file("y").shown(Path::new("")), Path::new("s3://bucket/data/hsdn/x.tsv/y"));
        assert_ne!(below.input(), below.file("y").input(), "inputs differ before they are there");
        for secret in ["s3://AKIA:hunter2@b/x", " https://me:hunter2@h/x", "world:s3://AKIA:hunter2@b/x"] {
            assert!(!format!("{:?}", Location(secret.to_owned())).contains("hunter2"));
            let below = Some(Path::new("/d"));
            let data = [("x", Some(Path::new(secret))), (secret, None), (secret, below)];
            for (text, data) in
                data.into_iter().filter(|(text, _)| !secret.starts_with("world") || *text != "x")
            {
                let error = format!("{:#}", place(text, data).unwrap_err());
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
        let error = format!("{:#}", place("ftp://host/x", None).unwrap_err());
        assert!(error.contains("key") && error.contains("s3://"), "{error}");
    }
}
