//! The map of a layer out of scores, maps of knowledge and the map before, f32 numbers on the CPU: the heads of a sample at once.

use super::super::plain::rows::{Head, Rows, Scratch};
use super::convolve::{Framed, Order, TAPS, Weights, add_weight_gradient, convolve};
use super::{Auxiliary, Settings, Skip};
use crate::nn::buffers::Buffer;
use crate::nn::softmax::softmax_row;
use crate::nn::{single, wide};

/// How the maps of a batch are made.
pub(super) struct Semantic<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) settings: &'a Settings,
    /// Weights and biases of the convolution.
    pub(super) convolution: Option<[&'a [f32]; 2]>,
    /// Whether the weights need a gradient.
    pub(super) learns: bool,
}

/// One sample.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    /// Its number.
    pub(super) row: usize,
    /// Its tokens, and how many of them are real.
    pub(super) t: usize,
    pub(super) real: usize,
    /// Queries, keys and values, `[t, 3 d]`.
    pub(super) qkv: &'a [f32],
    /// Maps of knowledge, `[m, t, t]`.
    pub(super) maps: &'a [f32],
    /// The map of the layer before, `[h, t, t]`, if there is one.
    pub(super) before: Option<&'a [f32]>,
}

/// Gradients of the convolution's weights, empty if they need none, and biases.
pub(super) type Learned = [Vec<f32>; 2];

impl Semantic<'_> {
    /// Scores of all heads, then maps, in frames: what the convolution reads.
    fn inputs(&self, of: Sample<'_>, scratch: &mut Scratch) -> Framed {
        let (h, t, m) = (self.rows.heads.count, of.t, self.settings.maps);
        let mut framed = Framed::new(self.rows.buffers, h + m, t);
        for head in 0..h {
            self.rows.scores(Head { row: of.row, head, t }, of.qkv, scratch);
            self.screen(of, &mut scratch.probs);
            if let Some(before) = of.before {
                let before = &before[head * t * t..][..t * t];
                wide!(scratch.probs.iter_mut().zip(before).for_each(|(score, x)| *score += x));
            }
            framed.put(head, &scratch.probs);
        }
        for (map, numbers) in of.maps.chunks_exact(t * t).take(m).enumerate() {
            framed.put(h + map, numbers);
        }
        framed
    }

    /// Makes cells 0 that have no score of their own.
    fn screen(&self, of: Sample<'_>, cells: &mut [f32]) {
        if self.settings.auxiliary == Auxiliary::ZeroPad && of.real < of.t {
            for (i, row) in cells.chunks_exact_mut(of.t).enumerate() {
                row[if i < of.real { of.real } else { 0 }..].fill(0.0);
            }
        }
    }

    fn weights<'a>(&self, numbers: &'a [f32]) -> Weights<'a> {
        let (h, m) = (self.rows.heads.count, self.settings.maps);
        let (by_output, by_input) = ((h + m) * TAPS, TAPS);
        Weights { numbers, outputs: h, inputs: h + m, by_output, by_input, order: Order::Forward }
    }

    /// The shares of the merged scores and of those as they are.
    fn shares(&self) -> [f32; 2] {
        [single(self.settings.alpha), single(1.0 - self.settings.alpha)]
    }

    /// The map of one sample, `[h, t, t]`: probabilities, or with [`Skip::PreAdd`] the mixed scores.
    pub(super) fn map(&self, of: Sample<'_>, scratch: &mut Scratch) -> Buffer {
        let (h, t, m) = (self.rows.heads.count, of.t, self.settings.maps);
        let framed = self.inputs(of, scratch);
        let mut map = self.rows.buffers.any(h * t * t);
        if let Some([weight, bias]) = self.convolution {
            convolve(&framed, &self.weights(weight), Some(bias), &mut map);
        } else {
            for (at, row) in map.chunks_exact_mut(t).enumerate() {
                row.copy_from_slice(framed.row(at / t, at % t));
                for map in 0..m {
                    row.iter_mut().zip(framed.row(h + map, at % t)).for_each(|(x, map)| *x += map);
                }
                row.iter_mut().for_each(|x| *x /= single((1 + m) as f64));
            }
        }
        let [alpha, rest] = self.shares();
        wide!({
            for (at, row) in map.chunks_exact_mut(t).enumerate() {
                let scores = framed.row(at / t, at % t);
                row.iter_mut().zip(scores).for_each(|(x, score)| *x = alpha * *x + rest * score);
                if self.settings.skip != Skip::PreAdd {
                    softmax_row(row);
                }
            }
        });
        map
    }

    /// The map is softmax(M) with M = alpha conv(S, maps) + (1 - alpha) S, S being the scores with the map before. A convolution's gradient by its input is
    /// the convolution of its result's gradient with inputs and outputs exchanged and taps in opposite order: cell (i, j) went into result (i - dy, j - dx)
    /// with the weight of tap (dy, dx). So dS = alpha conv'(dM) + (1 - alpha) dM, the weight of a tap learns alpha sum dM (S, maps moved by
    /// it), and the bias alpha sum dM.
    ///
    /// Given the gradient of a sample's mixed scores, `[h, t, t]`, that of the scores, which is that of the map before as well, and what the convolution
    /// learns.
    pub(super) fn gradient(&self, of: Sample<'_>, mixed: &[f32], scratch: &mut Scratch) -> (Buffer, Learned) {
        let (h, t, m) = (self.rows.heads.count, of.t, self.settings.maps);
        let [alpha, rest] = self.shares();
        let mut d_scores = self.rows.buffers.any(mixed.len());
        let [mut weight, mut bias] = Learned::default();
        if let Some([numbers_of_weight, _]) = self.convolution {
            let mut merged = Framed::new(self.rows.buffers, h, t);
            for (at, row) in mixed.chunks_exact(t).enumerate() {
                let into = merged.row_mut(at / t, at % t);
                into.iter_mut().zip(row).for_each(|(x, g)| *x = alpha * g);
            }
            // Gradients of the scores alone: maps are given.
            let back = Weights {
                inputs: h,
                by_output: TAPS,
                by_input: (h + m) * TAPS,
                order: Order::Backward,
                ..self.weights(numbers_of_weight)
            };
            convolve(&merged, &back, None, &mut d_scores);
            if self.learns {
                weight = vec![0.0; h * (h + m) * TAPS];
                add_weight_gradient(&self.inputs(of, scratch), &merged, &mut weight);
            }
            bias = mixed.chunks_exact(t * t).map(|g| alpha * g.iter().sum::<f32>()).collect();
        } else {
            let share = alpha / single((1 + m) as f64);
            d_scores.iter_mut().zip(mixed).for_each(|(x, g)| *x = share * g);
        }
        wide!(d_scores.iter_mut().zip(mixed).for_each(|(x, g)| *x += rest * g));
        (d_scores, [weight, bias])
    }

    /// Gradients of queries and keys from that of the scores, `[h, t, t]`.
    pub(super) fn gradient_of_products(
        &self,
        of: Sample<'_>,
        d_scores: &[f32],
        scratch: &mut Scratch,
        d_qkv: &mut [f32],
    ) {
        let (t, scale) = (of.t, self.rows.scale());
        for (head, d_scores) in d_scores.chunks_exact(t * t).enumerate() {
            scratch.d_probs.iter_mut().zip(d_scores).for_each(|(out, g)| *out = g * scale);
            self.screen(of, &mut scratch.d_probs);
            self.rows.gradient_of_products(Head { row: of.row, head, t }, of.qkv, scratch, d_qkv);
        }
    }
}
