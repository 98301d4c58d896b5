//! How gradients become updates. Knows no model and no loss.

pub mod adamw;
pub mod clip;
pub mod head_mask;
pub mod schedule;
