//! Binary cross entropy of logits, stable however large they are, averaged over all rows and classes.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator, ParallelSlice};

use super::form::{at_least_single, fused};
use super::host::{Host, fill_rows, read};
use super::math::{exp, single};

/// Mean over all `m * c` numbers of `-w y log s(x) - (1 - y) log(1 - s(x))`, s the logistic function, as a tensor without axes. `sets`
/// has, for each row, the classes of which y is 1, rising; `positive_c` the weight w of each class, 1 without it.
///
/// # Errors
/// When there are not as many sets as rows or not as many weights as classes, a set does not rise or has a class that is not below `c`, or
/// there is no row.
pub fn binary_cross_entropy(
    logits_mc: &Tensor,
    sets: &[Vec<u32>],
    positive_c: Option<&[f64]>,
) -> Result<Tensor> {
    let (rows, width) = logits_mc.dims2()?;
    if rows != sets.len() {
        candle_core::bail!("{rows} rows of logits but {} sets of classes", sets.len());
    }
    if rows * width == 0 {
        candle_core::bail!("a loss over no numbers: there is no row, or no class");
    }
    if let Some(wrong) = sets.iter().flatten().find(|&&class| class as usize >= width) {
        candle_core::bail!("class {wrong} is not below {width}, the width of the output");
    }
    if let Some(set) = sets.iter().find(|set| !set.is_sorted_by(|a, b| a < b)) {
        candle_core::bail!("the classes {set:?} of a row do not rise");
    }
    if let Some(weights) = positive_c.filter(|weights| weights.len() != width) {
        candle_core::bail!("{} weights of positives, but the output has {width} classes", weights.len());
    }
    let op = BinaryCrossEntropy { sets: sets.to_vec(), positive_c: positive_c.map(<[f64]>::to_vec), width };
    let logits_mc = at_least_single(logits_mc)?;
    if fused(&logits_mc) { logits_mc.contiguous()?.apply_op1(op) } else { op.composed(&logits_mc) }
}

struct BinaryCrossEntropy {
    sets: Vec<Vec<u32>>,
    positive_c: Option<Vec<f64>>,
    width: usize,
}

impl BinaryCrossEntropy {
    fn weight(&self, class: u32) -> f64 {
        self.positive_c.as_ref().map_or(1.0, |weights| weights[class as usize])
    }

    /// `softplus(x) (1 - y + w y) - w y x`, with `softplus(x) = max(x, 0) + log(1 + e^-|x|)`.
    fn composed(&self, logits_mc: &Tensor) -> Result<Tensor> {
        let (rows, device, dtype) = (self.sets.len(), logits_mc.device(), logits_mc.dtype());
        let mut pull = vec![0.0; rows * self.width];
        let mut push = vec![1.0; rows * self.width];
        for (row, set) in self.sets.iter().enumerate() {
            for &class in set {
                let cell = row * self.width + class as usize;
                (pull[cell], push[cell]) = (self.weight(class), self.weight(class));
            }
        }
        let spread = |values: Vec<f64>| -> Result<Tensor> {
            Tensor::from_vec(values, (rows, self.width), device)?.to_dtype(dtype)
        };
        let softplus_mc = (logits_mc.relu()? + (logits_mc.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
        ((softplus_mc * spread(push)?)? - (logits_mc * spread(pull)?)?)?.mean_all()
    }
}

/// log(1 + e^x).
fn softplus(x: f32) -> f64 {
    let x = f64::from(x);
    // The larger of a NaN and 0 would be 0.
    if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }
}

/// 1 / (1 + e^-x).
#[inline(always)]
fn logistic(x: f32) -> f32 {
    let small = exp(-x.abs());
    let share = 1.0 / (1.0 + small);
    if x < 0.0 { small * share } else { share }
}

impl CustomOp1 for BinaryCrossEntropy {
    fn name(&self) -> &'static str {
        "binary-cross-entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let losses: Vec<f64> = x
            .par_chunks(self.width)
            .zip(self.sets.par_iter())
            .map(|(row, set)| {
                let absent: f64 = row.iter().map(|&x| softplus(x)).sum();
                let present = set.iter().map(|&class| {
                    let x = row[class as usize];
                    self.weight(class) * softplus(-x) - softplus(x)
                });
                absent + present.sum::<f64>()
            })
            .collect();
        let mean = losses.iter().sum::<f64>() / x.len() as f64;
        Ok((CpuStorage::F32(vec![single(mean)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        // A cell whose class does not hold loses log(1 + e^x), with the slope s(x); one whose class holds loses w log(1 + e^-x), with the slope
        // -w s(-x), s being the logistic function.
        let host = Host::of(arg)?;
        let x = host.get()?;
        let scale = single(f64::from(grad.to_scalar::<f32>()?) / x.len() as f64);
        let mut dx = vec![0.0; x.len()];
        fill_rows!(&mut dx, self.width, |first, block| {
            let rows = x[first * self.width..].chunks_exact(self.width).zip(&self.sets[first..]);
            for (dx, (x, set)) in block.chunks_exact_mut(self.width).zip(rows) {
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx = scale * logistic(*x);
                }
                for &class in set {
                    // The logistic function of -x, not 1 minus that of x: that would lose all digits of a large x.
                    dx[class as usize] = -scale * single(self.weight(class)) * logistic(-x[class as usize]);
                }
            }
        });
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::super::check::{distance, forms_agree, gradients, numbers, randn};
    use super::*;

    fn sets() -> Vec<Vec<u32>> {
        vec![vec![0, 6], vec![], vec![1, 2, 3, 4], vec![5]]
    }

    const POSITIVE: [f64; 7] = [1.0, 2.5, 0.5, 30.0, 4.0, 1.0, 0.1];

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| binary_cross_entropy(&a[0], &sets(), Some(&POSITIVE)), &[randn(1, &[4, 7])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(1, &[4, 7]);
        for positive in [None, Some(&POSITIVE[..])] {
            let f = |a: &[Tensor]| binary_cross_entropy(&a[0], &sets(), positive);
            gradients(f, std::slice::from_ref(&x), 1e-2, 5e-3);
            gradients(f, &[x.to_dtype(DType::F64).unwrap()], 1e-5, 1e-7);
        }
    }

    #[test]
    fn it_is_the_textbook_mean_and_the_composed_form_agrees() {
        let x = (randn(2, &[4, 7]) * 3.0).unwrap();
        let mut exact = 0.0;
        for (row, (x, set)) in numbers(&x).chunks(7).zip(sets()).enumerate() {
            for (class, x) in x.iter().enumerate() {
                let share = 1.0 / (1.0 + (-x).exp());
                let held = set.contains(&u32::try_from(class).unwrap());
                exact -= if held { POSITIVE[class] * share.ln() } else { (1.0 - share).ln() };
                assert!(row < 4);
            }
        }
        let found = binary_cross_entropy(&x, &sets(), Some(&POSITIVE)).unwrap();
        assert!((numbers(&found)[0] - exact / 28.0).abs() < 1e-6);
        let composed =
            binary_cross_entropy(&x.to_dtype(DType::F64).unwrap(), &sets(), Some(&POSITIVE)).unwrap();
        assert!(distance(&found.to_dtype(DType::F64).unwrap(), &composed) < 1e-6);
    }

    #[test]
    fn large_logits_give_finite_losses_and_gradients() {
        let x = Var::new(&[[1e4_f32, -1e4, 1e4, -1e4]], &Device::Cpu).unwrap();
        let loss = binary_cross_entropy(&x, &[vec![0, 3]], None).unwrap();
        assert_eq!(numbers(&loss), [5e3]);
        let grads = loss.backward().unwrap();
        assert_eq!(numbers(grads.get(&x).unwrap()), [0.0, 0.0, 0.25, -0.25]);
        let nan = Tensor::new(&[[f32::NAN]], &Device::Cpu).unwrap();
        assert!(numbers(&binary_cross_entropy(&nan, &[vec![0]], None).unwrap())[0].is_nan());
    }

    #[test]
    fn bad_sets_and_weights_are_errors() {
        let x = randn(1, &[2, 3]);
        let text = |sets: &[Vec<u32>], weights: Option<&[f64]>| {
            binary_cross_entropy(&x, sets, weights).unwrap_err().to_string()
        };
        assert!(text(&[vec![]], None).contains("2 rows of logits but 1 sets"));
        assert!(text(&[vec![3], vec![]], None).contains("class 3 is not below 3"));
        assert!(text(&[vec![1, 1], vec![]], None).contains("[1, 1] of a row do not rise"));
        assert!(text(&[vec![], vec![]], Some(&[1.0])).contains("1 weights of positives"));
        let none = Tensor::zeros((0, 3), DType::F32, &Device::Cpu).unwrap();
        assert!(binary_cross_entropy(&none, &[], None).unwrap_err().to_string().contains("no numbers"));
    }
}
