//! Targets of tasks that ask a class at single positions, and the hidden states there.
//!
//! Only the positions that are asked for reach the output: a vocabulary is wide, and most positions have no target.

use batch::{Batch, IGNORED, Targets};
use candle_core::{Result, Tensor};

use super::{beyond, wrong_kind};
use crate::Error;
use crate::encoder::tokens::Tokens;

/// Index among the real tokens and class of each position that has a target, sample after sample, so that packing changes nothing.
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
            return asked(batch, targets, |cell| tokens.index(index, cell));
        }
        Targets::Tokens(targets) => (targets.len(), "tokens"),
        Targets::Classes(classes) => (classes.len(), "classes"),
    };
    let expected = format!("one token or {IGNORED} for each of {cells} positions");
    Err(wrong_kind(task, &expected, found, kind))
}

fn asked(
    batch: &Batch,
    targets: &[i64],
    place: impl Fn(usize) -> Option<u32>,
) -> std::result::Result<(Vec<u32>, Vec<u32>), Error> {
    let task = batch.task.name();
    let padded = |cell: usize| targets[cell] != IGNORED && place(cell).is_none();
    if let Some(cell) = (0..targets.len()).find(|&cell| padded(cell)) {
        return Err(Error::Misfit(format!(
            "batch of {task}, cell {cell}: a target at a padded position; set it to {IGNORED}"
        )));
    }
    let (mut places, mut classes) = (vec![], vec![]);
    let cells = batch.samples.iter().flat_map(|sample| {
        let start = sample.row * batch.width + sample.start;
        start..start + sample.len
    });
    for (cell, place) in
        cells.filter(|&cell| targets[cell] != IGNORED).filter_map(|cell| Some((cell, place(cell)?)))
    {
        let class = targets[cell];
        let wrong = |_| beyond(task, cell, class, u32::MAX as usize, "vocabularies");
        places.push(place);
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
