//! Updates that spare kept heads (KIMERA, equation 3): what a kept head loses of its gradient and of its step.
//!
//! Under AdamW only a scaled *step* slows a head down: the moments divide any constant factor of the gradient out again, so a
//! soft mask on the gradient trains as fast as none. It stays as [`SoftOn::Gradient`] for comparison.

use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::head::mask::Mask;
use crate::head::slices::{self, Axis};
use crate::nn::{Host, fill_rows, fused};
use crate::params::Params;

/// What a soft mask scales by `1 - m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoftOn {
    /// The whole step, weight decay included.
    #[default]
    Step,
    /// The gradient. Adam divides by the gradient's own size, so this has almost no effect: for comparison only.
    Gradient,
}

/// For every parameter that heads divide among themselves, how much of each head is kept. Without a mask, none is.
#[derive(Debug, Clone)]
pub struct HeadMask {
    parts: BTreeMap<String, Part>,
    soft_on: SoftOn,
}

/// One parameter's division among the heads of its layer.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    axis: Axis,
    /// 1 is frozen, 0 is trained like any other number.
    keep_h: Vec<f32>,
}

/// Copies of the parameters that a step must not move freely.
#[derive(Debug)]
pub struct Before(BTreeMap<String, Tensor>);

impl HeadMask {
    /// The division that `mask` makes of an encoder's parameters.
    #[must_use]
    pub fn new(mask: Option<&Mask>, soft_on: SoftOn) -> Self {
        let layers = mask.map_or(0, |mask| mask.shape()[0]);
        let parts = (0..layers).flat_map(|l| {
            let keep_h = mask.map_or(&[][..], |mask| mask.layer(l)).to_vec();
            slices::of_layer(l)
                .into_iter()
                .map(move |(name, axis)| (name, Part { axis, keep_h: keep_h.clone() }))
        });
        HeadMask { parts: parts.collect(), soft_on }
    }

    /// Parameters of which every head is kept wholly.
    pub fn frozen(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter(|(_, part)| part.is_frozen()).map(|(name, _)| name.as_str())
    }

    /// Parameters of which some heads are kept wholly and others are not, with those that are.
    #[must_use]
    pub fn partly_frozen(&self) -> BTreeMap<&str, Vec<usize>> {
        let partly = self.parts.iter().filter(|(_, part)| !part.is_frozen());
        let frozen = |part: &Part| (0..part.keep_h.len()).filter(|h| part.keep_h[*h] >= 1.0).collect();
        let named = partly.map(|(name, part)| (name.as_str(), frozen(part)));
        named.filter(|(_, heads): &(_, Vec<usize>)| !heads.is_empty()).collect()
    }

    /// The numbers of head `h` in the values of parameter `name`, in pieces; none if heads do not divide it.
    pub(crate) fn pieces<'a>(
        &self,
        name: &str,
        shape: &[usize],
        h: usize,
        values: &'a [f32],
    ) -> Vec<&'a [f32]> {
        let Some(part) = self.parts.get(name) else { return vec![] };
        let ([_, width], k) = part.sizes(shape);
        match part.axis {
            Axis::Rows => vec![&values[h * k * width..(h + 1) * k * width]],
            Axis::Columns => values.chunks_exact(width).map(|row| &row[h * k..(h + 1) * k]).collect(),
        }
    }

    /// How heads divide a parameter, and what each of them gets of its gradient ([`HeadMask::screen`]) and of its step ([`HeadMask::hold_back`]); none
    /// of a parameter that is trained like any other, or not at all.
    #[cfg(feature = "cuda")]
    pub(crate) fn shares(&self, name: &str) -> Option<(Axis, [Vec<f32>; 2])> {
        let part = self.parts.get(name).filter(|part| part.keeps_any() && !part.is_frozen())?;
        let each = |of: &dyn Fn(f32) -> f32| part.keep_h.iter().map(|keep| of(*keep)).collect();
        Some((part.axis, [each(&|keep| self.of_gradient(keep)), each(&|keep| self.of_step(keep))]))
    }

    /// The share of its gradient that a head gets of which so much is kept.
    fn of_gradient(&self, keep: f32) -> f32 {
        match self.soft_on {
            SoftOn::Gradient => 1.0 - keep,
            SoftOn::Step => f32::from(u8::from(keep < 1.0)),
        }
    }

    /// The share of its step.
    fn of_step(&self, keep: f32) -> f32 {
        match self.soft_on {
            SoftOn::Step => 1.0 - keep,
            SoftOn::Gradient => f32::from(u8::from(keep < 1.0)),
        }
    }

    /// Takes kept heads out of the gradients, before their norm is taken and moments are made of them: a frozen head has gradient 0.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn screen(&self, grads: &mut BTreeMap<String, Tensor>) -> Result<()> {
        for (name, part) in self.parts.iter().filter(|(_, part)| part.keeps_any()) {
            let Some(grad) = grads.get_mut(name) else { continue };
            let shares: Vec<f32> = part.keep_h.iter().map(|keep| self.of_gradient(*keep)).collect();
            *grad = part.scaled(grad, &shares)?;
        }
        Ok(())
    }

    /// Copies what the next step may move only in part. Parameters that are frozen wholly are none of its business: give them to no
    /// optimiser.
    ///
    /// # Errors
    /// When a parameter is missing or the device refuses the memory.
    pub fn before(&self, params: &Params) -> Result<Before> {
        let parts = self.parts.iter().filter(|(_, part)| part.keeps_any() && !part.is_frozen());
        parts
            .map(|(name, _)| Ok((name.clone(), params.get(name)?.detach().copy()?)))
            .collect::<Result<_>>()
            .map(Before)
    }

    /// Takes back from a step what it must not have moved: of the way from `before` a head goes the share `1 - m`, a frozen one
    /// none of it, to the bit. With AdamW that is `p (1 - (1 - m) rate decay) - (1 - m) rate m' / (sqrt(v') + epsilon)`.
    ///
    /// # Errors
    /// When the tensor library fails.
    pub fn hold_back(&self, params: &Params, before: &Before) -> Result<()> {
        for (name, old) in &before.0 {
            let Some(part) = self.parts.get(name) else { continue };
            let param = params.get(name)?;
            let shares: Vec<f32> = part.keep_h.iter().map(|keep| self.of_step(*keep)).collect();
            param.slice_set(&part.between([old, &param.detach()], &shares)?, 0, 0)?;
        }
        Ok(())
    }
}

impl Part {
    fn is_frozen(&self) -> bool {
        self.keep_h.iter().all(|keep| *keep >= 1.0)
    }

    fn keeps_any(&self) -> bool {
        self.keep_h.iter().any(|keep| *keep > 0.0)
    }

    /// Rows and columns of the parameter, and the width of a head.
    fn sizes(&self, shape: &[usize]) -> ([usize; 2], usize) {
        let rows = shape.first().copied().unwrap_or(1);
        let width = shape.iter().skip(1).product();
        let side = if self.axis == Axis::Rows { rows } else { width };
        ([rows, width], side / self.keep_h.len())
    }

    /// Fills `out` head by head: `fill(head, place, numbers)` sees numbers of one head that lie side by side from `place` on.
    fn fill(&self, out: &mut [f32], shape: &[usize], fill: impl Fn(usize, usize, &mut [f32]) + Sync) {
        let ([_, width], k) = self.sizes(shape);
        fill_rows!(out, width, |first, block| {
            for (row, numbers) in (first..).zip(block.chunks_exact_mut(width)) {
                match self.axis {
                    Axis::Rows => fill(row / k, row * width, numbers),
                    Axis::Columns => numbers
                        .chunks_exact_mut(k)
                        .enumerate()
                        .for_each(|(h, numbers)| fill(h, row * width + h * k, numbers)),
                }
            }
        });
    }

    /// One factor per number along the divided side, in the parameter's shape.
    fn spread(&self, shares_h: &[f32], like: &Tensor) -> Result<Tensor> {
        let ([rows, width], k) = self.sizes(like.dims());
        let side: Vec<f32> = shares_h.iter().flat_map(|share| std::iter::repeat_n(*share, k)).collect();
        let side = Tensor::from_vec(
            side,
            if self.axis == Axis::Rows { (rows, 1) } else { (1, width) },
            &Device::Cpu,
        )?;
        let side = side.to_device(like.device())?.to_dtype(like.dtype())?;
        side.broadcast_as((rows, width))?.reshape(like.shape())?.contiguous()
    }

    /// `share * x` head by head; exactly 0 where the share is 0, and untouched where it is 1.
    fn scaled(&self, x: &Tensor, shares_h: &[f32]) -> Result<Tensor> {
        let x = x.detach().contiguous()?;
        if !fused(&x) {
            let shares = self.spread(shares_h, &x)?;
            return shares.ne(0.0)?.where_cond(&(&x * &shares)?, &x.zeros_like()?);
        }
        let host = Host::of(&x)?;
        let values = host.get()?;
        let mut out = vec![0.0; values.len()];
        self.fill(&mut out, x.dims(), |h, at, out| {
            let (share, values) = (shares_h[h], &values[at..at + out.len()]);
            if share != 0.0 {
                out.iter_mut().zip(values).for_each(|(y, x)| *y = share * x);
            }
        });
        drop(host);
        Tensor::from_vec(out, x.shape(), x.device())
    }

    /// The share of the way from old to new, head by head: exactly old where it is 0, and new where it is 1.
    fn between(&self, [old, new]: [&Tensor; 2], shares_h: &[f32]) -> Result<Tensor> {
        if !fused(new) {
            let shares = self.spread(shares_h, new)?;
            let part = (old + ((new - old)? * &shares)?)?;
            return shares.ne(0.0)?.where_cond(&shares.ne(1.0)?.where_cond(&part, new)?, old);
        }
        let (old_host, new_host) = (Host::of(old)?, Host::of(new)?);
        let (from, to) = (old_host.get()?, new_host.get()?);
        let mut out = vec![0.0; to.len()];
        self.fill(&mut out, new.dims(), |h, at, out| {
            let (from, to) = (&from[at..at + out.len()], &to[at..at + out.len()]);
            match shares_h[h] {
                0.0 => out.copy_from_slice(from),
                1.0 => out.copy_from_slice(to),
                share => {
                    out.iter_mut().zip(from.iter().zip(to)).for_each(|(y, (a, b))| *y = a + share * (b - a));
                }
            }
        });
        drop((old_host, new_host));
        Tensor::from_vec(out, new.shape(), new.device())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::encoder::Encoder;
    use crate::encoder::config::tests::tiny;
    use crate::nn::check::randn;
    use crate::optim::adamw::{AdamW, AdamWConfig, Update};

    const QUERY: &str = "encoder.layer.0.attention.self.query.weight";
    const OUTPUT: &str = "encoder.layer.0.attention.output.dense.weight";
    const BIAS: &str = "encoder.layer.0.attention.self.value.bias";

    /// Layer 0 has heads of every kind, layer 1 only such as are kept.
    fn mask() -> Mask {
        Mask::new([2, 4], vec![1.0, 0.0, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap()
    }

    fn rows(t: &Tensor) -> Vec<Vec<f32>> {
        if t.rank() == 1 {
            t.to_vec1().unwrap().into_iter().map(|x| vec![x]).collect()
        } else {
            t.to_vec2().unwrap()
        }
    }

    /// The number at (row, column) belongs to this head.
    fn head(name: &str, [row, column]: [usize; 2]) -> usize {
        if name == OUTPUT { column / 4 } else { row / 4 }
    }

    fn screened(soft_on: SoftOn, name: &str) -> (Tensor, Tensor) {
        let shape: &[usize] = if name == BIAS { &[16] } else { &[16, 16] };
        let before = randn(1, shape);
        let mut grads =
            BTreeMap::from([(name.to_owned(), before.clone()), ("pooler".to_owned(), randn(2, &[3]))]);
        HeadMask::new(Some(&mask()), soft_on).screen(&mut grads).unwrap();
        assert_eq!(rows(&grads["pooler"]), rows(&randn(2, &[3])));
        (before, grads[name].clone())
    }

    #[test]
    fn gradients_of_kept_heads_vanish_and_soft_ones_follow_the_reading() {
        for (soft_on, soft) in [(SoftOn::Step, 1.0), (SoftOn::Gradient, 0.25)] {
            for name in [QUERY, OUTPUT, BIAS] {
                let (before, after) = screened(soft_on, name);
                for (r, (a, b)) in rows(&before).iter().zip(rows(&after)).enumerate() {
                    for (c, (a, b)) in a.iter().zip(b).enumerate() {
                        assert_eq!(b, a * [0.0, 1.0, soft, 0.0][head(name, [r, c])], "{name} {r} {c}");
                    }
                }
            }
        }
    }

    /// All parameters of a small encoder, and fresh gradients for every step.
    fn trained(mask: Option<&Mask>, soft_on: SoftOn) -> [BTreeMap<String, Vec<f32>>; 2] {
        let params = Params::fresh(&Encoder::specs(&tiny()), 4, &Device::Cpu).unwrap();
        let values = || {
            let numbers = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            params.iter().map(|(n, t)| (n.to_owned(), numbers(t))).collect::<BTreeMap<_, _>>()
        };
        let before = values();
        let heads = HeadMask::new(mask, soft_on);
        let frozen: Vec<&str> = heads.frozen().collect();
        let config = AdamWConfig { beta1: 0.9, beta2: 0.99, epsilon: 1e-6, weight_decay: 0.1 };
        let mut adam = AdamW::new(config, &params, |name| !frozen.contains(&name)).unwrap();
        for step in 1..4 {
            let grad = |(name, t): (&str, &Tensor)| (name.to_owned(), randn(step, t.dims()));
            let mut grads = params.iter().map(grad).collect();
            heads.screen(&mut grads).unwrap();
            let old = heads.before(&params).unwrap();
            adam.step(&params, grads, Update { rate: 0.01, scale: 1.0 }).unwrap();
            heads.hold_back(&params, &old).unwrap();
        }
        [before, values()]
    }

    #[test]
    fn kept_heads_keep_their_bits_and_soft_ones_go_their_share() {
        let [start, free] = trained(None, SoftOn::Step);
        let [_, masked] = trained(Some(&mask()), SoftOn::Step);
        let [_, wrong] = trained(Some(&mask()), SoftOn::Gradient);
        for name in [QUERY, OUTPUT, BIAS] {
            let width = if name == BIAS { 1 } else { 16 };
            for at in 0..start[name].len() {
                let (p, way) = (start[name][at], free[name][at] - start[name][at]);
                let off = |values: &BTreeMap<String, Vec<f32>>, share: f32| {
                    (values[name][at] - p - share * way).abs()
                };
                match head(name, [at / width, at % width]) {
                    1 => assert_eq!(masked[name][at].to_bits(), free[name][at].to_bits(), "{name} {at}"),
                    2 => {
                        // Weight decay depends on where the number is, and Adam's epsilon on the gradient: not exact.
                        assert!(off(&masked, 0.25) < 1e-4, "{name} {at}: {}", off(&masked, 0.25));
                        assert!(off(&wrong, 1.0) < 1e-4, "{name} {at}: {}", off(&wrong, 1.0));
                    }
                    _ => assert!([&masked, &wrong].iter().all(|v| v[name][at].to_bits() == p.to_bits())),
                }
            }
        }
        let name = "encoder.layer.1.attention.self.key.weight";
        assert_eq!(start[name], masked[name]);
        let shared = "encoder.layer.0.attention.output.dense.bias";
        assert_eq!(free[shared], masked[shared]);
        assert!(start[shared] != masked[shared]);
    }

    #[test]
    fn frozen_heads_are_listed_and_their_pieces_are_theirs() {
        let heads = HeadMask::new(Some(&mask()), SoftOn::Step);
        assert_eq!(heads.frozen().count(), 7);
        assert!(heads.frozen().all(|name| name.starts_with("encoder.layer.1.")));
        let partly = heads.partly_frozen();
        assert_eq!((partly.len(), &partly[QUERY]), (7, &vec![0, 3]));
        let values: Vec<f32> = (0..256_u16).map(f32::from).collect();
        let sum = |name: &str| heads.pieces(name, &[16, 16], 1, &values).concat().iter().sum::<f32>();
        assert_eq!(sum(QUERY), (64..128_u16).map(f32::from).sum::<f32>());
        assert_eq!(sum(OUTPUT), (0..256_u16).filter(|i| i % 16 / 4 == 1).map(f32::from).sum::<f32>());
        assert!(heads.pieces("pooler.dense.bias", &[16], 0, &values).is_empty());
        let none = HeadMask::new(None, SoftOn::Step);
        assert!(none.frozen().next().is_none() && none.partly_frozen().is_empty());
    }

    #[test]
    fn composed_form_agrees() {
        let shares = [0.0, 1.0, 0.25, 0.5];
        for axis in [Axis::Rows, Axis::Columns] {
            let part = Part { axis, keep_h: vec![0.0; 4] };
            let run = |dtype| {
                let [a, b] = [1, 2].map(|seed| randn(seed, &[8, 8]).to_dtype(dtype).unwrap());
                [part.scaled(&a, &shares).unwrap(), part.between([&a, &b], &shares).unwrap()]
            };
            for (a, b) in run(DType::F32).iter().zip(run(DType::F64)) {
                assert!(crate::nn::check::distance(a, &b) < 1e-6);
            }
        }
    }
}
