//! Steps on a CUDA device: launched without waiting, told of when the device has finished them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_core::Device;

use super::coverage::Coverage;
use super::machine::{Job, Machine, Wait};
use super::ranks::{Counts, Plan, Ranks};
use super::record::{Records, StepRecord, TaskRecord};
use super::step::finite;
use super::{Setup, error};
use crate::Error;
use crate::attention::{self, kam, label};
use crate::cuda;
use crate::cuda::flight::Waits;
use crate::cuda::model::{Of, Share};
use crate::cuda::tape::{Landed, Micro, Stepping, Tape};
use crate::cuda::update::Rule;
use crate::optim::head_mask::HeadMask;
use crate::optim::moments::Moments;
use crate::output::{Batch, pool_name};
use crate::params::{OUTPUTS, Params};
use crate::predict;

/// A tape with what the host keeps of the steps under way.
#[derive(Debug)]
pub(super) struct OnCuda {
    setup: Setup,
    params: Params,
    /// Whether tokens attend with labels, which have a loss of their own.
    has_labels: bool,
    ranks: Ranks,
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
    /// What its micro-batches hold, over all ranks.
    micro: Vec<Plan>,
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
        let micros = usize::try_from(train.accumulate).unwrap_or(usize::MAX);
        let stepping = Stepping { rule, clip_norm: train.clip_norm, micros };
        let tape = Tape::new(cuda::device(device)?, of, heads, &trained, stepping)?;
        let has_labels =
            matches!(setup.attention().sibling().on_cuda(), Some(attention::OnCuda::Labels { .. }));
        let (setup, params) = (setup.clone(), params.clone());
        Ok(OnCuda {
            setup,
            params,
            has_labels,
            ranks: Ranks::default(),
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
        let (mut tasks, mut total) = (Records::new(), 0.0);
        let mut labels = self.has_labels.then_some(0.0);
        let share = 1.0 / of.micro.len() as f64;
        for (plan, found) in of.micro.iter().zip(&landed.losses) {
            for ((task, counts), found) in self.setup.outline.tasks.iter().zip(&plan.tasks).zip(found) {
                let Some(counts) = counts else { continue };
                let record = counts.record(*found);
                finite(of.step, record.loss, || format!("the loss of {}", task.name))?;
                total += task.alpha * share * record.loss;
                tasks
                    .entry(task.name.clone())
                    .and_modify(|sum: &mut TaskRecord| *sum = sum.with(&record))
                    .or_insert(record);
            }
            // The labels' own loss stands behind those of the tasks; they are those of the one task.
            if let (Some(sum), Some([loss, _])) = (&mut labels, found.last()) {
                finite(of.step, *loss, || "the loss of the labels".to_owned())?;
                *sum += share * loss;
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
            tokens: of.micro.iter().map(|plan| plan.tokens).sum(),
            rows: of.micro.iter().map(|plan| plan.rows).sum(),
        })
    }
}

impl Machine for OnCuda {
    fn begin(&mut self, job: &Job<'_>, _: &mut Coverage) -> Result<(), Error> {
        let Job { step, epoch, micro } = job;
        let Setup { outline, encoder, .. } = &self.setup;
        let (rate, share) = (self.setup.train.schedule.rate(*step), 1.0 / micro.len() as f64);
        let plans = self.ranks.plans(&outline.tasks, micro)?;
        if plans.iter().all(Plan::is_empty) {
            return Err(error::no_batch(*step));
        }
        let mut micros = vec![];
        for (number, (batches, plan)) in micro.iter().zip(&plans).enumerate() {
            // Another rank may have rows where this one has none.
            if batches.is_empty() {
                continue;
            }
            let of = |loss: f64| Share { gradient: share * loss, loss };
            let shares = batches.iter().map(|batch| (*batch, of(plan.of_task(batch.task)))).collect();
            micros.push(Micro {
                tokens: predict::tokens(outline, batches, encoder, &Device::Cpu)?,
                batches: shares,
                dropout: self.setup.dropout_key(*step, self.ranks.number_of(number as u64)),
                of_labels: of(plan.of_labels()),
                number,
            });
        }
        let asked = |task: usize| plans.iter().any(|plan| plan.tasks.get(task).is_some_and(Option::is_some));
        let tasks: Vec<usize> = (0..outline.tasks.len()).filter(|task| asked(*task)).collect();
        let has_gradient = |name: &str| self.has_gradient(name, &tasks);
        self.tape().step(rate, &micros, has_gradient)?;
        self.under_way.push_back(UnderWay { step: *step, epoch: *epoch, rate, micro: plans });
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
        coverage.see_norms(of.step, &record.tasks, &landed.norms, &BTreeSet::new())?;
        Ok(Some(record))
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    fn evaluate(&self, _: u64, batches: &[&Batch]) -> Result<Records, Error> {
        let Setup { outline, encoder, .. } = &self.setup;
        let tokens = predict::tokens(outline, batches, encoder, &Device::Cpu)?;
        let found = self.tape().evaluate(&tokens, batches)?;
        let each = batches.iter().filter_map(|batch| Some((*batch, *found.get(batch.task)?)));
        each.map(|(batch, found)| {
            Ok((outline.task(batch.task)?.name.clone(), Counts::of(batch).record(found)))
        })
        .collect()
    }

    fn join(&mut self, ranks: &Ranks) -> Result<(), Error> {
        if ranks.are_several() {
            self.tape().join(ranks.collective())?;
        }
        self.ranks = ranks.clone();
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

    fn activation_bytes(&self) -> Option<usize> {
        Some(self.tape().activation_bytes())
    }
}
