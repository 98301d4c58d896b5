//! 3 x 3 convolutions of square maps, stride 1, zeros around them; f32 numbers on the CPU.
//!
//! Maps are copied once into frames of zeros, so that no tap asks whether it is inside. A few output channels times two vectors of cells stay in
//! registers while the sum runs over all taps. Every sum runs in an order that sizes alone decide.

use pulp::{Simd, WithSimd};

use crate::nn::arch;
use crate::nn::buffers::{Buffer, Buffers};

/// Taps of a channel: 3 x 3.
pub(super) const TAPS: usize = 9;
/// Output channels, or rows of a weight's gradient, of one tile.
const CHANNELS: usize = 4;
/// Vectors side by side in one tile.
const VECTORS: usize = 2;
/// Zeros behind the last cell of a map, so that a tile may end beyond it: two vectors of the widest machine, and the frame.
const SLACK: usize = 34;

/// Square maps `[c, t, t]` within frames of zeros.
#[derive(Debug)]
pub(super) struct Framed {
    numbers: Buffer,
    channels: usize,
    t: usize,
}

impl Framed {
    /// Frames for `channels` maps of `t` rows, whose cells are whatever the memory held last: to be overwritten.
    pub(super) fn new(buffers: &Buffers, channels: usize, t: usize) -> Self {
        let mut framed = Framed { numbers: buffers.any(0), channels, t };
        let (stride, map) = (framed.stride(), framed.map());
        framed.numbers.resize(channels * map);
        for map in framed.numbers.chunks_exact_mut(map) {
            let (above, rows) = map.split_at_mut(stride + 1);
            above.fill(0.0);
            for (i, row) in rows.chunks_mut(stride).enumerate() {
                row[if i < t { t } else { 0 }..].fill(0.0);
            }
        }
        framed
    }

    /// From one row of a map to the next.
    fn stride(&self) -> usize {
        self.t + SLACK
    }

    /// From one map to the next.
    fn map(&self) -> usize {
        (self.t + 2) * self.stride()
    }

    /// Row `i` of map `c`.
    pub(super) fn row_mut(&mut self, c: usize, i: usize) -> &mut [f32] {
        let start = c * self.map() + (i + 1) * self.stride() + 1;
        &mut self.numbers[start..start + self.t]
    }

    /// Row `i` of map `c`.
    pub(super) fn row(&self, c: usize, i: usize) -> &[f32] {
        let start = c * self.map() + (i + 1) * self.stride() + 1;
        &self.numbers[start..start + self.t]
    }

    /// Copies a map `[t, t]` into channel `c`.
    pub(super) fn put(&mut self, c: usize, map: &[f32]) {
        let t = self.t.max(1);
        for (i, row) in map.chunks_exact(t).enumerate() {
            self.row_mut(c, i).copy_from_slice(row);
        }
    }
}

/// `out[o] = bias[o] + sum over channels c and taps of weights[o][c][tap] * maps[c] moved by the tap`, for maps `[o, t, t]` one behind the other.
/// Of the maps' channels, only as many are read as the weights have.
pub(super) fn convolve(maps: &Framed, weights: &Weights<'_>, bias: Option<&[f32]>, out: &mut [f32]) {
    if maps.t > 0 {
        arch().dispatch(Convolve { maps, weights, bias, out });
    }
}

/// Weights of a convolution: number (o, c, tap) is at `o * by_output + c * by_input + tap`, or at the tap opposite to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) by_output: usize,
    pub(super) by_input: usize,
    pub(super) order: Order,
}

/// In which order taps stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// From above left to below right.
    Forward,
    /// The other way, which is what carries gradients back.
    Backward,
}

impl Weights<'_> {
    /// For each tile of output channels, for each input channel and tap, the numbers of the tile's channels; 0 beyond the last.
    fn packed(&self) -> Vec<[f32; CHANNELS]> {
        let mut packed = Vec::with_capacity(self.outputs.div_ceil(CHANNELS) * self.inputs * TAPS);
        for first in (0..self.outputs).step_by(CHANNELS) {
            for c in 0..self.inputs {
                for tap in 0..TAPS {
                    let tap = if self.order == Order::Forward { tap } else { TAPS - 1 - tap };
                    packed.push(std::array::from_fn(|o| {
                        let o = first + o;
                        let at = o * self.by_output + c * self.by_input + tap;
                        if o < self.outputs { self.numbers[at] } else { 0.0 }
                    }));
                }
            }
        }
        packed
    }
}

struct Convolve<'a> {
    maps: &'a Framed,
    weights: &'a Weights<'a>,
    bias: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Convolve { maps, weights, bias, out } = self;
        let (t, stride, map) = (maps.t, maps.stride(), maps.map());
        let (cells, lanes): (&[f32], usize) = (&maps.numbers, S::F32_LANES);
        let packed = weights.packed();
        for (tile, taps) in packed.chunks_exact(weights.inputs * TAPS).enumerate() {
            let first = tile * CHANNELS;
            for i in 0..t {
                for j in (0..t).step_by(VECTORS * lanes) {
                    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; CHANNELS];
                    for (c, taps) in taps.chunks_exact(TAPS).enumerate() {
                        for (dy, taps) in taps.chunks_exact(3).enumerate() {
                            let row = &cells[c * map + (i + dy) * stride + j..];
                            for (dx, weights) in taps.iter().enumerate() {
                                let x = two::<S>(&row[dx..]);
                                for (sums, weight) in sums.iter_mut().zip(weights) {
                                    let weight = simd.splat_f32s(*weight);
                                    for (sum, x) in sums.iter_mut().zip(x) {
                                        *sum = simd.mul_add_e_f32s(weight, x, *sum);
                                    }
                                }
                            }
                        }
                    }
                    let columns = t.min(j + VECTORS * lanes) - j;
                    for (o, sums) in (first..weights.outputs).zip(&sums) {
                        let sums: &[f32] = pulp::bytemuck::cast_slice(sums);
                        let start = bias.map_or(0.0, |bias| bias[o]);
                        // The bias comes last: sums begin at 0 in every tile, so that a cell is the same number wherever its tile begins.
                        let out = &mut out[(o * t + i) * t + j..][..columns];
                        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = start + sum);
                    }
                }
            }
        }
    }
}

/// The first two vectors of a row.
#[inline(always)]
fn two<S: Simd>(row: &[f32]) -> [S::f32s; VECTORS] {
    let whole = S::as_simd_f32s(&row[..VECTORS * S::F32_LANES]).0;
    [whole[0], whole[1]]
}

/// Adds to `gradient` `[o, c, 9]` what the gradients `[o, t, t]` of a convolution's result say of its weights. Both are framed; `maps` are what it
/// read.
pub(super) fn add_weight_gradient(maps: &Framed, results: &Framed, gradient: &mut [f32]) {
    if maps.t > 0 {
        arch().dispatch(Gradient { maps, results, gradient });
    }
}

struct Gradient<'a> {
    maps: &'a Framed,
    results: &'a Framed,
    gradient: &'a mut [f32],
}

impl WithSimd for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Gradient { maps, results, gradient } = self;
        let (t, stride, map, lanes) = (maps.t, maps.stride(), maps.map(), S::F32_LANES);
        let (cells, of_results): (&[f32], &[f32]) = (&maps.numbers, &results.numbers);
        for first in (0..results.channels).step_by(CHANNELS) {
            // Beyond the last channel it is read again, for nothing.
            let channels: [usize; CHANNELS] = std::array::from_fn(|o| (first + o).min(results.channels - 1));
            for c in 0..maps.channels {
                for dy in 0..3 {
                    let mut sums = [[simd.splat_f32s(0.0); 3]; CHANNELS];
                    for i in 0..t {
                        let row = &cells[c * map + (i + dy) * stride..][..stride];
                        let rows = channels.map(|o| &of_results[o * map + (i + 1) * stride + 1..]);
                        // Cells beyond the row's end are 0 in the results.
                        for j in (0..t).step_by(lanes) {
                            let x: [S::f32s; 3] = std::array::from_fn(|dx| one::<S>(&row[j + dx..]));
                            for (sums, row) in sums.iter_mut().zip(rows) {
                                let g = one::<S>(&row[j..]);
                                for (sum, x) in sums.iter_mut().zip(x) {
                                    *sum = simd.mul_add_e_f32s(g, x, *sum);
                                }
                            }
                        }
                    }
                    // Lanes are added once a map and not once a row, which is cheaper and loses fewer digits.
                    for (o, sums) in (first..results.channels).zip(sums) {
                        let at = (o * maps.channels + c) * TAPS + dy * 3;
                        for (sum, out) in sums.into_iter().zip(&mut gradient[at..at + 3]) {
                            *out += simd.reduce_sum_f32s(sum);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn one<S: Simd>(row: &[f32]) -> S::f32s {
    S::as_simd_f32s(&row[..S::F32_LANES]).0[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::check::{numbers, randn};

    fn random(seed: u64, count: usize) -> Vec<f32> {
        numbers(&randn(seed, &[count])).into_iter().map(crate::nn::single).collect()
    }

    fn framed(maps: &[f32], t: usize) -> Framed {
        let (buffers, channels) = (Buffers::new(), maps.len() / (t * t));
        // What the memory held before is in no frame.
        Framed::new(&buffers, channels, t).numbers.fill(f32::NAN);
        let mut framed = Framed::new(&buffers, channels, t);
        maps.chunks_exact(t * t).enumerate().for_each(|(c, map)| framed.put(c, map));
        framed
    }

    /// Cell (i, j) of a map, 0 outside.
    fn cell(map: &[f32], t: usize, i: isize, j: isize) -> f64 {
        let inside = |x: isize| usize::try_from(x).ok().filter(|x| *x < t);
        inside(i).zip(inside(j)).map_or(0.0, |(i, j)| f64::from(map[i * t + j]))
    }

    #[test]
    fn convolutions_and_their_gradients_are_the_sums_that_define_them() {
        let (outputs, inputs) = (6, 5);
        for t in [1, 2, 7, 16, 19, 35] {
            let (maps, weights) = (random(1, inputs * t * t), random(2, outputs * inputs * TAPS));
            let (bias, results) = (random(3, outputs), random(4, outputs * t * t));
            let of = Weights {
                numbers: &weights,
                outputs,
                inputs,
                by_output: inputs * TAPS,
                by_input: TAPS,
                order: Order::Forward,
            };
            let mut out = vec![f32::NAN; outputs * t * t];
            convolve(&framed(&maps, t), &of, Some(&bias), &mut out);
            // Gradients of the maps: the same with outputs and inputs exchanged and taps inverted.
            let back = Weights {
                outputs: inputs,
                inputs: outputs,
                by_output: TAPS,
                by_input: inputs * TAPS,
                order: Order::Backward,
                ..of
            };
            let mut d_maps = vec![f32::NAN; inputs * t * t];
            convolve(&framed(&results, t), &back, None, &mut d_maps);
            let mut d_weights = vec![0.5; weights.len()];
            add_weight_gradient(&framed(&maps, t), &framed(&results, t), &mut d_weights);
            let (mut expected, mut of_maps) = (vec![0.0; out.len()], vec![0.0; d_maps.len()]);
            let mut of_weights = vec![0.5; weights.len()];
            for (o, c, tap) in (0..outputs)
                .flat_map(|o| (0..inputs).flat_map(move |c| (0..TAPS).map(move |tap| (o, c, tap))))
            {
                let (dy, dx) = ((tap / 3) as isize - 1, (tap % 3) as isize - 1);
                let (map, result) = (&maps[c * t * t..][..t * t], &results[o * t * t..][..t * t]);
                let at = (o * inputs + c) * TAPS + tap;
                for (i, j) in (0..t as isize).flat_map(|i| (0..t as isize).map(move |j| (i, j))) {
                    let place = i.cast_unsigned() * t + j.cast_unsigned();
                    let x = cell(map, t, i + dy, j + dx);
                    expected[o * t * t + place] += f64::from(weights[at]) * x;
                    of_weights[at] += f64::from(result[place]) * x;
                    of_maps[c * t * t + place] += f64::from(weights[at]) * cell(result, t, i - dy, j - dx);
                }
            }
            for (o, map) in expected.chunks_exact_mut(t * t).enumerate() {
                map.iter_mut().for_each(|x| *x += f64::from(bias[o]));
            }
            for (found, expected) in [(&out, &expected), (&d_maps, &of_maps), (&d_weights, &of_weights)] {
                for (found, expected) in found.iter().zip(expected) {
                    assert!((f64::from(*found) - expected).abs() < 1e-3, "t {t}: {found}, {expected}");
                }
            }
        }
    }
}
