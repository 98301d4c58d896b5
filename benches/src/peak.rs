//! What the processor can do at most in f32: products added to sums that never leave the registers, in vectors as wide as it has.
//!
//! `peak THREADS` prints one JSON object: the multiplications and additions a second of all threads together, in 10^9, the best of several rounds. No matrix
//! product is faster, whoever wrote it; `benches/model.py` holds training steps against it.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use model::device::vectors;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use serde_json::json;

/// Sums side by side: more than a product takes to be done, times what begins at once; with two more vectors they fit the sixteen registers of AVX2.
const SUMS: usize = 12;
const TURNS: usize = 2_000_000;
const ROUNDS: usize = 9;

struct Sums;

impl WithSimd for Sums {
    /// Operations that were made.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (x, y) = (simd.splat_f32s(black_box(0.999)), simd.splat_f32s(black_box(1e-3)));
        let mut sums = [simd.splat_f32s(black_box(1.0)); SUMS];
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, x, y);
            }
        }
        for sum in sums {
            black_box(sum);
        }
        (2 * SUMS * TURNS * S::F32_LANES) as f64
    }
}

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let threads: usize = arguments.first().ok_or("expected a number of threads")?.parse()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let arch = vectors();
    let best = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        let operations: f64 =
            pool.install(|| (0..threads).into_par_iter().map(|_| arch.dispatch(Sums)).sum());
        operations / began.elapsed().as_secs_f64()
    });
    println!("{}", json!({ "gflops": best.fold(0.0, f64::max) / 1e9, "threads": threads }));
    Ok(())
}
