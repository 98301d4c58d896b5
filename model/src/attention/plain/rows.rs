//! Plain attention of the rows of a batch, f32 numbers on the CPU: contexts and their gradients.
//!
//! Each (row, head) is computed at once; its probabilities are made again for the gradient instead of being kept.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::super::Heads;
use crate::encoder::tokens::Span;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::product::{Left, Out, Packed, Start, multiply};
use crate::nn::softmax::{gradient_of_rows, softmax_rows};
use crate::nn::wide;

/// The attention of a batch whose rows are `spans`, `d` numbers wide.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) heads: &'a Heads,
    pub(crate) spans: &'a [Span],
    pub(crate) d: usize,
    pub(crate) buffers: &'a Buffers,
}

/// Memory that all heads of a row share.
pub(in crate::attention) struct Scratch {
    pub(in crate::attention) right: Packed,
    /// Scores, then probabilities of one head, `[t, t]`.
    pub(in crate::attention) probs: Buffer,
    /// Dropout factors of one head, `[t, t]`, empty without dropout.
    factors: Buffer,
    /// Probabilities after dropout, `[t, t]`, empty without dropout.
    dropped: Buffer,
    /// Gradients of probabilities, then of products of queries and keys, `[t, t]`.
    pub(in crate::attention) d_probs: Buffer,
}

/// One head of one row.
#[derive(Clone, Copy)]
pub(in crate::attention) struct Head {
    /// Number of the row.
    pub(in crate::attention) row: usize,
    pub(in crate::attention) head: usize,
    /// Tokens of the row.
    pub(in crate::attention) t: usize,
}

impl Rows<'_> {
    /// The contexts `[n, d]` of `qkv` `[n, 3 d]`.
    pub(crate) fn context(&self, qkv: &[f32]) -> Buffer {
        let d = self.d;
        let mut context = self.buffers.any(qkv.len() / 3);
        self.each(&mut context, d, |row, span, out| {
            let qkv = &qkv[3 * d * span.start..3 * d * (span.start + span.len)];
            let mut scratch = Scratch::new(self.buffers, span.len);
            for head in 0..self.heads.count {
                let at = Head { row, head, t: span.len };
                self.scores(at, qkv, &mut scratch);
                self.hide(at, &mut scratch);
                self.context_of(at, qkv, &mut scratch, out);
            }
        });
        context
    }

    /// The gradient `[n, 3 d]` of queries, keys and values, given that of the contexts `[n, d]`.
    pub(crate) fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Buffer {
        let d = self.d;
        let mut d_qkv = self.buffers.any(qkv.len());
        self.each(&mut d_qkv, 3 * d, |row, span, out| {
            let rows = d * span.start..d * (span.start + span.len);
            let (qkv, d_context) = (&qkv[3 * rows.start..3 * rows.end], &d_context[rows]);
            let mut scratch = Scratch::new(self.buffers, span.len);
            for head in 0..self.heads.count {
                let at = Head { row, head, t: span.len };
                self.scores(at, qkv, &mut scratch);
                self.hide(at, &mut scratch);
                self.gradient_of_scores(at, [qkv, d_context], &mut scratch, out);
                self.gradient_of_products(at, qkv, &mut scratch, out);
            }
        });
        d_qkv
    }

    /// Runs `f(number of the row, its span, its slice of out)` for all rows in parallel; gives what each gave.
    pub(in crate::attention) fn each<R: Send>(
        &self,
        mut out: &mut [f32],
        width: usize,
        f: impl Fn(usize, Span, &mut [f32]) -> R + Sync,
    ) -> Vec<R> {
        let mut parts = Vec::with_capacity(self.spans.len());
        for (row, span) in self.spans.iter().enumerate() {
            let (part, rest) = out.split_at_mut(span.len * width);
            parts.push((row, *span, part));
            out = rest;
        }
        parts.into_par_iter().map(|(row, span, part)| f(row, span, part)).collect()
    }

    /// Numbers of one head in a row (k).
    pub(in crate::attention) fn k(&self) -> usize {
        self.d / self.heads.count
    }

    /// What products of queries and keys are multiplied by: 1 / sqrt k.
    pub(in crate::attention) fn scale(&self) -> f32 {
        1.0 / (self.k() as f32).sqrt()
    }

    /// The first column of a head's query (0), key (1) or value (2).
    pub(in crate::attention) fn column(&self, part: usize, head: usize) -> usize {
        part * self.d + head * self.k()
    }

    /// Scores of one head, Q K^T / sqrt k; its keys are what is packed afterwards.
    pub(in crate::attention) fn scores(&self, at: Head, qkv: &[f32], scratch: &mut Scratch) {
        let (t, k, stride, scale) = (at.t, self.k(), 3 * self.d, self.scale());
        let (query, key) = (&qkv[self.column(0, at.head)..], &qkv[self.column(1, at.head)..]);
        scratch.right.refill_columns([k, t], |j| &key[j * stride..][..k]);
        let out = Out { values: &mut scratch.probs, stride: t };
        multiply(Left::Rows(query, stride), &scratch.right, Start::Zero, out);
        wide!(scratch.probs.iter_mut().for_each(|score| *score *= scale));
    }

    /// Takes the scores away of what nothing looks at.
    fn hide(&self, at: Head, scratch: &mut Scratch) {
        let seen = self.heads.seen.as_ref().and_then(|seen| seen.get(at.row)).copied().unwrap_or(at.t);
        if seen < at.t {
            scratch.probs.chunks_exact_mut(at.t).for_each(|scores| scores[seen..].fill(f32::NEG_INFINITY));
        }
    }

    /// The context of one head, given its scores.
    pub(in crate::attention) fn context_of(
        &self,
        at: Head,
        qkv: &[f32],
        scratch: &mut Scratch,
        context: &mut [f32],
    ) {
        wide!(softmax_rows(&mut scratch.probs, at.t));
        self.mix(at, qkv, scratch, context);
    }

    /// The context of one head, given its probabilities.
    pub(in crate::attention) fn mix(
        &self,
        at: Head,
        qkv: &[f32],
        scratch: &mut Scratch,
        context: &mut [f32],
    ) {
        self.drop(at, scratch);
        let (t, k, stride) = (at.t, self.k(), 3 * self.d);
        let value = &qkv[self.column(2, at.head)..];
        scratch.right.refill_rows([t, k], |j| &value[j * stride..][..k]);
        let probs = if scratch.dropped.is_empty() { &*scratch.probs } else { &*scratch.dropped };
        let out = Out { values: &mut context[at.head * k..], stride: self.d };
        multiply(Left::Rows(probs, t), &scratch.right, Start::Zero, out);
    }

    /// Factors of dropout and what they make of the probabilities. The numbering is that of all rows' `[h, t, t]` squares.
    fn drop(&self, at: Head, scratch: &mut Scratch) {
        let Some(dropout) = self.heads.dropout else { return };
        let (first, t) = (index_of_dropout(at.row * self.heads.count + at.head), at.t);
        scratch.factors.resize(t * t);
        scratch.dropped.resize(t * t);
        wide!({
            for (i, row) in scratch.factors.chunks_exact_mut(t).enumerate() {
                let places = first | (i as u64) << 20;
                for (factor, place) in row.iter_mut().zip(places..) {
                    *factor = dropout.factor(place);
                }
            }
            let both = scratch.probs.iter().zip(&*scratch.factors);
            scratch.dropped.iter_mut().zip(both).for_each(|(dropped, (p, factor))| *dropped = p * factor);
        });
    }

    /// Given the scores, the gradients of the values and, in `scratch.d_probs`, of the products of queries and keys. With
    /// probabilities P, their gradient dP = dC V^T and S the scaled scores: dV = P^T dC, dS = P (dP - sum_j P dP). Dropout multiplies P by a factor F
    /// before V: then dV = (P F)^T dC and dP = F dC V^T. S = Q K^T / sqrt k, so that what is left there is dS / sqrt k.
    pub(in crate::attention) fn gradient_of_scores(
        &self,
        at: Head,
        of: [&[f32]; 2],
        scratch: &mut Scratch,
        d_qkv: &mut [f32],
    ) {
        wide!(softmax_rows(&mut scratch.probs, at.t));
        self.gradient_of_mix(at, of, scratch, d_qkv);
        let Scratch { probs, d_probs, .. } = scratch;
        wide!(gradient_of_rows(probs, d_probs, at.t, self.scale()));
    }

    /// Given the probabilities, the gradients of the values and, in `scratch.d_probs`, of the probabilities.
    pub(in crate::attention) fn gradient_of_mix(
        &self,
        at: Head,
        [qkv, d_context]: [&[f32]; 2],
        scratch: &mut Scratch,
        d_qkv: &mut [f32],
    ) {
        let (t, k, d, stride) = (at.t, self.k(), self.d, 3 * self.d);
        let value = self.column(2, at.head);
        let d_context = &d_context[at.head * k..];
        self.drop(at, scratch);
        let Scratch { right, probs, factors, dropped, d_probs } = scratch;
        let held = if dropped.is_empty() { &**probs } else { &**dropped };
        right.refill_rows([t, k], |i| &d_context[i * d..][..k]);
        let out = Out { values: &mut d_qkv[value..], stride };
        multiply(Left::Columns(held, t), right, Start::Zero, out);
        right.refill_columns([k, t], |j| &qkv[value + j * stride..][..k]);
        multiply(Left::Rows(d_context, d), right, Start::Zero, Out { values: d_probs, stride: t });
        wide!(d_probs.iter_mut().zip(&**factors).for_each(|(dp, factor)| *dp *= factor));
    }

    /// Gradients of queries and keys from that of their products: dQ = dS K / sqrt k, dK = dS^T Q / sqrt k.
    pub(in crate::attention) fn gradient_of_products(
        &self,
        at: Head,
        qkv: &[f32],
        scratch: &mut Scratch,
        d_qkv: &mut [f32],
    ) {
        let (t, k, stride) = (at.t, self.k(), 3 * self.d);
        let [query, key] = [0, 1].map(|part| self.column(part, at.head));
        let Scratch { right, d_probs, .. } = scratch;
        right.refill_rows([t, k], |j| &qkv[key + j * stride..][..k]);
        let out = Out { values: &mut d_qkv[query..], stride };
        multiply(Left::Rows(d_probs, t), right, Start::Zero, out);
        right.refill_rows([t, k], |i| &qkv[query + i * stride..][..k]);
        let out = Out { values: &mut d_qkv[key..], stride };
        multiply(Left::Columns(d_probs, t), right, Start::Zero, out);
    }
}

/// The index of dropout at a head's first probability, `head` being its number among the heads of all rows: probability (i, j) has
/// `i << 20 | j` more, whatever the length of its row.
pub(in crate::attention) fn index_of_dropout(head: usize) -> u64 {
    (head as u64) << 40
}

impl Scratch {
    pub(in crate::attention) fn new(buffers: &Buffers, t: usize) -> Self {
        let [probs, d_probs] = [buffers.any(t * t), buffers.any(t * t)];
        let [factors, dropped] = [buffers.any(0), buffers.any(0)];
        Scratch { right: Packed::empty(buffers), probs, factors, dropped, d_probs }
    }
}
