//! What follows attention in a layer, as one operation: for attentions that are operations of their own. Knows none of them.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use super::super::Layer;
use super::super::gates::LayerGates;
use super::backward::TailPass;
use super::forward::Tail;
use super::{Held, LINEARS};
use crate::encoder::LayerDropout;
use crate::encoder::tokens::Tokens;
use crate::nn::{Host, read};

/// The operation.
struct After {
    held: Held,
    /// What the forward pass leaves for the backward pass, if there can be one.
    saved: Mutex<Option<Arc<Tail>>>,
    tracked: bool,
}

/// The layer's output given the heads' contexts and its input, as [`Layer::composed_after`] gives it.
///
/// # Errors
/// When the shapes do not fit.
pub(in super::super) fn after(
    layer: &Layer,
    [context_nd, x_nd]: [&Tensor; 2],
    tokens: &Tokens,
    (gates, dropout): (Option<&LayerGates>, &LayerDropout),
) -> Result<Tensor> {
    if context_nd.dims() != x_nd.dims() {
        candle_core::bail!("contexts of shape {:?} on rows of shape {:?}", context_nd.dims(), x_nd.dims());
    }
    // What comes before attention has its gradients by its own operations.
    let behind = |which: usize| (which % LINEARS) >= 3 || which >= 2 * LINEARS;
    let all = layer.parameters().into_iter().enumerate();
    let parameters: Vec<Tensor> =
        all.map(|(which, of)| if behind(which) { of.clone() } else { of.detach() }).collect();
    let (held, _, argument_p) = Held::new(layer, (&parameters, &[]), (x_nd, tokens), (gates, dropout))?;
    let tracked = context_nd.track_op() || x_nd.track_op() || argument_p.track_op();
    let op = After { held, saved: Mutex::new(None), tracked };
    context_nd.contiguous()?.apply_op3(&x_nd.contiguous()?, &argument_p, op)
}

impl CustomOp3 for After {
    fn name(&self) -> &'static str {
        "encoder-layer-after-attention"
    }

    fn cpu_fwd(
        &self,
        context: &CpuStorage,
        layout: &Layout,
        x: &CpuStorage,
        layout_of_x: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let numbers = [read(context, layout)?, read(x, layout_of_x)?];
        let (y, tail) = self.held.with_numbers(|of| of.tail(numbers))?;
        if self.tracked {
            *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tail));
        }
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(
        &self,
        context: &Tensor,
        x: &Tensor,
        tickets: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(saved) = self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
            candle_core::bail!("the backward pass of an encoder layer without its forward pass")
        };
        let grad = grad.contiguous()?;
        let (context_host, g_host) = (Host::of(context)?, Host::of(&grad)?);
        let (context_numbers, g) = (context_host.get()?, g_host.get()?);
        let wanted = self.held.wanted();
        let (found, d_context, d_x) = self.held.with_numbers(|numbers| {
            let gates = self.held.slot_of_gates.is_some();
            let pass = TailPass { numbers, tail: &saved, context: context_numbers, wanted: &wanted, gates };
            let found = pass.backward(g);
            let d_context = context.track_op().then(|| pass.of_contexts(found.gated).to_vec());
            ((found.parameters, found.gates), d_context, x.track_op().then(|| found.residual.to_vec()))
        })?;
        self.held.put(found.0, found.1)?;
        let tensor = |numbers: Vec<f32>| Tensor::from_vec(numbers, x.shape(), x.device());
        let tickets = tickets.track_op().then(|| tickets.zeros_like()).transpose()?;
        Ok((d_context.map(tensor).transpose()?, d_x.map(tensor).transpose()?, tickets))
    }
}
