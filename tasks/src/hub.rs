//! What makes a folder of Parquet files readable for others: README.md for Hugging Face and croissant.json for whoever reads Croissant.

pub(crate) mod column;
pub(crate) mod croissant;
pub(crate) mod readme;

use std::path::Path;

use arrow_schema::Schema;
use base::whole::write_whole;
use kg::split::Part;

use self::column::Column;
use crate::Error;
use crate::shard::index::PartIndex;

/// The file with configs for Hugging Face `datasets` and a text for people.
pub const README: &str = "README.md";

/// The file with Croissant metadata (JSON-LD; `docs.mlcommons.org/croissant`).
pub const CROISSANT: &str = "croissant.json";

/// What a column of labels is called: one of each row, or one of each token.
const LABELS: [&str; 2] = ["label", "labels"];

/// What rows of the same columns are called, and where they lie.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    /// The name of the set.
    pub(crate) name: &'a str,
    /// The same within a sentence.
    pub(crate) called: String,
    /// The folder that its files are in, with `/` behind it; empty where they lie beside the description.
    pub(crate) below: String,
    /// What its rows are for: a sentence without its full stop.
    pub(crate) about: &'a str,
}

/// Rows of the same columns, in parts: a config of `datasets`, a record set of Croissant.
#[derive(Debug)]
pub(crate) struct Set<'a> {
    /// What it is called.
    named: Named<'a>,
    /// The columns, in order.
    columns: Vec<Column>,
    /// Its parts in order, and what each takes in memory, in bytes.
    parts: Vec<(&'a PartIndex, u64)>,
}

impl<'a> Set<'a> {
    /// The rows of `parts`. `values` says how many values all rows of a part have together in a list column.
    ///
    /// # Errors
    /// When a column is of a type without a name here.
    pub(crate) fn new(
        named: Named<'a>,
        schema: &Schema,
        parts: &'a [PartIndex],
        values: impl Fn(&PartIndex, &str) -> u64,
    ) -> Result<Self, Error> {
        let columns = column::all(schema)?;
        let bytes = |part: &PartIndex| {
            columns.iter().map(|column| column.bytes(part.rows, values(part, &column.name))).sum()
        };
        let parts = parts.iter().map(|part| (part, bytes(part))).collect();
        Ok(Self { named, columns, parts })
    }

    /// The set with names for the classes of its column of labels.
    pub(crate) fn with_classes(mut self, names: Vec<String>) -> Self {
        let labels = self.columns.iter_mut().find(|column| LABELS.contains(&column.name.as_str()));
        if let Some(column) = labels {
            column.classes = names;
        }
        self
    }

    /// A pattern that stands for all files of one part, and no others.
    fn pattern(&self, part: &PartIndex) -> String {
        format!("{}{}-*.parquet", self.named.below, part.part.name())
    }
}

/// Writes both files into `folder`. Call it after every file that they speak of is in place and before the index is written.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn write(folder: &Path, readme: &str, croissant: &str) -> Result<(), Error> {
    for (name, text) in [(README, readme), (CROISSANT, croissant)] {
        let path = folder.join(name);
        write_whole(&path, text.as_bytes()).map_err(|error| {
            let remedy = "make sure that the folder is writable and has room, and run again";
            Error::at(&path, format!("cannot be written: {error}"), remedy)
        })?;
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
