//! Tokens whose outputs are asked for: what follows attention is computed for them alone.

use candle_core::Result;

use crate::encoder::Read;
use crate::nn::buffers::{Buffer, Buffers};

/// All tokens of a batch, or some of them in ascending order.
#[derive(Clone)]
pub(super) struct Asked(Option<Vec<u32>>);

impl Asked {
    /// Of `n` tokens.
    ///
    /// # Errors
    /// When a token is not among them, or they do not ascend.
    pub(super) fn new(read: Read<'_>, n: usize) -> Result<Self> {
        let Read::Of(tokens) = read else { return Ok(Asked(None)) };
        let ascending = tokens.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || tokens.last().is_none_or(|last| *last as usize >= n) {
            candle_core::bail!("{} tokens whose states are read do not ascend among {n}", tokens.len());
        }
        Ok(Asked(Some(tokens.to_vec())))
    }

    /// The token that row `row` of what is computed belongs to.
    #[inline(always)]
    pub(super) fn token(&self, row: usize) -> usize {
        self.0.as_ref().map_or(row, |tokens| tokens[row] as usize)
    }

    /// The rows `[m, d]` of a matrix `[n, d]` that are asked for; none where it is all of them.
    pub(super) fn gathered(&self, buffers: &Buffers, matrix: &[f32], d: usize) -> Option<Buffer> {
        let tokens = self.0.as_ref()?;
        let mut rows = buffers.any(tokens.len() * d);
        rows.chunks_exact_mut(d).zip(tokens).for_each(|(row, token)| {
            row.copy_from_slice(&matrix[*token as usize * d..][..d]);
        });
        Some(rows)
    }

    /// Outputs `[m, d]` in their places among those of `n` tokens; NaN where nothing was asked for, so that nobody reads it unawares.
    pub(super) fn outputs(&self, rows: Vec<f32>, n: usize, d: usize) -> Vec<f32> {
        if self.0.is_none() {
            return rows;
        }
        let mut all = vec![f32::NAN; n * d];
        self.put(&rows, &mut all, d);
        all
    }

    /// Gradients `[m, d]` in their places among those of `n` tokens, of which the others have none.
    pub(super) fn gradients(&self, buffers: &Buffers, rows: Buffer, [n, d]: [usize; 2]) -> Buffer {
        if self.0.is_none() {
            return rows;
        }
        let mut all = buffers.any(n * d);
        all.fill(0.0);
        self.put(&rows, &mut all, d);
        all
    }

    fn put(&self, rows: &[f32], all: &mut [f32], d: usize) {
        for (at, row) in rows.chunks_exact(d).enumerate() {
            all[self.token(at) * d..][..d].copy_from_slice(row);
        }
    }
}
