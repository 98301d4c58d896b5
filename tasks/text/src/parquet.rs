//! A column of text in a Parquet file as documents, batch by batch.

use std::io;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use base::funnel::Tally;
use kg::table::batches::{self, Batches};
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

use super::metered::LONGEST;
use super::reader::{Bytes, ReadError, TextFormat, without_spans};
use super::{Counts, Document, Labels, drop_for, keep};

/// Most rows that are decoded at once; few, for a row is a whole text.
const BATCH: usize = 256;

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The column of texts.
    pub column: String,
    /// The column of what documents are called, text or whole numbers; without it they are called by their rows, from 1.
    pub id_column: Option<String>,
}

/// Why there is no next document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error("{}: cannot open it: {source}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file is damaged, or uses a coding that is not read.
    #[error("{}: row {row}: cannot decode it: {source}; fetch the file again, or write it anew with zstd or no compression", file.display())]
    Decode {
        /// The file.
        file: PathBuf,
        /// The first row that is lost, from 1.
        row: u64,
        /// The decoder's word.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file would take too much memory.
    #[error("{}: row {row}: {source}; write it anew with smaller values, pages and row groups", file.display())]
    Large {
        /// The file.
        file: PathBuf,
        /// The first row that is not read, from 1.
        row: u64,
        /// What would.
        source: batches::Error,
    },
    /// A column is missing or of another type.
    #[error("{}, column {column:?}: found {found}, expected {expected}; say in the config which column is meant", file.display())]
    Column {
        /// The file.
        file: PathBuf,
        /// The column as the config names it.
        column: String,
        /// What there is.
        found: String,
        /// What there should be.
        expected: &'static str,
    },
    /// A text without a name.
    #[error("{}: row {row}, column {column:?}: found null, expected what the document is called; mend the row, or leave `id_column` out", file.display())]
    Id {
        /// The file.
        file: PathBuf,
        /// The row, from 1.
        row: u64,
        /// The column as the config names it.
        column: String,
    },
    /// A text that would not fit in memory with its tokens.
    #[error("{}: row {row} has a text of {bytes} bytes; expected at most {LONGEST}: split it", file.display())]
    Long {
        /// The file.
        file: PathBuf,
        /// The row, from 1.
        row: u64,
        /// Its bytes.
        bytes: usize,
    },
}

const NULL: &str = "null";
const NO_TEXT: &str = "no text";

/// Reads document after document.
pub struct Reader<'f, C: ChunkReader> {
    batches: Batches<C>,
    file: &'f Path,
    config: Config,
    tally: Tally,
    /// The columns under way, and the next row of them.
    batch: Option<(Columns, usize)>,
    /// Rows read so far.
    rows: u64,
}

/// The columns of one batch.
struct Columns {
    texts: ArrayRef,
    ids: Option<ArrayRef>,
}

impl<C: ChunkReader> std::fmt::Debug for Reader<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, config, tally, .. } = self;
        f.debug_struct("Reader")
            .field("file", file)
            .field("config", config)
            .field("tally", tally)
            .finish_non_exhaustive()
    }
}

impl<'f, C: ChunkReader + 'static> Reader<'f, C> {
    /// Documents of the file in `chunks`, which `file` names in messages.
    ///
    /// # Errors
    /// When it is no Parquet file, or lacks a column. See [`Error`].
    pub fn new(chunks: C, file: &'f Path, config: Config) -> Result<Self, Error> {
        let tally = Tally { bytes: chunks.len(), ..Tally::new(file, &[NULL, NO_TEXT]) };
        let batches = Batches::new(chunks, BATCH).map_err(|error| refused((file, 1), error))?;
        let roots = config.roots(batches.schema(), file)?;
        Ok(Self { batches: batches.only(roots), file, config, tally, batch: None, rows: 0 })
    }

    /// Fills `document` with the next one; `false` at the end of the file. Nulls and texts of nothing but white space are left out and
    /// counted.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(&mut self, document: &mut Document) -> Result<bool, Error> {
        document.clear();
        loop {
            let Some((columns, row)) =
                self.batch.as_mut().filter(|(columns, row)| *row < columns.texts.len())
            else {
                if !self.next_batch()? {
                    return Ok(false);
                }
                continue;
            };
            let at = *row;
            *row += 1;
            self.rows += 1;
            let file = || self.file.to_owned();
            let Some(text) = string(&columns.texts, at) else {
                drop_for(&mut self.tally, NULL);
                continue;
            };
            if text.len() as u64 > LONGEST {
                return Err(Error::Long { file: file(), row: self.rows, bytes: text.len() });
            }
            if text.trim().is_empty() {
                drop_for(&mut self.tally, NO_TEXT);
                continue;
            }
            document.text.push_str(text);
            document.id = match (&columns.ids, &self.config.id_column) {
                (Some(ids), Some(column)) => {
                    let unnamed = || Error::Id { file: file(), row: self.rows, column: column.clone() };
                    id(ids, at).ok_or_else(unnamed)?
                }
                _ => self.rows.to_string(),
            };
            keep(&mut self.tally);
            return Ok(true);
        }
    }

    /// What became of the file so far; its bytes are those of the whole file, and it has no lines.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// Decodes more rows; `false` after the last.
    fn next_batch(&mut self) -> Result<bool, Error> {
        self.batch = None;
        let at = (self.file, self.rows + 1);
        let Some(batch) = self.batches.next().map_err(|error| refused(at, error))? else {
            return Ok(false);
        };
        let texts = self.config.array(&batch, &self.config.column, self.file)?;
        let ids = self.config.id_column.as_ref();
        let ids = ids.map(|column| self.config.array(&batch, column, self.file)).transpose()?;
        self.batch = Some((Columns { texts, ids }, 0));
        Ok(true)
    }
}

/// What is wrong from a row on.
fn refused((file, row): (&Path, u64), error: batches::Error) -> Error {
    match error {
        batches::Error::Decode(source) => Error::Decode { file: file.to_owned(), row, source },
        source => Error::Large { file: file.to_owned(), row, source },
    }
}

const ONE: &str = "exactly one column of that name";

impl Config {
    /// The places of the columns, after a look at their types.
    fn roots(&self, schema: &Schema, file: &Path) -> Result<Vec<usize>, Error> {
        let mut roots = vec![self.root(schema, (&self.column, file))?];
        if let Some(column) = &self.id_column {
            roots.push(self.root(schema, (column, file))?);
        }
        Ok(roots)
    }

    fn root(&self, schema: &Schema, (column, file): (&str, &Path)) -> Result<usize, Error> {
        let wrong = |found: String, expected| Error::Column {
            file: file.to_owned(),
            column: column.to_owned(),
            found,
            expected,
        };
        let mut named = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == column);
        let (Some((place, field)), None) = (named.next(), named.next()) else {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(wrong(beginning(&format!("columns {}", names.join(", "))), ONE));
        };
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        let is_number = matches!(
            field.data_type(),
            DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64
        );
        match column == self.column {
            true if is_text => Ok(place),
            true => Err(wrong(beginning(&field.data_type().to_string()), "text (UTF-8)")),
            false if is_text || is_number => Ok(place),
            false => {
                let expected = "text (UTF-8), or whole numbers of 32 or 64 bits";
                Err(wrong(beginning(&field.data_type().to_string()), expected))
            }
        }
    }

    fn array(&self, batch: &RecordBatch, column: &str, file: &Path) -> Result<ArrayRef, Error> {
        batch.column_by_name(column).cloned().ok_or_else(|| Error::Column {
            file: file.to_owned(),
            column: column.to_owned(),
            found: "none".to_owned(),
            expected: ONE,
        })
    }
}

/// The beginning of a text that may be long.
fn beginning(text: &str) -> String {
    let mut start: String = text.chars().take(400).collect();
    if start.len() < text.len() {
        start.push_str(" ...");
    }
    start
}

fn string(column: &ArrayRef, row: usize) -> Option<&str> {
    if column.is_null(row) {
        return None;
    }
    let short = column.as_string_opt::<i32>().map(|texts| texts.value(row));
    short.or_else(|| column.as_string_opt::<i64>().map(|texts| texts.value(row)))
}

fn id(column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Int32 => Some(column.as_primitive_opt::<Int32Type>()?.value(row).to_string()),
        DataType::Int64 => Some(column.as_primitive_opt::<Int64Type>()?.value(row).to_string()),
        DataType::UInt32 => Some(column.as_primitive_opt::<UInt32Type>()?.value(row).to_string()),
        DataType::UInt64 => Some(column.as_primitive_opt::<UInt64Type>()?.value(row).to_string()),
        _ => string(column, row).map(str::to_owned),
    }
}

impl TextFormat for Config {
    fn endings(&self) -> &'static [&'static str] {
        &[".parquet"]
    }

    /// It is read from its end on, so the file is opened again.
    fn reader<'f>(
        &'f self,
        _: Bytes<'f>,
        file: &'f Path,
    ) -> Result<Box<dyn super::reader::Reader + 'f>, ReadError> {
        let open = |source| ReadError::of(Error::Open { file: file.to_owned(), source });
        let opened = std::fs::File::open(file).map_err(open)?;
        Ok(Box::new(Reader::new(opened, file, self.clone()).map_err(ReadError::of)?))
    }
}

impl<C: ChunkReader + 'static> super::reader::Reader for Reader<'_, C> {
    fn next(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
        self.read(document).map_err(ReadError::of)
    }

    fn counts(&self) -> Counts {
        without_spans(self.tally())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, LargeStringArray, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::damage::assert_counts_or_refuses;
    use crate::drain;

    fn sample(large: impl FnOnce(Vec<Option<&'static str>>) -> ArrayRef) -> Vec<u8> {
        let texts = large(vec![Some("Fever\nand pain."), None, Some(" "), Some("Café.")]);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), Some(2), None, Some(4)]));
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, None, None]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("text", texts, true),
            ("number", numbers, true),
            ("name", names, true),
        ]);
        let batch = batch.unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(3)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn short(texts: Vec<Option<&'static str>>) -> ArrayRef {
        Arc::new(StringArray::from(texts))
    }

    fn config(column: &str, id: Option<&str>) -> Config {
        Config { column: column.to_owned(), id_column: id.map(str::to_owned) }
    }

    fn read(bytes: &[u8], config: Config) -> Result<(Vec<(String, String)>, Tally), String> {
        let chunks = Bytes::copy_from_slice(bytes);
        let mut reader = Reader::new(chunks, Path::new("some.parquet"), config).map_err(|e| e.to_string())?;
        Ok((drain::texts(|document| reader.read(document))?, reader.tally()))
    }

    #[test]
    fn texts_of_one_column_are_documents() {
        let large = sample(|texts| Arc::new(LargeStringArray::from(texts)));
        for file in [sample(short), large] {
            let (all, tally) = read(&file, config("text", None)).unwrap();
            let expected = [("1", "Fever\nand pain."), ("4", "Café.")];
            assert_eq!(all, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
            assert_eq!((tally.read, tally.kept, tally.dropped[NULL], tally.dropped[NO_TEXT]), (4, 2, 1, 1));
            assert_eq!((tally.bytes, tally.lines), (file.len() as u64, 0));
            let (named, _) = read(&file, config("text", Some("number"))).unwrap();
            assert_eq!(named.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["-1", "4"]);
        }
    }

    #[test]
    fn more_rows_than_are_decoded_at_once_are_read() {
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..3 * BATCH + 1).map(|n| format!("t{n}"))));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let (all, _) = read(&writer.into_inner().unwrap(), config("text", None)).unwrap();
        assert!(
            all.iter()
                .enumerate()
                .all(|(n, (id, text))| *id == (n + 1).to_string() && *text == format!("t{n}"))
        );
        assert_eq!(all.len(), 3 * BATCH + 1);
    }

    #[test]
    fn other_columns_are_refused_with_those_there_are() {
        let refused = |column, id| read(&sample(short), config(column, id)).unwrap_err();
        let message = refused("texts", None);
        let expected =
            "some.parquet, column \"texts\": found columns text, number, name, expected exactly one column";
        assert!(message.starts_with(expected), "{message}");
        assert!(refused("number", None).contains("column \"number\": found Int64, expected text (UTF-8);"));
        assert!(refused("text", Some("id")).contains("column \"id\": found columns text, number, name"));
        let message = refused("text", Some("name"));
        assert!(
            message.contains("row 4, column \"name\": found null, expected what the document is called"),
            "{message}"
        );
        let message = read(b"no parquet", config("text", None)).unwrap_err();
        assert!(message.starts_with("some.parquet: row 1: cannot decode it: "), "{message}");
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let read = |bytes: &[u8]| read(bytes, config("text", Some("number"))).map(|(_, tally)| tally);
        assert_counts_or_refuses(&sample(short), read);
    }
}
