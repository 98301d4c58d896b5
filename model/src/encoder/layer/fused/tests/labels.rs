//! The one operation with labels against the composed layer.

use candle_core::{DType, Tensor, Var};

use super::{
    LENGTHS, LayerPass, Params, assert_close, config, dropout, numbers, open, outcome_of, randn, tokens,
    values,
};
use crate::attention::label::{LabelAttention, Labels, Mode};
use crate::encoder::Read;
use crate::encoder::layer::Layer;
use crate::encoder::layer::gates::{LayerGates, Row};

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
            let labels = Labels {
                embeddings_md: embeddings.as_tensor().clone(),
                settings: LabelAttention { mode, lambda: 0.0 },
            };
            let gates = exact(&randn(7, &[3, 4]));
            let gates_of = LayerGates { gates_rh: gates.as_tensor().clone(), row: Row::Sample };
            let pass =
                LayerPass { tokens: &tokens, gates: Some(&gates_of), dropout: dropout(0.2), read: Read::All };
            let y = layer.forward(&x, &mut &labels, &pass).unwrap();
            let found = outcome_of(&params, &[("x", &x), ("labels", &embeddings), ("gates", &gates)], &y);
            assert_eq!(found.1.len(), 19);
            found
        };
        assert_close(&run(DType::F32), &run(DType::F64), 5e-5);
    }
}

#[test]
fn what_needs_no_gradient_gets_none_and_the_rest_is_unchanged() {
    let (config, tokens) = (config(), tokens(&LENGTHS));
    let params = Params::from_tensors(&Layer::specs(&config, 0), values(&config)).unwrap();
    let (x, embeddings) = (Var::from_tensor(&randn(9, &[59, 20])), Var::from_tensor(&randn(6, &[5, 20])));
    let (x, embeddings) = (x.unwrap(), embeddings.unwrap());
    let others = [("x", &x), ("labels", &embeddings)];
    let run = |params: &Params, [x, embeddings_md]: [Tensor; 2]| {
        let labels = Labels { embeddings_md, settings: LabelAttention { mode: Mode::Paper, lambda: 0.0 } };
        let layer = Layer::new(&config, params, 0).unwrap();
        layer.forward(&x, &mut &labels, &open(&tokens, 0.1)).unwrap()
    };
    let both = [x.as_tensor(), embeddings.as_tensor()].map(Tensor::clone);
    let (_, all) = outcome_of(&params, &others, &run(&params, both.clone()));
    let frozen = params.clone().freeze(|_| true);
    // The labels' embeddings alone, then the input alone.
    let cases: [(&Params, [Tensor; 2], &[&str]); 2] = [
        (&frozen, [x.detach(), both[1].clone()], &["labels"]),
        (&frozen, [both[0].clone(), embeddings.detach()], &["x"]),
    ];
    for (params, given, expected) in cases {
        let (_, some) = outcome_of(params, &others, &run(params, given));
        assert_eq!(some.keys().collect::<Vec<_>>(), expected);
        some.iter().for_each(|(name, gradient)| assert_eq!(numbers(gradient), numbers(&all[name]), "{name}"));
    }
    let (_, some) = outcome_of(&params, &others, &run(&params, [x.detach(), embeddings.detach()]));
    assert_eq!(some.len(), all.len() - 2);
    let still = run(&frozen, [x.detach(), embeddings.detach()]);
    assert!(!still.track_op());
}
