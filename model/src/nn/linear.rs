//! A matrix product and a bias.
//!
//! In f32 on the CPU both are one operation, whose gradients go to the parameters without candle's zeros, sums and transposes: the output over
//! a vocabulary has the largest matrices of a model, and most of its time would go into clearing new memory.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::bias::add_bias;
use super::buffers::Buffers;
use super::gradients::{Slot, Tickets};
use super::product::{BLOCK, Left, Out, Packed, Start, multiply, product};
use super::{Host, fused, read, sum_rows};
use crate::params::Params;

/// `y_no = x_ni W_oi^T + b_o`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight_oi: Tensor,
    bias_o: Tensor,
    buffers: Buffers,
}

impl candle_core::Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Linear::forward(self, x)
    }
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
            buffers: params.buffers().clone(),
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
        apply(x_ni, self.parameters(), &self.buffers)
    }

    /// Several layers over the same input as one product: their outputs stand side by side in each row.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward_together(layers: [&Self; 3], x_ni: &Tensor) -> Result<Tensor> {
        let weight_oi = Tensor::cat(&layers.map(|l| &l.weight_oi), 0)?;
        let bias_o = Tensor::cat(&layers.map(|l| &l.bias_o), 0)?;
        apply(x_ni, [&weight_oi, &bias_o], &layers[0].buffers)
    }
}

/// `x_ni W_oi^T + b_o`. The product is computed in the numbers of `x_ni`, to which the weight is rounded; its gradient comes as the weight is.
///
/// # Errors
/// When the shapes do not fit.
pub fn linear(x_ni: &Tensor, weight_oi: &Tensor, bias_o: &Tensor) -> Result<Tensor> {
    apply(x_ni, [weight_oi, bias_o], &Buffers::new())
}

fn apply(x_ni: &Tensor, [weight_oi, bias_o]: [&Tensor; 2], buffers: &Buffers) -> Result<Tensor> {
    if !fused(x_ni) {
        let weight_oi = weight_oi.to_dtype(x_ni.dtype())?;
        return add_bias(&x_ni.matmul(&weight_oi.t()?)?, bias_o);
    }
    let ((_, i), (o, width)) = (x_ni.dims2()?, weight_oi.dims2()?);
    if i != width || bias_o.dims() != [o] {
        candle_core::bail!(
            "weights of shape {:?} and a bias of shape {:?} on rows of {i} numbers",
            weight_oi.dims(),
            bias_o.dims()
        );
    }
    let Tickets { argument_p, slots } = Tickets::new(&[weight_oi, bias_o])?;
    let parameters = [weight_oi.detach().contiguous()?, bias_o.detach().contiguous()?];
    x_ni.contiguous()?.apply_op2(&argument_p, Fused { parameters, slots, buffers: buffers.clone() })
}

/// The operation on f32 slices.
struct Fused {
    parameters: [Tensor; 2],
    slots: Vec<Option<Slot>>,
    buffers: Buffers,
}

impl CustomOp2 for Fused {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, (n, i)) = (read(x, layout)?, layout.shape().dims2()?);
        let hosts = [Host::of(&self.parameters[0])?, Host::of(&self.parameters[1])?];
        let (weight, bias) = (hosts[0].get()?, hosts[1].get()?);
        let o = bias.len();
        let factor = Packed::of_columns(&self.buffers, [i, o], |c| &weight[c * i..][..i]);
        let mut y = vec![0.0; n * o];
        y.par_chunks_mut((BLOCK * o).max(1)).enumerate().for_each(|(at, values)| {
            let left = Left::Rows(&x[at * BLOCK * i..], i);
            multiply(left, &factor, Start::Row(bias), Out { values, stride: o });
        });
        Ok((CpuStorage::F32(y), Shape::from((n, o))))
    }

    fn bwd(
        &self,
        x_ni: &Tensor,
        tickets: &Tensor,
        _: &Tensor,
        grad_no: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad_no = grad_no.contiguous()?;
        let ((n, i), (_, o)) = (x_ni.dims2()?, grad_no.dims2()?);
        let hosts = [Host::of(x_ni)?, Host::of(&grad_no)?, Host::of(&self.parameters[0])?];
        let (x, g, weight) = (hosts[0].get()?, hosts[1].get()?, hosts[2].get()?);
        if let Some(slot) = &self.slots[0] {
            let factor = Packed::of_rows(&self.buffers, [n, i], |row| &x[row * i..][..i]);
            let gradient = product(&self.buffers, Left::Columns(g, o), &factor, o);
            slot.put(gradient.into_tensor(self.parameters[0].shape())?);
        }
        if let Some(slot) = &self.slots[1] {
            let sum =
                sum_rows!(n, o, |row, sum| sum.iter_mut().zip(&g[row * o..]).for_each(|(s, g)| *s += g));
            slot.put(Tensor::from_vec(sum, o, x_ni.device())?);
        }
        let dx = x_ni.track_op().then(|| {
            let factor = Packed::of_rows(&self.buffers, [o, i], |row| &weight[row * i..][..i]);
            let dx = product(&self.buffers, Left::Rows(g, o), &factor, n);
            Tensor::from_vec(dx.to_vec(), (n, i), x_ni.device())
        });
        Ok((dx.transpose()?, tickets.track_op().then(|| tickets.zeros_like()).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

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
        gradients(|a| linear(&a[0], &a[1], &a[2]), &at, 1e-2, 5e-3);
    }

    #[test]
    fn together_is_side_by_side() {
        let layer =
            |s| Linear { weight_oi: randn(s, &[2, 5]), bias_o: randn(s + 9, &[2]), buffers: Buffers::new() };
        let (a, b, c, x) = (layer(1), layer(2), layer(3), randn(4, &[6, 5]));
        let apart = [&a, &b, &c].map(|l| l.forward(&x).unwrap());
        let together = Linear::forward_together([&a, &b, &c], &x).unwrap();
        assert!(distance(&together, &Tensor::cat(&apart, 1).unwrap()) < 1e-6);
    }

    #[test]
    fn both_forms_agree_and_frozen_parts_get_no_gradient() {
        let at = [randn(1, &[70, 33]), randn(2, &[101, 33]), randn(3, &[101])];
        let run = |dtype, tracked: [bool; 3]| {
            let vars = at.each_ref().map(|t| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap());
            let given: Vec<Tensor> = vars
                .iter()
                .zip(tracked)
                .map(|(v, on)| if on { v.as_tensor().clone() } else { v.detach() })
                .collect();
            let y = linear(&given[0], &given[1], &given[2]).unwrap();
            let store = super::super::gradients::gradients(&y.sin().unwrap().sum_all().unwrap()).unwrap();
            (y, vars.map(|var| store.get(&var).cloned()))
        };
        let (exact, expected) = run(DType::F64, [true; 3]);
        for tracked in [[true; 3], [false, true, true], [true, false, false], [true, true, false]] {
            let (y, found) = run(DType::F32, tracked);
            assert!(distance(&y, &exact) < 1e-4);
            for ((found, expected), tracked) in found.iter().zip(&expected).zip(tracked) {
                assert_eq!(found.is_some(), tracked);
                if let (Some(found), Some(expected)) = (found, expected) {
                    assert!(distance(found, expected) < 1e-3, "{}", distance(found, expected));
                }
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let text = linear(&randn(1, &[4, 6]), &randn(2, &[3, 5]), &randn(3, &[3])).unwrap_err().to_string();
        assert!(
            text.contains("weights of shape [3, 5] and a bias of shape [3] on rows of 6 numbers"),
            "{text}"
        );
    }
}
