//! Rows of tokens as a padded rectangle, and back.

use candle_core::{Result, Tensor};

use super::Span;

/// Rows moved together into a padded rectangle: `b` rows of `t` cells, `t` the longest span.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// Rows.
    pub(crate) b: usize,
    /// Cells per row.
    pub(crate) t: usize,
    /// Token behind each cell `[b * t]`; a padding cell repeats its row's first token and must be given no weight.
    token_bt: Tensor,
    /// Cell of each token of the spans, in order.
    cell_n: Tensor,
    /// 0 for a token, `-inf` for padding `[b, t]`.
    pub(crate) padding_bt: Tensor,
}

impl Grid {
    pub(crate) fn new(spans: &[Span], like: &Tensor) -> Result<Self> {
        Grid::seeing(spans, None, like)
    }

    /// As [`Grid::new`], of rows of which so many tokens are looked at; the others of a row are padding to those who look.
    pub(crate) fn seeing(spans: &[Span], seen: Option<&[usize]>, like: &Tensor) -> Result<Self> {
        let (b, t) = (spans.len(), spans.iter().map(|span| span.len).max().unwrap_or(0));
        let token = |span: &Span, j: usize| span.start + if j < span.len { j } else { 0 };
        let tokens: Vec<i64> = spans.iter().flat_map(|s| (0..t).map(move |j| token(s, j) as i64)).collect();
        let cells: Vec<i64> =
            spans.iter().enumerate().flat_map(|(i, s)| (i * t..i * t + s.len).map(|c| c as i64)).collect();
        let seen =
            |row: usize, span: &Span| seen.and_then(|seen| seen.get(row)).map_or(span.len, |seen| *seen);
        let rows = spans.iter().enumerate().map(|(row, span)| seen(row, span));
        let padding: Vec<f32> = rows
            .flat_map(|seen| (0..t).map(move |j| if j < seen { 0.0 } else { f32::NEG_INFINITY }))
            .collect();
        Ok(Grid {
            b,
            t,
            token_bt: Tensor::from_vec(tokens, b * t, like.device())?,
            cell_n: Tensor::new(cells.as_slice(), like.device())?,
            padding_bt: Tensor::from_vec(padding, (b, t), like.device())?.to_dtype(like.dtype())?,
        })
    }

    /// `[n, d]` to `[b, t, d]`.
    pub(crate) fn spread(&self, x_nd: &Tensor) -> Result<Tensor> {
        x_nd.index_select(&self.token_bt, 0)?.reshape((self.b, self.t, ()))
    }

    /// `[b, t, d]` to `[n, d]`.
    pub(crate) fn gather(&self, x_btd: &Tensor) -> Result<Tensor> {
        x_btd.reshape((self.b * self.t, ()))?.index_select(&self.cell_n, 0)
    }
}
