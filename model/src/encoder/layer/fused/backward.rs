//! The backward pass of a layer on f32 numbers.
//!
//! With C the contexts times their gates, D1 and D2 dropout, the layer is
//!
//! ```text
//! o = C Wo^T + bo    a = LN1(D1 o + x)    u = a W1^T + b1    w = GELU(u)    z = w W2^T + b2    y = LN2(D2 z + a)
//! ```
//!
//! and backward, from dy:
//!
//! ```text
//! r2 = LN2'(dy)            dz = D2 r2    dW2 = dz^T w    db2 = sum dz
//! du = (dz W2) GELU'(u)                  dW1 = du^T a    db1 = sum du
//! da = r2 + du W1          (a goes on beside the feed-forward network as well)
//! r1 = LN1'(da)            do = D1 r1    dWo = do^T C    dbo = sum do
//! dC = do Wo               dx = r1 + dqkv Wqkv, dqkv being what attention makes of dC
//! ```
//!
//! All but dC and what comes of it are of the tokens that are asked for alone; dC and r1 are 0 of the others.

use candle_core::{Result, Tensor};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use super::forward::{Block, Saved, Tail};
use super::{LINEARS, NORMS, Numbers};
use crate::attention::OnNumbers;
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::layer_norm::normalised_gradient;
use crate::nn::product::{BLOCK, Left, Out, Packed, Start, multiply, product};
use crate::nn::{sum_rows, wide};

/// One backward pass.
pub(super) struct Pass<'a> {
    pub(super) attention: &'a dyn OnNumbers,
    /// Whether anything that attention reads besides queries, keys and values needs a gradient.
    pub(super) reads: bool,
    pub(super) saved: &'a Saved,
    pub(super) tail: TailPass<'a>,
    /// Whether the layer's input needs a gradient.
    pub(super) input: bool,
}

/// One backward pass through what follows attention.
pub(super) struct TailPass<'a> {
    pub(super) numbers: &'a Numbers<'a>,
    pub(super) tail: &'a Tail,
    /// The heads' contexts, `[n, d]`.
    pub(super) context: &'a [f32],
    /// Which parameters need a gradient: weights, biases, gains, shifts.
    pub(super) wanted: &'a [bool],
    /// Whether the gates need one.
    pub(super) gates: bool,
}

/// Gradients of all parameters that were wanted, of the gates `[r, h]`, of what attention reads and of the input.
pub(super) struct Gradients {
    pub(super) parameters: Vec<Option<Buffer>>,
    pub(super) gates: Option<Vec<f32>>,
    /// None if nothing before attention's output needs one.
    pub(super) reads: Vec<Tensor>,
    pub(super) input: Option<Buffer>,
}

/// Gradients of what follows attention.
pub(super) struct TailGradients {
    /// Of all the layer's parameters that were wanted; those before attention have none yet.
    pub(super) parameters: Vec<Option<Buffer>>,
    pub(super) gates: Option<Vec<f32>>,
    /// Of the contexts times their gates, `[n, d]`.
    pub(super) gated: Buffer,
    /// Of the layer's input as far as it goes round attention, `[n, d]`.
    pub(super) residual: Buffer,
}

/// The weights as right factors, and what the walk over blocks of rows finds.
struct Factors {
    output: Packed,
    widen: Packed,
    narrow: Packed,
}

/// Gradients of matrices with a row for each token that is asked for (m).
struct Walked {
    /// Of the narrowed rows before dropout, `[m, d]`.
    narrowed: Buffer,
    /// Of the widened rows before GELU, `[m, i]`.
    widened: Buffer,
    /// Of attention's output before dropout, `[m, d]`.
    output: Buffer,
    /// Of the contexts times their gates, `[m, d]`.
    gated: Buffer,
    /// Of the layer's input as far as it goes round attention, `[m, d]`.
    residual: Buffer,
    /// Sums over all rows: see [`Sums`].
    sums: Vec<f32>,
}

/// The slices of a walk that belong to one block of rows.
struct Part<'a> {
    narrowed: &'a mut [f32],
    widened: &'a mut [f32],
    output: &'a mut [f32],
    gated: &'a mut [f32],
    residual: &'a mut [f32],
}

impl Pass<'_> {
    /// All gradients, given that of the output.
    pub(super) fn backward(&self, x: &[f32], g: &[f32]) -> Result<Gradients> {
        let mut found = self.tail.backward(g);
        let wanted = self.tail.wanted;
        // Attention's own gradient is the dearest part; it is left out where nobody asks for what comes of it.
        let projections = (0..3).any(|which| wanted[which] || wanted[LINEARS + which]);
        let (mut input, mut reads) = (None, vec![]);
        if self.input || self.reads || projections {
            let d_context = self.tail.of_contexts(found.gated);
            let d_qkv;
            (d_qkv, reads) = self.attention.gradient(&self.saved.qkv, &d_context)?;
            self.projections(&d_qkv, x, &mut found.parameters);
            input = self.input.then(|| self.of_input(&d_qkv, found.residual));
        }
        Ok(Gradients { parameters: found.parameters, gates: found.gates, reads, input })
    }

    /// Gradients of the weights and biases of queries, keys and values.
    fn projections(&self, d_qkv: &[f32], x: &[f32], found: &mut [Option<Buffer>]) {
        let Numbers { d, buffers, rounding, .. } = *self.tail.numbers;
        let wanted = self.tail.wanted;
        let bias = sum_rows!(x.len() / d, 3 * d, |row, sum| {
            sum.iter_mut().zip(&d_qkv[row * 3 * d..]).for_each(|(sum, g)| *sum += g);
        });
        let factor = (0..3).any(|which| wanted[which]);
        let factor = factor
            .then(|| Packed::of_rows(buffers, [x.len() / d, d], |row| &x[row * d..][..d]).rounded(rounding));
        for which in 0..3 {
            if let Some(factor) = factor.as_ref().filter(|_| wanted[which]) {
                let left = Left::Columns(&d_qkv[which * d..], 3 * d);
                found[which] = Some(product(buffers, left, factor, d));
            }
            if wanted[LINEARS + which] {
                let bias = &bias[which * d..(which + 1) * d];
                found[LINEARS + which] = Some(copied(buffers, bias));
            }
        }
    }

    /// The gradient of the layer's input.
    fn of_input(&self, d_qkv: &[f32], mut dx: Buffer) -> Buffer {
        let numbers = self.tail.numbers;
        let d = numbers.d;
        let factor = Packed::of_rows(numbers.buffers, [3 * d, d], |row| numbers.qkv_row(row))
            .rounded(numbers.rounding);
        dx.par_chunks_mut(BLOCK * d).enumerate().for_each(|(at, values)| {
            let left = Left::Rows(&d_qkv[at * BLOCK * 3 * d..], 3 * d);
            multiply(left, &factor, Start::Kept, Out { values, stride: d });
        });
        dx
    }
}

impl TailPass<'_> {
    /// All gradients behind attention, given that of the output.
    pub(super) fn backward(&self, g: &[f32]) -> TailGradients {
        let Numbers { d, asked, buffers, .. } = *self.numbers;
        let picked = asked.gathered(buffers, g, d);
        let walked = self.walk(picked.as_deref().unwrap_or(g));
        let mut found: Vec<Option<Buffer>> = self.wanted.iter().map(|_| None).collect();
        self.sums(&walked.sums, &mut found);
        self.weights(&walked, &mut found);
        let n = self.context.len() / d;
        let [gated, residual] =
            [walked.gated, walked.residual].map(|rows| asked.gradients(buffers, rows, [n, d]));
        let gates = self.gates(&gated);
        TailGradients { parameters: found, gates, gated, residual }
    }

    /// The gradient of the contexts, given that of the same times their gates.
    pub(super) fn of_contexts(&self, mut gated: Buffer) -> Buffer {
        if let Some(gates) = self.numbers.gates {
            gates.rescale(&mut gated, self.numbers.d);
        }
        gated
    }

    /// The gradient of the gates, given that of the gated contexts.
    fn gates(&self, g: &[f32]) -> Option<Vec<f32>> {
        let gates = self.numbers.gates.filter(|_| self.gates)?;
        Some(gates.gradient([self.context, g], self.numbers.d))
    }

    /// Gradients of the weights behind attention.
    fn weights(&self, walked: &Walked, found: &mut [Option<Buffer>]) {
        let Numbers { d, i, asked, .. } = *self.numbers;
        if self.wanted[3] {
            let context = self.tail.gated.as_deref().unwrap_or(self.context);
            found[3] = Some(self.weight(&walked.output, [d, d], |row| &context[asked.token(row) * d..][..d]));
        }
        if self.wanted[4] {
            found[4] = Some(self.weight(&walked.widened, [i, d], |row| {
                &self.tail.blocks[row / BLOCK].a[row % BLOCK * d..][..d]
            }));
        }
        if self.wanted[5] {
            found[5] = Some(self.weight(&walked.narrowed, [d, i], |row| {
                &self.tail.blocks[row / BLOCK].wide[row % BLOCK * i..][..i]
            }));
        }
    }

    /// The gradient `[o, width]` of a weight: that of its results, transposed, times its inputs.
    fn weight<'a>(
        &self,
        g: &[f32],
        [o, width]: [usize; 2],
        input: impl Fn(usize) -> &'a [f32] + Sync,
    ) -> Buffer {
        let Numbers { buffers, rounding, .. } = *self.numbers;
        let factor = Packed::of_rows(buffers, [g.len() / o, width], input).rounded(rounding);
        product(buffers, Left::Columns(g, o), &factor, o)
    }

    /// From the output's gradient to that of the contexts, block by block.
    fn walk(&self, g: &[f32]) -> Walked {
        let Numbers { d, i, .. } = *self.numbers;
        let rows_of = |which: usize, [k, n]: [usize; 2]| {
            Packed::of_rows(self.numbers.buffers, [k, n], |r| &self.numbers.weights[which][r * n..][..n])
                .rounded(self.numbers.rounding)
        };
        let factors =
            Factors { output: rows_of(3, [d, d]), widen: rows_of(4, [i, d]), narrow: rows_of(5, [d, i]) };
        let buffers = self.numbers.buffers;
        let matrix = |width: usize| buffers.any(g.len() / d * width);
        let mut walked = Walked {
            narrowed: matrix(d),
            widened: matrix(i),
            output: matrix(d),
            gated: matrix(d),
            residual: matrix(d),
            sums: vec![0.0; Sums::len(d, i)],
        };
        let narrow = walked.narrowed.par_chunks_mut(BLOCK * d).zip(walked.widened.par_chunks_mut(BLOCK * i));
        let more = walked.output.par_chunks_mut(BLOCK * d).zip(walked.gated.par_chunks_mut(BLOCK * d));
        let parts = narrow.zip(more).zip(walked.residual.par_chunks_mut(BLOCK * d));
        let sums: Vec<Vec<f32>> = parts
            .enumerate()
            .map(|(at, (((narrowed, widened), (output, gated)), residual))| {
                let part = Part { narrowed, widened, output, gated, residual };
                self.block(&factors, at, &g[at * BLOCK * d..], part)
            })
            .collect();
        // Blocks are added in their order: their number follows from that of the rows, not from the threads.
        for block in &sums {
            walked.sums.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
        }
        walked
    }

    /// One block of the walk; gives the sums over its rows.
    fn block(&self, factors: &Factors, at: usize, g: &[f32], part: Part<'_>) -> Vec<f32> {
        let Numbers { d, i, gains, .. } = *self.numbers;
        let Block { a_hat, a_inverse, slope, y_hat, y_inverse, .. } = &self.tail.blocks[at];
        let first = at * BLOCK;
        let Part { narrowed, widened, output, gated, residual } = part;
        let mut sums = vec![0.0; Sums::len(d, i)];
        let sum = Sums::of(&mut sums, d, i);
        // Here and below: `residual` first holds the gradient of what goes into a normalisation.
        residual.copy_from_slice(&g[..residual.len()]);
        normalised_gradient(gains[1], [y_hat, y_inverse], residual, [sum.gains[1], sum.shifts[1]]);
        self.numbers.before_dropout([1, first], residual, narrowed);
        add_rows(narrowed, sum.narrow);
        let out = Out { values: widened, stride: i };
        multiply(Left::Rows(narrowed, d), &factors.narrow, Start::Zero, out);
        wide!(widened.iter_mut().zip(&**slope).for_each(|(x, slope)| *x *= slope));
        add_rows(widened, sum.widen);
        let out = Out { values: residual, stride: d };
        multiply(Left::Rows(widened, i), &factors.widen, Start::Kept, out);
        normalised_gradient(gains[0], [a_hat, a_inverse], residual, [sum.gains[0], sum.shifts[0]]);
        self.numbers.before_dropout([0, first], residual, output);
        add_rows(output, sum.output);
        multiply(Left::Rows(output, d), &factors.output, Start::Zero, Out { values: gated, stride: d });
        sums
    }

    /// Hands the sums over rows to the parameters whose gradients they are.
    fn sums(&self, sums: &[f32], found: &mut [Option<Buffer>]) {
        let Numbers { d, i, .. } = *self.numbers;
        let mut sums = sums.to_vec();
        let Sums { output, widen, narrow, gains, shifts } = Sums::of(&mut sums, d, i);
        let of = [output, widen, narrow].into_iter().chain(gains).chain(shifts);
        for (which, sum) in (LINEARS + 3..).zip(of) {
            if self.wanted[which] {
                found[which] = Some(copied(self.numbers.buffers, sum));
            }
        }
    }
}

fn copied(buffers: &Buffers, numbers: &[f32]) -> Buffer {
    let mut copy = buffers.any(numbers.len());
    copy.copy_from_slice(numbers);
    copy
}

/// Sums over rows: biases of linear layers, gains and shifts of normalisations.
struct Sums<'a> {
    output: &'a mut [f32],
    widen: &'a mut [f32],
    narrow: &'a mut [f32],
    gains: [&'a mut [f32]; NORMS],
    shifts: [&'a mut [f32]; NORMS],
}

impl<'a> Sums<'a> {
    fn len(d: usize, i: usize) -> usize {
        6 * d + i
    }

    fn of(numbers: &'a mut [f32], d: usize, i: usize) -> Self {
        let (output, rest) = numbers.split_at_mut(d);
        let (widen, rest) = rest.split_at_mut(i);
        let (narrow, rest) = rest.split_at_mut(d);
        let (gains, shifts) = rest.split_at_mut(2 * d);
        Sums {
            output,
            widen,
            narrow,
            gains: gains.split_at_mut(d).into(),
            shifts: shifts.split_at_mut(d).into(),
        }
    }
}

/// Adds all rows to `sum`.
fn add_rows(rows: &[f32], sum: &mut [f32]) {
    wide!({
        for row in rows.chunks_exact(sum.len()) {
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    });
}

impl Numbers<'_> {
    /// The gradient before a dropout (see [`Numbers::drop`]) out of that after it.
    fn before_dropout(&self, at: [usize; 2], after: &[f32], before: &mut [f32]) {
        before.copy_from_slice(after);
        wide!(self.drop(at, before));
    }
}
