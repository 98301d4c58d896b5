//! When to stop: held-out samples are evaluated now and then, the best parameters are kept, and training ends once they have not become better for so many
//! evaluations (KIMERA, table A3).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::best::{self, Files, Kept};
use super::record::{Records, TaskRecord};
use super::step::finite;
use super::{Trainer, error};
use crate::Error;
use crate::output::Batch;

/// How long to wait for a better evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Steps between two evaluations on held-out samples.
    pub every: u64,
    /// Evaluations in a row without a better one after which training stops.
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

/// What an evaluation on held-out samples measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// A loss: lower is better.
    Loss(f64),
    /// A score: higher is better.
    Score(f64),
}

impl Measured {
    /// The number.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Measured::Loss(value) | Measured::Score(value) => value,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Measured::Loss(_) => "the loss",
            Measured::Score(_) => "the score",
        }
    }

    /// Whether it is better than another; as good is not better.
    fn beats(self, other: Self) -> bool {
        match self {
            Measured::Loss(value) => value < other.value(),
            Measured::Score(value) => value > other.value(),
        }
    }
}

/// The best evaluation so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Steps made before it.
    pub step: u64,
    /// What it measured.
    #[serde(flatten)]
    pub measured: Measured,
}

/// The best evaluation so far, and how many came after it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watch {
    pub(super) best: Option<Best>,
    since: u64,
    /// The checkpoint of the best one, in the folder of the state, which names it itself.
    #[serde(skip)]
    pub(super) kept: Kept,
}

impl Watch {
    /// No evaluation so far.
    pub(super) fn new() -> Self {
        Watch { best: None, since: 0, kept: Kept::default() }
    }

    /// The same, whose checkpoint has these files.
    pub(super) fn with_files(self, files: Files) -> Self {
        Watch { kept: Kept::whole(files), ..self }
    }

    /// Takes note of an evaluation.
    fn see(&mut self, made: Best, patience: Option<&Patience>) -> Verdict {
        if self.best.is_none_or(|best| made.measured.beats(best.measured)) {
            (self.best, self.since) = (Some(made), 0);
            return Verdict::Best;
        }
        self.since += 1;
        match patience {
            Some(patience) if self.since >= patience.evaluations => Verdict::Stop,
            _ => Verdict::Worse,
        }
    }
}

impl Trainer {
    /// Whether an evaluation on held-out samples is due after the steps made so far.
    #[must_use]
    pub fn evaluation_is_due(&self) -> bool {
        let steps = self.steps();
        let due = |patience: &Patience| steps > 0 && steps.is_multiple_of(patience.every);
        self.setup.train.patience.as_ref().is_some_and(due)
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
    /// When it could not be written, is not what was written, or a file cannot be written.
    pub fn save_best(&self, state: &Path, dir: &Path) -> Result<(), Error> {
        best::hand_over(state, &self.watch.kept.files()?, dir)
    }

    /// The sum over tasks of alpha times the mean loss over all targets of held-out samples, which come in the batches of one step after the other,
    /// and each task by itself; see [`Trainer::evaluate`].
    ///
    /// # Errors
    /// When a batch does not fit, a loss is not finite, or there is no batch.
    pub fn held_out_loss<'b>(
        &self,
        held_out: impl IntoIterator<Item = &'b [Batch]>,
    ) -> Result<(Measured, Records), Error> {
        let step = self.steps();
        let mut sums = Records::new();
        for batches in held_out {
            for (task, record) in self.evaluate(batches)? {
                finite(step, record.loss, || format!("the held-out loss of {task}"))?;
                sums.entry(task)
                    .and_modify(|sum: &mut TaskRecord| *sum = sum.with(&record))
                    .or_insert(record);
            }
        }
        if sums.is_empty() {
            return Err(error::no_batch(step));
        }
        // In the order of the tasks, in which a step's losses are added up.
        let tasks = self.setup.outline.tasks.iter();
        let loss = tasks.filter_map(|task| Some(task.alpha * sums.get(&task.name)?.loss)).sum();
        Ok((Measured::Loss(loss), sums))
    }

    /// Takes note of what an evaluation on held-out samples measured. When it was never better, a thread writes a checkpoint into the folder of the
    /// state, `state`, while training goes on; it stays there until a state knows a better one. As good as before is not better.
    ///
    /// # Errors
    /// When it is not finite, there is no memory for the checkpoint, or the one before could not be written; the evaluation then never was. Whether
    /// this one could be is said by the next better evaluation, the next state or [`Trainer::save_best`].
    pub fn evaluated(&mut self, measured: Measured, state: &Path) -> Result<Verdict, Error> {
        let step = self.steps();
        finite(step, measured.value(), || format!("{} on held-out samples", measured.name()))?;
        let mut watch = self.watch.clone();
        let verdict = watch.see(Best { step, measured }, self.setup.train.patience.as_ref());
        if verdict == Verdict::Best {
            // One such copy of the parameters at a time; a state's may be in memory beside it.
            self.watch.kept.files()?;
            watch.kept = Kept::keep(state, step, self.finished(self.params.part_on_cpu(|_| true)?)?)?;
        }
        self.watch = watch;
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(
        evaluations: Option<u64>,
        measured: impl Fn(f64) -> Measured,
        values: &[f64],
    ) -> Vec<Verdict> {
        let patience = evaluations.map(|evaluations| Patience { every: 10, evaluations });
        let mut watch = Watch::new();
        let see = |(step, value): (u64, &f64)| {
            watch.see(Best { step, measured: measured(*value) }, patience.as_ref())
        };
        (1..).zip(values).map(see).collect()
    }

    #[test]
    fn it_stops_once_nothing_has_become_better_for_so_many_evaluations() {
        let expected = [
            Verdict::Best,
            Verdict::Best,
            Verdict::Worse,
            Verdict::Best,
            // As low as before is not better.
            Verdict::Worse,
            Verdict::Stop,
        ];
        assert_eq!(verdicts(Some(2), Measured::Loss, &[3.0, 2.0, 2.5, 1.0, 1.0, 1.5]), expected);
        assert_eq!(verdicts(Some(2), Measured::Score, &[0.1, 0.2, 0.1, 0.3, 0.3, 0.2]), expected);
        assert_eq!(verdicts(None, Measured::Loss, &[1.0, 2.0, 2.0, 2.0])[1..], [Verdict::Worse; 3]);
    }

    #[test]
    fn what_is_best_says_what_was_measured() {
        let best = Best { step: 3, measured: Measured::Loss(0.5) };
        let json = serde_json::to_string(&best).unwrap();
        assert_eq!(json, r#"{"step":3,"loss":0.5}"#);
        assert_eq!(serde_json::from_str::<Best>(&json).unwrap(), best);
    }
}
