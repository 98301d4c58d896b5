//! The files of a Metathesaurus directory: which there are, in which form, and their bytes.
//!
//! Each file `X.RRF` may be plain, packed (`X.RRF.gz`), or packed in parts as the publisher ships it (`X.RRF.aa.gz`, `X.RRF.ab.gz`, ...),
//! which follow one another. Where more than one form lies there, the plain one is read, then the packed one.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base::gz::{self, Packing};

use super::Error;
use crate::source::rrf;
use crate::source::rrf::scan::{Input, Totals};

/// Bytes as they come.
pub type Bytes<'f> = Box<dyn Read + Send + 'f>;

/// One file: the name that messages call it by, and how to open it. It may be opened more than once.
pub struct Source<'f> {
    /// The name.
    pub label: PathBuf,
    /// Opens it, from its beginning.
    pub open: Box<dyn Fn() -> io::Result<Bytes<'f>> + Sync + 'f>,
}

/// The files to read. MRCONSO and MRREL are needed; without another one what it tells is not known.
pub struct Files<'f> {
    /// MRCONSO.RRF: names. It is read twice if terms are kept.
    pub conso: Source<'f>,
    /// MRREL.RRF: relations.
    pub rel: Source<'f>,
    /// MRSTY.RRF: semantic types.
    pub sty: Option<Source<'f>>,
    /// MRDEF.RRF: definitions.
    pub def: Option<Source<'f>>,
    /// MRSAB.RRF: source vocabularies with their licence levels.
    pub sab: Option<Source<'f>>,
    /// MRRANK.RRF: which name is preferred.
    pub rank: Option<Source<'f>>,
    /// MRDOC.RRF: inverses and words of relations.
    pub doc: Option<Source<'f>>,
    /// MRCUI.RRF: retired concepts.
    pub cui: Option<Source<'f>>,
}

/// The file names, in the order of the fields of [`Files`].
pub const NAMES: [&str; 8] = [
    "MRCONSO.RRF",
    "MRREL.RRF",
    "MRSTY.RRF",
    "MRDEF.RRF",
    "MRSAB.RRF",
    "MRRANK.RRF",
    "MRDOC.RRF",
    "MRCUI.RRF",
];

/// Files of [`NAMES`] without which nothing can be read: the first so many.
pub const NEEDED: usize = 2;

impl Source<'_> {
    /// Has the records parsed and taken; see [`rrf::scan::scan`].
    pub(super) fn scan<const N: usize, T: Send>(
        &self,
        parse: impl Fn(&mut rrf::Rows<'_, N>) -> Result<T, rrf::Error> + Sync,
        take: impl FnMut(T) -> Result<(), Error> + Send,
    ) -> Result<Totals, Error> {
        let reader = (self.open)().map_err(|source| Error::Open { file: self.label.clone(), source })?;
        rrf::scan::scan(Input::new(reader, &self.label), parse, take)
    }
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("label", &self.label).finish_non_exhaustive()
    }
}

/// Where the parts of one file lie: one path, or several that follow one another.
///
/// # Errors
/// When the folder cannot be listed, the name is no file's, or a part in the middle is missing.
pub fn locate(folder: &Path, name: &str) -> Result<Option<Vec<PathBuf>>, Error> {
    for form in [name.to_owned(), format!("{name}.gz")] {
        let path = folder.join(form);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => return Ok(Some(vec![path])),
            Ok(_) => return Err(Error::NoFile { path }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Open { file: path, source }),
        }
    }
    let unlisted = |source| Error::Open { file: folder.to_owned(), source };
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(unlisted)? {
        let found = entry.map_err(unlisted)?.file_name();
        let ending = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.'));
        if let Some([first @ b'a'..=b'z', second @ b'a'..=b'z', b'.', b'g', b'z']) = ending.map(str::as_bytes)
        {
            parts.push((*first, *second));
        }
    }
    parts.sort_unstable();
    let part = |(first, second): (u8, u8)| {
        folder.join(format!("{name}.{}{}.gz", char::from(first), char::from(second)))
    };
    let counted = (b'a'..=b'z').flat_map(|first| (b'a'..=b'z').map(move |second| (first, second)));
    if let Some((missing, _)) = counted.zip(&parts).find(|(wanted, found)| wanted != *found) {
        return Err(Error::MissingPart { path: part(missing) });
    }
    Ok((!parts.is_empty()).then(|| parts.into_iter().map(part).collect()))
}

/// Opens what [`locate`] found. `wrap` may count the bytes on the disk; packed files are unpacked behind it.
///
/// # Errors
/// When a file cannot be opened.
pub fn open<'f>(paths: &[PathBuf], wrap: &dyn Fn(fs::File) -> Bytes<'f>) -> io::Result<Bytes<'f>> {
    let mut all: Bytes<'f> = Box::new(io::empty());
    for path in paths {
        let bytes: Bytes<'f> = Box::new(Unpacked::new(wrap(fs::File::open(path)?), path.clone())?);
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
            fs::File::create(folder.path().join(name)).unwrap().write_all(bytes).unwrap();
        }
        folder
    }

    fn read(folder: &tempfile::TempDir) -> Result<Option<String>, String> {
        let Some(paths) = locate(folder.path(), "MRX.RRF").map_err(|e| e.to_string())? else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut bytes = open(&paths, &|file| Box::new(file)).map_err(|e| e.to_string())?;
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
