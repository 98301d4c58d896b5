//! Which layers of candle-nn have the numerical gradient: why this crate has some of its own (ARCHITECTURE.md).

use candle_core::{Module, Result, Tensor, Var};
use candle_nn::{Activation, Embedding, LayerNorm, Linear, RmsNorm, ops};

use super::check::randn;

/// Whether the gradient of each argument of `f` is there and the numerical one.
fn holds(f: &dyn Fn(&[Tensor]) -> Result<Tensor>, at: &[Tensor]) -> bool {
    let vars: Vec<Var> = at.iter().map(|t| Var::from_tensor(t).unwrap()).collect();
    let given: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
    let total = |args: &[Tensor]| f(args).unwrap().sin().unwrap().sum_all().unwrap();
    let Ok(grads) = total(&given).backward() else { return false };
    let value = |args: &[Tensor]| f64::from(total(args).to_scalar::<f32>().unwrap());
    vars.iter().enumerate().all(|(which, var)| {
        let Some(grad) = grads.get(var) else { return false };
        let grad = grad.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        (0..grad.len().min(6)).all(|at_number| {
            let moved = |by: f32| {
                let mut args = given.clone();
                let mut numbers = args[which].flatten_all().unwrap().to_vec1::<f32>().unwrap();
                numbers[at_number] += by;
                args[which] = Tensor::from_vec(numbers, args[which].shape(), args[which].device()).unwrap();
                value(&args)
            };
            let numerical = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            (numerical - f64::from(grad[at_number])).abs() < 2e-2 * (1.0 + numerical.abs())
        })
    })
}

#[test]
fn fast_forms_of_candle_nn_have_no_gradient_and_others_do() {
    let x = randn(1, &[3, 8]);
    let (gain, shift) = ((randn(2, &[8]) + 1.0).unwrap(), randn(3, &[8]));
    let linear = |a: &[Tensor]| Linear::new(a[1].clone(), Some(a[2].clone())).forward(&a[0]);
    let ids = Tensor::new(&[0_u32, 2, 2], x.device()).unwrap();
    let look_up = |a: &[Tensor]| Embedding::new(a[0].clone(), 8).forward(&ids);
    let with: [(&str, bool); 5] = [
        ("linear", holds(&linear, &[x.clone(), randn(4, &[5, 8]), randn(5, &[5])])),
        ("embedding", holds(&look_up, &[randn(6, &[4, 8])])),
        ("gelu", holds(&|a| Activation::Gelu.forward(&a[0]), std::slice::from_ref(&x))),
        ("softmax", holds(&|a| ops::softmax(&a[0], 1), std::slice::from_ref(&x))),
        ("log_softmax", holds(&|a| ops::log_softmax(&a[0], 1), std::slice::from_ref(&x))),
    ];
    assert_eq!(with.map(|(name, holds)| (name, holds)), with.map(|(name, _)| (name, true)));
    let norm = |a: &[Tensor]| LayerNorm::new(a[1].clone(), a[2].clone(), 1e-12).forward(&a[0]);
    let rms = |a: &[Tensor]| RmsNorm::new(a[1].clone(), 1e-12).forward(&a[0]);
    let without: [(&str, bool); 3] = [
        ("layer norm", holds(&norm, &[x.clone(), gain.clone(), shift.clone()])),
        ("rms norm", holds(&rms, &[x.clone(), gain.clone()])),
        ("softmax_last_dim", holds(&|a| ops::softmax_last_dim(&a[0]), std::slice::from_ref(&x))),
    ];
    assert_eq!(without, without.map(|(name, _)| (name, false)));
    // Ours has it.
    let own = |a: &[Tensor]| super::layer_norm::layer_norm(&a[0], [&a[1], &a[2]], 1e-12);
    assert!(holds(&own, &[x, gain, shift]));
}
