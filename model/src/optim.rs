//! How gradients become updates.

pub mod adamw;
pub mod bert;
pub mod chosen;
pub mod clip;
pub mod head_mask;
pub(crate) mod moments;
pub mod schedule;
