//! The sums of a tile, as they go into the result.

use std::ops::Range;

use pulp::Simd;

use super::{Out, Start, VECTORS};

/// Of each row of a tile, in vectors.
pub(super) type Sums<S, const ROWS: usize> = [[<S as Simd>::f32s; VECTORS]; ROWS];

/// Writes a tile whose first row is `top`, as far as there are rows.
#[inline(always)]
pub(super) fn write<S: Simd, const ROWS: usize>(
    simd: S,
    sums: &Sums<S, ROWS>,
    start: Start<'_>,
    out: &mut Out<'_>,
    top: usize,
    columns: Range<usize>,
) {
    let stride = out.stride;
    let values = out.values.get_mut(top * stride..).unwrap_or_default();
    let rows = values.len().div_ceil(stride);
    if rows >= ROWS && columns.len() == VECTORS * S::F32_LANES {
        for (r, sums) in sums.iter().enumerate() {
            let row = &mut values[r * stride..][columns.clone()];
            write_vectors(simd, row, sums, start, columns.clone());
        }
        return;
    }
    // Of a copy: sums whose rows are counted would have to lie in memory, here as well.
    let sums = *sums;
    for (r, sums) in sums.iter().enumerate().take(rows) {
        let row = &mut values[r * stride..][columns.clone()];
        if row.len() == VECTORS * S::F32_LANES {
            write_vectors(simd, row, sums, start, columns.clone());
            continue;
        }
        let sums: &[f32] = pulp::bytemuck::cast_slice(sums);
        for ((c, x), s) in columns.clone().zip(row).zip(sums) {
            *x = match start {
                Start::Kept => *x + s,
                Start::Row(before) => before[c] + s,
                Start::Zero => *s,
            };
        }
    }
}

/// Writes a tile's row of whole vectors.
#[inline(always)]
fn write_vectors<S: Simd>(
    simd: S,
    row: &mut [f32],
    sums: &[S::f32s; VECTORS],
    start: Start<'_>,
    columns: Range<usize>,
) {
    let row = S::as_mut_simd_f32s(row).0;
    match start {
        Start::Kept => row.iter_mut().zip(sums).for_each(|(x, s)| *x = simd.add_f32s(*x, *s)),
        Start::Row(before) => {
            let both = S::as_simd_f32s(&before[columns]).0.iter().zip(sums);
            row.iter_mut().zip(both).for_each(|(x, (b, s))| *x = simd.add_f32s(*b, *s));
        }
        Start::Zero => row.copy_from_slice(sums),
    }
}
