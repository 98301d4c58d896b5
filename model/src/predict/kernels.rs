//! Answers by kernels on a CUDA device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use batch::rows::Rows;
use candle_core::{Device, Tensor};

use super::{Predictor, tokens};
use crate::Error;
use crate::attention::Chosen;
use crate::cuda;
use crate::cuda::model::{Model, Of};
use crate::cuda::outputs::Question;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::head::importance::Each;
use crate::head::mask::Mask;
use crate::optim::head_mask::{HeadMask, SoftOn};
use crate::output::{Batch, Outline};
use crate::params::Params;

/// A model of kernels, made when it is first asked. Clones share it: gates are said with each question.
#[derive(Clone)]
pub(crate) struct Kernels {
    model: Arc<Mutex<Option<Model>>>,
    attention: Chosen,
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("attention", &self.attention).finish_non_exhaustive()
    }
}

/// The tokens of rows, in main memory; their last hidden states `[n, d]`; and the logits of each task that was asked for.
type Said = (Tokens, Tensor, Vec<Tensor>);

/// The tokens of a batch, in main memory; and the gradients of each copy of the gates.
type Measured = (Tokens, Vec<Vec<f64>>);

/// What a model is made of besides its attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) outline: &'a Outline,
    pub(crate) params: &'a Params,
}

impl Kernels {
    pub(crate) fn new(attention: &Chosen) -> Self {
        Kernels { model: Arc::default(), attention: attention.clone() }
    }

    /// Asks the model of these parameters on a device.
    ///
    /// # Errors
    /// When memory is lacking, or what the question says.
    pub(crate) fn ask<T>(
        &self,
        device: &Device,
        parts: Parts<'_>,
        question: impl FnOnce(&mut Model) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let model = match &mut *model {
            Some(model) => model,
            none => {
                let (Parts { config, outline, params }, attention) = (parts, &self.attention);
                let (dtype, recompute) = (ActivationDtype::F32, Recompute::None);
                let of = Of { config, outline, attention, params, gates: None, dtype, recompute };
                none.insert(Model::new(cuda::device(device)?, of, &HeadMask::new(None, SoftOn::Step), None)?)
            }
        };
        question(model)
    }
}

impl Predictor {
    /// What the model says of rows, f32 throughout; none on another device, which composes operations.
    ///
    /// # Errors
    /// When a row does not fit the encoder, there is no such task, or memory is lacking.
    pub(super) fn by_kernels(
        &self,
        names: &str,
        rows: &Rows,
        tasks: &[usize],
    ) -> Result<Option<Said>, Error> {
        if !self.device.is_cuda() {
            return Ok(None);
        }
        let tokens = Tokens::new(&[(names, rows)], &self.config, &Device::Cpu)?;
        let questions: Vec<Question<'_>> =
            tasks.iter().map(|task| Question { task: *task, tokens: None }).collect();
        let (x_nd, logits) = self.ask(|model| model.answer(&tokens, &questions, self.gates()))?;
        Ok(Some((tokens, x_nd, logits)))
    }

    /// The tokens of a batch, and the gradient of each copy of the gates of `mask`, layer after layer: a sample's copies are under its own loss
    /// ([`crate::head::importance`]). None on another device.
    ///
    /// # Errors
    /// When the batch or the mask does not fit, or memory is lacking.
    pub(super) fn gates_by_kernels(
        &self,
        each: Each,
        mask: &Mask,
        batch: &Batch,
    ) -> Result<Option<Measured>, Error> {
        if !self.device.is_cuda() {
            return Ok(None);
        }
        mask.check([self.config.num_hidden_layers, self.config.num_attention_heads])?;
        let tokens = tokens(self.outline(), &[batch], &self.config, &Device::Cpu)?;
        let layers = self.ask(|model| model.gate_gradients(&tokens, batch, mask))?;
        let output = &self.outline().task(batch.task)?.output;
        let mut copies = vec![];
        for (span, share) in tokens.spans.iter().zip(batch.targets.own_shares(output)) {
            let of_token = |token: usize| -> Vec<f64> {
                let heads = token * mask.shape()[1]..(token + 1) * mask.shape()[1];
                layers.iter().flat_map(|each| &each[heads.clone()]).map(|x| share * f64::from(*x)).collect()
            };
            let of_tokens = (span.start..span.start + span.len).map(of_token);
            match each {
                Each::Token => copies.extend(of_tokens),
                // One copy for the whole row is as many equal ones, whose gradients add up.
                Each::Sample => copies.extend(of_tokens.reduce(|mut sum, of| {
                    sum.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
                    sum
                })),
            }
        }
        Ok(Some((tokens, copies)))
    }

    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut Model) -> Result<T, Error>) -> Result<T, Error> {
        let parts = Parts { config: &self.config, outline: self.outline(), params: &self.params };
        self.kernels.ask(&self.device, parts, question)
    }
}
