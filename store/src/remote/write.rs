//! What is written to remote stores: objects whole, one that nobody had before, lists and removals.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error as Refusal, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions,
    PutPayload,
};

use super::{Pace, Remote, Use};
use crate::connect::{Outcome, Trail, innermost};
use crate::depot::Listed;
use crate::error::Error;
use crate::location::{Address, Scheme};

/// The least that a part of a large object has, and the most that goes in one request. Stores refuse smaller parts than 5 MiB.
const PART: u64 = 8 << 20;
/// Parts of one object, at most: stores take 10,000.
const PARTS: u64 = 9_000;
/// Parts of one object that are sent at once; objects are sent side by side as well.
const AT_ONCE: usize = 2;
/// How long dropping what has gone may take.
const GIVING_UP: Duration = Duration::from_secs(5);

impl Remote {
    /// Puts a file there, in place of what may be there.
    pub(crate) fn put(&self, address: &Address, from: &Path, sent: &dyn Fn(u64)) -> Result<(), Error> {
        let (store, key, trail) = self.to_write(address)?;
        let mut file = File::open(from).map_err(Error::local(from))?;
        let bytes = file.metadata().map_err(Error::local(from))?.len();
        let mut pace = Pace::new(self.options.deadline);
        if bytes <= PART {
            let mut whole = Vec::new();
            file.read_to_end(&mut whole).map_err(Error::local(from))?;
            let options = of(PutMode::Overwrite, &trail);
            self.wait(&mut pace, address, store.put_opts(&key, whole.into(), options))?
                .map_err(|e| failed(address, &trail, &e))?;
            sent(bytes);
            return Ok(());
        }
        let mut options = PutMultipartOptions::default();
        options.extensions.insert(trail.clone());
        let begun = self.wait(&mut pace, address, store.put_multipart_opts(&key, options))?;
        let mut upload = begun.map_err(|e| failed(address, &trail, &e))?;
        let parts = parts(file, PART.max(bytes.div_ceil(PARTS)));
        let gone = self.wait(&mut pace, address, send(upload.as_mut(), parts, sent));
        let gone = match gone {
            Ok(Ok(())) => self
                .wait(&mut pace, address, upload.complete())
                .and_then(|done| done.map(drop).map_err(|e| failed(address, &trail, &e))),
            // What the trail knows of is the request that began all this.
            Ok(Err(Cause::Store(e))) => Err(failed(address, &Trail::new(), &e)),
            Ok(Err(Cause::File(cause))) => Err(Error::local(from)(cause)),
            Err(stopped) => Err(stopped),
        };
        if gone.is_err() {
            self.drop_parts(upload.as_mut());
        }
        gone
    }

    /// What has gone of an object that is given up is of no use to anybody. A store that does not answer, or a killed process, leaves it to the bucket's rules.
    fn drop_parts(&self, upload: &mut dyn MultipartUpload) {
        if let Some(runtime) = &self.runtime {
            let _dropped = runtime.block_on(async { tokio::time::timeout(GIVING_UP, upload.abort()).await });
        }
    }

    /// Writes a small object unless there is one; whether it was written.
    pub(crate) fn create(&self, address: &Address, bytes: &[u8]) -> Result<bool, Error> {
        let (store, key, trail) = self.to_write(address)?;
        let payload = PutPayload::from(bytes.to_vec());
        let mut pace = Pace::new(self.options.deadline);
        let put = store.put_opts(&key, payload, of(PutMode::Create, &trail));
        match self.wait(&mut pace, address, put)? {
            Ok(_) => Ok(true),
            Err(Refusal::AlreadyExists { .. } | Refusal::Precondition { .. }) => Ok(false),
            Err(Refusal::NotImplemented { .. }) => Err(Error::Other(format!(
                "{address}: what answers for it was told not to write on condition (AWS_CONDITIONAL_PUT): leave that out"
            ))),
            Err(error) => Err(failed(address, &trail, &error)),
        }
    }

    /// The objects below `address`, whose keys begin with `prefix` where the address itself would have nothing.
    pub(crate) fn list(&self, address: &Address, prefix: &str) -> Result<Vec<Listed>, Error> {
        let (store, below, trail) = self.to_write(address)?;
        let mut pace = Pace::new(self.options.deadline);
        let all = self.wait(&mut pace, address, store.list(Some(&below)).try_collect::<Vec<_>>())?;
        let all = all.map_err(|e| failed(address, &trail, &e))?;
        let named = |meta: object_store::ObjectMeta| {
            let rest = meta.location.as_ref().strip_prefix(below.as_ref())?.strip_prefix('/')?;
            let (key, bytes) = (format!("{prefix}/{rest}"), meta.size);
            Some(Listed { key, bytes, modified: meta.last_modified.timestamp() })
        };
        Ok(all.into_iter().filter_map(named).collect())
    }

    /// Removes an object; one that is not there is no error.
    pub(crate) fn remove(&self, address: &Address) -> Result<(), Error> {
        let (store, key, trail) = self.to_write(address)?;
        let mut pace = Pace::new(self.options.deadline);
        match self.wait(&mut pace, address, store.delete(&key))? {
            Ok(()) | Err(Refusal::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(address, &trail, &error)),
        }
    }

    /// The store of an address that is written to, and the key there.
    fn to_write(
        &self,
        address: &Address,
    ) -> Result<(std::sync::Arc<dyn ObjectStore>, object_store::path::Path, Trail), Error> {
        if address.scheme() == Scheme::Http {
            return Err(Error::Other(format!(
                "{address}: a web server is only read from: expected s3://, gs://, az:// or a path"
            )));
        }
        let trail = Trail::new();
        let store = self.store(address, Use::Writing).map_err(|e| failed(address, &trail, &e))?;
        Ok((store, self.key(address)?, trail))
    }
}

/// What is to be said of a request that failed: by its answer, if the trail has one that says so, else by what the client says.
fn failed(address: &Address, trail: &Trail, error: &Refusal) -> Error {
    match trail.last() {
        None | Some(Outcome::Status(200..300)) => {
            Error::Other(format!("{address}: {}: run again later", innermost(error)))
        }
        Some(_) => trail.refused(address, innermost(error)),
    }
}

fn of(mode: PutMode, trail: &Trail) -> PutOptions {
    let mut options = PutOptions::from(mode);
    options.extensions.insert(trail.clone());
    options
}

/// Why an object did not go.
enum Cause {
    Store(Refusal),
    File(std::io::Error),
}

/// The bytes of a file in parts of this length; the last may be shorter.
fn parts(mut file: File, length: u64) -> impl Iterator<Item = std::io::Result<Vec<u8>>> {
    std::iter::from_fn(move || {
        let mut part = Vec::new();
        match file.by_ref().take(length).read_to_end(&mut part) {
            Ok(0) => None,
            Ok(_) => Some(Ok(part)),
            Err(error) => Some(Err(error)),
        }
    })
}

/// Sends parts, some at once; each is read when there is room for it.
async fn send(
    upload: &mut dyn MultipartUpload,
    parts: impl Iterator<Item = std::io::Result<Vec<u8>>>,
    sent: &dyn Fn(u64),
) -> Result<(), Cause> {
    let sending = stream::iter(parts).map(|part| {
        let part = part.map_err(Cause::File)?;
        let bytes = part.len() as u64;
        let going = upload.put_part(part.into());
        Ok(async move { going.await.map(|()| bytes).map_err(Cause::Store) })
    });
    let counted = |bytes| {
        sent(bytes);
        ready(Ok(()))
    };
    sending.try_buffered(AT_ONCE).try_for_each(counted).await
}
