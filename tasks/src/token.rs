//! Text to token ids: the vocabulary, its training, truncation.

pub mod align;
pub mod bpe;
pub mod encode;
pub mod folder;
mod json;
pub mod placer;
pub mod rule;
mod special;
pub mod train;
