//! Scaled dot-product attention of several heads (Vaswani et al. 2017) over rows without padding. Knows no projection.
//!
//! Queries, keys and values come side by side in `qkv_n3d`. In f32 on the CPU each (row, head) is computed at once and
//! its probabilities are made again for the gradient instead of being kept; elsewhere rows are padded to a rectangle.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::encoder::tokens::{Grid, Span};
use crate::nn::dropout::Dropout;
use crate::nn::softmax::{softmax, softmax_row};
use crate::nn::{Host, fused, read, wide};

/// What attention needs to know besides its input.
#[derive(Debug, Clone)]
pub struct Attention {
    /// Number of heads (h).
    pub heads: usize,
    /// Dropout of the probabilities, `None` outside training.
    pub dropout: Option<Dropout>,
}

impl Attention {
    /// The context `softmax(Q K^T / sqrt k) V` of every head, heads side by side: `[n, d]`.
    ///
    /// # Errors
    /// When the width of `qkv_n3d` is not 3 * heads * k, or the spans do not cover its rows in order.
    pub fn forward(&self, qkv_n3d: &Tensor, spans: &[Span]) -> Result<Tensor> {
        let (n, width) = qkv_n3d.dims2()?;
        if !width.is_multiple_of(3 * self.heads) {
            candle_core::bail!(
                "{width} columns do not hold queries, keys and values of {} heads",
                self.heads
            );
        }
        let end = spans.iter().try_fold(0, |end, span| (span.start == end).then_some(end + span.len));
        if end != Some(n) {
            candle_core::bail!("spans do not cover the {n} tokens one after the other");
        }
        if fused(qkv_n3d) {
            let op = Fused { how: self.clone(), spans: spans.to_vec(), d: width / 3 };
            return qkv_n3d.contiguous()?.apply_op1(op);
        }
        let (grid, probs_bhtt, v_bhtk) = padded(qkv_n3d, spans, self.heads)?;
        let probs_bhtt = match self.dropout {
            Some(dropout) => dropout.apply(&probs_bhtt)?,
            None => probs_bhtt,
        };
        let context_bthk = probs_bhtt.matmul(&v_bhtk)?.transpose(1, 2)?.contiguous()?;
        grid.gather(&context_bthk.reshape((grid.b, grid.t, ()))?)
    }
}

/// The attention probabilities `[b, h, t, t]`, rows padded to the longest.
///
/// # Errors
/// When the width of `qkv_n3d` is not 3 * heads * k.
pub fn probabilities(qkv_n3d: &Tensor, spans: &[Span], heads: usize) -> Result<Tensor> {
    Ok(padded(qkv_n3d, spans, heads)?.1)
}

/// Probabilities and values of padded rows.
fn padded(qkv_n3d: &Tensor, spans: &[Span], heads: usize) -> Result<(Grid, Tensor, Tensor)> {
    let grid = Grid::new(spans, qkv_n3d)?;
    let k = qkv_n3d.dim(1)? / 3 / heads;
    let qkv_bt3hk = grid.spread(qkv_n3d)?.reshape((grid.b, grid.t, 3, heads, k))?;
    let part = |i: usize| qkv_bt3hk.narrow(2, i, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
    let (q_bhtk, k_bhtk, v_bhtk) = (part(0)?, part(1)?, part(2)?);
    let scores_bhtt = (q_bhtk.matmul(&k_bhtk.transpose(2, 3)?.contiguous()?)? * (1.0 / (k as f64).sqrt()))?;
    let probs_bhtt = softmax(&scores_bhtt.broadcast_add(&grid.padding_bt.reshape((grid.b, 1, 1, grid.t))?)?)?;
    Ok((grid, probs_bhtt, v_bhtk))
}

/// The operation on f32 slices.
struct Fused {
    how: Attention,
    spans: Vec<Span>,
    d: usize,
}

/// Columns of one head in a slice of rows: row `t` begins at `t * stride + offset`.
#[derive(Clone, Copy)]
struct Columns {
    stride: usize,
    offset: usize,
    k: usize,
}

impl Columns {
    #[inline(always)]
    fn row(self, t: usize) -> std::ops::Range<usize> {
        let start = t * self.stride + self.offset;
        start..start + self.k
    }

    /// These columns of `rows` with rows and columns exchanged: `[k, t]`.
    #[inline(always)]
    fn transposed(self, rows: &[f32], t: usize, out: &mut [f32]) {
        for j in 0..t {
            rows[self.row(j)].iter().enumerate().for_each(|(c, x)| out[c * t + j] = *x);
        }
    }
}

/// `out += factor * x`, number by number.
#[inline(always)]
fn add_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
    out.iter_mut().zip(x).for_each(|(o, x)| *o += factor * x);
}

impl Fused {
    /// The columns of query (0), key (1) or value (2) of a head in `qkv_n3d`.
    fn columns(&self, part: usize, head: usize) -> Columns {
        let k = self.d / self.how.heads;
        Columns { stride: 3 * self.d, offset: part * self.d + head * k, k }
    }

    /// Probabilities `[t, t]` of one head of one row, before dropout. `scratch` holds `[k, t]`.
    #[inline(always)]
    fn probabilities(&self, qkv: &[f32], head: usize, probs: &mut [f32], scratch: &mut [f32]) {
        let (q, key) = (self.columns(0, head), self.columns(1, head));
        let t = qkv.len() / q.stride;
        let scale = 1.0 / (q.k as f32).sqrt();
        key.transposed(qkv, t, scratch);
        for (i, scores) in probs.chunks_exact_mut(t).enumerate() {
            scores.fill(0.0);
            for (q, key_t) in qkv[q.row(i)].iter().zip(scratch.chunks_exact(t)) {
                add_scaled(scores, q * scale, key_t);
            }
            softmax_row(scores);
        }
    }

    /// Dropout factor of one probability; the numbering is that of all spans' `[h, t, t]` squares in a row.
    #[inline(always)]
    fn factor(&self, span: usize, [head, i, j]: [usize; 3]) -> f32 {
        let place = ((span * self.how.heads + head) as u64) << 40 | (i as u64) << 20 | j as u64;
        self.how.dropout.map_or(1.0, |dropout| dropout.factor(place))
    }

    /// Context of one row, all heads.
    #[inline(always)]
    fn forward_row(&self, span: usize, qkv: &[f32], context: &mut [f32]) {
        let t = context.len() / self.d;
        let (mut probs, mut scratch) = (vec![0.0; t * t], vec![0.0; t * self.d / self.how.heads]);
        for head in 0..self.how.heads {
            self.probabilities(qkv, head, &mut probs, &mut scratch);
            let value = self.columns(2, head);
            let out = Columns { stride: self.d, offset: head * value.k, k: value.k };
            for (i, probs) in probs.chunks_exact(t).enumerate() {
                let out = &mut context[out.row(i)];
                for (j, p) in probs.iter().enumerate() {
                    add_scaled(out, p * self.factor(span, [head, i, j]), &qkv[value.row(j)]);
                }
            }
        }
    }

    /// Gradient of one row's queries, keys and values, all heads, given that of its context.
    ///
    /// With probabilities P, their gradient dP = dC V^T and S the scaled scores:
    /// dV = P^T dC, dS = P (dP - sum_j P dP), dQ = dS K / sqrt k, dK = dS^T Q / sqrt k.
    #[inline(always)]
    fn backward_row(&self, span: usize, [qkv, d_context]: [&[f32]; 2], d_qkv: &mut [f32]) {
        let t = d_context.len() / self.d;
        let k = self.d / self.how.heads;
        let scale = 1.0 / (k as f32).sqrt();
        let (mut probs, mut scratch, mut d_probs) = (vec![0.0; t * t], vec![0.0; t * k], vec![0.0; t]);
        for head in 0..self.how.heads {
            self.probabilities(qkv, head, &mut probs, &mut scratch);
            let [q, key, value] = [0, 1, 2].map(|part| self.columns(part, head));
            let out = Columns { stride: self.d, offset: head * k, k };
            value.transposed(qkv, t, &mut scratch);
            for (i, probs) in probs.chunks_exact(t).enumerate() {
                let d_out = &d_context[out.row(i)];
                d_probs.fill(0.0);
                d_out
                    .iter()
                    .zip(scratch.chunks_exact(t))
                    .for_each(|(g, v_t)| add_scaled(&mut d_probs, *g, v_t));
                let mut inner = 0.0;
                for (j, (p, dp)) in probs.iter().zip(&mut d_probs).enumerate() {
                    let factor = self.factor(span, [head, i, j]);
                    add_scaled(&mut d_qkv[value.row(j)], p * factor, d_out);
                    *dp *= factor;
                    inner += p * *dp;
                }
                for (j, (p, dp)) in probs.iter().zip(&d_probs).enumerate() {
                    let d_score = p * (dp - inner) * scale;
                    add_scaled(&mut d_qkv[q.row(i)], d_score, &qkv[key.row(j)]);
                    add_scaled(&mut d_qkv[key.row(j)], d_score, &qkv[q.row(i)]);
                }
            }
        }
    }

    /// The slice of each span of a matrix with `width` columns, for writing.
    fn split<'a>(&self, mut rows: &'a mut [f32], width: usize) -> Vec<&'a mut [f32]> {
        let mut parts = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let (part, rest) = rows.split_at_mut(span.len * width);
            parts.push(part);
            rows = rest;
        }
        parts
    }

    /// Runs `f(span index, tokens of the span, its slice of out)` for all spans in parallel.
    fn each(&self, out: &mut [f32], width: usize, f: impl Fn(usize, Span, &mut [f32]) + Sync) {
        let parts: Vec<_> = self.split(out, width).into_iter().enumerate().collect();
        parts.into_par_iter().for_each(|(i, part)| wide(|| f(i, self.spans[i], part)));
    }
}

impl CustomOp1 for Fused {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (qkv, d) = (read(qkv, layout)?, self.d);
        let mut context = vec![0.0; qkv.len() / 3];
        self.each(&mut context, d, |i, span, out| {
            let rows = 3 * d * span.start..3 * d * (span.start + span.len);
            self.forward_row(i, &qkv[rows], out);
        });
        let shape = Shape::from((context.len() / d, d));
        Ok((CpuStorage::F32(context), shape))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (grad, d) = (grad.contiguous()?, self.d);
        let (qkv, g) = (Host::of(arg)?, Host::of(&grad)?);
        let (qkv, g) = (qkv.get()?, g.get()?);
        let mut d_qkv = vec![0.0; qkv.len()];
        self.each(&mut d_qkv, 3 * d, |i, span, out| {
            let rows = d * span.start..d * (span.start + span.len);
            self.backward_row(i, [&qkv[3 * rows.start..3 * rows.end], &g[rows]], out);
        });
        Ok(Some(Tensor::from_vec(d_qkv, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::chance::Chance;
    use crate::nn::check::{distance, gradients, randn};

    const SPANS: [Span; 3] =
        [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];
    const PLAIN: Attention = Attention { heads: 2, dropout: None };

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| PLAIN.forward(&a[0], &SPANS), &[randn(1, &[10, 18])], (1e-2, 1e-2));
        let how = Attention { dropout: Some(Dropout::new(Chance::new(1), 0.3)), ..PLAIN };
        gradients(|a| how.forward(&a[0], &SPANS), &[randn(2, &[10, 18])], (1e-2, 1e-2));
        let small = randn(3, &[4, 6]).to_dtype(DType::F64).unwrap();
        gradients(|a| PLAIN.forward(&a[0], &SPANS[..2]), &[small], (1e-5, 1e-7));
    }

    #[test]
    fn both_forms_agree_in_values_and_gradients() {
        let run = |dtype| {
            let qkv = Var::from_tensor(&randn(1, &[10, 18]).to_dtype(dtype).unwrap()).unwrap();
            let context = PLAIN.forward(&qkv, &SPANS).unwrap();
            let grads = context.sin().unwrap().sum_all().unwrap().backward().unwrap();
            (context, grads.get(&qkv).unwrap().clone())
        };
        let ((a, ga), (b, gb)) = (run(DType::F32), run(DType::F64));
        assert!(
            distance(&a, &b) < 1e-6 && distance(&ga, &gb) < 1e-5,
            "{} {}",
            distance(&a, &b),
            distance(&ga, &gb)
        );
    }

    #[test]
    fn spans_must_cover_the_tokens() {
        let text = PLAIN.forward(&randn(1, &[9, 18]), &SPANS).unwrap_err().to_string();
        assert!(text.contains("do not cover the 9 tokens"), "{text}");
    }
}
