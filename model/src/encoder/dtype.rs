//! The number type of an encoder's activations.

use candle_core::{Result, Tensor};

use super::Encoder;
use crate::device::Number;

impl Encoder {
    /// The same encoder, sharing its parameters, with activations and products in these numbers. Parameters stay f32 and so do their
    /// gradients: a weight is rounded where it is used.
    #[must_use]
    pub fn with_number(self, number: Number) -> Self {
        Encoder { number, ..self }
    }
}

/// Activations in these numbers. What comes is f32, or of more digits, which are kept where f32 is asked for.
pub(super) fn rounded(x_nd: Tensor, number: Number) -> Result<Tensor> {
    match number {
        Number::F32 => Ok(x_nd),
        Number::Bf16 => x_nd.to_dtype(number.dtype()),
    }
}

#[cfg(test)]
mod tests;
