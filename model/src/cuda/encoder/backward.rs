//! The backward pass: 19 launches a layer. Gradients of parameters are added to the arena's, which an update leaves at 0.

use super::super::args::{
    Address, ColumnSum, ColumnsFinish, EmbeddingBackward, NormBackward, RowsSum, RowsSumFinish,
};
use super::super::feed::{Base, Drop, Sent, TableSum};
use super::super::product::{self, Matrices, Onto};
use super::super::{Cuda, Launch, rows_per_block, stretches};
use super::weights::{Linear, are_one};
use super::{Asks, BackMemory, Depth, Encoder, Fed, Keep, LayerMemory, Memory, Norm, Sizes, Statistics};
use crate::Error;

/// What goes back through a norm: its gradient takes the place of dy, and that of what was dropped from goes to `through` if anything was.
struct Through<'a> {
    dy: Address,
    sum: Address,
    statistics: Statistics,
    norm: &'a Norm,
    /// Of the linear layer in front of it.
    bias: Address,
    dropout: &'a Drop,
    back: &'a BackMemory,
}

/// Whether anything in front of a layer is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Moves,
    Rests,
}

impl Encoder {
    /// Adds a gradient `[m, d]` to that of the embeddings of labels.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn add_to_labels(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        memory: &Memory,
        x: Address,
    ) -> Result<(), Error> {
        match (self.labels(), &memory.back) {
            (Some(labels), Some(back)) => labels.add(cuda, sent, self.sizes.d, [x, back.partials]),
            _ => Ok(()),
        }
    }

    /// Adds the gradients of the encoder's parameters, given that of the last hidden states in `memory.gradient`.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(crate) fn backward(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        memory: &Memory,
    ) -> Result<(), Error> {
        let Some(back) = &memory.back else { return Ok(()) };
        let kam = self.attend.knowledge();
        kam.map_or(Ok(()), |kam| kam.begin_backward(cuda, self, sent.fed, back))?;
        let lowest = match sent.fed.of_gates {
            Asks::Nothing => self.lowest(),
            Asks::Gradients => (!self.layers.is_empty()).then_some(0),
        };
        if let Some(lowest) = lowest {
            for l in (lowest..self.layers.len()).rev() {
                kam.map_or(Ok(()), |kam| kam.restore_backward(cuda, self, sent, memory.gradient, back))?;
                let below =
                    if l > lowest || self.embedding_is_trained() { Below::Moves } else { Below::Rests };
                // The last layer's own are the ones that still stand there.
                if memory.keep == Keep::Inputs && l + 1 < self.layers.len() {
                    self.layer_forward(cuda, sent, Depth { l, memory })?;
                }
                self.layer_backward(cuda, sent, Depth { l, memory }, back, below)?;
            }
        }
        if !self.embedding_is_trained() {
            return Ok(());
        }
        kam.map_or(Ok(()), |kam| kam.end_backward(cuda, self, sent.fed, memory.gradient, back))?;
        self.embedding_backward(cuda, sent, memory, back)
    }

    fn layer_backward(
        &self,
        cuda: &mut Cuda,
        sent: Sent<'_, Fed>,
        depth: Depth<'_>,
        back: &BackMemory,
        below: Below,
    ) -> Result<(), Error> {
        let (Sent { fed, base }, Depth { l, memory }) = (sent, depth);
        let (layer, at, of) = (&self.layers[l], depth.at(), &self.sizes);
        let (n, d, i, g) = (fed.rows.n, of.d, of.i, memory.gradient);
        let [_, of_output, of_feed_forward] = &fed.layers[l];
        let fed_forward = Through {
            dy: g,
            sum: at.sums[1],
            statistics: at.statistics[1],
            norm: &layer.norms[1],
            bias: layer.narrow.bias.gradient,
            dropout: of_feed_forward,
            back,
        };
        let dz = fed_forward.launch(cuda, of, n, base)?;
        cuda.input(
            [n, i, d],
            Matrices { x: back.wide, weight: layer.narrow.weight.product, y: dz },
            Onto::Nothing,
        )?;
        self.gelu(cuda, n, layer.widen.bias.gradient, at, back)?;
        // The values of GELU stand where what went into it stood.
        cuda.weight([n, i, d], &layer.narrow, at.u, dz)?;
        cuda.weight([n, d, i], &layer.widen, at.a, back.wide)?;
        cuda.input(
            [n, d, i],
            Matrices { x: g, weight: layer.widen.weight.product, y: back.wide },
            Onto::Itself,
        )?;
        let attended = Through {
            dy: g,
            sum: at.sums[0],
            statistics: at.statistics[0],
            norm: &layer.norms[0],
            bias: layer.output.bias.gradient,
            dropout: of_output,
            back,
        };
        let d_out = attended.launch(cuda, of, n, base)?;
        cuda.weight([n, d, d], &layer.output, at.gated, d_out)?;
        let contexts = Matrices { x: back.contexts, weight: layer.output.weight.product, y: d_out };
        cuda.input([n, d, d], contexts, Onto::Nothing)?;
        super::attention::backward(cuda, self, sent, depth, back)?;
        self.projections(cuda, n, depth, back, below)
    }

    /// Of the projections of queries, keys and values, and through them if anything below is trained.
    fn projections(
        &self,
        cuda: &mut Cuda,
        n: usize,
        Depth { l, memory }: Depth<'_>,
        back: &BackMemory,
        below: Below,
    ) -> Result<(), Error> {
        let (three, d) = (&self.layers[l].query_key_value, self.sizes.d);
        let biases = three.map(|linear| linear.bias.gradient);
        if biases.iter().any(|bias| *bias != 0) {
            cuda.column_sum(n, 3 * d, back.qkv, back.partials)?;
            cuda.finish(back.partials, biases, [stretches(n), 3, d])?;
        }
        let (x, [query, ..]) = (memory.input(l), three);
        match three.map(|linear| linear.weight.gradient != 0) {
            [true, true, true] => cuda.weight([n, d, 3 * d], query, x, back.qkv)?,
            each => {
                for (part, linear) in three.iter().enumerate().filter(|(part, _)| each[*part]) {
                    let y = back.qkv + (part * d * cuda.numbers.bytes()) as u64;
                    let sizes = product::Sizes { n, i: d, o: d, stride: 3 * d };
                    let of = Matrices { x, weight: linear.weight.gradient, y };
                    cuda.products.weight(&cuda.stream, sizes, of)?;
                }
            }
        }
        if below == Below::Rests {
            return Ok(());
        }
        if are_one(three, d, cuda.numbers.bytes()) {
            let of = Matrices { x: memory.gradient, weight: query.weight.product, y: back.qkv };
            return cuda.input([n, d, 3 * d], of, Onto::Itself);
        }
        for (part, linear) in three.iter().enumerate() {
            let y = back.qkv + (part * d * cuda.numbers.bytes()) as u64;
            let sizes = product::Sizes { n, i: d, o: d, stride: 3 * d };
            let of = Matrices { x: memory.gradient, weight: linear.weight.product, y };
            cuda.products.input(&cuda.stream, sizes, of, Onto::Itself)?;
        }
        Ok(())
    }

    /// Through GELU, whose values take the place of what went into it.
    fn gelu(
        &self,
        cuda: &mut Cuda,
        n: usize,
        bias: Address,
        at: &LayerMemory,
        back: &BackMemory,
    ) -> Result<(), Error> {
        let i = self.sizes.i;
        // GELU's values take the place of what went into it.
        cuda.gelu_backward([n, i], [at.u; 2], [back.wide, back.wide, back.partials])?;
        cuda.finish(back.partials, [bias, 0, 0], [stretches(n), 1, i])
    }

    fn embedding_backward(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, Fed>,
        memory: &Memory,
        back: &BackMemory,
    ) -> Result<(), Error> {
        let ([word_ids, position_ids, type_ids], of) = (fed.rows.ids.map(|at| base.of(at)), &self.embedding);
        let [word_table, position_table, type_table] = of.tables.map(|table| table.master);
        let (n, d) = (fed.rows.n, self.sizes.d);
        let args = EmbeddingBackward {
            word_ids,
            position_ids,
            type_ids,
            word_table,
            position_table,
            type_table,
            gain: of.norm.gain.master,
            mean: memory.embedded_statistics.mean,
            inverse: memory.embedded_statistics.inverse,
            dy: memory.gradient,
            d_sum: memory.gradient,
            partials: back.partials,
            dropout: fed.embedding.on(base),
            n: n as u64,
            d: d as u32,
            rows_per_block: rows_per_block(n) as u32,
        };
        let how = Launch::sums(n, 2, d);
        cuda.launch_on_numbers("embedding_backward", how, &args)?;
        let [gain, shift] = [of.norm.gain.gradient, of.norm.shift.gradient];
        cuda.finish(back.partials, [gain, shift, 0], [stretches(n), 2, d])?;
        for (table, sum) in of.tables.iter().zip(&fed.rows.sums) {
            if let Some(sum) = sum.as_ref().filter(|_| table.gradient != 0) {
                cuda.table(d, table.gradient, Sent { fed: sum, base }, [memory.gradient, back.partials])?;
            }
        }
        Ok(())
    }
}

impl Through<'_> {
    /// Gives where the gradient of what the linear layer in front gave stands.
    fn launch(&self, cuda: &mut Cuda, of: &Sizes, n: usize, base: Base) -> Result<Address, Error> {
        let drops = self.dropout.is_active();
        let args = NormBackward {
            dy: self.dy,
            sum: self.sum,
            mean: self.statistics.mean,
            inverse: self.statistics.inverse,
            gain: self.norm.gain.master,
            d_sum: self.dy,
            d_x: if drops { self.back.through } else { 0 },
            partials: self.back.partials,
            dropout: self.dropout.on(base),
            n: n as u64,
            d: of.d as u32,
            rows_per_block: rows_per_block(n) as u32,
        };
        cuda.norm_backward(&args)?;
        let out = [self.norm.gain.gradient, self.norm.shift.gradient, self.bias];
        cuda.finish(self.back.partials, out, [stretches(n), 3, of.d])?;
        Ok(if drops { self.back.through } else { self.dy })
    }
}

impl Cuda {
    /// `dx = dy W`, or added to dx: sizes n, i, o.
    ///
    /// # Errors
    /// When cuBLASLt refuses it.
    pub(crate) fn input(&mut self, [n, i, o]: [usize; 3], of: Matrices, onto: Onto) -> Result<(), Error> {
        self.products.input(&self.stream, product::Sizes::dense(n, i, o), of, onto)
    }

    /// `dW += dy^T x`, where that gradient is wanted.
    ///
    /// # Errors
    /// When cuBLASLt refuses it.
    pub(crate) fn weight(
        &mut self,
        [n, i, o]: [usize; 3],
        of: &Linear,
        x: Address,
        dy: Address,
    ) -> Result<(), Error> {
        match of.weight.gradient {
            0 => Ok(()),
            weight => {
                let of = Matrices { x, weight, y: dy };
                self.products.weight(&self.stream, product::Sizes::dense(n, i, o), of)
            }
        }
    }

    /// Partial sums of columns.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn column_sum(
        &mut self,
        n: usize,
        width: usize,
        x: Address,
        partials: Address,
    ) -> Result<(), Error> {
        let rows_per_block = rows_per_block(n) as u32;
        let args = ColumnSum { x, partials, n: n as u64, width: width as u32, rows_per_block };
        let how = Launch::stretches(n, width);
        self.launch_on_numbers("column_sum", how, &args)
    }

    /// Adds partial sums to gradients, in their order, as far as these are wanted: sizes parts, groups, width.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub(crate) fn finish(
        &mut self,
        partials: Address,
        out: [Address; 3],
        [parts, groups, width]: [usize; 3],
    ) -> Result<(), Error> {
        if out == [0; 3] {
            return Ok(());
        }
        let (parts, groups, width) = (parts as u32, groups as u32, width as u32);
        let args = ColumnsFinish { partials, out, parts, groups, width, accumulate: 1 };
        self.launch("columns_finish", Launch::of((groups * width).div_ceil(32) as usize, 256), &args)
    }

    /// Adds rows of a gradient to rows of a table's.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(super) fn table(
        &mut self,
        d: usize,
        table: Address,
        Sent { fed: sum, base }: Sent<'_, TableSum>,
        [x, partials]: [Address; 2],
    ) -> Result<(), Error> {
        let args = RowsSum {
            x,
            order: base.of(sum.order),
            piece_starts: base.of(sum.starts),
            piece_targets: base.of(sum.targets),
            table,
            partials,
            d: d as u32,
            pieces: sum.pieces as u32,
        };
        let threads = (d.div_ceil(128) * 32) as u32;
        self.launch_on_numbers("rows_sum", Launch::of(sum.pieces, threads), &args)?;
        let (rows, starts) = (base.of(sum.rows), base.of(sum.slot_starts));
        let args = RowsSumFinish { partials, rows, starts, table, d: d as u32, count: sum.long_rows as u32 };
        let how = Launch { grid: [sum.long_rows, d.div_ceil(128), 1], threads: 256, shared: 0 };
        self.launch("rows_sum_finish", how, &args)
    }
}
