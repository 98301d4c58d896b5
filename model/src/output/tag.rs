//! Targets of tasks that ask a class at single positions, and the hidden states there. Knows no layer.
//!
//! Only the positions that are asked for reach the output: a vocabulary is wide, and most positions have no target.

use candle_core::{Result, Tensor};
use tasks::stream::batch::{Batch, IGNORED, Targets};

use super::Error;
use crate::encoder::tokens::Tokens;

/// Index among the real tokens and class of each position that has a target, in the batch's order.
///
/// # Errors
/// When the batch asks for classes, or a target lies on padding or below 0.
pub(crate) fn targets(
    batch: &Batch,
    tokens: &Tokens,
    index: usize,
) -> std::result::Result<(Vec<u32>, Vec<u32>), Error> {
    let (task, cells) = (batch.task.name(), batch.rows * batch.width);
    let (found, kind) = match &batch.targets {
        Targets::Tokens(targets) if targets.len() == cells => {
            return asked(targets, |cell| tokens.index(index, cell), task);
        }
        Targets::Tokens(targets) => (targets.len(), "tokens"),
        Targets::Classes(classes) => (classes.len(), "classes"),
    };
    let expected = format!("one token or {IGNORED} for each of {cells} positions");
    Err(Error::Kind { task, expected, found, kind })
}

fn asked(
    targets: &[i64],
    place: impl Fn(usize) -> Option<u32>,
    task: &'static str,
) -> std::result::Result<(Vec<u32>, Vec<u32>), Error> {
    let (mut places, mut classes) = (vec![], vec![]);
    for (cell, &class) in targets.iter().enumerate().filter(|(_, class)| **class != IGNORED) {
        let wrong =
            |_| Error::Class { task, index: cell, class, classes: u32::MAX as usize, what: "vocabularies" };
        places.push(place(cell).ok_or(Error::Padded { task, cell })?);
        classes.push(u32::try_from(class).map_err(wrong)?);
    }
    Ok((places, classes))
}

/// The rows `places` of `x_nd`.
///
/// # Errors
/// When a place lies outside.
pub(crate) fn gather(x_nd: &Tensor, places: &[u32]) -> Result<Tensor> {
    x_nd.index_select(&Tensor::new(places, x_nd.device())?, 0)
}
