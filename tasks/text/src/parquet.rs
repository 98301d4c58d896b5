//! A column of text in a Parquet file as documents, batch by batch.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use base::funnel::Tally;
use base::read::ReadError;
use kg::table::batches::{self, Batches};
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};

use super::metered::LONGEST;
use super::reader::{Bytes, DocumentReader, Opened, TextFormat};
use super::{Counts, Document, Labels};

/// Most rows that are decoded at once; few, for a row is a whole text.
const BATCH: usize = 256;

/// How a file is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The text column; nulls and blank texts are skipped.
    pub column: String,
    /// The column of document ids, text or integer. Default: row numbers, from 1.
    pub id_column: Option<String>,
}

const NULL: &str = "null";
const NO_TEXT: &str = "no text";

/// Reads document after document.
struct Reader<'f, C: ChunkReader> {
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
    /// When it is no Parquet file, or lacks a column.
    fn new(chunks: C, file: &'f Path, config: Config) -> Result<Self, ReadError> {
        let tally = Tally { bytes: chunks.len(), ..Tally::new(file, &[NULL, NO_TEXT]) };
        let batches = Batches::new(chunks, BATCH).map_err(|error| refused(file, 1, &error))?;
        let roots = config.roots(batches.schema(), file)?;
        Ok(Self { batches: batches.only(roots), file, config, tally, batch: None, rows: 0 })
    }

    /// Decodes more rows; `false` after the last.
    fn next_batch(&mut self) -> Result<bool, ReadError> {
        self.batch = None;
        let Some(batch) = self.batches.next().map_err(|error| refused(self.file, self.rows + 1, &error))?
        else {
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
fn refused(file: &Path, row: u64, error: &batches::Error) -> ReadError {
    let row = at(file, row);
    match error {
        batches::Error::Decode(source) => {
            let remedy = "fetch the file again, or write it anew with zstd or no compression";
            ReadError::new(row, format!("cannot decode it: {source}"), "", remedy)
        }
        large => ReadError::new(
            row,
            large.to_string(),
            "",
            "write it anew with smaller values, pages and row groups",
        ),
    }
}

/// A row, from 1.
fn at(file: &Path, row: u64) -> String {
    format!("{}: row {row}", file.display())
}

fn column(file: &Path, column: &str, found: &str, expected: &str) -> ReadError {
    let place = format!("{}, column {column:?}", file.display());
    ReadError::new(place, format!("found {found}"), expected, "say in the config which column is meant")
}

const ONE: &str = "exactly one column of that name";

impl Config {
    /// The places of the columns, after a look at their types.
    fn roots(&self, schema: &Schema, file: &Path) -> Result<Vec<usize>, ReadError> {
        let mut roots = vec![self.root(schema, &self.column, file)?];
        if let Some(column) = &self.id_column {
            roots.push(self.root(schema, column, file)?);
        }
        Ok(roots)
    }

    fn root(&self, schema: &Schema, name: &str, file: &Path) -> Result<usize, ReadError> {
        let wrong = |found: String, expected| column(file, name, &found, expected);
        let mut named = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let (Some((place, field)), None) = (named.next(), named.next()) else {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(wrong(beginning(&format!("columns {}", names.join(", "))), ONE));
        };
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        let is_number = matches!(
            field.data_type(),
            DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64
        );
        match name == self.column {
            true if is_text => Ok(place),
            true => Err(wrong(beginning(&field.data_type().to_string()), "text (UTF-8)")),
            false if is_text || is_number => Ok(place),
            false => {
                let expected = "text (UTF-8), or whole numbers of 32 or 64 bits";
                Err(wrong(beginning(&field.data_type().to_string()), expected))
            }
        }
    }

    fn array(&self, batch: &RecordBatch, name: &str, file: &Path) -> Result<ArrayRef, ReadError> {
        batch.column_by_name(name).cloned().ok_or_else(|| column(file, name, "none", ONE))
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
    /// It is read from its end on, so the file is opened again.
    fn reader<'f>(&'f self, _: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        let unopened = |source| ReadError::new(file, format!("cannot open it: {source}"), "", "");
        let opened = std::fs::File::open(file).map_err(unopened)?;
        Ok(Box::new(Reader::new(opened, file, self.clone())?))
    }
}

impl<C: ChunkReader + 'static> DocumentReader for Reader<'_, C> {
    // Fills `document` with the next one; `false` at the end of the file. Nulls and texts of nothing but white space are left out and
    // counted.
    fn read(&mut self, document: &mut Document, _: &mut Labels) -> Result<bool, ReadError> {
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
            let number = *row;
            *row += 1;
            self.rows += 1;
            let Some(text) = string(&columns.texts, number) else {
                self.tally.drop(NULL);
                continue;
            };
            if text.len() as u64 > LONGEST {
                let (place, found) = (at(self.file, self.rows), format!("a text of {} bytes", text.len()));
                return Err(ReadError::new(place, found, format!("at most {LONGEST}"), "split it"));
            }
            if text.trim().is_empty() {
                self.tally.drop(NO_TEXT);
                continue;
            }
            document.text.push_str(text);
            document.id = match (&columns.ids, &self.config.id_column) {
                (Some(ids), Some(column)) => {
                    let unnamed = || {
                        let place = format!("{}, column {column:?}", at(self.file, self.rows));
                        let expected = "what the document is called";
                        ReadError::new(place, "found null", expected, "fix the row, or leave `id_column` out")
                    };
                    id(ids, number).ok_or_else(unnamed)?
                }
                _ => self.rows.to_string(),
            };
            self.tally.keep();
            return Ok(true);
        }
    }

    fn counts(&self) -> Counts {
        Counts::of(self.tally.clone())
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
        Ok((
            drain::texts(|document| reader.read(document, &mut Labels::default()))?,
            reader.counts().documents,
        ))
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
