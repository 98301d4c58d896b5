//! A layer whose output is read of some tokens alone: theirs are the bits of the whole layer, and gradients are those of the composed one.

use candle_core::{Device, Tensor, Var};

use super::{
    LENGTHS, LayerPass, Params, assert_close, composed, config, dropout, forward, layer, numbers, outcome_of,
    randn, tokens, values,
};
use crate::device::Recompute;
use crate::encoder::Read;
use crate::encoder::layer::gates::{LayerGates, Row};

/// First tokens of rows, others beside them, and the last one; more than a block of all.
const READ: [u32; 6] = [0, 7, 41, 42, 50, 58];

fn picked(y: &Tensor) -> Tensor {
    y.index_select(&Tensor::new(&READ, &Device::Cpu).unwrap(), 0).unwrap()
}

#[test]
fn values_are_the_whole_layers_and_gradients_the_composed_layers() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (whole, params) = layer(&config, &values(&config));
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    let gates = Var::from_tensor(&randn(3, &[59, 4])).unwrap();
    let of = LayerGates { gates_rh: gates.as_tensor().clone(), row: Row::Token };
    for (gates_of, rate) in [(None, 0.0), (None, 0.3), (Some(&of), 0.3)] {
        let pass = |read| LayerPass { tokens: &tokens, gates: gates_of, dropout: dropout(rate), read };
        let all = forward(&whole, &x, &pass(Read::All)).unwrap();
        let expected = picked(&composed(&whole, &x, &pass(Read::Of(&READ))).unwrap());
        let others = [("x", &x), ("gates", &gates)];
        for layer in [whole.clone(), whole.clone().recomputed(Recompute::Layers)] {
            let some = forward(&layer, &x, &pass(Read::Of(&READ))).unwrap();
            assert_eq!(numbers(&picked(&some)), numbers(&picked(&all)));
            let found = outcome_of(&params, &others, &picked(&some));
            assert_close(&found, &outcome_of(&params, &others, &expected), 3e-5);
        }
    }
}

#[test]
fn what_nobody_reads_is_no_number_with_and_without_a_backward_pass() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (tracked, params) = layer(&config, &values(&config));
    let frozen = super::Layer::new(&config, &Params::freeze(params, |_| true), 0).unwrap();
    let pass = LayerPass { tokens: &tokens, gates: None, dropout: dropout(0.2), read: Read::Of(&READ) };
    let said = [tracked, frozen].map(|layer| forward(&layer, &randn(9, &[59, 20]), &pass).unwrap());
    assert!(said[0].track_op() && !said[1].track_op());
    let [one, other] = said.map(|y| y.to_vec2::<f32>().unwrap());
    for (token, (one, other)) in one.iter().zip(&other).enumerate() {
        if READ.iter().any(|read| *read as usize == token) {
            assert_eq!(one, other);
        } else {
            assert!(one.iter().chain(other).all(|number| number.is_nan()), "{token}");
        }
    }
}

#[test]
fn tokens_that_are_not_there_or_do_not_ascend_are_errors() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let (layer, _) = layer(&config, &values(&config));
    for read in [&[3, 59][..], &[4, 3], &[4, 4], &[]] {
        let pass = LayerPass { tokens: &tokens, gates: None, dropout: dropout(0.0), read: Read::Of(read) };
        let text = forward(&layer, &randn(9, &[59, 20]), &pass).unwrap_err().to_string();
        assert!(text.contains("do not ascend among 59"), "{text}");
    }
}
