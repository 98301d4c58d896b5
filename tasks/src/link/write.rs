//! Puts ranks and candidates on the disk.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, StringArray, UInt32Array};
use kg::table::parquet_file::{Error, Writer};

use super::Question;
use super::schema::{CANDIDATES, FORMAT, VERSION, columns, of_candidates};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// Rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Where an answer stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// From 1; the mean of the best and the worst that ties allow.
    pub rank: f64,
    /// How many it stands among.
    pub candidates: u32,
    /// How many others have its score.
    pub ties: u32,
}

/// A question and how it was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered {
    /// The question.
    pub question: Question,
    /// Where the answer stands without other true ones.
    pub filtered: Place,
    /// Where it stands with them.
    pub raw: Place,
    /// Its score.
    pub score: f32,
    /// How a shown triple gives the answer away, if one does.
    pub given_away: Option<&'static str>,
}

/// Writes answers, sorted by triple and side, as the file `file`.
///
/// # Errors
/// When the folder is missing or the disk refuses.
pub fn write(file: &Path, answers: &[Answered]) -> Result<(), Error> {
    let footer = [("engraft.format", FORMAT.to_owned()), ("engraft.version", VERSION.to_string())];
    let mut writer = Writer::create(file, columns(), GROUP_ROWS, &footer)?;
    for answers in answers.chunks(BATCH_ROWS) {
        writer.write_columns(rows(answers))?;
    }
    writer.finish()
}

/// Who may answer a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The entity or relation.
    pub id: u32,
    /// Its score.
    pub score: f32,
    /// Whether the graph states the triple with it.
    pub stated: bool,
}

/// Writes the candidates of questions, in the order given, as the file `file`.
///
/// # Errors
/// When the folder is missing or the disk refuses.
pub fn write_candidates<'c>(
    file: &Path,
    of: impl IntoIterator<Item = (Question, &'c [Candidate])>,
) -> Result<(), Error> {
    let footer = [("engraft.format", CANDIDATES.to_owned()), ("engraft.version", VERSION.to_string())];
    let mut writer = Writer::create(file, of_candidates(), GROUP_ROWS, &footer)?;
    let mut all =
        of.into_iter().flat_map(|(question, of)| of.iter().map(move |&candidate| (question, candidate)));
    loop {
        let some: Vec<(Question, Candidate)> = all.by_ref().take(BATCH_ROWS).collect();
        if some.is_empty() {
            return writer.finish();
        }
        let number = |of: fn(&(Question, Candidate)) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(some.iter().map(of)))
        };
        writer.write_columns(vec![
            number(|(question, _)| question.row),
            Arc::new(StringArray::from_iter_values(some.iter().map(|(question, _)| question.slot.name()))),
            number(|(_, candidate)| candidate.id),
            Arc::new(Float32Array::from_iter_values(some.iter().map(|(_, candidate)| candidate.score))),
            Arc::new(some.iter().map(|(_, candidate)| Some(candidate.stated)).collect::<BooleanArray>()),
        ])?;
    }
}

fn rows(answers: &[Answered]) -> Vec<ArrayRef> {
    let number = |of: fn(&Answered) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(answers.iter().map(of)))
    };
    let place = |of: fn(&Answered) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(answers.iter().map(of)))
    };
    let sides = answers.iter().map(|answer| answer.question.slot.name());
    let given_away: StringArray = answers.iter().map(|answer| answer.given_away).collect();
    vec![
        number(|answer| answer.question.row),
        Arc::new(StringArray::from_iter_values(sides)),
        place(|answer| answer.filtered.rank),
        number(|answer| answer.filtered.candidates),
        number(|answer| answer.filtered.ties),
        place(|answer| answer.raw.rank),
        number(|answer| answer.raw.candidates),
        number(|answer| answer.raw.ties),
        Arc::new(Float32Array::from_iter_values(answers.iter().map(|answer| answer.score))),
        Arc::new(given_away),
    ]
}
