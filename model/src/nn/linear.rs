//! A matrix product and a bias. Knows no layer that it is part of.

use candle_core::{Result, Tensor};

use super::bias::add_bias;
use crate::params::Params;

/// `y_no = x_ni W_oi^T + b_o`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight_oi: Tensor,
    bias_o: Tensor,
}

impl Linear {
    /// The layer whose parameters are `name.weight` `[o, i]` and `name.bias` `[o]`.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(params: &Params, name: &str) -> Result<Self> {
        Ok(Linear {
            weight_oi: params.get(&format!("{name}.weight"))?,
            bias_o: params.get(&format!("{name}.bias"))?,
        })
    }

    /// Weight `[o, i]` and bias `[o]`.
    pub(crate) fn parameters(&self) -> [&Tensor; 2] {
        [&self.weight_oi, &self.bias_o]
    }

    /// Applies the layer to every row of `x_ni`.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward(&self, x_ni: &Tensor) -> Result<Tensor> {
        linear(x_ni, &self.weight_oi, &self.bias_o)
    }

    /// Several layers over the same input as one product: their outputs stand side by side in each row.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward_together(layers: [&Self; 3], x_ni: &Tensor) -> Result<Tensor> {
        let weight_oi = Tensor::cat(&layers.map(|l| &l.weight_oi), 0)?;
        let bias_o = Tensor::cat(&layers.map(|l| &l.bias_o), 0)?;
        linear(x_ni, &weight_oi, &bias_o)
    }
}

/// `x_ni W_oi^T + b_o`. The product is computed in the numbers of `x_ni`, to which the weight is rounded; its gradient comes as the weight is.
///
/// # Errors
/// When the shapes do not fit.
pub fn linear(x_ni: &Tensor, weight_oi: &Tensor, bias_o: &Tensor) -> Result<Tensor> {
    let weight_oi = weight_oi.to_dtype(x_ni.dtype())?;
    add_bias(&x_ni.matmul(&weight_oi.t()?)?, bias_o)
}

#[cfg(test)]
mod tests {
    use super::super::check::{distance, forms_agree, gradients, randn};
    use super::*;

    #[test]
    fn forms_agree_in_values_and_gradients() {
        let at = [randn(1, &[40, 5]), randn(2, &[3, 5]), randn(3, &[3])];
        forms_agree(|a| linear(&a[0], &a[1], &a[2]), &at, 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let at = [randn(1, &[4, 5]), randn(2, &[3, 5]), randn(3, &[3])];
        gradients(|a| linear(&a[0], &a[1], &a[2]), &at, (1e-2, 5e-3));
    }

    #[test]
    fn together_is_side_by_side() {
        let layer = |s| Linear { weight_oi: randn(s, &[2, 5]), bias_o: randn(s + 9, &[2]) };
        let (a, b, c, x) = (layer(1), layer(2), layer(3), randn(4, &[6, 5]));
        let apart = [&a, &b, &c].map(|l| l.forward(&x).unwrap());
        let together = Linear::forward_together([&a, &b, &c], &x).unwrap();
        assert!(distance(&together, &Tensor::cat(&apart, 1).unwrap()) < 1e-6);
    }
}
