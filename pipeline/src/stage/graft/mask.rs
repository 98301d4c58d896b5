//! Stages `mask-hard` and `mask-soft`: which heads of the best model of row `base` are vacant.

use base::whole::write_whole;
use downstream::example::Part;
use model::head::search::{self, Kind, Selection, StepRule};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::importance::{Measuring, Subject, shape};
use crate::config::range::inside;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use crate::stage::finetune::answers;
use crate::stage::retrain::heads::MASK;

/// The stage of the mask of zeros and ones.
pub(crate) const HARD: &str = "mask-hard";
/// The stage of the mask with numbers in between.
pub(crate) const SOFT: &str = "mask-soft";
/// What they search.
pub(super) const KINDS: [Kind; 2] = [Kind::Hard, Kind::Soft];
/// The record of the search within the artifact.
pub(crate) const SEARCH: &str = "search.json";

/// How masks are searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Search {
    /// How many heads are masked per step.
    ///
    /// Source: transformers' `run_bertology.py`, whose loop KIMERA describes (section 2.1).
    pub step_rule: StepRule,
    /// Whether the soft search may select a head again; the hard one selects each once.
    ///
    /// Source: ours, after the hard search: selecting the same heads again need not end.
    pub soft_selection: Selection,
    /// The share of the score with all heads that must be retained, from 0 to 1; the search stops below it.
    ///
    /// Source: KIMERA, table A3: the lowest of 0.95, 0.98 and 0.99.
    pub tau: f64,
    /// The share of heads masked per step, above 0 and at most 1.
    ///
    /// Source: KIMERA, section 4 and table A3.
    pub rho: f64,
    /// Heads per layer that are always kept.
    ///
    /// Source: KIMERA, section 2.1: no head is protected.
    pub keep_per_layer: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            step_rule: StepRule::default(),
            soft_selection: Selection::default(),
            tau: 0.95,
            rho: 0.1,
            keep_per_layer: 0,
        }
    }
}

/// What an artifact says of its search, for the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub model: String,
    pub metric: String,
    /// Samples that it is over.
    pub samples: usize,
    /// Its value with all heads on.
    pub original_score: f64,
    /// The value below which the search stopped.
    pub threshold: f64,
    /// Why it ended.
    pub stop: search::Stop,
    pub iterations: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The heads that it took, as `layer * heads + head`.
    pub selected: Vec<usize>,
    /// The importances that it chose by.
    pub importance_before: Vec<f64>,
    /// Heads taken so far.
    pub masked: usize,
    pub score: f64,
}

impl Search {
    fn config(&self, kind: Kind) -> search::Config {
        let Search { step_rule, tau, rho, keep_per_layer, .. } = *self;
        let selection = if kind == Kind::Soft { self.soft_selection } else { Selection::SelectOnce };
        search::Config { kind, step_rule, selection, tau, rho, keep_per_layer }
    }

    /// Whether every number is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        inside("graft.search", self.config(Kind::Soft).ranges())
    }
}

#[derive(Debug)]
pub(crate) struct Searching {
    pub name: String,
    /// What a masked head becomes.
    pub kind: Kind,
    /// How importance is measured, and of what.
    pub measuring: Measuring,
    /// How it is searched.
    pub search: Search,
}

/// What measuring or scoring failed with.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct Failed(anyhow::Error);

impl Stage for Searching {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.measuring.described(to);
        describe::config(to, "graft.search", &self.search);
    }

    fn inputs(&self) -> Vec<Input> {
        self.measuring.read()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let Subject { stage, predictor, benchmarks } = self.measuring.subject(context)?;
        let config = self.search.config(self.kind);
        let mut metric = String::new();
        context.progress().unit("steps");
        let outcome = search::search(
            &config,
            shape(&predictor),
            |mask| self.measuring.config.measure(&predictor, &benchmarks, mask, context).map_err(Failed),
            |mask| {
                let gated =
                    predictor.clone().with_gates(mask.clone()).map_err(|error| Failed(error.into()))?;
                let mut sum = 0.0;
                for benchmark in &benchmarks {
                    let score = answers::score(&gated, 0, benchmark.as_ref(), Part::MaskSearch, context);
                    let score = score.map_err(Failed)?;
                    (sum, metric) = (sum + score.value, score.metric);
                }
                context.progress().add_rows(1);
                Ok(sum / benchmarks.len() as f64)
            },
        )?;
        outcome.mask.write(&context.out().join(MASK))?;
        let iterations = outcome.iterations.iter().map(|step| {
            // A step may take a head again, so gates are counted.
            let masked = step.gates_after.values().iter().filter(|&&gate| gate < 1.0).count();
            let (selected, importance_before) = (step.selected.clone(), step.importance_before.clone());
            Step { selected, importance_before, masked, score: step.score }
        });
        let record = Record {
            model: stage,
            metric,
            samples: benchmarks.iter().map(|benchmark| benchmark.samples(Part::MaskSearch)).sum(),
            original_score: outcome.original_score,
            threshold: outcome.original_score * self.search.tau,
            stop: outcome.stop,
            iterations: iterations.collect(),
        };
        write_whole(&context.out().join(SEARCH), &serde_json::to_vec_pretty(&record)?)?;
        let vacant = outcome.mask.values().iter().filter(|&&gate| gate < 1.0).count();
        context.record("vacant_heads", vacant);
        context.record("heads", outcome.mask.values().len());
        context.record("original_score", record.original_score);
        context.record("stop", json!(record.stop));
        let steps = record.iterations.iter().zip(1..);
        let steps = steps.map(|(step, n)| json!({"step": n, "masked": step.masked, "score": step.score}));
        context.record("steps", steps.collect::<Vec<_>>());
        Ok(())
    }
}
