//! The texts of the shards' tasks on text: where they lie, what they look like, how they become rows.

pub(crate) mod passages;

use anyhow::Context as _;
use base::rng::RngKey;
use downstream::example::schema::Licence;
use downstream::token_classes::is_default;
use kg::split::Part;
use model::range::HELD_OUT;
use serde::{Deserialize, Serialize};
use tasks::builder::masked_lm::{Masker, Rates, Unit};
use tasks::builder::tagging::{Classes, LaterSubwords};
use tasks::shard::text::{Chunks, MaskedLm, Tagging, TextItems};
use tasks::token::encode::Vocabulary;
use text::Labels;
use text::file::Format;

use super::LONGEST;
use super::corpus::{self, Corpus, Parts};
use super::location::{Location, Places};
use crate::config::range::{number, whole};

/// A task on texts as a config has it. A new one is a struct here and a line in [`super::shards::Config`].
pub(crate) trait TextTask {
    /// The texts.
    fn files(&self) -> &Files;

    /// Refuses settings that contradict each other.
    ///
    /// # Errors
    /// Names them.
    fn check(&self) -> anyhow::Result<()>;

    /// The task's rows of `texts`, whose mentions are of the kinds `labels`. `seed` is that of all chance.
    ///
    /// # Errors
    /// When a setting is out of range.
    fn build(
        &self,
        texts: Chunks,
        labels: &Labels,
        vocabulary: &Vocabulary,
        seed: u64,
    ) -> anyhow::Result<Box<dyn TextItems>>;
}

/// Where the texts of each task stand in a config.
const MASKED_LM: &str = "shards.masked_lm.files";
const TAGGING: &str = "shards.tagging.files";

/// Files of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    /// Files, or folders, read recursively for files with the format's extensions (`.txt`, `.jsonl`, `.conll`, ..., also compressed).
    #[serde(skip_serializing)]
    pub paths: Vec<Location>,
    /// Their format, see Formats of texts; `tagging` and `hide = "entities"` need one that annotates entities.
    pub format: Format,
    /// Terms of use of the texts, see `corpus.texts.licence`.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub licence: Option<Licence>,
    /// Maximum tokens per row, `[CLS]` and `[SEP]` included, from 3 to 65,534.
    ///
    /// Source: MT-BERT, section 3.5.1, for its pretraining.
    #[serde(default = "row")]
    pub max_tokens: usize,
    /// The share of the documents, from 0 to 0.9, that this task does not learn from and `patience` looks at: the part `valid` of its shards. They are drawn
    /// by `shards.seed` and what they say in tokens, so that equal documents stay together; 0 holds none out.
    ///
    /// Source: ours: all that is there is learnt from unless somebody asks for another use of it.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = 0.0))]
    pub valid: f64,
    /// Cuts the files into parts: stages `masked_lm.part-0001`, ... (or `tagging.part-0001`, ...) encode a part each, and `shards` makes rows of what
    /// they leave, the same to the byte as without parts. They run side by side, here or on several machines; see `corpus.parts`.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub parts: Option<Parts>,
}

fn row() -> usize {
    128
}

/// Masked language modelling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaskedLmConfig {
    /// The texts.
    pub files: Files,
    /// Which share of the tokens is predicted, and what they are replaced by.
    #[serde(default)]
    pub rates: Rates,
    /// What is masked as a unit.
    ///
    /// Source: BERT's whole-word masking: with a part of a word visible, the rest is too easy.
    #[serde(default)]
    pub hide: Hide,
}

/// What is hidden together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hide {
    /// Each token by itself.
    Subwords,
    /// All tokens of a word.
    #[default]
    Words,
    /// Annotated spans first, then words.
    Entities,
}

/// Tagging.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaggingConfig {
    /// The texts, with annotated entities.
    pub files: Files,
    /// Labels of a word's later subwords.
    ///
    /// Source: Devlin et al. 2019, on NER: the first subword alone is labelled.
    #[serde(default)]
    pub later_subwords: LaterSubwords,
}

impl Files {
    /// The texts in them, named `name`. `key` is their config key.
    ///
    /// # Errors
    /// When a path is invalid.
    pub(crate) fn corpus(&self, key: &str, name: &str, places: &Places<'_>) -> anyhow::Result<Corpus> {
        let (name, paths, format) = (name.to_owned(), self.paths.clone(), self.format.clone());
        let texts = corpus::Texts { name, paths, format, licence: self.licence };
        Ok(Corpus::of(key, &texts, places)?.in_parts(self.parts))
    }

    fn check(&self, key: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!self.paths.is_empty(), "{key}.paths names no file");
        // [CLS] and [SEP] are counted.
        whole(format!("{key}.max_tokens"), self.max_tokens as u64, 3..=LONGEST)?;
        number(format!("{key}.valid"), self.valid, &HELD_OUT)
    }

    /// The texts by parts: those to learn from, and those that are held out, if any are.
    ///
    /// # Errors
    /// When they cannot be read, or a part has none. `key` is the config's.
    pub(crate) fn by_part(&self, key: &str, texts: Chunks, seed: u64) -> anyhow::Result<Vec<Chunks>> {
        if self.valid == 0.0 {
            return Ok(vec![texts]);
        }
        let documents = texts.counts.documents;
        let parts = texts.hold_out(self.valid, seed)?;
        if let Some(empty) = parts.iter().find(|part| part.is_empty()).map(Chunks::part) {
            anyhow::bail!(
                "{key}.valid is {}, by which none of {documents} documents comes to the part `{empty}`: {} it, or give more documents",
                self.valid,
                if empty == Part::Valid { "raise" } else { "lower" }
            );
        }
        Ok(parts.into())
    }
}

impl TextTask for MaskedLmConfig {
    fn files(&self) -> &Files {
        &self.files
    }

    fn check(&self) -> anyhow::Result<()> {
        self.files.check(MASKED_LM)?;
        self.rates.check().map_err(|error| anyhow::anyhow!("shards.masked_lm.{error}"))?;
        anyhow::ensure!(
            self.hide != Hide::Entities || self.files.format.has_spans(),
            "shards.masked_lm.hide is \"entities\", but plain text marks none: give files in another format, or hide \"words\""
        );
        Ok(())
    }

    fn build(
        &self,
        texts: Chunks,
        _: &Labels,
        vocabulary: &Vocabulary,
        seed: u64,
    ) -> anyhow::Result<Box<dyn TextItems>> {
        let unit = match self.hide {
            Hide::Subwords => Unit::Subwords,
            Hide::Words => Unit::Words,
            Hide::Entities => Unit::Entities(tasks::builder::masked_lm::Kinds::All),
        };
        let masker =
            Masker::new(vocabulary, self.rates, unit, RngKey::new(seed)).context("[shards.masked_lm]")?;
        Ok(Box::new(MaskedLm::new(texts, masker)?))
    }
}

impl TextTask for TaggingConfig {
    fn files(&self) -> &Files {
        &self.files
    }

    fn check(&self) -> anyhow::Result<()> {
        self.files.check(TAGGING)?;
        anyhow::ensure!(
            self.files.format.has_spans(),
            "shards.tagging.files.format is plain text, which marks no entity: give `jsonl` or `conll` files"
        );
        Ok(())
    }

    fn build(
        &self,
        texts: Chunks,
        labels: &Labels,
        _: &Vocabulary,
        _: u64,
    ) -> anyhow::Result<Box<dyn TextItems>> {
        Ok(Box::new(Tagging::new(texts, Classes::new(labels), self.later_subwords)?))
    }
}
