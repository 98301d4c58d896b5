//! Text to token ids: the vocabulary, its training, truncation. Knows no task and no tensor.

pub mod align;
pub mod encode;
mod json;
pub mod rule;
pub mod train;
