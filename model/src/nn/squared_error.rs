//! The mean squared difference between scores and what they should be.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::form::{at_least_single, fused};
use super::host::{Host, read};
use super::math::single;

/// Mean of `(x - y)^2` over the scores, as a tensor without axes.
///
/// # Errors
/// When there are not as many targets as scores, or none.
pub fn squared_error(scores_m: &Tensor, targets: &[f64]) -> Result<Tensor> {
    let scores = scores_m.dims1()?;
    if scores != targets.len() {
        candle_core::bail!("{scores} scores but {} targets", targets.len());
    }
    if targets.is_empty() {
        candle_core::bail!("a loss over no scores");
    }
    let scores_m = at_least_single(scores_m)?;
    if fused(&scores_m) {
        return scores_m.contiguous()?.apply_op1(SquaredError { targets: targets.to_vec() });
    }
    let targets_m = Tensor::new(targets, scores_m.device())?.to_dtype(scores_m.dtype())?;
    (scores_m - targets_m)?.sqr()?.mean_all()
}

/// One number per row: too few for more than one thread.
struct SquaredError {
    targets: Vec<f64>,
}

impl CustomOp1 for SquaredError {
    fn name(&self) -> &'static str {
        "squared-error"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let squares = read(x, layout)?.iter().zip(&self.targets).map(|(x, y)| (f64::from(*x) - y).powi(2));
        let mean = squares.sum::<f64>() / self.targets.len() as f64;
        Ok((CpuStorage::F32(vec![single(mean)]), Shape::from(())))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        // The mean of (x - y)^2 over n targets: 2 (x - y) / n.
        let scale = 2.0 * f64::from(grad.to_scalar::<f32>()?) / self.targets.len() as f64;
        let host = Host::of(arg)?;
        let difference = host.get()?.iter().zip(&self.targets).map(|(x, y)| scale * (f64::from(*x) - y));
        let dx: Vec<f32> = difference.map(single).collect();
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{forms_agree, gradients, numbers, randn};
    use super::*;

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| squared_error(&a[0], &[0.5, -2.0, 5.0, 0.0, 1.0]), &[randn(1, &[5])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones_and_the_value_is_the_mean() {
        let (x, y) = (randn(1, &[5]), [0.5, -2.0, 5.0, 0.0, 1.0]);
        let exact = numbers(&x).iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>() / 5.0;
        for (dtype, nudge, slack) in [(DType::F32, 1e-2, 5e-3), (DType::F64, 1e-5, 1e-7)] {
            let x = x.to_dtype(dtype).unwrap();
            assert!((numbers(&squared_error(&x, &y).unwrap())[0] - exact).abs() < 1e-5);
            gradients(|a| squared_error(&a[0], &y), &[x], nudge, slack);
        }
    }

    #[test]
    fn bad_targets_are_errors() {
        let text = |targets: &[f64], rows: usize| {
            squared_error(&randn(1, &[rows]), targets).unwrap_err().to_string()
        };
        assert!(text(&[1.0], 2).contains("2 scores but 1 targets"));
        assert!(text(&[], 0).contains("over no scores"));
    }
}
