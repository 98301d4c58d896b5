//! Asking models that were fine-tuned on masked words, by whatever attention.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use batch::maps::expand::Map;
use batch::maps::sample::Sample;
use batch::rows::Rows;
use model::Device;
use model::encoder::config::Config as Sizes;
use model::fill::Filler;
use model::predict::Predictor;
use tasks::maps::generators::Limits;
use tasks::maps::tools::Tools;

use super::Asked;
use crate::bundle::task_file::{self, TaskFile};
use crate::engine::context::Context;
use crate::stage::maps::Mapping;

/// What is known of sentences.
struct Known {
    tools: Tools,
    limits: Limits,
    maps: Vec<Map>,
}

/// What is asked.
pub(super) enum Model {
    Filler(Box<Filler>),
    Tuned(Box<Tuned>),
}

impl Model {
    /// Sizes of the encoder.
    pub(super) fn config(&self) -> &Sizes {
        match self {
            Model::Filler(filler) => filler.config(),
            Model::Tuned(tuned) => tuned.config(),
        }
    }

    /// The logits of the vocabulary at the masks of some facts, and of how many facts nothing is known though the model attends by maps.
    ///
    /// # Errors
    /// When a sentence does not fit.
    pub(super) fn logits(&self, asked: &[Asked]) -> anyhow::Result<(Vec<Vec<f32>>, u64)> {
        match self {
            Model::Tuned(tuned) => tuned.logits(asked),
            Model::Filler(filler) => {
                let mut rows = Rows::default();
                asked.iter().for_each(|one| rows.push(one.ids.iter().map(|id| (*id, 0))));
                let blanks: Vec<usize> = asked.iter().map(|one| one.blank).collect();
                Ok((filler.logits(&rows, &blanks)?, 0))
            }
        }
    }
}

/// A fine-tuned model.
pub(super) struct Tuned {
    predictor: Predictor,
    task: usize,
    known: Option<Known>,
}

impl Tuned {
    /// The model in `folder`; `mapping` makes the maps that it attends by, if it does, of sentences of at most `most` tokens.
    ///
    /// # Errors
    /// When it was not fine-tuned on masked words, or what its maps are made with is missing.
    pub(super) fn load(
        folder: &Path,
        mapping: Option<&Arc<Mapping>>,
        most: usize,
        context: &Context,
        device: &Device,
    ) -> anyhow::Result<Self> {
        let file = TaskFile::read(folder)?;
        let task = file.tasks.iter().find(|task| task.asked == task_file::Asked::MaskedWords);
        let task = task.with_context(|| {
            let asked = file.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>().join(", ");
            format!("{}: fine-tuned on {asked}, which asks for no masked words: name one on a set of format `masked_words`", folder.display())
        })?;
        let predictor = Predictor::load(folder, device)?;
        let known = match &file.knowledge {
            None => None,
            Some(knowledge) => {
                let mapping = mapping.context(
                    "the model attends by maps, and nothing says how these are made: add the table [maps]",
                )?;
                let tools = mapping.tools_for(&knowledge.maps, context)?;
                let limits = mapping.limits_of(most).context("lama.max_tokens")?;
                let (positions, auxiliary) = (predictor.config().max_position_embeddings, limits.auxiliary);
                anyhow::ensure!(
                    most + auxiliary <= positions,
                    "lama.max_tokens is {most}, with {auxiliary} tokens of auxiliary terms (maps.limits.auxiliary), but the encoder has {positions} positions: lower it"
                );
                Some(Known { limits, maps: knowledge.maps.clone(), tools })
            }
        };
        Ok(Self { task: predictor.task(&task.name)?, predictor, known })
    }

    /// Sizes of the encoder.
    pub(super) fn config(&self) -> &Sizes {
        self.predictor.config()
    }

    /// The logits of the vocabulary at the mask of each fact, and of how many nothing is known, since their words have other tokens than the sentence.
    ///
    /// # Errors
    /// When a sentence does not fit.
    pub(super) fn logits(&self, asked: &[Asked]) -> anyhow::Result<(Vec<Vec<f32>>, u64)> {
        let (mut rows, mut unknown) = (Rows::default(), 0);
        match &self.known {
            None => asked.iter().for_each(|of| rows.push(of.ids.iter().map(|id| (*id, 0)))),
            Some(known) => {
                let texts: Vec<&str> = asked.iter().map(|of| of.fact.sentence.as_str()).collect();
                let made = known.tools.with_masks(known.limits, &texts).map_err(|(text, error)| {
                    anyhow::Error::new(error)
                        .context(format!("{:?}", texts.get(text).copied().unwrap_or_default()))
                })?;
                for (sample, of) in made.into_iter().zip(asked) {
                    let is_own = sample.is_of(&of.ids);
                    unknown += u64::from(!is_own);
                    let sample = if is_own { sample } else { Sample::unknown(&of.ids) };
                    rows.push_known(&sample.row(), &known.maps)?;
                }
            }
        }
        let places: Vec<Vec<usize>> = asked.iter().map(|of| vec![of.blank]).collect();
        Ok((self.predictor.at(self.task, &rows, &places)?, unknown))
    }
}
