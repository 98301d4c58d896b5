//! MT-BERT's order of tasks: the batches of all tasks, shuffled together (paper 003, algorithm 1).

use base::rng::RngKey;

/// The task of each step of an epoch.
#[must_use]
pub fn epoch(batches: &[u64], seed: RngKey) -> Vec<u32> {
    let each = (0_u32..).zip(batches);
    let mut turns: Vec<u32> = each
        .flat_map(|(task, &count)| std::iter::repeat_n(task, usize::try_from(count).unwrap_or(0)))
        .collect();
    seed.named("merged").shuffle(&mut turns);
    turns
}
