//! Where work of many parallel loops is done.

use candle_core::Device;

/// Does `work` on a thread of the pool, if the CPU computes it.
///
/// A thread that is not of the pool hands each parallel loop to it, sleeps until the loop is done and is woken again: some hundred times in a training step,
/// which took 3 to 5 % of it. Work that waits for other threads than those of its own loops is not for the pool, which it would hold up.
pub(crate) fn in_pool<T: Send>(device: &Device, work: impl FnOnce() -> T + Send) -> T {
    if device.is_cpu() { rayon::scope(|_| work()) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_for_the_cpu_is_done_in_the_pool_and_gives_what_it_made() {
        assert!(rayon::current_thread_index().is_none());
        assert!(in_pool(&Device::Cpu, rayon::current_thread_index).is_some());
        // From within it is done at once.
        let inner = in_pool(&Device::Cpu, || in_pool(&Device::Cpu, rayon::current_thread_index));
        assert!(inner.is_some());
    }
}
