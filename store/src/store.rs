//! The store: where every location is asked for what it is, for its parts, and for itself as a file on this machine.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base::cancel::CancelToken;

use crate::cache::{self, Cache, Making};
use crate::error::Error;
use crate::location::{Address, Location};
use crate::meta::Meta;
use crate::object::{Kind, Object};
use crate::options::Options;
use crate::remote::{Ask, Part, Remote};

/// Told how many more bytes have come; may end the work.
pub type Watch<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// All locations behind one cache. Clones share it.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    cache: Cache,
    /// Made at the first request: certificates are read then.
    remote: OnceLock<Remote>,
}

/// An object as a file on this machine. One of the cache is not thrown away while this lives.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// The name of its state, where it has one.
    state: Option<String>,
    pin: Option<cache::Whole>,
}

impl Whole {
    fn of_cache(found: cache::Whole, state: Option<String>) -> Self {
        Self { path: found.path().to_owned(), state, pin: Some(found) }
    }

    /// Where it lies; its file name is that of the location.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state that the object was in ([`Store::state`]), where that tells it from all others.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref().filter(|_| self.pin.as_ref().is_some_and(cache::Whole::is_certain))
    }

    /// The BLAKE3 of its contents, in hexadecimal digits; nothing for a file of this machine.
    #[must_use]
    pub fn blake3(&self) -> Option<&str> {
        self.pin.as_ref().map(cache::Whole::blake3)
    }
}

/// A state of an object in a store.
#[derive(Debug)]
pub struct State {
    /// What it is called.
    pub name: String,
    /// The object, where it is in the cache.
    pub cached: Option<Whole>,
}

/// What the state of an object is called: of what it is and what its server says of it. Nothing where the same could be said of other bytes: without an entity tag that
/// promises equal ones, or without a length.
fn state(address: &Address, meta: &Meta) -> Option<String> {
    (meta.strong().is_some() && meta.bytes.is_some())
        .then(|| cache::name(&address.identity(), &meta.state(), 0))
}

impl Store {
    /// A store. Touches neither disk nor network.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let cache = Cache::new(&options.cache, options.cache_bytes);
        Self(Arc::new(Inner { options, cache, remote: OnceLock::new() }))
    }

    /// What the object is: one request where it is remote.
    ///
    /// # Errors
    /// When it is not there or cannot be asked for.
    pub fn meta(&self, location: &Location) -> Result<Meta, Error> {
        match location {
            Location::Local(path) => {
                let data = std::fs::metadata(path).map_err(Error::local(path))?;
                let modified = std::os::unix::fs::MetadataExt::mtime(&data);
                Ok(Meta { bytes: Some(data.len()), etag: None, modified: Some(modified) })
            }
            Location::Remote(address) => Ok(self.remote()?.meta(address)?),
        }
    }

    /// A name for the state that an object in a store is in now: the same, on every machine, for as long as nobody writes it anew, whoever signs its URL. Nothing for a file of
    /// this machine, or where its server says too little of it. One request, and a look into the cache.
    ///
    /// # Errors
    /// When it is not there or cannot be asked for.
    pub fn state(&self, location: &Location) -> Result<Option<State>, Error> {
        let Location::Remote(address) = location else { return Ok(None) };
        let meta = self.remote()?.meta(address)?;
        let Some(name) = state(address, &meta) else { return Ok(None) };
        let cached = self.0.cache.whole(&name, &location.name())?;
        let cached = cached.map(|found| Whole::of_cache(found, Some(name.clone())));
        Ok(Some(State { name, cached }))
    }

    /// Whether the object is there.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn exists(&self, location: &Location) -> Result<bool, Error> {
        match self.meta(location) {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens an object, to read parts of it. What it is now it must stay: a part of another state is an error.
    ///
    /// # Errors
    /// When it is not there, cannot be asked for, or its server does not say its length.
    pub fn open(&self, location: &Location) -> Result<Object, Error> {
        let kind = match location {
            Location::Local(path) => Kind::Local(Arc::new(File::open(path).map_err(Error::local(path))?)),
            Location::Remote(_) => Kind::Remote,
        };
        let meta = self.meta(location)?;
        let Some(bytes) = meta.bytes else {
            return Err(Error::Other(format!(
                "{location}: the server does not say how long the object is, so no part of it can be asked for: fetch it whole"
            )));
        };
        Ok(Object::new(self.clone(), location.clone(), kind, meta, bytes))
    }

    /// The object as a file: of the cache, where one request shows that it has not changed, or else fetched whole.
    ///
    /// # Errors
    /// When it is not there, cannot be fetched, or does not fit into the cache; [`Error::Stopped`] when `watch` ends it.
    pub fn local_file(&self, location: &Location, watch: Watch<'_>) -> Result<Whole, Error> {
        let address = match location {
            Location::Local(path) => {
                File::open(path).map_err(Error::local(path))?;
                return Ok(Whole { path: path.clone(), state: None, pin: None });
            }
            Location::Remote(address) => address,
        };
        let (remote, cache) = (self.remote()?, &self.0.cache);
        let meta = remote.meta(address)?;
        let (name, file) = (cache::name(&address.identity(), &meta.state(), 0), location.name());
        // An object without tag and time may be another one each time.
        if meta.is_telling()
            && let Some(found) = cache.whole(&name, &file)?
        {
            return Ok(Whole::of_cache(found, state(address, &meta)));
        }
        let mut making = Making::begin(cache, &name, &file, meta.bytes)?;
        let ask = Ask { address, expected: Some(&meta), part: Part::Whole };
        remote.read(&ask, |bytes| {
            making.write(cache, &bytes)?;
            if watch(bytes.len() as u64).is_break() { Err(Error::Stopped) } else { Ok(()) }
        })?;
        let made = making.finish(cache, &meta)?;
        Ok(Whole::of_cache(made, state(address, &meta)))
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// Whether somebody has asked to stop.
    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.0.options.cancel
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.0.options.block_bytes.max(1)
    }

    pub(crate) fn remote(&self) -> Result<&Remote, Error> {
        if let Some(remote) = self.0.remote.get() {
            return Ok(remote);
        }
        let made = Remote::new(&self.0.options)?;
        // Whoever was first wins; the other one has asked for nothing yet.
        Ok(self.0.remote.get_or_init(|| made))
    }

    /// Reads a range of a remote object past the cache.
    pub(crate) fn fetch(
        &self,
        address: &Address,
        meta: &Meta,
        range: std::ops::Range<u64>,
    ) -> Result<Vec<u8>, Error> {
        // Grows as bytes come: the length is what the server claims, and no memory may hold that.
        let soon = (range.end - range.start).min(self.block_bytes());
        let mut bytes = Vec::with_capacity(usize::try_from(soon).unwrap_or_default());
        let ask = Ask { address, expected: Some(meta), part: Part::Range(range) };
        self.remote()?.read(&ask, |chunk| {
            bytes.extend_from_slice(&chunk);
            Ok(())
        })?;
        Ok(bytes)
    }
}
