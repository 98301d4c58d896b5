//! A task drawn by chance in proportion to a root of its size.

use base::exact;
use base::rng::RngKey;

/// The task of one step: task t with a chance in proportion to `batches[t]` to the power of 1 / `temperature`.
#[must_use]
pub fn task(batches: &[u64], temperature: f64, chance: RngKey) -> usize {
    // Shares of the largest, so that no power is beyond what a float holds.
    let most = batches.iter().copied().max().unwrap_or(0).max(1) as f64;
    let weight =
        |&count: &u64| if count == 0 { 0.0 } else { exact::pow(count as f64 / most, 1.0 / temperature) };
    let sum: f64 = batches.iter().map(weight).sum();
    // 53 bits, as many as a float holds exactly.
    let mut left = chance.named("task").below(1 << 53) as f64 / (1_u64 << 53) as f64 * sum;
    let mut last = 0;
    for (task, count) in batches.iter().enumerate().filter(|(_, count)| **count > 0) {
        last = task;
        left -= weight(count);
        if left < 0.0 {
            break;
        }
    }
    last
}
