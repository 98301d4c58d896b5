//! Steps on a CUDA device: launched without waiting, told of when the device has finished them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_core::Device;

use super::coverage::Coverage;
use super::machine::{Job, Machine, Wait};
use super::ranks::Ranks;
use super::record::{Records, StepRecord, TaskRecord};
use super::step::finite;
use super::{Setup, error};
use crate::Error;
use crate::attention::{self, kam, label};
use crate::cuda;
use crate::cuda::flight::Waits;
use crate::cuda::tape::{Landed, Micro, Of, Stepping, Tape};
use crate::cuda::update::Rule;
use crate::optim::head_mask::HeadMask;
use crate::optim::moments::Moments;
use crate::output::{Batch, Targets, pool_name};
use crate::params::{OUTPUTS, Params};
use crate::predict;

/// A tape with what the host keeps of the steps under way.
#[derive(Debug)]
pub(super) struct OnCuda {
    setup: Setup,
    params: Params,
    /// Whether tokens attend with labels, which have a loss of their own.
    has_labels: bool,
    tape: Mutex<Tape>,
    under_way: VecDeque<UnderWay>,
    updates: u64,
}

/// A step under way.
#[derive(Debug)]
struct UnderWay {
    step: u64,
    epoch: u64,
    rate: f64,
    micro: Vec<Told>,
}

/// What the host knows of a micro-batch.
#[derive(Debug)]
struct Told {
    share: f64,
    batches: Vec<Asked>,
    tokens: usize,
    rows: usize,
}

/// What the host knows of a task's batch.
#[derive(Debug, Clone, Copy)]
struct Asked {
    task: usize,
    targets: usize,
    samples: usize,
    /// Whether one class is asked for.
    has_hits: bool,
}

impl Asked {
    fn of(batch: &Batch) -> Self {
        let Batch { task, targets, .. } = batch;
        let has_hits = matches!(targets, Targets::Classes(_) | Targets::Tokens(_));
        Asked { task: *task, targets: targets.asked(), samples: targets.samples(), has_hits }
    }

    fn record(&self, [loss, hits]: [f64; 2]) -> TaskRecord {
        let Asked { targets, samples, has_hits, .. } = *self;
        TaskRecord { loss, accuracy: has_hits.then(|| hits / targets.max(1) as f64), targets, samples }
    }
}

impl OnCuda {
    /// A training of a setup's parameters, which are on the device; `trained` says which of them move.
    ///
    /// # Errors
    /// When the model or its training has something that kernels do not compute, or memory is lacking.
    pub(super) fn new(
        setup: &Setup,
        params: &Params,
        trained: impl Fn(&str) -> bool,
        heads: &HeadMask,
        device: &Device,
    ) -> Result<Self, Error> {
        let (train, gates) = (&setup.train, setup.gates_of_training());
        let of = Of {
            config: &setup.encoder,
            outline: &setup.outline,
            attention: &setup.attention(),
            params,
            gates: gates.as_ref(),
            dtype: train.dtype,
            recompute: train.recompute,
        };
        let rule = match &train.optimiser {
            None => Rule::AdamW { config: train.adamw.clone(), missing: train.missing },
            Some(optimiser) => Rule::Reference(optimiser.clone()),
        };
        let most = (setup.outline.tasks.len() + 1)
            .saturating_mul(usize::try_from(train.accumulate).unwrap_or(usize::MAX));
        let stepping = Stepping { rule, clip_norm: train.clip_norm, most };
        let tape = Tape::new(cuda::device(device)?, of, heads, &trained, stepping)?;
        let has_labels =
            matches!(setup.attention().sibling().on_cuda(), Some(attention::OnCuda::Labels { .. }));
        let (setup, params) = (setup.clone(), params.clone());
        Ok(OnCuda {
            setup,
            params,
            has_labels,
            tape: Mutex::new(tape),
            under_way: VecDeque::new(),
            updates: 0,
        })
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a parameter has a gradient in a step with these tasks.
    fn has_gradient(&self, name: &str, tasks: &[usize]) -> bool {
        let tasks = || tasks.iter().filter_map(|task| self.setup.outline.tasks.get(*task));
        if name.starts_with("pooler.") || name.starts_with(&pool_name()) {
            return tasks().any(|task| !task.output.is_of_tokens());
        }
        let of_attention = name == label::name() || name.starts_with(&kam::prefix());
        !name.starts_with(OUTPUTS) || of_attention || tasks().any(|task| name.starts_with(&task.prefix()))
    }

    /// What a step that has ended says of itself.
    fn record(&self, of: &UnderWay, landed: &Landed) -> Result<StepRecord, Error> {
        let (mut tasks, mut total, mut left) = (Records::new(), 0.0, &landed.losses[..]);
        let mut labels = self.has_labels.then_some(0.0);
        for micro in &of.micro {
            let (own, rest) = left.split_at(micro.batches.len().min(left.len()));
            left = rest;
            for (asked, found) in micro.batches.iter().zip(own) {
                let (task, record) = (self.setup.outline.task(asked.task)?, asked.record(*found));
                finite(of.step, record.loss, || format!("the loss of {}", task.name))?;
                total += task.alpha * micro.share * record.loss;
                tasks
                    .entry(task.name.clone())
                    .and_modify(|sum: &mut TaskRecord| *sum = sum.with(&record))
                    .or_insert(record);
            }
            // The labels' own loss stands behind those of the batches; they are those of the one task.
            if let (Some(sum), Some(([loss, _], rest))) = (&mut labels, left.split_first()) {
                finite(of.step, *loss, || "the loss of the labels".to_owned())?;
                *sum += micro.share * loss;
                left = rest;
            }
        }
        let alpha = self.setup.outline.tasks.first().map_or(0.0, |task| task.alpha);
        total += alpha * labels.unwrap_or(0.0);
        Ok(StepRecord {
            step: of.step,
            epoch: of.epoch,
            loss: total,
            tasks,
            labels,
            learning_rate: of.rate,
            grad_norm: landed.norm,
            tokens: of.micro.iter().map(|micro| micro.tokens).sum(),
            rows: of.micro.iter().map(|micro| micro.rows).sum(),
        })
    }
}

impl Machine for OnCuda {
    fn begin(&mut self, job: &Job<'_>, _: &mut Coverage) -> Result<(), Error> {
        let Job { step, epoch, micro } = job;
        let (rate, share) = (self.setup.train.schedule.rate(*step), 1.0 / micro.len() as f64);
        let (mut micros, mut told, mut tasks) = (vec![], vec![], vec![]);
        for (number, batches) in (0..).zip(micro) {
            let Setup { outline, encoder, .. } = &self.setup;
            let tokens = predict::tokens(outline, batches, encoder, &Device::Cpu)?;
            let asked = batches.iter().map(|batch| Asked::of(batch)).collect();
            tasks.extend(batches.iter().map(|batch| batch.task));
            told.push(Told { share, batches: asked, tokens: tokens.count(), rows: tokens.spans.len() });
            let dropout = self.setup.dropout_key(*step, number);
            micros.push(Micro { tokens, batches: batches.clone(), dropout, share });
        }
        let has_gradient = |name: &str| self.has_gradient(name, &tasks);
        self.tape().step(rate, &micros, has_gradient)?;
        self.under_way.push_back(UnderWay { step: *step, epoch: *epoch, rate, micro: told });
        self.updates += 1;
        Ok(())
    }

    fn landed(&mut self, wait: Wait, coverage: &mut Coverage) -> Result<Option<StepRecord>, Error> {
        let landed = {
            let mut tape = self.tape();
            let waits = match wait {
                Wait::ForAll => Waits::Yes,
                Wait::ForRoom if tape.is_full() => Waits::Yes,
                Wait::ForRoom | Wait::No => Waits::No,
            };
            tape.landed(waits)?
        };
        let Some((landed, of)) = landed.zip(self.under_way.pop_front()) else { return Ok(None) };
        let record = self.record(&of, &landed)?;
        if !landed.norm.is_finite() {
            let name = landed.wild.as_deref().unwrap_or("all parameters together");
            return Err(error::wild_gradient(of.step, name, landed.norm, &record.tasks));
        }
        coverage.see_norms(of.step, &record.tasks, &landed.norms)?;
        Ok(Some(record))
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    fn evaluate(&self, _: u64, batches: &[&Batch]) -> Result<Records, Error> {
        let Setup { outline, encoder, .. } = &self.setup;
        let tokens = predict::tokens(outline, batches, encoder, &Device::Cpu)?;
        let found = self.tape().evaluate(&tokens, batches)?;
        let each = batches.iter().zip(found);
        each.map(|(batch, found)| {
            Ok((outline.task(batch.task)?.name.clone(), Asked::of(batch).record(found)))
        })
        .collect()
    }

    fn join(&mut self, ranks: &Ranks) -> Result<(), Error> {
        if ranks.are_several() {
            return Err(Error::Misfit(
                "several ranks train on the CPU, not on CUDA yet: take the device cpu, or one rank"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn moments(&self) -> Result<BTreeMap<String, Moments>, Error> {
        self.tape().moments(&self.params)
    }

    fn restore(&mut self, moments: BTreeMap<String, Moments>, updates: u64) -> Result<(), Error> {
        self.updates = updates;
        self.tape().restore(&moments)
    }

    fn weights_were_set(&mut self) -> Result<(), Error> {
        self.tape().refresh()
    }
}
