//! An optimiser by its config: AdamW, or one of the reference codes'.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::adamw::{AdamW, AdamWConfig, Missing, Update};
use super::bert::{self, BertOptimiser};
use super::moments::Moments;
use super::schedule::{ReferencePace, Schedule};
use crate::params::Params;
use crate::range;

/// An optimiser as a reference code has it, in place of AdamW and its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceCode {
    /// The optimiser and its constants; left out, AdamW with `finetune.adamw`, at this `pace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<bert::Config>,
    /// How the learning rate changes from step to step; peak, warm-up and number of steps are those of the recipe. The first warm-up step has
    /// learning rate 0, as in the reference code.
    pub pace: ReferencePace,
}

impl ReferenceCode {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> std::result::Result<(), InvalidSetting> {
        let Some(optimiser) = &self.optimiser else { return Ok(()) };
        let bert::Config { beta1, beta2, epsilon, weight_decay, clip_norm, .. } = *optimiser;
        range::check(&[
            ("quirks.optimiser.beta1", beta1, range::BELOW_ONE),
            ("quirks.optimiser.beta2", beta2, range::BELOW_ONE),
            ("quirks.optimiser.epsilon", epsilon, range::EPSILON),
            ("quirks.optimiser.weight_decay", weight_decay, range::SHARE),
            ("quirks.optimiser.clip_norm", clip_norm.unwrap_or(1.0), range::CLIP),
        ])
    }
}

/// What a training updates its parameters with.
#[derive(Debug, Clone)]
pub(crate) struct Optimiser {
    rule: Rule,
    /// How the rate changes, if not as the schedule says.
    pace: Option<ReferencePace>,
    updates: u64,
}

#[derive(Debug, Clone)]
enum Rule {
    AdamW(AdamW),
    Reference(BertOptimiser),
}

impl Optimiser {
    /// One that has made no update, for the parameters that `trained` accepts. What a reference code has leaves parameters without a gradient as
    /// they are, whatever `missing` says of AdamW.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub(crate) fn new(
        adamw: &AdamWConfig,
        missing: Missing,
        released: Option<&ReferenceCode>,
        params: &Params,
        trained: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let rule = match released.and_then(|of| of.optimiser.as_ref()) {
            None => Rule::AdamW(AdamW::new(adamw.clone(), params, trained)?.with_missing(missing)),
            Some(optimiser) => Rule::Reference(BertOptimiser::new(optimiser.clone(), params, trained)?),
        };
        Ok(Self { rule, pace: released.map(|of| of.pace), updates: 0 })
    }

    /// Updates made so far.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// The rate of an update by its number, from 1.
    pub(crate) fn rate(&self, schedule: &Schedule, update: u64) -> f64 {
        match self.pace {
            None => schedule.rate(update),
            Some(pace) => {
                let Schedule { peak, warmup_steps, total_steps } = *schedule;
                let total = total_steps.max(1) as f64;
                // The reference codes count from 0: their first update has the rate 0 where there is a warm-up.
                peak * pace.factor(update.saturating_sub(1) as f64 / total, warmup_steps as f64 / total)
            }
        }
    }

    /// See [`AdamW::step`] and [`BertOptimiser::step`].
    pub(crate) fn step(
        &mut self,
        params: &Params,
        grads: BTreeMap<String, Tensor>,
        update: Update,
    ) -> Result<()> {
        self.updates += 1;
        match &mut self.rule {
            Rule::AdamW(adamw) => adamw.step(params, grads, update),
            Rule::Reference(bert) => bert.step(params, grads, update),
        }
    }

    /// What it remembers of each parameter's gradients.
    pub(crate) fn moments(&self) -> &BTreeMap<String, Moments> {
        match &self.rule {
            Rule::AdamW(adamw) => &adamw.moments,
            Rule::Reference(bert) => &bert.moments,
        }
    }

    /// The same, and the number of updates made, to be resumed from a state.
    pub(crate) fn restore(&mut self) -> (&mut BTreeMap<String, Moments>, &mut u64) {
        let moments = match &mut self.rule {
            Rule::AdamW(adamw) => &mut adamw.moments,
            Rule::Reference(bert) => &mut bert.moments,
        };
        (moments, &mut self.updates)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::optim::bert::Kind;

    const ADAMW: AdamWConfig = AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };

    pub(crate) fn released(pace: ReferencePace) -> ReferenceCode {
        let (beta1, beta2, epsilon, weight_decay) = (0.9, 0.999, 1e-6, 0.01);
        let optimiser =
            bert::Config { kind: Kind::BertAdam, beta1, beta2, epsilon, weight_decay, clip_norm: Some(1.0) };
        ReferenceCode { optimiser: Some(optimiser), pace }
    }

    #[test]
    fn the_pace_is_that_of_the_released_code() {
        let params = Params::fresh(&[], 1, &Device::Cpu).unwrap();
        let schedule = Schedule { peak: 2.0, warmup_steps: 2, total_steps: 10 };
        let of = |released: Option<&ReferenceCode>| {
            let optimiser = Optimiser::new(&ADAMW, Missing::Skip, released, &params, |_| true).unwrap();
            [1, 2, 3, 10].map(|update| optimiser.rate(&schedule, update))
        };
        assert_eq!(of(None).map(|rate| rate > 0.0), [true; 4]);
        let close = |found: [f64; 4], exact: [f64; 4]| {
            assert!(found.iter().zip(exact).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {exact:?}");
        };
        close(of(Some(&released(ReferencePace::Constant))), [2.0; 4]);
        close(of(Some(&ReferenceCode { optimiser: None, pace: ReferencePace::Constant })), [2.0; 4]);
        // From the end of the warm-up at once to 1 - x.
        close(of(Some(&released(ReferencePace::Linear061))), [0.0, 1.0, 1.6, 0.2]);
        close(of(Some(&released(ReferencePace::Linear062))), [0.0, 1.0, 2.0, 0.25]);
    }

    #[test]
    fn constants_out_of_range_are_named() {
        let mut config = released(ReferencePace::Constant);
        assert_eq!(config.check(), Ok(()));
        config.optimiser.as_mut().unwrap().clip_norm = Some(0.0);
        let wrong = config.check().unwrap_err().to_string();
        assert_eq!(wrong, "quirks.optimiser.clip_norm is 0, expected at least 1e-12");
        config.optimiser.as_mut().unwrap().beta2 = 1.0;
        assert_eq!(config.check().unwrap_err().setting, "quirks.optimiser.beta2");
        config.optimiser = None;
        assert_eq!(config.check(), Ok(()));
    }
}
