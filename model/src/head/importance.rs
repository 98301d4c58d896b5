//! How much each head matters to a loss: the gradient of its gate (KIMERA, equation 2; Michel et al. 2019).
//!
//! The gate of a head is given a private copy per sample (or per token), so that one backward of the summed loss yields the gradient
//! of every sample at once. Dropout is off. Build the encoder over [`crate::params::Params::freeze`] of all names:
//! no weight's gradient is needed.

#[cfg(test)]
mod tests;

use candle_core::{DType, Result as TensorResult, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::mask::Mask;
use crate::Error;
use crate::attention::Attention;
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Gates, Pass, Read};
use crate::nn::gradients::gradients;

/// What is added up over the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Each sample's absolute gradient of its own loss: KIMERA's equation 2.
    #[default]
    PerSample,
    /// The absolute gradient of each batch's mean loss; depends on the batches.
    PerBatch,
    /// The absolute value of the sum of all batches' gradients so far, divided by the tokens, as in transformers' `run_bertology.py`, which never
    /// clears them; depends on the order of the batches.
    Accumulated,
    /// Each token's absolute product of context and its gradient under the batch's mean loss, divided by the tokens, and by the samples in the last
    /// layer, as in the code of Michel et al. 2019.
    TokenLevel,
}

/// How the importances of one layer are made comparable with those of others; comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithinLayer {
    /// Not at all.
    Raw,
    /// Divided by the layer's Euclidean norm.
    #[default]
    L2,
}

/// How the importances of all heads are brought into one range; comes second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AcrossLayers {
    /// Not at all.
    Raw,
    /// Min-max: the least important head becomes 0, the most important one 1.
    #[default]
    MinMax,
}

/// What has a private copy of all gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Each {
    /// Every span.
    Sample,
    /// Every token.
    Token,
}

/// What counts as one sample of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples<'a> {
    /// Every span.
    Spans,
    /// So many spans that follow each other: the first sample has the first number of them, and so on. A query with its candidates is such a sample.
    Groups(&'a [usize]),
}

/// An encoder and the gates at which its heads are measured.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The encoder.
    pub encoder: &'a Encoder,
    /// Its sizes.
    pub config: &'a Config,
    /// What its tokens attend by.
    pub attention: &'a dyn Attention,
    /// The gates: all kept at first, then those of the mask so far.
    pub mask: &'a Mask,
    /// Of which tokens the losses read the last hidden states.
    pub read: Read<'a>,
}

impl Probe<'_> {
    /// The gradient of a loss with respect to private gates, `[s, l, h]` or `[n, l, h]`; `None` when the loss does not depend on
    /// them. `loss` makes the sum over the samples of each sample's own loss out of the last hidden states `x_nd`.
    ///
    /// # Errors
    /// When the mask is of another shape, or the tensor library fails.
    pub fn gradients(
        &self,
        tokens: &Tokens,
        each: Each,
        loss: impl FnOnce(&Tensor) -> TensorResult<Tensor>,
    ) -> Result<Option<Tensor>, Error> {
        let Config { num_hidden_layers: layers, num_attention_heads: heads, .. } = *self.config;
        self.mask.check([layers, heads])?;
        let copies = if each == Each::Sample { tokens.spans.len() } else { tokens.count() };
        let one_lh = self.mask.gates(tokens.ids_n.device())?;
        let gates = Var::from_tensor(&one_lh.broadcast_as((copies, layers, heads))?.contiguous()?)?;
        let gates_of = if each == Each::Sample { Gates::PerSample(&gates) } else { Gates::PerToken(&gates) };
        let hidden = self.encoder.forward(
            self.config,
            tokens,
            &Pass { attention: self.attention, gates: gates_of, dropout: None, read: self.read },
        )?;
        let Some(x_nd) = hidden.last() else { return Ok(None) };
        Ok(gradients(&loss(x_nd)?)?.remove(&gates))
    }
}

/// Importances in the making: batch after batch, in f64 and in the order in which they come.
#[derive(Debug, Clone)]
pub struct Importance {
    method: Method,
    shape: [usize; 2],
    /// The importances so far, layer after layer.
    sums: Vec<f64>,
    /// The sum of all batches' gradients, for [`Method::Accumulated`].
    carried: Vec<f64>,
    batches: u64,
    samples: u64,
    tokens: u64,
}

impl Importance {
    /// Nothing is measured yet, for an encoder of `shape` layers and heads.
    #[must_use]
    pub fn new(method: Method, shape: [usize; 2]) -> Self {
        let zeros = vec![0.0; shape[0] * shape[1]];
        Importance { method, shape, sums: zeros.clone(), carried: zeros, batches: 0, samples: 0, tokens: 0 }
    }

    /// Measures one batch, or several that are in `tokens` together and count as one, of which every span is a sample. `loss` makes the sum
    /// over the samples of each sample's own loss out of the last hidden states `x_nd`.
    ///
    /// # Errors
    /// When the mask is of another shape, a gradient is not finite, or the loss does not depend on the heads.
    pub fn add(
        &mut self,
        probe: &Probe<'_>,
        tokens: &Tokens,
        loss: impl FnOnce(&Tensor) -> TensorResult<Tensor>,
    ) -> Result<(), Error> {
        self.add_samples(probe, tokens, Samples::Spans, loss)
    }

    /// As [`Importance::add`], when samples may have several spans: the gradients of a sample's spans are added up before anything else.
    ///
    /// # Errors
    /// As [`Importance::add`], and when the groups are not those of the batch.
    pub fn add_samples(
        &mut self,
        probe: &Probe<'_>,
        tokens: &Tokens,
        samples: Samples<'_>,
        loss: impl FnOnce(&Tensor) -> TensorResult<Tensor>,
    ) -> Result<(), Error> {
        let batch = self.batches + 1;
        samples.check(tokens.spans.len(), batch)?;
        let found = probe.gradients(tokens, self.each(), loss)?;
        let gradients = found.ok_or(Error::Misfit(format!("head importance, batch {batch}: the loss does not depend on the heads; compute it from the hidden states that are given")))?;
        let rows = gradients.to_dtype(DType::F64)?.flatten(1, 2)?.to_vec2::<f64>()?;
        self.add_gradients(probe.mask, tokens, samples, rows)
    }

    /// What has a private copy of the gates.
    pub(crate) fn each(&self) -> Each {
        if self.method == Method::TokenLevel { Each::Token } else { Each::Sample }
    }

    /// As [`Importance::add_samples`], given the gradients of each copy of the gates, layer after layer: of a span's or a token's.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn add_gradients(
        &mut self,
        mask: &Mask,
        tokens: &Tokens,
        samples: Samples<'_>,
        mut rows: Vec<Vec<f64>>,
    ) -> Result<(), Error> {
        let batch = self.batches + 1;
        let count = samples.check(tokens.spans.len(), batch)?;
        self.check(&rows, batch)?;
        if let (Samples::Groups(groups), Each::Sample) = (samples, self.each()) {
            rows = summed(&rows, groups);
        }
        self.batches = batch;
        self.samples += count as u64;
        self.tokens += tokens.count() as u64;
        self.fold(&rows, count as f64, mask);
        Ok(())
    }

    fn check(&self, rows: &[Vec<f64>], batch: u64) -> Result<(), Error> {
        let wrong =
            rows.iter().find_map(|row| row.iter().position(|x| !x.is_finite()).map(|at| (at, row[at])));
        match wrong {
            Some((at, value)) => {
                let (layer, head) = (at / self.shape[1], at % self.shape[1]);
                Err(Error::Misfit(format!(
                    "head importance, batch {batch}: the gate's gradient of layer {layer}, head {head} (from 0) is {value}; look at the weights and at this batch's samples"
                )))
            }
            None => Ok(()),
        }
    }

    /// Adds the gradients of one batch of so many samples; a row holds those of one sample or token, layer after layer.
    fn fold(&mut self, rows: &[Vec<f64>], samples: f64, mask: &Mask) {
        let mean = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / samples;
        for at in 0..self.sums.len() {
            self.sums[at] += match self.method {
                Method::PerSample => rows.iter().map(|row| row[at].abs()).sum::<f64>(),
                Method::PerBatch => mean(at).abs(),
                Method::Accumulated => {
                    self.carried[at] += mean(at);
                    self.carried[at].abs()
                }
                // The gate times its gradient is the context times its own.
                Method::TokenLevel => {
                    let gate = f64::from(mask.values()[at]);
                    rows.iter().map(|row| (gate * row[at] / samples).abs()).sum::<f64>()
                }
            };
        }
    }

    /// The importances of all batches so far, layer after layer.
    ///
    /// # Errors
    /// When there was no batch, or all heads are alike where the range of importances is to be [0, 1].
    pub fn finish(&self, within: WithinLayer, across: AcrossLayers) -> Result<Vec<f64>, Error> {
        if self.batches == 0 {
            return Err(Error::Misfit(
                "head importance: no batch was measured; give at least one".to_owned(),
            ));
        }
        let heads = self.shape[1];
        let mut values: Vec<f64> =
            self.sums.iter().enumerate().map(|(at, sum)| sum / self.divisor(at)).collect();
        if within == WithinLayer::L2 {
            for layer in values.chunks_exact_mut(heads) {
                let norm = layer.iter().map(|x| x * x).sum::<f64>().sqrt() + TINY;
                layer.iter_mut().for_each(|x| *x /= norm);
            }
        }
        if across == AcrossLayers::MinMax {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if least == most {
                return Err(Error::Misfit(format!(
                    "head importance: all heads have the same importance, {least}; the loss says nothing about them, measure more samples"
                )));
            }
            values.iter_mut().for_each(|x| *x = (*x - least) / (most - least));
        }
        Ok(values)
    }

    /// What the reference codes divide the sum of a head by.
    fn divisor(&self, at: usize) -> f64 {
        let last = at / self.shape[1] + 1 == self.shape[0];
        match self.method {
            Method::PerSample | Method::PerBatch => 1.0,
            Method::TokenLevel if last => self.samples as f64,
            Method::Accumulated | Method::TokenLevel => self.tokens as f64,
        }
    }
}

impl Samples<'_> {
    /// How many samples there are in a batch of so many spans.
    fn check(self, spans: usize, batch: u64) -> Result<usize, Error> {
        let Samples::Groups(groups) = self else { return Ok(spans) };
        let sum: usize = groups.iter().sum();
        if sum == spans && groups.iter().all(|count| *count > 0) {
            return Ok(groups.len());
        }
        let shown = &groups[..groups.len().min(SHOWN)];
        let more = if groups.len() > SHOWN { " and more" } else { "" };
        Err(Error::Misfit(format!(
            "head importance, batch {batch}: groups of {shown:?}{more} spans are {sum} together, the batch has {spans}; give the number of spans of each sample, at least 1, in their order"
        )))
    }
}

/// The sum of each group of rows that follow each other.
fn summed(rows: &[Vec<f64>], groups: &[usize]) -> Vec<Vec<f64>> {
    let mut rest = rows.iter();
    let of_group = |count: &usize| {
        rest.by_ref().take(*count).fold(vec![], |mut sum: Vec<f64>, row| {
            sum.resize(row.len(), 0.0);
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            sum
        })
    };
    groups.iter().map(of_group).collect()
}

/// Groups that a message shows.
const SHOWN: usize = 8;

/// Keeps a layer without any importance from dividing by 0.
const TINY: f64 = 1e-20;
