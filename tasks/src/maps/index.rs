//! The index of a folder of maps: what is there, how much, made how. Written last, so that a folder without one is not finished. Knows no
//! row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kg::split::Part;
use kg::whole::write_whole;
use serde::{Deserialize, Serialize};

use super::generators::{Counts, Limits};
use super::schema::{FORMAT, VERSION};
use crate::shard::index::{FileIndex, PartIndex, Tokenizer, UNCHECKED, check, check_place};

/// The index's file name.
pub const FILE: &str = "index.json";

/// What a folder of maps holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Always `engraft-maps`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// XXH3 of this file as 16 digits, taken while sixteen zeros stand here.
    pub xxh3: String,
    /// How the maps were made.
    pub options: Options,
    /// The vocabulary that the token ids belong to.
    pub tokenizer: Tokenizer,
    /// What became of the texts, by part.
    pub texts: BTreeMap<Part, Counts>,
    /// The files of each part that has rows, in the order of parts.
    pub parts: Vec<PartIndex>,
}

/// How maps were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// How long samples may be.
    pub limits: Limits,
    /// Digest of the relevance matrix; none without one: no auxiliary terms and no term pairs.
    pub relevance: Option<String>,
    /// Digest of the triple table; none without one: no graph pairs.
    pub graph: Option<String>,
}

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{}: {source}; a folder of maps without its index is not finished: build it again (`engraft run maps`)", path.display())]
    Io {
        /// The index.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no index.
    #[error("{}: line {}, column {}: {source}; build the maps again (`engraft run maps`)", path.display(), source.line(), source.column())]
    Parse {
        /// The index.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The file is not as it was written.
    #[error("{}: damaged: its contents give the check {found}, but {expected} stands in it; build the maps again (`engraft run maps`)", path.display())]
    Damaged {
        /// The index.
        path: PathBuf,
        /// The check of what stands in it.
        found: String,
        /// The check that stands in it.
        expected: String,
    },
    /// The index is of another format or version.
    #[error("{}: format {format:?} version {version}, but this engraft reads {FORMAT:?} version {VERSION}; build the maps again", path.display())]
    Version {
        /// The index.
        path: PathBuf,
        /// The format it names.
        format: String,
        /// The version it names.
        version: u32,
    },
    /// A file is not as the index says.
    #[error("{}: {found}, but the index says {expected} bytes; build the maps again (`engraft run maps`)", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// How it is.
        found: String,
        /// The size that it should have.
        expected: u64,
    },
}

/// Format and version, read before the rest so that another version gets a clear answer.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
}

impl Index {
    /// The index of files that are in place.
    #[must_use]
    pub fn new(options: Options, tokenizer: Tokenizer, written: Vec<(PartIndex, Counts)>) -> Self {
        let texts = written.iter().map(|(part, counts)| (part.part, counts.clone())).collect();
        let mut parts: Vec<PartIndex> = written.into_iter().map(|(part, _)| part).collect();
        parts.retain(|part| part.rows > 0);
        parts.sort_by_key(|part| part.part);
        let (format, xxh3) = (FORMAT.to_owned(), UNCHECKED.to_owned());
        Self { format, version: VERSION, xxh3, options, tokenizer, texts, parts }
    }

    /// Reads the index of `folder` and checks that it is as written and that every file is there with the size that it had.
    ///
    /// # Errors
    /// When the index is missing, damaged or of another version, or a file is missing or of another size.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let bytes = std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        let index = Self::parse(bytes, &path)?;
        for file in index.files() {
            let (path, expected) = (folder.join(&file.path), file.bytes);
            let found = match std::fs::metadata(&path) {
                Ok(found) if found.len() == expected => continue,
                Ok(found) => format!("{} bytes", found.len()),
                Err(e) => e.to_string(),
            };
            return Err(Error::File { path, found, expected });
        }
        Ok(index)
    }

    /// Reads an index from its bytes; `path` names it in messages.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub fn parse(mut bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let parse = |source| Error::Parse { path: path.to_owned(), source };
        let Stamp { format, version } = serde_json::from_slice(&bytes).map_err(parse)?;
        if format != FORMAT || version != VERSION {
            return Err(Error::Version { path: path.to_owned(), format, version });
        }
        let index: Index = serde_json::from_slice(&bytes).map_err(parse)?;
        if let Some(place) = check_place(&bytes) {
            bytes[place].copy_from_slice(UNCHECKED.as_bytes());
        }
        let (path, found, expected) = (path.to_owned(), check(&bytes), index.xxh3.clone());
        if found == expected { Ok(index) } else { Err(Error::Damaged { path, found, expected }) }
    }

    /// Puts its own check into the index and writes it whole; call it after every file is in place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        let io = |source: std::io::Error| Error::Io { path: path.clone(), source };
        UNCHECKED.clone_into(&mut self.xxh3);
        let mut json = serde_json::to_vec_pretty(self).map_err(|e| io(e.into()))?;
        json.push(b'\n');
        self.xxh3 = check(&json);
        if let Some(place) = check_place(&json) {
            json[place].copy_from_slice(self.xxh3.as_bytes());
        }
        write_whole(&path, &json).map_err(io)
    }

    /// All files, in the order of parts and rows.
    pub fn files(&self) -> impl Iterator<Item = &FileIndex> {
        self.parts.iter().flat_map(|part| &part.files)
    }

    /// The files of one part, if it has rows.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&PartIndex> {
        self.parts.iter().find(|entry| entry.part == part)
    }
}
