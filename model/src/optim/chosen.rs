//! An optimiser by its config: AdamW, or one of the reference codes'.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::adamw::{AdamW, AdamWConfig, Missing, Update};
use super::bert::{self, BertOptimiser};
use super::moments::Moments;
use super::schedule::ReferencePace;
use crate::params::Params;

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
        let checked = self.optimiser.as_ref().map_or(Ok(()), bert::Config::check);
        checked.map_err(|InvalidSetting { setting, found, expected }| {
            InvalidSetting::new(format!("quirks.{setting}"), found, expected)
        })
    }
}

/// What a training updates its parameters with.
#[derive(Debug, Clone)]
pub(crate) struct Optimiser {
    rule: Rule,
    updates: u64,
}

#[derive(Debug, Clone)]
enum Rule {
    AdamW(AdamW),
    Reference(BertOptimiser),
}

impl Optimiser {
    /// One that has made no update, for the parameters that `trained` accepts. An optimiser in place of AdamW leaves parameters without a gradient as
    /// they are, whatever `missing` says of AdamW.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub(crate) fn new(
        adamw: &AdamWConfig,
        missing: Missing,
        other: Option<&bert::Config>,
        params: &Params,
        trained: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let rule = match other {
            None => Rule::AdamW(AdamW::new(adamw.clone(), params, trained)?.with_missing(missing)),
            Some(optimiser) => Rule::Reference(BertOptimiser::new(optimiser.clone(), params, trained)?),
        };
        Ok(Self { rule, updates: 0 })
    }

    /// Updates made so far.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
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
    use super::*;
    use crate::optim::bert::Kind;

    #[test]
    fn constants_out_of_range_are_named() {
        let (beta1, beta2, epsilon, weight_decay) = (0.9, 0.999, 1e-6, 0.01);
        let optimiser =
            bert::Config { kind: Kind::BertAdam, beta1, beta2, epsilon, weight_decay, clip_norm: Some(1.0) };
        let mut config = ReferenceCode { optimiser: Some(optimiser), pace: ReferencePace::Constant };
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
