//! The Gaussian error linear unit in its exact form, x * Phi(x).

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::form::{by_kernels, fused, in_single};
use super::host::{Host, fill_rows, read, wide};
use super::math::{erf, exp};

/// `0.5 x (1 + erf(x / sqrt 2))` of every number.
///
/// # Errors
/// When the tensor library fails.
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    in_single(x, |x| if fused(x) || by_kernels(x) { x.contiguous()?.apply_op1(Gelu) } else { x.gelu_erf() })
}

/// Turns `x` into GELU's derivatives there; `y` are its values.
pub(crate) fn values_and_slopes(x: &mut [f32], y: &mut [f32]) {
    wide!({
        for (x, y) in x.iter_mut().zip(y) {
            // GELU(x) = x Phi(x), so GELU'(x) = Phi(x) + x phi(x), phi being the normal density. Both from one error function: it is what costs.
            let below = 0.5 * (1.0 + erf(*x * INV_SQRT_2));
            *y = *x * below;
            *x = below + *x * DENSITY * exp(-0.5 * *x * *x);
        }
    });
}

/// Turns `x` into GELU's values there, to the bits of [`values_and_slopes`].
pub(crate) fn in_place(x: &mut [f32]) {
    wide!({
        for x in x {
            *x *= 0.5 * (1.0 + erf(*x * INV_SQRT_2));
        }
    });
}

struct Gelu;

const INV_SQRT_2: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// 1 / sqrt(2 pi), the height of the normal density.
const DENSITY: f32 = 0.398_942_3;
/// Numbers per row when the shape does not matter.
const WIDTH: usize = 64;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, layout)?;
        let mut y = vec![0.0; x.len()];
        fill_rows!(&mut y, WIDTH, |first, block| {
            for (y, &x) in block.iter_mut().zip(&x[first * WIDTH..]) {
                *y = 0.5 * x * (1.0 + erf(x * INV_SQRT_2));
            }
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        crate::cuda::ops::gelu(x, layout)
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        #[cfg(feature = "cuda")]
        if arg.device().is_cuda() {
            return crate::cuda::ops::gelu_gradient(arg, &grad).map(Some);
        }
        let (x, g) = (Host::of(arg)?, Host::of(&grad)?);
        let (x, g) = (x.get()?, g.get()?);
        let mut dx = vec![0.0; x.len()];
        // dx = g (Phi(x) + x phi(x)), as in `values_and_slopes`.
        fill_rows!(&mut dx, WIDTH, |first, block| {
            let start = first * WIDTH;
            for (dx, (&x, &g)) in block.iter_mut().zip(x[start..].iter().zip(&g[start..])) {
                *dx = g * (0.5 * (1.0 + erf(x * INV_SQRT_2)) + x * DENSITY * exp(-0.5 * x * x));
            }
        });
        Ok(Some(Tensor::from_vec(dx, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{distance, forms_agree, gradients, randn};
    use super::*;

    #[test]
    fn values_are_the_exact_ones() {
        let x = (randn(3, &[500]) * 3.0).unwrap();
        assert!(distance(&gelu(&x).unwrap(), &x.gelu_erf().unwrap()) < 1e-6);
    }

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| gelu(&a[0]), &[(randn(1, &[10, 13]) * 3.0).unwrap()], 1e-5);
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| gelu(&a[0]), &[randn(1, &[10, 13])], 1e-2, 5e-3);
    }
}
