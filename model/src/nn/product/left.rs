//! A left factor that lies in columns, as rows of tiles.

/// From one packed tile of so many terms to the next. A cache line more than the tile, so that what is written at one time, a row of each
/// tile, does not fall upon the same lines of the cache.
#[inline(always)]
pub(super) fn apart<const ROWS: usize>(terms: usize) -> usize {
    const LINE: usize = 16;
    (terms * ROWS).next_multiple_of(LINE) + LINE
}

/// Columns of the left factor as rows of a tile, tile after tile.
#[inline(always)]
pub(super) fn pack_left<const ROWS: usize>(
    values: &[f32],
    [stride, rows, terms]: [usize; 3],
    out: &mut Vec<f32>,
) {
    let apart = apart::<ROWS>(terms);
    out.resize(rows.div_ceil(ROWS) * apart, 0.0);
    for term in 0..terms {
        let (wholes, rest) = values[term * stride..][..rows].as_chunks::<ROWS>();
        let mut tiles = out.chunks_exact_mut(apart).map(|tile| &mut tile[term * ROWS..][..ROWS]);
        for (whole, tile) in wholes.iter().zip(&mut tiles) {
            tile.copy_from_slice(whole);
        }
        if let Some(tile) = tiles.next() {
            tile[..rest.len()].copy_from_slice(rest);
        }
    }
}
