//! A whole encoder in other number types and on other devices, against f32 on the CPU.

use std::collections::BTreeMap;

use base::rng::CounterRng;
use candle_core::{DType, Device, Var};

use super::super::config::Config;
use super::super::config::tests::tiny;
use super::super::pool::{Pool, Pooling};
use super::super::tokens::tests::tokens;
use super::super::{Gates, Pass};
use super::*;
use crate::device::Wanted;
use crate::nn::check::{numbers, randn};
use crate::nn::cross_entropy::cross_entropy;
use crate::nn::gradients::gradients;
use crate::nn::linear::Linear;
use crate::optim::adamw::{AdamW, AdamWConfig, Update};
use crate::optim::clip;
use crate::params::{Params, Spec};

/// bf16 has 8 binary digits: a result is off by 2^-9 of itself at most. Through two layers of some ten roundings each, and back, the lengths
/// of errors stay below these shares of the lengths of what they are errors of.
const VALUES: f64 = 0.02;
const GRADIENTS: f64 = 0.06;

fn config() -> Config {
    Config { hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, ..tiny() }
}

/// Parameters of an encoder and an output, none of them like its neighbours.
fn params(device: &Device) -> Params {
    let specs = [Encoder::specs(&config()), Spec::linear("output", [3, 16], 0.5).to_vec()].concat();
    let random = |(seed, spec): (u64, &Spec)| {
        let gain = f64::from(u8::from(spec.name.ends_with("LayerNorm.weight")));
        let values = ((randn(seed, &spec.shape) * 0.3).unwrap() + gain).unwrap();
        (spec.name.clone(), values.to_device(device).unwrap())
    };
    Params::from_tensors(&specs, (1..).zip(&specs).map(random).collect()).unwrap()
}

/// The same parameters in f64, for which every operation is composed.
fn doubled(params: &Params) -> Params {
    let double = |t: &Tensor| Var::from_tensor(&t.to_dtype(DType::F64).unwrap()).unwrap();
    Params::from_vars(params.iter().map(|(name, t)| (name.to_owned(), double(t))).collect())
}

/// The last hidden states and the loss of a batch, with dropout.
fn forward(params: &Params, number: ActivationDtype, gates: Option<&Tensor>) -> (Tensor, Tensor) {
    let device = params.iter().next().unwrap().1.device();
    let rows: [&[u32]; 3] = [&[2, 9, 8, 7, 11, 3], &[2, 3], &[2, 30, 31, 3]];
    let tokens = tokens(&rows, &config(), device);
    let encoder = Encoder::new(&config(), params).unwrap().with_dtype(number);
    let gates = gates.map_or(Gates::Open, Gates::PerSample);
    let pass = Pass { gates, dropout: Some(CounterRng::new(3)), ..Pass::PLAIN };
    let hidden = encoder.forward(&config(), &tokens, &pass).unwrap();
    let x_nd = hidden.last().unwrap();
    let pooled = Pool::new(Pooling::Mean, params, "").unwrap().forward(x_nd, &tokens.spans).unwrap();
    let logits = Linear::new(params, "output").unwrap().forward(&pooled).unwrap();
    (x_nd.clone(), cross_entropy(&logits, &[Some(0), Some(2), Some(1)]).unwrap())
}

/// The last hidden states, and the gradients of the loss by all parameters and by gates.
fn outcome(
    params: &Params,
    number: ActivationDtype,
    gates: Option<&Tensor>,
) -> (Tensor, BTreeMap<String, Tensor>) {
    let (x_nd, loss) = forward(params, number, gates);
    let grads = gradients(&loss).unwrap();
    let all = params.iter().chain(gates.map(|gates| ("gates", gates)));
    let found = all.filter_map(|(name, var)| Some((name.to_owned(), grads.get(var)?.clone())));
    (x_nd, found.collect())
}

fn length(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

/// The length of the difference, and of what it should be.
fn off(found: &Tensor, expected: &Tensor) -> [f64; 2] {
    let (found, expected) = (numbers(found), numbers(expected));
    [length(found.iter().zip(&expected).map(|(a, b)| a - b)), length(expected.into_iter())]
}

/// Errors as shares of lengths: of the values, and of every parameter's gradient, of which the pooler's two have none. A gradient that is 0 but
/// for roundings may be off by a thousandth of this share of all gradients together.
fn assert_close(
    found: &(Tensor, BTreeMap<String, Tensor>),
    expected: &(Tensor, BTreeMap<String, Tensor>),
    [values, gradients]: [f64; 2],
) {
    let [far, size] = off(&found.0, &expected.0);
    assert!(far < values * size, "values: {far} of {size}");
    assert_eq!(found.1.keys().collect::<Vec<_>>(), expected.1.keys().collect::<Vec<_>>());
    assert!(expected.1.len() >= params(&Device::Cpu).iter().count() - 2);
    let whole = length(expected.1.values().flat_map(numbers));
    for (name, grad) in &expected.1 {
        let [far, size] = off(&found.1[name], grad);
        assert!(far < gradients * (size + 0.02 * whole), "{name}: {far} of {size}");
    }
}

/// Open gates of all samples, as variables.
fn gates(dtype: DType) -> Var {
    Var::ones((3, 2, 4), dtype, &Device::Cpu).unwrap()
}

#[test]
fn half_precision_stays_close_and_gradients_of_parameters_are_single() {
    let (params, gates) = (params(&Device::Cpu), gates(DType::F32));
    for gates in [None, Some(gates.as_tensor())] {
        let exact = outcome(&params, ActivationDtype::F32, gates);
        let rough = outcome(&params, ActivationDtype::Bf16, gates);
        assert_eq!([exact.0.dtype(), rough.0.dtype()], [DType::F32, DType::F32]);
        assert!(off(&rough.0, &exact.0)[0] > 0.0);
        assert!(rough.1.values().all(|grad| grad.dtype() == DType::F32));
        assert_close(&rough, &exact, [VALUES, GRADIENTS]);
    }
    assert!(params.iter().all(|(_, tensor)| tensor.dtype() == DType::F32));
    assert_eq!(forward(&params, ActivationDtype::Bf16, None).1.dtype(), DType::F32);
}

#[test]
fn composed_operations_make_the_same_encoder() {
    let (single, double) = (gates(DType::F32), gates(DType::F64));
    let params = params(&Device::Cpu);
    for gated in [false, true] {
        let of = |gates: &Var| gated.then(|| gates.as_tensor().clone());
        let fused = outcome(&params, ActivationDtype::F32, of(&single).as_ref());
        let composed = outcome(&doubled(&params), ActivationDtype::F32, of(&double).as_ref());
        assert_eq!(composed.0.dtype(), DType::F64);
        assert_close(&fused, &composed, [1e-5, 1e-4]);
    }
}

/// Losses of some steps, and the parameters after them.
fn trained(device: &Device, number: ActivationDtype) -> (Vec<f64>, Params) {
    let params = params(device);
    // An epsilon that keeps gradients of nothing but roundings from making steps of full size.
    let config = AdamWConfig { beta1: 0.9, beta2: 0.99, epsilon: 1e-2, weight_decay: 0.1 };
    let mut adam = AdamW::new(config, &params, |_| true).unwrap();
    let step = |_| {
        let (_, loss) = forward(&params, number, None);
        let mut store = gradients(&loss).unwrap();
        let grads = params.iter().filter_map(|(name, var)| Some((name.to_owned(), store.remove(var)?)));
        let grads: BTreeMap<String, Tensor> = grads.collect();
        let scale = clip::factor(clip::global_norm(&grads).unwrap(), 1.0);
        drop(store);
        adam.step(&params, grads, Update { rate: 0.01, scale }).unwrap();
        numbers(&loss)[0]
    };
    ((0..5).map(step).collect(), params)
}

#[test]
fn the_device_that_auto_takes_trains_as_the_cpu_does() {
    let auto = Wanted::Auto.device().unwrap();
    for (number, slack) in [(ActivationDtype::F32, 1e-3), (ActivationDtype::Bf16, 0.05)] {
        let ((found, params), (expected, others)) =
            (trained(&auto, number), trained(&Device::Cpu, ActivationDtype::F32));
        assert!(expected[4] < expected[0] - 0.05, "{expected:?}");
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < slack * (1.0 + b), "{number:?}: {found:?} {expected:?}");
        }
        for ((name, a), (_, b)) in params.iter().zip(others.iter()) {
            let [far, size] = off(a, b);
            assert!(far < slack * (0.1 + size), "{number:?}, {name}: {far} of {size}");
        }
    }
}
