//! Objects that several machines read and write below one location: a folder, a bucket or a part of one. An object appears whole or not at all,
//! and one that is created is created by one writer alone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use base::whole::{folder, persist, sync_folder, temporary};

use crate::error::Error;
use crate::location::Location;
use crate::remote::{Ask, Part};
use crate::store::Store;

/// How much of a file is copied at once.
const CHUNK: usize = 1 << 20;

/// How the names of files begin that are being written.
const UNFINISHED: &str = ".tmp";

/// Takes the bytes of an object as they come.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// What a location holds for everybody.
#[derive(Clone, Debug)]
pub struct Depot {
    store: Store,
    root: Location,
}

/// What became of an object that was to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is there now.
    New,
    /// There was one already, which stays as it is.
    There,
}

/// An object that a depot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name below the depot, with `/` between the parts.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written, in seconds since the Unix epoch.
    pub modified: i64,
}

impl Depot {
    /// The depot at a location. Touches neither disk nor network.
    #[must_use]
    pub fn new(store: Store, root: Location) -> Self {
        Self { store, root }
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Location {
        &self.root
    }

    /// All bytes of a small object; none if it is not there.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        let there = self.fetch(key, &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(there.then_some(bytes))
    }

    /// The length of an object; none if it is not there.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn length(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.store.meta(&self.root.child(key)) {
            Ok(meta) => Ok(meta.bytes),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands the bytes of an object on, in order; says whether it is there.
    ///
    /// # Errors
    /// When it cannot be read, or not be written where it goes.
    pub fn fetch(&self, key: &str, to: Sink<'_>) -> Result<bool, Error> {
        let place = self.root.child(key);
        let fetched = match &place {
            Location::Local(path) => File::open(path)
                .map_err(Error::local(path))
                .and_then(|file| self.copy(file, path, &mut |bytes| to(bytes).map_err(unwritten(&place)))),
            Location::Remote(address) => {
                let ask = Ask { address, expected: None, part: Part::Whole };
                self.store.remote()?.read(&ask, |bytes| to(&bytes).map_err(unwritten(&place))).map(drop)
            }
        };
        match fetched {
            Err(error) if error.is_missing() => Ok(false),
            fetched => fetched.map(|()| true),
        }
    }

    /// Puts a file there as an object, in place of the one that may be there; `sent` is told how many more bytes have gone.
    ///
    /// # Errors
    /// When the file cannot be read or the object not written.
    pub fn put(&self, key: &str, from: &Path, sent: &dyn Fn(u64)) -> Result<(), Error> {
        match self.root.child(key) {
            Location::Local(path) => {
                let file = File::open(from).map_err(Error::local(from))?;
                let mut to = made(&path)?;
                self.copy(file, from, &mut |bytes| {
                    sent(bytes.len() as u64);
                    to.write_all(bytes).map_err(Error::local(&path))
                })?;
                persist(to, &path).map_err(Error::local(&path))
            }
            Location::Remote(address) => self.store.remote()?.put(&address, from, sent),
        }
    }

    /// Writes a small object unless there is one. Of any number of writers at once one is told that it has.
    ///
    /// # Errors
    /// When it cannot be written, or what answers for the location cannot promise that.
    pub fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, Error> {
        match self.root.child(key) {
            Location::Local(path) => {
                let mut to = made(&path)?;
                let written = to.write_all(bytes).and_then(|()| to.as_file().sync_all());
                written.map_err(Error::local(&path))?;
                match to.persist_noclobber(&path) {
                    Ok(_) => {
                        sync_folder(folder(&path)).map_err(Error::local(&path))?;
                        Ok(Created::New)
                    }
                    Err(there) if there.error.kind() == io::ErrorKind::AlreadyExists => Ok(Created::There),
                    Err(failed) => Err(Error::local(&path)(failed.error)),
                }
            }
            Location::Remote(address) => {
                let new = self.store.remote()?.create(&address, bytes)?;
                Ok(if new { Created::New } else { Created::There })
            }
        }
    }

    /// The objects whose keys begin with `prefix` and a slash, sorted.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        let mut listed = match self.root.child(prefix) {
            Location::Local(path) => {
                let mut listed = Vec::new();
                walk(&path, prefix, Files::Objects, &mut listed)?;
                listed
            }
            Location::Remote(address) => self.store.remote()?.list(&address, prefix)?,
        };
        listed.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }

    /// Files that are being written, or were when their writers were killed, sorted; [`Depot::remove`] takes their keys. A bucket has none: its own
    /// rules say how long the parts of an upload stay that was never completed.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn unfinished(&self) -> Result<Vec<Listed>, Error> {
        let mut listed = Vec::new();
        if let Location::Local(path) = &self.root {
            walk(path, "", Files::Unfinished, &mut listed)?;
        }
        listed.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }

    /// Removes an object; one that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        match self.root.child(key) {
            Location::Local(path) => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::local(&path)(error)),
                _ => Ok(()),
            },
            Location::Remote(address) => self.store.remote()?.remove(&address),
        }
    }

    /// Hands on what a file holds, until somebody asks to stop.
    fn copy(
        &self,
        mut from: File,
        path: &Path,
        to: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut buffer = vec![0; CHUNK];
        loop {
            if self.store.cancel().is_cancelled() {
                return Err(Error::Stopped);
            }
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => to(&buffer[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::local(path)(error)),
            }
        }
    }
}

fn unwritten(from: &Location) -> impl FnOnce(io::Error) -> Error + '_ {
    move |cause| Error::Other(format!("{from}: what came of it cannot be written: {cause}"))
}

/// A temporary file beside `path`, whose folder is made if need be.
fn made(path: &Path) -> Result<tempfile::NamedTempFile, Error> {
    let beside: PathBuf = folder(path).to_owned();
    let made = fs::create_dir_all(&beside).and_then(|()| temporary(&beside));
    made.map_err(Error::local(path))
}

/// Which files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// Whole ones.
    Objects,
    /// Those that were not given their names yet.
    Unfinished,
}

fn walk(path: &Path, prefix: &str, files: Files, listed: &mut Vec<Listed>) -> Result<(), Error> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Error::local(path))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::local(path))?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        // One that another machine has removed meanwhile is not there.
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() {
            walk(&path, &key, files, listed)?;
        } else if name.starts_with(UNFINISHED) == (files == Files::Unfinished) {
            let since = data.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let modified = since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
            listed.push(Listed { key, bytes: data.len(), modified });
        }
    }
    Ok(())
}
