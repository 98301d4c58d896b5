//! The sizes of the encoder that is measured, as the benches write them.

use batch::family::Family;
use model::encoder::config::Config;
use serde::Deserialize;

/// Sizes, and dropout of hidden states and probabilities.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    layers: usize,
    hidden: usize,
    heads: usize,
    feed_forward: usize,
    vocabulary: usize,
    dropout: f64,
}

impl Shape {
    /// The same as an encoder's configuration.
    pub(crate) fn config(&self) -> Config {
        Config {
            vocab_size: self.vocabulary,
            hidden_size: self.hidden,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            intermediate_size: self.feed_forward,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            hidden_dropout_prob: self.dropout,
            attention_probs_dropout_prob: self.dropout,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            pad_token_id: 0,
            family: Family::Bert,
        }
    }
}
