//! Which form an operation takes where, and in which precision it computes.

use candle_core::{DType, Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::device::ActivationDtype;

/// How an operation is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// One pass over the memory with a backward written by hand: f32 on the CPU.
    Fused,
    /// Candle's own differentiable operations one after the other: other devices and number types.
    Composed,
}

/// The numbers in which an operation computes.
#[derive(Debug, Clone, Copy)]
enum Precision {
    /// f32, whatever the activations are.
    Single,
    /// Those of the activations.
    Activations,
}

/// The operations of this crate that have two forms.
const OPERATIONS: [(&str, Precision); 19] = [
    ("adamw", Precision::Single),
    ("attention", Precision::Activations),
    ("bert_optimiser", Precision::Single),
    ("bias", Precision::Single),
    ("binary_cross_entropy", Precision::Single),
    ("cross_entropy", Precision::Single),
    ("embedding", Precision::Single),
    ("encoder_layer", Precision::Activations),
    ("gates", Precision::Single),
    ("gelu", Precision::Single),
    ("gradient_norm", Precision::Single),
    ("group_cross_entropy", Precision::Single),
    ("head_mask", Precision::Single),
    ("kam_attention", Precision::Activations),
    ("label_attention", Precision::Activations),
    ("layer_norm", Precision::Single),
    ("linear", Precision::Activations),
    ("softmax", Precision::Single),
    ("squared_error", Precision::Single),
];

impl Form {
    /// The form of operations on tensors of this kind: what every operation asks.
    fn of(device: &Device, dtype: DType) -> Self {
        if device.is_cpu() && dtype == DType::F32 { Form::Fused } else { Form::Composed }
    }
}

/// The form that each operation takes on a device when activations are of this number type, by name.
#[must_use]
pub fn forms(device: &Device, number: ActivationDtype) -> Vec<(&'static str, Form)> {
    let dtype = |precision| match precision {
        Precision::Single => DType::F32,
        Precision::Activations => number.dtype(),
    };
    OPERATIONS.iter().map(|(name, precision)| (*name, Form::of(device, dtype(*precision)))).collect()
}

/// Whether the operations written by hand apply to this tensor.
pub(crate) fn fused(tensor: &Tensor) -> bool {
    Form::of(tensor.device(), tensor.dtype()) == Form::Fused
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
    fn forms_follow_device_and_number() {
        let on_cpu = |number| forms(&Device::Cpu, number);
        assert!(on_cpu(ActivationDtype::F32).iter().all(|(_, form)| *form == Form::Fused));
        let composed: Vec<_> =
            on_cpu(ActivationDtype::Bf16).into_iter().filter(|(_, form)| *form == Form::Composed).collect();
        assert_eq!(
            composed.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["attention", "encoder_layer", "kam_attention", "label_attention", "linear"]
        );
        assert!(OPERATIONS.is_sorted_by(|a, b| a.0 < b.0));
    }

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
