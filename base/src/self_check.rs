//! JSON files that say their format and version and carry a check of themselves: the indices of folders, which are written last.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::read::ReadError;
use crate::whole::write_whole;

/// What such a file is, and what its messages say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The name of the format.
    pub format: &'static str,
    /// Its version.
    pub version: u32,
    /// The folder that is not finished without the file.
    pub folder: &'static str,
    /// What to do about a damaged one.
    pub again: &'static str,
    /// The command that does it.
    pub command: &'static str,
}

/// What such a file holds. It has the fields `format`, `version` and `xxh3`; what comes before `xxh3` has no field of that name.
pub trait SelfChecked: Serialize + DeserializeOwned {
    /// What it is.
    const KIND: &'static Kind;

    /// The field `xxh3`: XXH3 of the file as 16 digits, taken while sixteen zeros stand there.
    fn check_mut(&mut self) -> &mut String;
}

/// What such files are refused with.
pub type Error = ReadError;

impl Kind {
    fn refused(&self, path: &Path, source: &io::Error) -> ReadError {
        if source.kind() != io::ErrorKind::NotFound {
            return ReadError::new(path, source.to_string(), "", "see that it can be read");
        }
        let found = format!("{source}; {} without its index is not finished", self.folder);
        ReadError::new(path, found, "", format!("build it again ({})", self.command))
    }

    fn unparsed(&self, path: &Path, source: &serde_json::Error) -> ReadError {
        let place = format!("{}: line {}, column {}", path.display(), source.line(), source.column());
        ReadError::new(place, source.to_string(), "", format!("{} ({})", self.again, self.command))
    }

    /// The file is not as it was written: `check` is that of its contents, `stated` what stands in it.
    fn damaged(&self, path: &Path, check: &str, stated: &str) -> ReadError {
        let found = format!("damaged: its contents give the check {check}, but {stated} stands in it");
        ReadError::new(path, found, "", format!("{} ({})", self.again, self.command))
    }

    fn unknown(&self, path: &Path, format: &str, version: u32) -> ReadError {
        if format != self.format {
            let expected = format!("{:?}, the index of {}", self.format, self.folder);
            let remedy = format!("name a folder that {} has made, or else {}", self.command, self.again);
            return ReadError::text(path, format, expected, remedy);
        }
        let read = format!("this engraft reads {:?} version {}", self.format, self.version);
        let found = format!("format {format:?} version {version}, but {read}");
        ReadError::new(path, found, "", self.again)
    }
}

/// Format and version, read before the rest so that another version gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
}

/// What stands in the place of the file's own check while it is taken.
const UNCHECKED: &str = "0000000000000000";

/// What stands before that check; no text comes before it in the file.
const CHECK: &[u8] = b"\"xxh3\": \"";

/// XXH3 (64 bits) of `bytes` as it stands in such files.
#[must_use]
pub fn check(bytes: &[u8]) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(bytes))
}

/// The place of the file's own check among its bytes.
fn place(json: &[u8]) -> Option<std::ops::Range<usize>> {
    let at = json.windows(CHECK.len()).position(|window| window == CHECK)? + CHECK.len();
    let place = at..at + UNCHECKED.len();
    json.get(place.clone()).map(|_| place)
}

/// Reads a file and checks that it is as it was written.
///
/// # Errors
/// When it is missing, damaged or of another version.
pub fn read<T: SelfChecked>(path: &Path) -> Result<T, Error> {
    parse(std::fs::read(path).map_err(|source| T::KIND.refused(path, &source))?, path)
}

/// Reads a file from its bytes; `path` names it in messages.
///
/// # Errors
/// When it is damaged or of another version.
pub fn parse<T: SelfChecked>(mut bytes: Vec<u8>, path: &Path) -> Result<T, Error> {
    let kind = T::KIND;
    let unparsed = |source| kind.unparsed(path, &source);
    let Stamp { format, version } = serde_json::from_slice(&bytes).map_err(unparsed)?;
    if format != kind.format || version != kind.version {
        return Err(kind.unknown(path, &format, version));
    }
    let mut whole: T = serde_json::from_slice(&bytes).map_err(unparsed)?;
    if let Some(place) = place(&bytes) {
        bytes[place].copy_from_slice(UNCHECKED.as_bytes());
    }
    let check = check(&bytes);
    if *whole.check_mut() == check { Ok(whole) } else { Err(kind.damaged(path, &check, whole.check_mut())) }
}

/// Puts its own check into `whole` and writes it to `path`; call it after everything that it speaks of is in place.
///
/// # Errors
/// When the disk refuses.
pub fn write<T: SelfChecked>(path: &Path, whole: &mut T) -> Result<(), Error> {
    let refused = |source: io::Error| T::KIND.refused(path, &source);
    UNCHECKED.clone_into(whole.check_mut());
    let mut json = serde_json::to_vec_pretty(whole).map_err(|e| refused(e.into()))?;
    json.push(b'\n');
    let check = check(&json);
    if let Some(place) = place(&json) {
        json[place].copy_from_slice(check.as_bytes());
    }
    *whole.check_mut() = check;
    write_whole(path, &json).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shelf {
        format: String,
        version: u32,
        xxh3: String,
        books: Vec<String>,
        below: Option<Box<Shelf>>,
    }

    impl SelfChecked for Shelf {
        const KIND: &'static Kind = &Kind {
            format: "shelf",
            version: 3,
            folder: "a library",
            again: "sort the books again",
            command: "`sort`",
        };

        fn check_mut(&mut self) -> &mut String {
            &mut self.xxh3
        }
    }

    fn shelf(version: u32, below: Option<Shelf>) -> Shelf {
        let books = vec!["Anatomy".to_owned(), "\"xxh3\": \"".to_owned()];
        Shelf { format: "shelf".into(), version, xxh3: String::new(), books, below: below.map(Box::new) }
    }

    #[test]
    fn what_was_written_is_read_and_every_flipped_bit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shelf.json");
        let mut below = shelf(3, None);
        write(&path, &mut below).unwrap();
        assert_eq!(read::<Shelf>(&path).unwrap(), below);
        // One in the other: the outer check stands first and covers the inner one.
        let mut whole = shelf(3, Some(below));
        write(&path, &mut whole).unwrap();
        assert_eq!(read::<Shelf>(&path).unwrap(), whole);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 7);
            let error = parse::<Shelf>(damaged, &path).expect_err(&format!("byte {at}")).to_string();
            assert!(error.contains("shelf.json") && error.contains("sort the books again"), "{error}");
        }
        assert!(parse::<Shelf>(bytes[..bytes.len() - 1].to_vec(), &path).is_err());
    }

    #[test]
    fn what_is_missing_or_of_another_version_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shelf.json");
        let error = read::<Shelf>(&path).unwrap_err().to_string();
        assert!(error.ends_with("a library without its index is not finished; build it again (`sort`)"));
        write(&path, &mut shelf(2, None)).unwrap();
        let error = read::<Shelf>(&path).unwrap_err().to_string();
        let expected =
            "format \"shelf\" version 2, but this engraft reads \"shelf\" version 3; sort the books again";
        assert!(error.ends_with(expected), "{error}");
        // Another version may have other fields.
        let error = parse::<Shelf>(br#"{"format": "rack", "version": 3}"#.to_vec(), &path).unwrap_err();
        assert!(error.to_string().contains("found \"rack\", expected \"shelf\""), "{error}");
    }
}
