//! AdamW with decoupled weight decay (Loshchilov and Hutter 2019) over named parameters. Knows no model and no schedule.

use std::collections::BTreeMap;

use candle_core::{CpuStorage, InplaceOp2, InplaceOp3, Layout, Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};
use serde::{Deserialize, Serialize};

use crate::nn::{fused, read, single, wide};
use crate::params::Params;

/// The constants of AdamW.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay rate of the first moment (usually 0.9).
    pub beta1: f64,
    /// Decay rate of the second moment (usually 0.999).
    pub beta2: f64,
    /// Added to the root of the second moment (usually 1e-8).
    pub epsilon: f64,
    /// Share of a weight that a step of rate 1 takes away; biases and layer norms are never decayed.
    pub weight_decay: f64,
}

/// First and second moment of one parameter's gradient.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    pub(crate) first: Tensor,
    pub(crate) second: Tensor,
}

/// Moments of all trained parameters and the number of updates made.
#[derive(Debug, Clone)]
pub struct AdamW {
    config: AdamWConfig,
    pub(crate) moments: BTreeMap<String, Moments>,
    pub(crate) updates: u64,
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
    /// An optimiser that has made no update, for the parameters that `trained` accepts.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub fn new(config: AdamWConfig, params: &Params, trained: impl Fn(&str) -> bool) -> Result<Self> {
        let mut moments = BTreeMap::new();
        for (name, tensor) in params.iter().filter(|(name, _)| trained(name)) {
            moments.insert(
                name.to_owned(),
                Moments { first: tensor.zeros_like()?, second: tensor.zeros_like()? },
            );
        }
        Ok(AdamW { config, moments, updates: 0 })
    }

    /// Updates every trained parameter in place; one without a gradient in `grads` counts as gradient 0.
    ///
    /// With g the scaled gradient: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
    /// p = p (1 - rate * decay) - rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
    ///
    /// # Errors
    /// When a gradient has another shape than its parameter.
    pub fn step(&mut self, params: &Params, grads: &BTreeMap<String, Tensor>, update: Update) -> Result<()> {
        self.updates += 1;
        let t = i32::try_from(self.updates).unwrap_or(i32::MAX);
        let AdamWConfig { beta1, beta2, epsilon, weight_decay } = self.config;
        for (name, param) in params.iter() {
            let Some(Moments { first, second }) = self.moments.get(name) else { continue };
            let grad = match grads.get(name) {
                Some(grad) => grad.contiguous()?,
                None => param.zeros_like()?,
            };
            let scale = single(update.scale);
            blend(first, &grad, Blend::new(beta1, scale, Square::No))?;
            blend(second, &grad, Blend::new(beta2, scale, Square::Yes))?;
            let shrink = if decays(name) { 1.0 - update.rate * weight_decay } else { 1.0 };
            let walk = Walk {
                shrink: single(shrink),
                pace: single(update.rate / (1.0 - beta1.powi(t))),
                inverse_root: single(1.0 / (1.0 - beta2.powi(t)).sqrt()),
                epsilon: single(epsilon),
            };
            walk_to(param, [first, second], walk)?;
        }
        Ok(())
    }
}

/// Numbers that one thread works on at a time.
const CHUNK: usize = 1 << 14;

#[derive(Clone, Copy, PartialEq)]
enum Square {
    Yes,
    No,
}

/// `m = keep m + (1 - keep) g` with `g = scale * grad`, or its square.
#[derive(Clone, Copy)]
struct Blend {
    keep: f32,
    /// `1 - keep`, taken before rounding: in single precision 1 - 0.999 would be wrong in the fifth digit.
    take: f32,
    scale: f32,
    square: Square,
}

impl Blend {
    fn new(keep: f64, scale: f32, square: Square) -> Self {
        Self { keep: single(keep), take: single(1.0 - keep), scale, square }
    }
}

fn blend(moment: &Tensor, grad: &Tensor, how: Blend) -> Result<()> {
    if fused(moment) {
        return moment.inplace_op2(grad, &how);
    }
    let g = (grad.detach() * f64::from(how.scale))?;
    let g = if how.square == Square::Yes { g.sqr()? } else { g };
    let kept = (moment * f64::from(how.keep))?;
    overwrite(moment, &(kept + (g * f64::from(how.take))?)?)
}

impl InplaceOp2 for Blend {
    fn name(&self) -> &'static str {
        "adamw-moment"
    }

    fn cpu_fwd(&self, m: &mut CpuStorage, lm: &Layout, g: &CpuStorage, lg: &Layout) -> Result<()> {
        let (g, Blend { keep, take, scale, square }) = (read(g, lg)?, *self);
        let m = write(m, lm)?;
        m.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).for_each(|(m, g)| {
            wide(|| match square {
                Square::No => {
                    m.iter_mut().zip(g).for_each(|(m, g)| *m = keep * *m + take * (g * scale));
                }
                Square::Yes => m.iter_mut().zip(g).for_each(|(m, g)| {
                    let g = g * scale;
                    *m = keep * *m + take * (g * g);
                }),
            });
        });
        Ok(())
    }
}

/// `p = shrink p - pace * m / (sqrt(v) * inverse_root + epsilon)`.
#[derive(Clone, Copy)]
struct Walk {
    shrink: f32,
    pace: f32,
    inverse_root: f32,
    epsilon: f32,
}

fn walk_to(param: &Tensor, [first, second]: [&Tensor; 2], walk: Walk) -> Result<()> {
    if fused(param) {
        return param.inplace_op3(first, second, &walk);
    }
    let root = ((second.sqrt()? * f64::from(walk.inverse_root))? + f64::from(walk.epsilon))?;
    let kept = (param.detach() * f64::from(walk.shrink))?;
    overwrite(param, &(kept - (first * f64::from(walk.pace))?.div(&root)?)?)
}

impl InplaceOp3 for Walk {
    fn name(&self) -> &'static str {
        "adamw-walk"
    }

    fn cpu_fwd(
        &self,
        p: &mut CpuStorage,
        lp: &Layout,
        m: &CpuStorage,
        lm: &Layout,
        v: &CpuStorage,
        lv: &Layout,
    ) -> Result<()> {
        let (m, v, Walk { shrink, pace, inverse_root, epsilon }) = (read(m, lm)?, read(v, lv)?, *self);
        let p = write(p, lp)?;
        p.par_chunks_mut(CHUNK).zip(m.par_chunks(CHUNK).zip(v.par_chunks(CHUNK))).for_each(|(p, (m, v))| {
            wide(|| {
                for (p, (m, v)) in p.iter_mut().zip(m.iter().zip(v)) {
                    *p = shrink * *p - pace * (m / (v.sqrt() * inverse_root + epsilon));
                }
            });
        });
        Ok(())
    }
}

fn write<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => candle_core::bail!("expected contiguous f32 numbers"),
    }
}

/// Copies `values` over the memory of `target`.
fn overwrite(target: &Tensor, values: &Tensor) -> Result<()> {
    target.slice_set(&values.contiguous()?, 0, 0)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

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
                adam.step(&params, &one(name, grad), Update { rate: 0.02, scale: 0.5 }).unwrap();
            }
            let mut exact = numbers(&start);
            reference(&mut exact, &grads.iter().map(numbers).collect::<Vec<_>>(), decay);
            let found = numbers(&params.get(name).unwrap());
            let worst = found.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-6, "{name}: {worst}");
        }
    }

    #[test]
    fn what_is_not_trained_keeps_its_bits() {
        let start = randn(1, &[10]);
        let params = params("a.weight", &start);
        let mut adam = AdamW::new(CONFIG, &params, |_| false).unwrap();
        adam.step(&params, &one("a.weight", &randn(2, &[10])), Update { rate: 1.0, scale: 1.0 }).unwrap();
        assert_eq!(
            params.get("a.weight").unwrap().to_vec1::<f32>().unwrap(),
            start.to_vec1::<f32>().unwrap()
        );
    }

    #[test]
    fn composed_form_agrees() {
        let run = |dtype| {
            let [p, m, v] = [1, 2, 3].map(|s| randn(s, &[50]).to_dtype(dtype).unwrap());
            let v = v.sqr().unwrap();
            let g = Tensor::ones(50, dtype, &Device::Cpu).unwrap();
            blend(&m, &g, Blend::new(0.9, 0.5, Square::No)).unwrap();
            blend(&v, &g, Blend::new(0.9, 0.5, Square::Yes)).unwrap();
            let walk = Walk { shrink: 0.9, pace: 0.1, inverse_root: 2.0, epsilon: 1e-6 };
            walk_to(&p, [&m, &v], walk).unwrap();
            numbers(&p)
        };
        for (a, b) in run(DType::F32).iter().zip(run(DType::F64)) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}
