//! The forward pass of a layer on f32 numbers.

use candle_core::Result;
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::Numbers;
use crate::attention::OnNumbers;
use crate::nn::buffers::Buffer;
use crate::nn::gelu;
use crate::nn::layer_norm::normalise;
use crate::nn::product::{BLOCK, Left, Out, Packed, Start, multiply};
use crate::nn::wide;

/// What the backward pass needs of the forward pass.
pub(super) struct Saved {
    /// Queries, keys and values, `[n, 3 d]`.
    pub(super) qkv: Buffer,
    /// Contexts of the heads, `[n, d]`.
    pub(super) context: Buffer,
    pub(super) tail: Tail,
}

/// The same of what follows attention.
pub(super) struct Tail {
    /// Contexts times the gates, if there are some, `[n, d]`.
    pub(super) gated: Option<Buffer>,
    /// What follows them, for each block of rows that are asked for.
    pub(super) blocks: Vec<Block>,
}

/// The numbers of up to [`BLOCK`] rows.
pub(super) struct Block {
    /// Attention's output with the layer's input, normalised before gain and bias, `[rows, d]`.
    pub(super) a_hat: Buffer,
    /// What `a_hat` was divided by is 1 over this, `[rows]`.
    pub(super) a_inverse: Buffer,
    /// The same with gain and bias: the feed-forward network's input, `[rows, d]`.
    pub(super) a: Buffer,
    /// GELU of the widened rows, `[rows, i]`.
    pub(super) wide: Buffer,
    /// The derivatives of that GELU, `[rows, i]`.
    pub(super) slope: Buffer,
    /// The output before gain and bias, `[rows, d]`, and its divisor as above.
    pub(super) y_hat: Buffer,
    pub(super) y_inverse: Buffer,
}

/// The weights as right factors.
struct Factors {
    output: Packed,
    widen: Packed,
    narrow: Packed,
}

/// The output `[n, d]` for the input `x` of the same shape.
pub(super) fn forward(
    numbers: &Numbers<'_>,
    attention: &dyn OnNumbers,
    x: &[f32],
) -> Result<(Vec<f32>, Saved)> {
    let qkv = numbers.projections(x);
    let context = attention.context(&qkv)?;
    let (y, tail) = numbers.tail([&context, x]);
    Ok((y, Saved { qkv, context, tail }))
}

/// The same output where no backward pass comes: one block's numbers take the place of another's.
pub(super) fn output(numbers: &Numbers<'_>, attention: &dyn OnNumbers, x: &[f32]) -> Result<Vec<f32>> {
    let context = attention.context(&numbers.projections(x))?;
    Ok(numbers.output([&context, x]))
}

impl Numbers<'_> {
    /// Row `at` of queries', keys' and values' weights, one below the other.
    pub(super) fn qkv_row(&self, at: usize) -> &[f32] {
        &self.weights[at / self.d][at % self.d * self.d..][..self.d]
    }

    /// Queries, keys and values `[n, 3 d]`.
    fn projections(&self, x: &[f32]) -> Buffer {
        let d = self.d;
        let factor = Packed::of_columns(self.buffers, [d, 3 * d], |c| self.qkv_row(c)).rounded(self.rounding);
        let bias = self.biases[..3].concat();
        let mut qkv = self.buffers.any(3 * x.len());
        qkv.par_chunks_mut(3 * BLOCK * d).enumerate().for_each(|(i, values)| {
            let left = Left::Rows(&x[i * BLOCK * d..], d);
            multiply(left, &factor, Start::Row(&bias), Out { values, stride: 3 * d });
        });
        qkv
    }

    /// The output `[n, d]` for the heads' contexts and the layer's input, of the same shape both.
    pub(super) fn tail(&self, [context, x]: [&[f32]; 2]) -> (Vec<f32>, Tail) {
        let d = self.d;
        let gated = self.gates.map(|gates| gates.scaled(self.buffers, context, d));
        let seen = gated.as_deref().unwrap_or(context);
        let asked = self.asked_of([seen, x]);
        let [seen, given] = [asked[0].as_deref().unwrap_or(seen), asked[1].as_deref().unwrap_or(x)];
        let factors = self.factors();
        let mut y = vec![0.0; given.len()];
        let blocks = y
            .par_chunks_mut(BLOCK * d)
            .enumerate()
            .map(|(at, y)| {
                let first = at * BLOCK * d;
                let of = [&seen[first..], &given[first..first + y.len()]];
                self.after_attention(&factors, at * BLOCK, of, y)
            })
            .collect();
        (self.asked.outputs(y, x.len() / d, d), Tail { gated, blocks })
    }

    /// The rows that are asked for of some matrices `[n, d]`.
    fn asked_of(&self, matrices: [&[f32]; 2]) -> [Option<Buffer>; 2] {
        matrices.map(|matrix| self.asked.gathered(self.buffers, matrix, self.d))
    }

    fn factors(&self) -> Factors {
        let (d, i) = (self.d, self.i);
        let columns = |which: usize, [k, n]: [usize; 2]| {
            Packed::of_columns(self.buffers, [k, n], |c| &self.weights[which][c * k..][..k])
                .rounded(self.rounding)
        };
        Factors { output: columns(3, [d, d]), widen: columns(4, [d, i]), narrow: columns(5, [i, d]) }
    }

    /// The output alone.
    fn output(&self, [context, x]: [&[f32]; 2]) -> Vec<f32> {
        let (d, i) = (self.d, self.i);
        let gated = self.gates.map(|gates| gates.scaled(self.buffers, context, d));
        let seen = gated.as_deref().unwrap_or(context);
        let asked = self.asked_of([seen, x]);
        let [seen, given] = [asked[0].as_deref().unwrap_or(seen), asked[1].as_deref().unwrap_or(x)];
        let (factors, mut y) = (&self.factors(), vec![0.0; given.len()]);
        let matrix = |width: usize| self.buffers.any(BLOCK * width);
        let scratch = || [matrix(d), matrix(1), matrix(d), matrix(i)];
        y.par_chunks_mut(BLOCK * d).enumerate().for_each_init(scratch, |of_all, (at, y)| {
            let (first, rows) = (at * BLOCK, y.len() / d);
            let [hat, inverse, a, wide] = of_all;
            let [hat, inverse, a, wide] =
                [&mut hat[..rows * d], &mut inverse[..rows], &mut a[..rows * d], &mut wide[..rows * i]];
            let of = [&seen[first * d..], &given[first * d..][..y.len()]];
            self.joined(0, factors, first, of, [&mut *hat, &mut *inverse, &mut *a]);
            self.widened(factors, a, wide);
            gelu::in_place(wide);
            self.joined(1, factors, first, [wide, a], [hat, inverse, y]);
        });
        self.asked.outputs(y, x.len() / d, d)
    }

    /// From contexts and inputs of some rows, number `first` of those asked for and what follows it, to their outputs.
    fn after_attention(
        &self,
        factors: &Factors,
        first: usize,
        [context, x]: [&[f32]; 2],
        y: &mut [f32],
    ) -> Block {
        let (d, i, rows) = (self.d, self.i, y.len() / self.d);
        let matrix = |width: usize| self.buffers.any(rows * width);
        let mut block = Block {
            a_hat: matrix(d),
            a_inverse: matrix(1),
            a: matrix(d),
            wide: matrix(i),
            slope: matrix(i),
            y_hat: matrix(d),
            y_inverse: matrix(1),
        };
        let Block { a_hat, a_inverse, a, wide, slope, y_hat, y_inverse } = &mut block;
        self.joined(0, factors, first, [context, x], [a_hat, a_inverse, a]);
        self.widened(factors, a, slope);
        gelu::values_and_slopes(slope, wide);
        self.joined(1, factors, first, [wide, a], [y_hat, y_inverse, y]);
        block
    }

    /// Attention's output with the layer's input (0), or the feed-forward network's with its own (1), before and after a norm's gain and bias.
    fn joined(
        &self,
        which: usize,
        factors: &Factors,
        first: usize,
        [x, residual]: [&[f32]; 2],
        [hat, inverse, y]: [&mut [f32]; 3],
    ) {
        let (factor, bias, width) =
            if which == 0 { (&factors.output, 3, self.d) } else { (&factors.narrow, 5, self.i) };
        let out = Out { values: &mut *hat, stride: self.d };
        multiply(Left::Rows(x, width), factor, Start::Row(self.biases[bias]), out);
        self.add_dropped([which, first], hat, residual);
        self.normalise(which, [hat, inverse, y]);
    }

    /// The feed-forward network before GELU.
    fn widened(&self, factors: &Factors, a: &[f32], values: &mut [f32]) {
        let out = Out { values, stride: self.i };
        multiply(Left::Rows(a, self.d), &factors.widen, Start::Row(self.biases[4]), out);
    }

    fn normalise(&self, which: usize, out: [&mut [f32]; 3]) {
        normalise([self.gains[which], self.shifts[which]], self.epsilon, out);
    }

    /// `x = dropout(x) + residual`, of rows from `first` on.
    fn add_dropped(&self, [which, first]: [usize; 2], x: &mut [f32], residual: &[f32]) {
        wide!({
            self.drop([which, first], x);
            x.iter_mut().zip(residual).for_each(|(x, r)| *x += r);
        });
    }

    /// Dropout of attention's output (0) or of the feed-forward network's (1), of rows from `first` on of those asked for. What is drawn goes by tokens,
    /// whoever else is asked for.
    #[inline(always)]
    pub(super) fn drop(&self, [which, first]: [usize; 2], x: &mut [f32]) {
        let Some(dropout) = self.dropout[which] else { return };
        for (row, x) in (first..).zip(x.chunks_exact_mut(self.d)) {
            let places = (self.asked.token(row) * self.d) as u64..;
            for (x, at) in x.iter_mut().zip(places) {
                *x *= dropout.factor(at);
            }
        }
    }
}
