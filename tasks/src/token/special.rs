//! The special tokens of vocabularies, and the files that these are in.

use std::io::{self, Read as _};
use std::path::Path;

use batch::family::Family;
use serde::{Deserialize, Serialize};

/// Most bytes of a vocabulary's file: some millions of entries.
const MOST_BYTES: u64 = 64 << 20;

/// The special tokens of BERT, in the order in which a trained vocabulary numbers them.
pub const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// The ids of the special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Special {
    /// `[PAD]`: fills a batch.
    pub padding: u32,
    /// `[UNK]`: a word the vocabulary cannot spell.
    pub unknown: u32,
    /// `[CLS]`: opens a sequence.
    pub cls: u32,
    /// `[SEP]`: closes a column.
    pub sep: u32,
    /// `[MASK]`: the blank.
    pub blank: u32,
    /// Whose rows they stand in; a file says nothing of BERT's.
    #[serde(default, skip_serializing_if = "Family::is_bert")]
    pub family: Family,
}

impl Special {
    /// All ids, as [`names_of_special`] names them.
    #[must_use]
    pub fn all(self) -> [u32; 5] {
        [self.padding, self.unknown, self.cls, self.sep, self.blank]
    }
}

/// The special tokens of a family, in the order of [`SPECIAL`].
#[must_use]
pub fn names_of_special(family: Family) -> [&'static str; 5] {
    match family {
        Family::Bert => SPECIAL,
        Family::Roberta => ["<pad>", "<unk>", "<s>", "</s>", "<mask>"],
    }
}

/// The bytes of a file that is no larger than a vocabulary can be.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe might never say anything.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let problem = format!("it has more than {MOST_BYTES} bytes, which no vocabulary of BERT has");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(bytes)
}
