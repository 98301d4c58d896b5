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

use base::setting::InvalidSetting;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Attention, AttentionPass, Composed, Numeric, OnCuda, Sibling, Site};
use crate::encoder::config::Config;
use crate::encoder::tokens::{Knowledge, Span, Tokens};
use crate::params::{self, Init, Params, Spec};
use link::Link;

/// What its parameters are called among the outputs.
pub(crate) const NAME: &str = "knowledge";

/// What of a layer's map goes into the next layer's scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Its probabilities, after the softmax (equation 3).
    #[default]
    PostAdd,
    /// Its mixed scores, before the softmax, as in the convolution's origin (evolving attention).
    PreAdd,
    /// Nothing.
    None,
}

/// What auxiliary tokens score by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auxiliary {
    /// By maps alone: their rows and columns of `Q K^T` are 0.
    #[default]
    ZeroPad,
    /// By keys and queries too.
    Qk,
}

/// How scores and maps become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// By a learned convolution of 3 x 3 cells.
    #[default]
    Convolution,
    /// By their mean, head by head: the paper's ablation (table 6).
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

impl Sibling for Settings {
    fn to_json(&self) -> serde_json::Result<Value> {
        Ok(json!({ NAME: self }))
    }

    fn check(&self) -> std::result::Result<(), InvalidSetting> {
        if self.maps == 0 {
            return Err(InvalidSetting::new("knowledge.maps", 0, "at least 1"));
        }
        // What f32 cannot tell from 0 would be no share, though nothing says so.
        if self.alpha == 0.0 || (1e-12..=1.0).contains(&self.alpha) {
            return Ok(());
        }
        Err(InvalidSetting::new("knowledge.alpha", self.alpha, "a share from 0 to 1"))
    }

    /// A convolution's bias shifts a whole row of scores, which the softmax does not see; with [`Skip::PreAdd`] the next layer's convolution sees it
    /// at its border, where there is a next layer.
    fn unreached(&self, layers: usize) -> Vec<(String, &'static str)> {
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
    fn specs(&self, config: &Config) -> Vec<Spec> {
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

    fn build(&self, encoder: &Config, params: &Params) -> Result<Arc<dyn Attention>> {
        Ok(Arc::new(Kam::new(self, encoder, params)?))
    }

    fn on_cuda(&self) -> Option<OnCuda> {
        Some(OnCuda::Knowledge(self.clone()))
    }
}

/// The prefix of its parameters' names.
pub(crate) fn prefix() -> String {
    params::of_outputs(&format!("{NAME}."))
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
        settings.check().map_err(candle_core::Error::wrap)?;
        let layers = match settings.merge {
            Merge::Convolution => config.num_hidden_layers,
            Merge::Mean => 0,
        };
        let of = |l| Ok([params.get(&weight_name(l))?, params.get(&bias_name(l))?]);
        Ok(Kam { settings: settings.clone(), convolutions: (0..layers).map(of).collect::<Result<_>>()? })
    }
}

/// The attention of one layer of a pass.
#[derive(Debug)]
struct OfLayer<'a> {
    settings: &'a Settings,
    knowledge: &'a Knowledge,
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
struct Carried<'a> {
    kam: &'a Kam,
    knowledge: &'a Knowledge,
    map: Option<Before>,
    /// The input of the first layer, which auxiliary tokens have before every layer.
    first_nd: Tensor,
    /// For each token its place in a layer's output, or behind all of these its place in `first_nd`; `None` when there is no auxiliary token.
    places_n: Option<Tensor>,
}

impl Attention for Kam {
    fn begin<'a>(&'a self, first_nd: &Tensor, tokens: &'a Tokens) -> Result<Box<dyn AttentionPass + 'a>> {
        tokens.check_unpadded()?;
        let Some(knowledge) = &tokens.knowledge else {
            candle_core::bail!(
                "this model attends by maps of what is known, and these rows have none; make rows with the maps that it was fine-tuned with"
            )
        };
        let (n, spans) = (first_nd.dim(0)?, &tokens.spans);
        let Knowledge { m, lengths, real, .. } = knowledge;
        if *m != self.settings.maps {
            candle_core::bail!(
                "{m} maps a sample for an attention that merges {}; give it the maps it was made for",
                self.settings.maps
            );
        }
        if !spans.iter().map(|span| span.len).eq(lengths.iter().copied()) {
            candle_core::bail!("knowledge of samples of {lengths:?} tokens, these are others: {spans:?}");
        }
        let auxiliary = real.iter().zip(spans).any(|(real, span)| *real < span.len);
        let mut places: Vec<i64> = Vec::with_capacity(n);
        for (Span { start, len }, real) in spans.iter().zip(real) {
            places.extend((0..*len).map(|at| (start + at + if at < *real { 0 } else { n }) as i64));
        }
        let places_n = auxiliary.then(|| Tensor::from_vec(places, n, first_nd.device())).transpose()?;
        Ok(Box::new(Carried { kam: self, knowledge, map: None, first_nd: first_nd.clone(), places_n }))
    }
}

impl Carried<'_> {
    fn layer(&mut self, l: usize) -> OfLayer<'_> {
        OfLayer {
            settings: &self.kam.settings,
            knowledge: self.knowledge,
            convolution: self.kam.convolutions.get(l),
            carried: &mut self.map,
        }
    }
}

impl AttentionPass for Carried<'_> {
    /// The layer's map is carried on, padded; so does [`AttentionPass::on_numbers`] in its own form.
    fn composed(&mut self, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed> {
        at.check(qkv_n3d)?;
        let mut layer = self.layer(at.layer);
        layer.check(at)?;
        composed::attend(&mut layer, at, qkv_n3d)
    }

    fn on_numbers(&mut self, at: &Site<'_>) -> Result<Numeric> {
        let mut layer = self.layer(at.layer);
        layer.check(at)?;
        numbers::numeric(&mut layer, at)
    }

    /// Auxiliary tokens are again what they were before the first layer.
    fn next(&self, y_nd: Tensor) -> Result<Tensor> {
        match &self.places_n {
            Some(places_n) => Tensor::cat(&[&y_nd, &self.first_nd], 0)?.index_select(places_n, 0),
            None => Ok(y_nd),
        }
    }
}

impl OfLayer<'_> {
    /// Whether the layer's convolution is there, and of its sizes.
    fn check(&self, at: &Site<'_>) -> Result<()> {
        let (h, width) = (at.heads.count, 3 * at.d);
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
}

#[cfg(test)]
mod tests;
