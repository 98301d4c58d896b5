//! Single tokens that a word is asked of, and the hidden states there.
//!
//! Only the tokens that are asked about reach an output of the vocabulary, which is wide: most tokens have no target.

use candle_core::{Error, Result, Tensor};

use crate::encoder::tokens::Span;

/// Where each token that is asked about lies, and its class, row after row.
///
/// # Errors
/// When the targets are not those of the rows.
pub(crate) fn asked(spans: &[Span], rows: &[Vec<Option<u32>>]) -> Result<(Vec<u32>, Vec<Option<u32>>)> {
    if spans.len() != rows.len() {
        candle_core::bail!("targets of {} rows for {} rows of tokens", rows.len(), spans.len());
    }
    let (mut places, mut classes) = (vec![], vec![]);
    for (span, row) in spans.iter().zip(rows) {
        for (place, class) in (span.start..).zip(row).filter(|(_, class)| class.is_some()) {
            places.push(u32::try_from(place).map_err(Error::wrap)?);
            classes.push(*class);
        }
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
