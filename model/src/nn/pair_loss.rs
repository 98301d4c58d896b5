//! Losses over the cosines of all pairs of rows, of which some match and some do not: metric learning.

use base::setting::InvalidSetting;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use serde::{Deserialize, Serialize};

use super::form::fused;
use super::host::{Host, read};
use super::math::single;
use crate::range;

/// How pairs that match are drawn together, and others pushed apart. `s` is a pair's cosine, P the pairs of an anchor that match, N those that do not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PairLoss {
    /// Multi-similarity (Wang et al. 2019): the mean over anchors of `log(1 + sum_P exp(-alpha (s - base))) / alpha + log(1 + sum_N exp(beta (s - base))) / beta`.
    MultiSimilarity {
        /// How fast what a matching pair counts falls with its cosine.
        ///
        /// Source: SapBERT, `src/metric_learning.py`: 1.
        #[serde(default = "one")]
        alpha: f64,
        /// How fast what another pair counts grows with its cosine.
        ///
        /// Source: SapBERT, `src/metric_learning.py`: 60.
        #[serde(default = "sixty")]
        beta: f64,
        /// The cosine about which they do, from -1 to 1.
        ///
        /// Source: SapBERT, `src/metric_learning.py`: 0.5.
        #[serde(default = "half")]
        base: f64,
    },
    /// InfoNCE (van den Oord et al. 2018): the mean over matching pairs of `-log(exp(s / temperature) / (exp(s / temperature) + sum_N exp(s_n / temperature)))`.
    /// Of hard pairs each counts once, where pytorch-metric-learning counts it once for each triplet that it is in.
    InfoNce {
        /// What cosines are divided by.
        ///
        /// Source: SapBERT, `src/metric_learning.py`: 0.07.
        #[serde(default = "temperature")]
        temperature: f64,
    },
}

fn one() -> f64 {
    1.0
}

fn sixty() -> f64 {
    60.0
}

fn half() -> f64 {
    0.5
}

fn temperature() -> f64 {
    0.07
}

impl Default for PairLoss {
    fn default() -> Self {
        Self::MultiSimilarity { alpha: one(), beta: sixty(), base: half() }
    }
}

/// What two rows are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    /// Nothing is asked of them.
    None,
    /// They match.
    Positive,
    /// They do not.
    Negative,
}

impl PairLoss {
    /// Whether its settings are in their ranges.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> std::result::Result<(), InvalidSetting> {
        match *self {
            PairLoss::MultiSimilarity { alpha, beta, base } => range::check(&[
                ("multi_similarity.alpha", alpha, range::POSITIVE_WEIGHT),
                ("multi_similarity.beta", beta, range::POSITIVE_WEIGHT),
                ("multi_similarity.base", base, range::COSINE),
            ]),
            PairLoss::InfoNce { temperature } => {
                range::check(&[("info_nce.temperature", temperature, range::TEMPERATURE)])
            }
        }
    }

    /// The loss of one anchor over its cosines, and its derivatives; `pairs` is how many match of all anchors.
    fn of_anchor(&self, cosines: &[f64], kept: &[Pair], pairs: usize) -> (f64, Vec<f64>) {
        let mut gradient = vec![0.0; cosines.len()];
        let of = |wanted: Pair| (0..kept.len()).filter(move |at| kept[*at] == wanted);
        match *self {
            PairLoss::MultiSimilarity { alpha, beta, base } => {
                let mut loss = 0.0;
                for (wanted, pace) in [(Pair::Positive, -alpha), (Pair::Negative, beta)] {
                    let exponent = |at: usize| pace * (cosines[at] - base);
                    let top = of(wanted).map(exponent).fold(0.0, f64::max);
                    let sum = of(wanted).map(|at| (exponent(at) - top).exp()).sum::<f64>() + (-top).exp();
                    loss += (top + sum.ln()) / pace.abs();
                    of(wanted).for_each(|at| gradient[at] = pace.signum() * (exponent(at) - top).exp() / sum);
                }
                let mean = 1.0 / cosines.len() as f64;
                gradient.iter_mut().for_each(|of| *of *= mean);
                (loss * mean, gradient)
            }
            PairLoss::InfoNce { temperature } => {
                let (mut loss, mean) = (0.0, 1.0 / pairs.max(1) as f64);
                for positive in of(Pair::Positive) {
                    let logit = |at: usize| cosines[at] / temperature;
                    let all = || of(Pair::Negative).chain([positive]);
                    let top = all().map(logit).fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = all().map(|at| (logit(at) - top).exp()).sum();
                    loss += mean * (top + sum.ln() - logit(positive));
                    for at in all() {
                        gradient[at] += mean * (logit(at) - top).exp() / sum / temperature;
                    }
                    gradient[positive] -= mean / temperature;
                }
                (loss, gradient)
            }
        }
    }
}

/// The loss of the cosines `[m, m]` of rows, no axes; `kept` says of each pair what it is, row by row.
///
/// # Errors
/// When there is not one for each cosine.
pub(crate) fn pair_loss(cosines_mm: &Tensor, kept: Vec<Pair>, loss: PairLoss) -> Result<Tensor> {
    let (rows, columns) = cosines_mm.dims2()?;
    if rows != columns || kept.len() != rows * columns || rows == 0 {
        candle_core::bail!("cosines [{rows}, {columns}], but {} pairs", kept.len());
    }
    let pairs = kept.iter().filter(|of| **of == Pair::Positive).count();
    let op = OfPairs { kept, loss, pairs, rows };
    if fused(cosines_mm) { cosines_mm.contiguous()?.apply_op1(op) } else { op.composed(cosines_mm) }
}

struct OfPairs {
    kept: Vec<Pair>,
    loss: PairLoss,
    pairs: usize,
    rows: usize,
}

impl OfPairs {
    /// Hands on each anchor's part of the loss and its derivatives.
    fn each(&self, cosines: &[f32], mut each: impl FnMut(f64, &[f64])) {
        for (cosines, kept) in cosines.chunks(self.rows).zip(self.kept.chunks(self.rows)) {
            let cosines: Vec<f64> = cosines.iter().map(|cosine| f64::from(*cosine)).collect();
            let (loss, gradient) = self.loss.of_anchor(&cosines, kept, self.pairs);
            each(loss, &gradient);
        }
    }

    /// As candle differentiates it.
    fn composed(&self, cosines_mm: &Tensor) -> Result<Tensor> {
        let mask = |wanted: Pair| {
            let of = self.kept.iter().map(|pair| f64::from(u8::from(*pair == wanted)));
            let mask = Tensor::from_vec(of.collect::<Vec<f64>>(), cosines_mm.shape(), cosines_mm.device())?;
            mask.to_dtype(cosines_mm.dtype())
        };
        let (positive_mm, negative_mm) = (mask(Pair::Positive)?, mask(Pair::Negative)?);
        match self.loss {
            PairLoss::MultiSimilarity { alpha, beta, base } => {
                let side = |mask_mm: &Tensor, pace: f64| {
                    let exponent_mm = ((cosines_mm - base)? * pace)?;
                    // What counts nothing must not be infinite, or its gradient is no number.
                    let exponent_mm = (exponent_mm * mask_mm)?;
                    let top_m1 = exponent_mm.max_keepdim(1)?.relu()?.detach();
                    let shares_mm = (exponent_mm.broadcast_sub(&top_m1)?.exp()? * mask_mm)?;
                    let sum_m1 = (shares_mm.sum_keepdim(1)? + top_m1.neg()?.exp()?)?;
                    (top_m1 + sum_m1.log()?)? / pace.abs()
                };
                (side(&positive_mm, -alpha)? + side(&negative_mm, beta)?)?.mean_all()
            }
            PairLoss::InfoNce { temperature } => {
                let logits_mm = (cosines_mm / temperature)?;
                // Cosines are at most 1.
                let shares_mm = (&logits_mm - 1.0 / temperature)?.exp()?;
                let others_m1 = (&shares_mm * &negative_mm)?.sum_keepdim(1)?;
                let whole_mm = shares_mm.broadcast_add(&others_m1)?;
                let losses_mm = ((whole_mm.log()? + 1.0 / temperature)? - logits_mm)?;
                (losses_mm * positive_mm)?.sum_all()? / self.pairs.max(1) as f64
            }
        }
    }
}

impl CustomOp1 for OfPairs {
    fn name(&self) -> &'static str {
        "pair-loss"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let mut total = 0.0;
        self.each(x, |loss, _| total += loss);
        Ok((CpuStorage::F32(vec![single(total)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let share = f64::from(grad.to_scalar::<f32>()?);
        let host = Host::of(arg)?;
        let mut gradient = Vec::with_capacity(self.kept.len());
        self.each(host.get()?, |_, of_anchor| gradient.extend(of_anchor.iter().map(|of| single(of * share))));
        Ok(Some(Tensor::from_vec(gradient, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::super::check::{forms_agree, gradients, numbers, randn};
    use super::*;

    const LOSSES: [PairLoss; 3] = [
        PairLoss::MultiSimilarity { alpha: 1.0, beta: 60.0, base: 0.5 },
        PairLoss::MultiSimilarity { alpha: 2.0, beta: 5.0, base: -0.2 },
        PairLoss::InfoNce { temperature: 0.07 },
    ];

    /// Rows 0 and 2, 1 and 4 match; nothing is asked of 3 and 4, nor of 3 and anything as an anchor.
    fn kept() -> Vec<Pair> {
        let of = |at: usize| match (at / 5, at % 5) {
            (a, b) if a == b => Pair::None,
            (3, _) | (4, 3) => Pair::None,
            (0, 2) | (2, 0) | (1, 4) | (4, 1) => Pair::Positive,
            _ => Pair::Negative,
        };
        (0..25).map(of).collect()
    }

    fn cosines() -> Tensor {
        randn(3, &[5, 5]).tanh().unwrap()
    }

    #[test]
    fn forms_agree_and_gradients_are_the_numerical_ones() {
        // What roundings to 8 digits do to cosines is not made much more by these.
        for loss in [LOSSES[1], PairLoss::InfoNce { temperature: 0.5 }] {
            forms_agree(|a| pair_loss(&a[0], kept(), loss), &[cosines()], 1e-5);
        }
        for loss in LOSSES {
            let exact = cosines().to_dtype(DType::F64).unwrap();
            gradients(|a| pair_loss(&a[0], kept(), loss), &[exact], 1e-6, 1e-5);
        }
    }

    #[test]
    fn they_are_what_the_papers_write() {
        let cosines: Vec<f64> = numbers(&cosines());
        let of = |a: usize, wanted: Pair| {
            let kept = kept();
            let row = (0..5).filter(|b| kept[a * 5 + b] == wanted).collect::<Vec<_>>();
            row.into_iter().map(|b| cosines[a * 5 + b]).collect::<Vec<f64>>()
        };
        let multi = (0..5).map(|a| {
            let (positive, negative) = (of(a, Pair::Positive), of(a, Pair::Negative));
            let p: f64 = positive.iter().map(|s| (-2.0 * (s + 0.2)).exp()).sum();
            let n: f64 = negative.iter().map(|s| (5.0 * (s + 0.2)).exp()).sum();
            (1.0 + p).ln() / 2.0 + (1.0 + n).ln() / 5.0
        });
        let found = |loss| numbers(&pair_loss(&self::cosines(), kept(), loss).unwrap())[0];
        assert!((found(LOSSES[1]) - multi.sum::<f64>() / 5.0).abs() < 1e-6);
        let nce = (0..5).flat_map(|a| {
            let n: f64 = of(a, Pair::Negative).iter().map(|s| (s / 0.07).exp()).sum();
            of(a, Pair::Positive).into_iter().map(move |s| -((s / 0.07).exp() / ((s / 0.07).exp() + n)).ln())
        });
        let nce: Vec<f64> = nce.collect();
        let mean = nce.iter().sum::<f64>() / nce.len() as f64;
        assert!((found(LOSSES[2]) - mean).abs() < 1e-5 * mean, "{} {mean}", found(LOSSES[2]));
    }

    #[test]
    fn without_pairs_there_is_no_loss_and_large_settings_stay_numbers() {
        for loss in LOSSES {
            let none = pair_loss(&cosines(), vec![Pair::None; 25], loss).unwrap();
            assert_eq!(numbers(&none), [0.0]);
        }
        let loss = PairLoss::MultiSimilarity { alpha: 1e6, beta: 1e6, base: 0.0 };
        for dtype in [DType::F32, DType::F64] {
            let x = candle_core::Var::from_tensor(&cosines().to_dtype(dtype).unwrap()).unwrap();
            let value = pair_loss(&x, kept(), loss).unwrap();
            let gradient = value.backward().unwrap().get(&x).unwrap().clone();
            assert!(numbers(&value).iter().chain(&numbers(&gradient)).all(|number| number.is_finite()));
        }
        let wide = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap();
        assert!(pair_loss(&wide, vec![Pair::None; 6], loss).is_err());
        assert!(pair_loss(&cosines(), vec![], loss).is_err());
    }
}
