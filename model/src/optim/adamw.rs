//! AdamW with decoupled weight decay (Loshchilov and Hutter 2019) over named parameters.

use std::collections::BTreeMap;

use base::setting::InvalidSetting;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::moments::{self, Blend, Moments, Rule, overwrite};
use crate::nn::single;
use crate::params::Params;
use crate::range;

/// The constants of AdamW.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdamWConfig {
    /// Decay rate of the first moment, from 0 to below 1.
    ///
    /// Source: PyTorch's AdamW (`betas`).
    pub beta1: f64,
    /// Decay rate of the second moment, from 0 to below 1.
    ///
    /// Source: PyTorch's AdamW (`betas`).
    pub beta2: f64,
    /// Added to the square root of the second moment, from 1e-30 to 1.
    ///
    /// Source: PyTorch's AdamW (`eps`).
    pub epsilon: f64,
    /// Decoupled weight decay: the share of a weight that a step of learning rate 1 takes away, from 0 to 1. Not applied to biases and layer norms.
    ///
    /// Source: PyTorch's AdamW; BERT's `optimization.py` and MT-BERT (section 4.2) have the same.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 }
    }
}

impl AdamWConfig {
    /// Whether every constant is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> std::result::Result<(), InvalidSetting> {
        let Self { beta1, beta2, epsilon, weight_decay } = *self;
        range::check(&[
            ("adamw.beta1", beta1, range::BELOW_ONE),
            ("adamw.beta2", beta2, range::BELOW_ONE),
            ("adamw.epsilon", epsilon, range::EPSILON),
            ("adamw.weight_decay", weight_decay, range::SHARE),
        ])
    }
}

/// What an update does with a parameter that has no gradient in it, such as the output of a task that had no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// Its gradient counts as 0: its moments fade, and it moves on by them and by weight decay.
    Zero,
    /// It stays as it is, and so do its moments and its own count of updates, as in PyTorch.
    Skip,
}

/// Moments of all trained parameters.
#[derive(Debug, Clone)]
pub struct AdamW {
    config: AdamWConfig,
    missing: Missing,
    pub(crate) moments: BTreeMap<String, Moments>,
}

/// What one update is made with.
#[derive(Debug, Clone, Copy)]
pub struct Update {
    /// Learning rate.
    pub rate: f64,
    /// What gradients are multiplied by first: the clipping factor.
    pub scale: f64,
}

/// Whether weight decay applies to a parameter: to matrices, not to biases and layer norms.
#[must_use]
pub fn decays(name: &str) -> bool {
    !name.ends_with(".bias") && !name.contains("LayerNorm")
}

impl AdamW {
    /// An optimiser that has made no update, for the parameters that `trained` accepts; [`Missing::Zero`].
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub fn new(config: AdamWConfig, params: &Params, trained: impl Fn(&str) -> bool) -> Result<Self> {
        let mut moments = BTreeMap::new();
        for (name, tensor) in params.iter().filter(|(name, _)| trained(name)) {
            moments.insert(name.to_owned(), Moments::none(tensor)?);
        }
        Ok(AdamW { config, missing: Missing::Zero, moments })
    }

    /// The same optimiser with another way with parameters that have no gradient.
    #[must_use]
    pub fn with_missing(self, missing: Missing) -> Self {
        AdamW { missing, ..self }
    }

    /// Updates every trained parameter in place; what happens to one without a gradient in `grads` is [`Missing`]'s. The
    /// gradients' memory goes to the next step, so nobody may hold on to them.
    ///
    /// With g the scaled gradient and t the parameter's updates so far, this one included: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
    /// p = p (1 - rate * decay) - rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
    ///
    /// # Errors
    /// When a gradient has another shape than its parameter.
    pub fn step(&mut self, params: &Params, grads: BTreeMap<String, Tensor>, update: Update) -> Result<()> {
        let AdamWConfig { beta1, beta2, epsilon, weight_decay } = self.config;
        for (name, param) in params.iter() {
            let Some(Moments { first, second, updates }) = self.moments.get_mut(name) else { continue };
            let grad = match (grads.get(name), self.missing) {
                (Some(grad), _) => grad.contiguous()?,
                (None, Missing::Zero) => param.zeros_like()?,
                (None, Missing::Skip) => continue,
            };
            *updates += 1;
            let t = i32::try_from(*updates).unwrap_or(i32::MAX);
            let shrink = if decays(name) { 1.0 - update.rate * weight_decay } else { 1.0 };
            let change = Change {
                first: Blend::new(beta1),
                second: Blend::new(beta2),
                scale: single(update.scale),
                shrink: single(shrink),
                pace: single(update.rate / (1.0 - beta1.powi(t))),
                inverse_root: single(1.0 / (1.0 - beta2.powi(t)).sqrt()),
                epsilon: single(epsilon),
            };
            moments::change(&change, [param, first, second], &grad)?;
        }
        grads.into_values().try_for_each(|grad| params.buffers().give_back(&grad))
    }
}

/// One update of one parameter p with moments m and v. With g = scale * gradient: m and v blend in g and its square, then
/// `p = shrink p - pace * m / (sqrt(v) * inverse_root + epsilon)`.
#[derive(Debug, Clone, Copy)]
struct Change {
    first: Blend,
    second: Blend,
    scale: f32,
    shrink: f32,
    pace: f32,
    inverse_root: f32,
    epsilon: f32,
}

impl Rule for Change {
    #[inline(always)]
    fn number(&self, [p, m, v]: [&mut f32; 3], g: f32) {
        let g = g * self.scale;
        *m = self.first.keep * *m + self.first.take * g;
        *v = self.second.keep * *v + self.second.take * (g * g);
        *p = self.shrink * *p - self.pace * (*m / (v.sqrt() * self.inverse_root + self.epsilon));
    }

    fn composed(&self, [p, m, v]: [&Tensor; 3], g: &Tensor) -> Result<()> {
        let g = (g.detach() * f64::from(self.scale))?;
        self.first.composed(m, &g)?;
        self.second.composed(v, &g.sqr()?)?;
        let root = ((v.sqrt()? * f64::from(self.inverse_root))? + f64::from(self.epsilon))?;
        let kept = (p.detach() * f64::from(self.shrink))?;
        overwrite(p, &(kept - (m * f64::from(self.pace))?.div(&root)?)?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::nn::check::{numbers, randn};
    use crate::params::{Init, Spec};

    const CONFIG: AdamWConfig = AdamWConfig { beta1: 0.9, beta2: 0.99, epsilon: 1e-6, weight_decay: 0.1 };

    fn one(name: &str, values: &Tensor) -> BTreeMap<String, Tensor> {
        BTreeMap::from([(name.to_owned(), values.clone())])
    }

    fn params(name: &str, values: &Tensor) -> Params {
        let spec = Spec::new(name, values.dims(), Init::Zeros);
        Params::from_tensors(&[spec], one(name, values)).unwrap()
    }

    /// The textbook update in f64.
    fn reference(p: &mut [f64], grads: &[Vec<f64>], decay: f64) {
        let (mut m, mut v) = (vec![0.0; p.len()], vec![0.0; p.len()]);
        for (t, g) in (1..).zip(grads) {
            for i in 0..p.len() {
                let g = g[i] * 0.5;
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.99 * v[i] + 0.01 * g * g;
                p[i] -= 0.02 * decay * p[i];
                let (mh, vh) = (m[i] / (1.0 - 0.9_f64.powi(t)), v[i] / (1.0 - 0.99_f64.powi(t)));
                p[i] -= 0.02 * mh / (vh.sqrt() + 1e-6);
            }
        }
    }

    #[test]
    fn steps_are_those_of_the_textbook_and_only_matrices_decay() {
        for (name, decay) in [("a.weight", 0.1), ("a.bias", 0.0), ("a.LayerNorm.weight", 0.0)] {
            let start = randn(1, &[40_000]);
            let params = params(name, &start);
            let mut adam = AdamW::new(CONFIG, &params, |_| true).unwrap();
            let grads: Vec<Tensor> = (2..5).map(|s| randn(s, &[40_000])).collect();
            for grad in &grads {
                adam.step(&params, one(name, grad), Update { rate: 0.02, scale: 0.5 }).unwrap();
            }
            let mut exact = numbers(&start);
            reference(&mut exact, &grads.iter().map(numbers).collect::<Vec<_>>(), decay);
            let found = numbers(&params.get(name).unwrap());
            let worst = found.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-6, "{name}: {worst}");
        }
    }

    #[test]
    fn a_parameter_without_a_gradient_fades_or_stays() {
        let start = randn(1, &[10]);
        let grads: Vec<Tensor> = (2..5).map(|s| randn(s, &[10])).collect();
        let trained = |missing, gaps: &[usize]| {
            let params = params("a.weight", &start);
            let mut adam = AdamW::new(CONFIG, &params, |_| true).unwrap().with_missing(missing);
            let mut bits = vec![];
            for (at, grad) in grads.iter().enumerate() {
                for _ in 0..gaps[at] {
                    adam.step(&params, BTreeMap::new(), Update { rate: 0.02, scale: 0.5 }).unwrap();
                }
                adam.step(&params, one("a.weight", grad), Update { rate: 0.02, scale: 0.5 }).unwrap();
                bits.push(params.get("a.weight").unwrap().to_vec1::<f32>().unwrap());
            }
            bits
        };
        let plain = trained(Missing::Zero, &[0, 0, 0]);
        assert_eq!(trained(Missing::Skip, &[0, 0, 0]), plain);
        assert_eq!(trained(Missing::Skip, &[2, 1, 3]), plain);
        assert_ne!(trained(Missing::Zero, &[2, 1, 3]), plain);
    }

    #[test]
    fn what_is_not_trained_keeps_its_bits() {
        let start = randn(1, &[10]);
        let params = params("a.weight", &start);
        let mut adam = AdamW::new(CONFIG, &params, |_| false).unwrap();
        adam.step(&params, one("a.weight", &randn(2, &[10])), Update { rate: 1.0, scale: 1.0 }).unwrap();
        assert_eq!(
            params.get("a.weight").unwrap().to_vec1::<f32>().unwrap(),
            start.to_vec1::<f32>().unwrap()
        );
    }

    #[test]
    fn composed_form_agrees() {
        let run = |dtype| {
            let [p, m, v, g] = [1, 2, 3, 4].map(|s| randn(s, &[50]).to_dtype(dtype).unwrap());
            let v = v.sqr().unwrap();
            let (first, second) = (Blend::new(0.9), Blend::new(0.8));
            let [scale, shrink, pace, inverse_root, epsilon] = [0.5, 0.9, 0.1, 2.0, 1e-6];
            let change = Change { first, second, scale, shrink, pace, inverse_root, epsilon };
            moments::change(&change, [&p, &m, &v], &g).unwrap();
            [p, m, v].iter().flat_map(numbers).collect::<Vec<_>>()
        };
        for (a, b) in run(DType::F32).iter().zip(run(DType::F64)) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn a_gradient_of_another_shape_is_an_error() {
        let params = params("a.weight", &randn(1, &[10]));
        let mut adam = AdamW::new(CONFIG, &params, |_| true).unwrap();
        let update = Update { rate: 1.0, scale: 1.0 };
        let text = adam.step(&params, one("a.weight", &randn(2, &[9])), update).unwrap_err().to_string();
        assert!(text.contains("a gradient of shape [9] for a parameter of shape [10]"), "{text}");
    }
}
