//! The tables `[[attentions]]`: what may be said of other ways to attend.

use batch::maps::expand::Map;
use model::attention::kam::{Auxiliary, Merge, Skip};
use model::attention::label::Mode;
use serde::{Deserialize, Serialize};

/// A table of `[[attentions]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Config {
    /// The name, in lower-case letters, digits, `-` and `_`; not `alone` or `base`, and unique across attentions and recipes.
    pub name: String,
    /// Names of the benchmarks; left out, all in `finetune.on` that it supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// How tokens attend.
    #[serde(flatten)]
    pub by: By,
}

/// How tokens attend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// Label embeddings as additional queries of the first token (Wang et al. 2020).
    Labels(Labels),
    /// Attention that also uses maps of what is known about tokens (KAM-BERT); needs `finetune.truncation = "longest"`.
    Knowledge(Knowledge),
}

/// Attention by labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Labels {
    /// Which of the two to follow where the paper and its reference code differ.
    ///
    /// Source: Wang et al. 2020, section 3.2.
    pub mode: Mode,
    /// Weight of the label loss, 0 or 1e-12 to 1e6; the loss is reported separately in `metrics.jsonl`.
    ///
    /// Source: Wang et al. 2020, appendix B: generally 3.
    pub lambda: f64,
    /// How label embeddings are initialised.
    ///
    /// Source: the reference code; Wang et al. 2020, section 3.2, names all three.
    pub begin: Begin,
}

impl Default for Labels {
    fn default() -> Self {
        Self { mode: Mode::default(), lambda: 3.0, begin: Begin::default() }
    }
}

/// What labels' embeddings begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Begin {
    /// With random numbers of the encoder's standard deviation.
    #[default]
    Random,
    /// With the mean embedding of the words in the benchmark's `keywords`.
    Keywords,
    /// With the mean of the first token's last hidden state over a class's examples, of the encoder that fine-tuning begins with.
    ClassMeans,
}

/// Attention by what is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Knowledge {
    /// The maps, of those that `[maps]` produces. They are built from the benchmark's texts as configured there (`marked` is what
    /// `benchmarks.parsed` says of them), by stage `maps-NAME` (of tags, rankings, masked words and answers in passages by each fine-tuning, with its rows), of up to `finetune.max_tokens` (or `max_tokens_of`) tokens and, with the map `term`, the auxiliary
    /// terms of `maps.limits`.
    ///
    /// Source: KAM-BERT, section 3.4; a map of a graph is its extension (equation 8).
    pub maps: Vec<Map>,
    /// Weight of the merged scores, from 0 to 1; the self-attention scores have the rest.
    ///
    /// Source: KAM-BERT, section 4.6: 0.2 is best after a grid search.
    pub alpha: f64,
    /// What of a layer's map is added to the next layer's scores.
    ///
    /// Source: KAM-BERT, equation 3, whose map is the one after the softmax.
    pub skip: Skip,
    /// What auxiliary terms are scored by.
    ///
    /// Source: KAM-BERT, section 3.4: smaller maps, that of self-attention included, are padded with zeros.
    pub auxiliary: Auxiliary,
    /// How scores and maps are merged.
    ///
    /// Source: KAM-BERT, equation 2; its ablation without the convolution is worse (table 6).
    pub merge: Merge,
}

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            maps: vec![Map::Entity, Map::Phrase, Map::Term],
            alpha: 0.2,
            skip: Skip::default(),
            auxiliary: Auxiliary::default(),
            merge: Merge::default(),
        }
    }
}
