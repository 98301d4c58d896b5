//! When to stop: held-out samples are evaluated now and then, the best parameters are kept, and training ends once they have not become better for so many
//! evaluations (KIMERA, table A3).

use std::collections::BTreeMap;
use std::path::Path;

use batch::Batch;
use batch::task::Task;
use serde::{Deserialize, Serialize};

use super::best::{self, Files};
use super::core::finite;
use super::record::TaskRecord;
use super::{Trainer, error};
use crate::Error;

/// How long to wait for a better held-out loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Steps between two evaluations on held-out samples.
    pub every: u64,
    /// Evaluations in a row without a better loss after which training stops.
    pub evaluations: u64,
}

/// What an evaluation on held-out samples says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was never better: the parameters are kept.
    Best,
    /// It was better before.
    Worse,
    /// It was better before, and that is long ago: training is to stop.
    Stop,
}

/// One evaluation on held-out samples. The caller adds the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldOut {
    /// Steps made before it.
    pub step: u64,
    /// Sum over tasks of alpha times the mean loss over all targets.
    pub loss: f64,
    /// Mean loss and accuracy of each task over all its targets.
    pub tasks: BTreeMap<Task, TaskRecord>,
    /// What follows.
    pub verdict: Verdict,
}

/// The best evaluation so far, and how many came after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watch<B> {
    pub(super) best: Option<B>,
    since: u64,
    /// The checkpoint of the best one, in the folder of the state, which names it itself.
    #[serde(skip)]
    pub(super) files: Files,
}

/// The evaluation with the lowest loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Steps made before it.
    pub step: u64,
    /// Its loss.
    pub loss: f64,
}

impl<B> Watch<B> {
    /// No evaluation so far.
    pub(super) fn new() -> Self {
        Watch { best: None, since: 0, files: Files::new() }
    }

    /// Takes note of an evaluation, which `better` compares with the best one so far.
    pub(super) fn see(
        &mut self,
        look: B,
        better: impl FnOnce(&B, &B) -> bool,
        patience: Option<&Patience>,
    ) -> Verdict {
        if self.best.as_ref().is_none_or(|best| better(&look, best)) {
            (self.best, self.since) = (Some(look), 0);
            return Verdict::Best;
        }
        self.since += 1;
        match patience {
            Some(patience) if self.since >= patience.evaluations => Verdict::Stop,
            _ => Verdict::Worse,
        }
    }
}

impl Patience {
    /// Whether to evaluate after so many steps.
    pub(super) fn is_due(&self, steps: u64) -> bool {
        steps > 0 && steps.is_multiple_of(self.every)
    }
}

/// Whether one evaluation has the lower loss.
fn lower(look: &Best, best: &Best) -> bool {
    look.loss < best.loss
}

impl Trainer {
    /// Whether an evaluation on held-out samples is due after the steps made so far.
    #[must_use]
    pub fn evaluation_is_due(&self) -> bool {
        self.setup.train.patience.as_ref().is_some_and(|patience| patience.is_due(self.steps()))
    }

    /// The best evaluation so far: [`Trainer::save_best`] gives its parameters.
    #[must_use]
    pub fn best(&self) -> Option<Best> {
        self.watch.best
    }

    /// Puts the checkpoint of the best evaluation, which lies in the folder `state`, where `dir` is, as [`Trainer::save_checkpoint`] does with
    /// that of now.
    ///
    /// # Errors
    /// When it is not what was written, or a file cannot be written.
    pub fn save_best(&self, state: &Path, dir: &Path) -> Result<(), Error> {
        best::hand_over(state, &self.watch.files, dir)
    }

    /// Looks at the held-out samples, which come in the batches of one step after the other, without dropout. When their loss was
    /// never lower, writes a checkpoint into the folder of the state, `state`, where it stays until a state knows a better one.
    ///
    /// # Errors
    /// When a batch does not fit, a loss is not finite, there is no batch, or the checkpoint cannot be written.
    pub fn evaluated(
        &mut self,
        held_out: impl IntoIterator<Item = Vec<Batch>>,
        state: &Path,
    ) -> Result<HeldOut, Error> {
        let step = self.steps();
        let mut sums: BTreeMap<Task, TaskRecord> = BTreeMap::new();
        for batches in held_out {
            for (task, record) in self.evaluate(&batches)? {
                finite(step, record.loss, || format!("the held-out loss of {}", task.name()))?;
                sums.entry(task).and_modify(|sum| *sum = sum.with(&record)).or_insert(record);
            }
        }
        if sums.is_empty() {
            return Err(error::no_batch(step));
        }
        let weighed = |(task, record): (&Task, &TaskRecord)| {
            self.setup.train.alphas.of(*task).unwrap_or(0.0) * record.loss
        };
        let loss = sums.iter().map(weighed).sum();
        let mut watch = self.watch.clone();
        let verdict = watch.see(Best { step, loss }, lower, self.setup.train.patience.as_ref());
        if verdict == Verdict::Best {
            watch.files = best::keep(state, step, |dir| self.save_checkpoint(dir))?;
        }
        self.watch = watch;
        Ok(HeldOut { step, loss, tasks: sums, verdict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_once_nothing_has_become_better_for_so_many_looks() {
        let verdicts = |patience: Option<Patience>, losses: &[f64]| {
            let mut watch = Watch::new();
            let see =
                |(step, loss): (u64, &f64)| watch.see(Best { step, loss: *loss }, lower, patience.as_ref());
            (1..).zip(losses).map(see).collect::<Vec<_>>()
        };
        let two = Some(Patience { every: 10, evaluations: 2 });
        let found = verdicts(two, &[3.0, 2.0, 2.5, 1.0, 1.0, 1.5]);
        let expected = [
            Verdict::Best,
            Verdict::Best,
            Verdict::Worse,
            Verdict::Best,
            // As low as before is not better.
            Verdict::Worse,
            Verdict::Stop,
        ];
        assert_eq!(found, expected);
        assert_eq!(verdicts(None, &[1.0, 2.0, 2.0, 2.0])[1..], [Verdict::Worse; 3]);
    }
}
