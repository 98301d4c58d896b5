//! Where later stages find the vocabulary: the artifact of this stage, or files of the user's.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use batch::family::VOCABULARY_FILES;
use tasks::token::bpe;
use tasks::token::encode::{self, Case};
use tasks::token::folder as of_model;
use tasks::token::rule::Said;

use super::super::encoder::Base;
use super::super::location::{self, Location, Place, Places};
use super::{Config, Contradiction, FILE};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::Input;

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
        /// What else lies beside a `vocab.json` and is read with it.
        beside: Vec<Place>,
        /// Who has the last word.
        contradiction: Contradiction,
    },
}

impl Source {
    pub(super) fn file(location: &Location, config: &Config, places: &Places<'_>) -> anyhow::Result<Self> {
        let place = location.place("vocabulary.file", places)?;
        let said = match config.contradiction {
            Contradiction::ConfigDecides => None,
            Contradiction::Refuse => place.beside(of_model::CONFIG).with_context(|| {
                format!("whether a {} lies beside vocabulary.file cannot be told", of_model::CONFIG)
            })?,
        };
        let beside = beside(&place, said.as_ref())?;
        if config.contradiction == Contradiction::Refuse {
            spelt(&place, config.case)?;
        }
        let source = Self::File { place, said, beside, contradiction: config.contradiction };
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
            Source::File { place, said, beside, .. } => {
                location::inputs(std::iter::once(place).chain(said).chain(beside))
            }
        }
    }

    /// Describes the case that it is read in, and which it is.
    pub(crate) fn describe_with(&self, case: Case, to: &mut dyn Describe) {
        describe::config(to, "vocabulary.case", &case);
        self.describe(to);
    }

    /// Describes which it is, as far as its contents do not say it.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        let Source::File { place, said, beside, contradiction } = self else { return };
        place.describe(to);
        said.iter().chain(beside).for_each(|place| place.describe(to));
        if !contradiction.is_default() {
            describe::config(to, "vocabulary.contradiction", contradiction);
        }
        if place.ends_in(".json") {
            // Before there was this line, texts could make special tokens.
            to.field("vocabulary.special_tokens_in_texts", "plain text".into());
        }
    }

    /// Describes how it is written where a stage puts it into a folder of its own.
    pub(crate) fn describe_written(&self, to: &mut dyn Describe) {
        if let Source::File { place, .. } = self
            && place.ends_in(".json")
        {
            // Before there was this line, `transformers` was not told of token types.
            to.field("vocabulary.input_names", "stated".into());
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
            return Ok(of_model::read(path, said.as_ref(), Some(case))?);
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
        if self.is_checked() { Ok(of_model::belongs(vocabulary, folder)?) } else { Ok(()) }
    }
}

/// The vocabulary in the folder of a checkpoint.
pub(super) fn of_checkpoint(path: &Location, places: &Places<'_>) -> anyhow::Result<Location> {
    let folder = path.place("encoder.path", places)?;
    if let Place::Outside { path: there, .. } = &folder
        && !there.is_dir()
    {
        anyhow::bail!(
            "encoder.path = {path:?}: there is no folder at {}; expected one with a checkpoint in Hugging Face's layout (config.json, model.safetensors, tokenizer.json or vocab.txt). \
             Names on the Hub are not looked up: bring the model first (`hf download NAME --local-dir FOLDER`)",
            there.display()
        );
    }
    for name in VOCABULARY_FILES {
        let is_whole = name != bpe::ENTRIES_FILE || folder.has(bpe::MERGES_FILE)?;
        if is_whole && folder.has(name)? {
            return Ok(Location(format!("{}/{name}", path.0.trim_end_matches('/'))));
        }
    }
    anyhow::bail!(
        "encoder.path = {path:?} has none of {}: name its vocabulary with vocabulary.file",
        VOCABULARY_FILES.join(", ")
    )
}

/// The files beside a `vocab.json` that are read with it, but for those that are inputs anyway.
fn beside(place: &Place, said: Option<&Place>) -> anyhow::Result<Vec<Place>> {
    if place.name() != bpe::ENTRIES_FILE {
        return Ok(vec![]);
    }
    anyhow::ensure!(
        !matches!(place, Place::Remote { .. }),
        "the vocabulary is a {} in a store, which is read with the {} beside it: fetch both, or name a tokenizer.json (vocabulary.file)",
        bpe::ENTRIES_FILE,
        bpe::MERGES_FILE
    );
    let merges = place.beside(bpe::MERGES_FILE)?.with_context(|| {
        format!(
            "the vocabulary is {}, and no {} lies beside it: RoBERTa's is both",
            place.name(),
            bpe::MERGES_FILE
        )
    })?;
    let settings = if said.is_some() { None } else { place.beside(of_model::CONFIG)? };
    Ok(std::iter::once(merges).chain(settings).collect())
}

/// Refuses a case that the entries of a `vocab.txt` on this machine contradict: before anything is made. What else is wrong with it is told where it is read.
fn spelt(place: &Place, case: Case) -> anyhow::Result<()> {
    let Place::Outside { path, .. } = place else { return Ok(()) };
    if place.ends_in(".txt")
        && let Ok(vocabulary) = encode::Vocabulary::load(path, case)
    {
        of_model::in_reach(path, &vocabulary)?;
    }
    Ok(())
}

/// Refuses a case that the file of a model contradicts.
fn early(config: &Path, case: Case) -> anyhow::Result<()> {
    if let Some(said) = Said::read(config)? {
        said.rule(Some(case))?;
    }
    Ok(())
}
