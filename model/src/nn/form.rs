//! Where the operations written by hand apply, and in which precision others compute.

use candle_core::{DType, Result, Tensor};

/// Whether an operation on this tensor is one pass over the memory with a backward written by hand: in f32 on the CPU. Elsewhere it is composed of candle's own
/// differentiable operations.
pub(crate) fn fused(tensor: &Tensor) -> bool {
    tensor.device().is_cpu() && tensor.dtype() == DType::F32
}

/// Whether an operation that has kernels takes this tensor there: f32 on CUDA, the numbers of its last axis a multiple of 4.
pub(crate) fn by_kernels(tensor: &Tensor) -> bool {
    let fits = tensor.dims().last().is_some_and(|width| width.is_multiple_of(4) && *width <= 1024);
    cfg!(feature = "cuda") && tensor.device().is_cuda() && tensor.dtype() == DType::F32 && fits
}

/// The same numbers in f32 if they have fewer digits. Differentiable; the gradient comes in the type of `x`.
pub(crate) fn at_least_single(x: &Tensor) -> Result<Tensor> {
    if matches!(x.dtype(), DType::BF16 | DType::F16) { x.to_dtype(DType::F32) } else { Ok(x.clone()) }
}

/// What `f` makes of `x` when it computes in f32 at least, in the type of `x`.
pub(crate) fn in_single(x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    f(&at_least_single(x)?)?.to_dtype(x.dtype())
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::nn::check::{numbers, randn};

    #[test]
    fn few_digits_are_computed_with_many_and_come_back() {
        let x = Var::from_tensor(&randn(1, &[50]).to_dtype(DType::BF16).unwrap()).unwrap();
        let y = in_single(&x, |x| {
            assert_eq!(x.dtype(), DType::F32);
            x.sin()
        })
        .unwrap();
        assert_eq!(y.dtype(), DType::BF16);
        let grads = y.sum_all().unwrap().backward().unwrap();
        let grad = grads.get(&x).unwrap();
        assert_eq!(grad.dtype(), DType::BF16);
        for (x, g) in numbers(&x).iter().zip(numbers(grad)) {
            assert!((x.cos() - g).abs() <= x.cos().abs() / 256.0, "{x} {g}");
        }
        for dtype in [DType::F32, DType::F64] {
            assert_eq!(at_least_single(&randn(1, &[2]).to_dtype(dtype).unwrap()).unwrap().dtype(), dtype);
        }
    }
}
