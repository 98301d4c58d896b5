//! The learning rate of each step: linear warm-up, then linear decay.

use serde::{Deserialize, Serialize};

/// A learning rate over the steps of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The highest rate, reached at the end of the warm-up.
    pub peak: f64,
    /// Steps over which the rate rises from 0.
    pub warmup_steps: u64,
    /// Steps of the whole run; the rate would be 0 one step later.
    pub total_steps: u64,
}

impl Schedule {
    /// The rate of step `step`, counted from 1.
    #[must_use]
    pub fn rate(&self, step: u64) -> f64 {
        if step <= self.warmup_steps {
            return self.peak * step as f64 / self.warmup_steps as f64;
        }
        let left = (self.total_steps + 1).saturating_sub(step) as f64;
        self.peak * left / (self.total_steps + 1).saturating_sub(self.warmup_steps).max(1) as f64
    }
}

/// Schedules of the reference codes: factors of the highest rate when a share of all steps is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferencePace {
    /// Always the peak, without warm-up (MT-Clinical BERT's code).
    Constant,
    /// `warmup_linear` of pytorch-pretrained-BERT up to 0.6.1: follows `1 - x`, so the rate drops at the end of the warm-up (MT-BERT's code).
    Linear061,
    /// The same since 0.6.2, and `get_linear_schedule_with_warmup` of transformers: falls from the peak to 0 without a drop.
    Linear062,
}

impl ReferencePace {
    /// The factor when `done` of all steps are made, both shares from 0 to 1; beyond 1, [`ReferencePace::Linear061`] is negative, as in the reference code.
    #[must_use]
    pub fn factor(self, done: f64, warmup: f64) -> f64 {
        match self {
            ReferencePace::Constant => 1.0,
            ReferencePace::Linear061 | ReferencePace::Linear062 if done < warmup => done / warmup,
            ReferencePace::Linear061 => 1.0 - done,
            ReferencePace::Linear062 => ((done - 1.0) / (warmup - 1.0)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_then_falls_and_never_wastes_a_step() {
        let schedule = Schedule { peak: 1.0, warmup_steps: 4, total_steps: 8 };
        let rates: Vec<f64> = (1..=10).map(|step| schedule.rate(step)).collect();
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0]);
        let none = Schedule { peak: 2.0, warmup_steps: 0, total_steps: 2 };
        assert!((none.rate(1) - 4.0 / 3.0).abs() < 1e-12 && (none.rate(2) - 2.0 / 3.0).abs() < 1e-12);
    }
}
