//! An object fetched into a file of the caller's, resuming where an earlier attempt ended.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::location::Location;
use crate::meta::Meta;
use crate::remote::{Ask, Part};
use crate::store::{Store, Watch};

const CHUNK: usize = 1 << 18;

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Its length.
    pub bytes: u64,
    /// How many of its bytes were there before.
    pub resumed: u64,
    /// SHA-256 of all of it, as 64 hexadecimal digits.
    pub sha256: String,
}

/// What lies beside a part, so that only a part of ours and of the same object is continued.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    /// Says whose file this is: one of another program has no such key.
    engraft_fetch: u32,
    object: Meta,
}

const LABEL_VERSION: u32 = 1;

/// Where that lies.
fn label(part: &Path) -> PathBuf {
    let mut name: OsString = part.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// What of an object is still to come.
struct Rest<'a> {
    location: &'a Location,
    meta: &'a Meta,
    part: &'a Path,
    /// How many of its bytes are in `part`.
    there: u64,
    /// How many it may have.
    limit: u64,
}

impl Store {
    /// Fetches the object, at most `limit` bytes, into the file `part`. What is in it already is kept if it is of the same object,
    /// which the file `part`.json beside it says; both stay when the work ends early, and [`Store::forget`] removes them.
    ///
    /// # Errors
    /// When the object cannot be fetched or the file not written; [`Error::TooLong`] when more than `limit` bytes come, nothing of
    /// which is kept; and when something else lies there; [`Error::Stopped`] when `watch` ends it.
    pub fn download(
        &self,
        location: &Location,
        part: &Path,
        limit: u64,
        watch: Watch<'_>,
    ) -> Result<Downloaded, Error> {
        let told = ours(part)?;
        let meta = self.meta(location)?;
        if let Some(said) = meta.bytes.filter(|said| *said > limit) {
            return Err(Error::TooLong { location: location.to_string(), limit, said: Some(said) });
        }
        let mut there = resumable(part, told.as_ref(), &meta);
        if there == 0 {
            self.forget(part)?;
            write_label(part, &meta)?;
        }
        let mut rest = Rest { location, meta: &meta, part, there, limit };
        match self.rest(&rest, watch) {
            // The server sends files whole or not at all: from the start, then.
            Err(Error::NoRanges { .. }) if there > 0 => {
                there = 0;
                rest.there = 0;
                fs::remove_file(part).map_err(Error::local(part))?;
                self.rest(&rest, watch)?;
            }
            Err(error @ Error::TooLong { .. }) => {
                self.forget(part)?;
                return Err(error);
            }
            done => done?,
        }
        let (bytes, sha256) = sha256(part)?;
        if let Some(said) = meta.bytes.filter(|said| *said != bytes) {
            self.forget(part)?;
            let (path, location) = (part.to_owned(), location.to_string());
            return Err(Error::Other(format!(
                "{}: {bytes} bytes lie there, but {location} has {said}: another process may be writing it; nothing of it is kept; \
                 run again when that has ended",
                path.display()
            )));
        }
        Ok(Downloaded { bytes, resumed: there, sha256 })
    }

    /// Removes a part and what lies beside it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn forget(&self, part: &Path) -> Result<(), Error> {
        for path in [part.to_owned(), label(part)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::local(&path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn rest(&self, rest: &Rest<'_>, watch: Watch<'_>) -> Result<(), Error> {
        let &Rest { location, meta, part, there, limit } = rest;
        let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(Error::local(part))?;
        let mut at = there;
        let mut each = |bytes: &[u8]| {
            at += bytes.len() as u64;
            if at > limit {
                return Err(Error::TooLong { location: location.to_string(), limit, said: None });
            }
            file.write_all(bytes).map_err(Error::local(part))?;
            if watch(bytes.len() as u64).is_break() { Err(Error::Stopped) } else { Ok(()) }
        };
        match location {
            _ if meta.bytes == Some(there) => {}
            Location::Local(path) => {
                let mut from = self.open(location)?.reader(there);
                let mut buffer = vec![0; CHUNK];
                loop {
                    match from.read(&mut buffer).map_err(Error::local(path))? {
                        0 => break,
                        read => each(&buffer[..read])?,
                    }
                }
            }
            Location::Remote(address) => {
                let part = if there == 0 { Part::Whole } else { Part::From(there) };
                let ask = Ask { address, expected: Some(meta), part };
                self.remote()?.read(&ask, |bytes| each(&bytes))?;
            }
        }
        file.sync_all().map_err(Error::local(part))
    }
}

/// What an earlier attempt left beside `part` says of its object; nothing where nothing lies there.
fn ours(part: &Path) -> Result<Option<Meta>, Error> {
    let label = label(part);
    let mut there = [false; 2];
    for (path, there) in [part, &label].into_iter().zip(&mut there) {
        match fs::symlink_metadata(path) {
            // A link leads to somebody else's file.
            Ok(data) if !data.is_file() => return Err(foreign(path)),
            Ok(_) => *there = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::local(path)(error)),
        }
    }
    let told = match there {
        [false, false] => return Ok(None),
        [true, false] => None,
        [_, true] => {
            let text = fs::read(&label).map_err(Error::local(&label))?;
            serde_json::from_slice::<Label>(&text).ok().filter(|told| told.engraft_fetch == LABEL_VERSION)
        }
    };
    match told {
        Some(told) => Ok(Some(told.object)),
        None => Err(foreign(if there[0] { part } else { &label })),
    }
}

/// Writes what lies beside a part, whole: half of it would make the part a stranger's.
/// What lies where a part of a file would go was not left there by an earlier attempt of ours.
fn foreign(path: &Path) -> Error {
    let what = "this is not what an earlier fetch left, so it is neither continued nor removed: move it away";
    Error::Other(format!("{}: {what}", path.display()))
}

fn write_label(part: &Path, meta: &Meta) -> Result<(), Error> {
    let label = label(part);
    let write = || -> io::Result<()> {
        let text = serde_json::to_vec(&Label { engraft_fetch: LABEL_VERSION, object: meta.clone() })?;
        let mut file = tempfile::NamedTempFile::new_in(part.parent().unwrap_or(Path::new(".")))?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&label).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(Error::local(&label))
}

/// How many bytes of the part can be kept.
fn resumable(part: &Path, told: Option<&Meta>, meta: &Meta) -> u64 {
    // Unlike for one read, what is left unsaid here agrees with nothing: much may have happened since.
    let same = told.is_some_and(|told| told.is_telling() && told.state() == meta.state());
    let there = fs::metadata(part).map_or(0, |data| data.len());
    if same && meta.bytes.is_some_and(|bytes| there <= bytes) { there } else { 0 }
}

/// The length of a file and its SHA-256 as 64 hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn sha256(path: &Path) -> Result<(u64, String), Error> {
    digest(path).map_err(Error::local(path))
}

fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                context.update(&buffer[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let hex = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, hex))
}
