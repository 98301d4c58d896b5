//! The encoder on the tape: embeddings and layers, forward and back. `model/cuda/README.md` has a layer in launches.

mod attention;
mod backward;
mod forward;
mod weights;

use super::args::{Address, GATES_OF_ALL, Gates};
use super::feed::{At, Base, Drop, Feed, Rows};
use super::memory::Bump;
use super::{Numbers, stretches};
use crate::Error;
use crate::encoder::config::Config;
use crate::encoder::tokens::Tokens;
use crate::encoder::{LayerDropout, Place};
use attention::Attend;
pub(crate) use attention::labels::Labels;
pub(super) use attention::{kernels, scale};
use base::rng::CounterRng;
pub(crate) use weights::{Encoder, Linear, Norm};

/// Sizes that a training keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Hidden width.
    pub(crate) d: usize,
    pub(crate) heads: usize,
    /// Width of the feed-forward layer.
    pub(crate) i: usize,
    pub(crate) epsilon: f32,
    pub(crate) numbers: Numbers,
}

/// What one pass needs of the host.
#[derive(Debug)]
pub(crate) struct Fed {
    pub(crate) rows: Rows,
    embedding: Drop,
    /// Of each layer: of attention's probabilities, its output, and that of the feed-forward network.
    layers: Vec<[Drop; 3]>,
    /// Factors of heads' contexts `[l, h]`, if there are some.
    gates: Option<At>,
    of_gates: Asks,
    labels: Option<attention::labels::Fed>,
    known: Option<attention::kam::Fed>,
}

/// What is asked of the encoder besides its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass<'a> {
    /// Key of this step's dropout masks, `None` outside training.
    pub(crate) dropout: Option<CounterRng>,
    /// Of which tables of tokens, positions and segments a gradient is wanted.
    pub(crate) tables: [bool; 3],
    /// Factors of heads' contexts, `[l, h]`.
    pub(crate) gates_lh: Option<&'a [f32]>,
    /// Whether their gradients are wanted.
    pub(crate) of_gates: Asks,
}

/// What is asked of the backward pass about gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Nothing,
    /// The gradient of each token's private copy of every layer's gates.
    Gradients,
}

impl Encoder {
    /// Whether tokens attend by nothing but scores.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.attend, Attend::Plain)
    }

    /// A pass over tokens in main memory.
    ///
    /// # Errors
    /// When there are too many of them, or they are of another kind than the attention takes.
    pub(crate) fn feed(
        &self,
        feed: &mut Feed,
        config: &Config,
        tokens: &Tokens,
        pass: Pass<'_>,
    ) -> Result<Fed, Error> {
        let Pass { dropout, tables, gates_lh, of_gates } = pass;
        let (mut labels, mut known) = (None, None);
        match &self.attend {
            Attend::Plain => tokens.check_unknown()?,
            Attend::Labels(of) => {
                tokens.check_unpadded()?;
                tokens.check_unknown()?;
                labels = Some(attention::labels::Fed::new(feed, of.m)?);
            }
            Attend::Knowledge(kam) => known = Some(attention::kam::Fed::new(feed, kam.settings(), tokens)?),
        }
        let rows = Rows::new(feed, tokens, tables)?;
        let of = |layer: u64| LayerDropout::of(dropout, config, layer);
        let embedding = Drop::new(feed, of(u64::MAX).at(Place::Embedding));
        let places = [Place::Attention, Place::AttentionOutput, Place::FeedForward];
        let layers = (0..config.num_hidden_layers as u64)
            .map(|layer| places.map(|place| Drop::new(feed, of(layer).at(place))))
            .collect();
        let gates = gates_lh.map(|gates_lh| feed.put(gates_lh));
        Ok(Fed { rows, embedding, layers, gates, of_gates, labels, known })
    }
}

impl Fed {
    /// The gates of a layer's heads.
    fn gates_of(&self, base: Base, layer: usize, heads: usize) -> Gates {
        let of = |gates: At| base.of(gates) + 4 * (layer * heads) as u64;
        Gates { values: self.gates.map_or(0, of), of: GATES_OF_ALL, unused: 0 }
    }
}

/// Whether the backward pass will need what the forward pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    All,
    /// What goes into each layer, which is then computed a second time.
    Inputs,
    Nothing,
}

/// Mean and inverse deviation of each row of a norm, `[n]` f32 each.
#[derive(Debug, Clone, Copy)]
struct Statistics {
    mean: Address,
    inverse: Address,
}

/// What a layer computes; see `model/cuda/README.md` for the letters.
#[derive(Debug, Clone, Copy)]
struct LayerMemory {
    /// Queries, keys and values, `[n, 3 d]`.
    qkv: Address,
    /// Contexts `[n, d]`, and the same times the heads' gates, where there are some.
    context: Address,
    gated: Address,
    /// Log of the sum of exponentials, `[h, n]` f32.
    lse: Address,
    /// What the norms are of, `[n, d]`, with their statistics.
    sums: [Address; 2],
    statistics: [Statistics; 2],
    /// Between attention and feed-forward network, `[n, d]`.
    a: Address,
    /// Before GELU, `[n, i]`.
    u: Address,
    y: Address,
    /// Gradients of tokens' gates, `[n, h]` f32; null where nothing asks for them.
    each_gate: Address,
    labels: attention::labels::Kept,
    kam: attention::kam::Kept,
}

/// Memory of the backward pass, used by one layer after the other.
#[derive(Debug, Clone, Copy)]
struct BackMemory {
    /// Of what goes through a dropout, `[n, d]`.
    through: Address,
    /// Of contexts, `[n, d]`.
    contexts: Address,
    /// `[n, i]`.
    wide: Address,
    /// `[n, 3 d]`.
    qkv: Address,
    /// `[h, n]` f32.
    delta: Address,
    /// Partial sums, f32.
    partials: Address,
    labels: attention::labels::Scratch,
    kam: attention::kam::Scratch,
}

/// Everything that one pass computes.
#[derive(Debug)]
pub(crate) struct Memory {
    embedded: Address,
    embedded_statistics: Statistics,
    layers: Vec<LayerMemory>,
    keep: Keep,
    /// After GELU, `[n, i]`.
    w: Address,
    /// The gradient that goes from layer to layer, `[n, d]`.
    pub(crate) gradient: Address,
    back: Option<BackMemory>,
}

/// A layer of a pass.
#[derive(Debug, Clone, Copy)]
struct Depth<'a> {
    l: usize,
    memory: &'a Memory,
}

impl<'a> Depth<'a> {
    /// What the layer computes.
    fn at(self) -> &'a LayerMemory {
        &self.memory.layers[self.l]
    }
}

impl Memory {
    /// Lays out what a pass over these rows computes.
    pub(crate) fn new(bump: &mut Bump, encoder: &Encoder, fed: &Fed, keep: Keep) -> Self {
        let of = &encoder.sizes;
        let (n, d, bytes) = (fed.rows.n, of.d, of.numbers.bytes());
        let statistics = |bump: &mut Bump| Statistics { mean: bump.take(4 * n), inverse: bump.take(4 * n) };
        let embedded = bump.take(n * d * bytes);
        let embedded_statistics = statistics(bump);
        let layer = |bump: &mut Bump, y: Option<Address>| {
            let context = bump.take(n * d * bytes);
            LayerMemory {
                qkv: bump.take(3 * n * d * bytes),
                context,
                gated: if fed.gates.is_some() { bump.take(n * d * bytes) } else { context },
                lse: bump.take(4 * n * of.heads),
                sums: [bump.take(n * d * bytes), bump.take(n * d * bytes)],
                statistics: [statistics(bump), statistics(bump)],
                a: bump.take(n * d * bytes),
                u: bump.take(n * of.i * bytes),
                y: y.unwrap_or_else(|| bump.take(n * d * bytes)),
                each_gate: match fed.of_gates {
                    Asks::Nothing => 0,
                    Asks::Gradients => bump.take(4 * n * of.heads),
                },
                labels: match &encoder.attend {
                    Attend::Labels(labels) => {
                        attention::labels::Kept::new(bump, [labels.m, d, n, of.heads], bytes)
                    }
                    _ => attention::labels::Kept::default(),
                },
                kam: fed.known.as_ref().map_or_else(attention::kam::Kept::default, |known| {
                    attention::kam::Kept::new(bump, of, known)
                }),
            }
        };
        let count = fed.layers.len();
        let layers: Vec<LayerMemory> = match keep {
            Keep::All => (0..count).map(|_| layer(bump, None)).collect(),
            // The same memory for all but what comes of each.
            Keep::Inputs => {
                let one = layer(bump, Some(embedded));
                (0..count).map(|_| LayerMemory { y: bump.take(n * d * bytes), ..one }).collect()
            }
            // The same memory for all: a layer reads its input last when it adds it to what attention gives, before it writes its output.
            Keep::Nothing if fed.known.is_none() => {
                let one = layer(bump, Some(embedded));
                vec![one; count]
            }
            // Maps go from layer to layer, and auxiliary tokens begin each anew: two in turns.
            Keep::Nothing => {
                let two = [layer(bump, None), layer(bump, None)];
                (0..count).map(|l| two[l % 2]).collect()
            }
        };
        let w = bump.take(n * of.i * bytes);
        let trains = keep != Keep::Nothing;
        let gradient = if trains { bump.take(n * d * bytes) } else { 0 };
        let back = trains.then(|| BackMemory::new(bump, encoder, fed));
        Memory { embedded, embedded_statistics, layers, keep, w, gradient, back }
    }

    /// The last hidden states, `[n, d]`.
    pub(crate) fn hidden(&self) -> Address {
        self.layers.last().map_or(self.embedded, |layer| layer.y)
    }

    /// Gradients of tokens' gates of each layer, `[n, h]` f32.
    pub(crate) fn gates(&self) -> impl Iterator<Item = Address> {
        self.layers.iter().map(|layer| layer.each_gate)
    }

    /// What goes into a layer.
    fn input(&self, layer: usize) -> Address {
        layer.checked_sub(1).map_or(self.embedded, |before| self.layers[before].y)
    }
}

impl BackMemory {
    fn new(bump: &mut Bump, encoder: &Encoder, fed: &Fed) -> Self {
        let of = &encoder.sizes;
        let (n, d, bytes) = (fed.rows.n, of.d, of.numbers.bytes());
        let slots = fed.rows.sums.iter().flatten().map(|sum| sum.slots).max().unwrap_or(0);
        let labels =
            fed.labels.is_some().then(|| stretches(encoder.labels().map_or(0, |labels| labels.m)) * d);
        let partials = (stretches(n) * (3 * d).max(of.i)).max(slots * d).max(labels.unwrap_or(0));
        BackMemory {
            through: bump.take(n * d * bytes),
            contexts: bump.take(n * d * bytes),
            wide: bump.take(n * of.i * bytes),
            qkv: bump.take(3 * n * d * bytes),
            delta: bump.take(4 * n * of.heads),
            partials: bump.take(4 * partials),
            labels: match &encoder.attend {
                Attend::Labels(labels) => {
                    attention::labels::Scratch::new(bump, [labels.m, d, n, of.heads], bytes)
                }
                _ => attention::labels::Scratch::default(),
            },
            kam: match &encoder.attend {
                Attend::Knowledge(kam) => attention::kam::Scratch::new(bump, of, fed, kam),
                _ => attention::kam::Scratch::default(),
            },
        }
    }
}
