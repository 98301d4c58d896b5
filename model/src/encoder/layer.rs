//! One encoder layer: attention, then feed-forward, each added to its input and normalised. Knows no embedding.

use candle_core::{Result, Tensor};

use super::config::Config;
use super::feed_forward::FeedForward;
use super::tokens::Tokens;
use super::{LayerDropout, Place};
use crate::attention::gate::gate;
use crate::attention::plain;
use crate::nn::layer_norm::LayerNorm;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec};

/// The parameters of one layer.
#[derive(Debug, Clone)]
pub struct Layer {
    heads: usize,
    query_key_value: [Linear; 3],
    attention_output: Linear,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
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
        })
    }

    pub(crate) fn forward(
        &self,
        x_nd: &Tensor,
        tokens: &Tokens,
        gates_nh: Option<&Tensor>,
        dropout: &LayerDropout,
    ) -> Result<Tensor> {
        let how = plain::Attention { heads: self.heads, dropout: dropout.at(Place::Attention) };
        let context_nd = how.forward(&self.projections(x_nd)?, &tokens.spans)?;
        let context_nd = match gates_nh {
            Some(gates_nh) => gate(&context_nd, gates_nh)?,
            None => context_nd,
        };
        let a_nd = dropout.apply(Place::AttentionOutput, &self.attention_output.forward(&context_nd)?)?;
        let a_nd = self.attention_norm.forward(&(a_nd + x_nd)?)?;
        let f_nd = dropout.apply(Place::FeedForward, &self.feed_forward.forward(&a_nd)?)?;
        self.output_norm.forward(&(f_nd + a_nd)?)
    }

    pub(crate) fn attention_probabilities(&self, x_nd: &Tensor, tokens: &Tokens) -> Result<Tensor> {
        plain::probabilities(&self.projections(x_nd)?, &tokens.spans, self.heads)
    }

    /// Queries, keys and values side by side, `[n, 3 d]`.
    fn projections(&self, x_nd: &Tensor) -> Result<Tensor> {
        let [query, key, value] = &self.query_key_value;
        Linear::forward_together([query, key, value], x_nd)
    }
}
