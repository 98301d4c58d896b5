//! A fine-tuned model's folder, read whole and compared with itself.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use model::Device;
use model::head::mask::Mask;
use model::predict::Predictor;
use tasks::token::encode::Vocabulary;

use super::known::{Around, Known};
use super::task_file::{Asked, FILE, Task, TaskFile};
use crate::stage::encoder;

/// A fine-tuned model's folder, and how it is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bundle<'a> {
    pub(crate) folder: &'a Path,
    /// A head mask whose gates the model has.
    pub(crate) mask: Option<&'a Path>,
    /// Where it computes.
    pub(crate) device: &'a Device,
}

/// What is read of a folder.
pub(super) struct Opened {
    pub(super) predictor: Predictor,
    pub(super) vocabulary: Vocabulary,
    pub(super) file: TaskFile,
}

impl Opened {
    /// Reads a folder whole.
    ///
    /// # Errors
    /// Names the file of the folder that is missing, damaged or none of the others', and what to do.
    pub(super) fn open(bundle: Bundle<'_>) -> anyhow::Result<Self> {
        let Bundle { folder, mask, device } = bundle;
        TaskFile::expected(folder)?;
        // Compares the whole folder with its digests, so what is read of it from here on is what was written.
        let mut predictor = Predictor::load(folder, device)?;
        let file = TaskFile::read(folder)?;
        if let Some(mask) = mask {
            predictor = predictor.with_gates(Mask::read(mask)?)?;
        }
        let vocabulary = tasks::token::folder::of_folder(folder, None)?;
        encoder::fits(vocabulary.size(), vocabulary.special(), predictor.config())
            .with_context(|| format!("{}: the folder's files are not of one model", folder.display()))?;
        let (maps, told) = (&predictor.outline().knowledge, &file.knowledge);
        anyhow::ensure!(
            maps.as_ref().map(|of| of.maps) == told.as_ref().map(|of| of.maps.len()),
            "{}: what it says of the maps that the model attends by is not what {} says: fine-tune again with this engraft",
            folder.join(FILE).display(),
            model::checkpoint::OUTPUTS_FILE,
        );
        Ok(Self { predictor, vocabulary, file })
    }

    /// The same with its task of this name, or its only one, if that is one of `asked`, which is asked for by itself.
    ///
    /// # Errors
    /// As [`Opened::open`].
    pub(super) fn of_task(
        bundle: Bundle<'_>,
        task: Option<&str>,
        asked: Asked,
    ) -> anyhow::Result<Option<(Self, Task)>> {
        TaskFile::expected(bundle.folder)?;
        let tasks = TaskFile::read(bundle.folder)?.tasks;
        let named: Vec<_> = tasks.into_iter().filter(|of| task.is_none_or(|task| task == of.name)).collect();
        match <[Task; 1]>::try_from(named) {
            Ok([of]) if of.asked == asked => Ok(Some((Self::open(bundle)?, of))),
            _ => Ok(None),
        }
    }

    /// What makes the maps of rows of at most so many tokens, if the model attends by any, of what is found `around`.
    ///
    /// # Errors
    /// Names the folder, and what is missing or damaged.
    pub(super) fn known(
        &self,
        folder: &Path,
        lengths: &BTreeSet<usize>,
        around: Around<'_>,
    ) -> anyhow::Result<Option<Known>> {
        let known = |told| Known::open(&self.file, told, lengths, self.vocabulary.clone(), around);
        let known = self.file.knowledge.as_ref().map(known);
        known.transpose().with_context(|| folder.display().to_string())
    }
}
