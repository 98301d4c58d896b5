//! The two families of encoders that are read, as far as their rows differ.

use serde::{Deserialize, Serialize};

/// Files of vocabularies as `transformers` names them, the one that says most first.
pub const VOCABULARY_FILES: [&str; 3] = ["tokenizer.json", "vocab.txt", "vocab.json"];
/// What `transformers` reads beside the vocabulary.
pub const TOKENIZER_FILE: &str = "tokenizer_config.json";

/// Whose rows an encoder reads, and whose files it is kept in. What it computes of them is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// `[CLS] a [SEP] b [SEP]`, of which `b [SEP]` is of segment 1 (Devlin et al. 2019).
    #[default]
    Bert,
    /// `<s> a </s></s> b </s>`, all of segment 0 (Liu et al. 2019).
    Roberta,
}

impl Family {
    /// Whether it is BERT, of which files say nothing.
    #[must_use]
    pub fn is_bert(&self) -> bool {
        *self == Self::Bert
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Bert => "BERT",
            Family::Roberta => "RoBERTa",
        }
    }

    /// What its vocabularies are.
    #[must_use]
    pub fn vocabulary(self) -> &'static str {
        match self {
            Family::Bert => "BERT's WordPiece",
            Family::Roberta => "RoBERTa's byte-level BPE",
        }
    }

    /// Separators between two texts of a row.
    #[must_use]
    pub fn between(self) -> usize {
        match self {
            Family::Bert => 1,
            Family::Roberta => 2,
        }
    }

    /// Special tokens of a row of so many texts: one in front, one behind the last text, and those between.
    #[must_use]
    pub fn special_tokens(self, texts: usize) -> usize {
        2 + texts.saturating_sub(1) * self.between()
    }

    /// The segment of the text that would be of this one in a row of BERT's.
    #[must_use]
    pub fn segment(self, of_bert: u32) -> u32 {
        match self {
            Family::Bert => of_bert,
            Family::Roberta => 0,
        }
    }
}
