//! Softmax over the last axis with its gradient.

use candle_core::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor};

use super::form::{fused, in_single};
use super::host::{Host, fill_rows, read};
use super::math::{exp, sum, sum2, top};

/// `exp(x) / sum exp(x)` along the last axis.
///
/// # Errors
/// When the tensor has no axis.
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    in_single(x, |x| if fused(x) { x.contiguous()?.apply_op1(Softmax) } else { composed(x) })
}

fn composed(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    e.broadcast_div(&e.sum_keepdim(D::Minus1)?)
}

struct Softmax;

/// Turns one row of scores into probabilities.
#[inline(always)]
pub(crate) fn softmax_row(row: &mut [f32]) {
    // exp(x - top) / sum exp(x - top) is the same quotient for any top; with the largest score no exponential is above 1, and one is 1: nothing
    // overflows, and the sum is never 0.
    let top = top(row);
    for x in &mut *row {
        *x = exp(*x - top);
    }
    let inverse = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= inverse);
}

/// The same of rows of `t` scores each.
#[inline(always)]
pub(crate) fn softmax_rows(rows: &mut [f32], t: usize) {
    for row in rows.chunks_exact_mut(t) {
        softmax_row(row);
    }
}

/// Turns the gradients of rows of `t` probabilities into those of the scores behind them, times `scale`.
#[inline(always)]
pub(crate) fn gradient_of_rows(probs: &[f32], gradients: &mut [f32], t: usize, scale: f32) {
    for (p, g) in probs.chunks_exact(t).zip(gradients.chunks_exact_mut(t)) {
        // dp_j / dx_i = p_j ([i = j] - p_i), so sum_j g_j dp_j / dx_i = p_i (g_i - sum_j p_j g_j).
        let inner = sum2(p, g, |p, g| p * g);
        g.iter_mut().zip(p).for_each(|(g, p)| *g = p * (*g - inner) * scale);
    }
}

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let mut y = read(x, layout)?.to_vec();
        let Some(&width) = layout.dims().last() else { candle_core::bail!("softmax of a single number") };
        fill_rows!(&mut y, width, |_, block| softmax_rows(block, width));
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, arg: &Tensor, res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        let width = arg.dim(D::Minus1)?;
        let (y, g) = (Host::of(res)?, Host::of(&grad)?);
        let (y, g) = (y.get()?, g.get()?);
        let mut dx = g.to_vec();
        fill_rows!(&mut dx, width, |first, block| gradient_of_rows(&y[first * width..], block, width, 1.0));
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{distance, forms_agree, gradients, randn};
    use super::*;

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| softmax(&a[0]), &[(randn(1, &[4, 70]) * 3.0).unwrap()], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| softmax(&a[0]), &[randn(1, &[3, 2, 17])], 1e-2, 5e-3);
        let exact = randn(1, &[3, 5]).to_dtype(DType::F64).unwrap();
        gradients(|a| softmax(&a[0]), &[exact], 1e-5, 1e-7);
    }

    #[test]
    fn values_are_right_for_large_and_masked_scores() {
        let x = (randn(2, &[70, 33]) * 50.0).unwrap();
        assert!(distance(&softmax(&x).unwrap(), &softmax(&x.to_dtype(DType::F64).unwrap()).unwrap()) < 1e-5);
        let masked = Tensor::new(&[[1.0_f32, -1e9, 1.0, f32::NEG_INFINITY]], x.device()).unwrap();
        assert_eq!(softmax(&masked).unwrap().to_vec2::<f32>().unwrap(), [[0.5, 0.0, 0.5, 0.0]]);
    }
}
