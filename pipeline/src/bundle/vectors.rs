//! Texts as vectors: what an encoder makes of them, pooled.

use std::io::BufRead;
use std::path::Path;

use anyhow::Context as _;
use model::Device;
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::pool::{Pool, Pooling};
use model::encoder::tokens::Tokens;
use model::encoder::{Encoder, Pass};
use serde_json::Value;
use tasks::downstream::encode::{Cut, Cuts, Frame, Framed};
use tasks::token::encode::Vocabulary;

use super::lines::Inputs;
use super::{LINES, TOKENS, asked_together, push, vocabulary};
use crate::stage::encoder;
use crate::stage::finetune::quirks::PairOrder;

/// An encoder with all that it takes to ask it.
#[derive(Debug)]
pub(crate) struct Encoding {
    config: Config,
    encoder: Encoder,
    pool: Pool,
    vocabulary: Vocabulary,
    most: usize,
}

/// How texts become vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    /// What of a row becomes the vector.
    pub pooling: Pooling,
    /// The vocabulary, where the folder has none.
    pub vocabulary: Option<&'a Path>,
    /// Most tokens of a text; as many as the encoder has positions without it.
    pub most: Option<usize>,
}

/// Refuses a fine-tuned model whose encoder computes otherwise than this one would.
fn plain(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(checkpoint::OUTPUTS_FILE);
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(());
    }
    let index: Value = serde_json::from_slice(&checkpoint::read_settings(&path)?)
        .with_context(|| path.display().to_string())?;
    let of_outputs = |of: &str| index.get("outputs").and_then(|outputs| outputs.get(of));
    let found = [
        ("attention by knowledge", of_outputs("knowledge")),
        ("attention by labels", of_outputs("labels")),
        ("gates of heads", index.get("gates")),
    ];
    for (what, found) in found {
        anyhow::ensure!(
            found.is_none_or(Value::is_null),
            "{}: this encoder was fine-tuned with {what}, and its vectors without it would be those of another model: encode with the checkpoint that it was fine-tuned from",
            path.display()
        );
    }
    Ok(())
}

impl Encoding {
    /// The encoder in `folder`: `config.json`, `model.safetensors` and a vocabulary.
    ///
    /// # Errors
    /// Names the file that is missing, damaged or none of the others'.
    pub(crate) fn open(folder: &Path, how: &How<'_>) -> anyhow::Result<Self> {
        anyhow::ensure!(
            how.pooling != Pooling::LearnedAttn,
            "pooling learned_attn belongs to a training's outputs: use cls, mean, max or learned_pooler"
        );
        let loaded = checkpoint::load(folder, &Device::Cpu)?;
        anyhow::ensure!(
            how.pooling != Pooling::LearnedPooler || loaded.fresh.is_empty(),
            "{}: the checkpoint has no pooler: use cls, mean or max",
            folder.display()
        );
        plain(folder)?;
        let vocabulary = vocabulary::of_folder(folder, how.vocabulary)?;
        let (config, params) = (loaded.config, loaded.params.freeze(|_| true));
        encoder::fits(vocabulary.size(), &config).with_context(|| folder.display().to_string())?;
        let positions = config.max_position_embeddings;
        let most = how.most.unwrap_or(positions);
        anyhow::ensure!(
            most <= positions,
            "--max-tokens is {most}, but the encoder has {positions} positions"
        );
        let encoder = Encoder::new(&config, &params)?;
        let pool = Pool::new(how.pooling, &params, "")?;
        Ok(Self { config, encoder, pool, vocabulary, most })
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
            let asked = inputs.batch(LINES)?;
            if asked.is_empty() {
                return Ok(cuts);
            }
            let (mut rows, mut ids) = (self.framed()?, Vec::new());
            for input in asked {
                push(&self.vocabulary, &input, PairOrder::AsGiven, &mut rows)?;
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
        Ok(Framed::new(Frame { special, most: self.most, cut: Cut::Longest })?)
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
        let tokens = Tokens::new(&[("texts", &rows.rows)], &self.config, &Device::Cpu)?;
        let hidden = self.encoder.forward(&self.config, &tokens, &Pass::PLAIN)?;
        let Some(x_nd) = hidden.last() else { anyhow::bail!("the encoder has no layer") };
        let vectors = self.pool.forward(x_nd, &tokens.spans)?.to_vec2::<f32>()?;
        let infinite = |vector: &Vec<f32>| vector.iter().any(|number| !number.is_finite());
        anyhow::ensure!(
            !vectors.iter().any(infinite),
            "{}: the encoder makes numbers of it that are infinite or none: its weights are too large to compute with; look at how it was trained",
            asked_together(
                ids.iter().zip(&vectors).filter(|(_, vector)| infinite(vector)).map(|((line, _), _)| *line)
            )
        );
        ids.into_iter().zip(vectors).try_for_each(|((_, id), vector)| each(id, vector))
    }
}
