//! How gradients become updates. Knows no model and no loss.

pub mod adamw;
pub mod bert;
pub mod chosen;
pub mod clip;
pub mod head_mask;
mod moments;
pub mod schedule;
