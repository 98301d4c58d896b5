//! BERT (Devlin et al. 2019), post-norm, written on tensors.

pub mod config;
mod dtype;
pub mod embedding;
pub mod feed_forward;
pub mod layer;
pub mod pool;
pub mod tokens;

use base::rng::CounterRng;
use candle_core::{Result, Tensor};

use crate::attention::plain::Plain;
use crate::attention::{Attention, Composed};
use crate::device::{ActivationDtype, Recompute};
use crate::nn::dropout::Dropout;
use crate::params::{Params, Spec};
use config::Config;
use embedding::Embedding;
use layer::gates::{LayerGates, Row};
use layer::{Layer, LayerPass};
use tokens::Tokens;

/// The embedding layer and the stack of encoder layers.
#[derive(Debug, Clone)]
pub struct Encoder {
    embedding: Embedding,
    layers: Vec<Layer>,
    dtype: ActivationDtype,
}

/// Factors of the heads' contexts: the gates xi of KIMERA, equation 1 (1 = keep, 0 = vacant).
#[derive(Debug, Clone, Copy)]
pub enum Gates<'a> {
    /// All heads are on.
    Open,
    /// The same gates for all samples, `[l, h]`: a pruned encoder, or one whose vacant heads alone take part.
    Shared(&'a Tensor),
    /// Each sample has its own, `[s, l, h]` in the order of [`Tokens::spans`].
    PerSample(&'a Tensor),
    /// Each token has its own, `[n, l, h]`.
    PerToken(&'a Tensor),
}

/// Of which tokens the last hidden states are read. Where a layer is one operation, what follows the last one's attention is computed of these alone, and the
/// last hidden states of others are NaN.
#[derive(Debug, Clone, Copy)]
pub enum Read<'a> {
    /// Of all.
    All,
    /// Of some, in ascending order; at least one.
    Of(&'a [u32]),
}

impl<'a> Read<'a> {
    /// Of these, or of all where none are told.
    #[must_use]
    pub fn some(places: Option<&'a [u32]>) -> Self {
        places.map_or(Read::All, Read::Of)
    }
}

/// What can differ from one pass through the encoder to the next.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// What tokens attend by.
    pub attention: &'a dyn Attention,
    /// Factors of the heads' contexts.
    pub gates: Gates<'a>,
    /// Key of this step's dropout masks, `None` outside training.
    pub dropout: Option<CounterRng>,
    /// Of which tokens the last hidden states are read.
    pub read: Read<'a>,
}

impl Pass<'_> {
    /// Plain attention, all heads on and no dropout; the states of all tokens are read.
    pub const PLAIN: Pass<'static> =
        Pass { attention: &Plain, gates: Gates::Open, dropout: None, read: Read::All };
}

impl Gates<'_> {
    /// Whether they are those of an encoder of so many layers and heads, and of these tokens.
    fn check(self, config: &Config, tokens: &Tokens) -> Result<()> {
        let (l, h) = (config.num_hidden_layers, config.num_attention_heads);
        let (found, expected) = match self {
            Gates::Open => return Ok(()),
            Gates::Shared(gates) => (gates.dims(), vec![l, h]),
            Gates::PerSample(gates) => (gates.dims(), vec![tokens.spans.len(), l, h]),
            Gates::PerToken(gates) => (gates.dims(), vec![tokens.count(), l, h]),
        };
        if found == expected {
            return Ok(());
        }
        candle_core::bail!(
            "gates of shape {found:?}, this encoder and batch need {expected:?}; take a mask that was searched on this encoder"
        )
    }

    /// The gates of layer `l`; `None` when all are on.
    fn of_layer(self, l: usize) -> Result<Option<LayerGates>> {
        let of = |gates_rlh: &Tensor| gates_rlh.narrow(1, l, 1)?.squeeze(1)?.contiguous();
        Ok(match self {
            Gates::Open => None,
            Gates::Shared(gates_lh) => {
                Some(LayerGates { gates_rh: gates_lh.get(l)?.unsqueeze(0)?, row: Row::All })
            }
            Gates::PerSample(gates_slh) => Some(LayerGates { gates_rh: of(gates_slh)?, row: Row::Sample }),
            Gates::PerToken(gates_nlh) => Some(LayerGates { gates_rh: of(gates_nlh)?, row: Row::Token }),
        })
    }
}

/// The places in a layer at which numbers are dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Embedding,
    Attention,
    AttentionOutput,
    FeedForward,
}

/// The dropout of one layer in one step: independent of how often or in which order it is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerDropout {
    key: Option<CounterRng>,
    attention: f64,
    hidden: f64,
}

impl LayerDropout {
    /// Of this step's key, if anything is dropped at all; the embeddings' has the number `u64::MAX`.
    pub(crate) fn of(key: Option<CounterRng>, config: &Config, layer: u64) -> Self {
        let (attention, hidden) = (config.attention_probs_dropout_prob, config.hidden_dropout_prob);
        LayerDropout { key: key.map(|key| key.branch(layer)), attention, hidden }
    }

    pub(crate) fn at(&self, place: Place) -> Option<Dropout> {
        let rate = if matches!(place, Place::Attention) { self.attention } else { self.hidden };
        self.key.map(|key| Dropout::new(key.branch(place as u64), rate)).filter(|dropout| dropout.is_active())
    }

    pub(crate) fn apply(&self, place: Place, x: &Tensor) -> Result<Tensor> {
        self.at(place).map_or(Ok(x.clone()), |dropout| dropout.apply(x))
    }
}

impl Encoder {
    /// All parameters of an encoder with this configuration, under the names of Hugging Face's `BertModel`.
    #[must_use]
    pub fn specs(config: &Config) -> Vec<Spec> {
        let mut specs = Embedding::specs(config);
        specs.extend((0..config.num_hidden_layers).flat_map(|l| Layer::specs(config, l)));
        specs.extend(pool::pooler_specs(config));
        specs
    }

    /// An encoder over `params`, which it shares.
    ///
    /// # Errors
    /// When a parameter is missing.
    pub fn new(config: &Config, params: &Params) -> Result<Self> {
        let layers =
            (0..config.num_hidden_layers).map(|l| Layer::new(config, params, l)).collect::<Result<_>>()?;
        Ok(Encoder { embedding: Embedding::new(config, params)?, layers, dtype: ActivationDtype::F32 })
    }

    /// The same encoder, sharing its parameters, that keeps so much for the backward pass.
    #[must_use]
    pub fn with_recompute(mut self, recompute: Recompute) -> Self {
        self.layers = self.layers.into_iter().map(|layer| layer.recomputed(recompute)).collect();
        self
    }

    /// The hidden states of all real tokens, `[n, d]` each: the embedding layer's, then every encoder layer's, in its activation dtype; the last ones of those that the
    /// pass reads.
    ///
    /// # Errors
    /// When the tokens or the gates do not fit the encoder's sizes.
    pub fn forward(&self, config: &Config, tokens: &Tokens, pass: &Pass<'_>) -> Result<Vec<Tensor>> {
        pass.gates.check(config, tokens)?;
        let dropout = LayerDropout::of(pass.dropout, config, u64::MAX);
        let x_nd = dropout.apply(Place::Embedding, &self.embedding.forward(tokens)?)?;
        let x_nd = dtype::rounded(x_nd, self.dtype)?;
        let mut attention = pass.attention.begin(&x_nd, tokens)?;
        let mut hidden = vec![x_nd];
        for (l, layer) in self.layers.iter().enumerate() {
            let gates = pass.gates.of_layer(l)?;
            let dropout = LayerDropout::of(pass.dropout, config, l as u64);
            let read = if l + 1 == self.layers.len() { pass.read } else { Read::All };
            let of = LayerPass { tokens, gates: gates.as_ref(), dropout, read };
            let y_nd = layer.forward(&hidden[l], &mut *attention, &of)?;
            hidden.push(attention.next(y_nd)?);
        }
        Ok(hidden)
    }

    /// What every layer's attention computes, its probabilities among it, given the inputs of the layers as [`Encoder::forward`] tells them. Rows are
    /// moved together: `t` counts real tokens only, as far as the longest row. For inspection; the forward pass does not keep them.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn inspect(
        &self,
        inputs: &[Tensor],
        tokens: &Tokens,
        attention: &dyn Attention,
    ) -> Result<Vec<Composed>> {
        let Some(first_nd) = inputs.first() else { return Ok(vec![]) };
        let mut attention = attention.begin(first_nd, tokens)?;
        let layers = self.layers.iter().zip(inputs);
        layers.map(|(layer, x_nd)| layer.inspect(x_nd, &mut *attention, tokens)).collect()
    }
}
