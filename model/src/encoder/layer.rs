//! One encoder layer: attention, then feed-forward, each added to its input and normalised.

mod fused;
pub(crate) mod gates;

use candle_core::{Result, Tensor};

use super::config::Config;
use super::feed_forward::FeedForward;
use super::tokens::Tokens;
use super::{LayerDropout, Place, Read};
use crate::attention::gate::gate;
use crate::attention::{AttentionPass, Composed, Heads, Site};
use crate::device::Recompute;
use crate::nn;
use crate::nn::buffers::Buffers;
use crate::nn::dropout::Dropout;
use crate::nn::layer_norm::LayerNorm;
use crate::nn::linear::Linear;
use crate::nn::product::Rounding;
use crate::params::{Params, Spec};
use gates::LayerGates;

/// The parameters of one layer.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Its number, from 0.
    number: usize,
    heads: usize,
    query_key_value: [Linear; 3],
    attention_output: Linear,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
    /// Memory that passes through this and other layers hand on.
    buffers: Buffers,
    /// Whether the backward pass computes the forward pass anew.
    recompute: Recompute,
    /// Of the factors of products, where the layer is one operation.
    rounding: Rounding,
}

/// What a layer needs of a pass besides its input and its attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerPass<'a> {
    pub(crate) tokens: &'a Tokens,
    pub(crate) gates: Option<&'a LayerGates>,
    pub(crate) dropout: LayerDropout,
    /// Of which tokens the output is read.
    pub(crate) read: Read<'a>,
}

const QUERY_KEY_VALUE: [&str; 3] = ["query", "key", "value"];

fn prefix(l: usize) -> String {
    format!("encoder.layer.{l}")
}

impl Layer {
    pub(crate) fn specs(config: &Config, l: usize) -> Vec<Spec> {
        let (layer, d, std) = (prefix(l), config.hidden_size, config.initializer_range);
        let mut specs: Vec<Spec> = QUERY_KEY_VALUE
            .iter()
            .flat_map(|part| Spec::linear(&format!("{layer}.attention.self.{part}"), [d, d], std))
            .collect();
        specs.extend(Spec::linear(&format!("{layer}.attention.output.dense"), [d, d], std));
        specs.extend(Spec::layer_norm(&format!("{layer}.attention.output.LayerNorm"), d));
        specs.extend(FeedForward::specs(config, &layer));
        specs.extend(Spec::layer_norm(&format!("{layer}.output.LayerNorm"), d));
        specs
    }

    pub(crate) fn new(config: &Config, params: &Params, l: usize) -> Result<Self> {
        let layer = prefix(l);
        let project = |part: &str| Linear::new(params, &format!("{layer}.attention.self.{part}"));
        let norm = |name: &str| LayerNorm::new(params, &format!("{layer}.{name}"), config.layer_norm_eps);
        let [query, key, value] = QUERY_KEY_VALUE.map(project);
        Ok(Layer {
            number: l,
            heads: config.num_attention_heads,
            query_key_value: [query?, key?, value?],
            attention_output: Linear::new(params, &format!("{layer}.attention.output.dense"))?,
            attention_norm: norm("attention.output.LayerNorm")?,
            feed_forward: FeedForward::new(params, &layer)?,
            output_norm: norm("output.LayerNorm")?,
            buffers: params.buffers().clone(),
            recompute: Recompute::None,
            rounding: Rounding::None,
        })
    }

    pub(super) fn rounded(self, rounding: Rounding) -> Self {
        Layer { rounding, ..self }
    }

    pub(super) fn recomputed(self, recompute: Recompute) -> Self {
        Layer { recompute, ..self }
    }

    /// The layer's output; as one operation where there is one.
    pub(crate) fn forward(
        &self,
        x_nd: &Tensor,
        attention: &mut dyn AttentionPass,
        pass: &LayerPass<'_>,
    ) -> Result<Tensor> {
        if !nn::fused(x_nd) {
            return self.composed(x_nd, attention, pass);
        }
        let heads = self.heads(pass.tokens, pass.dropout.at(Place::Attention));
        let numeric = attention.on_numbers(&self.site(x_nd, pass.tokens, &heads)?)?;
        fused::forward(self, numeric, x_nd, pass)
    }

    fn heads(&self, tokens: &Tokens, dropout: Option<Dropout>) -> Heads {
        Heads { count: self.heads, dropout, seen: tokens.seen.clone() }
    }

    /// What the attention sees of this layer.
    fn site<'a>(&'a self, x_nd: &Tensor, tokens: &'a Tokens, heads: &'a Heads) -> Result<Site<'a>> {
        Ok(Site {
            layer: self.number,
            heads,
            spans: &tokens.spans,
            query: &self.query_key_value[0],
            dtype: x_nd.dtype(),
            d: x_nd.dim(1)?,
            buffers: &self.buffers,
        })
    }

    /// The layer as the paper has it, of differentiable operations: for other devices and number types, and as what the one operation is
    /// tested against.
    fn composed(
        &self,
        x_nd: &Tensor,
        attention: &mut dyn AttentionPass,
        pass: &LayerPass<'_>,
    ) -> Result<Tensor> {
        let LayerPass { tokens, gates, dropout, .. } = pass;
        let heads = self.heads(tokens, dropout.at(Place::Attention));
        let site = self.site(x_nd, tokens, &heads)?;
        let Composed { context_nd, .. } = attention.composed(&site, &self.projections(x_nd)?)?;
        let context_nd = match gates {
            Some(gates) => gate(&context_nd, &gates.of_tokens(tokens)?)?,
            None => context_nd,
        };
        let a_nd = dropout.apply(Place::AttentionOutput, &self.attention_output.forward(&context_nd)?)?;
        let a_nd = self.attention_norm.forward(&(a_nd + x_nd)?)?;
        let f_nd = dropout.apply(Place::FeedForward, &self.feed_forward.forward(&a_nd)?)?;
        self.output_norm.forward(&(f_nd + a_nd)?)
    }

    /// What its attention computes, without dropout.
    pub(crate) fn inspect(
        &self,
        x_nd: &Tensor,
        attention: &mut dyn AttentionPass,
        tokens: &Tokens,
    ) -> Result<Composed> {
        let heads = self.heads(tokens, None);
        attention.composed(&self.site(x_nd, tokens, &heads)?, &self.projections(x_nd)?)
    }

    /// All parameters: weights of queries, keys, values, attention's output and the feed-forward network, their biases, gains, shifts.
    fn parameters(&self) -> Vec<&Tensor> {
        let [query, key, value] = &self.query_key_value;
        let [widen, narrow] = self.feed_forward.linears();
        let linears = [query, key, value, &self.attention_output, widen, narrow].map(Linear::parameters);
        let norms = [&self.attention_norm, &self.output_norm].map(LayerNorm::parameters);
        let mut all: Vec<&Tensor> = linears.iter().map(|[weight, _]| *weight).collect();
        all.extend(linears.iter().map(|[_, bias]| *bias));
        all.extend(norms.iter().map(|[gain, _]| *gain));
        all.extend(norms.iter().map(|[_, shift]| *shift));
        all
    }

    /// Queries, keys and values side by side, `[n, 3 d]`.
    fn projections(&self, x_nd: &Tensor) -> Result<Tensor> {
        let [query, key, value] = &self.query_key_value;
        Linear::forward_together([query, key, value], x_nd)
    }
}
