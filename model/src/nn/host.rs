//! Views of CPU tensors as plain slices, and the widest instructions of the machine.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Result, Storage, StorageRef, Tensor};
use pulp::Arch;
#[cfg(target_arch = "x86_64")]
use pulp::x86::V4;
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator, ParallelSliceMut};

/// Rows that one thread works on at a time. Sums over rows add up blocks of this many in order, whatever the number
/// of threads.
pub(crate) const BLOCK: usize = 64;

/// The numbers behind a contiguous CPU tensor in f32, without a copy.
pub(crate) struct Host<'a> {
    storage: StorageRef<'a>,
    range: Range<usize>,
}

impl<'a> Host<'a> {
    pub(crate) fn of(tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        Ok(Host { range: contiguous(layout)?, storage })
    }

    pub(crate) fn get(&self) -> Result<&[f32]> {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(values)) => Ok(&values[self.range.clone()]),
            _ => candle_core::bail!("expected f32 numbers in main memory"),
        }
    }
}

/// A tensor as it is now, contiguous in main memory, where it costs no copy if it is so already. A device is waited for.
pub(crate) fn on_cpu(tensor: &Tensor) -> Result<Tensor> {
    #[cfg(test)]
    READS.with(|reads| reads.set(reads.get() + 1));
    tensor.detach().to_device(&Device::Cpu)?.contiguous()
}

#[cfg(test)]
thread_local! {
    static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How often this thread has called [`on_cpu`].
#[cfg(test)]
pub(crate) fn reads_here() -> usize {
    READS.with(std::cell::Cell::get)
}

/// Runs `f` on the numbers of a contiguous CPU tensor in f32, which it may change.
pub(crate) fn edit(tensor: &Tensor, f: impl FnOnce(&mut [f32]) -> Result<()> + Send) -> Result<()> {
    struct Edit<F>(Mutex<Option<F>>);
    impl<F: FnOnce(&mut [f32]) -> Result<()> + Send> InplaceOp1 for Edit<F> {
        fn name(&self) -> &'static str {
            "edit"
        }

        fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
            let range = contiguous(layout)?;
            let f = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (storage, f) {
                (CpuStorage::F32(values), Some(f)) => f(&mut values[range]),
                _ => candle_core::bail!("expected f32 numbers in main memory"),
            }
        }
    }
    tensor.inplace_op1(&Edit(Mutex::new(Some(f))))
}

/// The numbers behind one argument of a custom operation.
pub(crate) fn read<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        CpuStorage::F32(values) => Ok(&values[contiguous(layout)?]),
        _ => candle_core::bail!("expected f32 numbers"),
    }
}

pub(crate) fn contiguous(layout: &Layout) -> Result<Range<usize>> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(start..end),
        None => candle_core::bail!("expected contiguous numbers, got {layout:?}"),
    }
}

/// Runs plain loops compiled for the widest instructions of this machine. Only code that is inlined profits, so that the three macros mark the closures that
/// they make; a loop whose body is long stands there as a `for`, not as a closure of an iterator, which may be left outside.
macro_rules! wide {
    ($body:expr) => {
        $crate::nn::run_wide(
            #[inline(always)]
            || $body,
        )
    };
}

/// `fill_rows!(out, width, |first_row, block| ...)` fills `out` row block by row block, each of at most [`BLOCK`] rows of `width` numbers, by [`wide`] code.
macro_rules! fill_rows {
    ($out:expr, $width:expr, |$first:pat_param, $block:pat_param| $body:expr) => {
        $crate::nn::fill_blocks(
            $out,
            $width,
            #[inline(always)]
            |$first, $block| $body,
        )
    };
}

/// `sum_rows!(rows, width, |row, sum| ...)` sums a vector of `width` numbers over `rows` rows by [`wide`] code: blocks in parallel, then one after the other.
/// The body adds the contribution of one row.
macro_rules! sum_rows {
    ($rows:expr, $width:expr, |$row:pat_param, $sum:pat_param| $body:expr) => {
        $crate::nn::sum_blocks(
            $rows,
            $width,
            #[inline(always)]
            |$row, $sum| $body,
        )
    };
}

pub(crate) use {fill_rows, sum_rows, wide};

/// What [`wide`] does; `op` is to be inlined.
#[inline(always)]
pub(crate) fn run_wide<R>(op: impl FnOnce() -> R) -> R {
    arch().dispatch(op)
}

static ARCH: OnceLock<Arch> = OnceLock::new();

/// The vector instructions that loops use: the widest of this machine, but for [`keep_to`].
#[inline]
pub(crate) fn arch() -> Arch {
    *ARCH.get_or_init(Arch::new)
}

/// Loops use `arch` from here on. False where they use others already.
#[cfg(target_arch = "x86_64")]
pub(crate) fn keep_to(arch: Arch) -> bool {
    ARCH.set(arch).is_ok()
}

/// AVX-512, where loops use it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx512() -> Option<V4> {
    match arch() {
        Arch::V4(simd) => Some(simd),
        _ => None,
    }
}

/// What [`fill_rows`] does; `fill` is to be inlined.
pub(crate) fn fill_blocks(out: &mut [f32], width: usize, fill: impl Fn(usize, &mut [f32]) + Sync) {
    out.par_chunks_mut(width * BLOCK).enumerate().for_each(|(i, block)| wide!(fill(i * BLOCK, block)));
}

/// What [`sum_rows`] does; `add` is to be inlined.
pub(crate) fn sum_blocks(rows: usize, width: usize, add: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let blocks: Vec<Vec<f32>> = (0..rows.div_ceil(BLOCK))
        .into_par_iter()
        .map(|i| {
            let mut sum = vec![0.0; width];
            wide!({
                for row in i * BLOCK..rows.min((i + 1) * BLOCK) {
                    add(row, &mut sum);
                }
            });
            sum
        })
        .collect();
    let mut total = vec![0.0; width];
    for block in &blocks {
        total.iter_mut().zip(block).for_each(|(t, b)| *t += b);
    }
    total
}
