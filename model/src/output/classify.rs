//! Targets of tasks that ask one class per sample.

use batch::{Batch, Targets};

use super::wrong_kind;
use crate::Error;

/// The class of each sample.
///
/// # Errors
/// When the batch asks for tokens, or not for one class per sample.
pub(crate) fn targets(batch: &Batch) -> Result<Vec<u32>, Error> {
    let (found, kind) = match &batch.targets {
        Targets::Classes(classes) if classes.len() == batch.samples.len() => return Ok(classes.clone()),
        Targets::Classes(classes) => (classes.len(), "classes"),
        Targets::Tokens(tokens) => (tokens.len(), "tokens"),
    };
    let expected = format!("one class for each of {} samples", batch.samples.len());
    Err(wrong_kind(batch.task.name(), &expected, found, kind))
}
