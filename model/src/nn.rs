//! The differentiable layers that candle lacks or leaves without a gradient.
//!
//! On the CPU in f32 each is one pass over the memory with a backward written by hand, in parallel over rows; on CUDA norm, GELU and plain attention are
//! kernels; elsewhere it is composed of candle's own differentiable operations; in bf16, what sums or divides is computed in f32. Both are tested against numerical gradients. Every sum
//! runs in an order that the number of threads does not change, so results are the same bits for any of them.

pub mod bias;
pub mod binary_cross_entropy;
pub mod buffers;
pub mod cross_entropy;
pub mod dropout;
mod form;
pub mod gelu;
pub mod gradients;
pub mod group_cross_entropy;
mod host;
pub mod layer_norm;
pub mod linear;
mod math;
pub mod pair_loss;
pub(crate) mod product;
pub mod scalars;
pub mod softmax;
pub mod squared_error;
mod threads;
pub mod varlen;

pub(crate) use form::{at_least_single, fused, in_single};
#[cfg(test)]
pub(crate) use host::reads_here;
pub(crate) use host::{
    Host, arch, edit, fill_blocks, fill_rows, on_cpu, read, run_wide, sum_blocks, sum_rows, wide,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use host::{avx512, keep_to};
pub(crate) use math::{single, sum2};
pub(crate) use threads::in_pool;

#[cfg(test)]
mod candle_nn_test;
#[cfg(test)]
pub(crate) mod check;
