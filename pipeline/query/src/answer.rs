//! The answer to a query: a plan, computed where it is written or shown.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use base::visible::shortened;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use polars::prelude::{AnyValue, DataFrame, LazyFrame, SchemaRef, Series};
use serde_json::{Map, Number, Value};

use crate::convert;
use crate::error::Error;
use crate::render;

/// How an answer is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values under a heading; lists and structs as JSON.
    Csv,
    /// A JSON object a line.
    Json,
    /// Parquet, compressed with zstd.
    Parquet,
}

/// The answer to a query.
#[derive(Clone)]
pub struct Answer {
    pub(crate) frame: LazyFrame,
    pub(crate) schema: SchemaRef,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Rows that are written at a time.
const ROWS: usize = 1 << 20;

impl Answer {
    /// Writes all rows to the file at `path`.
    ///
    /// # Errors
    /// When the query fails while it runs, or the file cannot be written.
    pub fn write(self, format: Format, path: &Path) -> Result<(), Error> {
        let frame = self.frame.collect()?;
        let failed = |error: &dyn std::fmt::Display| Error::new(format!("{}: {error}", path.display()));
        let file = File::create(path).map_err(|error| failed(&error))?;
        match format {
            Format::Csv => csv(&frame, file).map_err(|error| failed(&error)),
            Format::Json => json(&frame, BufWriter::new(file)).map_err(|error| failed(&error)),
            Format::Parquet => parquet(&frame, file),
        }
    }

    /// The first `most` rows as lines of text, none longer than `width` characters, and whether there are more.
    ///
    /// # Errors
    /// When the query fails while it runs.
    pub fn shown(self, most: u32, width: Option<usize>) -> Result<(Vec<String>, bool), Error> {
        let schema = Arc::clone(&self.schema);
        let frame = self.frame.limit(most.saturating_add(1)).collect()?;
        let more = frame.height() > most as usize;
        let first = frame.head(Some(most as usize));
        let rows: Vec<_> = rows(&first).collect();
        Ok((render::table(&schema, &rows, width), more))
    }
}

/// The values of each row.
fn values(frame: &DataFrame) -> impl Iterator<Item = Vec<AnyValue<'_>>> {
    let columns: Vec<&Series> =
        frame.columns().iter().map(|column| column.as_materialized_series()).collect();
    let mut columns: Vec<_> = columns.into_iter().map(Series::iter).collect();
    (0..frame.height()).map(move |_| columns.iter_mut().filter_map(Iterator::next).collect())
}

/// The rows as JSON objects.
fn rows(frame: &DataFrame) -> impl Iterator<Item = Map<String, Value>> {
    let names: Vec<String> = frame.get_column_names().into_iter().map(ToString::to_string).collect();
    values(frame).map(move |row| names.iter().cloned().zip(row.iter().map(value)).collect())
}

/// A value as JSON; numbers that JSON lacks are null, and what has a form of its own (dates, decimals) is a text.
fn value(of: &AnyValue<'_>) -> Value {
    match of {
        AnyValue::Null => Value::Null,
        AnyValue::Boolean(x) => Value::Bool(*x),
        AnyValue::String(x) => Value::String((*x).to_owned()),
        AnyValue::Int8(_) | AnyValue::Int16(_) | AnyValue::Int32(_) | AnyValue::Int64(_) => {
            of.extract::<i64>().map_or(Value::Null, Value::from)
        }
        AnyValue::UInt8(_) | AnyValue::UInt16(_) | AnyValue::UInt32(_) | AnyValue::UInt64(_) => {
            of.extract::<u64>().map_or(Value::Null, Value::from)
        }
        // As many digits as the number has, not those of its double.
        AnyValue::Float32(x) => {
            Number::from_f64(x.to_string().parse().unwrap_or(f64::NAN)).map_or(Value::Null, Value::Number)
        }
        AnyValue::Float64(x) => Number::from_f64(*x).map_or(Value::Null, Value::Number),
        AnyValue::List(list) => list.iter().map(|x| value(&x)).collect(),
        AnyValue::Struct(_, _, fields) => {
            let mut each = vec![];
            of._materialize_struct_av(&mut each);
            fields
                .iter()
                .zip(&each)
                .map(|(field, x)| (field.name().to_string(), value(x)))
                .collect::<Map<_, _>>()
                .into()
        }
        AnyValue::StructOwned(of) => {
            let (each, fields) = &**of;
            fields
                .iter()
                .zip(each)
                .map(|(field, x)| (field.name().to_string(), value(x)))
                .collect::<Map<_, _>>()
                .into()
        }
        other => Value::String(other.to_string()),
    }
}

fn json(frame: &DataFrame, mut out: impl Write) -> std::io::Result<()> {
    for row in rows(frame) {
        serde_json::to_writer(&mut out, &row)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Nothing for null, texts as they are, anything else as in JSON; infinity and what is no number have names.
fn csv(frame: &DataFrame, file: File) -> csv::Result<()> {
    let mut out = csv::Writer::from_writer(BufWriter::new(file));
    out.write_record(frame.get_column_names())?;
    for row in values(frame) {
        let cells = row.iter().map(|cell| match cell {
            AnyValue::Float64(x) if !x.is_finite() => x.to_string(),
            AnyValue::Float32(x) if !x.is_finite() => x.to_string(),
            cell => match value(cell) {
                Value::Null => String::new(),
                Value::String(text) => text,
                other => other.to_string(),
            },
        });
        out.write_record(cells)?;
    }
    Ok(out.flush()?)
}

pub(crate) fn parquet(frame: &DataFrame, file: File) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::new(shortened(&error.to_string()));
    let batch = |part: &DataFrame| -> Result<RecordBatch, Error> {
        let columns = part.columns().iter().map(|column| column.as_materialized_series());
        let arrays = columns.map(|series| Ok((series.name().to_string(), convert::array(series)?)));
        let arrays = arrays.collect::<Result<Vec<_>, Error>>()?;
        let fields = arrays.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(schema, arrays).map_err(|error| failed(&error))
    };
    let first = batch(&frame.head(Some(0)))?;
    let how = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(file, first.schema(), Some(how)).map_err(|error| failed(&error))?;
    for start in (0..frame.height()).step_by(ROWS) {
        let part = batch(&frame.slice(i64::try_from(start).unwrap_or(i64::MAX), ROWS))?;
        writer.write(&part).map_err(|error| failed(&error))?;
    }
    writer.close().map(|_| ()).map_err(|error| failed(&error))
}
