//! Global-norm clipping.

use std::collections::BTreeMap;

use candle_core::{Result, Tensor};
use rayon::prelude::{ParallelIterator, ParallelSlice};

use crate::nn::{Host, at_least_single, fused, scalars, wide};

/// Numbers whose squares one thread adds at a time; blocks are added in order.
const BLOCK: usize = 1 << 13;

/// The Euclidean norm of all gradients together. A device is waited for once, however many there are.
///
/// # Errors
/// When the tensor library fails.
pub fn global_norm(grads: &BTreeMap<String, Tensor>) -> Result<f64> {
    let (here, elsewhere): (Vec<&Tensor>, Vec<&Tensor>) = grads.values().partition(|grad| fused(grad));
    let here = here.into_iter().map(squares).collect::<Result<Vec<f64>>>()?;
    let sums = elsewhere.into_iter().map(|grad| at_least_single(grad)?.sqr()?.sum_all());
    let elsewhere = scalars::read(&sums.collect::<Result<Vec<_>>>()?.iter().collect::<Vec<_>>())?;
    Ok(here.iter().chain(&elsewhere).sum::<f64>().sqrt())
}

/// The factor that brings gradients of this norm down to `limit` (`limit / (norm + 1e-6)` as in PyTorch), 1 below it.
#[must_use]
pub fn factor(norm: f64, limit: f64) -> f64 {
    if norm > limit { limit / (norm + 1e-6) } else { 1.0 }
}

fn squares(grad: &Tensor) -> Result<f64> {
    let grad = grad.contiguous()?;
    let host = Host::of(&grad)?;
    let block = |values: &[f32]| {
        wide!({
            let mut lanes = [0.0_f64; 8];
            let (blocks, rest) = values.as_chunks::<8>();
            for block in blocks {
                lanes.iter_mut().zip(block).for_each(|(lane, x)| *lane += f64::from(*x) * f64::from(*x));
            }
            lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane += f64::from(*x) * f64::from(*x));
            lanes.iter().sum::<f64>()
        })
    };
    let sums: Vec<f64> = host.get()?.par_chunks(BLOCK).map(block).collect();
    Ok(sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{numbers, randn};

    #[test]
    fn norm_is_over_all_gradients_and_limits_scale() {
        let grads: BTreeMap<String, Tensor> =
            [("a", randn(1, &[101, 99])), ("b", randn(2, &[7]))].map(|(n, t)| (n.to_owned(), t)).into();
        let exact = grads.values().flat_map(numbers).map(|x| x * x).sum::<f64>().sqrt();
        let norm = global_norm(&grads).unwrap();
        assert!((norm / exact - 1.0).abs() < 1e-12, "{norm} {exact}");
        let mut mixed = grads.clone();
        mixed.insert("b".to_owned(), grads["b"].to_dtype(candle_core::DType::F64).unwrap());
        assert!((global_norm(&mixed).unwrap() / exact - 1.0).abs() < 1e-6);
        assert_eq!(factor(0.5, 1.0), 1.0);
        assert_eq!(factor(4.0, 1.0), 1.0 / (4.0 + 1e-6));
    }
}
