//! Kernel `tokenize`: texts as token ids, with the place of each token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tasks::Error;
use tasks::token::align::Subword;
use tasks::token::encode::{Case, Vocabulary};
use tasks::token::folder;
use tasks::token::placer::Placer;
use text::characters::Characters;

use super::batches::{Batches, Held};
use super::given::Given;
use super::pool::{Spare, pool};
use super::table;
use super::texts::{Piece, Texts};
use crate::raised::{raised, unfit};

/// Which places of tokens are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offsets {
    None,
    Characters,
    Bytes,
    Both,
}

impl Offsets {
    /// Columns of starts and ends, those in characters first.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Offsets::None => &[],
            Offsets::Characters => &["starts", "ends"],
            Offsets::Bytes => &["byte_starts", "byte_ends"],
            Offsets::Both => &["starts", "ends", "byte_starts", "byte_ends"],
        }
    }
}

/// A vocabulary that turns texts into token ids, as the shards are encoded: BERT's WordPiece or RoBERTa's byte-level BPE.
///
/// `vocabulary` is `vocab.txt`, `tokenizer.json`, or the folder of a model, of the stage `vocabulary` or of shards (`out/shards/tokenizer`). `case` is for a
/// `vocab.txt` without a `tokenizer_config.json` beside it; None: "uncased".
///
/// >>> tokenizer = engraft.Tokenizer("out/vocabulary")
/// >>> tokenizer.encode(["Fever and pain."])
/// <engraft.Batches of 1 rows: row, input_ids, starts, ends>
///
/// Raises OSError for a vocabulary that cannot be read, ValueError for one that is at odds with what is said of it.
#[pyclass(module = "engraft", name = "Tokenizer", frozen)]
pub(crate) struct Tokenizer {
    vocabulary: Vocabulary,
    given: Given,
}

#[pymethods]
impl Tokenizer {
    #[new]
    #[pyo3(signature = (vocabulary, *, case=None))]
    fn new(py: Python<'_>, vocabulary: PathBuf, case: Option<&str>) -> PyResult<Self> {
        let kept = PyDict::new(py);
        kept.set_item("case", case)?;
        let given = Given::new(&vocabulary, Some(&kept), &[], py)?;
        let case = self::case(case)?;
        let read = py.detach(move || read(&vocabulary, case)).map_err(|error| raised(&error))?;
        Ok(Self { vocabulary: read, given })
    }

    /// The tokens of each text: columns `row` (int64, from `first_row`), `input_ids` (list of int32, without special tokens) and the first and last
    /// place of each token: `starts` and `ends` in characters as Python counts them (`offsets="characters"`), `byte_starts` and `byte_ends` in bytes
    /// of UTF-8 ("bytes"), "both", or None. Tokens of a word together cover it as it is written, accents and marks included.
    ///
    /// A row for each text, in their order; a null text has null lists. `max_tokens` keeps the first so many of each text.
    ///
    /// Raises TypeError for what are no texts, ValueError for a text that cannot be encoded.
    #[pyo3(
        signature = (texts, *, max_tokens=None, offsets=Some("characters"), column=None, first_row=0),
        text_signature = "($self, texts, *, max_tokens=None, offsets='characters', column=None, first_row=0)"
    )]
    fn encode(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        max_tokens: Option<usize>,
        offsets: Option<&str>,
        column: Option<&str>,
        first_row: i64,
    ) -> PyResult<Batches> {
        let offsets = match offsets {
            None => Offsets::None,
            Some("characters") => Offsets::Characters,
            Some("bytes") => Offsets::Bytes,
            Some("both") => Offsets::Both,
            Some(found) => {
                let expected = r#""characters", "bytes", "both" or None"#;
                return Err(unfit("offsets", format!("{found:?}"), expected));
            }
        };
        if max_tokens == Some(0) {
            return Err(unfit("max_tokens", 0, "at least 1, or None"));
        }
        let how = How { vocabulary: &self.vocabulary, offsets, most: max_tokens.unwrap_or(usize::MAX) };
        let texts = Texts::new(texts, column, first_row)?;
        let (pool, schema, placers) = (pool(py)?, schema(offsets), Spare::new());
        let batches = texts.batches(py, |pieces| {
            let columns = |piece: &Piece| {
                placers.with(|| Placer::new(how.vocabulary), |placer| how.columns(placer, piece))
            };
            let columns: Result<Vec<Columns>, Error> =
                pool.install(|| pieces.par_iter().map(columns).collect());
            Ok(vec![batch(&schema, columns.map_err(|error| raised(&error))?)?])
        })?;
        Ok(Batches::new(Held { schema, batches }, None))
    }

    /// Number of entries.
    fn __len__(&self) -> usize {
        self.vocabulary.size()
    }

    /// The entry of a token id; None for a number that is none.
    fn token(&self, id: u32) -> Option<String> {
        self.vocabulary.token(id)
    }

    /// Ids of the special tokens: padding, unknown, [CLS], [SEP] and [MASK], or RoBERTa's in their place.
    #[getter]
    fn special(&self) -> [u32; 5] {
        self.vocabulary.special().all()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().given.reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        format!("<engraft.Tokenizer of {} entries>", self.vocabulary.size())
    }
}

/// A case by its name.
///
/// # Errors
/// When it has no such name.
pub(crate) fn case(name: Option<&str>) -> PyResult<Option<Case>> {
    match name {
        None => Ok(None),
        Some("uncased") => Ok(Some(Case::Uncased)),
        Some("cased") => Ok(Some(Case::Cased)),
        Some(found) => Err(unfit("case", format!("{found:?}"), r#""uncased", "cased" or None"#)),
    }
}

/// The vocabulary at a path, as the stages read it.
///
/// # Errors
/// When it is damaged, or at odds with what is said of it.
pub(crate) fn read(path: &Path, case: Option<Case>) -> Result<Vocabulary, Error> {
    let file = if path.is_dir() { folder::find(path)? } else { path.to_owned() };
    let said = tasks::token::rule::Said::read(&file.with_file_name(folder::CONFIG))?;
    folder::read(&file, said.as_ref(), case)
}

/// How texts are encoded.
#[derive(Clone, Copy)]
struct How<'v> {
    vocabulary: &'v Vocabulary,
    offsets: Offsets,
    most: usize,
}

/// Columns of some rows.
struct Columns {
    rows: Vec<i64>,
    /// Tokens of each row; none where there is no text.
    lengths: Vec<Option<usize>>,
    ids: Vec<i32>,
    /// In the order of [`Offsets::columns`].
    places: Vec<Vec<i32>>,
}

impl How<'_> {
    fn columns(&self, placer: &mut Placer<'_>, piece: &Piece) -> Result<Columns, Error> {
        let places = vec![Vec::new(); self.offsets.columns().len()];
        let mut columns = Columns { rows: Vec::new(), lengths: Vec::new(), ids: Vec::new(), places };
        let (mut ids, mut subwords) = (Vec::new(), Vec::new());
        for (row, text) in piece.rows() {
            columns.rows.push(row);
            let Some(text) = text else {
                columns.lengths.push(None);
                continue;
            };
            let before = columns.ids.len();
            if self.offsets == Offsets::None {
                placer.ids(text, &mut ids)?;
                columns.ids.extend(ids.iter().take(self.most).map(|id| id.cast_signed()));
            } else {
                placer.place(text, &mut subwords)?;
                subwords.truncate(self.most);
                columns.ids.extend(subwords.iter().map(|subword| subword.id.cast_signed()));
                self.offsets.add(text, &subwords, &mut columns.places)?;
            }
            columns.lengths.push(Some(columns.ids.len() - before));
        }
        Ok(columns)
    }
}

impl Offsets {
    fn add(self, text: &str, subwords: &[Subword], to: &mut [Vec<i32>]) -> Result<(), Error> {
        let characters = (self != Offsets::Bytes).then(|| Characters::new(text));
        for Subword { bytes, .. } in subwords {
            let characters = match &characters {
                Some(characters) => Some(characters.range(bytes).ok_or_else(|| {
                    Error::Unfit(format!(
                        "a token lies at {bytes:?} of {text:?}, which is inside a character"
                    ))
                })?),
                None => None,
            };
            let bytes = (self != Offsets::Characters).then_some(bytes);
            let places = characters.iter().chain(bytes).flat_map(|range| [range.start, range.end]);
            for (column, place) in to.iter_mut().zip(places) {
                // Texts have at most 2^30 bytes.
                column.push(i32::try_from(place).unwrap_or(i32::MAX));
            }
        }
        Ok(())
    }
}

fn schema(offsets: Offsets) -> SchemaRef {
    let list = |name: &str| Field::new(name, DataType::List(item()), true);
    let row = Field::new("row", DataType::Int64, false);
    let lists = std::iter::once("input_ids").chain(offsets.columns().iter().copied()).map(list);
    Arc::new(Schema::new(std::iter::once(row).chain(lists).collect::<Vec<_>>()))
}

fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Int32, false))
}

/// The columns of all pieces, one behind the other.
fn batch(schema: &SchemaRef, pieces: Vec<Columns>) -> PyResult<RecordBatch> {
    let lengths = || pieces.iter().flat_map(|piece| piece.lengths.iter().copied());
    let nulls = NullBuffer::from_iter(lengths().map(|length| length.is_some()));
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths().map(Option::unwrap_or_default));
    let rows = Int64Array::from_iter_values(pieces.iter().flat_map(|piece| piece.rows.iter().copied()));
    let mut lists = vec![Vec::new(); schema.fields().len() - 1];
    for piece in pieces {
        for (all, values) in lists.iter_mut().zip(std::iter::once(piece.ids).chain(piece.places)) {
            all.extend(values);
        }
    }
    let list = |values: Vec<i32>| -> ArrayRef {
        let values = PrimitiveArray::<Int32Type>::new(ScalarBuffer::from(values), None);
        Arc::new(ListArray::new(item(), offsets.clone(), Arc::new(values), Some(nulls.clone())))
    };
    let columns = std::iter::once(Arc::new(rows) as ArrayRef).chain(lists.into_iter().map(list)).collect();
    table::batch(schema, columns)
}
