//! Adds one vector to every row.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::form::{fused, in_single};
use super::host::{Host, fill_rows, read, sum_rows};

/// `x_nd + bias_d`, differentiable in both.
///
/// # Errors
/// When the shapes do not fit.
pub fn add_bias(x_nd: &Tensor, bias_d: &Tensor) -> Result<Tensor> {
    in_single(x_nd, |x_nd| {
        if fused(x_nd) { x_nd.contiguous()?.apply_op2(bias_d, AddBias) } else { x_nd.broadcast_add(bias_d) }
    })
}

struct AddBias;

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, bias) = (read(x, lx)?, read(b, lb)?);
        let d = bias.len();
        if lx.dims().last() != Some(&d) {
            candle_core::bail!("bias of {d} numbers on rows of shape {:?}", lx.dims());
        }
        let mut y = vec![0.0; x.len()];
        fill_rows!(&mut y, d, |first, block| {
            for (y, x) in block.chunks_exact_mut(d).zip(x[first * d..].chunks_exact(d)) {
                y.iter_mut().zip(x.iter().zip(bias)).for_each(|(y, (x, b))| *y = x + b);
            }
        });
        Ok((CpuStorage::F32(y), lx.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        let d = bias.elem_count();
        let host = Host::of(&grad)?;
        let g = host.get()?;
        let sum = sum_rows!(g.len() / d, d, |row, sum| {
            sum.iter_mut().zip(&g[row * d..]).for_each(|(s, g)| *s += g);
        });
        let grad_bias = Tensor::from_vec(sum, bias.shape(), bias.device())?;
        drop(host);
        Ok((Some(grad), Some(grad_bias)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{forms_agree, gradients, randn};
    use super::*;

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| add_bias(&a[0], &a[1]), &[randn(1, &[130, 3]), randn(2, &[3])], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        let at = [randn(1, &[130, 3]), randn(2, &[3])];
        gradients(|a| add_bias(&a[0], &a[1])?.sqr(), &at, 1e-2, 2e-2);
    }
}
