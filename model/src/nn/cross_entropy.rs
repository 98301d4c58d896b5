//! Softmax cross entropy, averaged over the rows that have a class, each row or each class with its weight.

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator, ParallelSlice};

use super::form::{at_least_single, fused};
use super::host::{Host, fill_rows, read, wide};
use super::math::{exp, single, sum, top};

/// Mean of `-log softmax(logits_mc)[class]` over the rows whose class is not `None`, as a tensor without axes; in f32 for logits
/// of fewer digits.
///
/// # Errors
/// When there are not as many classes as rows, a class is not below `c`, or no row has a class.
pub fn cross_entropy(logits_mc: &Tensor, classes: &[Option<u32>]) -> Result<Tensor> {
    let weight = |class: &Option<u32>| if class.is_some() { 1.0 } else { 0.0 };
    CrossEntropy { classes: classes.to_vec(), weights: classes.iter().map(weight).collect() }.of(logits_mc)
}

/// The mean of `-log softmax(logits_mc)[class]` in which a row weighs what its class does: `sum w_y l / sum w_y` over the rows, as a tensor
/// without axes.
///
/// # Errors
/// When there are not as many classes as rows, or not as many weights as classes; when a class is not below `c`, or the weights of all rows
/// together are not above 0.
pub fn weighted_cross_entropy(logits_mc: &Tensor, classes: &[u32], weights_c: &[f64]) -> Result<Tensor> {
    let width = logits_mc.dim(D::Minus1)?;
    if weights_c.len() != width {
        candle_core::bail!("{} class weights, but the output has {width} classes", weights_c.len());
    }
    let weight = |class: &u32| weights_c.get(*class as usize).copied().unwrap_or(1.0);
    let weights = classes.iter().map(weight).collect();
    CrossEntropy { classes: classes.iter().copied().map(Some).collect(), weights }.of(logits_mc)
}

/// The weighted mean over rows; rows without a class weigh 0.
struct CrossEntropy {
    classes: Vec<Option<u32>>,
    weights: Vec<f64>,
}

impl CrossEntropy {
    fn of(self, logits_mc: &Tensor) -> Result<Tensor> {
        let (rows, width) = logits_mc.dims2()?;
        if rows != self.classes.len() {
            candle_core::bail!("{rows} rows of logits but {} classes", self.classes.len());
        }
        if let Some(wrong) = self.classes.iter().flatten().find(|&&c| c as usize >= width) {
            candle_core::bail!("class {wrong} is not below {width}, the width of the output");
        }
        let total = self.total();
        if !(total > 0.0 && total.is_finite()) {
            candle_core::bail!("a loss over no rows: every class is ignored, or of weight 0");
        }
        let logits_mc = at_least_single(logits_mc)?;
        if fused(&logits_mc) { logits_mc.contiguous()?.apply_op1(self) } else { self.composed(&logits_mc) }
    }

    /// The weights of all rows together.
    fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    fn composed(&self, logits_mc: &Tensor) -> Result<Tensor> {
        let (rows, total) = (self.classes.len(), self.total());
        let top_m1 = logits_mc.max_keepdim(D::Minus1)?.detach();
        let shifted_mc = logits_mc.broadcast_sub(&top_m1)?;
        let log_sum_m1 = shifted_mc.exp()?.sum_keepdim(D::Minus1)?.log()?;
        let index: Vec<u32> = self.classes.iter().map(|c| c.unwrap_or(0)).collect();
        let weight: Vec<f64> = self.weights.iter().map(|weight| weight / total).collect();
        let index_m1 = Tensor::from_vec(index, (rows, 1), logits_mc.device())?;
        let weight_m1 =
            Tensor::from_vec(weight, (rows, 1), logits_mc.device())?.to_dtype(logits_mc.dtype())?;
        ((log_sum_m1 - shifted_mc.gather(&index_m1, 1)?)? * weight_m1)?.sum_all()
    }
}

/// The cross entropy of one row: `-log softmax(x)[class]`.
pub(super) fn of_row(x: &[f32], class: usize) -> f64 {
    let (top, total) = wide!({
        let top = top(x);
        (top, sum(x, |x| exp(x - top)))
    });
    f64::from(total).ln() - (f64::from(x[class]) - f64::from(top))
}

/// Fills `dx` with its gradient times `scale`. It is log sum_c exp(x_c) - x_y, so that its derivative by x_c is softmax(x)_c - [c = y].
#[inline(always)]
pub(super) fn gradient_of_row(x: &[f32], class: usize, scale: f32, dx: &mut [f32]) {
    let top = top(x);
    for (dx, x) in dx.iter_mut().zip(x) {
        *dx = exp(x - top);
    }
    let inverse = scale / sum(dx, |e| e);
    dx.iter_mut().for_each(|dx| *dx *= inverse);
    dx[class] -= scale;
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let losses: Vec<f64> = x
            .par_chunks(x.len() / self.classes.len())
            .zip(self.classes.par_iter().zip(&self.weights))
            .map(|(row, (class, weight))| {
                let Some(class) = class else { return 0.0 };
                weight * of_row(row, *class as usize)
            })
            .collect();
        // In f64 and in the order of the rows, whichever thread computed them.
        let mean = losses.iter().sum::<f64>() / self.total();
        Ok((CpuStorage::F32(vec![single(mean)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        // The mean multiplies a row by its weight over that of all. A row without a class has no loss and keeps its zeros.
        let scale = grad.to_scalar::<f32>()? / single(self.total());
        let width = arg.dim(D::Minus1)?;
        let host = Host::of(arg)?;
        let x = host.get()?;
        let mut dx = vec![0.0; x.len()];
        fill_rows!(&mut dx, width, |first, block| {
            let targets = self.classes[first..].iter().zip(&self.weights[first..]);
            let rows = x[first * width..].chunks_exact(width).zip(targets);
            for (dx, (x, (class, weight))) in block.chunks_exact_mut(width).zip(rows) {
                let Some(class) = class else { continue };
                let scale = single(*weight) * scale;
                gradient_of_row(x, *class as usize, scale, dx);
            }
        });
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{distance, forms_agree, gradients, numbers, randn};
    use super::*;

    const CLASSES: [Option<u32>; 5] = [Some(3), None, Some(0), Some(20), None];

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| cross_entropy(&a[0], &CLASSES), &[randn(1, &[5, 21])], 1e-5);
        let weights: Vec<f64> = (1..22).map(f64::from).collect();
        let weighted = |a: &[Tensor]| weighted_cross_entropy(&a[0], &[3, 0, 20, 3, 7], &weights);
        forms_agree(weighted, &[randn(2, &[5, 21])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(1, &[5, 21]);
        gradients(|a| cross_entropy(&a[0], &CLASSES), std::slice::from_ref(&x), 1e-2, 5e-3);
        gradients(|a| cross_entropy(&a[0], &CLASSES), &[x.to_dtype(DType::F64).unwrap()], 1e-5, 1e-7);
    }

    #[test]
    fn it_is_the_mean_over_rows_with_a_class() {
        let x = (randn(1, &[5, 21]) * 30.0).unwrap();
        let both = cross_entropy(&x, &CLASSES).unwrap();
        assert!(distance(&both, &cross_entropy(&x.to_dtype(DType::F64).unwrap(), &CLASSES).unwrap()) < 1e-5);
        let kept = x.index_select(&Tensor::new(&[0_u32, 2, 3], x.device()).unwrap(), 0).unwrap();
        let kept = cross_entropy(&kept, &[Some(3), Some(0), Some(20)]).unwrap();
        assert_eq!(both.to_scalar::<f32>().unwrap(), kept.to_scalar::<f32>().unwrap());
    }

    #[test]
    fn classes_weigh_what_they_are_given() {
        let (x, classes) = (randn(4, &[4, 3]), [2, 0, 0, 1]);
        let weights = [0.5, 3.0, 1.5];
        let alone = |row: usize| {
            let row_1c = x.narrow(0, row, 1).unwrap();
            numbers(&cross_entropy(&row_1c, &[Some(classes[row])]).unwrap())[0]
        };
        let exact = (1.5 * alone(0) + 0.5 * alone(1) + 0.5 * alone(2) + 3.0 * alone(3)) / 5.5;
        let found = numbers(&weighted_cross_entropy(&x, &classes, &weights).unwrap())[0];
        assert!((found - exact).abs() < 1e-6, "{found} {exact}");
        let wide = x.to_dtype(DType::F64).unwrap();
        let composed = numbers(&weighted_cross_entropy(&wide, &classes, &weights).unwrap())[0];
        assert!((composed - exact).abs() < 1e-6, "{composed} {exact}");
        gradients(|a| weighted_cross_entropy(&a[0], &classes, &weights), &[x], 1e-2, 5e-3);
        gradients(|a| weighted_cross_entropy(&a[0], &classes, &weights), &[wide], 1e-5, 1e-7);
    }

    #[test]
    fn bad_classes_are_errors() {
        let x = randn(1, &[2, 3]);
        let text = |classes: &[Option<u32>]| cross_entropy(&x, classes).unwrap_err().to_string();
        assert!(text(&[Some(3), None]).contains("class 3 is not below 3"));
        assert!(text(&[None, None]).contains("over no rows"));
        assert!(text(&[None]).contains("2 rows of logits but 1 classes"));
        let text = |classes: &[u32], weights: &[f64]| {
            weighted_cross_entropy(&x, classes, weights).unwrap_err().to_string()
        };
        assert!(text(&[0, 1], &[1.0, 1.0]).contains("2 class weights, but the output has 3 classes"));
        assert!(text(&[0, 3], &[1.0; 3]).contains("class 3 is not below 3"));
        assert!(text(&[0, 0], &[0.0, 1.0, 1.0]).contains("of weight 0"));
    }
}
