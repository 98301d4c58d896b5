//! Texts of whatever column has them, in groups that threads share out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::capsule::Arrays;
use super::table;
use crate::raised::unfit;

/// Most rows, and about most bytes, of what is worked on at once: they bound memory, a batch of what comes of them, and how long Ctrl-C waits.
const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 8 << 20;
/// The same for what one thread takes at a time.
const PIECE_ROWS: usize = 256;
const PIECE_BYTES: usize = 64 << 10;
/// The longest text: what is made of a group is counted in 32 bits.
const LONGEST: usize = 1 << 30;

/// The highest number that a first row may have.
const HIGHEST: i64 = 1 << 62;

/// A column of texts that is being read.
pub(crate) struct Texts {
    arrays: Arrays,
    column: Option<usize>,
    /// The chunk at hand, and the row that comes next.
    chunk: Option<(Arc<Strings>, usize)>,
    next_row: i64,
}

/// Rows next to each other, of one chunk.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    strings: Arc<Strings>,
    rows: Range<usize>,
    first: i64,
}

impl Piece {
    /// Numbers of rows with their texts; none where there is no text.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (i64, Option<&str>)> {
        (self.first..).zip(self.rows.clone()).map(|(number, row)| (number, self.strings.get(row)))
    }
}

impl Texts {
    /// Takes a list of strings, or what speaks Arrow: a column of strings, or a table, of which `column` names the column that has the texts.
    /// Rows are numbered from `first_row`.
    ///
    /// # Errors
    /// When it is none of these, or there is no telling which column is meant.
    pub(crate) fn new(given: &Bound<'_, PyAny>, column: Option<&str>, first_row: i64) -> PyResult<Self> {
        if !(0..=HIGHEST).contains(&first_row) {
            return Err(unfit("first_row", first_row, &format!("from 0 to {HIGHEST}")));
        }
        let arrays = match Arrays::of(given)? {
            Some(arrays) => arrays,
            None => listed(given)?,
        };
        let (column, kind) = match &arrays.kind {
            DataType::Struct(fields) => {
                let (place, field) = table::one_of(fields, column)?;
                (Some(place), field.data_type().clone())
            }
            kind if column.is_none() => (None, kind.clone()),
            kind => {
                let found =
                    format!("column={:?}, but the texts are one column of {kind}", column.unwrap_or(""));
                return Err(PyValueError::new_err(format!(
                    "{found}: leave `column` out, or hand in the table"
                )));
            }
        };
        if !is_text(&kind) {
            return Err(PyTypeError::new_err(format!(
                "the texts are {kind}: expected strings (string, large_string, string_view, or a dictionary of these); cast them first"
            )));
        }
        Ok(Self { arrays, column, chunk: None, next_row: first_row })
    }

    /// The next rows, as pieces in their order; none behind the last row.
    ///
    /// # Errors
    /// When the source fails, or a text is no UTF-8 or too long.
    pub(crate) fn group(&mut self) -> PyResult<Option<Vec<Piece>>> {
        let (mut pieces, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < GROUP_ROWS && bytes < GROUP_BYTES {
            let Some((strings, at)) = self.at_hand()? else { break };
            let (mut end, mut size) = (at, 0);
            while end < strings.len() && end - at < PIECE_ROWS && size < PIECE_BYTES {
                size += self.length(&strings, end, end - at)?;
                end += 1;
            }
            pieces.push(Piece { strings: Arc::clone(&strings), rows: at..end, first: self.next_row });
            self.chunk = Some((strings, end));
            (rows, bytes) = (rows + end - at, bytes + size);
            self.next_row += i64::try_from(end - at).unwrap_or(i64::MAX);
        }
        Ok(Some(pieces).filter(|pieces| !pieces.is_empty()))
    }

    /// What `make` makes of all rows, group by group, without Python's lock; Ctrl-C ends it between two groups.
    ///
    /// # Errors
    /// As [`Texts::group`], and what `make` says.
    pub(crate) fn batches(
        mut self,
        py: Python<'_>,
        mut make: impl FnMut(&[Piece]) -> PyResult<Vec<RecordBatch>> + Send,
    ) -> PyResult<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(pieces) = py.detach(|| self.group())? {
            py.check_signals()?;
            batches.extend(py.detach(|| make(&pieces))?);
        }
        Ok(batches)
    }

    /// The chunk that has the next row, and its place there.
    fn at_hand(&mut self) -> PyResult<Option<(Arc<Strings>, usize)>> {
        loop {
            if let Some((strings, at)) = self.chunk.take().filter(|(strings, at)| *at < strings.len()) {
                return Ok(Some((strings, at)));
            }
            let Some(array) = self.arrays.next().transpose()? else { return Ok(None) };
            let array = match self.column {
                Some(column) => table::child(&array, column)?,
                None => array,
            };
            self.chunk = Some((Arc::new(Strings::new(&array)?), 0));
        }
    }

    fn length(&self, strings: &Strings, row: usize, behind: usize) -> PyResult<usize> {
        let length = strings.get(row).map_or(0, str::len);
        if length > LONGEST {
            let row = self.next_row + i64::try_from(behind).unwrap_or(i64::MAX);
            return Err(PyValueError::new_err(format!(
                "row {row}: a text of {length} bytes, expected at most {LONGEST}: cut it into several"
            )));
        }
        Ok(length)
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// A list or tuple of strings as a column.
fn listed(given: &Bound<'_, PyAny>) -> PyResult<Arrays> {
    let name =
        |of: &Bound<'_, PyAny>| of.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let remedy = "a list of strings, or an object with __arrow_c_stream__ or __arrow_c_array__ (of pyarrow, polars, DuckDB ...)";
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("a single string: expected {remedy}; put it into a list")));
    }
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return Err(PyTypeError::new_err(format!("an object of type {}: expected {remedy}", name(given))));
    }
    let mut texts = Vec::new();
    for (at, text) in given.try_iter()?.enumerate() {
        let text = text?;
        texts.push(if text.is_none() {
            None
        } else {
            let text = text.cast::<PyString>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "texts[{at}] is of type {}: expected a string or None",
                    name(&text)
                ))
            })?;
            Some(text.to_str()?.to_owned())
        });
    }
    Ok(Arrays::one(Arc::new(LargeStringArray::from(texts))))
}

/// The strings of one chunk.
#[derive(Debug)]
pub(crate) enum Strings {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
    /// Each row's place among the values.
    Dictionary {
        places: Vec<usize>,
        nulls: Option<NullBuffer>,
        values: Box<Strings>,
    },
    /// Rows without a text.
    None(usize),
}

impl Strings {
    /// The strings of an array of another library, once it is sure that they are UTF-8 and lie within their buffers.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn new(array: &ArrayRef) -> PyResult<Self> {
        let checked = array.to_data().validate_full();
        checked.map_err(|error| PyValueError::new_err(format!("a column of texts is damaged: {error}")))?;
        Self::checked(array)
    }

    fn checked(array: &ArrayRef) -> PyResult<Self> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string::<i32>().clone()),
            DataType::LargeUtf8 => Self::Large(array.as_string::<i64>().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                if dictionary.values().is_empty() {
                    return Ok(Self::None(array.len()));
                }
                let values = Box::new(Self::checked(dictionary.values())?);
                let nulls = dictionary.keys().nulls().cloned();
                Self::Dictionary { places: dictionary.normalized_keys(), nulls, values }
            }
            DataType::Null => Self::None(array.len()),
            kind => return Err(PyTypeError::new_err(format!("a chunk is {kind}: expected strings"))),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
            Self::View(array) => array.len(),
            Self::Dictionary { places, .. } => places.len(),
            Self::None(len) => *len,
        }
    }

    /// The text of a row; none where it has none.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Dictionary { places, nulls, values } => {
                let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                if valid { values.get(places[row]) } else { None }
            }
            Self::None(_) => None,
        }
    }
}
