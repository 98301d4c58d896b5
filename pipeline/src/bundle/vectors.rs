//! Texts as vectors: what an encoder makes of them, pooled.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use anyhow::Context as _;
use base::setting::InvalidSetting;
use downstream::encode::{Cut, Cuts, Frame, Framed};
use model::Device;
use model::checkpoint;
use model::encoder::pool::Pooling;
use model::predict::Predictor;
use serde_json::Value;
use tasks::token::encode::Vocabulary;

use super::known::{Around, Known, Of};
use super::lines::Inputs;
use super::task_file::{self, TaskFile};
use super::{LINES, MAPPED, TOKENS, asked_together, push};
use crate::stage::encoder;
use crate::stage::finetune::quirks::PairOrder;

/// An encoder with all that it takes to ask it.
#[derive(Debug)]
pub(crate) struct Encoding {
    predictor: Predictor,
    pooling: Pooling,
    vocabulary: Vocabulary,
    most: usize,
    /// What makes maps, if the model attends by any.
    known: Option<Known>,
    /// How rows of two texts are laid out.
    pairs: PairOrder,
    /// Whether nobody said how to pool, so that it is by the first token.
    is_guessed: bool,
}

/// How texts become vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    /// What of a row becomes the vector; without it what the folder tells.
    pub pooling: Option<Pooling>,
    /// The vocabulary, where the folder has none.
    pub vocabulary: Option<&'a Path>,
    /// Most tokens of a text; as many as the encoder has positions without it.
    pub most: Option<usize>,
    /// Where the encoder computes.
    pub device: &'a Device,
}

/// What a file of settings says; nothing where there is none.
fn settings(path: &Path) -> anyhow::Result<Option<Value>> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let bytes = checkpoint::read_settings(path)?;
    Ok(Some(serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?))
}

/// Whether a folder's encoder was fine-tuned with more than plain attention, without which its vectors would be those of another model.
pub(super) fn is_own(folder: &Path) -> anyhow::Result<bool> {
    let Some(index) = settings(&folder.join(checkpoint::OUTPUTS_FILE))? else { return Ok(false) };
    let of_outputs = |of: &str| index.get("outputs").and_then(|outputs| outputs.get(of));
    let found = [of_outputs("knowledge"), of_outputs("labels"), index.get("gates")];
    Ok(found.into_iter().flatten().any(|found| !found.is_null()))
}

/// How the vectors of a folder's model are pooled, where it says so: as it was trained, or as sentence-transformers would.
///
/// # Errors
/// When a file that would say so is damaged.
pub(super) fn told(folder: &Path) -> anyhow::Result<Option<Pooling>> {
    if let Some(index) = settings(&folder.join(checkpoint::OUTPUTS_FILE))? {
        // Outputs of single tokens pool nothing, so what stands there was trained by nobody.
        let of_tokens =
            |task: &Value| matches!(task["output"]["kind"].as_str(), Some("tag" | "span" | "vocabulary"));
        let tasks = index["outputs"]["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        if tasks.iter().all(of_tokens) {
            return Ok(None);
        }
        return Ok(serde_json::from_value(index["outputs"]["pooling"].clone()).ok());
    }
    let Some(modes) = settings(&folder.join(POOLING))? else { return Ok(None) };
    let named = modes_of(&modes);
    let known = |name: &str| match name {
        "cls" | "cls_token" => Some(Pooling::Cls),
        "mean" | "mean_tokens" => Some(Pooling::Mean),
        "max" | "max_tokens" => Some(Pooling::Max),
        _ => None,
    };
    // Several are put side by side there, which nothing does here.
    match named.as_slice() {
        [one] if known(one).is_some() => Ok(known(one)),
        _ => anyhow::bail!(
            "{}: it pools by {}, which engraft does not: say --pooling cls, mean, max or learned_pooler",
            folder.join(POOLING).display(),
            if named.is_empty() { "nothing".to_owned() } else { named.join(" and ") }
        ),
    }
}

/// Where sentence-transformers says how vectors are pooled.
const POOLING: &str = "1_Pooling/config.json";

/// The poolings that it names: newer versions have one key for them, older ones a key for each.
fn modes_of(modes: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match &modes["pooling_mode"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(text).collect(),
        _ => {
            let keys = modes.as_object().into_iter().flatten().filter(|(_, on)| **on == Value::Bool(true));
            keys.filter_map(|(key, _)| key.strip_prefix("pooling_mode_").map(str::to_owned)).collect()
        }
    }
}

/// Most tokens of a row, where the encoder has so many `positions`.
fn most(how: &How<'_>, otherwise: usize, positions: usize) -> anyhow::Result<usize> {
    let most = how.most.unwrap_or(otherwise);
    anyhow::ensure!(most <= positions, "--max-tokens is {most}, but the encoder has {positions} positions");
    Ok(most)
}

impl Encoding {
    /// The encoder in `folder`: `config.json`, `model.safetensors` and a vocabulary. Maps that it attends by are made with what is found `around`.
    ///
    /// # Errors
    /// Names the file that is missing, damaged or none of the others'.
    pub(crate) fn open(folder: &Path, how: &How<'_>, around: Around<'_>) -> anyhow::Result<Self> {
        let told = match how.pooling {
            Some(pooling) => Some(pooling),
            None => told(folder)?,
        };
        let pooling = told.unwrap_or(Pooling::Cls);
        if is_own(folder)? || (pooling == Pooling::LearnedAttn && folder.join(task_file::FILE).is_file()) {
            return Ok(Self { is_guessed: told.is_none(), ..Self::own(folder, how, pooling, around)? });
        }
        anyhow::ensure!(
            pooling != Pooling::LearnedAttn,
            "pooling learned_attn belongs to a training's outputs: say --pooling cls, mean, max or learned_pooler"
        );
        let predictor = Predictor::encoder(folder, how.device)?;
        predictor.can_pool(pooling).with_context(|| folder.display().to_string())?;
        let vocabulary = tasks::token::folder::of_folder(folder, how.vocabulary)?;
        encoder::fits(vocabulary.size(), vocabulary.special(), predictor.config())
            .with_context(|| folder.display().to_string())?;
        let positions = predictor.config().max_position_embeddings;
        let (most, is_guessed) = (most(how, positions, positions)?, told.is_none());
        Ok(Self { predictor, pooling, vocabulary, most, known: None, pairs: PairOrder::AsGiven, is_guessed })
    }

    /// A fine-tuned model with an attention of its own, or with gates. Rows are as long as they were in its training unless more is asked for.
    fn own(folder: &Path, how: &How<'_>, pooling: Pooling, around: Around<'_>) -> anyhow::Result<Self> {
        let predictor = Predictor::load(folder, how.device)?;
        predictor.can_pool(pooling).with_context(|| folder.display().to_string())?;
        let file = TaskFile::read(folder)?;
        let vocabulary = tasks::token::folder::of_folder(folder, how.vocabulary)?;
        encoder::fits(vocabulary.size(), vocabulary.special(), predictor.config())
            .with_context(|| folder.display().to_string())?;
        let most = most(how, file.max_tokens, predictor.config().max_position_embeddings)?;
        let lengths = BTreeSet::from([most]);
        let known = |told| Known::open(&file, told, &lengths, vocabulary.clone(), around);
        let known = file.knowledge.as_ref().map(known);
        let known = known.transpose().with_context(|| folder.display().to_string())?;
        Ok(Self { predictor, pooling, vocabulary, most, known, pairs: file.pairs, is_guessed: false })
    }

    /// Whether nothing says how vectors are pooled, so that each is the first token's state.
    pub(crate) fn is_guessed(&self) -> bool {
        self.is_guessed
    }

    /// The vectors of all inputs, in their order, `each` being handed one after the other with the input's id. Returns what was cut of texts that
    /// are too long.
    ///
    /// # Errors
    /// When an input cannot be read or encoded, or `each` fails.
    pub(crate) fn encode(
        &self,
        inputs: &mut Inputs<'_, impl BufRead>,
        each: &mut dyn FnMut(Option<Value>, Vec<f32>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Cuts> {
        let mut cuts = Cuts::default();
        loop {
            let asked = inputs.batch(if self.known.is_some() { MAPPED } else { LINES })?;
            if asked.is_empty() {
                return Ok(cuts);
            }
            let known = self.known.as_ref().map(|known| known.rows(&asked, &[Of::Whole])).transpose()?;
            let (mut rows, mut ids) = (self.framed()?, Vec::new());
            for (number, input) in asked.into_iter().enumerate() {
                match &known {
                    Some(known) => drop(known.push(number, self.most, &mut rows)?),
                    None => push(&self.vocabulary, &input, self.pairs, &mut rows)?,
                }
                ids.push((input.line, input.id));
                if rows.rows.ids.len() >= TOKENS {
                    let full = std::mem::replace(&mut rows, self.framed()?);
                    cuts.add(full.cuts);
                    self.flush(&full, std::mem::take(&mut ids), each)?;
                }
            }
            cuts.add(rows.cuts);
            self.flush(&rows, ids, each)?;
        }
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        let special = self.vocabulary.special();
        let framed = Framed::new(Frame { special, most: self.most, cut: Cut::Longest });
        Ok(framed.map_err(|error| InvalidSetting { setting: "--max-tokens".into(), ..error })?)
    }

    fn flush(
        &self,
        rows: &Framed,
        ids: Vec<(u64, Option<Value>)>,
        each: &mut dyn FnMut(Option<Value>, Vec<f32>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let vectors = self
            .predictor
            .pooled(&rows.rows, self.pooling)
            .with_context(|| asked_together(ids.iter().map(|(line, _)| *line)))?;
        ids.into_iter().zip(vectors).try_for_each(|((_, id), vector)| each(id, vector))
    }
}
