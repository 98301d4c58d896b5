//! Numerical gradients for the tests of this crate.

use base::rng::CounterRng;
use candle_core::{DType, Device, Result, Tensor, Var};

use super::math::single;

/// Reproducible f32 numbers around 0 with deviation 1.
pub(crate) fn randn(seed: u64, shape: &[usize]) -> Tensor {
    let key = CounterRng::new(seed);
    let count = shape.iter().product::<usize>() as u64;
    let values: Vec<f32> = (0..count).map(|i| single(key.normal(i))).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// All numbers of a tensor in f64.
pub(crate) fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest absolute difference of two tensors.
pub(crate) fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.dims(), b.dims());
    numbers(a).iter().zip(numbers(b)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Asserts that `backward` through `f` gives the central differences of a fixed random projection of its result.
/// The arguments are nudged in the precision in which they come, so `slack` must suit it.
pub(crate) fn gradients(f: impl Fn(&[Tensor]) -> Result<Tensor>, at: &[Tensor], nudge: f64, slack: f64) {
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

/// Asserts that the form written by hand (f32) and the composed one (f64) have the same values and gradients within `slack`, and that the
/// first argument in bf16, as activations come, gives nearly these, the gradient of each argument being of its type.
pub(crate) fn forms_agree(f: impl Fn(&[Tensor]) -> Result<Tensor>, at: &[Tensor], slack: f64) {
    /// What some roundings to 8 binary digits may make of numbers around 1.
    const HALF: f64 = 0.03;
    let mut at = at.to_vec();
    at[0] = at[0].to_dtype(DType::BF16).unwrap().to_dtype(DType::F32).unwrap();
    // Values, then gradients, with their types.
    let run = |first: DType, others: DType| -> Vec<(Vec<f64>, DType)> {
        let dtype = |which: usize| if which == 0 { first } else { others };
        let vars: Vec<Var> = (0..at.len())
            .map(|which| Var::from_tensor(&at[which].to_dtype(dtype(which)).unwrap()).unwrap())
            .collect();
        let y = f(&vars.iter().map(|var| var.as_tensor().clone()).collect::<Vec<_>>()).unwrap();
        let loss = y.to_dtype(DType::F64).unwrap().sin().unwrap().sum_all().unwrap();
        let grads = loss.backward().unwrap();
        let found = vars.iter().map(|var| grads.get(var).unwrap().clone());
        std::iter::once(y).chain(found).map(|t| (numbers(&t), t.dtype())).collect()
    };
    let fused = run(DType::F32, DType::F32);
    for (first, others, slack) in [(DType::F64, DType::F64, slack), (DType::BF16, DType::F32, HALF)] {
        for (which, ((found, dtype), (expected, _))) in run(first, others).iter().zip(&fused).enumerate() {
            assert!(which == 0 || *dtype == if which == 1 { first } else { others }, "{which}: {dtype:?}");
            let size = expected.iter().fold(1.0_f64, |top, x| top.max(x.abs()));
            let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far < slack * size, "{first:?}, {which} (0: values, then gradients): {far} of {size}");
        }
    }
}
