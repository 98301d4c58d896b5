//! Scaled dot-product attention of several heads (Vaswani et al. 2017) over rows, in which padding may stand that is seen by none.
//!
//! Queries, keys and values come side by side in `qkv_n3d`. In f32 on the CPU each (row, head) is computed at once and
//! its probabilities are made again for the gradient instead of being kept; elsewhere rows are padded to a rectangle.

pub(crate) mod rows;

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::{Numeric, OnNumbers};
use crate::encoder::tokens::{Grid, Span};
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::dropout::Dropout;
use crate::nn::softmax::softmax;
use crate::nn::{Host, at_least_single, fused, read};
use rows::Rows;

/// What attention needs to know besides its input.
#[derive(Debug, Clone)]
pub struct Attention {
    /// Number of heads (h).
    pub heads: usize,
    /// Dropout of the probabilities, `None` outside training.
    pub dropout: Option<Dropout>,
    /// Tokens of each row that are looked at, if some are not ([`Tokens::seen`](crate::encoder::tokens::Tokens::seen)).
    pub seen: Option<Arc<[usize]>>,
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
        check_spans(spans, n)?;
        if fused(qkv_n3d) {
            let (how, spans) = (self.clone(), spans.to_vec());
            let op = Fused { how, spans, d: width / 3, buffers: Buffers::new() };
            return qkv_n3d.contiguous()?.apply_op1(op);
        }
        let parts = Padded::new(qkv_n3d, spans, self)?;
        parts.context(&parts.scores()?, self)
    }
}

/// Whether spans cover `n` tokens one after the other, which the operation on slices relies on.
pub(crate) fn check_spans(spans: &[Span], n: usize) -> Result<()> {
    let end =
        spans.iter().try_fold(0, |end, span| (span.start == end && span.len > 0).then_some(end + span.len));
    if end == Some(n) {
        Ok(())
    } else {
        candle_core::bail!("spans do not cover the {n} tokens one after the other")
    }
}

/// This attention within a layer that is one operation, whose rows are `d` numbers wide and lie as the spans say.
pub(crate) fn on_numbers(how: Attention, (d, spans): (usize, &[Span]), buffers: &Buffers) -> Numeric {
    let attention = Fused { how, spans: spans.to_vec(), d, buffers: buffers.clone() };
    Numeric { attention: Box::new(attention), reads: vec![] }
}

/// The attention probabilities `[b, h, t, t]`, rows padded to the longest.
///
/// # Errors
/// When the width of `qkv_n3d` is not 3 * heads * k.
pub fn probabilities(qkv_n3d: &Tensor, spans: &[Span], how: &Attention) -> Result<Tensor> {
    let parts = Padded::new(qkv_n3d, spans, how)?;
    parts.probabilities(&parts.scores()?)
}

/// Queries, keys and values of rows that are padded to the longest, `[b, h, t, k]` each.
pub(super) struct Padded {
    pub(super) grid: Grid,
    pub(super) q_bhtk: Tensor,
    pub(super) k_bhtk: Tensor,
    pub(super) v_bhtk: Tensor,
}

impl Padded {
    pub(super) fn new(qkv_n3d: &Tensor, spans: &[Span], how: &Attention) -> Result<Self> {
        let (grid, heads) = (Grid::seeing(spans, how.seen.as_deref(), qkv_n3d)?, how.heads);
        let k = qkv_n3d.dim(1)? / 3 / heads;
        let qkv_bt3hk = grid.spread(qkv_n3d)?.reshape((grid.b, grid.t, 3, heads, k))?;
        let part = |i: usize| qkv_bt3hk.narrow(2, i, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
        Ok(Padded { q_bhtk: part(0)?, k_bhtk: part(1)?, v_bhtk: part(2)?, grid })
    }

    /// `Q K^T / sqrt k`, `[b, h, t, t]`, in f32 at least.
    pub(super) fn scores(&self) -> Result<Tensor> {
        let k = self.k_bhtk.dim(3)?;
        let scores_bhtt = self.q_bhtk.matmul(&self.k_bhtk.transpose(2, 3)?.contiguous()?)?;
        at_least_single(&scores_bhtt)? * (1.0 / (k as f64).sqrt())
    }

    /// Probabilities of scores; padding has none.
    pub(super) fn probabilities(&self, scores_bhtt: &Tensor) -> Result<Tensor> {
        let Grid { b, t, .. } = self.grid;
        let padding_b11t = at_least_single(&self.grid.padding_bt)?.reshape((b, 1, 1, t))?;
        softmax(&scores_bhtt.broadcast_add(&padding_b11t)?)
    }

    /// The contexts `[n, d]` of scores.
    pub(super) fn context(&self, scores_bhtt: &Tensor, how: &Attention) -> Result<Tensor> {
        self.mix(&self.probabilities(scores_bhtt)?, how)
    }

    /// The contexts `[n, d]` of probabilities.
    pub(super) fn mix(&self, probs_bhtt: &Tensor, how: &Attention) -> Result<Tensor> {
        let Grid { b, t, .. } = self.grid;
        let probs_bhtt = match how.dropout {
            Some(dropout) => dropout.apply_at(probs_bhtt, |place| {
                let (head, place) = (place / (t * t), place % (t * t));
                rows::index_of_dropout(head) | ((place / t) as u64) << 20 | (place % t) as u64
            })?,
            None => probs_bhtt.clone(),
        };
        let probs_bhtt = probs_bhtt.to_dtype(self.v_bhtk.dtype())?;
        let context_bthk = probs_bhtt.matmul(&self.v_bhtk)?.transpose(1, 2)?.contiguous()?;
        self.grid.gather(&context_bthk.reshape((b, t, ()))?)
    }
}

/// The operation on f32 slices.
struct Fused {
    how: Attention,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

impl Fused {
    fn rows(&self) -> Rows<'_> {
        Rows { how: &self.how, spans: &self.spans, d: self.d, buffers: &self.buffers }
    }
}

impl OnNumbers for Fused {
    fn context(&self, qkv: &[f32]) -> Result<Buffer> {
        Ok(self.rows().context(qkv))
    }

    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)> {
        Ok((self.rows().gradient(qkv, d_context), vec![]))
    }
}

impl CustomOp1 for Fused {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let context = self.rows().context(read(qkv, layout)?);
        let shape = Shape::from((context.len() / self.d, self.d));
        Ok((CpuStorage::F32(context.to_vec()), shape))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        let (qkv, g) = (Host::of(arg)?, Host::of(&grad)?);
        let d_qkv = self.rows().gradient(qkv.get()?, g.get()?);
        Ok(Some(d_qkv.into_tensor(arg.shape())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::nn::check::{distance, gradients, randn};
    use base::rng::CounterRng;

    const SPANS: [Span; 3] =
        [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];
    const PLAIN: Attention = Attention { heads: 2, dropout: None, seen: None };

    fn seen() -> Option<Arc<[usize]>> {
        Some([3, 1, 4].into())
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| PLAIN.forward(&a[0], &SPANS), &[randn(1, &[10, 18])], (1e-2, 1e-2));
        let how = Attention { dropout: Some(Dropout::new(CounterRng::new(1), 0.3)), ..PLAIN };
        gradients(|a| how.forward(&a[0], &SPANS), &[randn(2, &[10, 18])], (1e-2, 1e-2));
        let small = randn(3, &[4, 6]).to_dtype(DType::F64).unwrap();
        gradients(|a| PLAIN.forward(&a[0], &SPANS[..2]), &[small], (1e-5, 1e-7));
    }

    #[test]
    fn both_forms_agree_in_values_gradients_and_dropout() {
        for (dropout, seen) in
            [(None, None), (Some(Dropout::new(CounterRng::new(1), 0.3)), None), (None, seen())]
        {
            let how = Attention { dropout, seen, ..PLAIN };
            let run = |dtype| {
                let qkv = Var::from_tensor(&randn(1, &[10, 18]).to_dtype(dtype).unwrap()).unwrap();
                let context = how.forward(&qkv, &SPANS).unwrap();
                assert_eq!(context.dtype(), dtype);
                let grads = context.sin().unwrap().sum_all().unwrap().backward().unwrap();
                (context, grads.get(&qkv).unwrap().clone())
            };
            let (a, ga) = run(DType::F32);
            for (dtype, slack) in [(DType::F64, 1e-5), (DType::BF16, 6e-2)] {
                let (b, gb) = run(dtype);
                let far = [distance(&a, &b), distance(&ga, &gb)];
                assert!(far.iter().all(|far| *far < slack), "{dtype:?} {dropout:?}: {far:?}");
            }
        }
    }

    #[test]
    fn padding_looks_at_a_row_and_is_looked_at_by_none() {
        let how = Attention { seen: seen(), ..PLAIN };
        gradients(|a| how.forward(&a[0], &SPANS), &[randn(1, &[10, 18])], (1e-2, 1e-2));
        let qkv = randn(4, &[10, 18]);
        let with = how.forward(&qkv, &SPANS).unwrap();
        // What is seen of the last row comes to the same as by itself.
        let alone = PLAIN.forward(&qkv.narrow(0, 4, 4).unwrap(), &[Span { start: 0, len: 4 }]).unwrap();
        assert!(distance(&with.narrow(0, 4, 4).unwrap(), &alone) < 1e-6);
        let probs = probabilities(&qkv, &SPANS, &how).unwrap();
        let unseen = probs.narrow(0, 2, 1).unwrap().narrow(3, 4, 2).unwrap().abs().unwrap();
        assert!(unseen.max_all().unwrap().to_scalar::<f32>().unwrap() == 0.0);
        let padding = probs.narrow(0, 2, 1).unwrap().narrow(2, 4, 2).unwrap().sum_all().unwrap();
        let padding = padding.to_scalar::<f32>().unwrap();
        assert!((padding - 4.0).abs() < 1e-5, "two rows of two heads look at the row: {padding}");
    }

    #[test]
    fn spans_must_cover_the_tokens() {
        let text = PLAIN.forward(&randn(1, &[9, 18]), &SPANS).unwrap_err().to_string();
        assert!(text.contains("do not cover the 9 tokens"), "{text}");
    }
}
