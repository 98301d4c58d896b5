//! Content digests: 32 bytes of BLAKE3, written as 64 hexadecimal digits.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use base::cancel::CancelToken;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How much of a file is read at once.
const CHUNK: usize = 1 << 18;

/// The digest of some contents.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(blake3::Hash);

impl Digest {
    /// The digest of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// The digest of the file at `path`.
    ///
    /// # Errors
    /// What reading gives; [`base::cancel::Cancelled`] inside when asked to stop.
    pub(crate) fn of_file(path: &Path, cancel: &CancelToken) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            cancel.check()?;
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize())),
                Ok(read) => hasher.update(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
        }
    }

    /// The first 16 hexadecimal digits, for folder names.
    pub(crate) fn stem(&self) -> String {
        self.0.to_hex()[..16].to_owned()
    }

    /// The first 8 hexadecimal digits, for people.
    pub(crate) fn short(&self) -> String {
        self.0.to_hex()[..8].to_owned()
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(hash)
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;

    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(hex).map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        hex.parse().map_err(|_| {
            serde::de::Error::invalid_value(serde::de::Unexpected::Str(&hex), &"64 hexadecimal digits")
        })
    }
}

/// Applies `work` to every item on up to `jobs` threads, of which the caller's is one; the results stand in the items' order. Where
/// the system gives fewer threads it takes longer, and that is all.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: NonZeroUsize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let takes = || {
        while let Some((i, item)) = take(items, &next) {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.get().min(items.len()) {
            if std::thread::Builder::new().spawn_scoped(scope, takes).is_err() {
                break;
            }
        }
        takes();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    items.get(i).map(|item| (i, item))
}
