//! How good answers are: slices in, numbers out.
//!
//! One file per family of metrics. Whatever a metric cannot answer is an error or a count, never a quiet number: scores that are no
//! numbers, empty inputs, slices of different lengths, one class alone. Sums run in the order of the input and random numbers are a
//! function of a seed, so every number is the same for any number of threads.

pub mod answer;
pub mod auroc;
pub mod correlation;
pub mod cosine;
pub mod entity;
pub mod f1;
pub mod interval;
pub mod link;
pub mod nearest;
pub mod paired;
pub mod retrieval;
mod special;

/// Why a metric has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is too little to measure.
    #[error("{what}: {found} of them, expected at least {least}: give more")]
    Few {
        /// What there is too little of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many it takes.
        least: usize,
    },
    /// Two slices that belong together have different lengths.
    #[error("{what} has {found} entries, expected {expected} as {of} has: give both for the same samples")]
    Lengths {
        /// The slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that it should have.
        expected: usize,
        /// The slice that has it.
        of: &'static str,
    },
    /// A score is not a number.
    #[error("{what}[{index}] is {found}, expected a finite number: look at where it was computed")]
    NotANumber {
        /// The slice.
        what: &'static str,
        /// Its entry, from 0.
        index: usize,
        /// What stands there.
        found: f64,
    },
    /// A class is none of those that there are.
    #[error("{what}[{index}] is class {found}, expected one below {classes}: give the number of all classes")]
    Class {
        /// The slice.
        what: &'static str,
        /// Its entry, from 0.
        index: usize,
        /// What stands there.
        found: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A setting is out of range.
    #[error("{what} is {found}, expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value.
        found: f64,
        /// What it should be.
        expected: &'static str,
    },
    /// The name of a class of tags is no tag.
    #[error("tag {index} is {found:?}, expected O, or B or I with a type behind a hyphen (B-Disease)")]
    Tag {
        /// The class, from 0.
        index: usize,
        /// Its name.
        found: String,
    },
    /// The metric is not defined for these samples.
    #[error("{what} is undefined: {why}")]
    Undefined {
        /// The metric.
        what: &'static str,
        /// What is missing.
        why: &'static str,
    },
}

/// Two slices with names, of which the second must be as long as the first.
fn same_length<A, B>(of: &'static str, first: &[A], what: &'static str, second: &[B]) -> Result<(), Error> {
    if first.len() == second.len() {
        return Ok(());
    }
    Err(Error::Lengths { what, found: second.len(), expected: first.len(), of })
}

/// At least so many samples.
fn at_least(what: &'static str, found: usize, least: usize) -> Result<(), Error> {
    if found >= least { Ok(()) } else { Err(Error::Few { what, found, least }) }
}

/// No score is NaN; infinite ones can be ranked.
fn numbers(what: &'static str, scores: &[f64]) -> Result<(), Error> {
    match scores.iter().position(|score| score.is_nan()) {
        None => Ok(()),
        Some(index) => Err(Error::NotANumber { what, index, found: scores[index] }),
    }
}

/// No score is NaN or infinite.
fn finite(what: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Error::NotANumber { what, index, found: values[index] }),
    }
}

/// Every class is one of `classes`.
fn classes_below(what: &'static str, labels: &[usize], classes: usize) -> Result<(), Error> {
    match labels.iter().position(|&label| label >= classes) {
        None => Ok(()),
        Some(index) => Err(Error::Class { what, index, found: labels[index], classes }),
    }
}

/// The mean, summed in order; the slice is not empty.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Ranks from 1 by rising value; equal values share the mean of their ranks. No value is NaN.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    // Minus zero and zero are the same value, and lie side by side in the total order.
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = (2 * below + tied.len() + 1) as f64 / 2.0;
        tied.iter().for_each(|&index| ranks[index] = rank);
        below += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_the_mean_of_their_ranks() {
        assert_eq!(mid_ranks(&[3.0, 1.0, 3.0, 0.5]), [3.5, 2.0, 3.5, 1.0]);
        assert_eq!(mid_ranks(&[0.0, -0.0, f64::INFINITY]), [1.5, 1.5, 3.0]);
        assert_eq!(mid_ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn messages_say_where_and_what_was_expected() {
        let message = same_length("scores", &[1.0], "labels", &[1, 2]).unwrap_err().to_string();
        assert_eq!(message, "labels has 2 entries, expected 1 as scores has: give both for the same samples");
        let message = numbers("scores", &[1.0, f64::NAN]).unwrap_err().to_string();
        assert!(message.starts_with("scores[1] is NaN, expected a finite number"), "{message}");
        let message = classes_below("labels", &[0, 4], 4).unwrap_err().to_string();
        assert!(message.starts_with("labels[1] is class 4, expected one below 4"), "{message}");
    }
}
