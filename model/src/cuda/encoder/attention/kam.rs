//! KAM-BERT's attention (`attention/kam.rs`): squares of scores that are stored, mixed with maps of knowledge, the map of the layer before added.

use super::super::super::arenas::{Arenas, Parameter};
use super::super::super::args::{
    Address, Fill, KamContext, KamDMixed, KamMerge, KamProducts, KamRows, KamScores, KamSoftmax, KamWeights,
    Restore,
};
use super::super::super::feed::{At, Feed, Sent, number};
use super::super::super::memory::Bump;
use super::super::super::{Cuda, Launch};
use super::super::{BackMemory, Depth, Encoder, Memory, Sizes};
use super::scale;
use crate::Error;
use crate::attention::kam::{Auxiliary, Merge, Settings, Skip, bias_name, weight_name};
use crate::encoder::tokens::Tokens;
use crate::nn::single;

/// The attention with its convolutions.
#[derive(Debug)]
pub(crate) struct Kam {
    settings: Settings,
    /// Weights `[h, h + m, 3, 3]` and biases `[h]` of each layer; none where maps are merged by their mean.
    convolutions: Vec<[Parameter; 2]>,
}

/// What the host says of the maps of a batch.
#[derive(Debug)]
pub(in super::super) struct Fed {
    /// Cells of the rows before each row.
    cell_starts: At,
    /// Tokens of each row that score by queries and keys.
    real: Option<At>,
    maps: At,
    /// Cells of all rows.
    cells: usize,
    /// Auxiliary tokens, and how many there are.
    auxiliary: Option<(At, usize)>,
}

/// What a layer keeps: its probabilities, and its mixed scores where the next layer adds these.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Kept {
    probs: Address,
    mixed: Address,
}

/// Memory of the backward pass, squares in f32.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Scratch {
    scores: Address,
    d_mixed: Address,
    /// Of the scores of this layer and the one behind it, in turns.
    d_scores: [Address; 2],
    /// Partial sums of what a convolution learns.
    partials: Address,
    /// Of the first layer's input, `[n, d]`, as far as auxiliary tokens have it before other layers.
    first: Address,
}

impl Fed {
    /// The maps of tokens, which have some.
    ///
    /// # Errors
    /// When they are others than the attention merges, or have none.
    pub(in super::super) fn new(
        feed: &mut Feed,
        settings: &Settings,
        tokens: &Tokens,
    ) -> Result<Self, Error> {
        tokens.check_unpadded()?;
        let Some(known) = &tokens.knowledge else {
            return Err(Error::Misfit("this model attends by maps of what is known, and these rows have none; make rows with the maps that it was fine-tuned with".to_owned()));
        };
        if known.m != settings.maps {
            return Err(Error::Misfit(format!(
                "{} maps a sample for an attention that merges {}; give it the maps it was made for",
                known.m, settings.maps
            )));
        }
        let (mut cell_starts, mut cells, mut auxiliary) = (vec![0_u64], 0, vec![]);
        for (span, real) in tokens.spans.iter().zip(&known.real) {
            cells += span.len * span.len;
            cell_starts.push(cells as u64);
            for token in span.start + real..span.start + span.len {
                auxiliary.push(number(token)?);
            }
        }
        let real = known.real.iter().map(|real| number(*real)).collect::<Result<Vec<u32>, _>>()?;
        Ok(Fed {
            cell_starts: feed.put(&cell_starts),
            real: (settings.auxiliary == Auxiliary::ZeroPad).then(|| feed.put(&real)),
            maps: feed.put(&known.maps.to_vec1::<f32>()?),
            cells,
            auxiliary: (!auxiliary.is_empty()).then(|| (feed.put(&auxiliary), auxiliary.len())),
        })
    }
}

impl Kept {
    pub(in super::super) fn new(bump: &mut Bump, of: &Sizes, fed: &Fed) -> Self {
        Kept { probs: bump.take(4 * of.heads * fed.cells), mixed: bump.take(4 * of.heads * fed.cells) }
    }
}

impl Scratch {
    pub(in super::super) fn new(bump: &mut Bump, of: &Sizes, fed: &super::super::Fed, kam: &Kam) -> Self {
        let Some(known) = &fed.known else { return Scratch::default() };
        let squares = 4 * of.heads * known.cells;
        let learned = of.heads * (of.heads + kam.settings.maps) * 9 + of.heads;
        Scratch {
            scores: bump.take(squares),
            d_mixed: bump.take(squares),
            d_scores: [bump.take(squares), bump.take(squares)],
            partials: bump.take(4 * fed.rows.count * learned),
            first: bump.take(fed.rows.n * of.d * of.numbers.bytes()),
        }
    }
}

/// Which way a convolution is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// What all launches of a layer share.
struct Site {
    rows: KamRows,
    maps: Address,
    heads: usize,
    count: usize,
    longest: usize,
}

impl Site {
    /// Blocks of 8 tokens of each row and head.
    fn tokens(&self) -> Launch {
        Launch { grid: [self.count, self.heads, self.longest.div_ceil(8)], threads: 128, shared: 0 }
    }

    /// Blocks of 16 by 16 cells of each row and four heads.
    fn tiles(&self) -> Launch {
        let across = self.longest.div_ceil(16);
        Launch { grid: [self.count, self.heads.div_ceil(4), across * across], threads: 256, shared: 0 }
    }
}

impl Kam {
    pub(super) fn new(arenas: &Arenas, settings: &Settings, layers: usize) -> Result<Self, Error> {
        let layers = if settings.merge == Merge::Convolution { layers } else { 0 };
        let of = |l| Ok([arenas.parameter(&weight_name(l))?, arenas.parameter(&bias_name(l))?]);
        Ok(Kam {
            settings: settings.clone(),
            convolutions: (0..layers).map(of).collect::<Result<_, Error>>()?,
        })
    }

    pub(in super::super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether anything is learned of a layer's convolution.
    pub(in super::super) fn is_trained(&self, l: usize) -> bool {
        self.convolutions.get(l).is_some_and(|both| both.iter().any(|parameter| parameter.gradient != 0))
    }

    fn site(&self, of: &Encoder, Sent { fed, base }: Sent<'_, super::super::Fed>) -> Result<Site, Error> {
        let known =
            fed.known.as_ref().ok_or_else(|| Error::Misfit("rows without maps; report it".to_owned()))?;
        let rows = KamRows {
            row_starts: base.of(fed.rows.starts),
            cell_starts: base.of(known.cell_starts),
            real: base.of_some(known.real),
            n: fed.rows.n as u64,
            heads: of.sizes.heads as u32,
            k: (of.sizes.d / of.sizes.heads) as u32,
        };
        let (heads, count, longest) = (of.sizes.heads, fed.rows.count, fed.rows.longest);
        Ok(Site { rows, maps: base.of(known.maps), heads, count, longest })
    }

    /// The map of the layer before that a layer adds to its scores.
    fn before(&self, l: usize, memory: &Memory) -> Address {
        let before = l.checked_sub(1).map(|before| memory.layers[before].kam);
        match (self.settings.skip, before) {
            (Skip::PostAdd, Some(before)) => before.probs,
            (Skip::PreAdd, Some(before)) => before.mixed,
            _ => 0,
        }
    }

    fn scores(&self, of: &Encoder, site: &Site, qkv: Address, [before, scores]: [Address; 2]) -> KamScores {
        let scale = scale(of.sizes.d / of.sizes.heads);
        KamScores { rows: site.rows, qkv, before, scores, scale, unused: 0 }
    }

    fn merge(&self, l: usize, site: &Site, [squares, out]: [Address; 2], way: Way) -> KamMerge {
        let [weights, bias] = self.convolutions.get(l).map_or([0; 2], |both| both.map(|of| of.master));
        KamMerge {
            rows: site.rows,
            squares,
            maps: site.maps,
            weights,
            bias,
            out,
            map_count: self.settings.maps as u32,
            alpha: single(self.settings.alpha),
            rest: single(1.0 - self.settings.alpha),
            backward: u32::from(way == Way::Backward),
        }
    }

    pub(super) fn forward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        depth: Depth<'_>,
    ) -> Result<(), Error> {
        let Depth { l, memory } = depth;
        let (site, at) = (self.site(of, sent)?, depth.at());
        // The probabilities' memory holds the scores first.
        let (scores, mixed) = (at.kam.probs, at.kam.mixed);
        let args = self.scores(of, &site, at.qkv, [self.before(l, memory), scores]);
        cuda.launch_on_numbers("kam_scores", site.tokens(), &args)?;
        cuda.launch("kam_merge", site.tiles(), &self.merge(l, &site, [scores, mixed], Way::Forward))?;
        let how =
            Launch { grid: [site.count, site.heads, site.longest.div_ceil(4)], threads: 128, shared: 0 };
        cuda.launch("kam_softmax", how, &KamSoftmax { rows: site.rows, mixed, probs: at.kam.probs })?;
        let args = self.context(of, sent, depth, &site, [0, 0]);
        cuda.launch_on_numbers("kam_context", site.tokens(), &args)
    }

    fn context(
        &self,
        of: &Encoder,
        Sent { fed, base }: Sent<'_, super::super::Fed>,
        depth: Depth<'_>,
        site: &Site,
        [d_out, d_qkv]: [Address; 2],
    ) -> KamContext {
        let (l, at) = (depth.l, depth.at());
        KamContext {
            rows: site.rows,
            qkv: at.qkv,
            probs: at.kam.probs,
            gates: fed.gates_of(base, l, of.sizes.heads),
            context: at.context,
            gated: if fed.gates.is_some() { at.gated } else { 0 },
            d_out,
            d_qkv,
            dropout: fed.layers[l][0].on(base),
        }
    }

    pub(super) fn backward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        depth: Depth<'_>,
        back: &BackMemory,
    ) -> Result<(), Error> {
        let Depth { l, memory } = depth;
        let (site, at, scratch) = (self.site(of, sent)?, depth.at(), &back.kam);
        let (d_scores, last) = (scratch.d_scores[l % 2], l + 1 == memory.layers.len());
        let next = if last || self.settings.skip == Skip::None { 0 } else { scratch.d_scores[(l + 1) % 2] };
        let d_mixed = scratch.d_mixed;
        let context = self.context(of, sent, depth, &site, [back.contexts, back.qkv]);
        let args = KamDMixed {
            rows: site.rows,
            qkv: at.qkv,
            probs: at.kam.probs,
            gates: context.gates,
            d_out: back.contexts,
            next,
            d_mixed,
            dropout: context.dropout,
            next_is_mixed: u32::from(self.settings.skip == Skip::PreAdd),
            unused: 0,
        };
        cuda.launch_on_numbers("kam_d_mixed", site.tokens(), &args)?;
        cuda.launch_on_numbers("kam_d_values", site.tokens(), &context)?;
        if self.is_trained(l) {
            let args = self.scores(of, &site, at.qkv, [self.before(l, memory), scratch.scores]);
            cuda.launch_on_numbers("kam_scores", site.tokens(), &args)?;
            self.learn(cuda, l, &site, scratch)?;
        }
        cuda.launch("kam_merge", site.tiles(), &self.merge(l, &site, [d_mixed, d_scores], Way::Backward))?;
        let scale = scale(of.sizes.d / of.sizes.heads);
        let args = KamProducts { rows: site.rows, qkv: at.qkv, d_scores, d_qkv: back.qkv, scale, unused: 0 };
        cuda.launch_on_numbers("kam_d_queries", site.tokens(), &args)?;
        cuda.launch_on_numbers("kam_d_keys", site.tokens(), &args)
    }

    /// What a layer's convolution learns: partial sums of each row, added in the order of the rows.
    fn learn(&self, cuda: &mut Cuda, l: usize, site: &Site, scratch: &Scratch) -> Result<(), Error> {
        let Some([weight, bias]) = self.convolutions.get(l) else { return Ok(()) };
        let (heads, channels) = (site.heads, site.heads + self.settings.maps);
        let width = heads * channels * 9;
        let (weight_partials, bias_partials) =
            (scratch.partials, scratch.partials + (4 * site.count * width) as u64);
        let args = KamWeights {
            rows: site.rows,
            scores: scratch.scores,
            maps: site.maps,
            d_mixed: scratch.d_mixed,
            weight_partials,
            bias_partials,
            map_count: self.settings.maps as u32,
            alpha: single(self.settings.alpha),
        };
        let how = Launch { grid: [site.count, heads, channels], threads: 128, shared: 0 };
        cuda.launch("kam_weights", how, &args)?;
        cuda.finish(weight_partials, [weight.gradient, 0, 0], [site.count, 1, width])?;
        cuda.finish(bias_partials, [bias.gradient, 0, 0], [site.count, 1, heads])
    }

    /// Auxiliary tokens are behind a layer again what they were before the first.
    pub(in super::super) fn restore(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        [y, first]: [Address; 2],
    ) -> Result<(), Error> {
        self.restoring(cuda, "restore", of, sent, [y, first])
    }

    /// The gradient of an auxiliary token behind a layer is that of its embedding.
    pub(in super::super) fn restore_backward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        sent: Sent<'_, super::super::Fed>,
        dy: Address,
        back: &BackMemory,
    ) -> Result<(), Error> {
        self.restoring(cuda, "restore_backward", of, sent, [dy, back.kam.first])
    }

    fn restoring(
        &self,
        cuda: &mut Cuda,
        kernel: &str,
        of: &Encoder,
        Sent { fed, base }: Sent<'_, super::super::Fed>,
        [y, first]: [Address; 2],
    ) -> Result<(), Error> {
        let Some((rows, count)) = fed.known.as_ref().and_then(|known| known.auxiliary) else { return Ok(()) };
        let args = Restore { y, first, rows: base.of(rows), count: count as u32, d: of.sizes.d as u32 };
        let how = Launch::tiles(count, of.sizes.d);
        cuda.launch_on_numbers(kernel, how, &args)
    }

    /// Before the backward pass nothing has come of auxiliary tokens.
    pub(in super::super) fn begin_backward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        fed: &super::super::Fed,
        back: &BackMemory,
    ) -> Result<(), Error> {
        if fed.known.as_ref().is_none_or(|known| known.auxiliary.is_none()) {
            return Ok(());
        }
        let count = (fed.rows.n * of.sizes.d * cuda.numbers.bytes()).div_ceil(4);
        let args = Fill { x: back.kam.first, count: count as u64, value: 0.0, unused: 0 };
        cuda.launch("fill_f32", Launch::of(count.div_ceil(4096), 256), &args)
    }

    /// What has come of auxiliary tokens is added to the gradient of the embeddings.
    pub(in super::super) fn end_backward(
        &self,
        cuda: &mut Cuda,
        of: &Encoder,
        fed: &super::super::Fed,
        gradient: Address,
        back: &BackMemory,
    ) -> Result<(), Error> {
        if fed.known.as_ref().is_none_or(|known| known.auxiliary.is_none()) {
            return Ok(());
        }
        let count = fed.rows.n * of.sizes.d;
        let args = super::super::super::args::ScaledAdd {
            x: back.kam.first,
            y: gradient,
            count: count as u64,
            a: 1.0,
            b: 1.0,
        };
        cuda.launch_on_numbers("scaled_add", Launch::of(count.div_ceil(4096), 256), &args)
    }
}
