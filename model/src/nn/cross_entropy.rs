//! Softmax cross entropy, averaged over the rows that have a class. Knows no task.

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice};

use super::form::{at_least_single, fused};
use super::host::{Host, fill_rows, read, wide};
use super::math::{exp, single, sum, top};

/// Mean of `-log softmax(logits_mc)[class]` over the rows whose class is not `None`, as a tensor without axes; in f32 for logits
/// of fewer digits.
///
/// # Errors
/// When there are not as many classes as rows, a class is not below `c`, or no row has a class.
pub fn cross_entropy(logits_mc: &Tensor, classes: &[Option<u32>]) -> Result<Tensor> {
    let (rows, width) = logits_mc.dims2()?;
    if rows != classes.len() {
        candle_core::bail!("{rows} rows of logits but {} classes", classes.len());
    }
    if let Some(wrong) = classes.iter().flatten().find(|&&c| c as usize >= width) {
        candle_core::bail!("class {wrong} is not below {width}, the width of the output");
    }
    let counted = classes.iter().flatten().count();
    if counted == 0 {
        candle_core::bail!("a loss over no rows: every class is ignored");
    }
    let logits_mc = at_least_single(logits_mc)?;
    if fused(&logits_mc) {
        return logits_mc.contiguous()?.apply_op1(CrossEntropy { classes: classes.to_vec(), counted });
    }
    composed(&logits_mc, classes, counted)
}

fn composed(logits_mc: &Tensor, classes: &[Option<u32>], counted: usize) -> Result<Tensor> {
    let rows = classes.len();
    let top_m1 = logits_mc.max_keepdim(D::Minus1)?.detach();
    let shifted_mc = logits_mc.broadcast_sub(&top_m1)?;
    let log_sum_m1 = shifted_mc.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let index: Vec<u32> = classes.iter().map(|c| c.unwrap_or(0)).collect();
    let weight: Vec<f64> =
        classes.iter().map(|c| if c.is_some() { 1.0 / counted as f64 } else { 0.0 }).collect();
    let index_m1 = Tensor::from_vec(index, (rows, 1), logits_mc.device())?;
    let weight_m1 = Tensor::from_vec(weight, (rows, 1), logits_mc.device())?.to_dtype(logits_mc.dtype())?;
    ((log_sum_m1 - shifted_mc.gather(&index_m1, 1)?)? * weight_m1)?.sum_all()
}

struct CrossEntropy {
    classes: Vec<Option<u32>>,
    counted: usize,
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let losses: Vec<f64> = x
            .par_chunks(x.len() / self.classes.len())
            .zip(&self.classes)
            .map(|(row, class)| {
                let Some(class) = class else { return 0.0 };
                let (top, total) = wide(|| {
                    let top = top(row);
                    (top, sum(row, |x| exp(x - top)))
                });
                f64::from(total).ln() - (f64::from(row[*class as usize]) - f64::from(top))
            })
            .collect();
        let mean = losses.iter().sum::<f64>() / self.counted as f64;
        Ok((CpuStorage::F32(vec![single(mean)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let scale = grad.to_scalar::<f32>()? / self.counted as f32;
        let width = arg.dim(D::Minus1)?;
        let host = Host::of(arg)?;
        let x = host.get()?;
        let mut dx = vec![0.0; x.len()];
        fill_rows(&mut dx, width, |first, block| {
            let rows = x[first * width..].chunks_exact(width).zip(&self.classes[first..]);
            for (dx, (x, class)) in block.chunks_exact_mut(width).zip(rows) {
                let Some(class) = class else { continue };
                let top = top(x);
                dx.iter_mut().zip(x).for_each(|(dx, x)| *dx = exp(x - top));
                let inverse = scale / sum(dx, |e| e);
                dx.iter_mut().for_each(|dx| *dx *= inverse);
                dx[*class as usize] -= scale;
            }
        });
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{distance, forms_agree, gradients, randn};
    use super::*;

    const CLASSES: [Option<u32>; 5] = [Some(3), None, Some(0), Some(20), None];

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| cross_entropy(&a[0], &CLASSES), &[randn(1, &[5, 21])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let x = randn(1, &[5, 21]);
        gradients(|a| cross_entropy(&a[0], &CLASSES), std::slice::from_ref(&x), (1e-2, 5e-3));
        gradients(|a| cross_entropy(&a[0], &CLASSES), &[x.to_dtype(DType::F64).unwrap()], (1e-5, 1e-7));
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
    fn bad_classes_are_errors() {
        let x = randn(1, &[2, 3]);
        let text = |classes: &[Option<u32>]| cross_entropy(&x, classes).unwrap_err().to_string();
        assert!(text(&[Some(3), None]).contains("class 3 is not below 3"));
        assert!(text(&[None, None]).contains("over no rows"));
        assert!(text(&[None]).contains("2 rows of logits but 1 classes"));
    }
}
