//! The remote inputs of a config: which there are, and where each lies on this machine once it has been brought into the cache.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use base::cancel::CancelToken;
use store::location::Location;
use store::options::Options;
use store::{Store, Whole};

use crate::engine::digest::Digest;
use crate::engine::elsewhere::{Elsewhere, Told, Whereabouts};

/// A remote file that a config names. Clones share what was brought.
#[derive(Clone, Debug)]
pub(crate) struct Remote(Arc<Named>);

#[derive(Debug)]
struct Named {
    location: Location,
    /// Where it is: held in the cache, or known by its contents.
    held: Mutex<Held>,
    /// Held while it is being brought: two stages that read it bring it once.
    coming: Mutex<()>,
    /// What stands for its path until then.
    absent: PathBuf,
}

#[derive(Debug, Default)]
struct Held {
    brought: Option<Whole>,
    /// What a depot says of it, while it is not here.
    said: Option<Told>,
    /// Whether a depot knows what it is.
    noted: bool,
}

/// What a depot says of the contents of a file in a state, if it says anything.
pub(crate) type Notes<'a> = &'a dyn Fn(&str) -> anyhow::Result<Option<Digest>>;

impl PartialEq for Remote {
    fn eq(&self, other: &Self) -> bool {
        self.location() == other.location()
    }
}

impl Eq for Remote {}

impl Remote {
    /// Where it is.
    #[must_use]
    pub(crate) fn location(&self) -> &Location {
        &self.0.location
    }

    /// Where it lies on this machine: in the cache, or nowhere until it has been brought.
    #[must_use]
    pub(crate) fn path(&self) -> PathBuf {
        let brought = |whole: &Whole| whole.path().to_owned();
        self.held().brought.as_ref().map_or_else(|| self.0.absent.clone(), brought)
    }

    /// How messages name it: as the config does, without query.
    #[must_use]
    pub(crate) fn shown(&self) -> PathBuf {
        self.location().to_string().trim_end_matches("?...").into()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the file that has come. It must be what a depot has said of it, if one has; else it stays away.
    fn take(&self, whole: Whole) -> anyhow::Result<()> {
        let mut held = self.held();
        if let Some(Told { state, contents }) = &held.said {
            let location = self.location();
            let is_same = whole.state().is_none_or(|now| now == state);
            anyhow::ensure!(is_same, "{location} has changed since this run looked at it: run again");
            anyhow::ensure!(
                whole.blake3() == Some(&contents.to_string()),
                "{location} is not what the depot says of it (files/{state}.json there), though its server gives it the same entity tag and length: it was \
                 replaced without a new tag, or the note is wrong; remove the note, then run again"
            );
        }
        (held.said, held.brought) = (None, Some(whole));
        Ok(())
    }
}

/// All remote files that a config names, behind one store.
#[derive(Debug)]
pub(crate) struct Remotes {
    store: Store,
    absent: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    all: Vec<Remote>,
    /// By each path that stands for it or has stood for it.
    by_path: HashMap<PathBuf, Remote>,
}

impl Remotes {
    /// No file yet. Touches neither disk nor network.
    #[must_use]
    pub(crate) fn new(options: Options) -> Self {
        let absent = options.cache.join("not-brought");
        Self { store: Store::new(options), absent, known: Mutex::default() }
    }

    /// The remote file at `location`, which may be brought later.
    #[must_use]
    pub(crate) fn expect(&self, location: Location) -> Remote {
        let mut known = self.known();
        if let Some(twin) = known.all.iter().find(|remote| *remote.location() == location) {
            return twin.clone();
        }
        // Each needs a path of its own even before it is there.
        let absent = self.absent.join(known.all.len().to_string()).join(location.name());
        let remote =
            Remote(Arc::new(Named { location, held: Mutex::default(), coming: Mutex::default(), absent }));
        known.by_path.insert(remote.path(), remote.clone());
        known.all.push(remote.clone());
        remote
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is something at `location`.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub(crate) fn has(&self, location: &Location) -> anyhow::Result<bool> {
        Ok(self.store.exists(location)?)
    }

    /// The length of what is at `location`, if its server says.
    ///
    /// # Errors
    /// When nothing is there, or it cannot be asked.
    pub(crate) fn bytes(&self, location: &Location) -> anyhow::Result<Option<u64>> {
        Ok(self.store.meta(location)?.bytes)
    }

    /// Those of the files that `paths` names (see [`Remote::path`]), each once.
    fn named(&self, paths: &[PathBuf]) -> Vec<Remote> {
        let mut named = BTreeSet::new();
        paths.iter().filter(|path| named.insert(*path)).filter_map(|path| self.at(path)).collect()
    }

    /// Asks `notes` what the files are that `paths` names. One of which they say it, and that is not in the cache, need not be brought before a stage reads it.
    ///
    /// # Errors
    /// When a server or a depot cannot be asked, what is in the cache is not what was noted, or somebody asks to stop.
    pub(crate) fn ask(
        &self,
        paths: &[PathBuf],
        notes: Notes<'_>,
        cancel: &CancelToken,
    ) -> anyhow::Result<()> {
        for remote in self.named(paths) {
            cancel.check()?;
            let state = self.store.state(remote.location()).context("an input cannot be asked for")?;
            let Some(state) = state else { continue };
            let contents = notes(&state.name)?;
            let mut held = remote.held();
            held.noted = contents.is_some();
            held.said = contents.map(|contents| Told { state: state.name, contents });
            drop(held);
            if let Some(cached) = state.cached {
                self.put(&remote, cached)?;
            }
        }
        Ok(())
    }

    /// Brings those of the files into the cache that `paths` names (see [`Remote::path`]) and that nobody has said anything of: one request each where the cache has it
    /// already. `begin` is told of each file whose bytes begin to come.
    ///
    /// # Errors
    /// When one cannot be fetched or the cache not written, or somebody asks to stop.
    pub(crate) fn bring(
        &self,
        paths: &[PathBuf],
        cancel: &CancelToken,
        begin: &dyn Fn(&Location),
    ) -> anyhow::Result<()> {
        for remote in self.named(paths).iter().filter(|remote| remote.held().said.is_none()) {
            self.bring_one(remote, begin)?;
            cancel.check()?;
        }
        Ok(())
    }

    /// The store itself ends the wait when somebody asks to stop.
    fn bring_one(&self, remote: &Remote, begin: &dyn Fn(&Location)) -> anyhow::Result<()> {
        let _coming = remote.0.coming.lock().unwrap_or_else(PoisonError::into_inner);
        if remote.held().brought.is_some() {
            return Ok(());
        }
        let mut begun = false;
        let mut watch = |_| {
            if !std::mem::replace(&mut begun, true) {
                begin(remote.location());
            }
            ControlFlow::Continue(())
        };
        let whole = self.store.local_file(remote.location(), &mut watch);
        self.put(remote, whole.context("an input cannot be brought into the cache")?)
    }

    /// Takes a file that is here.
    fn put(&self, remote: &Remote, whole: Whole) -> anyhow::Result<()> {
        remote.take(whole)?;
        self.known().by_path.insert(remote.path(), remote.clone());
        Ok(())
    }

    /// The file that `path` stands for or has stood for.
    fn at(&self, path: &Path) -> Option<Remote> {
        self.known().by_path.get(path).cloned()
    }
}

impl Elsewhere for Remotes {
    fn find(&self, path: &Path) -> Option<Whereabouts> {
        let remote = self.at(path)?;
        let said = remote.held().said.as_ref().map(|said| said.contents);
        Some(said.map_or_else(|| Whereabouts::Here(remote.path()), Whereabouts::Said))
    }

    fn bring(&self, paths: &[PathBuf], begin: &dyn Fn(&str)) -> anyhow::Result<()> {
        let begin = |from: &Location| begin(&from.to_string());
        let absent = self.named(paths).into_iter().filter(|remote| remote.held().brought.is_none());
        absent.into_iter().try_for_each(|remote| self.bring_one(&remote, &begin))
    }

    fn news(&self, path: &Path) -> Option<Told> {
        let remote = self.at(path)?;
        let mut held = remote.held();
        let whole = held.brought.as_ref()?;
        let told = Told { state: whole.state()?.to_owned(), contents: whole.blake3()?.parse().ok()? };
        (!std::mem::replace(&mut held.noted, true)).then_some(told)
    }

    fn identity(&self, path: &Path) -> Option<String> {
        self.at(path)?.location().identity()
    }
}

/// Whether a location of a config is remote.
#[must_use]
pub(crate) fn is_remote(text: &Path) -> bool {
    text.to_str().is_some_and(store::location::is_remote)
}
