//! The position-wise feed-forward network of a layer.

use candle_core::{Result, Tensor};

use super::config::Config;
use crate::nn::gelu::gelu;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec};

/// `GELU(x W1 + b1) W2 + b2`.
#[derive(Debug, Clone)]
pub struct FeedForward {
    widen: Linear,
    narrow: Linear,
}

impl FeedForward {
    pub(crate) fn specs(config: &Config, prefix: &str) -> Vec<Spec> {
        let (d, i, std) = (config.hidden_size, config.intermediate_size, config.initializer_range);
        let [widen, narrow] = names(prefix);
        [Spec::linear(&widen, [i, d], std), Spec::linear(&narrow, [d, i], std)].concat()
    }

    pub(crate) fn new(params: &Params, prefix: &str) -> Result<Self> {
        let [widen, narrow] = names(prefix);
        Ok(FeedForward { widen: Linear::new(params, &widen)?, narrow: Linear::new(params, &narrow)? })
    }

    /// The layers that widen and narrow.
    pub(crate) fn linears(&self) -> [&Linear; 2] {
        [&self.widen, &self.narrow]
    }

    pub(crate) fn forward(&self, x_nd: &Tensor) -> Result<Tensor> {
        let x_ni = gelu(&self.widen.forward(x_nd)?)?;
        self.narrow.forward(&x_ni)
    }
}

fn names(prefix: &str) -> [String; 2] {
    ["intermediate.dense", "output.dense"].map(|name| format!("{prefix}.{name}"))
}
