//! The remote inputs of a config: which there are, and where each lies on this machine once it has been brought into the cache.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use base::cancel::CancelToken;
use store::location::Location;
use store::options::Options;
use store::{Store, Whole};

/// A remote file that a config names. Clones share what was brought.
#[derive(Clone, Debug)]
pub(crate) struct Remote(Arc<Named>);

#[derive(Debug)]
struct Named {
    location: Location,
    /// The file while it is held in the cache.
    brought: Mutex<Option<Whole>>,
    /// What stands for its path until then.
    absent: PathBuf,
}

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
        self.held().as_ref().map_or_else(|| self.0.absent.clone(), |whole| whole.path().to_owned())
    }

    /// How messages name it: as the config does, without query.
    #[must_use]
    pub(crate) fn shown(&self) -> PathBuf {
        self.location().to_string().trim_end_matches("?...").into()
    }

    fn held(&self) -> MutexGuard<'_, Option<Whole>> {
        self.0.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All remote files that a config names, behind one store.
#[derive(Debug)]
pub(crate) struct Remotes {
    store: Store,
    absent: PathBuf,
    known: Mutex<Vec<Remote>>,
}

impl Remotes {
    /// No file yet. Touches neither disk nor network.
    #[must_use]
    pub(crate) fn new(options: Options) -> Self {
        let absent = options.cache.join("not-brought");
        Self { store: Store::new(options), absent, known: Mutex::new(Vec::new()) }
    }

    /// The remote file at `location`, which may be brought later.
    #[must_use]
    pub(crate) fn expect(&self, location: Location) -> Remote {
        let mut known = self.known();
        if let Some(twin) = known.iter().find(|remote| *remote.location() == location) {
            return twin.clone();
        }
        // Each needs a path of its own even before it is there.
        let absent = self.absent.join(known.len().to_string()).join(location.name());
        known.push(Remote(Arc::new(Named { location, brought: Mutex::default(), absent })));
        known[known.len() - 1].clone()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Remote>> {
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

    /// Brings those of the files into the cache that `paths` names (see [`Remote::path`]): one request each where the cache has it
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
        let known = self.known().clone();
        for remote in known.iter().filter(|remote| paths.contains(&remote.path())) {
            let mut begun = false;
            let mut watch = |_| {
                if !begun {
                    begin(remote.location());
                }
                begun = true;
                if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let whole = self.store.local_file(remote.location(), &mut watch);
            *remote.held() = Some(whole.context("an input cannot be brought into the cache")?);
            cancel.check()?;
        }
        Ok(())
    }
}

/// Whether a location of a config is remote.
#[must_use]
pub(crate) fn is_remote(text: &Path) -> bool {
    text.to_str().is_some_and(store::location::is_remote)
}
