//! The encoder that training begins with: a published checkpoint, or fresh weights, which stage `encoder` draws.

use std::path::PathBuf;

use anyhow::Context as _;
use batch::family::Family;
use model::Device;
use model::checkpoint::{PADDING, digests, is_padded};
use model::encoder::Encoder;
use model::encoder::config as sizes;
use model::encoder::pool::Pooling;
use model::params::Params;
use serde::{Deserialize, Serialize};
use tasks::token::encode::{Case, Special};

use super::location::{Location, Place, Places};
use super::vocabulary;
use crate::bundle::card::{Card, Kind};
use crate::config::range::whole;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The name of the stage.
pub(crate) const NAME: &str = "encoder";
/// The folder of an encoder within the artifact of every stage that makes one: `config.json`, `model.safetensors`.
pub(crate) const MODEL: &str = "model";

/// The encoder that training begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Config {
    /// A published model, or one of engraft's.
    Checkpoint {
        /// A folder of BERT or RoBERTa in Hugging Face's layout, or a `model` folder written by engraft. The first has `config.json`, and `model.safetensors`,
        /// the files of `model.safetensors.index.json` or `pytorch_model.bin`; the second must match its `digests.json`. The vocabulary is its
        /// own unless `vocabulary.file` names one, which is then compared with it entry by entry (`vocabulary.contradiction`); its embedding
        /// table may be padded (docs/formats.md, Model folders).
        #[serde(skip_serializing)]
        path: Location,
    },
    /// Random weights, drawn by stage `encoder`.
    Fresh(Fresh),
}

impl Config {
    /// The sizes, where its weights are random.
    pub(crate) fn fresh(&self) -> Option<&Fresh> {
        match self {
            Config::Fresh(fresh) => Some(fresh),
            Config::Checkpoint { .. } => None,
        }
    }

    /// Its sizes, but for its vocabulary's, as far as they can be told before anything is made.
    ///
    /// # Errors
    /// When it names a place that is invalid.
    pub(crate) fn sizes(&self, places: &Places<'_>) -> anyhow::Result<Option<sizes::Config>> {
        Ok(match (self, Base::new(self, places)?) {
            (Config::Fresh(fresh), _) => Some(fresh.sizes(1, 0, Family::Bert)),
            // A folder that is not there, or damaged, is told by who reads it.
            (_, Base::Checkpoint(Place::Outside { path, .. })) => model::checkpoint::sizes(&path).ok(),
            _ => None,
        })
    }
}

/// Sizes of an encoder with fresh weights; names as in `transformers.BertConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Fresh {
    /// Seed of the weights.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// Hidden size, up to 65,536; a multiple of the number of heads. This and the following are named as in `transformers.BertConfig`.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub hidden_size: usize,
    /// Number of layers, up to 1,024.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub num_hidden_layers: usize,
    /// Attention heads per layer, up to 1,024.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub num_attention_heads: usize,
    /// Size of the feed-forward layers, up to 1,048,576.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub intermediate_size: usize,
    /// Number of positions, from 8 to 1,048,576: the most tokens of a row.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub max_position_embeddings: usize,
    /// Dropout of hidden states, from 0 to 0.95.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub hidden_dropout_prob: f64,
    /// Dropout of attention probabilities, from 0 to 0.95.
    ///
    /// Source: BERT base, and transformers' `BertConfig`.
    pub attention_probs_dropout_prob: f64,
}

impl Default for Fresh {
    fn default() -> Self {
        Self {
            seed: 1,
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            max_position_embeddings: 512,
            hidden_dropout_prob: 0.1,
            attention_probs_dropout_prob: 0.1,
        }
    }
}

impl Fresh {
    /// Whether an encoder of these sizes can exist.
    ///
    /// # Errors
    /// Names the first that is out of its range.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        // Whatever the vocabulary comes to.
        self.sizes(1, 0, Family::Bert).check().map_err(|error| anyhow::anyhow!("encoder.{error}"))?;
        // A triple has four special tokens and three names.
        whole("encoder.max_position_embeddings", self.max_position_embeddings as u64, 8..=u64::MAX)
    }

    /// The sizes of an encoder for a vocabulary of so many entries; of RoBERTa's as `roberta-base` has the others.
    fn sizes(&self, vocab_size: usize, pad_token_id: u32, family: Family) -> sizes::Config {
        let Self { hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, .. } = *self;
        sizes::Config {
            vocab_size,
            hidden_size,
            num_hidden_layers,
            num_attention_heads,
            intermediate_size,
            max_position_embeddings: self.max_position_embeddings,
            type_vocab_size: if family.is_bert() { 2 } else { 1 },
            hidden_dropout_prob: self.hidden_dropout_prob,
            attention_probs_dropout_prob: self.attention_probs_dropout_prob,
            initializer_range: 0.02,
            layer_norm_eps: if family.is_bert() { 1e-12 } else { 1e-5 },
            pad_token_id,
            family,
        }
    }
}

/// Where the encoder of a later stage comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// A folder of the user's.
    Checkpoint(Place),
    /// The artifact of a stage.
    Stage(String),
}

/// Refuses an encoder that was made for another vocabulary, or of a family that has others: its ids would be other words, and nothing would tell. Its table of token embeddings may
/// have been padded, to a multiple of 8 or 64 as a rule; gives the number of rows that no token has.
///
/// # Errors
/// When their families differ, or their sizes by more than padding.
pub(crate) fn fits(entries: usize, special: Special, encoder: &sizes::Config) -> anyhow::Result<usize> {
    anyhow::ensure!(
        special.family == encoder.family,
        "the vocabulary is {} and the encoder {}: name the encoder's own vocabulary (vocabulary.file, --vocabulary FILE)",
        special.family.vocabulary(),
        encoder.family.name()
    );
    anyhow::ensure!(
        is_padded(entries, encoder.vocab_size),
        "the vocabulary has {entries} entries and the encoder {} token ids (as many, or up to {} more that are padding): name the encoder's own vocabulary (vocabulary.file, --vocabulary FILE)",
        encoder.vocab_size,
        PADDING - 1
    );
    Ok(encoder.vocab_size - entries)
}

/// Refuses rows that may have more tokens than the encoder has positions; `table` says how many.
///
/// # Errors
/// Names both.
pub(crate) fn room(table: &str, max_tokens: usize, positions: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        max_tokens <= positions,
        "{table}.max_tokens is {max_tokens}, but the encoder has {positions} positions: lower it"
    );
    Ok(())
}

/// Refuses a pooling that has parameters of its own; `key` names it.
///
/// # Errors
/// Names it.
pub(crate) fn without_parameters(key: &str, pooling: Pooling) -> anyhow::Result<()> {
    anyhow::ensure!(
        matches!(pooling, Pooling::Cls | Pooling::Mean | Pooling::Max),
        "{key} is {:?}, expected \"cls\", \"mean\" or \"max\"",
        pooling.name()
    );
    Ok(())
}

/// Sizes with other dropout rates than their own, where these are given.
#[must_use]
pub(crate) fn with_dropout(
    mut sizes: sizes::Config,
    hidden: Option<f64>,
    attention: Option<f64>,
) -> sizes::Config {
    sizes.hidden_dropout_prob = hidden.unwrap_or(sizes.hidden_dropout_prob);
    sizes.attention_probs_dropout_prob = attention.unwrap_or(sizes.attention_probs_dropout_prob);
    sizes
}

impl Base {
    /// Refuses a checkpoint of this machine that cannot be read, before anything is made. One that is not there is told of by the engine, which may be bringing it.
    ///
    /// # Errors
    /// Names the file and what is wrong.
    pub(crate) fn early(&self) -> anyhow::Result<()> {
        match self {
            Self::Checkpoint(Place::Outside { path, .. }) if path.is_dir() => {
                model::checkpoint::foresee(path).context(
                    "encoder.path: expected the folder of a BERT or RoBERTa checkpoint in Hugging Face's layout, or a `model` folder of engraft",
                )
            }
            _ => Ok(()),
        }
    }

    /// What `config` names.
    ///
    /// # Errors
    /// When it names a place that is invalid.
    pub(crate) fn new(config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        match config {
            Config::Checkpoint { path } => Ok(Base::Checkpoint(path.place("encoder.path", places)?)),
            Config::Fresh(_) => Ok(Base::Stage(NAME.to_owned())),
        }
    }

    /// What plans and tables call it: the stage that makes it, or the checkpoint's folder.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        match self {
            Base::Checkpoint(place) => format!("checkpoint {}", place.name()),
            Base::Stage(name) => name.clone(),
        }
    }

    /// The input that a later stage declares.
    #[must_use]
    pub(crate) fn input(&self) -> Input {
        match self {
            Base::Checkpoint(place) => place.input(),
            Base::Stage(name) => Input::artifact(name),
        }
    }

    /// Describes which it is, as far as its contents do not say it.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        if let Base::Checkpoint(place) = self {
            place.describe(to);
        }
    }

    /// The folder of the checkpoint while a later stage runs.
    ///
    /// # Errors
    /// When that stage did not declare it.
    pub(crate) fn folder(&self, context: &Context) -> anyhow::Result<PathBuf> {
        match self {
            Base::Checkpoint(place) => place.path(context),
            Base::Stage(name) => Ok(context.artifact(name)?.join(MODEL)),
        }
    }
}

/// The stage: draws fresh weights.
#[derive(Debug)]
pub(crate) struct Drawing {
    /// Sizes and seed.
    pub fresh: Fresh,
    /// What the encoder is to read.
    pub vocabulary: vocabulary::Source,
    /// Whether a `vocab.txt` keeps case.
    pub case: Case,
}

impl Stage for Drawing {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        3
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "encoder", &self.fresh);
        self.vocabulary.describe_with(self.case, to);
        self.vocabulary.describe_written(to);
    }

    fn inputs(&self) -> Vec<Input> {
        self.vocabulary.inputs()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let vocabulary = self.vocabulary.load(context, self.case)?;
        let special = vocabulary.special();
        let sizes = self.fresh.sizes(vocabulary.size(), special.padding, special.family);
        sizes.check()?;
        let params = Params::fresh(&Encoder::specs(&sizes), self.fresh.seed, &Device::Cpu)?;
        let folder = context.out().join(MODEL);
        std::fs::create_dir_all(&folder)?;
        model::checkpoint::save(&folder, &sizes, params.iter())?;
        tasks::token::folder::add(
            &folder,
            &self.vocabulary.path(context)?,
            &vocabulary,
            Some(sizes.max_position_embeddings),
        )?;
        digests::seal(&folder)?;
        let seed = self.fresh.seed;
        let card = Card {
            stage: NAME.to_owned(),
            kind: Kind::Encoder,
            sizes,
            trained: vec![format!(
                "## Training\n\nNone: the weights are random numbers of seed {seed}, to be trained."
            )],
            scores: vec![],
            began_with: None,
        };
        card.write(context.out())?;
        context.record("parameters", params.iter().map(|(_, tensor)| tensor.elem_count()).sum::<usize>());
        Ok(())
    }
}
