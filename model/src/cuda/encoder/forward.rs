//! The forward pass: 8 launches a layer.

use super::super::args::{Address, EmbeddingForward, NormForward};
use super::super::feed::{Base, Drop, Sent};
use super::super::product::{self, Matrices};
use super::super::{Cuda, Launch};
use super::weights::{Linear, Norm, are_one};
use super::{Depth, Encoder, Fed, Memory, Sizes, Statistics, attention};
use crate::Error;

/// A norm's launch: `y = norm(dropout(x + bias) + residual)`, the sum taking the place of x.
struct Normed<'a> {
    x: Address,
    bias: Address,
    residual: Address,
    norm: &'a Norm,
    y: Address,
    statistics: Statistics,
    dropout: &'a Drop,
}

impl Encoder {
    /// Computes the hidden states of the rows.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn forward(&self, cuda: &mut Cuda, sent: Sent<'_, Fed>, memory: &Memory) -> Result<(), Error> {
        self.embed(cuda, sent, memory)?;
        for l in 0..self.layers.len() {
            self.layer_forward(cuda, sent, Depth { l, memory })?;
        }
        Ok(())
    }

    fn embed(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        memory: &Memory,
    ) -> Result<(), Error> {
        let ([word_ids, position_ids, type_ids], of) = (fed.rows.ids.map(|at| base.of(at)), &self.embedding);
        let [word_table, position_table, type_table] = of.tables.map(|table| table.master);
        let args = EmbeddingForward {
            word_ids,
            position_ids,
            type_ids,
            word_table,
            position_table,
            type_table,
            gain: of.norm.gain.master,
            shift: of.norm.shift.master,
            y: memory.embedded,
            mean: memory.embedded_statistics.mean,
            inverse: memory.embedded_statistics.inverse,
            dropout: fed.embedding.on(base),
            n: fed.rows.n as u64,
            d: self.sizes.d as u32,
            epsilon: self.sizes.epsilon,
        };
        cuda.launch_on_numbers("embedding_forward", Launch::of(fed.rows.n.div_ceil(4), 128), &args)
    }

    pub(super) fn layer_forward(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        depth: Depth<'_>,
    ) -> Result<(), Error> {
        let (Sent { fed, base }, Depth { l, memory }) = (sent, depth);
        let (layer, at, of) = (&self.layers[l], depth.at(), &self.sizes);
        let (n, d, i) = (fed.rows.n, of.d, of.i);
        let [_, of_output, of_feed_forward] = &fed.layers[l];
        let x = memory.input(l);
        self.project(cuda, n, &layer.query_key_value, [x, at.qkv])?;
        attention::forward(cuda, self, sent, depth)?;
        cuda.product(n, [d, d], on(at.gated, &layer.output, at.sums[0]), 0)?;
        let attended = Normed {
            x: at.sums[0],
            bias: layer.output.bias.master,
            residual: x,
            norm: &layer.norms[0],
            y: at.a,
            statistics: at.statistics[0],
            dropout: of_output,
        };
        attended.launch(cuda, of, n, base)?;
        cuda.product(n, [d, i], on(at.a, &layer.widen, at.u), 0)?;
        cuda.gelu_forward([n, i], layer.widen.bias.master, [at.u, memory.w])?;
        cuda.product(n, [i, d], on(memory.w, &layer.narrow, at.sums[1]), 0)?;
        let fed_forward = Normed {
            x: at.sums[1],
            bias: layer.narrow.bias.master,
            residual: at.a,
            norm: &layer.norms[1],
            y: at.y,
            statistics: at.statistics[1],
            dropout: of_feed_forward,
        };
        fed_forward.launch(cuda, of, n, base)?;
        match &self.attend {
            attention::Attend::Knowledge(kam) => kam.restore(cuda, self, sent, [at.y, memory.embedded]),
            _ => Ok(()),
        }
    }

    /// Queries, keys and values side by side: one product where their weights stand side by side, as in a training.
    fn project(
        &self,
        cuda: &mut Cuda,
        n: usize,
        three: &[Linear; 3],
        [x, qkv]: [Address; 2],
    ) -> Result<(), Error> {
        let (d, bytes) = (self.sizes.d, cuda.numbers.bytes());
        if are_one(three, d, bytes) {
            let [query, ..] = three;
            let of = Matrices { x, weight: query.weight.product, y: qkv };
            return cuda.product(n, [d, 3 * d], of, query.bias.product);
        }
        for (part, linear) in three.iter().enumerate() {
            let of = Matrices { x, weight: linear.weight.product, y: qkv + (part * d * bytes) as u64 };
            let sizes = product::Sizes { n, i: d, o: d, stride: 3 * d };
            cuda.products.forward(&cuda.stream, sizes, of, linear.bias.product)?;
        }
        Ok(())
    }
}

fn on(x: Address, layer: &Linear, y: Address) -> Matrices {
    Matrices { x, weight: layer.weight.product, y }
}

impl Normed<'_> {
    fn launch(&self, cuda: &mut Cuda, of: &Sizes, n: usize, base: Base) -> Result<(), Error> {
        let args = NormForward {
            x: self.x,
            bias: self.bias,
            residual: self.residual,
            gain: self.norm.gain.master,
            shift: self.norm.shift.master,
            sum: self.x,
            y: self.y,
            mean: self.statistics.mean,
            inverse: self.statistics.inverse,
            dropout: self.dropout.on(base),
            n: n as u64,
            d: of.d as u32,
            epsilon: of.epsilon,
        };
        cuda.norm_forward(&args)
    }
}

impl Cuda {
    /// `y = x W^T + bias` of so many rows; a null bias is none.
    ///
    /// # Errors
    /// When cuBLASLt refuses it.
    pub(crate) fn product(
        &mut self,
        n: usize,
        [i, o]: [usize; 2],
        of: Matrices,
        bias: Address,
    ) -> Result<(), Error> {
        self.products.forward(&self.stream, product::Sizes::dense(n, i, o), of, bias)
    }
}
