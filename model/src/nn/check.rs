//! Numerical gradients for the tests of this crate. Knows no operation.

use candle_core::{Device, Result, Tensor, Var};

use super::math::single;
use crate::chance::Chance;

/// Reproducible f32 numbers around 0 with deviation 1.
pub(crate) fn randn(seed: u64, shape: &[usize]) -> Tensor {
    let key = Chance::new(seed);
    let count = shape.iter().product::<usize>() as u64;
    let values: Vec<f32> = (0..count).map(|i| single(key.normal(i))).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// All numbers of a tensor in f64.
pub(crate) fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_dtype(candle_core::DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest absolute difference of two tensors.
pub(crate) fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.dims(), b.dims());
    numbers(a).iter().zip(numbers(b)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Asserts that `backward` through `f` gives the central differences of a fixed random projection of its result.
/// The arguments are nudged in the precision in which they come, so `slack` must suit it.
pub(crate) fn gradients(f: impl Fn(&[Tensor]) -> Result<Tensor>, at: &[Tensor], (nudge, slack): (f64, f64)) {
    let vars: Vec<Var> = at.iter().map(|t| Var::from_tensor(t).unwrap()).collect();
    let tensors: Vec<Tensor> = vars.iter().map(|v| v.as_tensor().clone()).collect();
    let y = f(&tensors).unwrap();
    let projection = randn(99, y.dims()).to_dtype(y.dtype()).unwrap();
    let project = |y: Tensor| numbers(&(y * &projection).unwrap()).iter().sum::<f64>();
    let loss = (y * &projection).unwrap().sum_all().unwrap();
    let grads = loss.backward().unwrap();
    for (which, var) in vars.iter().enumerate() {
        let exact = numbers(grads.get(var).unwrap_or_else(|| panic!("argument {which} got no gradient")));
        let values = numbers(&at[which]);
        for i in 0..values.len() {
            let shifted = |by: f64| {
                let mut moved = values.clone();
                moved[i] += by;
                let moved = Tensor::from_vec(moved, at[which].dims(), &Device::Cpu).unwrap();
                let mut args = at.to_vec();
                args[which] = moved.to_dtype(at[which].dtype()).unwrap();
                project(f(&args).unwrap())
            };
            let estimate = (shifted(nudge) - shifted(-nudge)) / (2.0 * nudge);
            assert!(
                (estimate - exact[i]).abs() <= slack * (1.0 + estimate.abs()),
                "argument {which}, number {i}: backward {}, differences {estimate}",
                exact[i]
            );
        }
    }
}
