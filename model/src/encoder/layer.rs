//! One encoder layer: attention, then feed-forward, each added to its input and normalised.

mod fused;
pub(crate) mod gates;

use candle_core::{Result, Tensor};

use super::config::Config;
use super::feed_forward::FeedForward;
use super::tokens::Tokens;
use super::{LayerDropout, Place};
use crate::attention::gate::gate;
use crate::attention::label::Labels;
use crate::attention::{LayerAttend, kam, label, plain};
use crate::nn;
use crate::nn::buffers::Buffers;
use crate::nn::layer_norm::LayerNorm;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec};
use gates::LayerGates;

/// The parameters of one layer.
#[derive(Debug, Clone)]
pub struct Layer {
    heads: usize,
    query_key_value: [Linear; 3],
    attention_output: Linear,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
    /// Memory that passes through this and other layers hand on.
    buffers: Buffers,
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
            heads: config.num_attention_heads,
            query_key_value: [query?, key?, value?],
            attention_output: Linear::new(params, &format!("{layer}.attention.output.dense"))?,
            attention_norm: norm("attention.output.LayerNorm")?,
            feed_forward: FeedForward::new(params, &layer)?,
            output_norm: norm("output.LayerNorm")?,
            buffers: params.buffers().clone(),
        })
    }

    /// The layer's output; as one operation where there is one.
    pub(crate) fn forward(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        attend: LayerAttend<'_>,
        of: (Option<&LayerGates>, &LayerDropout),
    ) -> Result<Tensor> {
        let how = self.attention(tokens, Some(of.1));
        match attend {
            LayerAttend::Knowledge(mut knowledge) if nn::fused(x_nd) => {
                let rows = (x_nd.dim(1)?, &tokens.spans[..]);
                let attention = knowledge.on_numbers(how, rows, &self.buffers)?;
                fused::forward(self, attention, (x_nd, tokens), of)
            }
            LayerAttend::Knowledge(mut knowledge) => {
                let context_nd = knowledge.context(&how, &self.projections(x_nd)?, &tokens.spans)?;
                self.composed_after([&context_nd, x_nd], tokens, of)
            }
            LayerAttend::Labels(labels) if nn::fused(x_nd) => {
                let (how, queries_md) = ((how, labels.mode), self.queries(labels, x_nd)?);
                let attention = label::on_numbers(how, &queries_md, &tokens.spans, &self.buffers)?;
                fused::forward(self, attention, (x_nd, tokens), of)
            }
            LayerAttend::Labels(labels) => {
                let (qkv_n3d, queries_md) = (self.projections(x_nd)?, self.queries(labels, x_nd)?);
                let how = (&how, labels.mode);
                let context_nd = label::forward(how, [&qkv_n3d, &queries_md], &tokens.spans)?;
                self.composed_after([&context_nd, x_nd], tokens, of)
            }
            LayerAttend::Plain if nn::fused(x_nd) => {
                let rows = (x_nd.dim(1)?, &tokens.spans[..]);
                let attention = plain::on_numbers(how, rows, &self.buffers);
                fused::forward(self, attention, (x_nd, tokens), of)
            }
            LayerAttend::Plain => self.composed(x_nd, tokens, of),
        }
    }

    fn attention(&self, tokens: &Tokens, dropout: Option<&LayerDropout>) -> plain::Attention {
        let dropout = dropout.and_then(|dropout| dropout.at(Place::Attention));
        plain::Attention { heads: self.heads, dropout, seen: tokens.seen.clone() }
    }

    /// What labels ask of this layer's tokens, `[m, d]`, in the numbers of `x_nd`.
    fn queries(&self, labels: &Labels, x_nd: &Tensor) -> Result<Tensor> {
        self.query_key_value[0].forward(&labels.embeddings_md.to_dtype(x_nd.dtype())?)
    }

    /// The layer as the paper has it, of differentiable operations: for other devices and number types, and as what the one operation is
    /// tested against.
    fn composed(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        (gates, dropout): (Option<&LayerGates>, &LayerDropout),
    ) -> Result<Tensor> {
        let context_nd =
            self.attention(tokens, Some(dropout)).forward(&self.projections(x_nd)?, &tokens.spans)?;
        self.composed_after([&context_nd, x_nd], tokens, (gates, dropout))
    }

    /// The layer's output given the heads' contexts and its input.
    fn composed_after(
        &self,
        [context_nd, x_nd]: [&Tensor; 2],
        tokens: &Tokens,
        (gates, dropout): (Option<&LayerGates>, &LayerDropout),
    ) -> Result<Tensor> {
        let context_nd = match gates {
            Some(gates) => gate(context_nd, &gates.of_tokens(tokens)?)?,
            None => context_nd.clone(),
        };
        let a_nd = dropout.apply(Place::AttentionOutput, &self.attention_output.forward(&context_nd)?)?;
        let a_nd = self.attention_norm.forward(&(a_nd + x_nd)?)?;
        let f_nd = dropout.apply(Place::FeedForward, &self.feed_forward.forward(&a_nd)?)?;
        self.output_norm.forward(&(f_nd + a_nd)?)
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

    pub(crate) fn attention_probabilities(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        attend: LayerAttend<'_>,
    ) -> Result<Tensor> {
        let (qkv_n3d, how) = (self.projections(x_nd)?, self.attention(tokens, None));
        match attend {
            LayerAttend::Plain => plain::probabilities(&qkv_n3d, &tokens.spans, &how),
            LayerAttend::Labels(labels) => {
                let queries_md = self.queries(labels, x_nd)?;
                label::probabilities((&how, labels.mode), [&qkv_n3d, &queries_md], &tokens.spans)
            }
            LayerAttend::Knowledge(mut of) => {
                let [attention_bhtt, _] = of.inspect(&how, &qkv_n3d, &tokens.spans)?;
                Ok(attention_bhtt)
            }
        }
    }

    /// What scores and maps of knowledge are merged to.
    pub(crate) fn merged_maps(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        of: &mut kam::OfLayer<'_>,
    ) -> Result<Tensor> {
        let how = self.attention(tokens, None);
        let [_, semantic_bhtt] = of.inspect(&how, &self.projections(x_nd)?, &tokens.spans)?;
        Ok(semantic_bhtt)
    }

    /// Queries, keys and values side by side, `[n, 3 d]`.
    fn projections(&self, x_nd: &Tensor) -> Result<Tensor> {
        let [query, key, value] = &self.query_key_value;
        Linear::forward_together([query, key, value], x_nd)
    }
}
