//! One step: the losses of its batches in one pass through the encoder, the gradient of their weighted sum, one update.

use std::collections::BTreeMap;

use base::rng::CounterRng;
use candle_core::{DType, Tensor};

use super::record::{Records, StepRecord, TaskRecord, Weighed};
use super::{Trainer, error};
use crate::Error;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Gates, Pass};
use crate::nn::scalars;
use crate::optim::adamw::Update;
use crate::optim::clip;
use crate::output::Batch;
use crate::predict;

/// What micro-batches come to, one or several together.
struct Micro {
    /// Of the mean of the micro-batches' losses.
    grads: BTreeMap<String, Tensor>,
    loss: f64,
    tasks: Records,
    labels: Option<f64>,
    tokens: usize,
    rows: usize,
}

impl Micro {
    fn with(mut self, other: Micro) -> Result<Self, Error> {
        for (name, grad) in other.grads {
            let sum = match self.grads.remove(&name) {
                Some(sum) => (sum + grad)?,
                None => grad,
            };
            self.grads.insert(name, sum);
        }
        for (task, record) in other.tasks {
            self.tasks
                .entry(task)
                .and_modify(|sum: &mut TaskRecord| *sum = sum.with(&record))
                .or_insert(record);
        }
        Ok(Micro {
            loss: self.loss + other.loss,
            labels: self.labels.zip(other.labels).map(|(a, b)| a + b),
            tokens: self.tokens + other.tokens,
            rows: self.rows + other.rows,
            ..self
        })
    }
}

/// What an update was made with.
struct Made {
    rate: f64,
    /// Norm of all gradients before clipping.
    grad_norm: f64,
}

impl Trainer {
    /// One update from at most one batch of each task; batches of tasks with alpha 0 are skipped. All rows go through the encoder
    /// together. `epoch` only goes into the record.
    ///
    /// # Errors
    /// When a batch does not fit, a loss or gradient is not finite, or, once every task has had a batch, a parameter that is not
    /// frozen has had no gradient. The parameters are then as before the step.
    pub fn step(&mut self, epoch: u64, batches: &[Batch]) -> Result<StepRecord, Error> {
        self.accumulated(epoch, &[batches])
    }

    /// As [`Trainer::step`], from several micro-batches one after the other, each with at most one batch of each task: one update from the mean of
    /// their gradients. Of micro-batches with equally many targets that is the update of one batch of them all.
    ///
    /// # Errors
    /// As [`Trainer::step`], and when there are none or more than `setup.train.accumulate`.
    pub fn accumulated<B: AsRef<[Batch]>>(&mut self, epoch: u64, micro: &[B]) -> Result<StepRecord, Error> {
        let (step, most) = (self.steps() + 1, self.setup.train.accumulate);
        if micro.is_empty() || micro.len() as u64 > most {
            let found = micro.len();
            return Err(Error::Misfit(format!(
                "step {step}: {found} micro-batches, expected from 1 to {most} (accumulate)"
            )));
        }
        let key = CounterRng::new(self.setup.train.seed).named("dropout").branch(step);
        let mut sum: Option<Micro> = None;
        for (number, batches) in (0..).zip(micro) {
            // The first one has the key of a step that has no other, so that one micro-batch is a step as any.
            let dropout = if number == 0 { key } else { key.named("micro-batch").branch(number) };
            let made = self.micro(step, batches.as_ref(), dropout, 1.0 / micro.len() as f64)?;
            sum = Some(match sum {
                Some(sum) => sum.with(made)?,
                None => made,
            });
        }
        let Some(Micro { grads, loss, tasks, labels, tokens, rows }) = sum else {
            return Err(error::no_batch(step));
        };
        let Made { rate: learning_rate, grad_norm } = self.update(step, grads, &tasks)?;
        Ok(StepRecord { step, epoch, loss, tasks, labels, learning_rate, grad_norm, tokens, rows })
    }

    /// The gradients of a micro-batch, whose loss counts so much of the step's.
    fn micro(&self, step: u64, batches: &[Batch], dropout: CounterRng, share: f64) -> Result<Micro, Error> {
        let (losses, tokens) = self.losses(step, batches, Some(dropout))?;
        let of_labels = self.outputs.own_loss(&*self.attention)?;
        let (total, loss) = self.total(step, &losses, of_labels.as_ref())?;
        let tasks = TaskRecord::of(&losses)?;
        let labels = of_labels.map(|loss| scalars::read(&[&loss])).transpose()?.and_then(|mut of| of.pop());
        // A step of one batch has no operation more.
        let total = if share < 1.0 { (total * share)? } else { total };
        let grads = self.gradients(&total)?;
        let (tokens, rows) = (tokens.count(), tokens.spans.len());
        let labels = labels.map(|labels| labels * share);
        Ok(Micro { grads, loss: loss * share, tasks, labels, tokens, rows })
    }

    /// Loss and accuracy of each task without dropout and without an update; under the gates and in the dtype of training.
    ///
    /// # Errors
    /// When a batch does not fit.
    pub fn evaluate(&self, batches: &[Batch]) -> Result<Records, Error> {
        let (losses, _) = self.losses(self.steps(), batches, None)?;
        Ok(TaskRecord::of(&losses)?)
    }

    /// The batches that count.
    fn active<'a>(&self, step: u64, batches: &'a [Batch]) -> Result<Vec<&'a Batch>, Error> {
        let mut active: Vec<&Batch> = vec![];
        for batch in batches {
            let task = self.setup.outline.task(batch.task)?;
            if active.iter().any(|other| other.task == batch.task) {
                return Err(error::two_batches(step, task.name.clone()));
            }
            if task.alpha > 0.0 {
                active.push(batch);
            }
        }
        if active.is_empty() { Err(error::no_batch(step)) } else { Ok(active) }
    }

    /// The loss of each batch that counts, and the tokens of all.
    fn losses<'a>(
        &'a self,
        step: u64,
        batches: &'a [Batch],
        dropout: Option<CounterRng>,
    ) -> Result<(Vec<Weighed<'a>>, Tokens), Error> {
        let active = self.active(step, batches)?;
        let tokens = predict::tokens(&self.setup.outline, &active, &self.setup.encoder, &self.device)?;
        let gates = self.gates_lh.as_ref().map_or(Gates::Open, Gates::Shared);
        let pass = Pass { attention: &*self.attention, gates, dropout };
        let hidden = self.encoder.forward(&self.setup.encoder, &tokens, &pass)?;
        let x_nd = hidden.last().ok_or_else(|| error::no_batch(step))?;
        let each = active.into_iter().enumerate();
        let losses = each.map(|(i, batch)| {
            let rows = self.outputs.rows(&tokens, i, batch.task);
            let loss = self.outputs.loss(x_nd, rows, batch, dropout)?;
            let task = &self.setup.outline.tasks[batch.task];
            Ok(Weighed { task: &task.name, alpha: task.alpha, batch, loss })
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
            all.push((of.task, of.alpha, &of.loss.loss));
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
    fn update(&mut self, step: u64, grads: BTreeMap<String, Tensor>, tasks: &Records) -> Result<Made, Error> {
        let grad_norm = clip::global_norm(&grads)?;
        if !grad_norm.is_finite() {
            return Err(wild_gradient(step, &grads, tasks)?);
        }
        self.coverage.see(step, tasks, &grads)?;
        let rate = self.setup.train.schedule.rate(step);
        let scale = clip::factor(grad_norm, self.setup.train.clip_norm);
        let before = self.heads.before(&self.params)?;
        self.optimiser.step(&self.params, grads, Update { rate, scale })?;
        self.heads.hold_back(&self.params, &before)?;
        Ok(Made { rate, grad_norm })
    }

    /// Gradients of all parameters that are not frozen; 0 in the heads that are.
    fn gradients(&self, total: &Tensor) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut store = crate::nn::gradients::gradients(total)?;
        let trained = self.params.iter().filter(|(name, _)| !self.frozen.contains_key(*name));
        let mut grads =
            trained.filter_map(|(name, param)| Some((name.to_owned(), store.remove(param)?))).collect();
        self.heads.screen(&mut grads)?;
        Ok(grads)
    }

    /// How many operations the graph of a step's loss has.
    #[cfg(test)]
    pub(super) fn graph_nodes(&self, batches: &[Batch]) -> usize {
        let (losses, _) = self.losses(1, batches, None).unwrap();
        self.total(1, &losses, None).unwrap().0.sorted_nodes().len()
    }
}

/// Refuses a number that is infinite or none.
pub(super) fn finite(step: u64, value: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if value.is_finite() { Ok(()) } else { Err(error::not_finite(step, what(), value)) }
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
    let what = format!(
        "the norm of the gradient of {name} (tasks of the step: {})",
        tasks.keys().cloned().collect::<Vec<_>>().join(", ")
    );
    Ok(error::not_finite(step, what, value))
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
