//! Whose turn it is in each step: a pure function of (batches of each task, seed, step).

pub mod merged;
pub mod round_robin;
pub mod weighted;

use base::rng::RngKey;
use serde::{Deserialize, Serialize};

/// How tasks take turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Each step has one batch per task, of the same triples (our reading of KIMERA, section 2.2).
    Kimera,
    /// All batches of all tasks once per epoch, shuffled (MT-BERT, algorithm 1).
    Merged,
    /// Tasks in turn, small ones repeated, until the task with the most batches is done (MT-Clinical BERT, algorithm 1).
    RoundRobin(round_robin::Rule),
    /// Each step samples a task in proportion to its number of batches.
    Proportional,
    /// Each step samples a task in proportion to its number of batches to the power of 1 / T, with T from 0.001 to 1e6: 1 is
    /// `proportional`, and high values approach uniform.
    Temperature(f64),
}

impl Schedule {
    /// The name in states and messages.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Schedule::Kimera => "kimera".to_owned(),
            Schedule::Merged => "merged".to_owned(),
            Schedule::RoundRobin(rule) => format!("round_robin ({})", rule.name()),
            Schedule::Proportional => "proportional".to_owned(),
            Schedule::Temperature(temperature) => format!("temperature {temperature}"),
        }
    }

    /// Whether the number of batches of each task must be known before they are read.
    #[must_use]
    pub fn counts_batches(self) -> bool {
        self != Schedule::Kimera
    }

    /// Whether epochs end with a batch that may be smaller.
    #[must_use]
    pub fn cuts_epochs(self) -> bool {
        matches!(self, Schedule::Merged | Schedule::RoundRobin(_))
    }
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Place of the task among those that take turns.
    pub task: usize,
    /// Whether a new epoch begins with this step, in which all tasks begin anew.
    pub begins: bool,
}

/// A schedule over tasks with so many batches each.
#[derive(Debug, Clone)]
pub struct Turns {
    schedule: Schedule,
    batches: Vec<u64>,
    seed: RngKey,
    /// The turns of the epoch that was asked for last.
    merged: Option<(u64, Vec<u32>)>,
}

impl Turns {
    /// Turns of tasks with `batches` batches in an epoch each; tasks without one take none.
    #[must_use]
    pub fn new(schedule: Schedule, batches: Vec<u64>, seed: RngKey) -> Self {
        Self { schedule, batches, seed, merged: None }
    }

    /// Steps of an epoch.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self.schedule {
            Schedule::Kimera => self.batches.iter().copied().max().unwrap_or(0),
            Schedule::RoundRobin(rule) => round_robin::steps(&self.batches, rule),
            Schedule::Merged | Schedule::Proportional | Schedule::Temperature(_) => self.batches.iter().sum(),
        }
    }

    /// Whose turn `step` is; `None` when no task has a batch.
    pub fn turn(&mut self, step: u64) -> Option<Turn> {
        let steps = self.steps();
        let (epoch, within) = (step.checked_div(steps)?, step % steps);
        let task = match self.schedule {
            Schedule::Kimera => 0,
            Schedule::RoundRobin(_) => round_robin::task(&self.batches, within),
            Schedule::Proportional => weighted::task(&self.batches, 1.0, self.seed.at(step)),
            Schedule::Temperature(temperature) => {
                weighted::task(&self.batches, temperature, self.seed.at(step))
            }
            Schedule::Merged => {
                if self.merged.as_ref().is_none_or(|(of, _)| *of != epoch) {
                    self.merged = Some((epoch, merged::epoch(&self.batches, self.seed.at(epoch))));
                }
                let turns = self.merged.as_ref().map_or(&[][..], |(_, turns)| turns);
                turns.get(usize::try_from(within).ok()?).copied()? as usize
            }
        };
        Some(Turn { task, begins: within == 0 && step > 0 && self.schedule.cuts_epochs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(schedule: Schedule, batches: &[u64], steps: u64) -> Vec<u64> {
        let mut turns = Turns::new(schedule, batches.to_vec(), RngKey::new(3));
        let mut counts = vec![0; batches.len()];
        (0..steps).for_each(|step| counts[turns.turn(step).unwrap().task] += 1);
        counts
    }

    #[test]
    fn merged_shows_every_batch_once_per_epoch_in_another_mixture_each_time() {
        let mut turns = Turns::new(Schedule::Merged, vec![6, 2, 0, 5], RngKey::new(3));
        assert_eq!(turns.steps(), 13);
        let mut epoch =
            |epoch: u64| (0..13).map(|s| turns.turn(13 * epoch + s).unwrap().task).collect::<Vec<_>>();
        let (first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        for tasks in [&first, &second] {
            let times = |task| tasks.iter().filter(|&&of| of == task).count();
            assert_eq!([times(0), times(1), times(2), times(3)], [6, 2, 0, 5]);
        }
        assert_eq!(first, epoch(0), "pure function");
    }

    #[test]
    fn temperature_lies_between_proportional_and_uniform() {
        let shares = |schedule| count(schedule, &[900, 100], 20_000)[1] as f64 / 20_000.0;
        assert!((shares(Schedule::Proportional) - 0.1).abs() < 0.01);
        // The roots of 900 and 100 are 30 and 10.
        assert!((shares(Schedule::Temperature(2.0)) - 0.25).abs() < 0.015);
        assert!((shares(Schedule::Temperature(1e9)) - 0.5).abs() < 0.015);
        assert!(shares(Schedule::Temperature(0.01)).abs() < 1e-9, "the largest alone");
    }

    #[test]
    fn only_epochs_that_are_cut_begin_anew() {
        let begins =
            |schedule, step| Turns::new(schedule, vec![2, 2], RngKey::new(1)).turn(step).unwrap().begins;
        assert!(begins(Schedule::Merged, 4) && !begins(Schedule::Merged, 0) && !begins(Schedule::Merged, 3));
        assert!(!begins(Schedule::Proportional, 4));
    }

    #[test]
    fn without_batches_there_is_no_turn() {
        assert_eq!(Turns::new(Schedule::Merged, vec![0, 0], RngKey::new(1)).turn(0), None);
    }
}
