//! The activation dtype of an encoder.

use candle_core::{Result, Tensor};

use super::Encoder;
use crate::device::ActivationDtype;

impl Encoder {
    /// The same encoder, sharing its parameters, with activations and products of this dtype. Parameters stay f32 and so do their
    /// gradients: a weight is rounded where it is used.
    #[must_use]
    pub fn with_dtype(self, dtype: ActivationDtype) -> Self {
        Encoder { dtype, ..self }
    }
}

/// Activations of this dtype. What comes is f32, or of more digits, which are kept where f32 is asked for.
pub(super) fn rounded(x_nd: Tensor, dtype: ActivationDtype) -> Result<Tensor> {
    match dtype {
        ActivationDtype::F32 | ActivationDtype::Tf32 => Ok(x_nd),
        ActivationDtype::Bf16 => x_nd.to_dtype(dtype.dtype()),
    }
}

#[cfg(test)]
mod tests;
