//! Batches in, transformer weights and numbers out.
//!
//! # Letters behind tensor names
//! A tensor's name ends in its axes, so that `q_bhtk` is `[batch, heads, positions, head width]`:
//!
//! | letter | axis | | letter | axis |
//! |---|---|---|---|---|
//! | `b` | rows of a batch | | `h` | attention heads |
//! | `t` | positions in a row, padding included | | `k` | width of one head, `d / h` |
//! | `n` | real tokens of all rows, one row after the other | | `i` | width of the feed-forward layer |
//! | `d` | hidden width | | `l` | encoder layers |
//! | `m` | positions or rows that are asked about | | `v`, `c` | vocabulary, classes |
//! | `s` | samples of all batches | | | |
//!
//! # Among candle's own
//! `examples/candle_ops.rs` has layer normalisation, GELU and attention as operations in a model of candle's; `examples/candle_nn.rs` trains the encoder beneath a layer of
//! candle-nn, by its loss and its optimiser.
//!
//! # Padding
//! Activations are stored without padding but such as is to be read (`x_nd`): a row of a batch is a [`encoder::tokens::Span`] of it.

pub mod attention;
pub mod checkpoint;
#[cfg(feature = "cuda")]
mod cuda;
pub mod device;
pub mod encoder;
mod error;
pub mod eval;
pub mod fill;
pub mod head;
pub mod nn;
pub mod optim;
pub mod output;
pub mod params;
pub mod predict;
pub mod quirks;
pub mod range;
pub mod train;

pub use error::Error;

/// Where tensors live, and what they are.
pub use candle_core::{Device, Tensor};
