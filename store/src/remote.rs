//! Requests to remote stores, made one after the other on a hidden runtime of one thread: what an object is, and its bytes.

mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};
use tokio::runtime::{Builder, Runtime};

use crate::connect::{self, Outcome, Service, Trail, UNKNOWN, innermost};
use crate::error::Error;
use crate::location::{Address, Scheme};
use crate::meta::Meta;
use crate::options::Options;

/// How often a wait is left to ask whether it should go on.
const TICK: Duration = Duration::from_millis(100);

/// All remote stores.
pub(crate) struct Remote {
    /// Always there until this is dropped.
    runtime: Option<Runtime>,
    service: Service,
    options: Options,
    /// What is written goes through a client that waits for answers while a body is sent.
    writing: Service,
    /// By use and bucket; a web server's object is a store of its own, since its URL is taken as it stands.
    stores: Mutex<Stores>,
}

type Stores = BTreeMap<(Use, Scheme, String), Arc<dyn ObjectStore>>;

/// What a store is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    Reading,
    Writing,
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A look-up of a host's name cannot be ended, and nobody needs its answer any more.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The time that an answer has: all of it, and how much must come in each stretch of it.
struct Pace {
    since: Instant,
    limit: Duration,
    /// Time spent waiting since `bytes` was zero. Counted in ticks, so that a process that was stopped for a while blames nobody.
    waited: Duration,
    bytes: u64,
}

impl Pace {
    fn new(limit: Duration) -> Self {
        Self { since: Instant::now(), limit, waited: Duration::ZERO, bytes: 0 }
    }
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
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::no_client)?;
        let service = Service::new(options, Use::Reading).map_err(Error::no_client)?;
        let writing = Service::new(options, Use::Writing).map_err(Error::no_client)?;
        Ok(Self {
            runtime: Some(runtime),
            service,
            writing,
            options: options.clone(),
            stores: Mutex::new(BTreeMap::new()),
        })
    }

    /// What the object is, by one HEAD request where the server allows that.
    pub(crate) fn meta(&self, address: &Address) -> Result<Meta, Error> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let meta = match self.request(address, options) {
            Ok((result, _)) => of(&result.meta),
            Err(Error::Refused { status, .. }) if wants_get(address, status) => {
                return self.meta_by_get(address);
            }
            Err(failure) => return Err(failure),
        };
        if meta.bytes.is_some() { Ok(meta) } else { self.meta_by_get(address).or(Ok(meta)) }
    }

    /// The same by asking for the first byte, which signed URLs allow where they forbid HEAD.
    fn meta_by_get(&self, address: &Address) -> Result<Meta, Error> {
        let options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        self.request(address, options).map(|(result, _)| of(&result.meta))
    }

    /// Hands the bytes asked for to `each`, in order, and returns what the object was. A body that breaks off is asked for again
    /// from where it broke.
    ///
    /// # Errors
    /// [`Error`], or what `each` says.
    pub(crate) fn read(
        &self,
        ask: &Ask<'_>,
        mut each: impl FnMut(Bytes) -> Result<(), Error>,
    ) -> Result<Meta, Error> {
        let mut pace = Pace::new(self.options.deadline);
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
                return Err(Error::changed(ask.address, seen, Some(&meta)));
            }
            let end = end.or(meta.bytes);
            let broke = self.drain(ask.address, result, &mut pace, &mut |bytes| {
                at += bytes.len() as u64;
                // More than was asked for is no part of the object, and may never end.
                if end.is_some_and(|end| at > end) { Ok(false) } else { each(bytes).map(|()| true) }
            })?;
            let why = match (broke, end) {
                (None, Some(end)) if at != end => format!("{at} of {end} bytes came"),
                (None, _) => return Ok(meta),
                (Some(why), _) => why,
            };
            trail.broke(why);
            let failure = trail.refused(ask.address, String::new());
            let failure = self.maybe_changed(failure, ask.address, Some(&meta));
            // With a tag the store has tried again itself; without tag and time nobody could tell whether the rest is of the same object.
            let may_go_on = meta.etag.is_none() && (meta.is_telling() || at == 0);
            if again == 0 || matches!(failure, Error::Changed { .. }) || !may_go_on {
                return Err(failure);
            }
            let wait = self.options.backoff.saturating_mul(1 << (self.options.retries - again).min(16));
            self.wait(&mut pace, ask.address, async {
                tokio::time::sleep(wait.min(self.options.patience)).await;
            })?;
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

    /// Hands a body on as long as `each` says yes; returns why it broke off, if it did.
    fn drain(
        &self,
        address: &Address,
        result: GetResult,
        pace: &mut Pace,
        each: &mut impl FnMut(Bytes) -> Result<bool, Error>,
    ) -> Result<Option<String>, Error> {
        let mut body = result.into_stream();
        (pace.waited, pace.bytes) = (Duration::ZERO, 0);
        while let Some(chunk) = self.wait(pace, address, body.next())? {
            match chunk {
                Ok(bytes) => {
                    pace.bytes += bytes.len() as u64;
                    if !each(bytes)? {
                        return Ok(Some("more bytes came than the object has".to_owned()));
                    }
                }
                Err(error) => return Ok(Some(innermost(&error))),
            }
        }
        Ok(None)
    }

    /// Waits for `future`, unless somebody wants the work to end, its time is over, or hardly anything comes.
    fn wait<T>(
        &self,
        pace: &mut Pace,
        address: &Address,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let Some(runtime) = &self.runtime else {
            return Err(Error::no_client("the runtime has ended"));
        };
        let options = &self.options;
        let mut future = pin!(future);
        loop {
            if options.cancel.is_cancelled() {
                return Err(Error::Stopped);
            }
            if pace.since.elapsed() >= pace.limit {
                return Err(Error::Other(format!(
                    "{address}: not there after {} s, which is all the time that one object has: --deadline SECONDS gives it more",
                    pace.limit.as_secs()
                )));
            }
            if pace.waited >= options.patience {
                let (bytes, seconds, least) = (pace.bytes, pace.waited.as_secs(), options.least_bytes);
                // That nothing at all comes is found, and tried again, further down.
                if (1..least).contains(&bytes) {
                    return Err(Error::Other(format!(
                        "{address}: the server sent {bytes} bytes in {seconds} s, fewer than {least}: run again later, or get the file another way"
                    )));
                }
                (pace.waited, pace.bytes) = (Duration::ZERO, 0);
            }
            let begun = Instant::now();
            // Made inside: a timer belongs to the runtime that it is made in.
            let ended = runtime.block_on(async {
                match select(future.as_mut(), pin!(tokio::time::sleep(TICK))).await {
                    Either::Left((value, _)) => Some(value),
                    Either::Right(_) => None,
                }
            });
            pace.waited += begun.elapsed().min(TICK);
            if let Some(value) = ended {
                return Ok(value);
            }
        }
    }

    fn request(&self, address: &Address, mut options: GetOptions) -> Result<(GetResult, Trail), Error> {
        let trail = Trail::new();
        options.extensions.insert(trail.clone());
        let asked_part = options.range.is_some();
        let key = self.key(address)?;
        let store = self.store(address, Use::Reading).map_err(|e| trail.refused(address, innermost(&e)))?;
        // Every try may take its time to connect and again to answer.
        let tries = self.options.retries.saturating_add(1);
        let limit = self.options.patience.saturating_mul(tries.saturating_mul(3)).min(self.options.deadline);
        match self.wait(&mut Pace::new(limit), address, store.get_opts(&key, options))? {
            Ok(result) => Ok((result, trail)),
            Err(_) if asked_part && trail.last() == Some(Outcome::Status(200)) => {
                Err(Error::NoRanges { url: address.to_string() })
            }
            Err(error) => Err(trail.refused(address, innermost(&error))),
        }
    }

    /// A failed precondition, or a failure beside which the object turns out to be another, is a change.
    fn maybe_changed(&self, failure: Error, address: &Address, seen: Option<&Meta>) -> Error {
        let (Some(seen), Error::Refused { what, status, .. }) = (seen, &failure) else { return failure };
        let doubtful = matches!(status, Some(412 | 416)) || what.starts_with("the answer broke off");
        if !doubtful {
            return failure;
        }
        match self.meta(address) {
            Ok(now) if !now.is_same(seen) => Error::changed(address, seen, Some(&now)),
            _ => failure,
        }
    }

    fn key(&self, address: &Address) -> Result<Key, Error> {
        match address.scheme() {
            // The store's own URL is the object's, taken as it stands.
            Scheme::Http => Ok(Key::default()),
            _ if address.key().is_empty() => Err(Error::Other(format!(
                "{address} names a bucket but no object in it: expected {address}/KEY"
            ))),
            _ => Key::parse(address.key()).map_err(|e| Error::refused(address, 0, None, e.to_string())),
        }
    }

    fn store(&self, address: &Address, asked: Use) -> object_store::Result<Arc<dyn ObjectStore>> {
        if address.scheme() == Scheme::Http {
            return connect::store(address, &self.service, &self.options);
        }
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = (asked, address.scheme(), address.bucket().to_owned());
        if let Some(store) = stores.get(&bucket) {
            return Ok(Arc::clone(store));
        }
        let service = match asked {
            Use::Reading => &self.service,
            Use::Writing => &self.writing,
        };
        let store = connect::store(address, service, &self.options)?;
        stores.insert(bucket, Arc::clone(&store));
        Ok(store)
    }
}

/// Whether a server that refuses HEAD may still answer GET.
fn wants_get(address: &Address, status: Option<u16>) -> bool {
    address.scheme() == Scheme::Http && matches!(status, Some(400 | 403 | 405 | 501))
}

fn of(meta: &ObjectMeta) -> Meta {
    Meta {
        bytes: (meta.size != UNKNOWN).then_some(meta.size),
        etag: meta.e_tag.clone(),
        // A server that does not say counts as the epoch itself.
        modified: Some(meta.last_modified.timestamp()).filter(|seconds| *seconds != 0),
    }
}
