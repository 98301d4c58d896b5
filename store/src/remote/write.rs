//! What is written to remote stores: objects whole, one that nobody had before, lists and removals.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use futures_util::future::ready;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    Error as Refusal, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions,
    PutPayload,
};

use super::{Pace, Remote};
use crate::connect::{Trail, innermost};
use crate::depot::Listed;
use crate::error::Error;
use crate::location::{Address, Scheme};

/// The least that a part of a large object has, and the most that goes in one request. Stores refuse smaller parts than 5 MiB.
const PART: u64 = 8 << 20;
/// Parts of one object, at most: stores take 10,000.
const PARTS: u64 = 9_000;
/// Parts that are sent at once.
const AT_ONCE: usize = 4;

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
                .map_err(|e| trail.refused(address, innermost(&e)))?;
            sent(bytes);
            return Ok(());
        }
        let mut options = PutMultipartOptions::default();
        options.extensions.insert(trail.clone());
        let begun = self.wait(&mut pace, address, store.put_multipart_opts(&key, options))?;
        let mut upload = begun.map_err(|e| trail.refused(address, innermost(&e)))?;
        let parts = parts(file, PART.max(bytes.div_ceil(PARTS)));
        let gone = self.wait(&mut pace, address, send(upload.as_mut(), parts, sent))?;
        match gone {
            Ok(()) => self
                .wait(&mut pace, address, upload.complete())?
                .map(drop)
                .map_err(|e| trail.refused(address, innermost(&e))),
            Err(cause) => {
                // What has gone is of no use to anybody; a store that does not let it be dropped drops it by itself one day.
                let _ = self.wait(&mut pace, address, upload.abort());
                Err(match cause {
                    Cause::Store(e) => trail.refused(address, innermost(&e)),
                    Cause::File(cause) => Error::local(from)(cause),
                })
            }
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
            Err(error) => Err(trail.refused(address, innermost(&error))),
        }
    }

    /// The objects below `address`, whose keys begin with `prefix` where the address itself would have nothing.
    pub(crate) fn list(&self, address: &Address, prefix: &str) -> Result<Vec<Listed>, Error> {
        let (store, below, trail) = self.to_write(address)?;
        let mut pace = Pace::new(self.options.deadline);
        let all = self.wait(&mut pace, address, store.list(Some(&below)).try_collect::<Vec<_>>())?;
        let all = all.map_err(|e| trail.refused(address, innermost(&e)))?;
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
            Err(error) => Err(trail.refused(address, innermost(&error))),
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
        let store = self.store(address).map_err(|e| trail.refused(address, innermost(&e)))?;
        Ok((store, self.key(address)?, trail))
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
