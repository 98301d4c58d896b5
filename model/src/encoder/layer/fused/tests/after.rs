//! What follows attention as one operation, and labels before it, against what they are composed of.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor, Var};

use super::{LENGTHS, assert_close, config, dropout, layer, numbers, randn, tokens, values};
use crate::attention::LayerAttend;
use crate::attention::label::{Labels, Mode};
use crate::encoder::layer::Layer;
use crate::encoder::layer::gates::{LayerGates, Row};
use crate::nn::gradients::gradients;
use crate::params::Params;

/// The output, and the gradients of its sine's sum by all parameters and `others`.
fn outcome(params: &Params, others: &[(&str, &Var)], y: &Tensor) -> (Tensor, BTreeMap<String, Tensor>) {
    let grads = gradients(&y.sin().unwrap().sum_all().unwrap()).unwrap();
    let all = params.iter().chain(others.iter().map(|(name, var)| (*name, var.as_tensor())));
    let found = all.filter_map(|(name, var)| Some((name.to_owned(), grads.get(var)?.clone())));
    (y.clone(), found.collect())
}

fn var(seed: u64, shape: &[usize]) -> Var {
    Var::from_tensor(&randn(seed, shape)).unwrap()
}

#[test]
fn what_follows_attention_is_that_of_the_composed_layer() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer, params) = layer(&config, &values(&config));
    let (context, x, gates) = (var(8, &[59, 20]), var(9, &[59, 20]), var(7, &[3, 4]));
    let others = [("context", &context), ("x", &x), ("gates", &gates)];
    let gates_of = LayerGates { gates_rh: gates.as_tensor().clone(), row: Row::Sample };
    for (rate, gates) in [(0.0, None), (0.3, None), (0.3, Some(&gates_of))] {
        let how = (gates, &dropout(rate));
        let one = layer.after(&context, &x, &tokens, how).unwrap();
        let composed = layer.composed_after([&context, &x], &tokens, how).unwrap();
        assert_close(&outcome(&params, &others, &one), &outcome(&params, &others, &composed), 2e-5);
        // Nothing before attention is reached, all behind it is.
        let (_, found) = outcome(&params, &others, &one);
        assert!(found.keys().all(|name| !name.contains("attention.self")));
        assert_eq!(found.len(), 10 + 2 + usize::from(gates.is_some()));
    }
}

#[test]
fn what_needs_no_gradient_behind_attention_gets_none() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer_at, params) = layer(&config, &values(&config));
    let (context, x) = (var(8, &[59, 20]), var(9, &[59, 20]));
    let others = [("context", &context), ("x", &x)];
    let how = (None, &dropout(0.1));
    let (_, all) = outcome(&params, &others, &layer_at.after(&context, &x, &tokens, how).unwrap());
    let params = params.freeze(|name| name.contains("intermediate"));
    let some = Layer::new(&config, &params, 0).unwrap();
    let (_, found) = outcome(&params, &others, &some.after(&context, &x.detach(), &tokens, how).unwrap());
    let expected: Vec<_> = all.keys().filter(|name| !name.contains("intermediate") && *name != "x").collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected);
    for (name, grad) in &found {
        assert_eq!(numbers(grad), numbers(&all[name]), "{name}");
    }
    let still = Layer::new(&config, &params.freeze(|_| true), 0).unwrap();
    assert!(!still.after(&context.detach(), &x.detach(), &tokens, how).unwrap().track_op());
}

#[test]
fn a_layer_with_labels_agrees_with_double_precision() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    for mode in [Mode::Paper, Mode::Repo] {
        let run = |dtype: DType| {
            let exact = |t: &Tensor| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap();
            let vars = values.iter().map(|(name, t)| (name.clone(), exact(t)));
            let params = Params::from_vars(vars.collect());
            let layer = Layer::new(&config, &params, 0).unwrap();
            let (x, embeddings) = (exact(&randn(9, &[59, 20])), exact(&randn(6, &[5, 20])));
            let labels = Labels { embeddings_md: embeddings.as_tensor().clone(), mode };
            let y = layer.forward(&x, &tokens, LayerAttend::Labels(&labels), (None, &dropout(0.2))).unwrap();
            let found = outcome(&params, &[("x", &x), ("labels", &embeddings)], &y);
            assert_eq!(found.1.len(), 18);
            found
        };
        assert_close(&run(DType::F32), &run(DType::F64), 5e-5);
    }
}

#[test]
fn contexts_of_another_shape_are_an_error() {
    let config = config();
    let (layer, _) = layer(&config, &values(&config));
    let how = (None, &dropout(0.0));
    let text = layer.after(&randn(1, &[8, 20]), &randn(1, &[9, 20]), &tokens(&[9]), how).unwrap_err();
    assert!(text.to_string().contains("contexts of shape [8, 20] on rows of shape [9, 20]"), "{text}");
}
