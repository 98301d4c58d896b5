//! Stages `settings-ROW-BENCHMARK`: the settings of the best trial.

use anyhow::Context as _;
use base::whole::write_whole;
use serde_json::json;

use super::Row;
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use crate::stage::finetune::config::Settings;
use crate::stage::finetune::{SETTINGS, scores};

/// The stage for a row and a benchmark.
pub(super) fn name(row: Row, benchmark: &str) -> String {
    format!("settings-{}-{benchmark}", row.name())
}

#[derive(Debug)]
pub(crate) struct Choosing {
    name: String,
    /// For each trial its fine-tunings, one a seed.
    trials: Vec<Vec<String>>,
}

impl Choosing {
    /// The stage for a row and a benchmark; `trials` are, for each trial, the stages that fine-tune with its settings.
    #[must_use]
    pub(crate) fn new(row: Row, benchmark: &str, trials: Vec<Vec<String>>) -> Self {
        Self { name: name(row, benchmark), trials }
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
        self.trials.iter().flatten().map(Input::artifact).collect()
    }

    /// Takes the trial with the highest mean over its seeds; of equals the first.
    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let mut best: Option<(f64, Settings)> = None;
        let mut rows = Vec::new();
        for (number, stages) in self.trials.iter().enumerate() {
            let found = stages.iter().map(|stage| scores(context.artifact(stage)?));
            let found = found.collect::<anyhow::Result<Vec<_>>>()?;
            let first = found.first().context("a trial without a fine-tuning")?;
            let dev: Vec<f64> = found.iter().map(|scores| scores.dev.value).collect();
            let mean = dev.iter().sum::<f64>() / dev.len() as f64;
            let mut row = serde_json::to_value(&first.settings)?;
            row["trial"] = json!(number);
            row["dev"] = json!(mean);
            row["dev_of_seeds"] = json!(dev);
            row["steps"] = json!(found.iter().map(|scores| scores.steps).collect::<Vec<_>>());
            rows.push(row);
            if best.as_ref().is_none_or(|best| mean > best.0) {
                best = Some((mean, first.settings.clone()));
            }
        }
        let (mean, settings) = best.context("there is no trial to choose from")?;
        context.record("trials", rows);
        context.record("dev", mean);
        Ok(write_whole(&context.out().join(SETTINGS), &serde_json::to_vec_pretty(&settings)?)?)
    }
}
