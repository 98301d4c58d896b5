//! Stages `settings-BENCHMARK`: the settings of the best trial. Knows no training.

use kg::whole::write_whole;
use serde_json::json;

use super::best::Candidates;
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use crate::stage::finetune::{SETTINGS, scores};

/// The stage for a benchmark.
pub(super) fn name(benchmark: &str) -> String {
    format!("settings-{benchmark}")
}

/// The stage.
#[derive(Debug)]
pub struct Choosing {
    name: String,
    trials: Candidates,
}

impl Choosing {
    /// The stage for a benchmark and its trials.
    #[must_use]
    pub fn new(benchmark: &str, trials: Candidates) -> Self {
        Self { name: name(benchmark), trials }
    }
}

impl Stage for Choosing {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, _: &mut dyn Describe) {}

    fn inputs(&self) -> Vec<Input> {
        self.trials.inputs().collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let best = self.trials.best(context)?;
        let trials = self.trials.stages.iter().map(|trial| {
            let found = scores(context.artifact(trial)?)?;
            let mut row = serde_json::to_value(&found.settings)?;
            row["trial"] = json!(trial);
            row["dev"] = json!(found.dev.value);
            row["steps"] = json!(found.steps);
            Ok(row)
        });
        let trials = trials.collect::<anyhow::Result<Vec<_>>>()?;
        context.record("trials", trials);
        context.record("best", best.stage);
        Ok(write_whole(&context.out().join(SETTINGS), &serde_json::to_vec_pretty(&best.scores.settings)?)?)
    }
}
