//! Stage `vocabulary`: trains a WordPiece vocabulary on entity names and text, where the config brings none of its own.

mod words;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::write_whole;
use serde::{Deserialize, Serialize};
use tasks::token::encode::{self, Case};
use tasks::token::rule::Said;
use tasks::token::train;

use super::encoder::{self, Base};
use super::folder;
use super::location::{self, Location, Place, Places};
use crate::bundle::vocabulary as of_model;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Artifacts, Input, Stage};
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
    /// How words are normalised for counts and maps, and with a `vocab.txt`; a `tokenizer.json` has its own normaliser, whose case must match.
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
    /// `vocab.txt` or `tokenizer.json` to use as is (at most 64 MiB); docs/formats.md lists the parts a `tokenizer.json` may have.
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
}

impl Default for Train {
    fn default() -> Self {
        Self { size: 30_000, min_frequency: 2, text: Vec::new() }
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

/// Where the vocabulary of later stages comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// The artifact of this stage.
    Trained,
    /// A file of the user's.
    File {
        place: Place,
        /// The `tokenizer_config.json` beside it, where there is one and the config does not decide alone.
        said: Option<Place>,
        /// Who has the last word.
        contradiction: Contradiction,
    },
}

impl Source {
    fn file(location: &Location, config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let place = location.place("vocabulary.file", places)?;
        let said = match config.contradiction {
            Contradiction::ConfigDecides => None,
            Contradiction::Refuse => place.beside(of_model::CONFIG).with_context(|| {
                format!("whether a {} lies beside vocabulary.file cannot be told", of_model::CONFIG)
            })?,
        };
        let source = Self::File { place, said, contradiction: config.contradiction };
        if let Self::File { said: Some(Place::Outside { path, .. }), .. } = &source {
            early(path, config.case)?;
        }
        Ok(source)
    }

    /// Refuses a case that the checkpoint of `base` contradicts, as far as that can be told before anything is made.
    ///
    /// # Errors
    /// When its `tokenizer_config.json` says otherwise.
    pub(crate) fn agrees(&self, base: &Base, case: Case) -> anyhow::Result<()> {
        match base {
            Base::Checkpoint(Place::Outside { path, .. }) if self.is_checked() => {
                early(&path.join(of_model::CONFIG), case)
            }
            _ => Ok(()),
        }
    }

    fn is_checked(&self) -> bool {
        !matches!(self, Self::File { contradiction: Contradiction::ConfigDecides, .. })
    }

    /// The inputs that a later stage declares.
    #[must_use]
    pub(crate) fn inputs(&self) -> Vec<Input> {
        match self {
            Source::Trained => vec![Input::artifact("vocabulary")],
            Source::File { place, said, .. } => location::inputs(std::iter::once(place).chain(said)),
        }
    }

    /// Describes which it is, as far as its contents do not say it.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        let Source::File { place, said, contradiction } = self else { return };
        place.describe(to);
        if let Some(said) = said {
            said.describe(to);
        }
        if !contradiction.is_default() {
            describe::config(to, "vocabulary.contradiction", contradiction);
        }
        if place.ends_in(".json") {
            // Before there was this line, texts could make special tokens.
            to.field("vocabulary.special_tokens_in_texts", "plain text".into());
        }
    }

    /// Where the file lies while a later stage runs.
    ///
    /// # Errors
    /// When that stage did not declare it.
    pub(crate) fn path(&self, context: &Context) -> anyhow::Result<PathBuf> {
        match self {
            Source::Trained => Ok(context.artifact("vocabulary")?.join(FILE)),
            Source::File { place, .. } => place.path(context),
        }
    }

    /// The vocabulary, while a later stage runs.
    ///
    /// # Errors
    /// When that stage did not declare it, it is damaged, or its model's files say otherwise than `case`.
    pub(crate) fn load(&self, context: &Context, case: Case) -> anyhow::Result<encode::Vocabulary> {
        let said = match self {
            Source::File { said: Some(said), .. } => Some(said.path(context)?),
            _ => None,
        };
        self.read(&self.path(context)?, said.as_deref(), case)
    }

    /// The same outside of a run; `artifact` says where a stage's artifact lies.
    ///
    /// # Errors
    /// As [`Source::load`], or when it lies in a store.
    pub(crate) fn load_from(
        &self,
        artifact: &dyn Fn(&str) -> PathBuf,
        case: Case,
    ) -> anyhow::Result<encode::Vocabulary> {
        let of = |place: &Place| match place {
            Place::Outside { path, .. } => Ok(path.clone()),
            Place::World { below, .. } => Ok(artifact("world").join(below)),
            Place::Remote { remote, .. } => anyhow::bail!(
                "{}: a remote vocabulary is not looked at here: fetch it and name the file with --set vocabulary.file=FILE",
                remote.location().name()
            ),
        };
        match self {
            Source::Trained => self.read(&artifact("vocabulary").join(FILE), None, case),
            Source::File { place, said, .. } => {
                self.read(&of(place)?, said.as_ref().map(of).transpose()?.as_deref(), case)
            }
        }
    }

    fn read(&self, path: &Path, said: Option<&Path>, case: Case) -> anyhow::Result<encode::Vocabulary> {
        if self.is_checked() {
            let said = said.map(Said::read).transpose()?.flatten();
            return of_model::read(path, said.as_ref(), Some(case));
        }
        let vocabulary = encode::Vocabulary::load(path, case)?;
        of_model::of_case(path, &vocabulary, Some(case))?;
        Ok(vocabulary)
    }

    /// Refuses a vocabulary that is not that of the model in `folder`, unless the config decides.
    ///
    /// # Errors
    /// As [`of_model::belongs`].
    pub(crate) fn belongs(&self, vocabulary: &encode::Vocabulary, folder: &Path) -> anyhow::Result<()> {
        if self.is_checked() { of_model::belongs(vocabulary, folder) } else { Ok(()) }
    }
}

/// The vocabulary in the folder of a checkpoint.
fn of_checkpoint(path: &Location, places: &Places<'_>) -> anyhow::Result<Location> {
    let folder = path.place("encoder.path", places)?;
    for name in ["tokenizer.json", "vocab.txt"] {
        if folder.has(name)? {
            return Ok(Location(format!("{}/{name}", path.0.trim_end_matches('/'))));
        }
    }
    anyhow::bail!(
        "encoder.path = {path:?} has no tokenizer.json and no vocab.txt: name its vocabulary with vocabulary.file"
    )
}

/// Refuses a case that the file of a model contradicts.
fn early(config: &Path, case: Case) -> anyhow::Result<()> {
    if let Some(said) = Said::read(config)? {
        said.rule(Some(case))?;
    }
    Ok(())
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
                _ => anyhow::bail!(
                    "[vocabulary] has neither `file` nor `train`, and there is no graph whose names it could be learnt from: name a vocab.txt or tokenizer.json with vocabulary.file"
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
        1
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
        write_whole(&context.out().join(FILE), (tokens.join("\n") + "\n").as_bytes())?;
        Ok(())
    }
}

fn trained(train: &Train, case: Case) -> train::Config {
    train::Config { size: train.size, min_frequency: train.min_frequency, case }
}
