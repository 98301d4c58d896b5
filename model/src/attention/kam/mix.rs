//! Contexts out of ready probabilities, f32 numbers on the CPU. Knows no scores.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::super::plain::Attention;
use super::super::plain::rows::{Head, Rows, Scratch};
use crate::encoder::tokens::Span;
use crate::nn::buffers::Buffers;
use crate::nn::{Host, read};

/// The contexts `[n, d]` of probabilities, `[h, t, t]` of each sample one behind the other, and values, the last third of `qkv_n3d`.
pub(super) fn mix(
    [probs, qkv_n3d]: [&Tensor; 2],
    how: &Attention,
    spans: &[Span],
    buffers: &Buffers,
) -> Result<Tensor> {
    let d = qkv_n3d.dim(1)? / 3;
    let op = Mix { how: how.clone(), spans: spans.to_vec(), d, buffers: buffers.clone() };
    probs.contiguous()?.apply_op2(&qkv_n3d.contiguous()?, op)
}

/// The operation.
struct Mix {
    how: Attention,
    spans: Vec<Span>,
    d: usize,
    buffers: Buffers,
}

/// For each sample, the first of its numbers among squares of `[h, t, t]`.
pub(super) fn squares(spans: &[Span], h: usize) -> Vec<usize> {
    let mut first = 0;
    let mut all = vec![];
    for span in spans {
        all.push(first);
        first += h * span.len * span.len;
    }
    all
}

impl Mix {
    fn rows(&self) -> Rows<'_> {
        Rows { how: &self.how, spans: &self.spans, d: self.d, buffers: &self.buffers }
    }
}

impl CustomOp2 for Mix {
    fn name(&self) -> &'static str {
        "kam-mix"
    }

    fn cpu_fwd(
        &self,
        probs: &CpuStorage,
        layout: &Layout,
        qkv: &CpuStorage,
        layout_of_qkv: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (probs, qkv, d) = (read(probs, layout)?, read(qkv, layout_of_qkv)?, self.d);
        let (rows, firsts) = (self.rows(), squares(&self.spans, self.how.heads));
        let mut context = vec![0.0; qkv.len() / 3];
        rows.each(&mut context, d, |row, span, out| {
            let qkv = &qkv[3 * d * span.start..3 * d * (span.start + span.len)];
            let mut scratch = Scratch::new(&self.buffers, span.len);
            let of_heads = probs[firsts[row]..].chunks_exact(span.len * span.len);
            for (head, probs) in of_heads.take(self.how.heads).enumerate() {
                scratch.probs.copy_from_slice(probs);
                rows.mix(Head { row, head, t: span.len }, qkv, &mut scratch, out);
            }
        });
        let shape = Shape::from((context.len() / d, d));
        Ok((CpuStorage::F32(context), shape))
    }

    fn bwd(
        &self,
        probs: &Tensor,
        qkv_n3d: &Tensor,
        _: &Tensor,
        grad_nd: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad_nd = grad_nd.contiguous()?;
        let hosts = [Host::of(probs)?, Host::of(qkv_n3d)?, Host::of(&grad_nd)?];
        let (p, qkv, g, d) = (hosts[0].get()?, hosts[1].get()?, hosts[2].get()?, self.d);
        let (rows, firsts) = (self.rows(), squares(&self.spans, self.how.heads));
        let mut d_qkv = vec![0.0; qkv.len()];
        let d_probs: Vec<Vec<f32>> = rows.each(&mut d_qkv, 3 * d, |row, span, out| {
            let here = d * span.start..d * (span.start + span.len);
            let (qkv, g) = (&qkv[3 * here.start..3 * here.end], &g[here]);
            let mut scratch = Scratch::new(&self.buffers, span.len);
            let cells = span.len * span.len;
            let mut d_probs = Vec::with_capacity(self.how.heads * cells);
            for (head, probs) in p[firsts[row]..].chunks_exact(cells).take(self.how.heads).enumerate() {
                scratch.probs.copy_from_slice(probs);
                rows.gradient_of_mix(Head { row, head, t: span.len }, [qkv, g], &mut scratch, out);
                d_probs.extend_from_slice(&scratch.d_probs);
            }
            d_probs
        });
        let d_probs = Tensor::from_vec(d_probs.concat(), probs.shape(), probs.device())?;
        Ok((Some(d_probs), Some(Tensor::from_vec(d_qkv, qkv_n3d.shape(), qkv_n3d.device())?)))
    }
}
