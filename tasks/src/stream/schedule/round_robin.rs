//! MT-Clinical BERT's order of tasks: one after the other (paper 004, algorithm 1).

use serde::{Deserialize, Serialize};

/// Where a round of all tasks ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// With the last batch of the task that has the most batches (MT-Clinical BERT, algorithm 1).
    #[default]
    Paper,
    /// As in the reference code: once that task has shown its first batch again, and with it all tasks before it.
    Reference,
}

impl Rule {
    /// The name in states and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Paper => "paper",
            Rule::Reference => "reference",
        }
    }
}

/// Places of the tasks that have batches.
fn tasks(batches: &[u64]) -> impl Iterator<Item = usize> {
    batches.iter().enumerate().filter(|(_, count)| **count > 0).map(|(task, _)| task)
}

/// Steps of a round.
#[must_use]
pub fn steps(batches: &[u64], rule: Rule) -> u64 {
    let most = batches.iter().copied().max().unwrap_or(0);
    let turns = most * tasks(batches).count() as u64;
    match (rule, tasks(batches).position(|task| batches[task] == most)) {
        (Rule::Reference, Some(before)) => turns + before as u64 + 1,
        _ => turns,
    }
}

/// The task of step `within` of a round.
#[must_use]
pub fn task(batches: &[u64], within: u64) -> usize {
    let all = tasks(batches).count().max(1) as u64;
    tasks(batches).nth(usize::try_from(within % all).unwrap_or(0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(batches: &[u64], rule: Rule) -> Vec<(usize, u64)> {
        let mut shown = vec![0; batches.len()];
        let turns = (0..steps(batches, rule)).map(|step| {
            let task = task(batches, step);
            shown[task] += 1;
            (task, (shown[task] - 1) % batches[task])
        });
        turns.collect()
    }

    #[test]
    fn a_round_ends_as_written_or_as_released() {
        let paper = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 0), (2, 1), (0, 0), (1, 0), (2, 2)];
        assert_eq!(sequence(&[2, 1, 3], Rule::Paper), paper);
        let released = [paper.as_slice(), &[(0, 1), (1, 0), (2, 0)]].concat();
        assert_eq!(sequence(&[2, 1, 3], Rule::Reference), released);
        assert_eq!(steps(&[6, 0, 5, 2], Rule::Reference), 19, "tasks without a batch take no turn");
    }
}
