//! Numbers that are read soon, brought nearer while others are worked on.

/// Has numbers read into the second-level cache; whoever comes to them does not wait for memory.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "an instruction is asked for by name")]
pub(super) fn fetch(numbers: &[f32]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    const LINE: usize = 16;
    for line in numbers.chunks(LINE) {
        // SAFETY: a hint, which neither reads nor writes, of memory that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn fetch(_: &[f32]) {}
