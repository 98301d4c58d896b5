//! Adamax and Adam as the code of MT-BERT has them (mt-dnn's Adamax, pytorch-pretrained-BERT's BertAdam): no correction of the moments' bias, the gradient of
//! each parameter clipped by itself, decay inside the update.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::adamw::{Update, decays};
use super::clip;
use super::moments::{self, Blend, Moments, Rule, overwrite};
use crate::nn::single;
use crate::params::Params;
use crate::range;

/// By what a step is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Adamax: by the largest gradient so far, which decays.
    Adamax,
    /// BertAdam: by the root of the mean square of the gradients.
    BertAdam,
    /// BertAdam that skips elements without a gradient, weight decay included, so that frozen heads stay as they are (the code of Michel et al.
    /// 2019).
    BertAdamSparing,
}

/// An optimiser in place of AdamW: no correction of the moments' bias, weight decay inside the update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What a step is divided by. All are without bias correction, with weight decay inside the update.
    pub kind: Kind,
    /// Decay rate of the first moment, from 0 to below 1.
    ///
    /// Source: pytorch-pretrained-BERT's BertAdam and mt-dnn's Adamax (`b1`).
    #[serde(default = "beta1")]
    pub beta1: f64,
    /// Decay rate of the second moment, from 0 to below 1.
    ///
    /// Source: pytorch-pretrained-BERT's BertAdam and mt-dnn's Adamax (`b2`).
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// Keeps divisors from 0; from 1e-30 to 1.
    ///
    /// Source: pytorch-pretrained-BERT's BertAdam and mt-dnn's Adamax (`e`).
    #[serde(default = "epsilon")]
    pub epsilon: f64,
    /// Share of a weight that a step of learning rate 1 takes away, from 0 to 1. Not applied to biases and layer norms.
    ///
    /// Source: pytorch-pretrained-BERT's BertAdam and mt-dnn's Adamax (`weight_decay`).
    #[serde(default = "weight_decay")]
    pub weight_decay: f64,
    /// Maximum norm of each parameter's gradient, clipped parameter by parameter; left out, only all gradients together are clipped.
    #[serde(default)]
    pub clip_norm: Option<f64>,
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.999
}

fn epsilon() -> f64 {
    1e-6
}

fn weight_decay() -> f64 {
    0.01
}

impl Config {
    /// Whether every constant is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> std::result::Result<(), InvalidSetting> {
        let Config { beta1, beta2, epsilon, weight_decay, clip_norm, .. } = *self;
        range::check(&[
            ("optimiser.beta1", beta1, range::BELOW_ONE),
            ("optimiser.beta2", beta2, range::BELOW_ONE),
            ("optimiser.epsilon", epsilon, range::EPSILON),
            ("optimiser.weight_decay", weight_decay, range::SHARE),
            ("optimiser.clip_norm", clip_norm.unwrap_or(1.0), range::CLIP),
        ])
    }
}

/// Moments of all trained parameters. On a device it is waited for once for each parameter whose gradient is clipped.
#[derive(Debug, Clone)]
pub struct BertOptimiser {
    config: Config,
    pub(crate) moments: BTreeMap<String, Moments>,
}

impl BertOptimiser {
    /// An optimiser that has made no update, for the parameters that `trained` accepts.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub fn new(config: Config, params: &Params, trained: impl Fn(&str) -> bool) -> Result<Self> {
        let of = params.iter().filter(|(name, _)| trained(name));
        let moments = of.map(|(name, tensor)| Ok((name.to_owned(), Moments::none(tensor)?)));
        Ok(BertOptimiser { config, moments: moments.collect::<Result<_>>()? })
    }

    /// Updates in place every trained parameter that has a gradient. The gradients' memory goes to the next step, so nobody may hold on to them.
    ///
    /// With g the scaled gradient, clipped, m = b1 m + (1 - b1) g, and v = max(b2 v, |g| + epsilon) and r = v for Adamax, v = b2 v + (1 - b2) g^2 and
    /// r = sqrt v for BertAdam: p = p - rate * (m / (r + epsilon) + decay * p).
    ///
    /// # Errors
    /// When a gradient has another shape than its parameter.
    pub fn step(&mut self, params: &Params, grads: BTreeMap<String, Tensor>, update: Update) -> Result<()> {
        let Config { kind, beta1, beta2, epsilon, weight_decay, clip_norm } = self.config;
        for (name, param) in params.iter() {
            let (Some(of), Some(grad)) = (self.moments.get_mut(name), grads.get(name)) else { continue };
            of.updates += 1;
            let grad = grad.contiguous()?;
            let clipped = clip_norm.map_or(Ok(1.0), |limit| {
                let alone = BTreeMap::from([(name.to_owned(), grad.clone())]);
                Ok::<_, candle_core::Error>(clip::factor(clip::global_norm(&alone)? * update.scale, limit))
            })?;
            let change = Change {
                kind,
                first: Blend::new(beta1),
                second: Blend::new(beta2),
                scale: single(update.scale * clipped),
                rate: single(update.rate),
                decay: if decays(name) { single(weight_decay) } else { 0.0 },
                epsilon: single(epsilon),
            };
            moments::change(&change, [param, &of.first, &of.second], &grad)?;
        }
        grads.into_values().try_for_each(|grad| params.buffers().give_back(&grad))
    }
}

/// One update of one parameter; see [`BertOptimiser::step`].
#[derive(Debug, Clone, Copy)]
struct Change {
    kind: Kind,
    first: Blend,
    second: Blend,
    scale: f32,
    rate: f32,
    decay: f32,
    epsilon: f32,
}

impl Rule for Change {
    #[inline(always)]
    fn number(&self, [p, m, v]: [&mut f32; 3], g: f32) {
        let g = g * self.scale;
        *m = self.first.keep * *m + self.first.take * g;
        let divisor = match self.kind {
            Kind::Adamax => {
                *v = (self.second.keep * *v).max(g.abs() + self.epsilon);
                *v
            }
            Kind::BertAdam | Kind::BertAdamSparing => {
                *v = self.second.keep * *v + self.second.take * (g * g);
                v.sqrt()
            }
        };
        let decay = if self.kind == Kind::BertAdamSparing && g == 0.0 { 0.0 } else { self.decay };
        *p -= self.rate * (*m / (divisor + self.epsilon) + decay * *p);
    }

    fn composed(&self, [p, m, v]: [&Tensor; 3], g: &Tensor) -> Result<()> {
        let (g, epsilon) = ((g.detach() * f64::from(self.scale))?, f64::from(self.epsilon));
        self.first.composed(m, &g)?;
        let divisor = match self.kind {
            Kind::Adamax => {
                overwrite(v, &(v * f64::from(self.second.keep))?.maximum(&(g.abs()? + epsilon)?)?)?;
                v.clone()
            }
            Kind::BertAdam | Kind::BertAdamSparing => {
                self.second.composed(v, &g.sqr()?)?;
                v.sqrt()?
            }
        };
        let decayed = (p.detach() * f64::from(self.decay))?;
        let decayed = match self.kind {
            Kind::BertAdamSparing => (&decayed * g.ne(0.0)?.to_dtype(p.dtype())?)?,
            Kind::Adamax | Kind::BertAdam => decayed,
        };
        let step = (m.div(&(divisor + epsilon)?)? + decayed)?;
        overwrite(p, &(p.detach() - (step * f64::from(self.rate))?)?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;
    use crate::nn::check::{distance, randn};

    const KINDS: [Kind; 3] = [Kind::Adamax, Kind::BertAdam, Kind::BertAdamSparing];

    fn config(kind: Kind) -> Config {
        Config { kind, beta1: 0.9, beta2: 0.99, epsilon: 1e-6, weight_decay: 0.1, clip_norm: Some(1.0) }
    }

    fn params(names: &[&str], dtype: DType) -> Params {
        let value = |s: u64| Var::from_tensor(&randn(s, &[70, 3]).to_dtype(dtype).unwrap()).unwrap();
        Params::from_vars(names.iter().zip(1..).map(|(name, s)| ((*name).to_owned(), value(s))).collect())
    }

    /// Gradients of which every third number is 0.
    fn grads(names: &[&str], step: u64, dtype: DType) -> BTreeMap<String, Tensor> {
        let of = |s: u64| {
            let numbers = randn(100 * step + s, &[210]).to_vec1::<f32>().unwrap();
            let kept = numbers.iter().enumerate().map(|(at, x)| if at % 3 == 0 { 0.0 } else { *x });
            let kept: Vec<f32> = kept.collect();
            Tensor::from_vec(kept, (70, 3), &candle_core::Device::Cpu).unwrap().to_dtype(dtype).unwrap()
        };
        names.iter().zip(1..).map(|(name, s)| ((*name).to_owned(), of(s))).collect()
    }

    #[test]
    fn both_forms_agree_and_biases_do_not_decay() {
        const NAMES: [&str; 2] = ["a.weight", "a.bias"];
        for kind in KINDS {
            let run = |dtype| {
                let params = params(&NAMES, dtype);
                let mut optimiser = BertOptimiser::new(config(kind), &params, |_| true).unwrap();
                for step in 1..=5 {
                    let update = Update { rate: 0.05, scale: 0.7 };
                    optimiser.step(&params, grads(&NAMES, step, dtype), update).unwrap();
                }
                NAMES.map(|name| params.get(name).unwrap().copy().unwrap())
            };
            let ([a, b], [c, d]) = (run(DType::F32), run(DType::F64));
            assert!(distance(&a, &c) < 1e-5 && distance(&b, &d) < 1e-5, "{kind:?}");
        }
        // A first gradient of 0 moves nothing but what decays.
        for (kind, moves) in KINDS.into_iter().zip([true, true, false]) {
            let of = params(&NAMES, DType::F32);
            let mut optimiser = BertOptimiser::new(config(kind), &of, |_| true).unwrap();
            let none = NAMES.map(|name| (name.to_owned(), of.get(name).unwrap().zeros_like().unwrap()));
            optimiser.step(&of, none.into(), Update { rate: 0.05, scale: 1.0 }).unwrap();
            let far = |name| distance(&of.get(name).unwrap(), &params(&NAMES, DType::F32).get(name).unwrap());
            assert_eq!(far("a.weight") > 0.0, moves, "{kind:?}");
            assert_eq!(far("a.bias"), 0.0, "{kind:?}");
        }
    }

    #[test]
    fn what_is_not_trained_or_has_no_gradient_stays() {
        let of = params(&["a", "b", "c"], DType::F32);
        let mut optimiser = BertOptimiser::new(config(Kind::Adamax), &of, |name| name != "b").unwrap();
        let mut some = grads(&["a", "b", "c"], 1, DType::F32);
        some.remove("c");
        optimiser.step(&of, some, Update { rate: 0.05, scale: 1.0 }).unwrap();
        let far =
            |name| distance(&of.get(name).unwrap(), &params(&["a", "b", "c"], DType::F32).get(name).unwrap());
        assert!(far("a") > 0.0);
        assert_eq!([far("b"), far("c")], [0.0, 0.0]);
    }
}
