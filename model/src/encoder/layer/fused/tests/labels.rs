//! The one operation with labels against the composed layer. Knows no encoder around it.

use candle_core::{DType, Tensor, Var};

use super::{LENGTHS, Params, assert_close, config, dropout, outcome_of, randn, tokens, values};
use crate::attention::LayerAttend;
use crate::attention::label::{Labels, Mode};
use crate::encoder::layer::Layer;

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
            let found = outcome_of(&params, &[("x", &x), ("labels", &embeddings)], &y);
            assert_eq!(found.1.len(), 18);
            found
        };
        assert_close(&run(DType::F32), &run(DType::F64), 5e-5);
    }
}
