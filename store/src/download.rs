//! An object fetched into a file of the caller's, going on where an earlier attempt ended. Knows no catalogue.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::failure::Failure;
use crate::location::Location;
use crate::meta::Meta;
use crate::remote::{Ask, Part};
use crate::store::{Error, Store, Watch};

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

/// What lies beside a part so that only the same object is gone on with.
fn label(part: &Path) -> PathBuf {
    let mut name: OsString = part.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

impl Store {
    /// Fetches the object into the file `part`. What is in it already is kept if it is of the same object, which the file
    /// `part`.json beside it says; both stay when the work ends early, and [`Store::forget`] removes them.
    ///
    /// # Errors
    /// When the object cannot be fetched or the file not written; [`Error::Stopped`] when `watch` ends it.
    pub fn download(&self, location: &Location, part: &Path, watch: Watch<'_>) -> Result<Downloaded, Error> {
        let meta = self.meta(location)?;
        let mut there = self.resumable(part, &meta);
        if there == 0 {
            self.forget(part)?;
            let label = label(part);
            let text = serde_json::to_vec(&meta).map_err(io::Error::from);
            text.and_then(|text| File::create(&label)?.write_all(&text)).map_err(Error::local(&label))?;
        }
        match self.rest(location, &meta, (part, there), watch) {
            // The server sends files whole or not at all: from the start, then.
            Err(Error::Remote(Failure::NoRanges { .. })) if there > 0 => {
                there = 0;
                fs::remove_file(part).map_err(Error::local(part))?;
                self.rest(location, &meta, (part, 0), watch)?;
            }
            done => done?,
        }
        let (bytes, sha256) = sha256(part)?;
        if let Some(said) = meta.bytes.filter(|said| *said != bytes) {
            self.forget(part)?;
            let (path, location) = (part.to_owned(), location.to_string());
            return Err(Error::Length { path, location, bytes: said, found: bytes });
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

    /// How many bytes of the part can be kept.
    fn resumable(&self, part: &Path, meta: &Meta) -> u64 {
        let told = fs::read(label(part)).ok().and_then(|bytes| serde_json::from_slice::<Meta>(&bytes).ok());
        // Unlike for one read, what is left unsaid here agrees with nothing: much may have happened since.
        let same = told.is_some_and(|told| told.is_telling() && told.state() == meta.state());
        let there = fs::metadata(part).map_or(0, |data| data.len());
        if same && meta.bytes.is_some_and(|bytes| there <= bytes) { there } else { 0 }
    }

    fn rest(
        &self,
        location: &Location,
        meta: &Meta,
        (part, there): (&Path, u64),
        watch: Watch<'_>,
    ) -> Result<(), Error> {
        let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(Error::local(part))?;
        let mut each = |bytes: &[u8]| {
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
