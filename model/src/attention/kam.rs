//! KAM-BERT's attention (paper 002, equations 1 to 3): scores of tokens and maps of knowledge through a convolution, mixed with the scores as they are, with
//! the map of the layer before added.
//!
//! Rows stand without padding, `[real | auxiliary]`; auxiliary tokens are terms that the maps bring along. Maps of a batch are squares one behind the
//! other, so a longer row costs the others nothing. In f32 on the CPU the attention is part of the layer's one operation, and a sample's heads are
//! computed at once; elsewhere rows are padded.

mod composed;
mod convolve;
mod link;
mod numbers;
mod rows;
mod semantic;

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::Numeric;
use super::plain::{self, Attention};
use crate::encoder::config::Config;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::buffers::Buffers;
use crate::params::{Init, Params, Spec};
use link::Link;

/// What of a layer's map goes into the next layer's scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The probabilities, as equation 3 has it.
    PostAdd,
    /// The mixed scores before the softmax, as in the convolution's parent (evolving attention).
    PreAdd,
    /// Nothing.
    None,
}

/// What auxiliary tokens score by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auxiliary {
    /// Maps alone: their rows and columns of `Q K^T` are 0.
    ZeroPad,
    /// `Q K^T` as well.
    Qk,
}

/// How scores and maps become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// By a convolution of 3 x 3 cells that is learned.
    Convolution,
    /// By their mean, head by head: the paper's ablation.
    Mean,
}

/// The choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Maps of a sample (m).
    pub maps: usize,
    /// Share of the merged scores in those that attention uses; the rest is the scores as they are (published: 0.2).
    pub alpha: f64,
    /// What of a layer's map goes into the next layer's scores.
    pub skip: Skip,
    /// What auxiliary tokens score by.
    pub auxiliary: Auxiliary,
    /// How scores and maps become one.
    pub merge: Merge,
}

impl Settings {
    /// The first setting that is out of its range: its name, its value, and what it must be.
    #[must_use]
    pub fn wrong(&self) -> Option<(&'static str, String, &'static str)> {
        if self.maps == 0 {
            return Some(("maps", "0".to_owned(), "at least 1"));
        }
        // What f32 cannot tell from 0 would be no share, though nothing says so.
        let share = self.alpha == 0.0 || (1e-12..=1.0).contains(&self.alpha);
        (!share).then(|| ("alpha", self.alpha.to_string(), "a share from 0 to 1"))
    }

    /// The parameters of `layers` layers that no loss can reach, with the reason. A convolution's bias shifts a whole row of scores, which the
    /// softmax does not see; with [`Skip::PreAdd`] the next layer's convolution sees it at its border, where there is a next layer.
    #[must_use]
    pub fn unreached(&self, layers: usize) -> Vec<(String, &'static str)> {
        if self.merge == Merge::Mean {
            return vec![];
        }
        if self.alpha == 0.0 {
            let all = (0..layers).flat_map(|l| [weight_name(l), bias_name(l)]);
            return all.map(|name| (name, "alpha is 0: nothing of the merged scores is used")).collect();
        }
        let first = if self.skip == Skip::PreAdd { layers.saturating_sub(1) } else { 0 };
        (first..layers).map(|l| (bias_name(l), "a softmax does not see what its whole row shares")).collect()
    }

    /// The convolutions of an encoder's layers; they begin with random numbers of the encoder's deviation and no bias, which the paper leaves open.
    #[must_use]
    pub fn specs(&self, config: &Config) -> Vec<Spec> {
        if self.merge == Merge::Mean {
            return vec![];
        }
        let h = config.num_attention_heads;
        let layer = |l: usize| {
            let weight = Init::Normal(config.initializer_range);
            [
                Spec::new(weight_name(l), &[h, h + self.maps, 3, 3], weight),
                Spec::new(bias_name(l), &[h], Init::Zeros),
            ]
        };
        (0..config.num_hidden_layers).flat_map(layer).collect()
    }
}

/// The beginning of the names of what the attention learns: it lies with the outputs, which every training begins anew.
pub(crate) fn prefix() -> String {
    crate::output::named("knowledge.")
}

/// The name of layer l's weights.
pub(crate) fn weight_name(l: usize) -> String {
    format!("{}layer.{l}.convolution.weight", prefix())
}

/// The name of layer l's biases.
pub(crate) fn bias_name(l: usize) -> String {
    format!("{}layer.{l}.convolution.bias", prefix())
}

/// The attention with its parameters.
#[derive(Debug, Clone)]
pub struct Kam {
    settings: Settings,
    /// Of each layer: weights `[h, h + m, 3, 3]` and biases `[h]`; none when maps are merged by their mean.
    convolutions: Vec<[Tensor; 2]>,
}

impl Kam {
    /// One over `params`, which it shares.
    ///
    /// # Errors
    /// When a parameter is missing, or a setting is out of its range.
    pub fn new(settings: &Settings, config: &Config, params: &Params) -> Result<Self> {
        if let Some((field, found, expected)) = settings.wrong() {
            candle_core::bail!("{field} is {found}, expected {expected}");
        }
        let layers = match settings.merge {
            Merge::Convolution => config.num_hidden_layers,
            Merge::Mean => 0,
        };
        let of = |l| Ok([params.get(&weight_name(l))?, params.get(&bias_name(l))?]);
        Ok(Kam { settings: settings.clone(), convolutions: (0..layers).map(of).collect::<Result<_>>()? })
    }
}

/// What is known of the samples of a batch.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// Of each sample `[m, t, t]`, one behind the other.
    maps: Tensor,
    /// Maps of a sample (m).
    m: usize,
    /// Tokens of each sample.
    lengths: Vec<usize>,
    /// Tokens of each sample that are real; the rest of it are auxiliary.
    real: Vec<usize>,
}

impl Knowledge {
    /// Knowledge of the samples of `spans`; `maps` holds for each of them `m` squares, `real` how many of its tokens are its own.
    ///
    /// # Errors
    /// When there are not as many numbers as the samples need.
    pub fn new(
        maps: Vec<f32>,
        m: usize,
        real: Vec<usize>,
        (spans, device): (&[Span], &Device),
    ) -> Result<Self> {
        let cells: usize = spans.iter().map(|span| m * span.len * span.len).sum();
        if maps.len() != cells {
            candle_core::bail!("{} numbers of maps, {m} maps of these samples have {cells}", maps.len());
        }
        if real.len() != spans.len() {
            candle_core::bail!("{} numbers of real tokens for {} samples", real.len(), spans.len());
        }
        if let Some(at) = real.iter().zip(spans).position(|(real, span)| *real == 0 || *real > span.len) {
            candle_core::bail!(
                "sample {at}: {} real tokens of {}, expected at least 1 and no more than there are",
                real[at],
                spans[at].len
            );
        }
        let count = maps.len();
        let lengths = spans.iter().map(|span| span.len).collect();
        Ok(Knowledge { maps: Tensor::from_vec(maps, count, device)?, m, lengths, real })
    }

    /// The samples without their auxiliary tokens: what outputs pool.
    #[must_use]
    pub fn real(&self, spans: &[Span]) -> Vec<Span> {
        spans.iter().zip(&self.real).map(|(span, real)| Span { start: span.start, len: *real }).collect()
    }
}

/// The attention of a pass, with what is known of its samples.
#[derive(Debug, Clone, Copy)]
pub struct KamPass<'a> {
    /// The attention.
    pub kam: &'a Kam,
    /// What is known of the samples.
    pub knowledge: &'a Knowledge,
}

/// The attention of one layer of a pass.
#[derive(Debug)]
pub(crate) struct OfLayer<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) knowledge: &'a Knowledge,
    convolution: Option<&'a [Tensor; 2]>,
    /// The map of the layer before; then of this one.
    carried: &'a mut Option<Before>,
}

/// The map of a layer as the next one takes it up.
#[derive(Debug)]
enum Before {
    /// `[b, h, t, t]`, rows padded to the longest: where layers are composed.
    Padded(Tensor),
    /// Numbers: where each layer is one operation.
    Linked(Arc<Link>),
}

impl Before {
    fn padded(&self) -> Result<&Tensor> {
        match self {
            Before::Padded(map_bhtt) => Ok(map_bhtt),
            Before::Linked(_) => candle_core::bail!("a composed layer behind one that is one operation"),
        }
    }

    fn linked(&self) -> Result<Arc<Link>> {
        match self {
            Before::Padded(_) => candle_core::bail!("a layer that is one operation behind a composed one"),
            Before::Linked(link) => Ok(Arc::clone(link)),
        }
    }
}

/// What a pass carries from layer to layer.
#[derive(Debug)]
pub(crate) struct Carried<'a> {
    pass: KamPass<'a>,
    map: Option<Before>,
    /// The input of the first layer, which auxiliary tokens have before every layer.
    first_nd: Tensor,
    /// For each token its place in a layer's output, or behind all of these its place in `first_nd`; `None` when there is no auxiliary token.
    places_n: Option<Tensor>,
}

impl<'a> Carried<'a> {
    /// At the first layer.
    ///
    /// # Errors
    /// When the knowledge is of other samples, or not what the attention merges.
    pub(crate) fn new(pass: KamPass<'a>, first_nd: &Tensor, tokens: &Tokens) -> Result<Self> {
        tokens.check_unpadded()?;
        let (n, spans) = (first_nd.dim(0)?, &tokens.spans);
        let Knowledge { m, lengths, .. } = pass.knowledge;
        if *m != pass.kam.settings.maps {
            candle_core::bail!(
                "{m} maps a sample for an attention that merges {}; give it the maps it was made for",
                pass.kam.settings.maps
            );
        }
        if !spans.iter().map(|span| span.len).eq(lengths.iter().copied()) {
            candle_core::bail!("knowledge of samples of {lengths:?} tokens, these are others: {spans:?}");
        }
        let auxiliary = pass.knowledge.real.iter().zip(spans).any(|(real, span)| *real < span.len);
        let place = |(span, real): (&Span, &usize)| {
            let real = *real;
            let start = span.start;
            (0..span.len)
                .map(move |at| (start + at + if at < real { 0 } else { n }) as i64)
                .collect::<Vec<_>>()
        };
        let places: Vec<i64> = spans.iter().zip(&pass.knowledge.real).flat_map(place).collect();
        let places_n = auxiliary.then(|| Tensor::from_vec(places, n, first_nd.device())).transpose()?;
        Ok(Carried { pass, map: None, first_nd: first_nd.clone(), places_n })
    }

    pub(crate) fn layer(&mut self, l: usize) -> OfLayer<'_> {
        OfLayer {
            settings: &self.pass.kam.settings,
            knowledge: self.pass.knowledge,
            convolution: self.pass.kam.convolutions.get(l),
            carried: &mut self.map,
        }
    }

    /// A layer's output in which auxiliary tokens are what they were before the first layer.
    pub(crate) fn restored(&self, y_nd: Tensor) -> Result<Tensor> {
        match &self.places_n {
            Some(places_n) => Tensor::cat(&[&y_nd, &self.first_nd], 0)?.index_select(places_n, 0),
            None => Ok(y_nd),
        }
    }
}

impl OfLayer<'_> {
    /// The contexts `[n, d]`, of differentiable operations; the layer's map is carried on.
    ///
    /// # Errors
    /// When shapes do not fit.
    pub(crate) fn context(&mut self, how: &Attention, qkv_n3d: &Tensor, spans: &[Span]) -> Result<Tensor> {
        Ok(self.composed(how, qkv_n3d, spans)?.context_nd)
    }

    /// The same within a layer that is one operation, whose rows are `d` numbers wide and lie as the spans say.
    ///
    /// # Errors
    /// When shapes do not fit.
    pub(crate) fn on_numbers(
        &mut self,
        how: Attention,
        (d, spans): (usize, &[Span]),
        buffers: &Buffers,
    ) -> Result<Numeric> {
        self.check(how.heads, 3 * d)?;
        numbers::numeric(self, how, (d, spans), buffers)
    }

    fn composed(&mut self, how: &Attention, qkv_n3d: &Tensor, spans: &[Span]) -> Result<composed::Found> {
        let (n, width) = qkv_n3d.dims2()?;
        plain::check_spans(spans, n)?;
        self.check(how.heads, width)?;
        let mut found = composed::attend(self, how, qkv_n3d, spans)?;
        *self.carried = found.carried.take().map(Before::Padded);
        Ok(found)
    }

    /// Whether the layer fits heads and rows of queries, keys and values, `width` numbers each.
    fn check(&self, h: usize, width: usize) -> Result<()> {
        if !width.is_multiple_of(3 * h) {
            candle_core::bail!("{width} columns do not hold queries, keys and values of {h} heads");
        }
        if self.convolution.is_none() && self.settings.merge == Merge::Convolution {
            candle_core::bail!("a layer without a convolution: the attention was made for fewer layers");
        }
        if let Some([weight, bias]) = self.convolution
            && (weight.dims() != [h, h + self.settings.maps, 3, 3] || bias.dims() != [h])
        {
            let (found, maps) = (weight.dims(), self.settings.maps);
            candle_core::bail!("a convolution of shape {found:?} for {h} heads and {maps} maps");
        }
        Ok(())
    }

    /// The layer's attention and what it merged, `[b, h, t, t]` each, rows padded to the longest; the layer's map is carried on, padded as well: for
    /// inspection, layer after layer.
    ///
    /// # Errors
    /// When shapes do not fit.
    pub(crate) fn inspect(
        &mut self,
        how: &Attention,
        qkv_n3d: &Tensor,
        spans: &[Span],
    ) -> Result<[Tensor; 2]> {
        let found = self.composed(how, qkv_n3d, spans)?;
        Ok([found.attention_bhtt, found.semantic_bhtt])
    }
}

#[cfg(test)]
mod tests;
