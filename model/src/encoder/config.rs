//! The sizes of an encoder, as Hugging Face's `config.json` of a BERT model states them.

use serde::{Deserialize, Serialize};

use crate::range::BELOW_ONE;

/// Sizes and rates of a BERT encoder; field names are those of `transformers.BertConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of token ids (v).
    pub vocab_size: usize,
    /// Hidden width (d).
    pub hidden_size: usize,
    /// Encoder layers (l).
    pub num_hidden_layers: usize,
    /// Attention heads per layer (h).
    pub num_attention_heads: usize,
    /// Width of the feed-forward layer (i).
    pub intermediate_size: usize,
    /// Positions that have an embedding: the longest row.
    pub max_position_embeddings: usize,
    /// Segments that have an embedding.
    pub type_vocab_size: usize,
    /// Dropout rate of embeddings and layer outputs.
    pub hidden_dropout_prob: f64,
    /// Dropout rate of attention probabilities.
    pub attention_probs_dropout_prob: f64,
    /// Standard deviation of fresh weights.
    pub initializer_range: f64,
    /// Added to variances before the square root.
    pub layer_norm_eps: f64,
    /// Id of the padding token, recorded for other readers of the checkpoint; engraft computes none, unless rows say that it is to be read.
    pub pad_token_id: u32,
}

/// Sizes that cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A size of 0, or one that no machine has room for.
    #[error("{field} is {found}, expected from 1 to {most}")]
    Size {
        /// The configuration field.
        field: &'static str,
        /// Its value.
        found: usize,
        /// The largest size that is built.
        most: usize,
    },
    /// A padding token that is none of the tokens.
    #[error("pad_token_id is {found}, but there are {tokens} token ids (vocab_size)")]
    Padding {
        /// The id.
        found: u32,
        /// Number of token ids.
        tokens: usize,
    },
    /// Heads that do not divide the width.
    #[error(
        "num_attention_heads is {heads}, expected a divisor of hidden_size, which is {hidden}; change one of them"
    )]
    Heads {
        /// Hidden width.
        hidden: usize,
        /// Number of heads.
        heads: usize,
    },
    /// A rate outside [0, 1).
    #[error("{field} is {found}, expected {}", BELOW_ONE.told)]
    Rate {
        /// The configuration field.
        field: &'static str,
        /// Its value.
        found: f64,
    },
}

impl Config {
    /// Whether an encoder of these sizes can exist.
    ///
    /// # Errors
    /// Names the first field that is wrong and what it must be.
    pub fn check(&self) -> Result<(), Error> {
        // Ten times what the largest encoders of this kind have, or more.
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 24),
            ("hidden_size", self.hidden_size, 1 << 16),
            ("num_hidden_layers", self.num_hidden_layers, 1 << 10),
            ("num_attention_heads", self.num_attention_heads, 1 << 10),
            ("intermediate_size", self.intermediate_size, 1 << 20),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 20),
            ("type_vocab_size", self.type_vocab_size, 1 << 10),
        ];
        if let Some((field, found, most)) =
            sizes.into_iter().find(|(_, size, most)| !(1..=*most).contains(size))
        {
            return Err(Error::Size { field, found, most });
        }
        if self.pad_token_id as usize >= self.vocab_size {
            return Err(Error::Padding { found: self.pad_token_id, tokens: self.vocab_size });
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(Error::Heads { hidden: self.hidden_size, heads: self.num_attention_heads });
        }
        let rates = [
            ("hidden_dropout_prob", self.hidden_dropout_prob),
            ("attention_probs_dropout_prob", self.attention_probs_dropout_prob),
            ("initializer_range", self.initializer_range),
            ("layer_norm_eps", self.layer_norm_eps),
        ];
        match rates.into_iter().find(|(_, rate)| !BELOW_ONE.holds(*rate)) {
            Some((field, found)) => Err(Error::Rate { field, found }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small encoder for the tests of this crate.
    pub(crate) fn tiny() -> Config {
        Config {
            vocab_size: 50,
            hidden_size: 16,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            intermediate_size: 24,
            max_position_embeddings: 12,
            type_vocab_size: 2,
            hidden_dropout_prob: 0.0,
            attention_probs_dropout_prob: 0.0,
            initializer_range: 0.2,
            layer_norm_eps: 1e-12,
            pad_token_id: 0,
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(tiny().check(), Ok(()));
        let heads = Config { num_attention_heads: 3, ..tiny() };
        assert_eq!(heads.check(), Err(Error::Heads { hidden: 16, heads: 3 }));
        for found in [0, usize::MAX] {
            let refused = Config { vocab_size: found, ..tiny() }.check();
            assert_eq!(refused, Err(Error::Size { field: "vocab_size", found, most: 1 << 24 }));
        }
        let padding = Config { pad_token_id: 50, ..tiny() };
        assert_eq!(padding.check(), Err(Error::Padding { found: 50, tokens: 50 }));
        let rate = Config { hidden_dropout_prob: 1.0, ..tiny() };
        assert_eq!(rate.check(), Err(Error::Rate { field: "hidden_dropout_prob", found: 1.0 }));
    }
}
