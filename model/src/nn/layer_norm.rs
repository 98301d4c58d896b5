//! Layer normalisation (Ba et al. 2016) with its gradient.

use candle_core::{CpuStorage, CustomOp3, D, Device, Layout, Result, Shape, Tensor};
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut};

use super::form::{by_kernels, fused, in_single};
use super::host::{BLOCK, Host, fill_rows, read, wide};
use super::math::{single, sum, sum2};
use crate::params::Params;

/// The gain, bias and epsilon of one normalisation over the last axis.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    gain_d: Tensor,
    bias_d: Tensor,
    epsilon: f64,
}

impl candle_core::Module for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        LayerNorm::forward(self, x)
    }
}

impl LayerNorm {
    /// The layer whose parameters are `name.weight` (gain) and `name.bias`.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(params: &Params, name: &str, epsilon: f64) -> Result<Self> {
        let (gain_d, bias_d) = (params.get(&format!("{name}.weight"))?, params.get(&format!("{name}.bias"))?);
        Ok(LayerNorm { gain_d, bias_d, epsilon })
    }

    /// Gain and bias, both `[d]`.
    pub(crate) fn parameters(&self) -> [&Tensor; 2] {
        [&self.gain_d, &self.bias_d]
    }

    /// What is added to variances.
    pub(crate) fn epsilon(&self) -> f32 {
        single(self.epsilon)
    }

    /// `(x - mean) / sqrt(variance + epsilon) * gain + bias` of every row of `x_nd`.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn forward(&self, x_nd: &Tensor) -> Result<Tensor> {
        layer_norm(x_nd, [&self.gain_d, &self.bias_d], self.epsilon)
    }
}

/// Normalises the rows of `x_nd`; `[gain_d, bias_d]` scale and shift them. Differentiable in all three.
///
/// # Errors
/// When the shapes do not fit.
pub fn layer_norm(x_nd: &Tensor, [gain_d, bias_d]: [&Tensor; 2], epsilon: f64) -> Result<Tensor> {
    in_single(x_nd, |x_nd| {
        if fused(x_nd) || (by_kernels(x_nd) && by_kernels(gain_d)) {
            return x_nd.contiguous()?.apply_op3(gain_d, bias_d, Norm { epsilon: single(epsilon) });
        }
        composed(x_nd, [gain_d, bias_d], epsilon)
    })
}

fn composed(x_nd: &Tensor, [gain_d, bias_d]: [&Tensor; 2], epsilon: f64) -> Result<Tensor> {
    let centred_nd = x_nd.broadcast_sub(&x_nd.mean_keepdim(D::Minus1)?)?;
    let variance_n1 = centred_nd.sqr()?.mean_keepdim(D::Minus1)?;
    let x_hat_nd = centred_nd.broadcast_div(&(variance_n1 + epsilon)?.sqrt()?)?;
    x_hat_nd.broadcast_mul(gain_d)?.broadcast_add(bias_d)
}

/// Normalises the rows of `x` in place, which leaves them without gain and bias; `y` has both. `inverse` is 1 over each row's deviation.
pub(crate) fn normalise([gain, bias]: [&[f32]; 2], epsilon: f32, [x, inverse, y]: [&mut [f32]; 3]) {
    let (d, norm) = (gain.len(), Norm { epsilon });
    wide!({
        let rows = x.chunks_exact_mut(d).zip(y.chunks_exact_mut(d));
        for ((x, y), inverse) in rows.zip(inverse) {
            let (mean, scale) = norm.moments(x);
            *inverse = scale;
            x.iter_mut().for_each(|x| *x = (*x - mean) * scale);
            let x = x.iter().zip(gain.iter().zip(bias));
            y.iter_mut().zip(x).for_each(|(y, (x, (gain, bias)))| *y = x * gain + bias);
        }
    });
}

/// Turns the gradients of rows that [`normalise`] gave into those of the rows that it took; `x_hat` and `inverse` are what it left. The
/// gradients of gain and bias are added to `sums`. The equations are those of [`Norm::backward_block`].
pub(crate) fn normalised_gradient(
    gain: &[f32],
    [x_hat, inverse]: [&[f32]; 2],
    g: &mut [f32],
    [d_gain, d_bias]: [&mut [f32]; 2],
) {
    let d = gain.len();
    wide!({
        for ((g, x_hat), inverse) in g.chunks_exact_mut(d).zip(x_hat.chunks_exact(d)).zip(inverse) {
            d_gain.iter_mut().zip(g.iter().zip(x_hat)).for_each(|(sum, (g, x))| *sum += g * x);
            d_bias.iter_mut().zip(&*g).for_each(|(sum, g)| *sum += g);
            g.iter_mut().zip(gain).for_each(|(g, gain)| *g *= gain);
            let mean = sum(g, |g| g) / d as f32;
            let along = sum2(g, x_hat, |g, x| g * x) / d as f32;
            g.iter_mut().zip(x_hat).for_each(|(g, x)| *g = (*g - mean - x * along) * inverse);
        }
    });
}

struct Norm {
    epsilon: f32,
}

impl Norm {
    /// Mean and 1 / sqrt(variance + epsilon) of one row.
    #[inline(always)]
    fn moments(&self, x: &[f32]) -> (f32, f32) {
        let scale = 1.0 / x.len() as f32;
        let mean = sum(x, |x| x) * scale;
        let variance = sum(x, |x| (x - mean) * (x - mean)) * scale;
        (mean, 1.0 / (variance + self.epsilon).sqrt())
    }

    /// Gradients of one block of rows: `dx` is filled, `sums` (gain, then bias) is added to.
    ///
    /// With x^ = (x - mean) / deviation the normalised row, g the incoming gradient and w = g * gain, which is that of x^:
    /// dx = (w - mean(w) - x^ mean(w x^)) / deviation, dgain = sum g x^, dbias = sum g.
    ///
    /// For dx^_j / dx_i = ([i = j] - 1 / d - x^_i x^_j / d) / deviation: the first term is x itself, the second its share of the mean, the third its
    /// share of the variance, whose derivative by x_i is 2 (x_i - mean) / d.
    #[inline(always)]
    fn backward_block(&self, [x, g, gain]: [&[f32]; 3], dx: &mut [f32], sums: &mut [f32]) {
        let d = gain.len();
        let (d_gain, d_bias) = sums.split_at_mut(d);
        let mut x_hat = vec![0.0; d];
        let mut w = vec![0.0; d];
        for ((x, g), dx) in x.chunks_exact(d).zip(g.chunks_exact(d)).zip(dx.chunks_exact_mut(d)) {
            let (mean, inverse) = self.moments(x);
            x_hat.iter_mut().zip(x).for_each(|(h, x)| *h = (x - mean) * inverse);
            w.iter_mut().zip(g.iter().zip(gain)).for_each(|(w, (g, gain))| *w = g * gain);
            let mean_w = sum(&w, |w| w) / d as f32;
            let mean_wx = sum2(&w, &x_hat, |w, h| w * h) / d as f32;
            for (dx, (w, h)) in dx.iter_mut().zip(w.iter().zip(&x_hat)) {
                *dx = (w - mean_w - h * mean_wx) * inverse;
            }
            d_gain.iter_mut().zip(g.iter().zip(&x_hat)).for_each(|(s, (g, h))| *s += g * h);
            d_bias.iter_mut().zip(g).for_each(|(s, g)| *s += g);
        }
    }
}

impl CustomOp3 for Norm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        gain: &CpuStorage,
        lg: &Layout,
        bias: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, gain, bias) = (read(x, lx)?, read(gain, lg)?, read(bias, lb)?);
        let d = gain.len();
        if lx.dims().last() != Some(&d) || bias.len() != d {
            candle_core::bail!("layer norm of {d} numbers on rows of shape {:?}", lx.dims());
        }
        let mut y = vec![0.0; x.len()];
        fill_rows!(&mut y, d, |first, block| {
            for (y, x) in block.chunks_exact_mut(d).zip(x[first * d..].chunks_exact(d)) {
                let (mean, inverse) = self.moments(x);
                for (y, (x, (gain, bias))) in y.iter_mut().zip(x.iter().zip(gain.iter().zip(bias))) {
                    *y = (x - mean) * inverse * gain + bias;
                }
            }
        });
        Ok((CpuStorage::F32(y), lx.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        lx: &Layout,
        gain: &candle_core::CudaStorage,
        lg: &Layout,
        bias: &candle_core::CudaStorage,
        lb: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let of = crate::cuda::ops::NormOf::new((x, lx), (gain, lg), (bias, lb), self.epsilon)?;
        crate::cuda::ops::layer_norm(&x.device, of, lx.shape())
    }

    fn bwd(
        &self,
        x: &Tensor,
        gain: &Tensor,
        bias: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?;
        #[cfg(feature = "cuda")]
        if x.device().is_cuda() {
            let [dx, d_gain, d_bias] = crate::cuda::ops::layer_norm_gradient(x, gain, &grad, self.epsilon)?;
            return Ok((Some(dx), Some(d_gain), Some(d_bias)));
        }
        let (x_host, g_host, gain_host) = (Host::of(x)?, Host::of(&grad)?, Host::of(gain)?);
        let (x_values, g, gain_values) = (x_host.get()?, g_host.get()?, gain_host.get()?);
        let d = gain_values.len();
        let mut dx = vec![0.0; x_values.len()];
        let sums: Vec<Vec<f32>> = dx
            .par_chunks_mut(d * BLOCK)
            .zip((0..x_values.len().div_ceil(d * BLOCK)).into_par_iter())
            .map(|(dx, i)| {
                let rows = i * d * BLOCK..i * d * BLOCK + dx.len();
                let mut sums = vec![0.0; 2 * d];
                let args = [&x_values[rows.clone()], &g[rows], gain_values];
                wide!(self.backward_block(args, dx, &mut sums));
                sums
            })
            .collect();
        let mut d_gain = vec![0.0; 2 * d];
        for block in &sums {
            d_gain.iter_mut().zip(block).for_each(|(t, s)| *t += s);
        }
        let d_bias = d_gain.split_off(d);
        Ok((
            Some(Tensor::from_vec(dx, x.shape(), &Device::Cpu)?),
            Some(Tensor::from_vec(d_gain, gain.shape(), &Device::Cpu)?),
            Some(Tensor::from_vec(d_bias, bias.shape(), &Device::Cpu)?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::super::check::{distance, forms_agree, gradients, randn};
    use super::*;

    fn arguments(rows: usize, d: usize) -> [Tensor; 3] {
        [randn(1, &[rows, d]), (randn(2, &[d]) + 1.0).unwrap(), randn(3, &[d])]
    }

    #[test]
    fn gradients_are_the_numerical_ones() {
        gradients(|a| layer_norm(&a[0], [&a[1], &a[2]], 1e-12), &arguments(3, 19), 1e-2, 1e-2);
    }

    #[test]
    fn composed_form_has_numerical_gradients_and_the_same_values() {
        let at = arguments(150, 19);
        let exact: Vec<Tensor> = at.iter().map(|t| t.to_dtype(DType::F64).unwrap()).collect();
        let y = layer_norm(&at[0], [&at[1], &at[2]], 1e-12).unwrap();
        let y64 = layer_norm(&exact[0], [&exact[1], &exact[2]], 1e-12).unwrap();
        assert!(distance(&y, &y64) < 2e-5);
        let small = arguments(2, 5).map(|t| t.to_dtype(DType::F64).unwrap());
        gradients(|a| layer_norm(&a[0], [&a[1], &a[2]], 1e-12), &small, 1e-5, 1e-7);
    }

    #[test]
    fn forms_agree_in_values_and_gradients() {
        forms_agree(|a| layer_norm(&a[0], [&a[1], &a[2]], 1e-12), &arguments(150, 19), 1e-4);
    }
}
