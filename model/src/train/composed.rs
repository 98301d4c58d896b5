//! Steps of the tensor library's operations: the losses of a micro-batch in one pass through the encoder, the gradient of their weighted sum, one update.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::rng::CounterRng;
use candle_core::{DType, Device, Tensor};

use super::coverage::Coverage;
use super::lora::Adapters;
use super::machine::{Job, Machine, Wait};
use super::micro::Micro;
use super::ranks::{Plan, Ranks};
use super::record::{Records, StepRecord, TaskRecord, Weighed};
use super::step::finite;
use super::{Setup, error};
use crate::Error;
use crate::attention::Attention;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Gates, Pass, Read};
use crate::nn::{in_pool, scalars};
use crate::optim::adamw::Update;
use crate::optim::chosen::Optimiser;
use crate::optim::clip;
use crate::optim::head_mask::HeadMask;
use crate::optim::moments::Moments;
use crate::output::{Batch, Outputs};
use crate::params::Params;
use crate::predict;

/// A model of operations with its optimiser.
#[derive(Debug)]
pub(super) struct Composed {
    setup: Setup,
    params: Params,
    pub(super) encoder: Encoder,
    pub(super) attention: Arc<dyn Attention>,
    pub(super) outputs: Outputs,
    optimiser: Optimiser,
    /// Parameters that are updated.
    trained: Vec<String>,
    /// The same, and the weights that adapters move: theirs are made of these.
    asked: Vec<String>,
    /// How updates spare kept heads.
    heads: HeadMask,
    /// What moves some of the encoder's weights.
    adapters: Adapters,
    /// Gates of the forward pass in training, `[l, h]`.
    pub(super) gates_lh: Option<Tensor>,
    device: Device,
    /// With whom it trains.
    ranks: Ranks,
    /// The last step, until it is told of.
    done: Option<StepRecord>,
}

/// What an update was made with.
struct Made {
    rate: f64,
    /// Norm of all gradients before clipping.
    grad_norm: f64,
}

impl Composed {
    /// Operations over the parameters of a setup; what `frozen` names has no gradient.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub(super) fn new(
        setup: &Setup,
        params: &Params,
        trained: impl Fn(&str) -> bool,
        heads: &HeadMask,
        device: &Device,
    ) -> Result<Self, Error> {
        let train = &setup.train;
        let encoder = Encoder::new(&setup.encoder, params)?;
        let gates = setup.gates_of_training();
        let adapters = Adapters::of(setup);
        let names = params.iter().map(|(name, _)| name.to_owned());
        let own: Vec<String> = names.filter(|name| trained(name)).collect();
        Ok(Composed {
            setup: setup.clone(),
            params: params.clone(),
            encoder: encoder.with_dtype(train.dtype).with_recompute(train.recompute),
            attention: setup.attention().sibling().build(&setup.encoder, params)?,
            outputs: Outputs::new(&setup.outline, &setup.encoder, params)?,
            asked: own.iter().cloned().chain(adapters.moved()).collect(),
            trained: own,
            optimiser: Optimiser::new(
                &train.adamw,
                train.missing,
                train.optimiser.as_ref(),
                params,
                trained,
            )?,
            heads: heads.clone(),
            adapters,
            gates_lh: gates.map(|gates| gates.gates(device)).transpose()?,
            device: device.clone(),
            ranks: Ranks::default(),
            done: None,
        })
    }

    /// The gradients of a micro-batch, whose loss counts so much of the step's; its numbers are those of all ranks, its gradients this one's.
    fn micro(
        &self,
        step: u64,
        batches: &[&Batch],
        plan: &Plan,
        dropout: CounterRng,
        share: f64,
    ) -> Result<Micro, Error> {
        let all = &self.setup.outline.tasks;
        // Another rank may have rows where this one has none.
        if batches.is_empty() {
            return self.ranks.together(all, Micro::default(), plan);
        }
        let (mut losses, tokens) = self.losses(step, batches, Some(dropout))?;
        losses.iter_mut().for_each(|of| of.share = plan.of_task(of.batch.task));
        let of_labels = self.outputs.own_loss(&*self.attention)?.map(|loss| loss * plan.of_labels());
        let of_labels = of_labels.transpose()?;
        let (total, loss) = self.total(step, &losses, of_labels.as_ref())?;
        let tasks = TaskRecord::of(&losses)?;
        let labels = of_labels.map(|loss| scalars::read(&[&loss])).transpose()?.and_then(|mut of| of.pop());
        // A step of one batch has no operation more.
        let total = if share < 1.0 { (total * share)? } else { total };
        let grads = self.gradients(&total)?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        let labels = labels.map(|labels| labels * share);
        let own = Micro { grads, loss: loss * share, tasks, labels, tokens, rows };
        self.ranks.together(all, own, plan)
    }

    /// The loss of each batch that counts, and the tokens of all.
    fn losses<'a>(
        &'a self,
        step: u64,
        active: &[&'a Batch],
        dropout: Option<CounterRng>,
    ) -> Result<(Vec<Weighed<'a>>, Tokens), Error> {
        let tokens = predict::tokens(&self.setup.outline, active, &self.setup.encoder, &self.device)?;
        let gates = self.gates_lh.as_ref().map_or(Gates::Open, Gates::Shared);
        let read = self.outputs.read_by_losses(&tokens, active)?;
        let read = Read::some(read.as_deref());
        let pass = Pass { attention: &*self.attention, gates, dropout, read };
        let hidden = self.encoder.forward(&self.setup.encoder, &tokens, &pass)?;
        let x_nd = hidden.last().ok_or_else(|| error::no_batch(step))?;
        let each = active.iter().copied().enumerate();
        let losses = each.map(|(i, batch)| {
            let rows = self.outputs.rows(&tokens, i, batch.task);
            let loss = self.outputs.loss(x_nd, rows, batch, dropout)?;
            let task = &self.setup.outline.tasks[batch.task];
            Ok(Weighed { task: &task.name, alpha: task.alpha, share: 1.0, batch, loss })
        });
        Ok((losses.collect::<Result<_, Error>>()?, tokens))
    }

    /// L = sum of alpha_n L_n, as a tensor and as a number. Labels are those of the one task, whose alpha scales their loss too.
    fn total(
        &self,
        step: u64,
        losses: &[Weighed<'_>],
        of_labels: Option<&Tensor>,
    ) -> Result<(Tensor, f64), Error> {
        let mut all: Vec<(&str, f64, &Tensor)> = vec![];
        for of in losses {
            all.push((of.task, of.alpha * of.share, &of.loss.loss));
            all.extend(of_labels.map(|loss| ("the labels", of.alpha, loss)));
        }
        let mut total = Tensor::zeros((), DType::F32, &self.device)?;
        for (_, alpha, loss) in &all {
            total = (total + (*loss * *alpha)?)?;
        }
        // Losses and sum in one answer of the device.
        let scalars: Vec<&Tensor> = all.iter().map(|(_, _, loss)| *loss).chain([&total]).collect();
        let mut values = scalars::read(&scalars)?;
        let value = values.pop().unwrap_or_default();
        for ((task, _, _), value) in all.iter().zip(values) {
            finite(step, value, || format!("the loss of {task}"))?;
        }
        Ok((total, value))
    }

    /// One update from the gradients of the losses of `tasks`. On an error the parameters are as before.
    fn update(
        &mut self,
        step: u64,
        grads: BTreeMap<String, Tensor>,
        tasks: &Records,
        coverage: &mut Coverage,
    ) -> Result<Made, Error> {
        let grad_norm = clip::global_norm(&grads)?;
        if !grad_norm.is_finite() {
            return Err(wild_gradient(step, &grads, tasks)?);
        }
        coverage.see(step, tasks, &grads, &self.adapters.asleep(&self.params)?)?;
        let rate = self.setup.train.schedule.rate(step);
        let scale = clip::factor(grad_norm, self.setup.train.clip_norm);
        let before = self.heads.before(&self.params)?;
        self.optimiser.step(&self.params, grads, Update { rate, scale })?;
        self.heads.hold_back(&self.params, &before)?;
        self.adapters.add(&self.params)?;
        Ok(Made { rate, grad_norm })
    }

    /// Gradients of all parameters that are not frozen; 0 in the heads that are.
    fn gradients(&self, total: &Tensor) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut store = crate::nn::gradients::gradients(total)?;
        let mut grads = BTreeMap::new();
        for name in &self.asked {
            if let Some(grad) = store.remove(&self.params.get(name)?) {
                grads.insert(name.clone(), grad);
            }
        }
        self.adapters.gradients(&self.params, &mut grads)?;
        self.heads.screen(&mut grads)?;
        Ok(grads)
    }

    /// The loss of some batches without dropout.
    #[cfg(test)]
    pub(super) fn evaluated(&self, batches: &[&Batch]) -> f32 {
        let (losses, _) = self.losses(1, batches, None).unwrap();
        losses.iter().map(|of| of.loss.loss.to_scalar::<f32>().unwrap()).sum()
    }

    /// How many operations the graph of a step's loss has.
    #[cfg(test)]
    pub(super) fn graph_nodes(&self, batches: &[&Batch]) -> usize {
        let (losses, _) = self.losses(1, batches, None).unwrap();
        self.total(1, &losses, None).unwrap().0.sorted_nodes().len()
    }
}

impl Composed {
    /// One step, on this thread.
    fn make(&mut self, job: &Job<'_>, coverage: &mut Coverage) -> Result<(), Error> {
        let Job { step, epoch, micro } = job;
        let mut sum: Option<Micro> = None;
        let plans = self.ranks.plans(&self.setup.outline.tasks, micro)?;
        for ((number, batches), plan) in (0..).zip(micro).zip(&plans) {
            let dropout = self.setup.dropout_key(*step, self.ranks.number_of(number));
            let made = self.micro(*step, batches, plan, dropout, 1.0 / micro.len() as f64)?;
            sum = Some(match sum {
                Some(sum) => sum.with(made)?,
                None => made,
            });
        }
        let Some(Micro { grads, loss, tasks, labels, tokens, rows }) = sum.filter(|sum| sum.rows > 0) else {
            return Err(error::no_batch(*step));
        };
        let grads = self.ranks.gradients(&self.params, &self.trained, grads)?;
        let Made { rate: learning_rate, grad_norm } = self.update(*step, grads, &tasks, coverage)?;
        let (step, epoch) = (*step, *epoch);
        self.done =
            Some(StepRecord { step, epoch, loss, tasks, labels, learning_rate, grad_norm, tokens, rows });
        Ok(())
    }
}

impl Machine for Composed {
    fn begin(&mut self, job: &Job<'_>, coverage: &mut Coverage) -> Result<(), Error> {
        // Ranks wait for each other.
        if self.ranks.are_several() {
            return self.make(job, coverage);
        }
        in_pool(&self.device.clone(), || self.make(job, coverage))
    }

    fn landed(&mut self, _: Wait, _: &mut Coverage) -> Result<Option<StepRecord>, Error> {
        Ok(self.done.take())
    }

    fn is_idle(&self) -> bool {
        self.done.is_none()
    }

    fn evaluate(&self, step: u64, batches: &[&Batch]) -> Result<Records, Error> {
        in_pool(&self.device, || {
            let (losses, _) = self.losses(step, batches, None)?;
            Ok(TaskRecord::of(&losses)?)
        })
    }

    fn join(&mut self, ranks: &Ranks) -> Result<(), Error> {
        self.ranks = ranks.clone();
        Ok(())
    }

    fn updates(&self) -> u64 {
        self.optimiser.updates()
    }

    fn moments(&self) -> Result<BTreeMap<String, Moments>, Error> {
        Ok(self.optimiser.moments().clone())
    }

    fn restore(&mut self, moments: BTreeMap<String, Moments>, updates: u64) -> Result<(), Error> {
        let (own, count) = self.optimiser.restore();
        (*own, *count) = (moments, updates);
        Ok(())
    }

    fn weights_were_set(&mut self) -> Result<(), Error> {
        Ok(())
    }

    #[cfg(test)]
    fn composed(&self) -> Option<&Composed> {
        Some(self)
    }

    #[cfg(test)]
    fn composed_mut(&mut self) -> Option<&mut Composed> {
        Some(self)
    }
}

/// What to say of gradients whose norm is not finite: the first parameter, and the tasks of the step.
fn wild_gradient(step: u64, grads: &BTreeMap<String, Tensor>, tasks: &Records) -> Result<Error, Error> {
    let (mut name, mut value) = ("all parameters together", f64::INFINITY);
    for (parameter, grad) in grads {
        let norm = clip::global_norm(&BTreeMap::from([(parameter.clone(), grad.clone())]))?;
        if !norm.is_finite() {
            (name, value) = (parameter, norm);
            break;
        }
    }
    Ok(error::wild_gradient(step, name, value, tasks))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn a_gradient_that_is_no_number_is_named_with_step_and_tasks() {
        let wild = Tensor::new(&[1.0_f32, f32::NAN], &Device::Cpu).unwrap();
        let fine = Tensor::new(&[1.0_f32], &Device::Cpu).unwrap();
        let grads =
            [("a", fine), ("b", wild.clone()), ("c", wild)].map(|(name, grad)| (name.to_owned(), grad));
        let record = TaskRecord { loss: 1.0, accuracy: None, targets: 1, samples: 1 };
        let tasks = ["x", "y"].map(|task| (task.to_owned(), record)).into();
        let text = wild_gradient(3, &grads.into(), &tasks).unwrap().to_string();
        let expected = "step 3: the norm of the gradient of b (tasks of the step: x, y) is NaN";
        assert!(text.contains(expected), "{text}");
    }
}
