//! Steps of a training: batches in, records out, at once or some steps later.

use super::machine::{Job, Wait};
use super::record::{Records, StepRecord};
use super::{Trainer, error};
use crate::Error;
use crate::output::Batch;

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
    /// their gradients. Of micro-batches with equally many targets that is the update of one batch of them all. It waits until the step is done.
    ///
    /// # Errors
    /// As [`Trainer::step`], and when there are none or more than `setup.train.accumulate`.
    pub fn accumulated<B: AsRef<[Batch]>>(&mut self, epoch: u64, micro: &[B]) -> Result<StepRecord, Error> {
        self.idle()?;
        let mut records = self.advance(epoch, micro)?;
        records.extend(self.settle()?);
        records.pop().ok_or_else(|| error::no_batch(self.steps()))
    }

    /// As [`Trainer::accumulated`], without waiting where the device computes by itself: what it gives are the records of steps that have ended since it was
    /// asked last, oldest first, this one among them or not.
    ///
    /// # Errors
    /// As there, of this step or of one before it. On the CPU the parameters are then as before the step; a device that was ahead has skipped the update of
    /// a step whose gradient was not finite, and has made those behind it.
    pub fn advance<B: AsRef<[Batch]>>(&mut self, epoch: u64, micro: &[B]) -> Result<Vec<StepRecord>, Error> {
        let (step, most) = (self.steps() + 1, self.setup.train.accumulate);
        if micro.is_empty() || micro.len() as u64 > most {
            let found = micro.len();
            return Err(Error::Misfit(format!(
                "step {step}: {found} micro-batches, expected from 1 to {most} (accumulate)"
            )));
        }
        let active = micro.iter().map(|batches| self.active(step, batches.as_ref()));
        let micro: Vec<Vec<&Batch>> = active.collect::<Result<_, _>>()?;
        if !self.ranks.are_several() && micro.iter().any(Vec::is_empty) {
            return Err(error::no_batch(step));
        }
        let mut records = self.landed(Wait::ForRoom)?;
        self.machine.begin(&Job { step, epoch, micro }, &mut self.coverage)?;
        records.extend(self.landed(Wait::No)?);
        Ok(records)
    }

    /// Waits for all steps that have begun; gives the records of those that [`Trainer::advance`] has not given.
    ///
    /// # Errors
    /// As [`Trainer::advance`].
    pub fn settle(&mut self) -> Result<Vec<StepRecord>, Error> {
        self.landed(Wait::ForAll)
    }

    /// The records of steps that are done; of the first one it waits as long as it is told.
    fn landed(&mut self, wait: Wait) -> Result<Vec<StepRecord>, Error> {
        let (mut records, mut wait) = (vec![], wait);
        while let Some(record) = self.machine.landed(wait, &mut self.coverage)? {
            records.push(record);
            wait = if wait == Wait::ForRoom { Wait::No } else { wait };
        }
        Ok(records)
    }

    /// Refuses what goes by the parameters while steps are under way whose end nobody knows.
    pub(super) fn idle(&self) -> Result<(), Error> {
        if self.machine.is_idle() {
            return Ok(());
        }
        Err(Error::Misfit("steps are under way: ask Trainer::settle first".to_owned()))
    }

    /// Loss and accuracy of each task without dropout and without an update; under the gates and in the dtype of training.
    ///
    /// # Errors
    /// When a batch does not fit.
    pub fn evaluate(&self, batches: &[Batch]) -> Result<Records, Error> {
        let step = self.steps();
        let active = self.active(step, batches)?;
        if active.is_empty() {
            return Err(error::no_batch(step));
        }
        self.machine.evaluate(step, &active)
    }

    /// The machine of a trainer on the CPU.
    #[cfg(test)]
    pub(super) fn composed(&self) -> &super::composed::Composed {
        self.machine.composed().unwrap()
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
        Ok(active)
    }
}

/// Refuses a number that is infinite or none.
pub(super) fn finite(step: u64, value: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if value.is_finite() { Ok(()) } else { Err(error::not_finite(step, what(), value)) }
}
