//! Targets of tasks that ask one class per row. Knows no layer.

use tasks::stream::batch::{Batch, Targets};

use super::Error;

/// The class of each row.
///
/// # Errors
/// When the batch asks for tokens, or not for one class per row.
pub(crate) fn targets(batch: &Batch) -> Result<Vec<u32>, Error> {
    let (found, kind) = match &batch.targets {
        Targets::Classes(classes) if classes.len() == batch.rows => return Ok(classes.clone()),
        Targets::Classes(classes) => (classes.len(), "classes"),
        Targets::Tokens(tokens) => (tokens.len(), "tokens"),
    };
    let expected = format!("one class for each of {} rows", batch.rows);
    Err(Error::Kind { task: batch.task.name(), expected, found, kind })
}
