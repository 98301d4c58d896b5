//! What every training shares: parameters and their encoder, the optimiser, what is frozen, the gate of the first steps, and one update.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use base::rng::CounterRng;
use candle_core::{DType, Device, Tensor};

use super::coverage::Coverage;
use super::error;
use super::seal::Seal;
use crate::Error;
use crate::attention::{Attention, Chosen};
use crate::checkpoint;
use crate::device::ActivationDtype;
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Gates, Pass};
use crate::head::mask::Mask;
use crate::head::slices::listed;
use crate::nn::scalars;
use crate::optim::adamw::{AdamWConfig, Missing, Update};
use crate::optim::chosen::{Optimiser, ReferenceCode};
use crate::optim::clip;
use crate::optim::head_mask::HeadMask;
use crate::optim::schedule::Schedule;
use crate::params::{Params, Spec};

/// What a training is made from besides its parameters.
#[derive(Debug)]
pub(super) struct Plan {
    /// Sizes of the encoder.
    pub(super) encoder: Config,
    /// What its tokens attend by.
    pub(super) attention: Chosen,
    /// Seed of dropout.
    pub(super) seed: u64,
    /// Learning rate over the steps.
    pub(super) schedule: Schedule,
    /// Constants of the optimiser.
    pub(super) adamw: AdamWConfig,
    /// What becomes of parameters without a gradient.
    pub(super) missing: Missing,
    /// What a reference code has in place of it.
    pub(super) released: Option<ReferenceCode>,
    /// Largest norm of all gradients together.
    pub(super) clip_norm: f64,
    /// Parameters that do not move, with the reason.
    pub(super) frozen: BTreeMap<String, &'static str>,
    /// How updates spare kept heads.
    pub(super) heads: HeadMask,
    /// Gates of the forward pass.
    pub(super) gates: Option<Mask>,
    /// Tasks whose losses count.
    pub(super) tasks: BTreeSet<String>,
    /// The step by which each of them has had a batch.
    pub(super) covered_by: u64,
    /// Dtype of activations and products.
    pub(super) dtype: ActivationDtype,
}

/// A training between two steps.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) plan: Plan,
    pub(super) params: Params,
    pub(super) encoder: Encoder,
    pub(super) attention: Arc<dyn Attention>,
    pub(super) optimiser: Optimiser,
    /// Gates of the forward pass, `[l, h]`.
    pub(super) gates_lh: Option<Tensor>,
    /// What everything frozen was when training began.
    pub(super) seal: Seal,
    pub(super) coverage: Coverage,
    pub(super) device: Device,
}

/// The loss of one task in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed<'a> {
    /// The task's name.
    pub(super) task: &'a str,
    /// The weight of its loss.
    pub(super) alpha: f64,
    /// The loss, no axes.
    pub(super) loss: &'a Tensor,
}

/// What an update was made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    /// Learning rate.
    pub(super) rate: f64,
    /// Norm of all gradients before clipping.
    pub(super) grad_norm: f64,
}

impl Core {
    /// A training that has made no step.
    pub(super) fn new(plan: Plan, params: Params, device: &Device) -> Result<Self, Error> {
        let params = params.freeze(|name| plan.frozen.contains_key(name));
        let encoder = Encoder::new(&plan.encoder, &params)?.with_dtype(plan.dtype);
        let attention = plan.attention.sibling().build(&plan.encoder, &params)?;
        let trained = |name: &str| !plan.frozen.contains_key(name);
        let optimiser = Optimiser::new(&plan.adamw, plan.missing, plan.released.as_ref(), &params, trained)?;
        let coverage = Coverage::new(&params, &plan.frozen, plan.tasks.clone(), plan.covered_by);
        let seal = Seal::of(&params, &plan.frozen, &plan.heads)?;
        let gates_lh = plan.gates.as_ref().map(|gates| gates.gates(device)).transpose()?;
        Ok(Core {
            plan,
            params,
            encoder,
            attention,
            optimiser,
            gates_lh,
            seal,
            coverage,
            device: device.clone(),
        })
    }

    /// Takes what is frozen, as it is now, for what training begins with.
    pub(super) fn seal_again(&mut self) -> candle_core::Result<()> {
        self.seal = Seal::of(&self.params, &self.plan.frozen, &self.plan.heads)?;
        Ok(())
    }

    /// Steps made so far.
    pub(super) fn steps(&self) -> u64 {
        self.optimiser.updates()
    }

    /// The key of the next step's dropout.
    pub(super) fn dropout(&self) -> CounterRng {
        CounterRng::new(self.plan.seed).named("dropout").branch(self.steps() + 1)
    }

    /// The last hidden states `x_nd`, all rows of all batches in one pass.
    pub(super) fn hidden(&self, tokens: &Tokens, dropout: Option<CounterRng>) -> Result<Tensor, Error> {
        let gates = self.gates_lh.as_ref().map_or(Gates::Open, Gates::Shared);
        let pass = Pass { attention: &*self.attention, gates, dropout };
        let hidden = self.encoder.forward(&self.plan.encoder, tokens, &pass)?;
        match hidden.last() {
            Some(x_nd) => Ok(x_nd.clone()),
            None => Err(error::no_batch(self.steps())),
        }
    }

    /// L = sum of alpha_n L_n, as a tensor and as a number.
    pub(super) fn total(&self, step: u64, losses: &[Weighed<'_>]) -> Result<(Tensor, f64), Error> {
        let mut total = Tensor::zeros((), DType::F32, &self.device)?;
        for Weighed { alpha, loss, .. } in losses {
            total = (total + (*loss * *alpha)?)?;
        }
        // Losses and sum in one answer of the device.
        let all: Vec<&Tensor> = losses.iter().map(|of| of.loss).chain([&total]).collect();
        let mut values = scalars::read(&all)?;
        let value = values.pop().unwrap_or_default();
        for (Weighed { task, .. }, value) in losses.iter().zip(values) {
            finite(step, value, || format!("the loss of {task}"))?;
        }
        Ok((total, value))
    }

    /// One update from the sum of the losses of `tasks`. On an error the parameters are as before.
    pub(super) fn update(&mut self, total: &Tensor, tasks: &[&str]) -> Result<Made, Error> {
        let step = self.steps() + 1;
        let grads = self.gradients(total)?;
        let grad_norm = clip::global_norm(&grads)?;
        if !grad_norm.is_finite() {
            return Err(wild_gradient(step, &grads, tasks)?);
        }
        self.coverage.see(step, tasks, &grads)?;
        let rate = self.optimiser.rate(&self.plan.schedule, step);
        let scale = clip::factor(grad_norm, self.plan.clip_norm);
        let before = self.plan.heads.before(&self.params)?;
        self.optimiser.step(&self.params, grads, Update { rate, scale })?;
        self.plan.heads.hold_back(&self.params, &before)?;
        Ok(Made { rate, grad_norm })
    }

    /// Gradients of all parameters that are not frozen; 0 in the heads that are.
    fn gradients(&self, total: &Tensor) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut store = crate::nn::gradients::gradients(total)?;
        let trained = self.params.iter().filter(|(name, _)| !self.plan.frozen.contains_key(*name));
        let mut grads =
            trained.filter_map(|(name, param)| Some((name.to_owned(), store.remove(param)?))).collect();
        self.plan.heads.screen(&mut grads)?;
        Ok(grads)
    }

    /// Parameters that are trained but for some heads, with the heads that are frozen.
    pub(super) fn frozen_heads(&self) -> BTreeMap<&str, Vec<usize>> {
        let partly = self.plan.heads.partly_frozen().into_iter();
        partly.filter(|(name, _)| !self.plan.frozen.contains_key(*name)).collect()
    }

    /// What is frozen of each parameter, and why.
    pub(super) fn frozen_reasons(&self) -> BTreeMap<String, String> {
        let whole = self.plan.frozen.iter().map(|(name, why)| (name.clone(), (*why).to_owned()));
        let partly = self.frozen_heads().into_iter().map(|(name, heads)| {
            (
                name.to_owned(),
                format!("the head mask keeps heads {} (from 0); the others are trained", listed(&heads)),
            )
        });
        whole.chain(partly).collect()
    }

    /// Whether everything frozen, to the bit, is what training began with.
    pub(super) fn check_frozen(&self) -> Result<(), Error> {
        match self.seal.broken(&self.params, &self.plan.heads)? {
            Some((parameter, head)) => Err(Error::Misfit(format!(
                "{parameter}{} is frozen, but after step {step} it is not what training began with; nothing of this training can be relied on, report it",
                head.map_or(String::new(), |head| format!(", head {head} (from 0),")),
                step = self.steps()
            ))),
            None => Ok(()),
        }
    }
}

/// The parameters of an encoder of these sizes from a checkpoint folder, and fresh ones of outputs.
pub(super) fn begin_with(
    dir: &Path,
    encoder: &Config,
    outputs: &[Spec],
    seed: u64,
    device: &Device,
) -> Result<Params, Error> {
    let checkpoint::Checkpoint { params, fresh, .. } = checkpoint::load(dir, device)?;
    let mut tensors: BTreeMap<String, Tensor> =
        params.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    // A pooler that the checkpoint lacks is as new as an output: another seed, another one.
    let specs = Encoder::specs(encoder);
    let drawn: Vec<Spec> = specs.iter().filter(|spec| fresh.contains(&spec.name)).cloned().collect();
    for (name, tensor) in Params::fresh(&drawn, seed, device)?.iter() {
        tensors.insert(name.to_owned(), tensor.clone());
    }
    let params = Params::from_tensors(&specs, tensors)?;
    Ok(params.with(Params::fresh(outputs, seed, device)?))
}

/// Refuses a number that is infinite or none.
pub(super) fn finite(step: u64, value: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if value.is_finite() { Ok(()) } else { Err(error::not_finite(step, what(), value)) }
}

/// What to say of gradients whose norm is not finite: the first parameter, and the tasks of the step.
fn wild_gradient(step: u64, grads: &BTreeMap<String, Tensor>, tasks: &[&str]) -> Result<Error, Error> {
    let (mut name, mut value) = ("all parameters together", f64::INFINITY);
    for (parameter, grad) in grads {
        let norm = clip::global_norm(&BTreeMap::from([(parameter.clone(), grad.clone())]))?;
        if !norm.is_finite() {
            (name, value) = (parameter, norm);
            break;
        }
    }
    let what = format!("the norm of the gradient of {name} (tasks of the step: {})", tasks.join(", "));
    Ok(error::not_finite(step, what, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_that_is_no_number_is_named_with_step_and_tasks() {
        let wild = Tensor::new(&[1.0_f32, f32::NAN], &Device::Cpu).unwrap();
        let fine = Tensor::new(&[1.0_f32], &Device::Cpu).unwrap();
        let grads =
            [("a", fine), ("b", wild.clone()), ("c", wild)].map(|(name, grad)| (name.to_owned(), grad));
        let text = wild_gradient(3, &grads.into(), &["x", "y"]).unwrap().to_string();
        let expected = "step 3: the norm of the gradient of b (tasks of the step: x, y) is NaN";
        assert!(text.contains(expected), "{text}");
    }
}
