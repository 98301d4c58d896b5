//! A trained model that only answers: from rows of tokens to logits, hidden states and pooled vectors.

mod alone;
mod attended;
mod index;
#[cfg(feature = "cuda")]
pub(crate) mod kernels;
mod one_task;
mod words;

use std::path::Path;
use std::sync::Arc;

use base::read::ReadError;
use batch::rows::Rows;
use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

pub use attended::Attended;
pub(crate) use index::Index;
use index::read_index;
pub use one_task::write_one_task;

use crate::Error;
use crate::attention::{Attention, Chosen};
use crate::checkpoint::{self, OUTPUTS_FILE, OUTPUTS_WEIGHTS_FILE, stored};
use crate::encoder::config::Config;
#[cfg(feature = "cuda")]
use crate::encoder::pool;
use crate::encoder::pool::{Pool, Pooling};
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Read};
use crate::head::importance::{Importance, Probe, Samples};
use crate::head::mask::Mask;
use crate::nn::in_pool;
use crate::output::{Anchor, Batch, Outline, Outputs, Targets, pool_name, some_of};
use crate::params::{ADAPTERS, OUTPUTS, Params, of_outputs};
#[cfg(feature = "cuda")]
use kernels::Kernels;

/// An encoder and its outputs without gradients and without dropout.
#[derive(Debug, Clone)]
pub struct Predictor {
    config: Config,
    encoder: Encoder,
    outputs: Outputs,
    attention: Arc<dyn Attention>,
    params: Params,
    /// What its checkpoint lacked of the encoder, which has numbers drawn at random.
    lacking: Vec<String>,
    /// Factors of the heads' contexts, `[l, h]`.
    gates: Option<(Mask, Tensor)>,
    device: Device,
    /// The same model as launches of kernels, on a CUDA device.
    #[cfg(feature = "cuda")]
    kernels: Kernels,
}

/// How many numbers a fine-tuned model has where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The encoder as it is without fine-tuning.
    pub encoder: usize,
    /// What its attention has more than a plain one: convolutions over maps, or embeddings of labels.
    pub attention: usize,
    /// The outputs of all tasks.
    pub outputs: usize,
}

impl Predictor {
    /// A fine-tuned model from its checkpoint folder, under the gates that it was fine-tuned with.
    ///
    /// # Errors
    /// Names the file that is missing, damaged, of another version or made by another training, and what to do.
    pub fn load(dir: &Path, device: &Device) -> Result<Self, Error> {
        checkpoint::digests::verify(dir)?;
        let Index { outputs: outline, gates, .. } = read_index(&dir.join(OUTPUTS_FILE))?;
        let (checkpoint::Checkpoint { config, params, fresh, .. }, _) =
            checkpoint::load_verified(dir, device)?;
        if !fresh.is_empty() {
            return Err(lacking(&dir.join(checkpoint::WEIGHTS_FILE), &fresh));
        }
        let path = dir.join(OUTPUTS_WEIGHTS_FILE);
        let tensors = stored::read_tensors(&path, device)?;
        let tensors = tensors.into_iter().map(|(name, tensor)| (of_outputs(&name), tensor)).collect();
        let outputs = Params::from_tensors(&outline.specs(&config), tensors)
            .map_err(|source| checkpoint::error::in_file(path, source))?;
        let params = params.with(outputs);
        let predictor = Predictor::over(&config, &outline, &outline.attention(), &params, device)?;
        match gates {
            Some(gates) => Ok(predictor.with_gates(gates)?),
            None => Ok(predictor),
        }
    }

    /// A model over parameters whose updates it follows.
    pub(crate) fn over(
        config: &Config,
        outline: &Outline,
        chosen: &Chosen,
        params: &Params,
        device: &Device,
    ) -> Result<Self, Error> {
        let params = params.without(ADAPTERS).freeze(|_| true);
        let encoder = Encoder::new(config, &params)?;
        let outputs = Outputs::new(outline, config, &params)?;
        let attention = chosen.sibling().build(config, &params)?;
        let (config, device) = (config.clone(), device.clone());
        Ok(Predictor {
            #[cfg(feature = "cuda")]
            kernels: Kernels::new(chosen),
            config,
            encoder,
            outputs,
            attention,
            params,
            lacking: vec![],
            gates: None,
            device,
        })
    }

    /// The same model whose heads' contexts are multiplied by the numbers of a mask: 1 is on, 0 is off.
    ///
    /// # Errors
    /// When the mask is of another shape.
    pub fn with_gates(mut self, gates: Mask) -> Result<Self, Error> {
        gates.check([self.config.num_hidden_layers, self.config.num_attention_heads])?;
        let gates_lh = gates.gates(&self.device)?;
        self.gates = Some((gates, gates_lh));
        Ok(self)
    }

    /// The same model with all heads on.
    #[must_use]
    pub fn without_gates(mut self) -> Self {
        self.gates = None;
        self
    }

    /// The gates, if there are any.
    #[must_use]
    pub fn gates(&self) -> Option<&Mask> {
        self.gates.as_ref().map(|(mask, _)| mask)
    }

    /// Sizes of the encoder.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the outputs are.
    #[must_use]
    pub fn outline(&self) -> &Outline {
        self.outputs.outline()
    }

    /// How many numbers it has where.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let mut found = Parameters::default();
        let of_attention = self.outline().attention().sibling().specs(&self.config);
        for (name, tensor) in self.params.iter() {
            let of = match name {
                _ if !name.starts_with(OUTPUTS) => &mut found.encoder,
                _ if of_attention.iter().any(|spec| spec.name == name) => &mut found.attention,
                _ => &mut found.outputs,
            };
            *of += tensor.elem_count();
        }
        found
    }

    /// The number of the task of this name.
    ///
    /// # Errors
    /// Names the tasks that there are.
    pub fn task(&self, name: &str) -> Result<usize, Error> {
        let tasks = &self.outline().tasks;
        let names = tasks.iter().map(|task| task.name.as_str());
        tasks.iter().position(|task| task.name == name).ok_or_else(|| {
            Error::Misfit(format!(
                "the model has no output for `{name}`, only for {}; name one of them",
                names.collect::<Vec<_>>().join(", ")
            ))
        })
    }

    /// The logits of each row for a task, by its number: one of each class, or the one score; of tags those of each token, row after row. A
    /// softmax makes shares of those of [`crate::output::Output::OneClass`], the logistic function of each of those of
    /// [`crate::output::Output::AnyClasses`]. Of an embedding they are its vector.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or there is no such task.
    pub fn logits(&self, task: usize, rows: &Rows) -> Result<Vec<Vec<f32>>, Error> {
        Ok(self.logits_of(&[task], rows)?.pop().unwrap_or_default())
    }

    /// The logits of several tasks for the same rows, in one pass through the encoder; see [`Predictor::logits`].
    ///
    /// # Errors
    /// When a row does not fit the encoder, or there is no such task.
    pub fn logits_of(&self, tasks: &[usize], rows: &Rows) -> Result<Vec<Vec<Vec<f32>>>, Error> {
        let names = tasks.iter().map(|&task| Ok(self.outline().task(task)?.name.as_str()));
        let names = names.collect::<Result<Vec<_>, Error>>()?.join(", ");
        if rows.is_empty() {
            return Ok(vec![vec![]; tasks.len()]);
        }
        #[cfg(feature = "cuda")]
        if let Some((_, _, logits)) = self.by_kernels(&names, rows, tasks)? {
            return logits.iter().map(|logits_mc| finite(logits_mc.to_vec2()?)).collect();
        }
        let tokens = Tokens::new(&[(&names, rows)], &self.config, &self.device)?;
        let read = self.outputs.read_by_logits(&tokens, tasks)?;
        let x_nd = self.read(&tokens, read.as_deref())?;
        let each = tasks.iter();
        each.map(|&task| {
            let of_task = self.outputs.rows(&tokens, 0, task);
            finite(self.outputs.logits(&x_nd, of_task, task, None)?.to_vec2()?)
        })
        .collect()
    }

    /// The last hidden state of each token, row after row.
    ///
    /// # Errors
    /// When a row does not fit the encoder.
    pub fn hidden(&self, rows: &Rows) -> Result<Vec<Vec<f32>>, Error> {
        if rows.is_empty() {
            return Ok(vec![]);
        }
        #[cfg(feature = "cuda")]
        if let Some((_, x_nd, _)) = self.by_kernels("texts", rows, &[])? {
            return finite(x_nd.to_vec2()?);
        }
        let tokens = Tokens::new(&[("texts", rows)], &self.config, &self.device)?;
        finite(self.forward(&tokens)?.to_vec2()?)
    }

    /// Whether vectors can be pooled so.
    ///
    /// # Errors
    /// When nothing has taught the model such a pooling.
    pub fn can_pool(&self, pooling: Pooling) -> Result<(), Error> {
        if pooling == Pooling::LearnedAttn && self.outline().pooling != pooling {
            return Err(Error::Misfit(format!(
                "the model pools by {found} and has learned no weights for learned_attn; ask for another pooling, or fine-tune with that one",
                found = self.outline().pooling.name()
            )));
        }
        if pooling == Pooling::LearnedPooler && !self.lacking.is_empty() {
            return Err(Error::Misfit(format!(
                "the checkpoint has no pooler (it lacks {lacking}): pool by cls, mean or max",
                lacking = self.lacking.join(", ")
            )));
        }
        Ok(())
    }

    /// One vector for each row, pooled from the last hidden states.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or as [`Predictor::can_pool`].
    pub fn pooled(&self, rows: &Rows, pooling: Pooling) -> Result<Vec<Vec<f32>>, Error> {
        self.can_pool(pooling)?;
        if rows.is_empty() {
            return Ok(vec![]);
        }
        #[cfg(feature = "cuda")]
        if let Some((tokens, x_nd, _)) = self.by_kernels("texts", rows, &[])? {
            let params = self.params.part_on_cpu(|name| pool::has(name) || name.starts_with(&pool_name()))?;
            let pool = Pool::new(pooling, &params, &pool_name())?;
            return finite(pool.forward(&x_nd, tokens.own(0))?.to_vec2()?);
        }
        let tokens = Tokens::new(&[("texts", rows)], &self.config, &self.device)?;
        let pool = Pool::new(pooling, &self.params, &pool_name())?;
        let read = pool.reads(tokens.own(0)).and_then(|places| some_of(&tokens, places));
        let x_nd = self.read(&tokens, read.as_deref())?;
        finite(pool.forward(&x_nd, tokens.own(0))?.to_vec2()?)
    }

    /// The last hidden states `x_nd` of tokens.
    ///
    /// # Errors
    /// When the tokens do not fit the encoder.
    pub fn forward(&self, tokens: &Tokens) -> Result<Tensor, Error> {
        self.read(tokens, None)
    }

    /// The same of some tokens.
    fn read(&self, tokens: &Tokens, places: Option<&[u32]>) -> Result<Tensor, Error> {
        self.states(tokens, Read::some(places))?
            .pop()
            .ok_or_else(|| Error::Misfit("the encoder has no hidden states; report it".to_owned()))
    }

    /// The tokens of a batch whose targets fit its output.
    ///
    /// # Errors
    /// Names the task, and the row or group that does not fit.
    pub fn tokens(&self, batch: &Batch) -> Result<Tokens, Error> {
        tokens(self.outline(), &[batch], &self.config, &self.device)
    }

    /// What measures heads at the gates of `mask`, whatever gates the model itself has, by losses that `read` so much.
    fn probe<'a>(&'a self, mask: &'a Mask, read: Read<'a>) -> Probe<'a> {
        Probe { encoder: &self.encoder, config: &self.config, attention: &*self.attention, mask, read }
    }

    /// The sum over a batch's samples (rows, or groups of a ranking) of the loss that each would have alone, given the last hidden states;
    /// the batch is the only one of `tokens`. See [`Outputs::sample_losses`].
    ///
    /// # Errors
    /// When the batch is not that of the tokens.
    fn sample_losses(&self, x_nd: &Tensor, tokens: &Tokens, batch: &Batch) -> candle_core::Result<Tensor> {
        let rows = self.outputs.rows(tokens, 0, batch.task);
        let logits_mc = self.outputs.logits(x_nd, rows, batch.task, None)?;
        self.outputs.sample_losses(&logits_mc, batch)
    }

    /// Measures how much each head matters to a batch, at the gates of `mask`: all of [`Importance::add`].
    ///
    /// # Errors
    /// When the batch or the mask does not fit, or a gradient is not finite.
    pub fn measure(&self, into: &mut Importance, mask: &Mask, batch: &Batch) -> Result<(), Error> {
        if let Targets::Identities(_) | Targets::Links(_) = batch.targets {
            return Err(Error::Misfit(format!(
                "output {}: its rows are told from each other, and one alone has no loss, so heads cannot be measured by it",
                self.outline().task(batch.task)?.name
            )));
        }
        let groups: Vec<usize>;
        let samples = match &batch.targets {
            // A query with its passages is one sample.
            Targets::Groups(of) => {
                groups = of.iter().map(|group| group.rows).collect();
                Samples::Groups(&groups)
            }
            Targets::Anchors(of) => {
                groups = of.iter().map(Anchor::rows).collect();
                Samples::Groups(&groups)
            }
            _ => Samples::Spans,
        };
        #[cfg(feature = "cuda")]
        if let Some((tokens, gradients)) = self.gates_by_kernels(into.each(), mask, batch)? {
            return into.add_gradients(mask, &tokens, samples, gradients);
        }
        let tokens = self.tokens(batch)?;
        let loss = |x_nd: &Tensor| self.sample_losses(x_nd, &tokens, batch);
        let read = self.outputs.read_by_logits(&tokens, &[batch.task])?;
        let probe = self.probe(mask, Read::some(read.as_deref()));
        in_pool(&self.device, || into.add_samples(&probe, &tokens, samples, loss))
    }
}

/// The tokens of some batches, whose targets fit their outputs.
pub(crate) fn tokens(
    outline: &Outline,
    batches: &[&Batch],
    config: &Config,
    device: &Device,
) -> Result<Tokens, Error> {
    let mut named = vec![];
    for batch in batches {
        let task = outline.task(batch.task)?;
        batch.targets.check(task, config.vocab_size, &batch.rows.lengths)?;
        named.push((task.name.as_str(), &batch.rows));
    }
    Tokens::new(&named, config, device)
}

/// Refuses what a model says if one of its numbers is infinite or none: no softmax, maximum or JSON would tell.
fn finite(said: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, Error> {
    for (row, numbers) in said.iter().enumerate() {
        if let Some(value) = numbers.iter().copied().find(|number| !number.is_finite()) {
            return Err(Error::Misfit(format!(
                "the model says {value} of row {row} (from 0 of those asked together), which is no answer: its weights are too large to compute with; look at how it was trained"
            )));
        }
    }
    Ok(said)
}

/// Weights that fine-tuning wrote and that are not there any more.
fn lacking(path: &Path, names: &[String]) -> Error {
    let remedy =
        "a fine-tuned model is the folder of a finished fine-tuning, whole: take it as it was written";
    ReadError::new(path, format!("it lacks {}", names.join(", ")), "", remedy).into()
}

#[cfg(test)]
mod tests;
