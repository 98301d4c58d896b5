//! Labels that the first token of each row attends with (`attention/label.rs`): asked in every layer, through its projection of queries.

use super::super::super::arenas::{Arenas, Parameter};
use super::super::super::args::{self, Address, Cast, ColumnSum, LabelGradients, LabelScores};
use super::super::super::feed::{Feed, Sent, TableSum};
use super::super::super::memory::Bump;
use super::super::super::product::{Matrices, Onto, Sizes};
use super::super::super::{Cuda, Launch, Numbers, rows_per_block, stretches};
use super::super::{BackMemory, Depth, Encoder};
use super::scale;
use crate::Error;
use crate::attention::label::{LabelAttention, Mode, name};

/// The labels' embeddings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labels {
    pub(crate) embeddings: Parameter,
    pub(crate) settings: LabelAttention,
    /// How many there are.
    pub(crate) m: usize,
}

/// How gradients of labels are added to those of their embeddings.
#[derive(Debug)]
pub(crate) struct Fed {
    sum: TableSum,
}

/// What a layer keeps of labels.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Kept {
    /// What they ask, `[m, d]`.
    queries: Address,
    /// `[h, n]` each.
    best: Address,
    which: Address,
}

/// Memory of the backward pass.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Scratch {
    /// `[h, n]` f32.
    pub(super) d_best: Address,
    /// Of what labels ask, `[m, d]`: f32, and in the numbers of activations.
    d_queries: Address,
    rounded: Address,
    /// Of embeddings, `[m, d]`.
    embeddings: Address,
}

impl Fed {
    /// What the host says of so many labels.
    ///
    /// # Errors
    /// When there are too many.
    pub(in super::super) fn new(feed: &mut Feed, m: usize) -> Result<Self, Error> {
        let all: Vec<u32> = (0..m as u32).collect();
        Ok(Fed { sum: TableSum::new(feed, &all)? })
    }
}

impl Kept {
    pub(in super::super) fn new(bump: &mut Bump, [m, d, n, heads]: [usize; 4], bytes: usize) -> Self {
        Kept {
            queries: bump.take(m * d * bytes),
            best: bump.take(4 * n * heads),
            which: bump.take(4 * n * heads),
        }
    }

    pub(super) fn of_kernels(self, d_best: Address) -> args::Labels {
        args::Labels { best: self.best, which: self.which, d_best }
    }
}

impl Scratch {
    pub(in super::super) fn new(bump: &mut Bump, [m, d, n, heads]: [usize; 4], bytes: usize) -> Self {
        Scratch {
            d_best: bump.take(4 * n * heads),
            d_queries: bump.take(4 * m * d),
            rounded: bump.take(m * d * bytes),
            embeddings: bump.take(m * d * bytes),
        }
    }
}

impl Labels {
    pub(super) fn new(arenas: &Arenas, settings: LabelAttention, m: usize) -> Result<Self, Error> {
        Ok(Labels { embeddings: arenas.parameter(&name())?, settings, m })
    }

    /// What products of label queries and keys are multiplied by.
    fn scale(&self, k: usize) -> f32 {
        match self.settings.mode {
            Mode::Paper => scale(k),
            Mode::Repo => 1.0,
        }
    }

    /// The most that any label asks of each token of a layer.
    pub(super) fn ask(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        fed: &super::super::Fed,
        depth: Depth<'_>,
    ) -> Result<(), Error> {
        let (l, at) = (depth.l, depth.at());
        let (d, heads, n) = (of.sizes.d, of.sizes.heads, fed.rows.n);
        let [query, ..] = &of.layers[l].query_key_value;
        let asked =
            Matrices { x: self.embeddings.product, weight: query.weight.product, y: at.labels.queries };
        cuda.product(self.m, [d, d], asked, query.bias.product)?;
        let args = LabelScores {
            qkv: at.qkv,
            queries: at.labels.queries,
            labels: at.labels.of_kernels(0),
            n: n as u64,
            heads: heads as u32,
            k: (d / heads) as u32,
            m: self.m as u32,
            scale: self.scale(d / heads),
        };
        let how = Launch { grid: [n.div_ceil(4), heads, 1], threads: 128, shared: 0 };
        cuda.launch_on_numbers("label_scores", how, &args)
    }

    /// Behind attention's own backward pass: gradients of the keys that labels won, of the projection, and of the embeddings.
    pub(super) fn backward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        depth: Depth<'_>,
        back: &BackMemory,
    ) -> Result<(), Error> {
        let (Sent { fed, base }, at) = (sent, depth.at());
        let (d, heads, n) = (of.sizes.d, of.sizes.heads, fed.rows.n);
        let scratch = &back.labels;
        let args = LabelGradients {
            qkv: at.qkv,
            queries: at.labels.queries,
            row_starts: base.of(fed.rows.starts),
            labels: at.labels.of_kernels(scratch.d_best),
            d_qkv: back.qkv,
            d_queries: scratch.d_queries,
            n: n as u64,
            rows: fed.rows.count as u32,
            heads: heads as u32,
            k: (d / heads) as u32,
            m: self.m as u32,
            scale: self.scale(d / heads),
            accumulate: 0,
        };
        let how = Launch { grid: [n.div_ceil(4), heads, 1], threads: 128, shared: 0 };
        cuda.launch_on_numbers("label_keys", how, &args)?;
        let how = Launch { grid: [self.m, heads, 1], threads: 256, shared: 0 };
        cuda.launch_on_numbers("label_queries", how, &args)?;
        self.through_projection(cuda, of, sent, depth.l, back)
    }

    fn through_projection(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        l: usize,
        back: &BackMemory,
    ) -> Result<(), Error> {
        let (d, m, scratch) = (of.sizes.d, self.m, &back.labels);
        let [query, ..] = &of.layers[l].query_key_value;
        let rounded = match cuda.numbers {
            Numbers::F32 => scratch.d_queries,
            Numbers::Bf16 => {
                let args = Cast { x: scratch.d_queries, y: scratch.rounded, count: (m * d) as u64 };
                cuda.launch("cast_to_bf16", Launch::of((m * d).div_ceil(1024), 256), &args)?;
                scratch.rounded
            }
        };
        cuda.weight([m, d, d], query, self.embeddings.product, rounded)?;
        if query.bias.gradient != 0 {
            let rows_per_block = rows_per_block(m) as u32;
            let (x, partials, width) = (scratch.d_queries, back.partials, d as u32);
            let args = ColumnSum { x, partials, n: m as u64, width, rows_per_block };
            let how = Launch::stretches(m, d);
            cuda.launch("column_sum_f32", how, &args)?;
            cuda.finish(back.partials, [query.bias.gradient, 0, 0], [stretches(m), 1, d])?;
        }
        if self.embeddings.gradient == 0 {
            return Ok(());
        }
        let into = Matrices { x: scratch.embeddings, weight: query.weight.product, y: rounded };
        cuda.products.input(&cuda.stream, Sizes::dense(m, d, d), into, Onto::Nothing)?;
        self.add(cuda, sent, d, [scratch.embeddings, back.partials])
    }

    /// Adds a gradient `[m, d]` to that of the embeddings.
    ///
    /// # Errors
    /// When the driver refuses a launch.
    pub(in super::super) fn add(
        &self,
        cuda: &mut Cuda,
        Sent { fed, base }: Sent<'_, super::super::Fed>,
        d: usize,
        [x, partials]: [Address; 2],
    ) -> Result<(), Error> {
        match &fed.labels {
            Some(Fed { sum }) if self.embeddings.gradient != 0 => {
                cuda.table(d, self.embeddings.gradient, Sent { fed: sum, base }, [x, partials])
            }
            _ => Ok(()),
        }
    }
}
