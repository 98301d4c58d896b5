//! Matrix products of f32 numbers on the CPU.
//!
//! The right factor is copied once into panels two vectors wide ([`Packed`]); the left one is read where it lies. Six rows of it (eight
//! where there are 32 registers) times one panel stay in registers while a sum runs over at most [`DEPTH`] terms, so that the rows stay in the
//! first-level cache and the panel in the second (Goto and van de Geijn 2008). Which terms are added in which order depends on sizes alone: a caller may hand blocks of rows to any number of threads and
//! gets the same bits.

mod bf16;
mod left;
mod near;
mod write;

use std::ops::Range;

use pulp::{Simd, WithSimd};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::arch;
use super::buffers::{Buffer, Buffers};
use bf16::Form;
pub(crate) use bf16::{Rounding, bf16_by};
use left::{apart, pack_left};
use near::fetch;
use write::{Sums, write};

/// Rows of one tile with sixteen vector registers: twelve sums, a panel's two vectors, a number of the left factor.
const FEW_ROWS: usize = 6;
/// Rows of one tile with AVX-512's 32 registers.
const MANY_ROWS: usize = 8;
/// Numbers of a vector from which on there are 32 registers.
const WIDE: usize = 16;
/// Vectors side by side in one tile.
const VECTORS: usize = 2;
/// Terms of a sum that one visit of a tile adds, at most. A panel of so many is read from the second-level cache; with fewer the result would be read and
/// written more often, which costs more.
const DEPTH: usize = 768;
/// Panels that are filled together: of each row one longer stretch is read, not a line of the cache here and the next when all other rows have been read.
const SIDE_BY_SIDE: usize = 4;
/// Rows of a result that one thread should work on at a time, a multiple of the rows of any tile.
pub(crate) const BLOCK: usize = 48;
/// The same where threads have more to do: packed columns then are read from longer stretches, and a panel is read for more rows.
const MOST: usize = 4 * BLOCK;

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// To nothing.
    Zero,
    /// To this row, in every row of the result.
    Row(&'a [f32]),
    /// To what the result holds.
    Kept,
}

/// The left factor `[m, k]`: number (i, j) is at `i * stride + j`, or at `j * stride + i`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Left<'a> {
    /// Its rows lie in one piece each.
    Rows(&'a [f32], usize),
    /// Its columns lie in one piece each.
    Columns(&'a [f32], usize),
}

/// The result `[m, n]`: row i begins at `i * stride`; m is how many rows begin within `values`.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) stride: usize,
}

/// The right factor `[k, n]`, cut into panels of columns; the last panel is filled up with 0.
#[derive(Debug)]
pub(crate) struct Packed {
    values: Buffer,
    k: usize,
    n: usize,
    width: usize,
    form: Form,
}

/// Columns of one panel.
struct Width;

impl WithSimd for Width {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        VECTORS * S::F32_LANES
    }
}

impl Packed {
    /// A factor without numbers, to be filled.
    pub(crate) fn empty(buffers: &Buffers) -> Self {
        Packed::of_width(buffers, arch().dispatch(Width))
    }

    fn of_width(buffers: &Buffers, width: usize) -> Self {
        Packed { values: buffers.any(0), k: 0, n: 0, width, form: Form::Whole }
    }

    /// The factor whose row r, of k, is `row(r)`, n numbers. Panels are filled in parallel.
    pub(crate) fn of_rows<'a>(
        buffers: &Buffers,
        size: [usize; 2],
        row: impl Fn(usize) -> &'a [f32] + Sync,
    ) -> Self {
        let mut packed = Packed::empty(buffers);
        packed.resize(size);
        let (k, n, width) = (packed.k, packed.n, packed.width);
        // Fewer where threads would have nothing to do. No bit depends on it.
        let panels = n.div_ceil(width).div_ceil(rayon::current_num_threads());
        let some = SIDE_BY_SIDE.min(panels).max(1) * width;
        let panels = packed.values.par_chunks_mut((k * some).max(1)).enumerate();
        panels.for_each(|(i, panels)| {
            fill_from_rows(panels, [k, width], i * some..n.min((i + 1) * some), &row);
        });
        packed
    }

    /// The factor whose column c, of n, is `column(c)`, k numbers. Panels are filled in parallel.
    pub(crate) fn of_columns<'a>(
        buffers: &Buffers,
        size: [usize; 2],
        column: impl Fn(usize) -> &'a [f32] + Sync,
    ) -> Self {
        let mut packed = Packed::empty(buffers);
        packed.resize(size);
        let (k, n, width) = (packed.k, packed.n, packed.width);
        let panels = packed.values.par_chunks_mut((k * width).max(1)).enumerate();
        panels.for_each(|(i, panel)| {
            fill_from_columns(panel, width, i * width..n.min((i + 1) * width), &column);
        });
        packed
    }

    /// As [`Packed::of_rows`], into the memory at hand and on this thread.
    pub(crate) fn refill_rows<'a>(&mut self, size: [usize; 2], row: impl Fn(usize) -> &'a [f32]) {
        self.resize(size);
        fill_from_rows(&mut self.values, [self.k, self.width], 0..self.n, &row);
    }

    /// As [`Packed::of_columns`], into the memory at hand and on this thread.
    pub(crate) fn refill_columns<'a>(&mut self, size: [usize; 2], column: impl Fn(usize) -> &'a [f32]) {
        self.resize(size);
        for (i, panel) in self.values.chunks_exact_mut((self.k * self.width).max(1)).enumerate() {
            fill_from_columns(panel, self.width, i * self.width..self.n.min((i + 1) * self.width), &column);
        }
    }

    fn resize(&mut self, [k, n]: [usize; 2]) {
        (self.k, self.n) = (k, n);
        self.values.resize(k * n.div_ceil(self.width) * self.width);
    }
}

/// Fills panels side by side, each of `k` rows of so many columns; `columns` are those of the factor that they hold.
fn fill_from_rows<'a>(
    panels: &mut [f32],
    [k, width]: [usize; 2],
    columns: Range<usize>,
    row: &impl Fn(usize) -> &'a [f32],
) {
    // As many as AVX2's and AVX-512's panels have, a copy without a call.
    match width {
        16 => rows_into_panels(panels, [k, width], columns, row, copy::<16>),
        32 => rows_into_panels(panels, [k, width], columns, row, copy::<32>),
        _ => rows_into_panels(panels, [k, width], columns, row, <[f32]>::copy_from_slice),
    }
}

#[inline(always)]
fn copy<const N: usize>(to: &mut [f32], from: &[f32]) {
    match (to.as_mut_array::<N>(), from.as_array::<N>()) {
        (Some(to), Some(from)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

#[inline(always)]
fn rows_into_panels<'a>(
    panels: &mut [f32],
    [k, width]: [usize; 2],
    columns: Range<usize>,
    row: &impl Fn(usize) -> &'a [f32],
    copy: impl Fn(&mut [f32], &[f32]),
) {
    for r in 0..k {
        let held = row(r)[columns.clone()].chunks(width);
        for (panel, held) in panels.chunks_exact_mut(k * width).zip(held) {
            let (out, rest) = panel[r * width..][..width].split_at_mut(held.len());
            copy(out, held);
            rest.fill(0.0);
        }
    }
}

/// Fills one panel, a few rows at a time so that they stay in the cache while all columns go in.
fn fill_from_columns<'a>(
    panel: &mut [f32],
    width: usize,
    columns: Range<usize>,
    column: &impl Fn(usize) -> &'a [f32],
) {
    const FEW: usize = 64;
    for (i, rows) in panel.chunks_mut(FEW * width).enumerate() {
        for c in 0..width {
            let numbers = rows[c..].iter_mut().step_by(width);
            match columns.clone().nth(c) {
                Some(c) => numbers.zip(&column(c)[i * FEW..]).for_each(|(out, x)| *out = *x),
                None => numbers.for_each(|out| *out = 0.0),
            }
        }
    }
}

/// `out = start + left right`, on this thread.
pub(crate) fn multiply(left: Left<'_>, right: &Packed, start: Start<'_>, out: Out<'_>) {
    if right.n == 0 || out.values.is_empty() {
        return;
    }
    match right.form {
        Form::Whole => arch().dispatch(Product { left, right, start, out }),
        Form::Pairs | Form::Singles => bf16::multiply(left, right, start, out),
    }
}

/// The terms of one of so many visits to a tile with a factor; where two of them go together, it begins with an even one.
fn terms(right: &Packed, step: usize, steps: usize) -> Range<usize> {
    let together = if right.form == Form::Whole { 1 } else { 2 };
    let first = |step: usize| {
        if step == steps { right.k } else { right.k * step / steps / together * together }
    };
    first(step)..first(step + 1)
}

struct Product<'a> {
    left: Left<'a>,
    right: &'a Packed,
    start: Start<'a>,
    out: Out<'a>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::F32_LANES >= WIDE { self.run::<S, MANY_ROWS>(simd) } else { self.run::<S, FEW_ROWS>(simd) }
    }
}

impl Product<'_> {
    /// With tiles of so many rows. Which they are changes no bit: the terms of a sum are added in their order.
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize>(self, simd: S) {
        let Product { left, right, mut start, mut out } = self;
        let &Packed { ref values, k, n, width, .. } = right;
        let steps = k.div_ceil(DEPTH).max(1);
        let mut columns_of_left = vec![];
        for step in 0..steps {
            let terms = terms(right, step, steps);
            if let Left::Columns(values, stride) = left {
                let rows = out.values.len().div_ceil(out.stride);
                pack_left::<ROWS>(
                    &values[terms.start * stride..],
                    [stride, rows, terms.len()],
                    &mut columns_of_left,
                );
            }
            for p in 0..n.div_ceil(width) {
                let panel = &values[(p * k + terms.start) * width..(p * k + terms.end) * width];
                let panel = S::as_simd_f32s(panel).0.as_chunks::<VECTORS>().0;
                let columns = p * width..n.min((p + 1) * width);
                match left {
                    Left::Rows(values, stride) => {
                        rows_by_panel::<S, ROWS>(
                            simd,
                            &values[terms.start..],
                            stride,
                            panel,
                            start,
                            &mut out,
                            columns,
                        );
                    }
                    Left::Columns(..) => {
                        // The same terms of the panel behind, if there is one.
                        let next = values.get(((p + 1) * k + terms.start) * width..).unwrap_or_default();
                        let next = &next[..next.len().min(terms.len() * width)];
                        packed_by_panel::<S, ROWS>(
                            simd,
                            &columns_of_left,
                            &Panel { numbers: panel, next },
                            start,
                            &mut out,
                            columns,
                        );
                    }
                }
            }
            // A sum is cut where DEPTH says, whatever the machine: its parts are added in one order everywhere.
            start = Start::Kept;
        }
    }
}

/// One panel times rows that are read where they lie.
#[inline(always)]
fn rows_by_panel<S: Simd, const ROWS: usize>(
    simd: S,
    values: &[f32],
    stride: usize,
    panel: &[[S::f32s; VECTORS]],
    start: Start<'_>,
    out: &mut Out<'_>,
    columns: Range<usize>,
) {
    let rows = out.values.len().div_ceil(out.stride);
    for top in (0..rows).step_by(ROWS) {
        // Beyond the last row it is read again, for nothing: tiles of fewer rows would each be another loop to compile, and `write` drops these sums.
        let a: [&[f32]; ROWS] =
            std::array::from_fn(|r| &values[(top + r).min(rows - 1) * stride..][..panel.len()]);
        let sums = tile(simd, panel, |k| a.map(|a| a[k]));
        write(simd, &sums, start, out, top, columns.clone());
    }
}

/// Terms of a panel, and those that come next.
struct Panel<'a, S: Simd> {
    numbers: &'a [[S::f32s; VECTORS]],
    next: &'a [f32],
}

/// One panel times what [`pack_left`] has packed.
#[inline(always)]
fn packed_by_panel<S: Simd, const ROWS: usize>(
    simd: S,
    packed: &[f32],
    panel: &Panel<'_, S>,
    start: Start<'_>,
    out: &mut Out<'_>,
    columns: Range<usize>,
) {
    let &Panel { numbers: panel, next } = panel;
    let tiles = packed.chunks_exact(apart::<ROWS>(panel.len()));
    let mut parts = next.chunks(next.len().div_ceil(tiles.len().max(1)).max(1));
    for (i, tile_of_left) in tiles.enumerate() {
        parts.next().into_iter().for_each(fetch);
        let a = &tile_of_left.as_chunks::<ROWS>().0[..panel.len()];
        let sums = tile(simd, panel, |k| a[k]);
        write(simd, &sums, start, out, i * ROWS, columns.clone());
    }
}

/// The rows of a tile times one panel; `a(k)` are term k's numbers of the rows.
#[inline(always)]
fn tile<S: Simd, const ROWS: usize>(
    simd: S,
    panel: &[[S::f32s; VECTORS]],
    a: impl Fn(usize) -> [f32; ROWS],
) -> Sums<S, ROWS> {
    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
    for (k, b) in panel.iter().enumerate() {
        for (sums, a) in sums.iter_mut().zip(a(k)) {
            let a = simd.splat_f32s(a);
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = simd.mul_add_e_f32s(a, *b, *sum);
            }
        }
    }
    sums
}

/// `left right` in parallel, `[m, n]`.
pub(crate) fn product(buffers: &Buffers, left: Left<'_>, right: &Packed, m: usize) -> Buffer {
    let n = right.n;
    let mut out = buffers.any(m * n);
    // Some two blocks for each thread, which evens out what they have to do, unless these would be too small or too large. No bit depends on it.
    let block = (m / (2 * rayon::current_num_threads())).next_multiple_of(BLOCK).clamp(BLOCK, MOST);
    out.par_chunks_mut((block * n).max(1)).enumerate().for_each(|(i, values)| {
        let left = match left {
            Left::Rows(values, stride) => Left::Rows(&values[i * block * stride..], stride),
            Left::Columns(values, stride) => Left::Columns(&values[i * block..], stride),
        };
        multiply(left, right, Start::Zero, Out { values, stride: n });
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::CounterRng;
    #[cfg(target_arch = "x86_64")]
    use pulp::{
        Arch,
        x86::{V3, V4},
    };

    fn random(seed: u64, count: usize) -> Vec<f32> {
        let chance = CounterRng::new(seed);
        (0..count as u64).map(|i| crate::nn::single(chance.normal(i))).collect()
    }

    /// Entry (i, j) in double precision.
    fn exact(k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f64 {
        (0..k).map(|x| f64::from(a(x)) * f64::from(b(x))).sum()
    }

    #[test]
    fn every_form_is_the_product_at_any_size() {
        let sizes =
            [[1, 1, 1], [5, 3, 16], [6, 16, 17], [49, 400, 33], [97, 770, 15], [4, 0, 3], [12, 384, 32]];
        for [m, k, n] in sizes {
            let (a, b) = (random(1, m * k), random(2, k * n));
            let a_t: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
            let b_t: Vec<f32> = (0..k * n).map(|at| b[at % k * n + at / k]).collect();
            let rights = [
                Packed::of_rows(&Buffers::new(), [k, n], |r| &b[r * n..][..n]),
                Packed::of_columns(&Buffers::new(), [k, n], |c| &b_t[c * k..][..k]),
            ];
            for right in &rights {
                for left in [Left::Rows(&a, k), Left::Columns(&a_t, m)] {
                    let out = product(&Buffers::new(), left, right, m);
                    for (at, x) in out.iter().enumerate() {
                        let sum = exact(k, |x| a[at / n * k + x], |x| b[x * n + at % n]);
                        assert!((f64::from(*x) - sum).abs() < 2e-4, "{m} {k} {n}: {x} {sum}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_and_columns_give_the_same_bits_and_so_do_blocks() {
        let (m, k, n) = (100, 900, 40);
        let (a, b) = (random(1, m * k), random(2, k * n));
        let a_t: Vec<f32> = (0..k * m).map(|at| a[at % m * k + at / m]).collect();
        let mut right = Packed::empty(&Buffers::new());
        right.refill_rows([3, 2], |_| &[7.0, 7.0]);
        right.refill_rows([k, n], |r| &b[r * n..][..n]);
        let whole = product(&Buffers::new(), Left::Rows(&a, k), &right, m);
        assert_eq!(whole[..], product(&Buffers::new(), Left::Columns(&a_t, m), &right, m)[..]);
        let mut alone = vec![0.0; 7 * n];
        multiply(Left::Rows(&a[50 * k..], k), &right, Start::Zero, Out { values: &mut alone, stride: n });
        assert_eq!(alone, whole[50 * n..57 * n]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let all = [V3::try_new().map(Arch::V3), V4::try_new().map(Arch::V4)];
        let (m, k, n) = (50, 900, 41);
        let (a, b) = (random(1, m * k), random(2, k * n));
        let results = all.into_iter().flatten().map(|arch| {
            let mut right = Packed::of_width(&Buffers::new(), arch.dispatch(Width));
            right.refill_rows([k, n], |r| &b[r * n..][..n]);
            let mut values = vec![0.0; m * n];
            let out = Out { values: &mut values, stride: n };
            arch.dispatch(Product { left: Left::Rows(&a, k), right: &right, start: Start::Zero, out });
            values
        });
        let results: Vec<_> = results.collect();
        if results.len() < all.len() {
            println!("skipped: this processor has not both, AVX2 and AVX-512");
        }
        results.windows(2).for_each(|two| assert_eq!(two[0], two[1]));
    }

    #[test]
    fn results_start_with_what_is_asked_and_leave_the_rest_of_a_row() {
        let (m, k, n, stride) = (8, 5, 19, 23);
        let (a, b, row) = (random(1, m * k), random(2, k * n), random(3, n));
        let mut right = Packed::empty(&Buffers::new());
        right.refill_columns([k, n], |c| &b[c * k..][..k]);
        let plain = product(&Buffers::new(), Left::Rows(&a, k), &right, m);
        let kept: Vec<f32> = random(4, m * stride);
        for start in [Start::Zero, Start::Row(&row), Start::Kept] {
            let mut values = kept.clone();
            let end = (m - 1) * stride + n;
            multiply(Left::Rows(&a, k), &right, start, Out { values: &mut values[..end], stride });
            for (at, x) in values.iter().enumerate() {
                let (r, c) = (at / stride, at % stride);
                let before = match start {
                    Start::Zero => 0.0,
                    Start::Row(row) => row.get(c).copied().unwrap_or(0.0),
                    Start::Kept => kept[at],
                };
                let expected = if c < n { before + plain[r * n + c] } else { kept[at] };
                assert_eq!(*x, expected, "{start:?} {r} {c}");
            }
        }
    }
}
