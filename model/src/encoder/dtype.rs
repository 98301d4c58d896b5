//! The activation dtype of an encoder.

use candle_core::{Result, Tensor};

use super::Encoder;
use crate::device::ActivationDtype;
use crate::nn::fused;
use crate::nn::product::Rounding;

impl Encoder {
    /// The same encoder, sharing its parameters, with layers in this dtype: on the CPU, bf16 is what the factors of their matrix products are rounded to, and what
    /// lies between them is f32; elsewhere activations are bf16. Parameters stay f32 and so do their gradients.
    #[must_use]
    pub fn with_dtype(mut self, dtype: ActivationDtype) -> Self {
        let rounding = match dtype {
            ActivationDtype::F32 | ActivationDtype::Tf32 => Rounding::None,
            ActivationDtype::Bf16 => Rounding::Bf16,
        };
        self.layers = self.layers.into_iter().map(|layer| layer.rounded(rounding)).collect();
        Encoder { dtype, ..self }
    }
}

/// Activations of this dtype. What comes is f32, or of more digits, which are kept where f32 is asked for.
pub(super) fn rounded(x_nd: Tensor, dtype: ActivationDtype) -> Result<Tensor> {
    match dtype {
        // Layers that are one operation round for themselves.
        ActivationDtype::Bf16 if !fused(&x_nd) => x_nd.to_dtype(dtype.dtype()),
        ActivationDtype::F32 | ActivationDtype::Tf32 | ActivationDtype::Bf16 => Ok(x_nd),
    }
}

#[cfg(test)]
mod tests;
