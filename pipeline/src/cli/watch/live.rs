//! What runs, and when it is time to say how far it is. The time comes from outside, so that no test waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::progress::{Progress, Snapshot};

/// What is said of a stage between its start and its end.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    /// Its training goes on where an earlier run left it.
    Resumed { stage: &'a str, step: u64, steps: u64 },
    /// How far it is, `elapsed` after its start.
    Progress { stage: &'a str, now: Snapshot, elapsed: Duration },
}

/// The stages that run.
#[derive(Debug)]
pub(super) struct Live {
    /// Time between two lines about one stage; nothing where none are wanted.
    every: Option<Duration>,
    stages: BTreeMap<String, Running>,
}

#[derive(Debug)]
struct Running {
    progress: Progress,
    started: Duration,
    /// When it was last told how far it is.
    told: Duration,
    /// Whether it was told from where it goes on.
    resumed: bool,
}

impl Live {
    pub(super) fn new(every: Option<Duration>) -> Self {
        Self { every, stages: BTreeMap::new() }
    }

    pub(super) fn start(&mut self, stage: &str, progress: &Progress, at: Duration) {
        let running = Running { progress: progress.clone(), started: at, told: at, resumed: false };
        self.stages.insert(stage.to_owned(), running);
    }

    /// Says what is due at this time.
    pub(super) fn tick(&mut self, at: Duration, mut say: impl FnMut(&Said<'_>)) {
        for (stage, running) in &mut self.stages {
            let now = running.progress.snapshot();
            running.resumed(stage, &now, &mut say);
            let due = self.every.is_some_and(|every| at.saturating_sub(running.told) >= every);
            // A stage that counts nothing has nothing to tell.
            if due && (now.rows > 0 || now.bytes > 0) {
                running.told = at;
                say(&Said::Progress { stage, now, elapsed: at.saturating_sub(running.started) });
            }
        }
    }

    /// The stage is at its end: says what else there is to say of its training, the last step above all.
    pub(super) fn end(&mut self, stage: &str, at: Duration, mut say: impl FnMut(&Said<'_>)) {
        let Some(mut running) = self.stages.remove(stage) else { return };
        let now = running.progress.snapshot();
        running.resumed(stage, &now, &mut say);
        if now.training.is_some_and(|training| training.step.is_some()) && self.every.is_some() {
            say(&Said::Progress { stage, now, elapsed: at.saturating_sub(running.started) });
        }
    }
}

impl Running {
    fn resumed(&mut self, stage: &str, now: &Snapshot, say: &mut impl FnMut(&Said<'_>)) {
        if !self.resumed && now.before > 0 {
            self.resumed = true;
            say(&Said::Resumed { stage, step: now.before, steps: now.total_rows });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::progress::testing::progress;
    use crate::engine::progress::{Step, Steps};

    fn told(said: &Said<'_>) -> String {
        match said {
            Said::Resumed { stage, step, steps } => format!("{stage} resumed at {step} of {steps}"),
            Said::Progress { stage, now, elapsed } => {
                format!("{stage} {} after {}", now.rows, elapsed.as_secs())
            }
        }
    }

    fn at(live: &mut Live, seconds: u64) -> Vec<String> {
        let mut all = Vec::new();
        live.tick(Duration::from_secs(seconds), |said| all.push(told(said)));
        all
    }

    fn end(live: &mut Live, stage: &str, seconds: u64) -> Vec<String> {
        let mut all = Vec::new();
        live.end(stage, Duration::from_secs(seconds), |said| all.push(told(said)));
        all
    }

    const STEP: Step = Step { loss: 0.5, learning_rate: 1e-3, tokens: 8 };

    #[test]
    fn a_line_every_so_often_and_none_while_nothing_is_counted() {
        let (mut live, counts) = (Live::new(Some(Duration::from_secs(30))), progress("counts"));
        live.start("counts", &counts, Duration::from_secs(100));
        assert_eq!(at(&mut live, 130), [""; 0]);
        counts.add_rows(5);
        assert_eq!(at(&mut live, 131), ["counts 5 after 31"]);
        assert_eq!(at(&mut live, 160), [""; 0]);
        assert_eq!(at(&mut live, 161), ["counts 5 after 61"]);
        assert_eq!(end(&mut live, "counts", 162), [""; 0], "the line of its end has the counts");
        assert_eq!(at(&mut live, 1000), [""; 0]);
    }

    #[test]
    fn a_resumed_training_says_once_from_where_however_short_it_is() {
        for ticks in [1, 0] {
            let (mut live, retrain) = (Live::new(None), progress("retrain"));
            live.start("retrain", &retrain, Duration::ZERO);
            retrain.training(Steps::Exactly(8), 6);
            let mut said: Vec<String> = (0..ticks).flat_map(|_| at(&mut live, 1)).collect();
            retrain.trained(STEP);
            said.extend(end(&mut live, "retrain", 2));
            assert_eq!(said, ["retrain resumed at 6 of 8"]);
        }
    }

    #[test]
    fn a_training_says_its_last_step_however_short_it_is() {
        let (mut live, retrain) = (Live::new(Some(Duration::from_secs(30))), progress("retrain"));
        live.start("retrain", &retrain, Duration::ZERO);
        retrain.training(Steps::Exactly(1), 0);
        retrain.trained(STEP);
        assert_eq!(end(&mut live, "retrain", 2), ["retrain 1 after 2"]);
    }
}
