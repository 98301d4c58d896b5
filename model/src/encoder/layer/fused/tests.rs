//! The one operation against the composed layer and against differences.

mod asked;
mod gates;
mod knowledge;
mod labels;

use std::collections::BTreeMap;

use base::rng::CounterRng;
use candle_core::{DType, Device, Var};

use super::*;
use crate::attention::plain::Plain;
use crate::encoder::config::Config;
use crate::encoder::config::tests::tiny;
use crate::encoder::tokens::Tokens;
use crate::encoder::tokens::tests;
use crate::encoder::{LayerDropout, Read};
use crate::nn::check::{distance, numbers, randn};
use crate::nn::gradients::gradients;
use crate::params::{Params, Spec};

/// More rows than a block, sizes that fill no panel, and one token alone.
const LENGTHS: [usize; 3] = [41, 1, 17];

fn config() -> Config {
    Config {
        hidden_size: 20,
        num_attention_heads: 4,
        intermediate_size: 37,
        max_position_embeddings: 41,
        ..tiny()
    }
}

fn tokens(lengths: &[usize]) -> Tokens {
    let rows: Vec<Vec<u32>> = lengths.iter().map(|len| vec![1; *len]).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    tests::tokens(&rows, &config(), &Device::Cpu)
}

/// Values of parameters, none of them like its neighbours.
fn random(specs: Vec<Spec>) -> BTreeMap<String, Tensor> {
    let value = |(seed, spec): (u64, Spec)| {
        let gain = f64::from(u8::from(spec.name.ends_with("LayerNorm.weight")));
        (spec.name, ((randn(seed, &spec.shape) * 0.3).unwrap() + gain).unwrap())
    };
    (1..).zip(specs).map(value).collect()
}

/// Values of all parameters of layer 0.
fn values(config: &Config) -> BTreeMap<String, Tensor> {
    random(Layer::specs(config, 0))
}

fn layer(config: &Config, values: &BTreeMap<String, Tensor>) -> (Layer, Params) {
    let params = Params::from_tensors(&Layer::specs(config, 0), values.clone()).unwrap();
    (Layer::new(config, &params, 0).unwrap(), params)
}

fn dropout(rate: f64) -> LayerDropout {
    let config = Config { hidden_dropout_prob: rate, attention_probs_dropout_prob: rate, ..config() };
    LayerDropout::of(Some(CounterRng::new(5)), &config, 0)
}

/// A pass without gates.
fn open(tokens: &Tokens, rate: f64) -> LayerPass<'_> {
    LayerPass { tokens, gates: None, dropout: dropout(rate), read: Read::All }
}

/// The one operation with plain attention.
fn forward(layer: &Layer, x: &Tensor, pass: &LayerPass<'_>) -> Result<Tensor> {
    layer.forward(x, &mut Plain, pass)
}

/// The composed layer with plain attention.
fn composed(layer: &Layer, x: &Tensor, pass: &LayerPass<'_>) -> Result<Tensor> {
    layer.composed(x, &mut Plain, pass)
}

/// The output, and the gradients of its sine's sum by the input and all parameters.
fn outcome(params: &Params, x: &Var, y: &Tensor) -> (Tensor, BTreeMap<String, Tensor>) {
    outcome_of(params, &[("x", x)], y)
}

/// The output, and the gradients of its sine's sum by all parameters and `others`.
fn outcome_of(params: &Params, others: &[(&str, &Var)], y: &Tensor) -> (Tensor, BTreeMap<String, Tensor>) {
    let grads = gradients(&y.sin().unwrap().sum_all().unwrap()).unwrap();
    let all = params.iter().chain(others.iter().map(|(name, var)| (*name, var.as_tensor())));
    let found = all.filter_map(|(name, var)| Some((name.to_owned(), grads.get(var)?.clone())));
    (y.clone(), found.collect())
}

fn assert_close(a: &(Tensor, BTreeMap<String, Tensor>), b: &(Tensor, BTreeMap<String, Tensor>), slack: f64) {
    assert!(distance(&a.0, &b.0) < slack, "values {}", distance(&a.0, &b.0));
    assert_eq!(a.1.keys().collect::<Vec<_>>(), b.1.keys().collect::<Vec<_>>());
    for (name, found) in &a.1 {
        let far = distance(found, &b.1[name]);
        let size = numbers(&b.1[name]).iter().fold(1.0_f64, |top, x| top.max(x.abs()));
        assert!(far < slack * size, "{name}: {far}");
    }
}

#[test]
fn values_and_gradients_are_those_of_the_composed_layer() {
    let (config, whole) = (config(), tokens(&LENGTHS));
    let mut padded = whole.clone();
    padded.seen = Some([30, 1, 1].into());
    let (layer, params) = layer(&config, &values(&config));
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    for (rate, tokens) in [(0.0, &whole), (0.3, &whole), (0.3, &padded)] {
        let one = forward(&layer, &x, &open(tokens, rate)).unwrap();
        let composed = composed(&layer, &x, &open(tokens, rate)).unwrap();
        assert_close(&outcome(&params, &x, &one), &outcome(&params, &x, &composed), 2e-5);
    }
}

#[test]
fn without_a_backward_pass_the_output_has_the_same_bits() {
    // More than one block of rows, and the last one not whole.
    let (config, tokens) = (config(), tokens(&[41, 1, 17, 41, 40]));
    let (layer, params) = layer(&config, &values(&config));
    let frozen = Layer::new(&config, &params.freeze(|_| true), 0).unwrap();
    let x = randn(9, &[140, 20]);
    for rate in [0.0, 0.3] {
        let tracked = forward(&layer, &x, &open(&tokens, rate)).unwrap();
        let alone = forward(&frozen, &x, &open(&tokens, rate)).unwrap();
        assert!(tracked.track_op() && !alone.track_op());
        assert_eq!(numbers(&tracked), numbers(&alone));
    }
}

#[test]
fn composed_layer_in_double_precision_agrees() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    let (layer, params) = layer(&config, &values);
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    let one = outcome(&params, &x, &forward(&layer, &x, &open(&tokens, 0.0)).unwrap());
    let exact = |t: &Tensor| Var::from_tensor(&t.to_dtype(DType::F64).unwrap()).unwrap();
    let (x64, vars) =
        (exact(&x), values.iter().map(|(n, t)| (n.clone(), exact(t))).collect::<BTreeMap<_, _>>());
    let params64 = Params::from_vars(vars);
    let layer64 = Layer::new(&config, &params64, 0).unwrap();
    let composed = forward(&layer64, &x64, &open(&tokens, 0.0)).unwrap();
    assert_eq!(composed.dtype(), DType::F64);
    assert_close(&one, &outcome(&params64, &x64, &composed), 5e-5);
}

#[test]
fn gradients_are_the_numerical_ones() {
    let (config, tokens) = (config(), tokens(&[5, 2]));
    let values = values(&config);
    let (layer_at, params) = layer(&config, &values);
    let x = Var::from_tensor(&randn(9, &[7, 20])).unwrap();
    let (_, grads) = outcome(&params, &x, &forward(&layer_at, &x, &open(&tokens, 0.2)).unwrap());
    let loss = |values: &BTreeMap<String, Tensor>, x: &Tensor| {
        let y = forward(&layer(&config, values).0, x, &open(&tokens, 0.2)).unwrap();
        numbers(&y).iter().map(|y| y.sin()).sum::<f64>()
    };
    for (name, grad) in &grads {
        let at = values.get(name).unwrap_or(x.as_tensor());
        for place in [0, at.elem_count() / 3, at.elem_count() - 1] {
            let shifted = |by: f64| {
                let mut moved = numbers(at);
                moved[place] += by;
                let moved = Tensor::from_vec(moved, at.dims(), &Device::Cpu).unwrap();
                let moved = moved.to_dtype(DType::F32).unwrap();
                let mut others = values.clone();
                match others.get_mut(name) {
                    Some(value) => *value = moved,
                    None => return loss(&values, &moved),
                }
                loss(&others, &x)
            };
            let (estimate, found) = ((shifted(1e-2) - shifted(-1e-2)) / 2e-2, numbers(grad)[place]);
            assert!(
                (estimate - found).abs() < 2e-2 * (1.0 + estimate.abs()),
                "{name}[{place}]: {found}, {estimate}"
            );
        }
    }
}

#[test]
fn what_needs_no_gradient_gets_none_and_the_rest_is_unchanged() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    let (layer_at, params) = layer(&config, &values);
    let (_, all) = outcome(&params, &x, &forward(&layer_at, &x, &open(&tokens, 0.1)).unwrap());
    for frozen in [
        "",
        "encoder.layer.0.attention.self",
        "encoder.layer.0.attention",
        "encoder.layer.0.output.dense.weight",
    ] {
        let params = params.clone().freeze(|name| name.starts_with(frozen) && !frozen.is_empty());
        let layer = Layer::new(&config, &params, 0).unwrap();
        for input in [x.as_tensor().clone(), x.detach()] {
            let y = forward(&layer, &input, &open(&tokens, 0.1)).unwrap();
            let (_, some) = outcome(&params, &x, &y);
            let expected = all.iter().filter(|(name, _)| {
                let free = frozen.is_empty() || !name.starts_with(frozen);
                free && (name.as_str() != "x" || input.track_op())
            });
            assert_eq!(
                some.keys().collect::<Vec<_>>(),
                expected.clone().map(|(name, _)| name).collect::<Vec<_>>()
            );
            for (name, grad) in expected {
                assert_eq!(numbers(grad), numbers(&some[name]), "{name} with `{frozen}` frozen");
            }
        }
    }
    let layer = Layer::new(&config, &params.freeze(|_| true), 0).unwrap();
    assert!(!forward(&layer, &x.detach(), &open(&tokens, 0.1)).unwrap().track_op());
}

#[test]
fn the_number_of_threads_changes_no_bit_and_backward_can_be_repeated() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    let bits = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (layer, params) = layer(&config, &values);
            let y = forward(&layer, &x, &open(&tokens, 0.1)).unwrap();
            let [(_, first), (y, second)] = [0, 1].map(|_| outcome(&params, &x, &y));
            let numbers_of =
                |all: &BTreeMap<String, Tensor>| all.values().flat_map(numbers).collect::<Vec<_>>();
            assert_eq!(numbers_of(&first), numbers_of(&second));
            (numbers(&y), numbers_of(&second))
        })
    };
    assert_eq!(bits(1), bits(3));
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let config = config();
    let (layer, _) = layer(&config, &values(&config));
    let text = |x: Tensor, lengths: &[usize]| {
        forward(&layer, &x, &open(&tokens(lengths), 0.0)).unwrap_err().to_string()
    };
    assert!(text(randn(1, &[9, 20]), &[4, 4]).contains("do not cover the 9 tokens"));
    assert!(text(randn(1, &[8, 16]), &[4, 4]).contains("a layer of 4 heads over rows of 16 numbers"));
}
