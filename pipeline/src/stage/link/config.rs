//! The table `[link]`.

use model::encoder::pool::Pooling;
use serde::{Deserialize, Serialize};
use text::ner::filters::Types;

use crate::config::range::whole;
use crate::stage::corpus::Texts;
use crate::stage::finetune::begin::From;
use crate::stage::{LONGEST, encoder};

/// Mentions that are linked, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The encoders to compare, each once: `encoder` as it is, `pretrain`, `retrain`, `align`.
    ///
    /// Source: ours: one encoder is the least.
    #[serde(default = "of")]
    pub of: Vec<From>,
    /// Texts whose mentions have ids, any number of sets.
    pub sets: Vec<Set>,
    /// Semantic types of the entities that are candidates, by code or name.
    ///
    /// Source: ours: which types matter depends on the sets.
    #[serde(default)]
    pub types: Types,
    /// The names by which an entity is found: all, or its preferred one alone, so that a synonym that is linked correctly was learnt by the encoder and not looked up.
    ///
    /// Source: SapBERT, `evaluation/eval.py`: all names of the dictionary.
    #[serde(default)]
    pub names: Candidates,
    /// How the tokens of a name become one vector: `cls`, `mean` or `max`. Left out, as `[align]` has it, else `mean`.
    ///
    /// Source: `"mean"`, as all-MiniLM-L6-v2 was trained; SapBERT takes `cls`.
    #[serde(default = "mean")]
    pub pooling: Pooling,
    /// Maximum tokens of a name, `[CLS]` and `[SEP]` included, from 6; longer ones are cut and counted (`cut`).
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 25.
    #[serde(default = "tokens")]
    pub max_tokens: usize,
}

/// Names that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Candidates {
    /// Preferred names and synonyms.
    #[default]
    All,
    /// The preferred name of each entity.
    Preferred,
}

/// A set of texts whose mentions have ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    /// The texts; their format must mark entities and their concepts.
    pub texts: Texts,
    /// The namespace of their ids: `mesh` makes `mesh:D009270` of `D009270`. Ids with a prefix of their own (`MESH:D009270`) keep it, in lower case.
    pub namespace: String,
    /// The kinds of mentions that are asked for (`Disease`); left out, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

fn of() -> Vec<From> {
    vec![From::Encoder]
}

fn mean() -> Pooling {
    Pooling::Mean
}

fn tokens() -> usize {
    25
}

/// What an encoder is called.
pub(super) fn name(of: From) -> &'static str {
    match of {
        From::Encoder => "encoder",
        From::Pretrain => "pretrain",
        From::Retrain => "retrain",
        From::Align => "align",
    }
}

impl Config {
    /// Refuses vectors pooled otherwise than an aligned encoder has learnt.
    ///
    /// # Errors
    /// Names both.
    pub(crate) fn of_aligned(&self, pooling: Pooling) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.of.contains(&From::Align) || self.pooling == pooling,
            "link.pooling is {:?}, and align.pooling {:?}: link by what was learnt, or leave link.pooling out",
            self.pooling.name(),
            pooling.name()
        );
        Ok(())
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.of.is_empty(), "link.of is empty: name encoder, pretrain, retrain or align");
        for (place, of) in self.of.iter().enumerate() {
            anyhow::ensure!(
                !self.of[..place].contains(of),
                "link.of names {} twice: once is enough",
                name(*of)
            );
        }
        anyhow::ensure!(!self.sets.is_empty(), "link.sets is empty: name texts whose mentions have ids");
        for (place, set) in self.sets.iter().enumerate() {
            let twice = self.sets[..place].iter().any(|other| other.texts.name == set.texts.name);
            anyhow::ensure!(!twice, "link.sets.{place}.texts.name = {:?} stands twice", set.texts.name);
            anyhow::ensure!(
                set.texts.format.has_spans(),
                "link.sets.{place}.texts.format marks no entities: mentions with ids are in pubtator, bioc, bioc_json, brat or mention_list"
            );
        }
        encoder::without_parameters("link.pooling", self.pooling)?;
        whole("link.max_tokens", self.max_tokens as u64, 6..=LONGEST)
    }
}
