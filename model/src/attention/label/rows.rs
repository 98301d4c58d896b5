//! Label-embedding attention of the rows of a batch, f32 numbers on the CPU: contexts and their gradients.

use super::super::plain::rows::{Head, Rows, Scratch};
use crate::nn::buffers::Buffer;
use crate::nn::product::{Left, Out, Start, multiply};

/// Plain attention of a batch, and what labels ask of its tokens.
pub(super) struct LabelRows<'a> {
    pub(super) plain: Rows<'a>,
    /// `[m, d]`.
    pub(super) queries: &'a [f32],
    /// What products of label queries and keys are multiplied by.
    pub(super) scale: f32,
}

/// A token of which a label asks more than the first token does.
struct Asked {
    token: usize,
    label: usize,
    /// The label's score; in the backward pass the gradient of its product with the token's key.
    number: f32,
}

impl LabelRows<'_> {
    /// The contexts `[n, d]` of `qkv` `[n, 3 d]`.
    pub(super) fn context(&self, qkv: &[f32]) -> Buffer {
        let d = self.plain.d;
        let mut context = self.plain.buffers.any(qkv.len() / 3);
        self.plain.each(&mut context, d, |row, span, out| {
            let qkv = &qkv[3 * d * span.start..3 * d * (span.start + span.len)];
            let mut scratch = Scratch::new(self.plain.buffers, span.len);
            let mut labels = self.plain.buffers.any(0);
            for head in 0..self.plain.heads.count {
                let at = Head { row, head, t: span.len };
                self.plain.scores(at, qkv, &mut scratch);
                self.raise(at, &mut scratch, &mut labels);
                self.plain.context_of(at, qkv, &mut scratch, out);
            }
        });
        context
    }

    /// The gradients of queries, keys and values `[n, 3 d]` and of the labels' queries `[m, d]`, given that of the contexts `[n, d]`.
    pub(super) fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> (Buffer, Vec<f32>) {
        let d = self.plain.d;
        let mut d_qkv = self.plain.buffers.any(qkv.len());
        let of_rows: Vec<Vec<f32>> = self.plain.each(&mut d_qkv, 3 * d, |row, span, out| {
            let rows = d * span.start..d * (span.start + span.len);
            let (qkv, d_context) = (&qkv[3 * rows.start..3 * rows.end], &d_context[rows]);
            let mut scratch = Scratch::new(self.plain.buffers, span.len);
            let (mut labels, mut d_queries) = (self.plain.buffers.any(0), vec![0.0; self.queries.len()]);
            for head in 0..self.plain.heads.count {
                let at = Head { row, head, t: span.len };
                self.plain.scores(at, qkv, &mut scratch);
                let mut asked = self.raise(at, &mut scratch, &mut labels);
                self.plain.gradient_of_scores(at, [qkv, d_context], &mut scratch, out);
                self.take(&mut asked, &mut scratch);
                self.plain.gradient_of_products(at, qkv, &mut scratch, out);
                self.hand_on(head, &asked, qkv, out, &mut d_queries);
            }
            d_queries
        });
        // Labels are asked by all rows; their sums are added in the order of the rows, not of the threads.
        let mut d_queries = vec![0.0; self.queries.len()];
        for row in &of_rows {
            d_queries.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        (d_qkv, d_queries)
    }

    /// Raises the scores of the first token, that of itself apart, to what labels ask; tells where. `scratch` holds the scores and the keys.
    fn raise(&self, at: Head, scratch: &mut Scratch, labels: &mut Buffer) -> Vec<Asked> {
        let (t, k, m) = (at.t, self.plain.k(), self.queries.len() / self.plain.d);
        labels.resize(m * t);
        let left = Left::Rows(&self.queries[at.head * k..], self.plain.d);
        multiply(left, &scratch.right, Start::Zero, Out { values: labels, stride: t });
        let mut asked = vec![];
        for (token, score) in scratch.probs[..t].iter_mut().enumerate().skip(1) {
            let mut most: Option<usize> = None;
            for (label, number) in labels[token..].iter().step_by(t).enumerate() {
                let number = number * self.scale;
                if number > *score {
                    (*score, most) = (number, Some(label));
                }
            }
            asked.extend(most.map(|label| Asked { token, label, number: *score }));
        }
        asked
    }

    /// Takes the gradients of raised scores from the first token's row: they are the labels'. A maximum hands its gradient to whatever was largest and
    /// nothing to the others, so where a label won, the first token's own product has none. The gradients come times 1 / sqrt k, as plain
    /// attention's products need them; those of labels are times `self.scale`.
    fn take(&self, asked: &mut [Asked], scratch: &mut Scratch) {
        let scale = self.scale / self.plain.scale();
        for of in asked {
            of.number = std::mem::take(&mut scratch.d_probs[of.token]) * scale;
        }
    }

    /// Adds these gradients to those of the keys and of the labels' queries.
    fn hand_on(&self, head: usize, asked: &[Asked], qkv: &[f32], d_qkv: &mut [f32], d_queries: &mut [f32]) {
        let (d, k) = (self.plain.d, self.plain.k());
        for &Asked { token, label, number } in asked {
            let key = token * 3 * d + self.plain.column(1, head);
            let query = label * d + head * k;
            let pairs = d_queries[query..][..k].iter_mut().zip(&qkv[key..][..k]);
            pairs.for_each(|(sum, key)| *sum += number * key);
            let pairs = d_qkv[key..][..k].iter_mut().zip(&self.queries[query..][..k]);
            pairs.for_each(|(sum, query)| *sum += number * query);
        }
    }
}
