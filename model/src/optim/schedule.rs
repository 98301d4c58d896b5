//! The learning rate of each step: linear warm-up, then as a schedule has it.

use serde::{Deserialize, Serialize};

/// A learning rate over the steps of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The highest rate, reached at the end of the warm-up.
    pub peak: f64,
    /// Steps over which the rate rises from 0.
    pub warmup_steps: u64,
    /// Steps of the whole run; a rate that decays would be 0 one step later.
    pub total_steps: u64,
    /// What follows the warm-up.
    pub decay: Decay,
    /// What a reference code has in place of warm-up and decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferencePace>,
}

/// The learning rate after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// It stays at its peak.
    Constant,
    /// It falls to 0 along a line.
    #[default]
    Linear,
    /// It falls to 0 along half a cosine (Loshchilov and Hutter 2017, without restarts).
    Cosine,
}

impl Decay {
    /// The share of the peak when this share of the steps after the warm-up is left.
    fn share(self, left: f64) -> f64 {
        match self {
            Decay::Constant => 1.0,
            Decay::Linear => left,
            Decay::Cosine => 0.5 - 0.5 * (std::f64::consts::PI * left).cos(),
        }
    }
}

impl Schedule {
    /// The rate of step `step`, counted from 1.
    #[must_use]
    pub fn rate(&self, step: u64) -> f64 {
        if let Some(pace) = self.reference {
            let total = self.total_steps.max(1) as f64;
            // The reference codes count from 0: their first update has the rate 0 where there is a warm-up.
            let (done, warmup) = (step.saturating_sub(1) as f64 / total, self.warmup_steps as f64 / total);
            return self.peak * pace.factor(done, warmup);
        }
        if step <= self.warmup_steps {
            return self.peak * step as f64 / self.warmup_steps as f64;
        }
        let left = (self.total_steps + 1).saturating_sub(step) as f64;
        let all = (self.total_steps + 1).saturating_sub(self.warmup_steps).max(1) as f64;
        match self.decay {
            // In this order its bits are those of all trainings so far.
            Decay::Linear => self.peak * left / all,
            decay => self.peak * decay.share(left / all),
        }
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
        let of = |peak, warmup_steps, total_steps, decay| Schedule {
            peak,
            warmup_steps,
            total_steps,
            decay,
            reference: None,
        };
        let schedule = of(1.0, 4, 8, Decay::Linear);
        let rates: Vec<f64> = (1..=10).map(|step| schedule.rate(step)).collect();
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0]);
        let none = of(2.0, 0, 2, Decay::Linear);
        assert!((none.rate(1) - 4.0 / 3.0).abs() < 1e-12 && (none.rate(2) - 2.0 / 3.0).abs() < 1e-12);
        let constant = of(2.0, 2, 4, Decay::Constant);
        assert_eq!([1, 2, 3, 4].map(|step| constant.rate(step)), [1.0, 2.0, 2.0, 2.0]);
        let cosine = of(2.0, 1, 4, Decay::Cosine);
        let found = [1, 2, 3, 4, 5].map(|step| cosine.rate(step));
        let exact = [
            2.0,
            1.0 + (0.25 * std::f64::consts::PI).cos(),
            1.0,
            1.0 - (0.25 * std::f64::consts::PI).cos(),
            0.0,
        ];
        assert!(found.iter().zip(exact).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn the_pace_is_that_of_the_reference_code() {
        let of = |reference| {
            let schedule =
                Schedule { peak: 2.0, warmup_steps: 2, total_steps: 10, decay: Decay::Linear, reference };
            [1, 2, 3, 10].map(|step| schedule.rate(step))
        };
        assert_eq!(of(None).map(|rate| rate > 0.0), [true; 4]);
        let close = |found: [f64; 4], exact: [f64; 4]| {
            assert!(found.iter().zip(exact).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {exact:?}");
        };
        close(of(Some(ReferencePace::Constant)), [2.0; 4]);
        // From the end of the warm-up at once to 1 - x.
        close(of(Some(ReferencePace::Linear061)), [0.0, 1.0, 1.6, 0.2]);
        close(of(Some(ReferencePace::Linear062)), [0.0, 1.0, 2.0, 0.25]);
    }
}
