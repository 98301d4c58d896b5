//! What the published files of each family call the same encoder, and where they differ from what is read of them.

use batch::family::Family;
use candle_core::{DType, Tensor};

use crate::encoder::config::Config;

/// The files of one family.
#[derive(Debug)]
pub(super) struct Published {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Models whose encoder this is; the first one is the encoder alone.
    pub architectures: [&'static str; 7],
    /// In front of the encoder's parameters in files of models with outputs.
    pub prefix: &'static str,
    /// `pad_token_id` where a file leaves it out, as `transformers` documents it.
    pub pad_token_id: u32,
}

const BERT: Published = Published {
    model_type: "bert",
    architectures: [
        "BertModel",
        "BertForPreTraining",
        "BertForMaskedLM",
        "BertForNextSentencePrediction",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForQuestionAnswering",
    ],
    prefix: "bert.",
    pad_token_id: 0,
};

const ROBERTA: Published = Published {
    model_type: "roberta",
    architectures: [
        "RobertaModel",
        "RobertaForMaskedLM",
        "RobertaForCausalLM",
        "RobertaForMultipleChoice",
        "RobertaForSequenceClassification",
        "RobertaForTokenClassification",
        "RobertaForQuestionAnswering",
    ],
    prefix: "roberta.",
    pad_token_id: 1,
};

/// All families.
pub(super) const FAMILIES: [Family; 2] = [Family::Bert, Family::Roberta];

/// The files of a family.
pub(super) const fn of(family: Family) -> &'static Published {
    match family {
        Family::Bert => &BERT,
        Family::Roberta => &ROBERTA,
    }
}

/// Rows of the table of positions that no token ever has: RoBERTa counts from the one behind that of padding.
pub(super) fn unused_positions(config: &Config) -> usize {
    match config.family {
        Family::Bert => 0,
        Family::Roberta => config.pad_token_id as usize + 1,
    }
}

/// A table of positions as files have it, with zeros where no token ever is.
pub(super) fn with_unused(config: &Config, table: &Tensor) -> candle_core::Result<Tensor> {
    let unused = Tensor::zeros((unused_positions(config), table.dim(1)?), DType::F32, table.device())?;
    Tensor::cat(&[&unused, table], 0)
}
