//! KAM-BERT's attention of the samples of a batch, f32 numbers on the CPU: contexts and their gradients.

use super::super::plain::rows::{Head, Scratch};
use super::Skip;
use super::semantic::{Learned, Sample, Semantic};
use crate::nn::buffers::Buffer;
use crate::nn::softmax::{gradient_of_rows, softmax_rows};
use crate::nn::wide;

/// The attention of a batch.
pub(super) struct KamRows<'a> {
    pub(super) semantic: Semantic<'a>,
    /// Tokens of each sample that are real.
    pub(super) real: &'a [usize],
    /// Of each sample `[m, t, t]`, one behind the other.
    pub(super) maps: &'a [f32],
    /// Of each sample the map of the layer before, `[h, t, t]`, if there is one.
    pub(super) before: Option<&'a [Buffer]>,
}

/// What the gradient of one sample's mixed scores is made of.
#[derive(Clone, Copy)]
struct Given<'a> {
    /// The map, `[h, t, t]`.
    map: &'a [f32],
    /// The map's gradient as far as it comes from the next layer, `[h, t, t]`.
    next: Option<&'a [f32]>,
    /// The gradient of the contexts, `[t, d]`.
    d_context: &'a [f32],
}

impl KamRows<'_> {
    /// The contexts `[n, d]` of `qkv` `[n, 3 d]`, and of each sample its map.
    pub(super) fn context(&self, qkv: &[f32]) -> (Buffer, Vec<Buffer>) {
        let (rows, samples) = (&self.semantic.rows, self.samples(qkv));
        let mut context = rows.buffers.any(qkv.len() / 3);
        let maps = rows.each(&mut context, rows.d, |row, _, out| {
            let of = samples[row];
            let mut scratch = Scratch::new(rows.buffers, of.t);
            let map = self.semantic.map(of, &mut scratch);
            for (head, map) in map.chunks_exact(of.t * of.t).enumerate() {
                self.probabilities(of, map, &mut scratch);
                rows.mix(Head { row, head, t: of.t }, of.qkv, &mut scratch, out);
            }
            map
        });
        (context, maps)
    }

    /// The gradient of queries, keys and values `[n, 3 d]`, and of each sample those of the map before, if there is one, and of the convolution; given
    /// the gradient of the contexts `[n, d]`, and of each sample its map and that map's gradient from the next layer.
    pub(super) fn gradient(
        &self,
        [qkv, d_context]: [&[f32]; 2],
        maps: &[Buffer],
        next: Option<&[Buffer]>,
    ) -> (Buffer, Vec<(Option<Buffer>, Learned)>) {
        let (rows, samples) = (&self.semantic.rows, self.samples(qkv));
        let mut d_qkv = rows.buffers.any(qkv.len());
        let found = rows.each(&mut d_qkv, 3 * rows.d, |row, span, out| {
            let of = samples[row];
            let d_context = &d_context[rows.d * span.start..][..rows.d * span.len];
            let given = Given { map: &maps[row], next: next.map(|next| &*next[row]), d_context };
            let mut scratch = Scratch::new(rows.buffers, of.t);
            let mixed = self.gradient_of_mixed(of, given, &mut scratch, out);
            let (d_scores, learned) = self.semantic.gradient(of, &mixed, &mut scratch);
            self.semantic.gradient_of_products(of, &d_scores, &mut scratch, out);
            (of.before.is_some().then_some(d_scores), learned)
        });
        (d_qkv, found)
    }

    /// The samples of `qkv`.
    fn samples<'b>(&'b self, qkv: &'b [f32]) -> Vec<Sample<'b>> {
        let (d, m, mut left) = (self.semantic.rows.d, self.semantic.settings.maps, self.maps);
        let samples = self.semantic.rows.spans.iter().zip(self.real).enumerate();
        samples
            .map(|(row, (span, &real))| {
                let maps;
                (maps, left) = left.split_at(m * span.len * span.len);
                let qkv = &qkv[3 * d * span.start..][..3 * d * span.len];
                let before = self.before.map(|before| &*before[row]);
                Sample { row, t: span.len, real, qkv, maps, before }
            })
            .collect()
    }

    /// The probabilities of one head, given its map.
    fn probabilities(&self, of: Sample<'_>, map: &[f32], scratch: &mut Scratch) {
        scratch.probs.copy_from_slice(map);
        if self.semantic.settings.skip == Skip::PreAdd {
            wide!(softmax_rows(&mut scratch.probs, of.t));
        }
    }

    /// The gradients of a sample's values, and of its mixed scores, `[h, t, t]`.
    fn gradient_of_mixed(
        &self,
        of: Sample<'_>,
        Given { map, next, d_context }: Given<'_>,
        scratch: &mut Scratch,
        d_qkv: &mut [f32],
    ) -> Buffer {
        let (t, cells, skip) = (of.t, of.t * of.t, self.semantic.settings.skip);
        let mut mixed = self.semantic.rows.buffers.any(map.len());
        let heads = map.chunks_exact(cells).zip(mixed.chunks_exact_mut(cells)).enumerate();
        for (head, (map, mixed)) in heads {
            let next = next.map(|next| &next[head * cells..][..cells]);
            self.probabilities(of, map, scratch);
            let at = Head { row: of.row, head, t };
            self.semantic.rows.gradient_of_mix(at, [of.qkv, d_context], scratch, d_qkv);
            mixed.copy_from_slice(&scratch.d_probs);
            // The next layer adds to its scores what the softmax gave, or what it was given.
            if skip != Skip::PreAdd {
                add(mixed, next);
            }
            wide!(gradient_of_rows(&scratch.probs, mixed, t, 1.0));
            if skip == Skip::PreAdd {
                add(mixed, next);
            }
        }
        mixed
    }
}

/// Adds numbers, if there are some.
fn add(sum: &mut [f32], numbers: Option<&[f32]>) {
    wide!(sum.iter_mut().zip(numbers.unwrap_or_default()).for_each(|(sum, x)| *sum += x));
}
