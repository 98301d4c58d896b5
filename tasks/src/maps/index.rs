//! The index of a folder of maps: what is there, how much, made how. Written last, so that a folder without one is not finished.

use std::collections::BTreeMap;
use std::path::Path;

use base::self_check::{self, Kind, SelfChecked};
use kg::split::Part;
use serde::{Deserialize, Serialize};

use super::generators::{Counts, Limits};
use super::schema::{FORMAT, VERSION};
use crate::Error;
use crate::shard::index::{FileIndex, PartIndex, Tokenizer};

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

impl SelfChecked for Index {
    const KIND: &'static Kind = &Kind {
        format: FORMAT,
        version: VERSION,
        folder: "a folder of maps",
        again: "build the maps again",
        command: "`engraft run maps`",
    };

    fn check_mut(&mut self) -> &mut String {
        &mut self.xxh3
    }
}

impl Index {
    /// The index of files that are in place.
    #[must_use]
    pub fn new(options: Options, tokenizer: Tokenizer, written: Vec<(PartIndex, Counts)>) -> Self {
        let texts = written.iter().map(|(part, counts)| (part.part, counts.clone())).collect();
        let mut parts: Vec<PartIndex> = written.into_iter().map(|(part, _)| part).collect();
        parts.retain(|part| part.rows > 0);
        parts.sort_by_key(|part| part.part);
        let (format, xxh3) = (FORMAT.to_owned(), String::new());
        Self { format, version: VERSION, xxh3, options, tokenizer, texts, parts }
    }

    /// Reads the index of `folder` and checks that it is as written and that every file is there with the size that it had.
    ///
    /// # Errors
    /// When the index is missing, damaged or of another version, or a file is missing or of another size.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let index: Self = self_check::read(&folder.join(FILE))?;
        for file in index.files() {
            if let Some(found) = file.misfit(folder) {
                let problem = format!("{found}, but the index says {} bytes", file.bytes);
                return Err(Error::at(
                    &folder.join(&file.path),
                    problem,
                    "build the maps again (`engraft run maps`)",
                ));
            }
        }
        Ok(index)
    }

    /// Puts its own check into the index and writes it whole; call it after every file is in place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, folder: &Path) -> Result<(), Error> {
        Ok(self_check::write(&folder.join(FILE), self)?)
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
