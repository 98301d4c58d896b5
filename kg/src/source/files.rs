//! The files of a source: which ones a config names, how they are found in a folder, and how they are opened.

mod on_disk;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use base::bom::Unmarked;
use base::gz::{self, Packing};
use base::read::ReadError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::on_disk::{beginning, locate, on_disk, part_names};

/// A location: a file or folder as a config names it, which the reader of the config resolves.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Location(pub String);

impl fmt::Debug for Location {
    /// Without its text: an address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Location")
    }
}

/// A file, or a folder of some, that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot<'a> {
    /// Its key below the source's table: `path`, `table.files.0.path`.
    pub key: String,
    /// What the config names.
    pub location: &'a Location,
    /// What is read of a folder; none for a file. Each then has the key `KEY/NAME`.
    pub members: &'static [Member],
}

/// A file in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether the source cannot do without it.
    pub needed: bool,
    /// The forms in which it may lie there.
    pub form: Form,
}

/// The forms of a file in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `NAME` alone.
    Plain,
    /// Of a release: `NAME`, `NAME.gz`, or in parts `NAME.aa.gz`, `NAME.ab.gz` ... (see [`locate`]).
    Release,
    /// All whose names begin with `NAME`, as releases put their day and edition behind it (see [`beginning`]).
    Beginning,
}

impl<'a> Slot<'a> {
    /// One file.
    pub(super) fn file(key: impl Into<String>, location: &'a Location) -> Self {
        Self { key: key.into(), location, members: &[] }
    }

    /// The files of a list.
    pub(super) fn list(key: &str, locations: &'a [Location]) -> impl Iterator<Item = Self> {
        locations
            .iter()
            .enumerate()
            .map(move |(number, location)| Self::file(format!("{key}.{number}"), location))
    }
}

impl Member {
    /// One that the source cannot do without.
    pub(super) const fn needed(name: &'static str, form: Form) -> Self {
        Self { name, needed: true, form }
    }

    /// One that it can.
    pub(super) const fn optional(name: &'static str, form: Form) -> Self {
        Self { name, needed: false, form }
    }
}

/// Bytes as they come.
pub type Bytes<'f> = Box<dyn Read + Send + 'f>;

/// A file that is being read, and the name that messages call it by.
#[derive(Debug)]
pub struct Input<R> {
    /// The bytes.
    pub reader: R,
    /// The name.
    pub label: PathBuf,
}

impl<R> Input<R> {
    /// `reader`, called `label`.
    pub fn new(reader: R, label: impl Into<PathBuf>) -> Self {
        Self { reader, label: label.into() }
    }
}

/// Counts what is read.
#[derive(Debug)]
pub(super) struct Counted<R> {
    reader: R,
    /// Bytes so far.
    pub(super) bytes: u64,
    /// Line feeds so far.
    pub(super) lines: u64,
}

impl<R> Counted<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, bytes: 0, lines: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes += read as u64;
        self.lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
        Ok(read)
    }
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name that messages call it by.
    pub label: PathBuf,
    /// Where it lies; several paths if it is in parts, which follow one another.
    pub paths: Vec<PathBuf>,
}

/// The files of one source, by the keys of its slots and members.
pub struct Files<'f> {
    found: BTreeMap<String, Found>,
    watch: &'f (dyn Fn(File) -> Bytes<'f> + Sync),
}

impl<'f> Files<'f> {
    /// `watch` may count the bytes that are read, as they lie on the disk.
    pub fn new(found: BTreeMap<String, Found>, watch: &'f (dyn Fn(File) -> Bytes<'f> + Sync)) -> Self {
        Self { found, watch }
    }

    fn find(&self, key: &str) -> Result<&Found, ReadError> {
        let missing = || ReadError::new(key, "the source was given no such file", "one", "say where it lies");
        self.found.get(key).ok_or_else(missing)
    }

    /// Opens a file, unpacked.
    pub(super) fn open(&self, key: &str) -> Result<Input<Box<dyn BufRead + Send + 'f>>, ReadError> {
        let found = self.find(key)?;
        let path = found.paths.first().unwrap_or(&found.label);
        let file = File::open(path).map_err(|error| unopened(path, &error))?;
        let reader = gz::reader((self.watch)(file));
        let reader =
            reader.map_err(|error| ReadError::new(path, format!("cannot read it: {error}"), "", ""))?;
        Ok(Input { reader: Box::new(reader), label: found.label.clone() })
    }

    /// Opens a file that the config may leave out.
    pub(super) fn maybe(&self, key: &str) -> Option<Result<Input<Box<dyn BufRead + Send + 'f>>, ReadError>> {
        self.found.contains_key(key).then(|| self.open(key))
    }

    /// A file as it lies there, for readers that go to and fro in it.
    pub(super) fn seekable(&self, key: &str) -> Result<Input<File>, ReadError> {
        let found = self.find(key)?;
        let path = found.paths.first().unwrap_or(&found.label);
        let reader = File::open(path).map_err(|error| unopened(path, &error))?;
        Ok(Input { reader, label: found.label.clone() })
    }

    /// As [`Files::release`], of a file that must be there.
    pub(super) fn given(&self, key: &str) -> Result<Reopened<'_>, ReadError> {
        let name = key.rsplit('/').next().unwrap_or(key);
        self.release(key).ok_or_else(|| ReadError::new(name, "the file is not there", "it", "fetch it"))
    }

    /// The files of a list that the config names, which has so many: see [`Slot::list`].
    pub(super) fn list(&self, key: &str, count: usize) -> Result<Vec<Reopened<'_>>, ReadError> {
        (0..count).map(|number| self.given(&format!("{key}.{number}"))).collect()
    }

    /// Files that are not parts of one but follow each other, each called by its own name.
    pub(super) fn each(&self, key: &str) -> Vec<Reopened<'_>> {
        let paths = self.found.get(key).map_or(&[][..], |found| &found.paths);
        let one = |path| {
            let paths = std::slice::from_ref(path);
            Reopened { label: PathBuf::from(path), open: Box::new(move || chain(paths, self.watch)) }
        };
        paths.iter().map(one).collect()
    }

    /// A file of a release, which may be read more than once.
    pub(super) fn release(&self, key: &str) -> Option<Reopened<'_>> {
        let Found { label, paths } = self.found.get(key)?;
        Some(Reopened { label: label.clone(), open: Box::new(move || chain(paths, self.watch)) })
    }
}

impl fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("found", &self.found).finish_non_exhaustive()
    }
}

/// What a file's name ends in, in lower case and without the ending of a packed one; empty where there is none.
pub(super) fn ending(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map(|(_, ending)| ending.to_owned()).unwrap_or_default()
}

/// A whole JSON document; `expected` and `remedy` are for one that is none.
pub(super) fn json<T: DeserializeOwned>(
    reader: impl Read,
    file: &Path,
    expected: &str,
    remedy: &str,
) -> Result<T, ReadError> {
    serde_json::from_reader(BufReader::new(Unmarked::new(reader))).map_err(|error| {
        let place = format!("{}: line {}, column {}", file.display(), error.line(), error.column());
        ReadError::new(place, error.to_string(), expected, remedy)
    })
}

/// A file that may be opened more than once.
pub struct Reopened<'f> {
    /// The name that messages call it by.
    pub label: PathBuf,
    /// Opens it, from its beginning.
    pub open: Box<dyn Fn() -> io::Result<Bytes<'f>> + Sync + 'f>,
}

impl fmt::Debug for Reopened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reopened").field("label", &self.label).finish_non_exhaustive()
    }
}

/// What messages and funnels call files that are counted as one: the only one as it is called, several by their names.
pub(super) fn together<'a, 'f: 'a>(files: impl IntoIterator<Item = &'a Reopened<'f>>) -> PathBuf {
    const NAMED: usize = 3;
    let files: Vec<&Reopened<'_>> = files.into_iter().collect();
    if let [file] = files.as_slice() {
        return file.label.clone();
    }
    let name =
        |file: &&Reopened<'_>| file.label.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = files.iter().take(NAMED).map(name).collect();
    let more = files.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    PathBuf::from(names.join(", ") + &more)
}

/// That a file or folder cannot be opened.
pub(super) fn unopened(path: &Path, error: &io::Error) -> ReadError {
    let remedy = "name a file or folder that is there, and see that it can be read";
    ReadError::new(path, format!("cannot open it: {error}"), "", remedy)
}

/// Opens the parts of a file, which follow one another, and unpacks each.
fn chain<'f>(paths: &[PathBuf], watch: &dyn Fn(File) -> Bytes<'f>) -> io::Result<Bytes<'f>> {
    let mut all: Bytes<'f> = Box::new(io::empty());
    for path in paths {
        let bytes: Bytes<'f> = Box::new(Unpacked::new(watch(File::open(path)?), path.clone())?);
        all = if paths.len() == 1 { bytes } else { Box::new(all.chain(bytes)) };
    }
    Ok(all)
}

/// A packed file, unpacked. Its errors name it, since a file in parts is called by the name of the whole.
struct Unpacked<R> {
    unpacked: gz::Unpacked<R>,
    path: PathBuf,
}

impl<R: Read> Unpacked<R> {
    fn new(reader: R, path: PathBuf) -> io::Result<Self> {
        let unpacked = gz::reader(reader).map_err(|error| named(&path, error))?;
        if unpacked.packing() == Packing::Plain && path.extension().is_some_and(|ending| ending == "gz") {
            let what = io::Error::new(io::ErrorKind::InvalidData, "it is no whole gzip file: fetch it again");
            return Err(named(&path, what));
        }
        Ok(Self { unpacked, path })
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unpacked.read(buffer).map_err(|error| named(&self.path, error))
    }
}

/// An error with the name of the file, if its bytes are to blame and not that they cannot be had (or are no longer wanted).
fn named(path: &Path, error: io::Error) -> io::Error {
    if !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Unsupported) {
        return error;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            File::create(folder.path().join(name)).unwrap().write_all(bytes).unwrap();
        }
        folder
    }

    fn read(folder: &tempfile::TempDir) -> Result<Option<String>, String> {
        let Some(paths) = locate(folder.path(), "MRX.RRF").map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut bytes = chain(&paths, &|file| Box::new(file)).map_err(|e| e.to_string())?;
        bytes.read_to_string(&mut text).map_err(|e| e.to_string())?;
        Ok(Some(text))
    }

    #[test]
    fn a_file_may_be_plain_packed_or_in_parts() {
        let (one, two) = (packed(b"one|\ntw"), packed(b"o|\n"));
        assert_eq!(read(&folder(&[])), Ok(None));
        assert_eq!(
            read(&folder(&[("MRX.RRF", b"plain|\n"), ("MRX.RRF.gz", b"")])).unwrap().unwrap(),
            "plain|\n"
        );
        assert_eq!(read(&folder(&[("MRX.RRF.gz", &one)])).unwrap().unwrap(), "one|\ntw");
        let parts: [(&str, &[u8]); 3] =
            [("MRX.RRF.aa.gz", &one), ("MRX.RRF.ab.gz", &two), ("MRXX.RRF.ac.gz", b"")];
        assert_eq!(read(&folder(&parts)).unwrap().unwrap(), "one|\ntwo|\n");
    }

    #[test]
    fn silent_17_a_file_is_unpacked_by_its_bytes_and_named_if_it_cannot_be() {
        let padded = [packed(b"one|\n"), vec![0; 512]].concat();
        for (name, bytes) in [("MRX.RRF.gz", &padded), ("MRX.RRF", &packed(b"one|\n"))] {
            assert_eq!(read(&folder(&[(name, bytes)])).unwrap().unwrap(), "one|\n", "{name}");
        }
        let message = read(&folder(&[("MRX.RRF", b"BZh91AY&SY")])).unwrap_err();
        assert!(message.contains("MRX.RRF: it is packed by bzip2"), "{message}");
    }

    #[test]
    fn a_missing_part_and_a_folder_are_named() {
        let message = read(&folder(&[("MRX.RRF.aa.gz", b""), ("MRX.RRF.ac.gz", b"")])).unwrap_err();
        assert!(message.contains("MRX.RRF.ab.gz"), "{message}");
        let strange = folder(&[]);
        fs::create_dir(strange.path().join("MRX.RRF")).unwrap();
        let message = read(&strange).unwrap_err();
        assert!(message.contains("MRX.RRF") && message.contains("no file"), "{message}");
    }

    #[test]
    fn damaged_packing_is_named_with_a_remedy() {
        let whole = packed(&b"many words, ".repeat(500));
        let flipped: Vec<u8> =
            whole.iter().enumerate().map(|(i, b)| if i == 30 { b ^ 0x55 } else { *b }).collect();
        let trailing = [whole.as_slice(), b"more"].concat();
        for bytes in [&whole[..whole.len() - 5], b"no gzip at all, but long enough", &flipped, &trailing, b""]
        {
            let message = read(&folder(&[("MRX.RRF.gz", bytes)])).unwrap_err();
            assert!(message.contains("MRX.RRF.gz: ") && message.contains("fetch it again"), "{message}");
        }
    }
}
