//! A fine-tuned model's answers. Knows no training.

use std::io::BufRead;
use std::path::Path;

use anyhow::Context as _;
use model::Device;
use model::head::mask::Mask;
use model::predict::Predictor;
use serde_json::{Map, Value, json};
use tasks::downstream::encode::{Frame, Framed};
use tasks::token::encode::Vocabulary;

use super::lines::{Input, Inputs};
use super::task_file::{Asked, TaskFile};
use super::{LINES, TOKENS, push, vocabulary};

/// A fine-tuned model with all that it takes to ask it.
#[derive(Debug)]
pub struct Answering {
    predictor: Predictor,
    vocabulary: Vocabulary,
    file: TaskFile,
    output: usize,
    /// Classes that are shown, the best ones.
    top: usize,
}

impl Answering {
    /// The model in `folder`, whose heads have the gates of `mask` if there is one.
    ///
    /// # Errors
    /// Names the file of the folder that is missing, damaged or none of the others', and what to do.
    pub fn open(folder: &Path, mask: Option<&Path>, top: usize) -> anyhow::Result<Self> {
        let file = TaskFile::read(folder)?;
        let mut predictor = Predictor::load(folder, &Device::Cpu)?;
        if let Some(mask) = mask {
            predictor = predictor.with_gates(Mask::read(mask)?)?;
        }
        let output = predictor
            .task(&file.name)
            .with_context(|| folder.join(super::task_file::FILE).display().to_string())?;
        let vocabulary = vocabulary::of_folder(folder, None)?;
        let (ids, width) = (predictor.config().vocab_size, predictor.outline().tasks[output].output.width());
        anyhow::ensure!(
            vocabulary.size() == ids,
            "{}: the vocabulary has {} entries and the encoder {ids} token ids: the folder's files are not of one model",
            folder.display(),
            vocabulary.size()
        );
        anyhow::ensure!(
            file.classes.is_empty() || file.classes.len() == width,
            "{}: {} names {} classes, but the output has {width}: the folder's files are not of one model",
            folder.display(),
            super::task_file::FILE,
            file.classes.len()
        );
        Ok(Self { predictor, vocabulary, file, output, top })
    }

    /// Answers to all inputs, in their order, `each` being handed one after the other.
    ///
    /// # Errors
    /// When an input cannot be read or encoded, or `each` fails.
    pub fn answer(
        &self,
        inputs: &mut Inputs<'_, impl BufRead>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let asked = inputs.batch(LINES)?;
            if asked.is_empty() {
                return Ok(());
            }
            let (mut rows, mut waiting) = (self.framed()?, Vec::new());
            for input in asked {
                anyhow::ensure!(
                    self.file.asked != Asked::Rank || input.pair.is_some(),
                    "line {}: this model ranks second texts for a first one, but there is no `pair`: give JSON lines with `text` and `pair` (--lines json)",
                    input.line
                );
                push(&self.vocabulary, &input, &mut rows)?;
                waiting.push(input);
                if rows.rows.ids.len() >= TOKENS {
                    let full = std::mem::replace(&mut rows, self.framed()?);
                    self.flush(&full, std::mem::take(&mut waiting), each)?;
                }
            }
            self.flush(&rows, waiting, each)?;
        }
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        let special = self.vocabulary.special();
        Ok(Framed::new(Frame { special, most: self.file.max_tokens, cut: self.file.cut })?)
    }

    fn flush(
        &self,
        rows: &Framed,
        asked: Vec<Input>,
        each: &mut dyn FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let logits = self.predictor.logits(self.output, &rows.rows)?;
        asked.into_iter().zip(logits).try_for_each(|(line, logits)| each(self.said(line, &logits)))
    }

    /// What is said of a line.
    fn said(&self, line: Input, logits: &[f32]) -> Value {
        let mut said = Map::new();
        if let Some(id) = line.id {
            said.insert("id".to_owned(), id);
        }
        let rounded = |x: f64| (x * 1e6).round() / 1e6;
        match self.file.asked {
            Asked::OneClass => {
                let shares = shares(logits);
                let best = self.best(&shares);
                said.insert("class".to_owned(), json!(best.first().map(|(name, _)| name)));
                let shown = best
                    .iter()
                    .take(self.top)
                    .map(|(name, share)| ((*name).to_owned(), json!(rounded(*share))));
                said.insert("shares".to_owned(), Value::Object(shown.collect()));
            }
            Asked::AnyClasses => {
                let shares: Vec<f64> = logits.iter().map(|&x| 1.0 / (1.0 + f64::from(-x).exp())).collect();
                let best = self.best(&shares);
                let held = best.iter().filter(|(_, share)| *share >= 0.5).map(|(name, _)| json!(name));
                said.insert("classes".to_owned(), held.collect());
                let shown = best
                    .iter()
                    .take(self.top)
                    .map(|(name, share)| ((*name).to_owned(), json!(rounded(*share))));
                said.insert("shares".to_owned(), Value::Object(shown.collect()));
            }
            Asked::Score | Asked::Rank => {
                said.insert("score".to_owned(), json!(logits.first()));
            }
        }
        Value::Object(said)
    }

    /// The best classes with their shares, the best one first.
    fn best(&self, shares: &[f64]) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.file.classes.iter().map(String::as_str).zip(shares.iter().copied()).collect();
        all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        all
    }
}

/// The share of each class.
fn shares(logits: &[f32]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|&x| f64::from(x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
