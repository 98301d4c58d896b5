//! Requests to remote stores, made one after the other on a hidden runtime of one thread: what an object is, and its bytes. Knows no
//! cache.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};
use tokio::runtime::{Builder, Runtime};

use crate::connect::{self, Outcome, Service, Trail, UNKNOWN, innermost};
use crate::failure::Failure;
use crate::location::{Address, Scheme};
use crate::meta::Meta;
use crate::options::Options;

/// All remote stores.
pub(crate) struct Remote {
    runtime: Runtime,
    service: Service,
    options: Options,
    /// By bucket; a web server's object is a store of its own, since its URL is taken as it stands.
    stores: Mutex<BTreeMap<(Scheme, String), Arc<dyn ObjectStore>>>,
}

/// What is asked of an object.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) address: &'a Address,
    /// What it must still be.
    pub(crate) expected: Option<&'a Meta>,
    pub(crate) part: Part,
}

/// Which bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// From an offset to the end.
    From(u64),
    Range(Range<u64>),
}

impl fmt::Debug for Remote {
    /// Shows nothing of the stores, which hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Remote {
    pub(crate) fn new(options: &Options) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::Client { problem: e.to_string() })?;
        let service = Service::new(options).map_err(|problem| Failure::Client { problem })?;
        Ok(Self { runtime, service, options: options.clone(), stores: Mutex::new(BTreeMap::new()) })
    }

    /// What the object is, by one HEAD request where the server allows that.
    pub(crate) fn meta(&self, address: &Address) -> Result<Meta, Failure> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let meta = match self.request(address, options) {
            Ok((result, _)) => of(&result.meta),
            Err(Failure::Refused { what, .. }) if wants_get(address, &what) => {
                return self.meta_by_get(address);
            }
            Err(failure) => return Err(failure),
        };
        if meta.bytes.is_some() { Ok(meta) } else { self.meta_by_get(address).or(Ok(meta)) }
    }

    /// The same by asking for the first byte, which signed URLs allow where they forbid HEAD.
    fn meta_by_get(&self, address: &Address) -> Result<Meta, Failure> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        self.request(address, options).map(|(result, _)| of(&result.meta))
    }

    /// Hands the bytes asked for to `each`, in order, and returns what the object was. A body that breaks off is asked for again
    /// from where it broke.
    ///
    /// # Errors
    /// [`Failure`], or what `each` says.
    pub(crate) fn read<E: From<Failure>>(
        &self,
        ask: &Ask<'_>,
        mut each: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<Meta, E> {
        let (mut at, end) = match &ask.part {
            Part::Whole => (0, None),
            Part::From(start) => (*start, None),
            Part::Range(range) => (range.start, Some(range.end)),
        };
        let mut seen = ask.expected.cloned();
        let mut again = self.options.retries;
        loop {
            let (result, trail) = self
                .request(ask.address, self.wanted(ask, at, end, seen.as_ref()))
                .map_err(|failure| self.maybe_changed(failure, ask.address, seen.as_ref()))?;
            let meta = of(&result.meta);
            if let Some(seen) = seen.as_ref().filter(|seen| !seen.is_same(&meta)) {
                return Err(Failure::changed(ask.address, seen, Some(&meta)).into());
            }
            let end = end.or(meta.bytes);
            let broke = self.drain(result, &mut |bytes| {
                at += bytes.len() as u64;
                each(bytes)
            })?;
            let why = match (broke, end) {
                (None, Some(end)) if at != end => format!("{at} of {end} bytes came"),
                (None, _) => return Ok(meta),
                (Some(why), _) => why,
            };
            trail.broke(why);
            let failure = Failure::of(ask.address, trail.end(), String::new());
            let failure = self.maybe_changed(failure, ask.address, Some(&meta));
            // With a tag the store has tried again itself; without tag and time nobody could tell whether the rest is of the same object.
            let may_go_on = meta.etag.is_none() && (meta.is_telling() || at == 0);
            if again == 0 || matches!(failure, Failure::Changed { .. }) || !may_go_on {
                return Err(failure.into());
            }
            let wait = self.options.backoff.saturating_mul(1 << (self.options.retries - again).min(16));
            self.runtime.block_on(async { tokio::time::sleep(wait.min(self.options.patience)).await });
            again -= 1;
            seen = Some(meta);
        }
    }

    fn wanted(&self, ask: &Ask<'_>, at: u64, end: Option<u64>, seen: Option<&Meta>) -> GetOptions {
        let range = match (end, at) {
            (Some(end), _) => Some(GetRange::Bounded(at..end)),
            (None, 0) if ask.part == Part::Whole => None,
            (None, at) => Some(GetRange::Offset(at)),
        };
        GetOptions {
            range,
            if_match: seen.and_then(Meta::strong).map(ToOwned::to_owned),
            ..GetOptions::default()
        }
    }

    /// Hands a body on; returns why it broke off, if it did.
    fn drain<E>(
        &self,
        result: GetResult,
        each: &mut impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<Option<String>, E> {
        let mut body = result.into_stream();
        while let Some(chunk) = self.runtime.block_on(body.next()) {
            match chunk {
                Ok(bytes) => each(bytes)?,
                Err(error) => return Ok(Some(innermost(&error))),
            }
        }
        Ok(None)
    }

    fn request(&self, address: &Address, mut options: GetOptions) -> Result<(GetResult, Trail), Failure> {
        let trail = Trail::new();
        options.extensions.insert(trail.clone());
        let asked_part = options.range.is_some();
        let key = self.key(address)?;
        let store = self.store(address).map_err(|e| Failure::of(address, trail.end(), innermost(&e)))?;
        match self.runtime.block_on(store.get_opts(&key, options)) {
            Ok(result) => Ok((result, trail)),
            Err(_) if asked_part && trail.end().1 == Some(Outcome::Status(200)) => {
                Err(Failure::NoRanges { url: address.to_string() })
            }
            Err(error) => Err(Failure::of(address, trail.end(), innermost(&error))),
        }
    }

    /// A failed precondition, or a failure beside which the object turns out to be another, is a change.
    fn maybe_changed(&self, failure: Failure, address: &Address, seen: Option<&Meta>) -> Failure {
        let (Some(seen), Failure::Refused { what, .. }) = (seen, &failure) else { return failure };
        let doubtful = [412, 416].iter().any(|status| *what == Outcome::Status(*status).to_string())
            || what.starts_with("the answer broke off");
        if !doubtful {
            return failure;
        }
        match self.meta(address) {
            Ok(now) if !now.is_same(seen) => Failure::changed(address, seen, Some(&now)),
            _ => failure,
        }
    }

    fn key(&self, address: &Address) -> Result<Key, Failure> {
        let url = || address.to_string();
        match address.scheme() {
            // The store's own URL is the object's, taken as it stands.
            Scheme::Http => Ok(Key::default()),
            _ if address.key().is_empty() => Err(Failure::NoKey { url: url() }),
            _ => Key::parse(address.key()).map_err(|e| Failure::of(address, (0, None), e.to_string())),
        }
    }

    fn store(&self, address: &Address) -> object_store::Result<Arc<dyn ObjectStore>> {
        if address.scheme() == Scheme::Http {
            return connect::store(address, &self.service, &self.options);
        }
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = (address.scheme(), address.bucket().to_owned());
        if let Some(store) = stores.get(&bucket) {
            return Ok(Arc::clone(store));
        }
        let store = connect::store(address, &self.service, &self.options)?;
        stores.insert(bucket, Arc::clone(&store));
        Ok(store)
    }
}

/// Whether a server that refuses HEAD may still answer GET.
fn wants_get(address: &Address, what: &str) -> bool {
    let refusals = [400, 403, 405, 501].map(|status| Outcome::Status(status).to_string());
    address.scheme() == Scheme::Http && refusals.iter().any(|refusal| refusal == what)
}

fn of(meta: &ObjectMeta) -> Meta {
    Meta {
        bytes: (meta.size != UNKNOWN).then_some(meta.size),
        etag: meta.e_tag.clone(),
        // A server that does not say counts as the epoch itself.
        modified: Some(meta.last_modified.timestamp()).filter(|seconds| *seconds != 0),
    }
}
