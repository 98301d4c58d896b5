//! Mentions as the columns of a table, a row for each entity that a mention may name, and as a Parquet file.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float32Builder, Int32Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use base::read::ReadError;
use kg::table::Entity;
use kg::table::parquet_file::{self, Error};
use kg::table::types::Types;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Tagged, Told};
use crate::ner::context::Modifier;

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 18;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

/// The version of the file.
const VERSION: u32 = 1;

/// Columns of mentions in the making.
#[derive(Debug)]
pub struct Mentions {
    rows: usize,
    /// Mention, candidate, start and end in characters, in bytes.
    numbers: [Int32Builder; 6],
    /// Written text, how, key and name.
    texts: [StringBuilder; 4],
    types: Types,
    scores: Float32Builder,
    modifiers: [BooleanBuilder; 5],
}

impl Default for Mentions {
    fn default() -> Self {
        Self {
            rows: 0,
            numbers: std::array::from_fn(|_| Int32Builder::new()),
            texts: std::array::from_fn(|_| StringBuilder::new()),
            types: Types::default(),
            scores: Float32Builder::new(),
            modifiers: std::array::from_fn(|_| BooleanBuilder::new()),
        }
    }
}

impl Mentions {
    /// The columns, none of which has nulls.
    #[must_use]
    pub fn fields() -> Vec<Field> {
        let numbers = ["mention", "candidate", "start", "end", "byte_start", "byte_end"];
        let numbers = numbers.map(|name| Field::new(name, DataType::Int32, false));
        let texts = ["text", "how", "entity", "name"].map(|name| Field::new(name, DataType::Utf8, false));
        let (types, score) = (Types::field("types"), Field::new("score", DataType::Float32, false));
        let modifiers = Modifier::ALL.map(|modifier| Field::new(modifier.name(), DataType::Boolean, false));
        numbers.into_iter().chain(texts).chain([types, score]).chain(modifiers).collect()
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row for each entity that the mention may name; returns how many.
    pub fn push(&mut self, told: &Told<'_>) -> usize {
        // Texts have at most 2^30 bytes.
        let number = |place: usize| i32::try_from(place).unwrap_or(i32::MAX);
        for (candidate, (entity, score)) in told.candidates.iter().enumerate() {
            let Told { characters, bytes, .. } = told;
            let numbers = [told.number, candidate, characters.start, characters.end, bytes.start, bytes.end]
                .map(number);
            self.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(number));
            let texts = [told.text, told.how.name(), &entity.key, &entity.text];
            self.texts.iter_mut().zip(texts).for_each(|(column, text)| column.append_value(text));
            self.types.push(&entity.types);
            self.scores.append_value(*score);
            let modifiers = Modifier::ALL.map(|modifier| told.modifiers.has(modifier));
            self.modifiers.iter_mut().zip(modifiers).for_each(|(column, said)| column.append_value(said));
        }
        self.rows += told.candidates.len();
        told.candidates.len()
    }

    /// Appends a row of such columns.
    ///
    /// # Errors
    /// When they are other ones.
    fn append(&mut self, columns: &[ArrayRef], row: usize) -> Result<(), ArrowError> {
        let other = || ArrowError::SchemaError("expected columns of mentions".to_owned());
        let (numbers, rest) = columns.split_at_checked(6).ok_or_else(other)?;
        let (texts, rest) = rest.split_at_checked(4).ok_or_else(other)?;
        let [types, scores, modifiers @ ..] = rest else { return Err(other()) };
        for (to, from) in self.numbers.iter_mut().zip(numbers) {
            to.append_value(from.as_primitive_opt::<Int32Type>().ok_or_else(other)?.value(row));
        }
        for (to, from) in self.texts.iter_mut().zip(texts) {
            to.append_value(from.as_string_opt::<i32>().ok_or_else(other)?.value(row));
        }
        self.types.append(types, row)?;
        self.scores.append_value(scores.as_primitive_opt::<Float32Type>().ok_or_else(other)?.value(row));
        for (to, from) in self.modifiers.iter_mut().zip(modifiers) {
            to.append_value(from.as_boolean_opt().ok_or_else(other)?.value(row));
        }
        self.rows += 1;
        Ok(())
    }

    /// The columns so far; the next ones begin anew.
    ///
    /// # Errors
    /// When lists of types do not go together, which would be a fault of ours.
    pub fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.rows = 0;
        let numbers = self.numbers.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let texts = self.texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let mut columns: Vec<ArrayRef> = numbers.chain(texts).collect();
        columns.push(self.types.finish()?);
        columns.push(Arc::new(self.scores.finish()));
        columns.extend(self.modifiers.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        Ok(columns)
    }
}

/// The first of the columns of mentions, behind those of documents.
const FIRST: usize = 2;
/// Among these, the one of candidates.
const CANDIDATE: usize = 1;
/// Among these, the one of entities.
const ENTITY: usize = 8;

/// Puts the files of a corpus's parts together, in this order, to the one that the whole corpus gives, byte for byte. Returns how many different entities are the
/// most likely ones of mentions. `watch` is told of every so many rows, and ends the work by an error.
///
/// # Errors
/// When a file is missing or damaged or has other columns, the disk refuses, or `watch` fails.
pub fn join<E: From<Error> + From<ReadError>>(
    parts: &[PathBuf],
    into: &Path,
    watch: &mut dyn FnMut(u64) -> Result<(), E>,
) -> Result<u64, E> {
    let mut writer = Writer::create(into)?;
    let mut entities: HashSet<String> = HashSet::new();
    for file in parts {
        let damaged = |problem: String| ReadError::new(file.as_path(), problem, "", "tag the part again");
        let opened = File::open(file).map_err(|problem| damaged(problem.to_string()))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened)
            .map_err(|problem| damaged(problem.to_string()))?;
        if builder.schema().fields() != writer.schema.fields() {
            return Err(damaged("it has other columns than mentions have".to_owned()).into());
        }
        for batch in builder.build().map_err(|problem| damaged(problem.to_string()))? {
            let batch = batch.map_err(|problem| damaged(problem.to_string()))?;
            let candidates = batch.column(FIRST + CANDIDATE).as_primitive::<Int32Type>();
            let keys = batch.column(FIRST + ENTITY).as_string::<i32>();
            for row in (0..batch.num_rows()).filter(|row| candidates.value(*row) == 0) {
                if !entities.contains(keys.value(row)) {
                    entities.insert(keys.value(row).to_owned());
                }
            }
            writer.append(&batch)?;
            watch(batch.num_rows() as u64)?;
        }
    }
    writer.finish()?;
    Ok(entities.len() as u64)
}

/// A file of mentions in the making: columns `file` and `document`, then those of [`Mentions`].
#[derive(Debug)]
pub struct Writer {
    schema: SchemaRef,
    writer: parquet_file::Writer,
    documents: [StringBuilder; 2],
    mentions: Mentions,
}

impl Writer {
    /// Begins `file`, which appears when it is whole.
    ///
    /// # Errors
    /// When its folder is not there or not writable.
    pub fn create(file: &Path) -> Result<Self, Error> {
        let first = [("file", true), ("document", false)];
        let first = first.map(|(name, nullable)| Field::new(name, DataType::Utf8, nullable));
        let schema: SchemaRef =
            Arc::new(Schema::new(first.into_iter().chain(Mentions::fields()).collect::<Vec<_>>()));
        let footer =
            [("engraft.format", "engraft-mentions".to_owned()), ("engraft.version", VERSION.to_string())];
        let writer = parquet_file::Writer::create(file, Arc::clone(&schema), GROUP_ROWS, &footer)?;
        let documents = std::array::from_fn(|_| StringBuilder::new());
        Ok(Self { schema, writer, documents, mentions: Mentions::default() })
    }

    /// Appends a document's mentions.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn push(&mut self, document: &Tagged, entities: &[Entity]) -> Result<(), Error> {
        for told in document.told(entities) {
            for _ in 0..self.mentions.push(&told) {
                self.documents[0].append_option(document.file.as_deref());
                self.documents[1].append_value(&document.id);
            }
            if self.mentions.rows() >= BATCH_ROWS {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Appends the rows of a batch of another file, which must go where that one did if the bytes are to be those of one file for all.
    ///
    /// # Errors
    /// When it has other columns, or the disk refuses.
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = batch.columns();
        let first = batch.column(FIRST + CANDIDATE).as_primitive::<Int32Type>();
        for row in 0..batch.num_rows() {
            // A mention's rows stay together.
            if first.value(row) == 0 && self.mentions.rows() >= BATCH_ROWS {
                self.flush()?;
            }
            for (to, from) in self.documents.iter_mut().zip(columns) {
                let from = from.as_string::<i32>();
                to.append_option(from.is_valid(row).then(|| from.value(row)));
            }
            self.mentions.append(&columns[FIRST..], row).map_err(|problem| self.writer.unfit(&problem))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let mut columns: Vec<ArrayRef> =
            self.documents.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        columns.extend(self.mentions.finish().map_err(|problem| self.writer.unfit(&problem))?);
        self.writer.write_columns(columns)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(mut self) -> Result<(), Error> {
        if self.mentions.rows() > 0 {
            self.flush()?;
        }
        self.writer.finish()
    }
}
