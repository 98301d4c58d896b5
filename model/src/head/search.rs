//! The search for a head mask: the least important heads are masked step by step until the score falls (KIMERA, section 3.1 and table A3; Michel et al. 2019).

mod pick;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::mask::{self, Mask};
use crate::nn::single;
use crate::range::Wrong;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// `max(1, floor(rho * all heads))` in every step, as in the code that KIMERA builds on.
    FixedFloor,
    /// `max(1, ceil(rho * heads left))`: the one simple rule that reaches the 102 masked heads of KIMERA's appendix.
    CeilRemaining,
}

/// Which heads a step may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Heads that no step has taken. A soft gate stays what it was when the head was taken.
    SelectOnce,
    /// Soft masks only: all heads. The n least important are candidates, n growing from step to step, and get their
    /// importance of this step as their gate; a head that is no candidate any more keeps the last gate that it had as one.
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

/// Why a search cannot begin or go on. `E` is what importances and scores fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    /// A setting outside its range.
    #[error("mask search: {field} is {found}, expected {expected}")]
    Range {
        /// The setting.
        field: &'static str,
        /// Its value.
        found: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A hard search that may take heads again.
    #[error(
        "mask search: selection `reselect_all` is for soft masks, since a head that is off cannot be chosen again; use `select_once`"
    )]
    HardReselect,
    /// A score that no share can be taken of.
    #[error(
        "mask search: the score with all heads on is {score}, expected above 0: tau is a share of it; choose a metric that is larger for a better model, and a model that has learned something"
    )]
    OriginalScore {
        /// The score.
        score: f64,
    },
    /// A score that is no number.
    #[error("mask search, step {step}: the score is {score}; expected a number")]
    Score {
        /// The step, from 1.
        step: usize,
        /// The score.
        score: f64,
    },
    /// Importances that no head can be chosen by.
    #[error("mask search, step {step}: {problem}")]
    Importance {
        /// The step, from 1.
        step: usize,
        /// What is wrong with them.
        problem: String,
    },
    /// Gates that no mask can have.
    #[error(transparent)]
    Mask(#[from] mask::Error),
    /// Importances or a score could not be measured.
    #[error(transparent)]
    Measure(E),
}

/// Searches a mask for an encoder of `shape` layers and heads. `importance` measures every head under the given gates, layer after
/// layer (normalised to [0, 1] for a soft mask); `score` is the metric of the same model under them, larger being better. Both
/// are to be measured on samples that no result is reported on.
///
/// It ends after at most as many steps as there are heads: each step takes at least one more.
///
/// # Errors
/// When a setting is out of range, the score with all heads on is not above 0, a number is not finite, or measuring fails.
pub fn search<E: std::error::Error + 'static>(
    config: &Config,
    shape: [usize; 2],
    mut importance: impl FnMut(&Mask) -> Result<Vec<f64>, E>,
    mut score: impl FnMut(&Mask) -> Result<f64, E>,
) -> Result<Outcome, Error<E>> {
    config.check()?;
    let mut mask = Mask::new(shape, vec![1.0; shape[0] * shape[1]])?;
    let original_score = score(&mask).map_err(Error::Measure)?;
    if !(original_score > 0.0 && original_score.is_finite()) {
        return Err(Error::OriginalScore { score: original_score });
    }
    let mut search = pick::Picked::new(config, shape);
    let mut iterations = vec![];
    loop {
        let step = iterations.len() + 1;
        if let Some(stop) = search.end() {
            return Ok(Outcome { original_score, mask, stop, iterations });
        }
        let importance_before = importance(&mask).map_err(Error::Measure)?;
        config.check_importance(step, shape, &importance_before)?;
        let selected = search.take(&importance_before);
        let gates_after = config.gates_after(&mask, &selected, &importance_before)?;
        let score = score(&gates_after).map_err(Error::Measure)?;
        if !score.is_finite() {
            return Err(Error::Score { step, score });
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
    /// The first number that is outside its range.
    #[must_use]
    pub fn wrong(&self) -> Option<Wrong> {
        let rules = [
            ("tau", self.tau, (0.0..=1.0).contains(&self.tau), "0 to 1"),
            ("rho", self.rho, self.rho > 0.0 && self.rho <= 1.0, "above 0, up to 1"),
        ];
        let broken = rules.into_iter().find(|(_, _, holds, _)| !holds);
        broken.map(|(field, found, _, expected)| (field, found, expected))
    }

    fn check<E: std::error::Error + 'static>(&self) -> Result<(), Error<E>> {
        if let Some((field, found, expected)) = self.wrong() {
            return Err(Error::Range { field, found, expected });
        }
        match (self.kind, self.selection) {
            (Kind::Hard, Selection::ReselectAll) => Err(Error::HardReselect),
            _ => Ok(()),
        }
    }

    fn check_importance<E: std::error::Error + 'static>(
        &self,
        step: usize,
        [layers, heads]: [usize; 2],
        importance: &[f64],
    ) -> Result<(), Error<E>> {
        let problem = |problem: String| Err(Error::Importance { step, problem });
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
    fn gates_after(&self, gates: &Mask, selected: &[usize], importance: &[f64]) -> Result<Mask, mask::Error> {
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
