//! One vector per row out of its hidden states.

use candle_core::{D, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::tokens::{Grid, Span};
use crate::nn::at_least_single;
use crate::nn::linear::Linear;
use crate::nn::softmax::softmax;
use crate::params::{Params, Spec};

/// What its parameters are called in checkpoints.
pub(crate) const POOLER: &str = "pooler.dense";

/// How a row's hidden states become one vector (KIMERA, section 2.2). Real tokens only, `[CLS]` and `[SEP]` included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The first token's hidden state.
    #[default]
    Cls,
    /// The mean over the tokens.
    Mean,
    /// The maximum over the tokens, for each dimension by itself.
    Max,
    /// The mean weighted by `softmax_t(w h_t + b)`, learned.
    LearnedAttn,
    /// BERT's pooler, `tanh(W h_0 + b)`.
    LearnedPooler,
}

impl Pooling {
    /// All ways to pool.
    pub const ALL: [Pooling; 5] =
        [Pooling::Cls, Pooling::Mean, Pooling::Max, Pooling::LearnedAttn, Pooling::LearnedPooler];

    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pooling::Cls => "cls",
            Pooling::Mean => "mean",
            Pooling::Max => "max",
            Pooling::LearnedAttn => "learned_attn",
            Pooling::LearnedPooler => "learned_pooler",
        }
    }
}

/// BERT's pooler; every checkpoint carries it, whether it is used or not.
pub(crate) fn pooler_specs(config: &Config) -> [Spec; 2] {
    Spec::linear(POOLER, [config.hidden_size; 2], config.initializer_range)
}

/// Whether a parameter is BERT's pooler's.
pub(crate) fn has(name: &str) -> bool {
    name.starts_with(POOLER)
}

/// The weights of [`Pooling::LearnedAttn`] under `name`.
pub(crate) fn attention_specs(name: &str, config: &Config) -> [Spec; 2] {
    Spec::linear(name, [1, config.hidden_size], config.initializer_range)
}

/// A way to pool with the parameters it needs.
#[derive(Debug, Clone)]
pub struct Pool {
    pooling: Pooling,
    learned: Option<Linear>,
}

impl Pool {
    /// Pools in the given way; `attention` names the parameters of [`Pooling::LearnedAttn`].
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(pooling: Pooling, params: &Params, attention: &str) -> Result<Self> {
        let learned = match pooling {
            Pooling::LearnedAttn => Some(Linear::new(params, attention)?),
            Pooling::LearnedPooler => Some(Linear::new(params, POOLER)?),
            Pooling::Cls | Pooling::Mean | Pooling::Max => None,
        };
        Ok(Pool { pooling, learned })
    }

    /// The tokens of `rows` that it reads, if that is the first of each; none if it reads all.
    #[must_use]
    pub fn reads(&self, rows: &[Span]) -> Option<Vec<u32>> {
        let of_first = matches!(self.pooling, Pooling::Cls | Pooling::LearnedPooler);
        if of_first { rows.iter().map(|row| u32::try_from(row.start).ok()).collect() } else { None }
    }

    /// One vector for each of the `rows` of `x_nd`: `[b, d]`, in f32 at least.
    ///
    /// # Errors
    /// When a row lies outside `x_nd`.
    pub fn forward(&self, x_nd: &Tensor, rows: &[Span]) -> Result<Tensor> {
        let x_nd = &at_least_single(x_nd)?;
        match (self.pooling, &self.learned) {
            (Pooling::Mean, _) => mean(x_nd, rows),
            (Pooling::Max, _) => maximum(x_nd, rows),
            (Pooling::LearnedAttn, Some(score)) => weighted(x_nd, rows, score),
            (_, None) => first(x_nd, rows),
            (_, Some(pooler)) => pooler.forward(&first(x_nd, rows)?)?.tanh(),
        }
    }
}

fn first(x_nd: &Tensor, rows: &[Span]) -> Result<Tensor> {
    let starts: Vec<i64> = rows.iter().map(|row| row.start as i64).collect();
    x_nd.index_select(&Tensor::new(starts.as_slice(), x_nd.device())?, 0)
}

fn mean(x_nd: &Tensor, rows: &[Span]) -> Result<Tensor> {
    let grid = Grid::new(rows, x_nd)?;
    let weights_bt = softmax(&grid.padding_bt)?;
    weigh(&grid.spread(x_nd)?, &weights_bt)
}

fn weighted(x_nd: &Tensor, rows: &[Span], score: &Linear) -> Result<Tensor> {
    let grid = Grid::new(rows, x_nd)?;
    let score_bt = grid.spread(&score.forward(x_nd)?)?.squeeze(2)?;
    let weights_bt = softmax(&(score_bt + &grid.padding_bt)?)?;
    weigh(&grid.spread(x_nd)?, &weights_bt)
}

fn weigh(x_btd: &Tensor, weights_bt: &Tensor) -> Result<Tensor> {
    weights_bt.unsqueeze(1)?.matmul(x_btd)?.squeeze(1)
}

fn maximum(x_nd: &Tensor, rows: &[Span]) -> Result<Tensor> {
    let grid = Grid::new(rows, x_nd)?;
    let x_btd = grid.spread(x_nd)?;
    let padded_btd = x_btd.detach().broadcast_add(&grid.padding_bt.unsqueeze(D::Minus1)?)?;
    // Through the place of the maximum: candle's own maximum hands the whole gradient to each of several equal numbers.
    let place_b1d = padded_btd.argmax_keepdim(1)?;
    x_btd.gather(&place_b1d, 1)?.squeeze(1)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::super::config::tests::tiny;
    use super::*;
    use crate::nn::check::{distance, gradients, randn};

    const ROWS: [Span; 2] = [Span { start: 1, len: 3 }, Span { start: 4, len: 1 }];

    fn pool(pooling: Pooling) -> Pool {
        let specs = [pooler_specs(&tiny()), attention_specs("attn", &tiny())].concat();
        let params = Params::fresh(&specs, 5, &Device::Cpu).unwrap();
        Pool::new(pooling, &params, "attn").unwrap()
    }

    #[test]
    fn each_way_sees_its_row_and_no_other() {
        let x = randn(1, &[5, 16]);
        for pooling in Pooling::ALL {
            let alone =
                pool(pooling).forward(&x.narrow(0, 1, 3).unwrap(), &[Span { start: 0, len: 3 }]).unwrap();
            let both = pool(pooling).forward(&x, &ROWS).unwrap();
            assert!(distance(&both.narrow(0, 0, 1).unwrap(), &alone) < 1e-6, "{pooling:?}");
            gradients(|a| pool(pooling).forward(&a[0], &ROWS), &[x.narrow(1, 0, 16).unwrap()], 1e-3, 2e-2);
        }
    }

    #[test]
    fn mean_and_maximum_are_what_they_say() {
        let x = Tensor::new(&[[9.0_f32, 9.0], [1.0, 4.0], [2.0, -6.0]], &Device::Cpu).unwrap();
        let row = [Span { start: 1, len: 2 }];
        assert_eq!(mean(&x, &row).unwrap().to_vec2::<f32>().unwrap(), [[1.5, -1.0]]);
        assert_eq!(maximum(&x, &row).unwrap().to_vec2::<f32>().unwrap(), [[2.0, 4.0]]);
        assert_eq!(x.dtype(), DType::F32);
    }
}
