//! How dropout treats the tokens that enter an output: element-wise or variational.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::encoder::tokens::Span;
use crate::nn::dropout::Dropout;

/// What is dropped together of the tokens that enter an output of tags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum OutputDropout {
    /// Each element by itself.
    #[default]
    #[serde(rename = "numbers")]
    ElementWise,
    /// One mask for all tokens of a row (variational dropout, Gal and Ghahramani 2016), as in MT-BERT's code.
    #[serde(rename = "rows")]
    Variational,
}

impl OutputDropout {
    /// Whether it is as in the papers, of which settings say nothing.
    #[must_use]
    pub fn is_element_wise(&self) -> bool {
        *self == OutputDropout::ElementWise
    }
}

/// The tokens of some rows `[n, d]` behind dropout: what is dropped of one is dropped of all its row.
pub(super) fn by_rows(drop: Dropout, x_nd: &Tensor, rows: &[Span]) -> Result<Tensor> {
    let (row_of, d) = (numbers_of_rows(rows), x_nd.dim(1)?);
    drop.apply_at(x_nd, |place| (row_of[place / d] * d + place % d) as u64)
}

/// The number of the row that each token is of.
fn numbers_of_rows(rows: &[Span]) -> Vec<usize> {
    rows.iter().enumerate().flat_map(|(row, span)| std::iter::repeat_n(row, span.len)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use candle_core::{DType, Device};

    use super::super::{Outline, Output, Outputs, Task};
    use super::*;
    use crate::encoder::config::tests::tiny;
    use crate::encoder::pool::Pooling;
    use crate::params::Params;
    use base::rng::CounterRng;

    /// What the tokens of two rows look like behind dropout, as numbers that are 0 where they are dropped.
    fn dropped(thinned: OutputDropout, output: Output) -> Vec<Vec<f32>> {
        let config = tiny();
        let d = config.hidden_size;
        let task = Task { name: "x".to_owned(), output, alpha: 1.0 };
        let (pooling, labels, knowledge) = (Pooling::Cls, None, None);
        let outline = Outline { tasks: vec![task], pooling, dropout: 0.5, thinned, labels, knowledge };
        let values = BTreeMap::from([
            ("outputs.x.weight".to_owned(), Tensor::eye(d, DType::F32, &Device::Cpu).unwrap()),
            ("outputs.x.bias".to_owned(), Tensor::zeros(d, DType::F32, &Device::Cpu).unwrap()),
        ]);
        let params = Params::from_tensors(&outline.specs(&config), values).unwrap();
        let outputs = Outputs::new(&outline, &config, &params).unwrap();
        let x = Tensor::ones((5, d), DType::F32, &Device::Cpu).unwrap();
        let rows = [Span { start: 0, len: 3 }, Span { start: 3, len: 2 }];
        outputs.logits(&x, &rows, 0, Some(CounterRng::new(1))).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn what_is_dropped_of_a_row_is_dropped_of_all_its_tokens() {
        let classes = tiny().hidden_size;
        let rows = dropped(OutputDropout::Variational, Output::Tag { classes });
        assert!(rows[0] == rows[1] && rows[1] == rows[2] && rows[3] == rows[4], "{rows:?}");
        assert!(rows[0] != rows[3] && rows[0].contains(&0.0) && rows[0].contains(&2.0), "{rows:?}");
        let numbers = dropped(OutputDropout::ElementWise, Output::Tag { classes });
        assert!(numbers[0] != numbers[1], "{numbers:?}");
        // Of whole rows each has one state, and nothing to share.
        let one = |of| dropped(of, Output::OneClass { classes, weights: None });
        assert_eq!(one(OutputDropout::Variational), one(OutputDropout::ElementWise));
    }
}
