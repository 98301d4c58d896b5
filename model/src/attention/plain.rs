//! Scaled dot-product attention of several heads (Vaswani et al. 2017) over rows, in which padding may stand that is seen by none.
//!
//! Queries, keys and values come side by side in `qkv_n3d`. In f32 on the CPU each (row, head) is computed at once and
//! its probabilities are made again for the gradient instead of being kept; elsewhere rows are padded to a rectangle.

pub(crate) mod rows;

use std::sync::Arc;

use candle_core::{Result, Tensor};
use serde_json::Value;

use super::{Attention, AttentionPass, Composed, Heads, Numeric, OnCuda, OnNumbers, Sibling, Site};
use crate::encoder::config::Config;
use crate::encoder::tokens::{Grid, Span, Tokens};
use crate::nn::at_least_single;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::softmax::softmax;
use crate::params::Params;
use rows::Rows;

/// Tokens attend to each other by `softmax(Q K^T / sqrt k) V` and nothing else: there is nothing to set, nothing to learn and nothing to carry.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Sibling for Plain {
    fn to_json(&self) -> serde_json::Result<Value> {
        Ok(Value::Null)
    }

    fn build(&self, _: &Config, _: &Params) -> Result<Arc<dyn Attention>> {
        Ok(Arc::new(Plain))
    }

    fn on_cuda(&self) -> Option<OnCuda> {
        Some(OnCuda::Plain)
    }
}

impl Attention for Plain {
    fn begin<'a>(&'a self, _: &Tensor, tokens: &'a Tokens) -> Result<Box<dyn AttentionPass + 'a>> {
        tokens.check_unknown()?;
        Ok(Box::new(Plain))
    }
}

impl AttentionPass for Plain {
    fn composed(&mut self, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed> {
        at.check(qkv_n3d)?;
        let parts = Padded::new(qkv_n3d, at.spans, at.heads)?;
        parts.attend(&parts.scores()?, at.heads)
    }

    fn on_numbers(&mut self, at: &Site<'_>) -> Result<Numeric> {
        Ok(Numeric { attention: Box::new(Fused::new(at)), reads: vec![] })
    }
}

/// Queries, keys and values of rows that are padded to the longest, `[b, h, t, k]` each.
pub(super) struct Padded {
    pub(super) grid: Grid,
    pub(super) q_bhtk: Tensor,
    pub(super) k_bhtk: Tensor,
    pub(super) v_bhtk: Tensor,
}

impl Padded {
    pub(super) fn new(qkv_n3d: &Tensor, spans: &[Span], heads: &Heads) -> Result<Self> {
        let (grid, h) = (Grid::seeing(spans, heads.seen.as_deref(), qkv_n3d)?, heads.count);
        let k = qkv_n3d.dim(1)? / 3 / h;
        let qkv_bt3hk = grid.spread(qkv_n3d)?.reshape((grid.b, grid.t, 3, h, k))?;
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

    /// What follows from scores.
    pub(super) fn attend(&self, scores_bhtt: &Tensor, heads: &Heads) -> Result<Composed> {
        let probs_bhtt = self.probabilities(scores_bhtt)?;
        Ok(Composed { context_nd: self.mix(&probs_bhtt, heads)?, probs_bhtt, merged_bhtt: None })
    }

    /// The contexts `[n, d]` of probabilities.
    pub(super) fn mix(&self, probs_bhtt: &Tensor, heads: &Heads) -> Result<Tensor> {
        let Grid { b, t, .. } = self.grid;
        let probs_bhtt = match heads.dropout {
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

/// The attention on f32 slices.
struct Fused {
    heads: Heads,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

impl Fused {
    fn new(at: &Site<'_>) -> Self {
        let (heads, spans, buffers) = (at.heads.clone(), at.spans.to_vec(), at.buffers.clone());
        Fused { heads, spans, d: at.d, buffers }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { heads: &self.heads, spans: &self.spans, d: self.d, buffers: &self.buffers }
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

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::super::check::{Alone, attend};
    use super::*;
    use crate::nn::check::{distance, gradients, randn};
    use crate::nn::dropout::Dropout;
    use base::rng::CounterRng;

    const SPANS: [Span; 3] =
        [Span { start: 0, len: 3 }, Span { start: 3, len: 1 }, Span { start: 4, len: 6 }];
    const HEADS: Heads = Heads { count: 2, dropout: None, seen: None };

    fn seen() -> Option<Arc<[usize]>> {
        Some([3, 1, 4].into())
    }

    fn forward(heads: &Heads, qkv: &Tensor, spans: &[Span]) -> Result<Tensor> {
        attend(&mut Plain, &Alone::new(heads, spans), qkv)
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| forward(&HEADS, &a[0], &SPANS), &[randn(1, &[10, 18])], 1e-2, 1e-2);
        let heads = Heads { dropout: Some(Dropout::new(CounterRng::new(1), 0.3)), ..HEADS };
        gradients(|a| forward(&heads, &a[0], &SPANS), &[randn(2, &[10, 18])], 1e-2, 1e-2);
        let small = randn(3, &[4, 6]).to_dtype(DType::F64).unwrap();
        gradients(|a| forward(&HEADS, &a[0], &SPANS[..2]), &[small], 1e-5, 1e-7);
    }

    #[test]
    fn both_forms_agree_in_values_gradients_and_dropout() {
        for (dropout, seen) in
            [(None, None), (Some(Dropout::new(CounterRng::new(1), 0.3)), None), (None, seen())]
        {
            let heads = Heads { dropout, seen, ..HEADS };
            let run = |dtype| {
                let qkv = Var::from_tensor(&randn(1, &[10, 18]).to_dtype(dtype).unwrap()).unwrap();
                let context = forward(&heads, &qkv, &SPANS).unwrap();
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
        let heads = Heads { seen: seen(), ..HEADS };
        gradients(|a| forward(&heads, &a[0], &SPANS), &[randn(1, &[10, 18])], 1e-2, 1e-2);
        let qkv = randn(4, &[10, 18]);
        let with = forward(&heads, &qkv, &SPANS).unwrap();
        // What is seen of the last row comes to the same as by itself.
        let one = [Span { start: 0, len: 4 }];
        let alone = forward(&HEADS, &qkv.narrow(0, 4, 4).unwrap(), &one).unwrap();
        assert!(distance(&with.narrow(0, 4, 4).unwrap(), &alone) < 1e-6);
        let probs = Alone::new(&heads, &SPANS).composed(&mut Plain, &qkv).unwrap().probs_bhtt;
        let unseen = probs.narrow(0, 2, 1).unwrap().narrow(3, 4, 2).unwrap().abs().unwrap();
        assert!(unseen.max_all().unwrap().to_scalar::<f32>().unwrap() == 0.0);
        let padding = probs.narrow(0, 2, 1).unwrap().narrow(2, 4, 2).unwrap().sum_all().unwrap();
        let padding = padding.to_scalar::<f32>().unwrap();
        assert!((padding - 4.0).abs() < 1e-5, "two rows of two heads look at the row: {padding}");
    }

    #[test]
    fn spans_must_cover_the_tokens() {
        let qkv = randn(1, &[9, 18]).to_dtype(DType::F64).unwrap();
        let text = forward(&HEADS, &qkv, &SPANS).unwrap_err().to_string();
        assert!(text.contains("do not cover the 9 tokens"), "{text}");
    }
}
