//! Kernel `word_counts`: how often each word occurs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use text::lexicon::Lexicon;
use text::word::{Case, Words};

use super::batches::{Batches, Source};
use super::pool::pool;
use super::texts::{Piece, Texts};
use crate::raised::unfit;

/// Most words, and about most bytes, of a batch: a column of strings holds less than 2^31.
const WORDS: usize = 1 << 16;
const BYTES: usize = 256 << 20;

/// How often each word occurs in `texts`: columns `word` (string) and `occurrences` (int64), the most frequent word first, equally frequent
/// ones by their letters.
///
/// Words are those of BERT's basic tokenizer, as the stage `counts` has them: every punctuation mark is a word, and with `case="uncased"`
/// words are in lower case and without accents. Counts are additive: summed by word over any parts of `texts`, they are those of all.
///
/// `texts` is a list of strings, or whatever speaks the Arrow PyCapsule Interface; of a table with several columns, `column` names the one that has the
/// texts. Nulls have no word.
///
/// >>> engraft.word_counts(["Fever and pain.", "No fever"])
/// <engraft.Batches of 5 rows: word, occurrences>
///
/// Raises TypeError for what are no texts, ValueError for an unknown case or column.
#[pyfunction]
#[pyo3(signature = (texts, *, case="uncased", column=None))]
pub(crate) fn word_counts(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    case: &str,
    column: Option<&str>,
) -> PyResult<Batches> {
    let case = match case {
        "uncased" => Case::Uncased,
        "cased" => Case::Cased,
        found => return Err(unfit("case", format!("{found:?}"), r#""uncased" or "cased""#)),
    };
    let mut texts = Texts::new(texts, column, 0)?;
    let pool = pool(py)?;
    let new = || Counter { words: Words::new(case), counts: Lexicon::default() };
    let mut counters: Vec<Counter> = (0..pool.current_num_threads()).map(|_| new()).collect();
    while let Some(pieces) = py.detach(|| texts.group())? {
        py.check_signals()?;
        py.detach(|| {
            let share = pieces.len().div_ceil(counters.len());
            pool.install(|| {
                let shares = counters.par_iter_mut().zip(pieces.par_chunks(share));
                shares.for_each(|(counter, pieces)| counter.count(pieces));
            });
        });
    }
    Ok(Batches::new(py.detach(|| Counts::of(counters)), None))
}

/// What one thread counts.
struct Counter {
    words: Words,
    counts: Lexicon,
}

impl Counter {
    fn count(&mut self, pieces: &[Piece]) {
        for (_, text) in pieces.iter().flat_map(Piece::rows) {
            self.words.split(text.unwrap_or_default());
            self.words.iter().for_each(|word| {
                self.counts.add(word.letters, 1);
            });
        }
    }
}

/// All words with their counts.
#[derive(Debug)]
struct Counts {
    counts: Lexicon,
    /// Numbers of words in the order of their rows.
    order: Vec<u32>,
    /// Where each batch ends among them.
    ends: Vec<usize>,
}

impl Counts {
    /// Adds up; sums do not depend on who counted what.
    fn of(counters: Vec<Counter>) -> Self {
        let numbers = |counts: &Lexicon| 0..u32::try_from(counts.len()).unwrap_or(u32::MAX);
        let mut all = Lexicon::default();
        for Counter { counts, .. } in counters {
            for number in numbers(&counts) {
                all.add(counts.word(number), counts.count(number));
            }
        }
        let mut order: Vec<u32> = numbers(&all).collect();
        order.sort_unstable_by(|a, b| {
            all.count(*b).cmp(&all.count(*a)).then_with(|| all.word(*a).cmp(all.word(*b)))
        });
        let (mut ends, mut start, mut bytes) = (Vec::new(), 0, 0);
        for (row, &number) in order.iter().enumerate() {
            bytes += all.word(number).len();
            if row + 1 - start == WORDS || bytes >= BYTES || row + 1 == order.len() {
                ends.push(row + 1);
                (start, bytes) = (row + 1, 0);
            }
        }
        Self { counts: all, order, ends }
    }
}

impl Source for Counts {
    fn schema(&self) -> SchemaRef {
        let word = Field::new("word", DataType::Utf8, false);
        Arc::new(Schema::new(vec![word, Field::new("occurrences", DataType::Int64, false)]))
    }

    fn rows(&self) -> usize {
        self.order.len()
    }

    fn batch(&self, number: usize) -> Option<Result<RecordBatch, ArrowError>> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let numbers = &self.order[start..*self.ends.get(number)?];
        let words = StringArray::from_iter_values(numbers.iter().map(|&number| self.counts.word(number)));
        let count = |&number: &u32| i64::try_from(self.counts.count(number)).unwrap_or(i64::MAX);
        let counts = Int64Array::from_iter_values(numbers.iter().map(count));
        let columns: Vec<ArrayRef> = vec![Arc::new(words), Arc::new(counts)];
        Some(RecordBatch::try_new(self.schema(), columns))
    }
}
