//! The search for a head mask: the least important heads are masked step by step until the score falls (KIMERA, section 2.1 and table A3; Michel et al. 2019).

mod pick;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::mask::Mask;
use crate::nn::single;
use base::setting::InvalidSetting;

use crate::Error;

/// What a masked head becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Its gate is 0.
    Hard,
    /// Its gate is the normalised importance for which it was taken.
    Soft,
}

/// How many heads one step masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// rho of all heads: `max(1, floor(rho * heads))`, as in transformers' `run_bertology.py`.
    #[default]
    FixedFloor,
    /// rho of those left: `max(1, ceil(rho * heads left))`, the one simple rule that reaches the 102 masked heads of KIMERA's appendix A.1.
    CeilRemaining,
}

/// Which heads a step may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Only heads that no step has selected. A soft gate stays what it was when the head was selected.
    #[default]
    SelectOnce,
    /// Soft masks only: any head. The n least important are candidates, n growing from step to step, and their gates are this step's importances; a
    /// head that is no longer a candidate keeps its last gate.
    ReselectAll,
}

/// The settings of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What a masked head becomes.
    pub kind: Kind,
    /// How many heads one step masks.
    pub step_rule: StepRule,
    /// Which heads a step may take.
    pub selection: Selection,
    /// The share of the original score below which the search stops (paper: 0.95, 0.98, 0.99).
    pub tau: f64,
    /// The share of the heads that one step masks (paper: 0.1).
    pub rho: f64,
    /// Heads of each layer that are never masked (paper: 0).
    pub keep_per_layer: usize,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The last step's score was below tau times the original one; its mask is not the result.
    ScoreBelowThreshold,
    /// Not more heads were left than one step masks.
    FewerHeadsLeftThanStep,
    /// Every head that was left is protected by `keep_per_layer`.
    AllLeftAreProtected,
}

/// One step of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Iteration {
    /// The heads that it took, least important first, as `layer * heads + head`.
    pub selected: Vec<usize>,
    /// The importances that it chose by, layer after layer: measured under the gates before it.
    pub importance_before: Vec<f64>,
    /// The gates after it.
    pub gates_after: Mask,
    /// The score under those gates.
    pub score: f64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The score with all heads on.
    pub original_score: f64,
    /// The last mask whose score was not below the threshold.
    pub mask: Mask,
    /// Why the search ended.
    pub stop: Stop,
    /// All steps; the last may be the one that went too far.
    pub iterations: Vec<Iteration>,
}

/// What others measure failed.
fn measured(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Measure(Box::new(error))
}

/// Searches a mask for an encoder of `shape` layers and heads. `importance` measures every head under the given gates, layer after
/// layer (normalised to [0, 1] for a soft mask); `score` is the metric of the same model under them, larger being better. Both
/// are to be measured on samples that no result is reported on.
///
/// It ends after at most as many steps as there are heads: each step takes at least one more.
///
/// # Errors
/// When a setting is out of range, the score with all heads on is not above 0, a number is not finite, or measuring fails.
pub fn search<E: std::error::Error + Send + Sync + 'static>(
    config: &Config,
    shape: [usize; 2],
    mut importance: impl FnMut(&Mask) -> Result<Vec<f64>, E>,
    mut score: impl FnMut(&Mask) -> Result<f64, E>,
) -> Result<Outcome, Error> {
    config.check()?;
    let mut mask = Mask::new(shape, vec![1.0; shape[0] * shape[1]])?;
    let original_score = score(&mask).map_err(measured)?;
    if !(original_score > 0.0 && original_score.is_finite()) {
        return Err(Error::Misfit(format!(
            "mask search: the score with all heads on is {original_score}, expected above 0: tau is a share of it; choose a metric that is larger for a better model, and a model that has learned something"
        )));
    }
    let mut search = pick::Picked::new(config, shape);
    let mut iterations = vec![];
    loop {
        let step = iterations.len() + 1;
        if let Some(stop) = search.end() {
            return Ok(Outcome { original_score, mask, stop, iterations });
        }
        let importance_before = importance(&mask).map_err(measured)?;
        config.check_importance(step, shape, &importance_before)?;
        let selected = search.take(&importance_before);
        let gates_after = config.gates_after(&mask, &selected, &importance_before)?;
        let score = score(&gates_after).map_err(measured)?;
        if !score.is_finite() {
            return Err(Error::Misfit(format!(
                "mask search, step {step}: the score is {score}; expected a number"
            )));
        }
        iterations.push(Iteration { selected, importance_before, gates_after: gates_after.clone(), score });
        if score < original_score * config.tau {
            let stop = Stop::ScoreBelowThreshold;
            return Ok(Outcome { original_score, mask, stop, iterations });
        }
        mask = gates_after;
    }
}

impl Config {
    /// Whether every number is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn ranges(&self) -> Result<(), InvalidSetting> {
        if !(0.0..=1.0).contains(&self.tau) {
            return Err(InvalidSetting::new("tau", self.tau, "0 to 1"));
        }
        if !(self.rho > 0.0 && self.rho <= 1.0) {
            return Err(InvalidSetting::new("rho", self.rho, "above 0, up to 1"));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.ranges().map_err(|wrong| Error::Misfit(format!("mask search: {wrong}")))?;
        match (self.kind, self.selection) {
            (Kind::Hard, Selection::ReselectAll) => Err(Error::Misfit("mask search: selection `reselect_all` is for soft masks, since a head that is off cannot be chosen again; use `select_once`".to_owned())),
            _ => Ok(()),
        }
    }

    fn check_importance(
        &self,
        step: usize,
        [layers, heads]: [usize; 2],
        importance: &[f64],
    ) -> Result<(), Error> {
        let problem = |problem: String| Err(Error::Misfit(format!("mask search, step {step}: {problem}")));
        if importance.len() != layers * heads {
            return problem(format!("{} importances for {layers} layers of {heads} heads", importance.len()));
        }
        let fits = |x: f64| x.is_finite() && (self.kind == Kind::Hard || (0.0..=1.0).contains(&x));
        match importance.iter().position(|x| !fits(*x)) {
            Some(at) => problem(format!(
                "the importance of layer {}, head {} (from 0) is {}; expected a number{}",
                at / heads,
                at % heads,
                importance[at],
                if self.kind == Kind::Soft {
                    " from 0 to 1, since it becomes a gate: normalise it"
                } else {
                    ""
                }
            )),
            None => Ok(()),
        }
    }

    /// The gates once `selected` are masked.
    fn gates_after(&self, gates: &Mask, selected: &[usize], importance: &[f64]) -> Result<Mask, Error> {
        let mut values = gates.values().to_vec();
        for &head in selected {
            values[head] = match self.kind {
                Kind::Hard => 0.0,
                Kind::Soft => single(importance[head]),
            };
        }
        Mask::new(gates.shape(), values)
    }
}
