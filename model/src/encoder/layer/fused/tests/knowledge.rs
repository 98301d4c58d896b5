//! Layers that attend by what is known, one behind the other, against the composed ones: the map of the first goes into the second.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor, Var};

use super::{
    LENGTHS, LayerPass, Params, assert_close, config, dropout, numbers, outcome_of, randn, random, tokens,
};
use crate::attention::kam::{Auxiliary, Kam, Merge, Settings, Skip};
use crate::attention::{Attention, Sibling};
use crate::encoder::Read;
use crate::encoder::layer::Layer;
use crate::encoder::layer::gates::{LayerGates, Row};
use crate::encoder::tokens::{Knowledge, Tokens};

const MAPS: usize = 3;
/// How many tokens of each sample are real.
const REAL: [usize; 3] = [30, 1, 17];

/// Two layers with their attention, and what they look at.
struct Stack {
    layers: [Layer; 2],
    kam: Kam,
    tokens: Tokens,
}

impl Stack {
    fn new(settings: &Settings, params: &Params) -> Self {
        let (config, mut tokens) = (config(), tokens(&LENGTHS));
        let cells: usize = LENGTHS.iter().map(|len| MAPS * len * len).sum();
        let maps = randn(77, &[cells]).abs().unwrap().to_vec1().unwrap();
        let knowledge = Knowledge::new(maps, MAPS, REAL.to_vec(), &tokens.spans, &Device::Cpu).unwrap();
        tokens.knowledge = Some(knowledge);
        Stack {
            layers: [0, 1].map(|l| Layer::new(&config, params, l).unwrap()),
            kam: Kam::new(settings, &config, params).unwrap(),
            tokens,
        }
    }

    fn forward(&self, x: &Tensor, rate: f64, gates: Option<&LayerGates>) -> Tensor {
        let mut attention = self.kam.begin(x, &self.tokens).unwrap();
        let mut x_nd = x.clone();
        for layer in &self.layers {
            let pass = LayerPass { tokens: &self.tokens, gates, dropout: dropout(rate), read: Read::All };
            let y_nd = layer.forward(&x_nd, &mut *attention, &pass).unwrap();
            x_nd = attention.next(y_nd).unwrap();
        }
        x_nd
    }
}

fn settings(skip: Skip, auxiliary: Auxiliary, merge: Merge) -> Settings {
    Settings { maps: MAPS, alpha: 0.3, skip, auxiliary, merge }
}

/// Values of all parameters of two layers and their attention.
fn values(settings: &Settings) -> BTreeMap<String, Tensor> {
    let config = config();
    let layers = (0..2).flat_map(|l| Layer::specs(&config, l));
    random(layers.chain(settings.specs(&config)).collect())
}

/// Parameters of these values in numbers of this type.
fn params(values: &BTreeMap<String, Tensor>, dtype: DType) -> Params {
    let var = |t: &Tensor| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap();
    Params::from_vars(values.iter().map(|(name, t)| (name.clone(), var(t))).collect())
}

fn agrees_with_double_precision(settings: &Settings) {
    let values = values(settings);
    let run = |dtype: DType| {
        let params = params(&values, dtype);
        let x = Var::from_tensor(&randn(9, &[59, 20]).to_dtype(dtype).unwrap()).unwrap();
        let gates = Var::from_tensor(&randn(7, &[3, 4]).to_dtype(dtype).unwrap()).unwrap();
        let gates_of = LayerGates { gates_rh: gates.as_tensor().clone(), row: Row::Sample };
        let y = Stack::new(settings, &params).forward(&x, 0.2, Some(&gates_of));
        assert_eq!(y.dtype(), dtype);
        let found = outcome_of(&params, &[("x", &x), ("gates", &gates)], &y);
        assert_eq!(found.1.len(), values.len() + 2, "{settings:?}");
        found
    };
    assert_close(&run(DType::F32), &run(DType::F64), 1e-4);
}

#[test]
fn two_layers_agree_with_double_precision() {
    for skip in [Skip::PostAdd, Skip::PreAdd, Skip::None] {
        for auxiliary in [Auxiliary::ZeroPad, Auxiliary::Qk] {
            for merge in [Merge::Convolution, Merge::Mean] {
                agrees_with_double_precision(&settings(skip, auxiliary, merge));
            }
        }
    }
}

#[test]
fn what_needs_no_gradient_gets_none_and_the_rest_is_unchanged() {
    let x = Var::from_tensor(&randn(9, &[59, 20])).unwrap();
    for skip in [Skip::PostAdd, Skip::PreAdd, Skip::None] {
        let settings = settings(skip, Auxiliary::ZeroPad, Merge::Convolution);
        let params = params(&values(&settings), DType::F32);
        let others = [("x", &x)];
        let (_, all) = outcome_of(&params, &others, &Stack::new(&settings, &params).forward(&x, 0.1, None));
        // Without the input, the map of the first layer needs a gradient in the first two cases alone.
        let cases: [fn(&str) -> bool; 4] = [
            |_| false,
            |name| name.ends_with("convolution.weight"),
            |name| name.contains("layer.0.attention.self") || name.contains("layer.0.convolution"),
            |name| name.contains("layer.0."),
        ];
        for (case, frozen) in cases.into_iter().enumerate() {
            let stack = Stack::new(&settings, &params.clone().freeze(frozen));
            for input in [x.as_tensor().clone(), x.detach()] {
                let y = stack.forward(&input, 0.1, None);
                let kept = |name: &str| !frozen(name) && (name != "x" || input.track_op());
                let expected: Vec<_> = all.iter().filter(|(name, _)| kept(name)).collect();
                // What one backward pass leaves behind changes nothing in the next one.
                for _ in 0..2 {
                    let (_, some) = outcome_of(&params, &others, &y);
                    assert_eq!(some.len(), expected.len(), "{skip:?}, case {case}");
                    for (name, gradient) in &expected {
                        assert_eq!(numbers(&some[*name]), numbers(gradient), "{skip:?}, case {case}: {name}");
                    }
                }
            }
        }
        let still = Stack::new(&settings, &params.freeze(|_| true)).forward(&x.detach(), 0.1, None);
        assert!(!still.track_op());
    }
}

#[test]
fn rows_with_padding_are_refused() {
    let settings = settings(Skip::PostAdd, Auxiliary::ZeroPad, Merge::Convolution);
    let stack = Stack::new(&settings, &params(&values(&settings), DType::F32));
    let mut tokens = stack.tokens.clone();
    tokens.seen = Some([30, 1, 1].into());
    let Err(wrong) = stack.kam.begin(&randn(9, &[59, 20]), &tokens) else { unreachable!("padded rows") };
    let wrong = wrong.to_string();
    assert!(wrong.contains("rows with padding are for plain attention"), "{wrong}");
}
