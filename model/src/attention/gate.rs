//! The gates of attention heads, with their gradients: the xi of KIMERA, equation 1.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use crate::nn::{Host, fill_rows, fused, in_single, read, sum_rows, sum2};

/// Multiplies the context of each head by its gate (KIMERA, equation 1): `gates_nh` has one row for all tokens, or one for each.
///
/// # Errors
/// When the heads do not divide the width, or there are neither one nor `n` rows of gates.
pub fn gate(context_nd: &Tensor, gates_nh: &Tensor) -> Result<Tensor> {
    let (rows, heads) = gates_nh.dims2()?;
    let (n, d) = context_nd.dims2()?;
    if !d.is_multiple_of(heads) || (rows != 1 && rows != n) {
        candle_core::bail!("{rows} rows of {heads} gates on {n} contexts of width {d}");
    }
    in_single(context_nd, |context_nd| {
        if fused(context_nd) {
            return context_nd.contiguous()?.apply_op2(&gates_nh.contiguous()?, Gate);
        }
        let context_nhk = context_nd.reshape((n, heads, ()))?;
        context_nhk.broadcast_mul(&gates_nh.unsqueeze(2)?)?.reshape(context_nd.shape())
    })
}

/// Multiplies rows of contexts `d` wide, the first of which is that of token `first`, by their gates: one row of so many heads for all tokens, or
/// one for each.
#[inline(always)]
pub(crate) fn scale_rows(rows: &mut [f32], d: usize, first: usize, gates: &[f32], heads: usize) {
    for (token, row) in (first..).zip(rows.chunks_exact_mut(d)) {
        let start = if gates.len() == heads { 0 } else { token * heads };
        let gates = &gates[start..start + heads];
        for (context, gate) in row.chunks_exact_mut(d / heads).zip(gates) {
            context.iter_mut().for_each(|x| *x *= gate);
        }
    }
}

/// The gradients of the gates of some tokens, a row of `heads` each, out of their contexts and the gradients of what they were scaled to.
#[inline(always)]
pub(crate) fn gradient_rows(gates: &mut [f32], heads: usize, [contexts, gradients]: [&[f32]; 2]) {
    let d = contexts.len() / (gates.len() / heads).max(1);
    let rows = contexts.chunks_exact(d.max(1)).zip(gradients.chunks_exact(d.max(1)));
    for (gates, (x, dy)) in gates.chunks_exact_mut(heads).zip(rows) {
        let each = x.chunks_exact(d / heads).zip(dy.chunks_exact(d / heads));
        gates.iter_mut().zip(each).for_each(|(gate, (x, dy))| *gate = sum2(x, dy, |x, dy| x * dy));
    }
}

/// The operation on f32 slices.
struct Gate;

impl CustomOp2 for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        g: &CpuStorage,
        lg: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, g, (_, d), (_, h)) = (read(x, lx)?, read(g, lg)?, lx.shape().dims2()?, lg.shape().dims2()?);
        let mut y = x.to_vec();
        fill_rows!(&mut y, d, |first, block| scale_rows(block, d, first, g, h));
        Ok((CpuStorage::F32(y), lx.shape().clone()))
    }

    fn bwd(
        &self,
        x_nd: &Tensor,
        gates_nh: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        // y = g x for each number x of a head: dx = g dy, and dg = sum of x dy over the head, and over the tokens that share the gate.
        let d_context = gate(&grad.contiguous()?, &gates_nh.detach())?;
        if !gates_nh.track_op() {
            return Ok((Some(d_context), None));
        }
        let ((n, d), (rows, h), grad) = (x_nd.dims2()?, gates_nh.dims2()?, grad.contiguous()?);
        let (x, dy) = (Host::of(x_nd)?, Host::of(&grad)?);
        let (x, dy) = (x.get()?, dy.get()?);
        let mut each = vec![0.0; n * h];
        fill_rows!(&mut each, h, |first, block| {
            let rows = first * d..first * d + block.len() / h * d;
            gradient_rows(block, h, [&x[rows.clone()], &dy[rows]]);
        });
        let shared = rows == 1 && n != 1;
        let d_gates = if shared {
            sum_rows!(n, h, |row, sum| sum.iter_mut().zip(&each[row * h..]).for_each(|(s, g)| *s += g))
        } else {
            each
        };
        Ok((Some(d_context), Some(Tensor::from_vec(d_gates, (rows, h), gates_nh.device())?)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::nn::check::{forms_agree, gradients, randn};

    #[test]
    fn forms_agree_in_values_and_gradients() {
        for rows in [1, 70] {
            forms_agree(|a| gate(&a[0], &a[1]), &[randn(1, &[70, 6]), randn(2, &[rows, 2])], 1e-5);
        }
    }

    #[test]
    fn gates_scale_heads_and_get_gradients() {
        for rows in [1, 5] {
            let (x, gates) = (randn(1, &[5, 6]), randn(2, &[rows, 2]));
            let gated = gate(&x, &gates).unwrap().to_vec2::<f32>().unwrap();
            let (x0, g) = (x.to_vec2::<f32>().unwrap(), gates.to_vec2::<f32>().unwrap());
            assert_eq!(gated[4][2], x0[4][2] * g[rows - 1][0]);
            assert_eq!(gated[4][3], x0[4][3] * g[rows - 1][1]);
            let both = [x, gates];
            gradients(|a| gate(&a[0], &a[1]), &both, 1e-2, 5e-3);
            let exact = both.each_ref().map(|t| t.to_dtype(DType::F64).unwrap());
            gradients(|a| gate(&a[0], &a[1]), &exact, 1e-5, 1e-7);
        }
        let text = gate(&randn(1, &[5, 6]), &randn(2, &[3, 2])).unwrap_err().to_string();
        assert!(text.contains("3 rows of 2 gates on 5 contexts of width 6"), "{text}");
    }
}
