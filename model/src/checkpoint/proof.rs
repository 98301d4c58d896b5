//! What a file was when it was written, and whether it still is.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Length and digest of a file, or of its first bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// How many bytes.
    pub bytes: u64,
    /// Their BLAKE3 in 64 digits.
    pub blake3: String,
}

impl Proof {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Proof { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }

    /// That of a whole file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(Self::so_far(&hasher))
    }

    /// That of what was hashed so far.
    #[must_use]
    pub fn so_far(hasher: &blake3::Hasher) -> Self {
        Proof { bytes: hasher.count(), blake3: hasher.finalize().to_hex().to_string() }
    }

    /// What is wrong with something of which `now` is the proof.
    #[must_use]
    pub fn differs(&self, now: &Proof) -> Option<String> {
        if self.bytes != now.bytes {
            return Some(format!("it has {} bytes, but {} were written", now.bytes, self.bytes));
        }
        let (was, is) = (&self.blake3, &now.blake3);
        (was != is).then(|| format!("its contents are not what was written: BLAKE3 {is}, expected {was}"))
    }

    /// What is wrong with the file at `path`, missing or other than it was.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn broken(&self, path: &Path) -> io::Result<Option<String>> {
        match Proof::of_file(path) {
            Ok(now) => Ok(self.differs(&now)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some("it is missing".to_owned())),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::whole::write;

    #[test]
    fn a_file_is_what_it_was_or_the_difference_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let proof = Proof::of(b"written");
        assert_eq!(proof.broken(&path).unwrap().unwrap(), "it is missing");
        write(&path, b"written").unwrap();
        assert_eq!(proof.broken(&path).unwrap(), None);
        write(&path, b"writtem").unwrap();
        assert!(proof.broken(&path).unwrap().unwrap().contains("its contents are not what was written"));
        write(&path, b"writ").unwrap();
        assert_eq!(proof.broken(&path).unwrap().unwrap(), "it has 4 bytes, but 7 were written");
        assert!(proof.broken(folder.path()).is_err());
    }
}
