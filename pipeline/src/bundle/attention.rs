//! What the tokens of a text attend to in a model: in a fine-tuned one by its own attention, in any other checkpoint as BERT does.

use std::path::Path;

use anyhow::Context as _;
use downstream::encode::{Cut, Cuts, Frame, Framed};
use model::Device;
use model::head::mask::Mask;
use model::predict::{Attended, Predictor};
use tasks::token::encode::Vocabulary;

use super::answer::Answering;
use super::known::Around;
use super::lines::Input;
use super::opened::Bundle;
use super::{push, task_file};
use crate::stage::encoder;
use crate::stage::finetune::quirks::PairOrder;

/// A text's tokens and their attention.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The tokens as the vocabulary spells them.
    pub(crate) tokens: Vec<String>,
    /// Layer after layer.
    pub(crate) layers: Vec<Attended>,
    /// Each map of what is known that the model attends by: its name, and token by token its values.
    pub(crate) maps: Vec<(&'static str, Vec<f32>)>,
    /// What was cut of it.
    pub(crate) cuts: Cuts,
}

/// What the tokens of `input` attend to in the model in `folder`, whose heads have the gates of `mask` if there is one.
///
/// # Errors
/// Names the file of the folder that is missing, damaged or none of the others', or what the input lacks.
pub(crate) fn seen(
    folder: &Path,
    mask: Option<&Path>,
    input: &Input,
    around: Around<'_>,
) -> anyhow::Result<Seen> {
    if folder.join(task_file::FILE).exists() {
        // Rows of one task are as good as another's where all are asked for alone.
        let alone = task_file::TaskFile::read(folder)?.all_alone();
        let bundle = Bundle { folder, mask, device: &Device::Cpu };
        let answering = Answering::open(bundle, alone.as_deref(), 1, around)?;
        return answering.attention(input);
    }
    let mut predictor = Predictor::encoder(folder, &Device::Cpu)?;
    if let Some(mask) = mask {
        predictor = predictor.with_gates(Mask::read(mask)?)?;
    }
    let vocabulary = tasks::token::folder::of_folder(folder, None)?;
    encoder::fits(vocabulary.size(), vocabulary.special(), predictor.config())
        .with_context(|| folder.display().to_string())?;
    let most = predictor.config().max_position_embeddings;
    let mut rows = Framed::new(Frame { special: vocabulary.special(), most, cut: Cut::Longest })?;
    push(&vocabulary, input, PairOrder::AsGiven, &mut rows)?;
    let layers = predictor.attention(&rows.rows)?;
    Ok(Seen { tokens: spelt(&vocabulary, &rows.rows.ids), layers, maps: Vec::new(), cuts: rows.cuts })
}

/// Tokens as the vocabulary spells them.
pub(super) fn spelt(vocabulary: &Vocabulary, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|&id| vocabulary.token(id).unwrap_or_else(|| id.to_string())).collect()
}
