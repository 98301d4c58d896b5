//! Products of factors that are rounded to bf16, with f32 sums.
//!
//! Two terms of a sum are one number of 32 bits, the even one in its lower half, which `vdpbf16ps` of AVX-512 BF16 multiplies and adds: the odd term first (Intel,
//! Architecture Instruction Set Extensions, `VDPBF16PS`). Where a processor does not have it, the f32 products take the rounded terms in that order. Both give the
//! same bits, unless a number is below 2^-126, which the instruction takes for 0. Processors with AMX have [`tiles`], which add in another order: there bits are others.

#[cfg(target_arch = "x86_64")]
mod tiles;

use rayon::prelude::{ParallelIterator, ParallelSliceMut};

use super::{Left, Out, Packed, Product, Start, VECTORS, WIDE};
use crate::nn::{arch, wide};

/// Columns of a panel of 512-bit vectors, two of AMX's tiles, which all processors with these instructions have.
const WIDTH: usize = VECTORS * WIDE;

/// What the factors of a product are rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Rounding {
    /// Nothing.
    #[default]
    None,
    Bf16,
}

/// How a factor lies in its panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Whole,
    /// Rounded, two terms in each number of the first half of a panel: for the instruction.
    Pairs,
    /// Rounded, the odd term of two first: for f32 products.
    Singles,
}

/// The instructions that this processor has for it, if it has some.
pub(crate) fn bf16_by() -> Option<&'static str> {
    match (tiles::are_there(), instruction::is_there()) {
        (true, _) => Some("AMX BF16"),
        (false, true) => Some("AVX-512 BF16"),
        (false, false) => None,
    }
}

/// Not on this kind of processor.
#[cfg(not(target_arch = "x86_64"))]
mod tiles {
    use super::super::{Left, Out, Packed, Start};

    pub(super) fn are_there() -> bool {
        false
    }

    pub(super) fn multiply(_: Left<'_>, _: &Packed, _: Start<'_>, _: Out<'_>) {}
}

impl Form {
    fn of(rounding: Rounding) -> Self {
        match rounding {
            Rounding::None => Form::Whole,
            Rounding::Bf16 if bf16_by().is_some() => Form::Pairs,
            Rounding::Bf16 => Form::Singles,
        }
    }
}

impl Packed {
    /// The factor with its numbers rounded; the left factor of a product with it is then rounded as well.
    pub(crate) fn rounded(self, rounding: Rounding) -> Self {
        self.in_form(Form::of(rounding))
    }

    fn in_form(mut self, form: Form) -> Self {
        let (k, width) = (self.k, self.width);
        let panels = self.values.par_chunks_mut((k * width).max(1));
        match form {
            Form::Whole => {}
            Form::Pairs => panels.for_each(|panel| wide!(pair_rows(panel.as_chunks_mut().0))),
            Form::Singles => panels.for_each(|panel| {
                wide!(panel.iter_mut().for_each(|x| *x = f32::from_bits(u32::from(half(*x)) << 16)));
                for both in panel.chunks_exact_mut(2 * width) {
                    let (even, odd) = both.split_at_mut(width);
                    even.swap_with_slice(odd);
                }
            }),
        }
        self.form = form;
        self
    }
}

/// The 16 bits of a number rounded to bf16, to even; NaN stays NaN.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "what is shifted by 16 has no more")]
fn half(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    (if x.is_nan() { quiet } else { rounded }) as u16
}

/// Two numbers as one, the first in its lower half.
#[inline(always)]
fn pair(even: f32, odd: f32) -> u32 {
    u32::from(half(even)) | u32::from(half(odd)) << 16
}

/// Numbers of two terms as pairs, as many as all three have.
#[inline(always)]
fn pair_up(even: &[f32], odd: &[f32], out: &mut [u32]) {
    for ((out, even), odd) in out.iter_mut().zip(even).zip(odd) {
        *out = pair(*even, *odd);
    }
}

/// Puts each two rows of a panel, as pairs, into one of its first half; the partners of a last row are 0.
#[inline(always)]
fn pair_rows(rows: &mut [[f32; WIDTH]]) {
    for at in 0..rows.len().div_ceil(2) {
        let (even, odd) = (rows[2 * at], rows.get(2 * at + 1).copied().unwrap_or([0.0; WIDTH]));
        for ((both, even), odd) in rows[at].iter_mut().zip(even).zip(odd) {
            *both = f32::from_bits(pair(even, odd));
        }
    }
}

/// `out = start + left right` with a factor that is rounded.
pub(super) fn multiply(left: Left<'_>, right: &Packed, start: Start<'_>, out: Out<'_>) {
    if right.form == Form::Pairs {
        if tiles::are_there() {
            tiles::multiply(left, right, start, out);
        } else {
            instruction::multiply(left, right, start, out);
        }
        return;
    }
    // What would be the rows of the instruction's pairs, as numbers.
    let (k, rows) = (right.k, out.values.len().div_ceil(out.stride));
    let mut singles = vec![0.0_f32; k * rows];
    for j in 0..k {
        let from = if (j ^ 1) < k { j ^ 1 } else { j };
        for i in 0..rows {
            let x = match left {
                Left::Rows(values, stride) => values[i * stride + from],
                Left::Columns(values, stride) => values[from * stride + i],
            };
            singles[i * k + j] = f32::from_bits(u32::from(half(x)) << 16);
        }
    }
    let left = Left::Rows(&singles, k);
    arch().dispatch(Product { left, right, start, out });
}

#[cfg(target_arch = "x86_64")]
mod instruction {
    #![allow(unsafe_code, reason = "an instruction that not every processor has is asked for by name")]

    use std::arch::x86_64::{__m512bh, __m512i, _mm512_dpbf16_ps, _mm512_set1_epi32, _mm512_setzero_ps};

    use pulp::x86::V4;
    use pulp::{bytemuck, f32x16};

    use super::super::{DEPTH, Left, MANY_ROWS, Out, Packed, Start, VECTORS, apart, write};
    use super::tiles::rows_of_pairs;
    use super::{WIDTH, pair_up};
    use crate::nn::avx512;

    /// Whether this processor has it.
    pub(super) fn is_there() -> bool {
        avx512().is_some() && std::arch::is_x86_feature_detected!("avx512bf16")
    }

    pub(super) fn multiply(left: Left<'_>, right: &Packed, start: Start<'_>, out: Out<'_>) {
        if let Some(simd) = avx512().filter(|_| is_there()) {
            // SAFETY: the processor has the instructions.
            unsafe { run(simd, left, right, start, out) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn run(simd: V4, left: Left<'_>, right: &Packed, mut start: Start<'_>, mut out: Out<'_>) {
        let &Packed { ref values, k, n, width, .. } = right;
        debug_assert_eq!(width, WIDTH);
        let rows = out.values.len().div_ceil(out.stride);
        let steps = k.div_ceil(DEPTH).max(1);
        let mut pairs_of_left: Vec<u32> = vec![];
        for step in 0..steps {
            let terms = super::super::terms(right, step, steps);
            let pairs = terms.len().div_ceil(2);
            match left {
                Left::Rows(values, stride) => {
                    let sizes = [stride, rows, terms.len(), pairs];
                    rows_of_pairs(&values[terms.start..], sizes, &mut pairs_of_left);
                }
                Left::Columns(values, stride) => {
                    let values = &values[terms.start * stride..];
                    columns_of_pairs(values, [stride, rows, terms.len()], &mut pairs_of_left);
                }
            }
            for p in 0..n.div_ceil(width) {
                let panel = &values[p * k * width + terms.start / 2 * width..][..pairs * width];
                let panel: &[f32x16] = bytemuck::cast_slice(panel);
                let panel = panel.as_chunks::<VECTORS>().0;
                let columns = p * width..n.min((p + 1) * width);
                for top in (0..rows).step_by(MANY_ROWS) {
                    let sums = match left {
                        Left::Rows(..) => {
                            let mut a = [&pairs_of_left[..0]; MANY_ROWS];
                            for (row, a) in (top..).zip(&mut a) {
                                *a = &pairs_of_left[row.min(rows - 1) * pairs..][..panel.len()];
                            }
                            tile(
                                panel,
                                #[inline(always)]
                                |k, row| a[row][k],
                            )
                        }
                        Left::Columns(..) => {
                            let tile_of_left = &pairs_of_left[top / MANY_ROWS * apart::<MANY_ROWS>(pairs)..];
                            let a = &tile_of_left.as_chunks::<MANY_ROWS>().0[..panel.len()];
                            tile(
                                panel,
                                #[inline(always)]
                                |k, row| a[k][row],
                            )
                        }
                    };
                    write(simd, &sums, start, &mut out, top, columns.clone());
                }
            }
            start = Start::Kept;
        }
    }

    /// Columns in pairs as rows of a tile, tile after tile.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2")]
    fn columns_of_pairs(values: &[f32], [stride, rows, terms]: [usize; 3], out: &mut Vec<u32>) {
        let pairs = terms.div_ceil(2);
        let apart = apart::<MANY_ROWS>(pairs);
        out.resize(rows.div_ceil(MANY_ROWS) * apart, 0);
        // What a last term without a partner goes with.
        let none = vec![0.0; rows * (terms % 2)];
        for at in 0..pairs {
            let even = &values[2 * at * stride..][..rows];
            let odd = if 2 * at + 1 < terms { &values[(2 * at + 1) * stride..][..rows] } else { &none };
            let ((even, even_rest), (odd, odd_rest)) =
                (even.as_chunks::<MANY_ROWS>(), odd.as_chunks::<MANY_ROWS>());
            let mut tiles = out.chunks_exact_mut(apart);
            for ((even, odd), tile) in even.iter().zip(odd).zip(&mut tiles) {
                pair_up(even, odd, &mut tile[at * MANY_ROWS..][..MANY_ROWS]);
            }
            if let Some(tile) = tiles.next() {
                pair_up(even_rest, odd_rest, &mut tile[at * MANY_ROWS..][..MANY_ROWS]);
            }
        }
    }

    /// The rows of a tile times one panel; `a(k, row)` is pair k of a row. What is called here is inlined: a call from this loop, or for each tile, would cost
    /// as much as the products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn tile(panel: &[[f32x16; VECTORS]], a: impl Fn(usize, usize) -> u32) -> [[f32x16; VECTORS]; MANY_ROWS] {
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; MANY_ROWS];
        for (k, b) in panel.iter().enumerate() {
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = halves(_mm512_set1_epi32(a(k, row).cast_signed()));
                for (sum, b) in sums.iter_mut().zip(b) {
                    // SAFETY: both are 64 bytes.
                    let b = halves(unsafe { std::mem::transmute::<f32x16, __m512i>(*b) });
                    *sum = _mm512_dpbf16_ps(*sum, a, b);
                }
            }
        }
        // SAFETY: as many vectors of sixteen f32 numbers both.
        unsafe { std::mem::transmute(sums) }
    }

    #[inline(always)]
    fn halves(bits: __m512i) -> __m512bh {
        // SAFETY: both are 64 bytes.
        unsafe { std::mem::transmute(bits) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod instruction {
    use super::super::{Left, Out, Packed, Start};

    pub(super) fn is_there() -> bool {
        false
    }

    pub(super) fn multiply(_: Left<'_>, _: &Packed, _: Start<'_>, _: Out<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCK, product};
    use super::*;
    use crate::nn::buffers::Buffers;
    use base::rng::CounterRng;

    fn random(seed: u64, count: usize) -> Vec<f32> {
        let chance = CounterRng::new(seed);
        (0..count as u64).map(|i| crate::nn::single(chance.normal(i))).collect()
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_and_to_even() {
        let of = |x: f32| f32::from_bits(u32::from(half(x)) << 16);
        assert_eq!([of(1.0), of(-3.5), of(0.0), of(f32::INFINITY)], [1.0, -3.5, 0.0, f32::INFINITY]);
        let step = 1.0 / 128.0;
        assert_eq!(
            [of(1.0 + step / 2.0), of(1.0 + 1.5 * step), of(1.0 + 0.51 * step)],
            [1.0, 1.0 + 2.0 * step, 1.0 + step]
        );
        assert!(of(f32::NAN).is_nan() && of(f32::from_bits(0x7f80_0001)).is_nan());
        assert_eq!(of(f32::MAX), f32::INFINITY);
        for x in random(1, 1000) {
            let exact = candle_core::Tensor::new(&[x], &candle_core::Device::Cpu).unwrap();
            let exact = exact.to_dtype(candle_core::DType::BF16).unwrap();
            assert_eq!(vec![f64::from(of(x))], crate::nn::check::numbers(&exact));
        }
    }

    #[test]
    fn both_forms_have_the_same_bits_which_are_those_of_rounded_factors() {
        let buffers = Buffers::new();
        for [m, k, n] in [[1, 1, 1], [5, 3, 16], [8, 16, 32], [49, 401, 33], [97, 770, 15], [12, 384, 100]] {
            let (a, b) = (random(1, m * k), random(2, k * n));
            let a_t: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
            let right = |form| Packed::of_rows(&buffers, [k, n], |r| &b[r * n..][..n]).in_form(form);
            let of = |x: f32| f64::from(f32::from_bits(u32::from(half(x)) << 16));
            let singles = product(&buffers, Left::Rows(&a, k), &right(Form::Singles), m);
            for (at, x) in singles.iter().enumerate() {
                let exact: f64 = (0..k).map(|j| of(a[at / n * k + j]) * of(b[j * n + at % n])).sum();
                assert!((f64::from(*x) - exact).abs() < 2e-4, "{m} {k} {n}: {x} {exact}");
            }
            assert_eq!(singles[..], product(&buffers, Left::Columns(&a_t, m), &right(Form::Singles), m)[..]);
            if !instruction::is_there() {
                eprintln!("no AVX-512 BF16 here: its products are not compared");
                continue;
            }
            for left in [Left::Rows(&a, k), Left::Columns(&a_t, m)] {
                let mut pairs = vec![0.0; m * n];
                instruction::multiply(
                    left,
                    &right(Form::Pairs),
                    Start::Zero,
                    Out { values: &mut pairs, stride: n },
                );
                assert_eq!(singles[..], pairs, "{m} {k} {n}");
            }
        }
        assert!(BLOCK.is_multiple_of(8));
    }

    /// A sum as tiles make it: of 32 terms the even ones, the odd ones, both, and these on top of what was there.
    fn by_tiles(k: usize, term: impl Fn(usize) -> [f32; 2]) -> f32 {
        let steps = k.div_ceil(384).max(1);
        let each = k.div_ceil(steps).next_multiple_of(32);
        let mut all = 0.0;
        for step in 0..steps {
            let mut of_step = 0.0_f32;
            for first in ((step * each).min(k)..((step + 1) * each).min(k)).step_by(32) {
                let mut sums = [0.0_f32; 2];
                for at in first..(first + 32).min(k) {
                    let [a, b] = term(at);
                    sums[at % 2] = a.mul_add(b, sums[at % 2]);
                }
                of_step += sums[0] + sums[1];
            }
            all += of_step;
        }
        all
    }

    #[test]
    fn tiles_add_the_terms_of_rounded_factors_in_their_order() {
        if !tiles::are_there() {
            eprintln!("no AMX here: its products are not compared");
            return;
        }
        let buffers = Buffers::new();
        for [m, k, n] in [
            [1, 1, 1],
            [5, 3, 16],
            [16, 32, 32],
            [33, 64, 33],
            [49, 401, 33],
            [97, 770, 15],
            [48, 1024, 100],
            [3, 0, 5],
        ] {
            let (a, b) = (random(1, m * k), random(2, k * n));
            let a_t: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
            let right = Packed::of_rows(&buffers, [k, n], |r| &b[r * n..][..n]).in_form(Form::Pairs);
            let of = |x: f32| f32::from_bits(u32::from(half(x)) << 16);
            for left in [Left::Rows(&a, k), Left::Columns(&a_t, m)] {
                let with = |threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| product(&buffers, left, &right, m))
                };
                let made = with(1);
                assert_eq!(made[..], with(3)[..]);
                for (at, x) in made.iter().enumerate() {
                    let sum = by_tiles(k, |j| [of(a[at / n * k + j]), of(b[j * n + at % n])]);
                    assert_eq!(x.to_bits(), sum.to_bits(), "{m} {k} {n} at {at}: {x} {sum}");
                }
                let mut alone = vec![1.0; m * n];
                tiles::multiply(left, &right, Start::Kept, Out { values: &mut alone, stride: n });
                assert!(k > 384 || alone.iter().zip(made.iter()).all(|(alone, made)| *alone == 1.0 + made));
            }
        }
    }
}
