//! What makes a shard folder readable for others: README.md for Hugging Face and croissant.json for whoever reads Croissant. Both say
//! what the index says. Knows no row and no clock.

mod column;
mod croissant;
mod licence;
mod readme;

use std::path::{Path, PathBuf};

use kg::split::Part;
use kg::whole::write_whole;

use super::index::{Index, PartIndex, TaskIndex};

/// The file with configs for Hugging Face `datasets` and a text for people.
pub const README: &str = "README.md";

/// The file with Croissant metadata (JSON-LD; `docs.mlcommons.org/croissant`).
pub const CROISSANT: &str = "croissant.json";

/// Why a shard folder could not be described.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: cannot be written: {source}; make sure that the folder is writable and has room, and run again", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// The index does not serialise.
    #[error("the index cannot be described: {0}")]
    Json(#[from] serde_json::Error),
    /// A column is of a type that has no name here.
    #[error(
        "column {name} is of type {found}, which has no name in Croissant or `datasets` here; add it to shard/hub/column.rs"
    )]
    Type {
        /// The column.
        name: String,
        /// Its type.
        found: String,
    },
}

/// Describes the shards of `index`, which lie in `folder`. Call it after every shard is in place and before the index is written.
///
/// # Errors
/// When the disk refuses.
pub fn write(folder: &Path, index: &Index) -> Result<(), Error> {
    let files = [(README, readme::text(index)?), (CROISSANT, croissant::text(index)?)];
    for (name, text) in files {
        let path = folder.join(name);
        write_whole(&path, text.as_bytes()).map_err(|source| Error::Io { path, source })?;
    }
    Ok(())
}

/// What Hugging Face calls a part.
fn split(part: Part) -> &'static str {
    match part {
        Part::Valid => "validation",
        Part::Train | Part::Test | Part::Aside => part.name(),
    }
}

/// A pattern that stands for all files of one task and part, and no others.
fn pattern(task: &TaskIndex, part: &PartIndex) -> String {
    format!("{}/{}-*.parquet", task.task.name(), part.part.name())
}

#[cfg(test)]
mod tests;
