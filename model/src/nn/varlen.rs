//! Plain attention over rows of different lengths without padding, as one operation: on the CPU in f32, on CUDA in f32 and bf16.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::buffers::Buffers;
use super::host::{Host, read};
use crate::attention::Heads;
use crate::attention::plain::rows::Rows;
use crate::encoder::tokens::Span;

/// `softmax(Q K^T / sqrt k) V` within rows of these lengths, which lie one behind the other: contexts `[n, d]` of queries, keys and values side by side, `[n, 3 d]`,
/// the heads of each side by side. Differentiable.
///
/// # Errors
/// When lengths and heads do not go with the shape, a row has no token, or there is no such operation on the tensor's device or of its numbers.
pub fn attention(qkv_n3d: &Tensor, lengths: &[usize], heads: usize) -> Result<Tensor> {
    let (n, width) = qkv_n3d.dims2()?;
    if heads == 0 || !width.is_multiple_of(3 * heads) {
        candle_core::bail!("{width} columns do not hold queries, keys and values of {heads} heads");
    }
    if lengths.contains(&0) || lengths.iter().sum::<usize>() != n {
        candle_core::bail!(
            "rows of {lengths:?} tokens are not the {n} tokens that there are, or one has none"
        );
    }
    let mut spans = vec![];
    let mut start = 0;
    for &len in lengths {
        spans.push(Span { start, len });
        start += len;
    }
    let heads = Heads { count: heads, dropout: None, seen: None };
    qkv_n3d.contiguous()?.apply_op1(Attention { spans, heads, d: width / 3, buffers: Buffers::new() })
}

struct Attention {
    spans: Vec<Span>,
    heads: Heads,
    d: usize,
    buffers: Buffers,
}

impl Attention {
    fn rows(&self) -> Rows<'_> {
        Rows { heads: &self.heads, spans: &self.spans, d: self.d, buffers: &self.buffers }
    }

    #[cfg(feature = "cuda")]
    fn of(&self) -> Result<crate::cuda::ops::AttentionOf> {
        Ok(crate::cuda::ops::AttentionOf {
            starts: crate::cuda::feed::starts(&self.spans).map_err(candle_core::Error::wrap)?,
            longest: self.spans.iter().map(|span| span.len).max().unwrap_or(0),
            heads: self.heads.count,
            d: self.d,
        })
    }
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "varlen-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let context = self.rows().context(read(qkv, layout)?);
        Ok((CpuStorage::F32(context.to_vec()), Shape::from((context.len() / self.d, self.d))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        qkv: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::ops::attention(&self.of()?, qkv, layout)
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        #[cfg(feature = "cuda")]
        if qkv.device().is_cuda() {
            return crate::cuda::ops::attention_gradient(&self.of()?, qkv, &grad).map(Some);
        }
        let (qkv_host, g_host) = (Host::of(qkv)?, Host::of(&grad)?);
        let d_qkv = self.rows().gradient(qkv_host.get()?, g_host.get()?);
        Tensor::from_vec(d_qkv.to_vec(), qkv.shape(), qkv.device()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{gradients, randn};

    #[test]
    fn gradients_are_the_numerical_ones_and_shapes_that_do_not_fit_are_errors() {
        gradients(|a| attention(&a[0], &[3, 1, 6], 2), &[randn(1, &[10, 18])], 1e-2, 1e-2);
        for (lengths, heads) in [(&[3, 1][..], 2), (&[10], 4), (&[10, 0], 2), (&[10], 0)] {
            assert!(attention(&randn(1, &[10, 18]), lengths, heads).is_err(), "{lengths:?} {heads}");
        }
    }
}
