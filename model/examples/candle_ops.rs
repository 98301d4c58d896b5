//! Operations of this crate among candle's own: layer normalisation, GELU and attention over rows of different lengths, each one pass with a gradient.
//!
//! ```text
//! cargo run --release -p engraft-model --example candle_ops
//! ```
//!
//! On the CPU in f32 each is one loop over the memory; on CUDA (`--features cuda`) a kernel. A model built of them is candle's: variables, a graph, its
//! backward pass.

#![allow(clippy::print_stdout, reason = "an example says what it found")]

use candle_core::{DType, Device, Result, Tensor, Var};
use model::nn::gelu::gelu;
use model::nn::layer_norm::layer_norm;
use model::nn::varlen::attention;

/// Three rows of 5, 2 and 9 tokens, without padding.
const LENGTHS: [usize; 3] = [5, 2, 9];
const D: usize = 32;
const HEADS: usize = 4;

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let n = LENGTHS.iter().sum::<usize>();
    let x_nd = Tensor::randn(0.0_f32, 1.0, (n, D), &device)?;
    let weight = Var::randn(0.0_f32, 0.2, (D, 3 * D), &device)?;
    let gain = Var::ones(D, DType::F32, &device)?;
    let shift = Var::zeros(D, DType::F32, &device)?;

    let normed_nd = layer_norm(&x_nd, [gain.as_tensor(), shift.as_tensor()], 1e-12)?;
    let qkv_n3d = normed_nd.matmul(weight.as_tensor())?;
    let context_nd = attention(&qkv_n3d, &LENGTHS, HEADS)?;
    let loss = gelu(&context_nd)?.sqr()?.mean_all()?;

    let gradients = loss.backward()?;
    println!("loss {} on {device:?}", loss.to_scalar::<f32>()?);
    for (name, variable) in [("weight", &weight), ("gain", &gain), ("shift", &shift)] {
        let Some(gradient) = gradients.get(variable) else { candle_core::bail!("{name} has no gradient") };
        let norm = gradient.sqr()?.sum_all()?.sqrt()?.to_scalar::<f32>()?;
        println!("{name}: gradient of shape {:?}, norm {norm:.4}", gradient.dims());
    }
    Ok(())
}
