//! Mentions as the columns of a table, a row for each entity that a mention may name, and as a Parquet file.

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Float32Builder, Int32Builder, StringBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use kg::table::Entity;
use kg::table::parquet_file::{self, Error};
use kg::table::types::Types;

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

/// A file of mentions in the making: columns `file` and `document`, then those of [`Mentions`].
#[derive(Debug)]
pub struct Writer {
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
        let writer = parquet_file::Writer::create(file, schema, GROUP_ROWS, &footer)?;
        let documents = std::array::from_fn(|_| StringBuilder::new());
        Ok(Self { writer, documents, mentions: Mentions::default() })
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
