//! Stage `vocabulary`: trains a WordPiece vocabulary on entity names and text, where the config brings none of its own.

mod source;
mod words;

use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::schema::Licence as Terms;
use serde::{Deserialize, Serialize};
use tasks::token::encode::{self, Case};
use tasks::token::{self, train};

use super::encoder;
use super::folder;
use super::location::{self, Location, Place, Places};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Artifacts, Input, Stage};
pub(crate) use source::Source;
use source::of_checkpoint;
use words::{count_words, names};

/// The name of the file in the artifact.
pub(crate) const FILE: &str = "vocab.txt";

/// Most entries of a vocabulary that is trained.
pub(crate) const LARGEST: u64 = train::MOST as u64;
/// Most bytes of a line of plain text, which is in memory as a whole.
const LONGEST_LINE: u64 = 32 << 20;

/// The vocabulary's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Config {
    /// How words are normalised for counts and maps, and with a `vocab.txt`; a `tokenizer.json` has its own normaliser, whose case must match
    /// (RoBERTa's is `cased`).
    ///
    /// Source: ours: names in graphs have no reliable case.
    pub case: Case,
    /// What to do when the model's own files disagree with the config: the `tokenizer_config.json` next to `vocabulary.file` (not requested for a
    /// URL with a query), and `tokenizer_config.json`, `tokenizer.json` and `vocab.txt` in the checkpoint.
    ///
    /// Source: `refuse`, ours: texts normalised in another way than the model was trained on are seldom meant.
    #[serde(default, skip_serializing_if = "Contradiction::is_default")]
    pub contradiction: Contradiction,
    /// Where it comes from; left out, from the checkpoint.
    #[serde(flatten)]
    pub from: Option<From>,
}

/// Where a vocabulary comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum From {
    /// `vocab.txt`, `tokenizer.json`, or RoBERTa's `vocab.json` with `merges.txt` beside it, to use as is (at most 64 MiB each); docs/formats.md
    /// lists the parts a `tokenizer.json` may have.
    File(#[serde(skip_serializing)] Location),
    /// How to train a WordPiece vocabulary instead.
    Train(Train),
}

impl Config {
    /// How it is trained, if it is.
    pub(crate) fn train(&self) -> Option<&Train> {
        match &self.from {
            Some(From::Train(train)) => Some(train),
            Some(From::File(_)) | None => None,
        }
    }
}

/// How to train a vocabulary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Train {
    /// Entries, special tokens included, from 6 to 1,000,000.
    ///
    /// Source: `BertWordPieceTokenizer.train` of tokenizers.
    pub size: usize,
    /// How often a piece must occur to be merged, at least once.
    ///
    /// Source: `BertWordPieceTokenizer.train` of tokenizers.
    pub min_frequency: u64,
    /// UTF-8 text, files or folders of `.txt`, in addition to the names of all entities and relations.
    ///
    /// Source: none: the names alone.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = []))]
    pub text: Vec<Location>,
    /// Terms of use of `text`, as `corpus.texts.licence`; without it `free`.
    ///
    /// Not part of any fingerprint: it does not affect the output.
    #[serde(skip_serializing)]
    pub licence: Option<Terms>,
}

impl Default for Train {
    fn default() -> Self {
        Self { size: 30_000, min_frequency: 2, text: Vec::new(), licence: None }
    }
}

/// What is done where the files of a model (`tokenizer_config.json`, `tokenizer.json`, `vocab.txt`) say otherwise than the config.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Contradiction {
    /// The run fails with the file, the key and both values; `strip_accents` and `tokenize_chinese_chars` of the `tokenizer_config.json` next to
    /// the vocabulary are honoured. A vocabulary that lower-cases texts while more than 1 % of its entries have capitals is refused too.
    #[default]
    Refuse,
    /// The files are ignored, and a `vocab.txt` is read by `case` alone: some published models are fed otherwise than they were trained.
    ConfigDecides,
}

impl Contradiction {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug)]
pub(crate) struct Vocabulary {
    config: Config,
    source: Source,
    text: Vec<Place>,
}

impl Vocabulary {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config names neither a file nor a training where `encoder` has none of its own, or a place that is invalid.
    pub(crate) fn new(
        config: &Config,
        encoder: Option<&encoder::Config>,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        let (source, text) = match &config.from {
            Some(From::File(file)) => (Source::file(file, config, places)?, Vec::new()),
            Some(From::Train(train)) => {
                let text = train.text.iter().enumerate();
                let text = text.map(|(i, text)| text.place(&format!("vocabulary.train.text.{i}"), places));
                (Source::Trained, text.collect::<anyhow::Result<_>>()?)
            }
            None => match encoder {
                Some(encoder::Config::Checkpoint { path }) => {
                    (Source::file(&of_checkpoint(path, places)?, config, places)?, Vec::new())
                }
                encoder => anyhow::bail!(
                    "[vocabulary] has neither `file` nor `train`, and there is no graph whose names it could be learnt from: name a vocab.txt or tokenizer.json with vocabulary.file{}",
                    match encoder {
                        None =>
                            ", or the folder of a checkpoint, which has its own, with [encoder] (from = \"checkpoint\", path = \"FOLDER\")",
                        Some(_) => "",
                    }
                ),
            },
        };
        Ok(Self { config: config.clone(), source, text })
    }

    /// Whether it keeps case.
    #[must_use]
    pub(crate) fn case(&self) -> Case {
        self.config.case
    }

    /// Where later stages find the vocabulary.
    #[must_use]
    pub(crate) fn source(&self) -> Source {
        self.source.clone()
    }

    /// Whether there is anything to train, so that the stage has work to do.
    #[must_use]
    pub(crate) fn is_trained(&self) -> bool {
        self.source == Source::Trained
    }
}

impl Stage for Vocabulary {
    fn name(&self) -> &'static str {
        "vocabulary"
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "vocabulary", &self.config);
        self.text.iter().for_each(|place| place.describe(to));
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = location::inputs(&self.text);
        inputs.push(Input::artifact("triples"));
        inputs
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.config.train().and_then(|of| of.licence).into())
    }

    fn foresee(&self, artifacts: &Artifacts<'_>) -> anyhow::Result<()> {
        match (self.config.train(), artifacts.of("triples")) {
            // The texts may only add to the characters.
            (Some(train), Some(triples)) => {
                let names = names(&triples, self.config.case)?;
                Ok(train::room(&trained(train, self.config.case), &names).map(drop)?)
            }
            _ => Ok(()),
        }
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let settings = self.config.train().context("there is nothing to train")?;
        let mut words = names(context.artifact("triples")?, self.config.case)?;
        for place in &self.text {
            for file in folder::ending(&place.path(context)?, &[".txt"])? {
                count_words(&file, &mut words, context)?;
            }
        }
        let tokens = train::train(&trained(settings, self.config.case), &words)?;
        context.record("entries", tokens.len());
        context.record("distinct_words", words.distinct());
        // For `AutoTokenizer`, which the file of tokens alone says nothing.
        let path = context.out().join(FILE);
        write_whole(&path, (tokens.join("\n") + "\n").as_bytes())?;
        let vocabulary = encode::Vocabulary::load(&path, self.config.case)?;
        Ok(token::folder::add(context.out(), &path, &vocabulary, None)?)
    }
}

fn trained(train: &Train, case: Case) -> train::Config {
    train::Config { size: train.size, min_frequency: train.min_frequency, case }
}
