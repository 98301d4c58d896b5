//! What siblings are tested by: the attention of a layer in either of its forms, without the rest of the layer.

use candle_core::{CpuStorage, CustomOp2, DType, Device, Layout, Result, Shape, Tensor};

use super::{AttentionPass, Composed, Heads, Numeric, OnNumbers, Site};
use crate::encoder::tokens::Span;
use crate::nn::buffers::Buffers;
use crate::nn::gradients::{Slot, Tickets};
use crate::nn::linear::Linear;
use crate::nn::{Host, fused, read};
use crate::params::Params;

/// Where a layer's attention stands that has no layer around it.
pub(crate) struct Alone<'a> {
    pub(crate) layer: usize,
    pub(crate) heads: &'a Heads,
    pub(crate) spans: &'a [Span],
}

impl<'a> Alone<'a> {
    pub(crate) fn new(heads: &'a Heads, spans: &'a [Span]) -> Self {
        Alone { layer: 0, heads, spans }
    }

    /// Runs `f` at this place in a layer of a third of `qkv`'s width, whose projection of queries changes nothing.
    pub(crate) fn at<R>(&self, qkv: &Tensor, f: impl FnOnce(&Site<'_>) -> Result<R>) -> Result<R> {
        let (d, dtype) = (qkv.dim(1)? / 3, qkv.dtype());
        let same = Tensor::eye(d, DType::F32, &Device::Cpu)?;
        let none = Tensor::zeros(d, DType::F32, &Device::Cpu)?;
        // Parameters stay f32 where activations are bf16.
        let of = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let var = |t: &Tensor| candle_core::Var::from_tensor(&t.to_dtype(of)?);
        let vars = [("q.weight".to_owned(), var(&same)?), ("q.bias".to_owned(), var(&none)?)];
        let query = Linear::new(&Params::from_vars(vars.into()), "q")?;
        let (layer, heads, spans, buffers) = (self.layer, self.heads, self.spans, &Buffers::new());
        f(&Site { layer, heads, spans, query: &query, dtype, d, buffers })
    }

    /// What differentiable operations come to, whatever the numbers are.
    pub(crate) fn composed(&self, pass: &mut dyn AttentionPass, qkv: &Tensor) -> Result<Composed> {
        self.at(qkv, |at| pass.composed(at, qkv))
    }
}

/// The contexts of a layer in the form that its input asks for.
pub(crate) fn attend(pass: &mut dyn AttentionPass, alone: &Alone<'_>, qkv: &Tensor) -> Result<Tensor> {
    if !fused(qkv) {
        return Ok(alone.composed(pass, qkv)?.context_nd);
    }
    let Numeric { attention, reads } = alone.at(qkv, |at| pass.on_numbers(at))?;
    let Tickets { argument_p, slots } = Tickets::new(&reads.iter().collect::<Vec<_>>())?;
    qkv.contiguous()?.apply_op2(&argument_p, Operation { attention, slots })
}

/// The attention of a layer that is one operation, by itself.
struct Operation {
    attention: Box<dyn OnNumbers>,
    slots: Vec<Option<Slot>>,
}

impl CustomOp2 for Operation {
    fn name(&self) -> &'static str {
        "attention-alone"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (context, (n, width)) = (self.attention.context(read(qkv, layout)?)?, layout.shape().dims2()?);
        Ok((CpuStorage::F32(context.to_vec()), Shape::from((n, width / 3))))
    }

    fn bwd(
        &self,
        qkv: &Tensor,
        tickets: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        let hosts = [Host::of(qkv)?, Host::of(&grad)?];
        let (d_qkv, others) = self.attention.gradient(hosts[0].get()?, hosts[1].get()?)?;
        assert_eq!(others.len(), self.slots.len());
        for (slot, gradient) in self.slots.iter().zip(others) {
            if let Some(slot) = slot {
                slot.put(gradient);
            }
        }
        let d_qkv = Tensor::from_vec(d_qkv.to_vec(), qkv.shape(), qkv.device())?;
        Ok((Some(d_qkv), tickets.track_op().then(|| tickets.zeros_like()).transpose()?))
    }
}
