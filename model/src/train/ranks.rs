//! One rank among those that train a model together: what its batches count, and what all of them come to.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::Trainer;
use super::collective::{Collective, Solo};
use super::micro::Micro;
use super::record::TaskRecord;
use crate::Error;
use crate::output::{Batch, Targets, Task};
use crate::params::Params;

/// A rank with the others.
#[derive(Debug, Clone)]
pub(super) struct Ranks(Arc<dyn Collective>);

impl Default for Ranks {
    fn default() -> Self {
        Ranks(Arc::new(Solo))
    }
}

/// What the ranks of a training do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another step.
    Step,
    /// No further one.
    Stop,
}

/// What a task's batch holds, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) targets: usize,
    pub(super) samples: usize,
    /// Whether one class is asked for, so that there are hits.
    pub(super) has_hits: bool,
}

/// What a micro-batch of all ranks holds, and what this rank's part of it counts.
#[derive(Debug)]
pub(super) struct Plan {
    /// By the number of the task; none of one without a batch.
    pub(super) tasks: Vec<Option<Counts>>,
    pub(super) tokens: usize,
    pub(super) rows: usize,
    /// What this rank's mean of each task counts in the mean of all ranks.
    shares: Vec<f64>,
    /// Ranks that have rows.
    ranks: f64,
}

/// Numbers of all batches together, tokens, rows and whether there are some, and of each task: the weight of its targets, [`Counts`], and whether it is there.
const OF_ALL: usize = 3;
const OF_TASK: usize = 5;

impl Counts {
    /// Those of one batch.
    pub(super) fn of(batch: &Batch) -> Self {
        let targets = &batch.targets;
        let has_hits = matches!(targets, Targets::Classes(_) | Targets::Tokens(_));
        Counts { targets: targets.asked(), samples: targets.samples(), has_hits }
    }

    /// What is said of a task with such a loss and so many hits.
    pub(super) fn record(&self, [loss, hits]: [f64; 2]) -> TaskRecord {
        let Counts { targets, samples, has_hits } = *self;
        TaskRecord { loss, accuracy: has_hits.then(|| hits / targets.max(1) as f64), targets, samples }
    }
}

impl Plan {
    /// The numbers of this rank's batches.
    fn own(tasks: &[Task], batches: &[&Batch]) -> Vec<f64> {
        let mut own = vec![0.0; OF_ALL + OF_TASK * tasks.len()];
        for batch in batches {
            let lengths = &batch.rows.lengths;
            own[0] += lengths.iter().sum::<usize>() as f64;
            own[1] += lengths.len() as f64;
            own[2] = 1.0;
            if let Some(task) = tasks.get(batch.task) {
                let Counts { targets, samples, has_hits } = Counts::of(batch);
                let (weight, has_hits) = (batch.targets.weight(&task.output), f64::from(u8::from(has_hits)));
                let of = [weight, targets as f64, samples as f64, has_hits, 1.0];
                own[OF_ALL + OF_TASK * batch.task..][..OF_TASK].copy_from_slice(&of);
            }
        }
        own
    }

    /// From this rank's numbers and the sums over all.
    fn new(own: &[f64], all: &[f64]) -> Self {
        let share = |(own, all): (&[f64], &[f64])| if all[0] > 0.0 { own[0] / all[0] } else { 0.0 };
        let counts =
            |all: &[f64]| Counts { targets: whole(all[1]), samples: whole(all[2]), has_hits: all[3] > 0.0 };
        let (of_all, of_tasks) = all.split_at(OF_ALL);
        let of_tasks = || of_tasks.chunks_exact(OF_TASK);
        Plan {
            tasks: of_tasks().map(|all| (all[4] > 0.0).then(|| counts(all))).collect(),
            tokens: whole(of_all[0]),
            rows: whole(of_all[1]),
            shares: own[OF_ALL..].chunks_exact(OF_TASK).zip(of_tasks()).map(share).collect(),
            ranks: of_all[2],
        }
    }

    /// Whether no rank has a row.
    #[cfg(feature = "cuda")]
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What this rank's mean of a task counts in the mean of all ranks.
    pub(super) fn of_task(&self, task: usize) -> f64 {
        self.shares.get(task).copied().unwrap_or(0.0)
    }

    /// What the loss of the labels counts, which is the same on every rank that has rows.
    pub(super) fn of_labels(&self) -> f64 {
        1.0 / self.ranks
    }
}

impl Ranks {
    /// Whether there are others.
    pub(super) fn are_several(&self) -> bool {
        self.0.world() > 1
    }

    /// Itself among the others.
    #[cfg(feature = "cuda")]
    pub(super) fn collective(&self) -> &Arc<dyn Collective> {
        &self.0
    }

    /// The number of this rank's micro-batch among those of a step.
    pub(super) fn number_of(&self, micro_batch: u64) -> u64 {
        micro_batch * self.0.world() as u64 + self.0.rank() as u64
    }

    /// What each micro-batch of a step holds.
    ///
    /// # Errors
    /// When a rank has stopped.
    pub(super) fn plans(&self, tasks: &[Task], micro: &[Vec<&Batch>]) -> Result<Vec<Plan>, Error> {
        let own: Vec<f64> = micro.iter().flat_map(|batches| Plan::own(tasks, batches)).collect();
        let mut all = own.clone();
        self.0.sum(&mut all)?;
        let width = OF_ALL + OF_TASK * tasks.len();
        let each = own.chunks_exact(width).zip(all.chunks_exact(width));
        Ok(each.map(|(own, all)| Plan::new(own, all)).collect())
    }

    /// The numbers of a micro-batch over all ranks. Its gradients stay this rank's: [`Ranks::gradients`] adds those of a whole step.
    ///
    /// # Errors
    /// When a rank has stopped.
    pub(super) fn together(&self, tasks: &[Task], own: Micro, plan: &Plan) -> Result<Micro, Error> {
        if !self.are_several() {
            return Ok(own);
        }
        let [labels, has_labels] = own.labels.map_or([0.0; 2], |labels| [labels, 1.0]);
        let mut numbers = vec![own.loss, labels, has_labels];
        for (number, task) in tasks.iter().enumerate() {
            numbers.extend(own.tasks.get(&task.name).map_or([0.0; 2], |of| {
                [of.loss * plan.of_task(number), of.accuracy.unwrap_or(0.0) * of.targets as f64]
            }));
        }
        self.0.sum(&mut numbers)?;
        let (of_all, of_tasks) = numbers.split_at(3);
        let each = tasks.iter().zip(&plan.tasks).zip(of_tasks.chunks_exact(2));
        let records = each.filter_map(|((task, counts), of)| {
            Some((task.name.clone(), counts.as_ref()?.record([of[0], of[1]])))
        });
        Ok(Micro {
            grads: own.grads,
            loss: of_all[0],
            tasks: records.collect(),
            labels: (of_all[2] > 0.0).then_some(of_all[1]),
            tokens: plan.tokens,
            rows: plan.rows,
        })
    }

    /// The sums of this rank's gradients and those of the others. What no rank has a gradient of has none.
    ///
    /// # Errors
    /// When a rank has stopped, or memory is lacking.
    pub(super) fn gradients(
        &self,
        params: &Params,
        trained: &[String],
        mut own: BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        if !self.are_several() {
            return Ok(own);
        }
        let mut has: Vec<f64> =
            trained.iter().map(|name| f64::from(u8::from(own.contains_key(name)))).collect();
        self.0.sum(&mut has)?;
        let of_some: Vec<&String> =
            trained.iter().zip(&has).filter(|(_, has)| **has > 0.0).map(|(name, _)| name).collect();
        let mut flat = vec![];
        for name in &of_some {
            match own.remove(*name) {
                Some(grad) => flat.extend(grad.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?),
                None => flat.resize(flat.len() + params.get(name)?.elem_count(), 0.0),
            }
        }
        self.0.sum_gradients(&mut flat)?;
        let (mut all, mut rest) = (BTreeMap::new(), &flat[..]);
        for name in of_some {
            let param = params.get(name)?;
            let (numbers, behind) = rest.split_at(param.elem_count());
            rest = behind;
            let grad = Tensor::from_slice(numbers, param.shape(), &Device::Cpu)?;
            all.insert(name.clone(), grad.to_device(param.device())?);
        }
        Ok(all)
    }
}

/// A count that was added as a number.
fn whole(count: f64) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sum of counts, exact to 2^53"
    )]
    let count = count as usize;
    count
}

impl Trainer {
    /// The same trainer as one rank among others, each with a share of every batch: a step is then that of all their batches together, by as many
    /// micro-batches on every rank. All ranks wait here for one another.
    ///
    /// # Errors
    /// When the device makes no steps with others, a rank has stopped, or this one has other settings, weights or steps than rank 0.
    pub fn among(mut self, others: Arc<dyn Collective>) -> Result<Self, Error> {
        let ranks = Ranks(others);
        self.machine.join(&ranks)?;
        if ranks.are_several() {
            let own = [self.begun_with()?, self.steps()].map(|number| number as f64);
            let mut of_first = if ranks.0.rank() == 0 { own } else { [0.0; 2] };
            ranks.0.sum(&mut of_first)?;
            if own != of_first {
                return Err(Error::Misfit(format!(
                    "rank {} begins with other settings or weights than rank 0, or after another step: start all ranks with one configuration and from one state",
                    ranks.0.rank()
                )));
            }
        }
        self.ranks = ranks;
        Ok(self)
    }

    /// What all ranks do next: they stop as soon as one of them does. Where there are several, each asks before every step.
    ///
    /// # Errors
    /// When a rank has stopped without saying so.
    pub fn next(&self, own: Next) -> Result<Next, Error> {
        let mut stops = [f64::from(u8::from(own == Next::Stop))];
        self.ranks.0.sum(&mut stops)?;
        Ok(if stops[0] > 0.0 { Next::Stop } else { Next::Step })
    }

    /// A digest of settings and weights, of as many bits as a number of two words holds exactly.
    fn begun_with(&self) -> Result<u64, Error> {
        let mut digest = blake3::Hasher::new();
        let run = self.setup.run()?;
        digest.update(run.text().as_bytes());
        for (_, tensor) in self.params.iter() {
            let numbers = tensor.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?;
            digest.update(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
        }
        let [a, b, c, d, e, f, ..] = *digest.finalize().as_bytes();
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }
}
