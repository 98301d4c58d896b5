//! One encoder layer as one operation on f32 numbers on the CPU, with a backward written by hand. What it computes is [`Layer::composed`], and the tests hold
//! it to that.
//!
//! Forward and backward each walk over blocks of rows that stay in the cache from one product to the next; only attention, which sees
//! whole rows of the batch, stands between the walks. The walks skip tokens whose outputs
//! nobody reads ([`Asked`]). What needs no gradient (a parameter that is no variable, an input that comes from none)
//! costs none.

mod asked;
mod backward;
mod forward;
mod gating;

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::{Layer, LayerPass};
use crate::attention::{Numeric, OnNumbers, check_spans};
use crate::device::Recompute;
use crate::encoder::Place;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::dropout::Dropout;
use crate::nn::gradients::{Slot, Tickets};
use crate::nn::product::Rounding;
use crate::nn::{Host, read};
use asked::Asked;
use backward::{Pass, TailPass};
use forward::Saved;
use gating::Gating;

/// The layers of a layer in the order in which [`Numbers`] has them: queries, keys, values, attention's output, widening, narrowing.
const LINEARS: usize = 6;
/// After attention and after the feed-forward network.
const NORMS: usize = 2;

/// What the operation holds of its layer.
struct Held {
    parameters: Vec<Tensor>,
    slots: Vec<Option<Slot>>,
    /// The heads' gates, if they have some, and where their gradient goes, if it is wanted.
    gates: Option<Gating>,
    slot_of_gates: Option<Slot>,
    heads: usize,
    /// Tokens whose outputs are asked for.
    asked: Asked,
    /// Dropout of the attention's and the feed-forward network's output.
    dropout: [Option<Dropout>; NORMS],
    epsilon: f32,
    buffers: Buffers,
    rounding: Rounding,
}

/// The operation.
struct Fused {
    held: Held,
    attention: Box<dyn OnNumbers>,
    /// Where the gradients of what attention reads go, as far as they are wanted.
    slots_of_attention: Vec<Option<Slot>>,
    /// What the forward pass leaves for the backward pass, if there can be one. It stays there afterwards: a second backward pass through the same graph
    /// needs it again.
    saved: Mutex<Option<Arc<Saved>>>,
    tracked: bool,
    /// Whether it leaves nothing, and the backward pass computes it anew.
    recompute: Recompute,
}

/// The parameters as numbers.
struct Numbers<'a> {
    /// `[o, i]` each.
    weights: [&'a [f32]; LINEARS],
    biases: [&'a [f32]; LINEARS],
    gains: [&'a [f32]; NORMS],
    shifts: [&'a [f32]; NORMS],
    gates: Option<&'a Gating>,
    asked: &'a Asked,
    dropout: [Option<Dropout>; NORMS],
    epsilon: f32,
    /// Hidden width.
    d: usize,
    /// Width of the feed-forward layer.
    i: usize,
    buffers: &'a Buffers,
    /// Of the factors of products with weights, and of those that give their gradients.
    rounding: Rounding,
}

/// The layer's output, as [`Layer::composed`] gives it with this attention.
///
/// # Errors
/// When the shapes do not fit.
pub(super) fn forward(
    layer: &Layer,
    Numeric { attention, reads }: Numeric,
    x_nd: &Tensor,
    pass: &LayerPass<'_>,
) -> Result<Tensor> {
    check_spans(&pass.tokens.spans, x_nd.dim(0)?)?;
    let (held, slots_of_attention, argument_p) = Held::new(layer, &reads, x_nd, pass)?;
    let tracked = x_nd.track_op() || argument_p.track_op();
    let op = Fused {
        held,
        attention,
        slots_of_attention,
        saved: Mutex::new(None),
        tracked,
        recompute: layer.recompute,
    };
    x_nd.contiguous()?.apply_op2(&argument_p, op)
}

/// Whether the parameters are those of a layer `d` wide.
fn check_shapes(parameters: &[&Tensor], d: usize, heads: usize) -> Result<()> {
    let i = parameters.get(LINEARS - 2).map_or(Ok(0), |widen| widen.dim(0))?;
    let weights = [[d, d], [d, d], [d, d], [d, d], [i, d], [d, i]];
    let fits = weights.iter().zip(parameters).all(|(shape, tensor)| tensor.dims() == shape)
        && [d, d, d, d, i, d, d, d, d, d].iter().zip(&parameters[LINEARS..]).all(|(o, t)| t.dims() == [*o]);
    if fits && d.is_multiple_of(heads) {
        return Ok(());
    }
    let shapes: Vec<_> = parameters.iter().map(|tensor| tensor.dims()).collect();
    candle_core::bail!(
        "a layer of {heads} heads over rows of {d} numbers has parameters of shapes {shapes:?}"
    )
}

impl Held {
    /// What the operation on `layer` holds, where the gradients of what its attention `reads` go, and the argument that stands for all of them.
    fn new(
        layer: &Layer,
        reads: &[Tensor],
        x_nd: &Tensor,
        pass: &LayerPass<'_>,
    ) -> Result<(Self, Vec<Option<Slot>>, Tensor)> {
        let ((n, d), LayerPass { tokens, gates, dropout, read }) = (x_nd.dims2()?, *pass);
        let parameters = layer.parameters();
        check_shapes(&parameters, d, layer.heads)?;
        let gates_rh = gates.map(|gates| &gates.gates_rh);
        let all: Vec<&Tensor> = parameters.iter().copied().chain(reads).chain(gates_rh).collect();
        let Tickets { argument_p, mut slots } = Tickets::new(&all)?;
        let slot_of_gates = slots.drain(parameters.len() + reads.len()..).next().flatten();
        let slots_of_reads = slots.split_off(parameters.len());
        let held = Held {
            parameters: parameters.into_iter().map(Tensor::detach).collect(),
            slots,
            gates: gates.map(|gates| Gating::new(gates, layer.heads, &tokens.spans, n)).transpose()?,
            slot_of_gates,
            heads: layer.heads,
            asked: Asked::new(read, n)?,
            dropout: [dropout.at(Place::AttentionOutput), dropout.at(Place::FeedForward)],
            epsilon: layer.attention_norm.epsilon(),
            buffers: layer.buffers.clone(),
            rounding: layer.rounding,
        };
        Ok((held, slots_of_reads, argument_p))
    }

    /// Which parameters need a gradient.
    fn wanted(&self) -> Vec<bool> {
        self.slots.iter().map(Option::is_some).collect()
    }

    /// Runs `f` on the parameters' numbers.
    fn with_numbers<R>(&self, f: impl FnOnce(&Numbers<'_>) -> R) -> Result<R> {
        let hosts = self.parameters.iter().map(Host::of).collect::<Result<Vec<_>>>()?;
        let numbers = hosts.iter().map(Host::get).collect::<Result<Vec<_>>>()?;
        let (d, i) = (self.parameters[0].dim(0)?, self.parameters[LINEARS - 2].dim(0)?);
        Ok(f(&Numbers {
            weights: std::array::from_fn(|at| numbers[at]),
            biases: std::array::from_fn(|at| numbers[LINEARS + at]),
            gains: std::array::from_fn(|at| numbers[2 * LINEARS + at]),
            shifts: std::array::from_fn(|at| numbers[2 * LINEARS + NORMS + at]),
            gates: self.gates.as_ref(),
            asked: &self.asked,
            dropout: self.dropout,
            epsilon: self.epsilon,
            d,
            i,
            buffers: &self.buffers,
            rounding: self.rounding,
        }))
    }

    /// Leaves gradients where those of the parameters and of the gates are looked for.
    fn put(&self, parameters: Vec<Option<Buffer>>, gates: Option<Vec<f32>>) -> Result<()> {
        for ((slot, gradient), parameter) in self.slots.iter().zip(parameters).zip(&self.parameters) {
            if let (Some(slot), Some(gradient)) = (slot, gradient) {
                slot.put(gradient.into_tensor(parameter.shape())?);
            }
        }
        if let (Some(slot), Some(gradient)) = (&self.slot_of_gates, gates) {
            slot.put(gating::into_tensor(gradient, self.heads)?);
        }
        Ok(())
    }
}

impl Fused {
    /// The output, and what the backward pass needs.
    fn forward(&self, x: &[f32]) -> Result<(Vec<f32>, Saved)> {
        self.held.with_numbers(|numbers| forward::forward(numbers, &*self.attention, x))?
    }
}

impl CustomOp2 for Fused {
    fn name(&self) -> &'static str {
        "encoder-layer"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        if !self.tracked {
            let y = self.held.with_numbers(|numbers| forward::output(numbers, &*self.attention, x))??;
            return Ok((CpuStorage::F32(y), layout.shape().clone()));
        }
        let (y, saved) = self.forward(x)?;
        if self.recompute == Recompute::None {
            *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(saved));
        }
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        tickets: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        let (x_host, g_host) = (Host::of(x)?, Host::of(&grad)?);
        let (x_numbers, g) = (x_host.get()?, g_host.get()?);
        let kept = self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let saved = match kept {
            Some(saved) => saved,
            // Dropout is drawn by place, so it is what it was.
            None if self.recompute == Recompute::Layers => Arc::new(self.forward(x_numbers)?.1),
            None => candle_core::bail!("the backward pass of an encoder layer without its forward pass"),
        };
        let wanted = self.held.wanted();
        let found = self.held.with_numbers(|numbers| {
            let tail = TailPass {
                numbers,
                tail: &saved.tail,
                context: &saved.context,
                wanted: &wanted,
                gates: self.held.slot_of_gates.is_some(),
            };
            let reads = self.slots_of_attention.iter().any(Option::is_some);
            let attention = &*self.attention;
            Pass { attention, reads, saved: &saved, tail, input: x.track_op() }.backward(x_numbers, g)
        })??;
        for (slot, gradient) in self.slots_of_attention.iter().zip(found.reads) {
            if let Some(slot) = slot {
                slot.put(gradient);
            }
        }
        self.held.put(found.parameters, found.gates)?;
        let dx = found.input.map(|dx| Tensor::from_vec(dx.to_vec(), x.shape(), x.device())).transpose()?;
        Ok((dx, tickets.track_op().then(|| tickets.zeros_like()).transpose()?))
    }
}

#[cfg(test)]
mod tests;
