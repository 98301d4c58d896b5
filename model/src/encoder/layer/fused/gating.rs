//! Gates of the heads inside the one operation: contexts times gates, and back.

use candle_core::{Result, Tensor};

use crate::attention::gate::{gradient_rows, scale_rows};
use crate::encoder::layer::gates::{LayerGates, Row};
use crate::encoder::tokens::Span;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::{Host, fill_rows, sum_rows};

/// The gates of a layer as numbers.
pub(super) struct Gating {
    /// One row of `heads` gates for all tokens, or one for each.
    gates: Vec<f32>,
    heads: usize,
    row: Row,
    /// The samples of the tokens.
    spans: Vec<Span>,
}

impl Gating {
    /// The gates of `n` tokens that are `spans`.
    ///
    /// # Errors
    /// When there are not as many rows of gates as they are for, or not as many gates in a row as there are heads.
    pub(super) fn new(of: &LayerGates, heads: usize, spans: &[Span], n: usize) -> Result<Self> {
        let expected = match of.row {
            Row::All => 1,
            Row::Sample => spans.len(),
            Row::Token => n,
        };
        if of.gates_rh.dims() != [expected, heads] {
            candle_core::bail!(
                "gates of shape {:?}, a layer of {heads} heads needs {expected} rows",
                of.gates_rh.dims()
            );
        }
        let gates_rh = of.gates_rh.detach().contiguous()?;
        let host = Host::of(&gates_rh)?;
        let gates = match of.row {
            Row::All | Row::Token => host.get()?.to_vec(),
            Row::Sample => {
                let rows = spans.iter().zip(host.get()?.chunks_exact(heads));
                rows.flat_map(|(span, gates)| gates.repeat(span.len)).collect()
            }
        };
        Ok(Gating { gates, heads, row: of.row, spans: spans.to_vec() })
    }

    /// The contexts `[n, d]`, those of each head times its gate.
    pub(super) fn scaled(&self, buffers: &Buffers, context: &[f32], d: usize) -> Buffer {
        let mut gated = buffers.any(context.len());
        fill_rows!(&mut gated, d, |first, block| {
            let context = &context[first * d..][..block.len()];
            block.copy_from_slice(context);
            scale_rows(block, d, first, &self.gates, self.heads);
        });
        gated
    }

    /// Turns the gradient of what [`Gating::scaled`] gives, `[n, d]`, into that of the contexts.
    pub(super) fn rescale(&self, gradient: &mut [f32], d: usize) {
        fill_rows!(gradient, d, |first, block| scale_rows(block, d, first, &self.gates, self.heads));
    }

    /// The gradient of the gates `[r, h]`, given the contexts and the gradient of what [`Gating::scaled`] gives, `[n, d]` both.
    pub(super) fn gradient(&self, [context, g]: [&[f32]; 2], d: usize) -> Vec<f32> {
        let (h, n) = (self.heads, context.len() / d);
        let mut each = vec![0.0; n * h];
        fill_rows!(&mut each, h, |first, block| {
            let rows = first * d..first * d + block.len() / h * d;
            gradient_rows(block, h, [&context[rows.clone()], &g[rows]]);
        });
        match self.row {
            Row::All => sum_rows!(n, h, |row, sum| add(sum, &each[row * h..])),
            Row::Sample => self.spans.iter().flat_map(|span| sum_of(&each, *span, h)).collect(),
            Row::Token => each,
        }
    }
}

fn add(sum: &mut [f32], row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}

/// The sum over the tokens of a span.
fn sum_of(each: &[f32], span: Span, h: usize) -> Vec<f32> {
    let mut sum = vec![0.0; h];
    each[span.start * h..][..span.len * h].chunks_exact(h).for_each(|row| add(&mut sum, row));
    sum
}

/// The shape of the gates, for their gradient.
pub(super) fn into_tensor(gradient: Vec<f32>, heads: usize) -> Result<Tensor> {
    let rows = gradient.len() / heads;
    Tensor::from_vec(gradient, (rows, heads), &candle_core::Device::Cpu)
}
