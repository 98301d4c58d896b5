//! The one operation with gates against the composed layer.

use candle_core::{DType, Device, Tensor, Var};

use super::{
    LENGTHS, LayerPass, Params, composed, config, dropout, forward, layer, numbers, randn, tokens, values,
};
use crate::encoder::Read;
use crate::encoder::layer::Layer;
use crate::encoder::layer::gates::{LayerGates, Row};
use crate::encoder::tokens::Tokens;
use crate::nn::check::distance;
use crate::nn::gradients::gradients;

const ROWS: [Row; 3] = [Row::All, Row::Sample, Row::Token];

fn rows_of(row: Row, tokens: &Tokens) -> usize {
    match row {
        Row::All => 1,
        Row::Sample => tokens.spans.len(),
        Row::Token => tokens.count(),
    }
}

fn pass<'a>(tokens: &'a Tokens, gates: Option<&'a LayerGates>, rate: f64) -> LayerPass<'a> {
    LayerPass { tokens, gates, dropout: dropout(rate), read: Read::All }
}

/// Gates of four heads of which some are open, closed, between or beyond.
fn mixed(rows: usize) -> Tensor {
    let values: Vec<f32> = (0..rows * 4).map(|at| [1.0, 0.0, 0.3, -1.7, 2.5][at % 5]).collect();
    Tensor::from_vec(values, (rows, 4), &Device::Cpu).unwrap()
}

fn all(rows: usize, value: f32) -> Tensor {
    Tensor::from_vec(vec![value; rows * 4], (rows, 4), &Device::Cpu).unwrap()
}

/// The output, then the gradients of its sine's sum by the gates, the input and all parameters, with their names.
fn outcome(params: &Params, [gates, x]: [&Var; 2], y: &Tensor) -> Vec<(String, Tensor)> {
    let grads = gradients(&y.sin().unwrap().sum_all().unwrap()).unwrap();
    let all = [("gates", gates.as_tensor()), ("x", x.as_tensor())].into_iter().chain(params.iter());
    let found = all.filter_map(|(name, var)| Some((name.to_owned(), grads.get(var)?.clone())));
    [("y".to_owned(), y.clone())].into_iter().chain(found).collect()
}

fn assert_close(one: &[(String, Tensor)], other: &[(String, Tensor)], what: &str) {
    let names = |all: &[(String, Tensor)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}");
    for ((name, a), (_, b)) in one.iter().zip(other) {
        assert_eq!(a.dims(), b.dims(), "{what}: {name}");
        let size = numbers(b).iter().fold(1.0_f64, |top, x| top.max(x.abs()));
        assert!(distance(a, b) < 3e-5 * size, "{what}: {name} is off by {} of {size}", distance(a, b));
    }
}

#[test]
fn values_and_gradients_are_those_of_the_composed_layer() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer, params) = layer(&config, &values(&config));
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    for row in ROWS {
        let rows = rows_of(row, &tokens);
        for (kind, gates) in [
            ("open", all(rows, 1.0)),
            ("closed", all(rows, 0.0)),
            ("0.3", all(rows, 0.3)),
            ("mixed", mixed(rows)),
        ] {
            let gates = Var::from_tensor(&gates).unwrap();
            let of = LayerGates { gates_rh: gates.as_tensor().clone(), row };
            for rate in [0.0, 0.3] {
                let one = forward(&layer, &x, &pass(&tokens, Some(&of), rate)).unwrap();
                let composed = composed(&layer, &x, &pass(&tokens, Some(&of), rate)).unwrap();
                let (one, composed) =
                    (outcome(&params, [&gates, &x], &one), outcome(&params, [&gates, &x], &composed));
                assert_close(&one, &composed, &format!("{row:?}, {kind}, dropout {rate}"));
                assert!(numbers(&one[1].1).iter().any(|g| g.abs() > 1e-3), "{kind} gates have a gradient");
            }
        }
    }
}

#[test]
fn composed_layer_in_double_precision_agrees() {
    let (config, tokens, values) = (config(), tokens(&LENGTHS), values(&config()));
    let (layer, params) = layer(&config, &values);
    let exact = |t: &Tensor| Var::from_tensor(&t.to_dtype(DType::F64).unwrap()).unwrap();
    let params64 = Params::from_vars(values.iter().map(|(name, t)| (name.clone(), exact(t))).collect());
    let layer64 = Layer::new(&config, &params64, 0).unwrap();
    for row in ROWS {
        let gates = Var::from_tensor(&mixed(rows_of(row, &tokens))).unwrap();
        let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
        let (gates64, x64) = (exact(&gates), exact(&x));
        let of = |gates: &Var| LayerGates { gates_rh: gates.as_tensor().clone(), row };
        let one = forward(&layer, &x, &pass(&tokens, Some(&of(&gates)), 0.0)).unwrap();
        let composed = forward(&layer64, &x64, &pass(&tokens, Some(&of(&gates64)), 0.0)).unwrap();
        assert_eq!(composed.dtype(), DType::F64);
        let one = outcome(&params, [&gates, &x], &one);
        assert_close(&one, &outcome(&params64, [&gates64, &x64], &composed), &format!("{row:?}"));
    }
}

#[test]
fn open_gates_change_no_bit() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer, params) = layer(&config, &values(&config));
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    let gates = Var::from_tensor(&all(1, 1.0)).unwrap();
    let of = LayerGates { gates_rh: gates.detach(), row: Row::All };
    let y = |of| outcome(&params, [&gates, &x], &forward(&layer, &x, &pass(&tokens, of, 0.1)).unwrap());
    let (gated, plain) = (y(Some(&of)), y(None));
    assert_eq!(gated.len(), plain.len());
    for ((name, a), (_, b)) in gated.iter().zip(&plain) {
        assert_eq!(numbers(a), numbers(b), "{name}");
    }
}

#[test]
fn only_what_is_wanted_gets_a_gradient_and_it_is_the_same() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    for row in ROWS {
        let gates = Var::from_tensor(&mixed(rows_of(row, &tokens))).unwrap();
        let found = |frozen: &str, tracked: [bool; 2]| {
            let (_, params) = layer(&config, &values);
            let params = params.freeze(|name| name.starts_with(frozen));
            let layer = Layer::new(&config, &params, 0).unwrap();
            let of = |var: &Var, tracked| if tracked { var.as_tensor().clone() } else { var.detach() };
            let of_gates = LayerGates { gates_rh: of(&gates, tracked[0]), row };
            let y = forward(&layer, &of(&x, tracked[1]), &pass(&tokens, Some(&of_gates), 0.1)).unwrap();
            outcome(&params, [&gates, &x], &y)
        };
        let whole = found("none", [true, true]);
        for frozen in
            ["none", "encoder.layer.0.attention", "encoder.layer.0.attention.output.dense.weight", ""]
        {
            for tracked in [[true, true], [true, false], [false, true]] {
                let some = found(frozen, tracked);
                let expected = whole.iter().filter(|(name, _)| match name.as_str() {
                    "y" => true,
                    "gates" => tracked[0],
                    "x" => tracked[1],
                    name => !name.starts_with(frozen),
                });
                let expected: Vec<_> = expected.collect();
                assert_eq!(some.len(), expected.len(), "{row:?}, `{frozen}` frozen, {tracked:?}");
                for ((name, a), (of, b)) in some.iter().zip(expected) {
                    assert_eq!((name, numbers(a)), (of, numbers(b)), "{row:?}, `{frozen}` frozen");
                }
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let values = values(&config);
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    for row in ROWS {
        let gates = Var::from_tensor(&mixed(rows_of(row, &tokens))).unwrap();
        let bits = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (layer, params) = layer(&config, &values);
                let of = LayerGates { gates_rh: gates.as_tensor().clone(), row };
                let y = forward(&layer, &x, &pass(&tokens, Some(&of), 0.1)).unwrap();
                outcome(&params, [&gates, &x], &y).iter().flat_map(|(_, t)| numbers(t)).collect::<Vec<_>>()
            })
        };
        assert_eq!(bits(1), bits(3));
    }
}

#[test]
fn gates_for_other_rows_or_heads_are_errors() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer, _) = layer(&config, &values(&config));
    for (row, shape, expected) in [
        (Row::All, [3, 4], "needs 1 rows"),
        (Row::Sample, [59, 4], "needs 3 rows"),
        (Row::Token, [3, 4], "needs 59 rows"),
        (Row::All, [1, 5], "a layer of 4 heads"),
    ] {
        let of = LayerGates { gates_rh: randn(1, &shape), row };
        let text = forward(&layer, &randn(9, &[59, 20]), &pass(&tokens, Some(&of), 0.0)).unwrap_err();
        assert!(text.to_string().contains(expected), "{text}");
    }
}
