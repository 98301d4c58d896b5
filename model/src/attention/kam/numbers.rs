//! KAM-BERT's attention within a layer that is one operation, f32 numbers on the CPU.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::super::plain::rows::Rows;
use super::super::{Heads, Numeric, OnNumbers, Site};
use super::link::Link;
use super::rows::KamRows;
use super::semantic::{Learned, Semantic};
use super::{Before, OfLayer, Settings, Skip};
use crate::encoder::tokens::Span;
use crate::nn::Host;
use crate::nn::buffers::{Buffer, Buffers};

/// The attention of a layer; its map is carried on.
pub(super) fn numeric(of: &mut OfLayer<'_>, at: &Site<'_>) -> Result<Numeric> {
    let before = match &*of.carried {
        Some(before) => Some(before.linked()?),
        None => None,
    };
    let (own, skip) = (Arc::new(Link::default()), of.settings.skip);
    let convolution: Vec<&Tensor> = of.convolution.into_iter().flatten().collect();
    let attention = Fused {
        heads: at.heads.clone(),
        settings: of.settings.clone(),
        spans: at.spans.to_vec(),
        real: of.knowledge.real.clone(),
        maps: of.knowledge.maps.clone(),
        convolution: convolution.iter().map(|tensor| tensor.detach().contiguous()).collect::<Result<_>>()?,
        wanted: convolution.iter().map(|tensor| tensor.track_op()).collect(),
        before,
        own: Arc::clone(&own),
        d: at.d,
        buffers: at.buffers.clone(),
    };
    *of.carried = (skip != Skip::None).then_some(Before::Linked(own));
    let reads = convolution.into_iter().filter(|tensor| tensor.track_op()).cloned().collect();
    Ok(Numeric { attention: Box::new(attention), reads })
}

/// The attention on f32 slices.
struct Fused {
    heads: Heads,
    settings: Settings,
    spans: Vec<Span>,
    /// Tokens of each sample that are real.
    real: Vec<usize>,
    /// Of each sample `[m, t, t]`, one behind the other.
    maps: Tensor,
    /// Weights and biases, or nothing.
    convolution: Vec<Tensor>,
    /// Which of them need a gradient.
    wanted: Vec<bool>,
    /// The map of the layer before, if it is carried on, and that of this layer.
    before: Option<Arc<Link>>,
    own: Arc<Link>,
    d: usize,
    buffers: Buffers,
}

impl Fused {
    /// Runs `f` on the attention's numbers.
    fn with<R>(&self, f: impl FnOnce(&KamRows<'_>) -> R) -> Result<R> {
        let maps = Host::of(&self.maps)?;
        let hosts = self.convolution.iter().map(Host::of).collect::<Result<Vec<_>>>()?;
        let numbers = hosts.iter().map(Host::get).collect::<Result<Vec<_>>>()?;
        let convolution = match numbers.as_slice() {
            [weight, bias] => Some([*weight, *bias]),
            _ => None,
        };
        let learns = self.wanted.first().is_some_and(|weight| *weight);
        let before = self.before.as_ref().map(|before| before.read()).transpose()?;
        let rows = Rows { heads: &self.heads, spans: &self.spans, d: self.d, buffers: &self.buffers };
        let semantic = Semantic { rows, settings: &self.settings, convolution, learns };
        let (maps, before) = (maps.get()?, before.as_deref());
        Ok(f(&KamRows { semantic, real: &self.real, maps, before }))
    }

    /// What the convolution learns of all samples, added in their order: the gradients that are wanted.
    fn learned(&self, of_samples: &[Learned]) -> Result<Vec<Tensor>> {
        let parts = self.convolution.iter().zip(&self.wanted).enumerate();
        let sum = |(which, (tensor, _)): (usize, (&Tensor, &bool))| {
            let mut sum = vec![0.0_f32; tensor.elem_count()];
            for of in of_samples {
                sum.iter_mut().zip(&of[which]).for_each(|(sum, x)| *sum += x);
            }
            Tensor::from_vec(sum, tensor.shape(), tensor.device())
        };
        parts.filter(|(_, (_, wanted))| **wanted).map(sum).collect()
    }
}

impl OnNumbers for Fused {
    fn context(&self, qkv: &[f32]) -> Result<Buffer> {
        let (context, maps) = self.with(|rows| rows.context(qkv))?;
        self.own.leave(maps);
        Ok(context)
    }

    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)> {
        let (maps, next) = (self.own.read()?, self.own.take());
        let (d_qkv, found) = self.with(|rows| rows.gradient([qkv, d_context], &maps, next.as_deref()))?;
        let (d_before, learned): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        if let Some(before) = &self.before {
            before.put(d_before.into_iter().flatten().collect());
        }
        Ok((d_qkv, self.learned(&learned)?))
    }
}
