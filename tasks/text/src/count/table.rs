//! What the tables of counts and those of scores have in common: the columns of words and of pairs, the footer, the sizes of their pieces.

use std::sync::Arc;

use arrow_array::{StringArray, UInt64Array};
use arrow_schema::{DataType, Field};
use kg::table::parquet_file::{Error, Writer};

/// Rows of a row group.
pub(crate) const GROUP_ROWS: usize = 1 << 18;
/// Rows that are turned into columns at a time.
pub(crate) const BATCH_ROWS: usize = 1 << 15;

/// A column without nulls.
pub(crate) fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// The columns of words.
pub(crate) fn words() -> Vec<Field> {
    vec![
        field("word", DataType::Utf8),
        field("occurrences", DataType::UInt64),
        field("units", DataType::UInt64).with_nullable(true),
    ]
}

/// The columns of pairs and how often they occur.
pub(crate) fn pairs() -> Vec<Field> {
    vec![field("left", DataType::UInt32), field("right", DataType::UInt32), field("count", DataType::UInt64)]
}

/// The footer of a table.
pub(crate) fn footer(format: &str, version: u32, table: &str) -> [(&'static str, String); 3] {
    [
        ("engraft.format", format.to_owned()),
        ("engraft.version", version.to_string()),
        ("engraft.table", table.to_owned()),
    ]
}

/// Writes a table of words: letters, occurrences and units of each, by rank.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn write_words<'w>(
    mut writer: Writer,
    words: impl Iterator<Item = (&'w str, u64, Option<u64>)>,
) -> Result<(), Error> {
    let mut words = words.peekable();
    while words.peek().is_some() {
        let (mut letters, mut occurrences, mut units) = (Vec::new(), Vec::new(), Vec::new());
        for (word, times, of) in words.by_ref().take(BATCH_ROWS) {
            letters.push(word);
            occurrences.push(times);
            units.push(of);
        }
        writer.write_columns(vec![
            Arc::new(StringArray::from_iter_values(letters)),
            Arc::new(UInt64Array::from(occurrences)),
            Arc::new(UInt64Array::from(units)),
        ])?;
    }
    writer.finish()
}
