//! The sizes of an encoder, as Hugging Face's `config.json` of a BERT model states them.

use base::setting::InvalidSetting;
use batch::family::Family;
use serde::{Deserialize, Serialize};

use crate::range::{self, BELOW_ONE, DROPOUT};

/// Sizes and rates of an encoder as BERT's; field names are those of `transformers.BertConfig`.
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
    /// Positions that have an embedding: the longest row. Files of RoBERTa's count those in front of its first one, too.
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
    /// Whose files it is kept in; a file of BERT's says nothing. It changes nothing of what is computed.
    #[serde(default, skip_serializing_if = "Family::is_bert")]
    pub family: Family,
}

impl Config {
    /// Whether an encoder of these sizes can exist.
    ///
    /// # Errors
    /// Names the first field that is wrong and what it must be.
    pub fn check(&self) -> Result<(), InvalidSetting> {
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
            return Err(InvalidSetting::new(field, found, format!("from 1 to {most}")));
        }
        if self.pad_token_id as usize >= self.vocab_size {
            let expected = format!("one of the {} token ids (vocab_size)", self.vocab_size);
            return Err(InvalidSetting::new("pad_token_id", self.pad_token_id, expected));
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected =
                format!("a divisor of hidden_size, which is {}; change one of them", self.hidden_size);
            return Err(InvalidSetting::new("num_attention_heads", self.num_attention_heads, expected));
        }
        range::check(&[
            ("hidden_dropout_prob", self.hidden_dropout_prob, DROPOUT),
            ("attention_probs_dropout_prob", self.attention_probs_dropout_prob, DROPOUT),
            ("initializer_range", self.initializer_range, BELOW_ONE),
            ("layer_norm_eps", self.layer_norm_eps, BELOW_ONE),
        ])
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
            family: Family::Bert,
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(tiny().check(), Ok(()));
        let refused = |config: Config| config.check().unwrap_err().to_string();
        let found = refused(Config { num_attention_heads: 3, ..tiny() });
        assert!(
            found.starts_with("num_attention_heads is 3, expected a divisor of hidden_size, which is 16"),
            "{found}"
        );
        for size in [0, usize::MAX] {
            let found = refused(Config { vocab_size: size, ..tiny() });
            assert_eq!(found, format!("vocab_size is {size}, expected from 1 to 16777216"));
        }
        let found = refused(Config { pad_token_id: 50, ..tiny() });
        assert_eq!(found, "pad_token_id is 50, expected one of the 50 token ids (vocab_size)");
        let found = refused(Config { hidden_dropout_prob: 1.0, ..tiny() });
        assert!(found.starts_with("hidden_dropout_prob is 1, expected "), "{found}");
    }
}
