//! How the tokens of a row attend to each other: one trait, and a file or folder for each sibling that implements it.
//!
//! A sibling is its settings ([`Sibling`]), from which a model with these settings is built; what they build over the model's parameters ([`Attention`]); and
//! the attention of one pass through the layers ([`AttentionPass`]), which may carry something from a layer to the next one. A layer knows nothing else of it.

#[cfg(test)]
pub(crate) mod check;
pub mod gate;
pub mod kam;
pub mod label;
pub mod plain;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::Arc;

use base::setting::InvalidSetting;
use candle_core::{DType, Result, Tensor};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::encoder::config::Config;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::buffers::{Buffer, Buffers};
use crate::nn::dropout::Dropout;
use crate::nn::linear::Linear;
use crate::params::{Params, Spec};

/// The settings of an attention.
pub trait Sibling: Debug + Send + Sync {
    /// The settings as a training's state keeps them.
    ///
    /// # Errors
    /// When JSON cannot hold them.
    fn to_json(&self) -> serde_json::Result<Value>;

    /// Refuses a setting that is out of its range.
    ///
    /// # Errors
    /// Names the first one.
    fn check(&self) -> std::result::Result<(), InvalidSetting> {
        Ok(())
    }

    /// The parameters that it has besides those of an encoder of these sizes. Their names begin with [`crate::params::OUTPUTS`]: they lie with the
    /// outputs, which every training begins anew, so that the encoder's folder stays a plain BERT.
    fn specs(&self, _encoder: &Config) -> Vec<Spec> {
        vec![]
    }

    /// Those of them that no loss can reach in an encoder of so many layers, with the reason: they are frozen.
    fn unreached(&self, _layers: usize) -> Vec<(String, &'static str)> {
        vec![]
    }

    /// The attention over `params`, which it shares.
    ///
    /// # Errors
    /// When a parameter is missing, or a setting is out of its range.
    fn build(&self, encoder: &Config, params: &Params) -> Result<Arc<dyn Attention>>;

    /// How kernels compute it on CUDA; `None` where there are none, and a training there is refused.
    fn on_cuda(&self) -> Option<OnCuda> {
        None
    }
}

/// The sibling that a model attends by; plain attention unless said otherwise. Two are equal if their settings are.
#[derive(Debug, Clone)]
pub struct Chosen(Arc<dyn Sibling>);

/// An attention with its parameters.
pub trait Attention: Debug + Send + Sync {
    /// A pass of `tokens`, whose states before the first layer are `first_nd`.
    ///
    /// # Errors
    /// When it cannot attend to these tokens: what rows carry is never ignored.
    fn begin<'a>(&'a self, first_nd: &Tensor, tokens: &'a Tokens) -> Result<Box<dyn AttentionPass + 'a>>;

    /// What it adds to the loss of a model's one task, no axes. `logits` makes that task's logits `[m, c]` of vectors `[m, d]`.
    ///
    /// # Errors
    /// When the tensor library fails.
    fn own_loss(&self, _logits: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

/// The attention of one pass, asked layer after layer in their order.
pub trait AttentionPass {
    /// The contexts of a layer, of differentiable operations: for other devices and number types, for inspection, and as what [`OnNumbers`] is tested
    /// against.
    ///
    /// # Errors
    /// When shapes do not fit.
    fn composed(&mut self, at: &Site<'_>, qkv_n3d: &Tensor) -> Result<Composed>;

    /// The same for a layer that is one operation on f32 numbers.
    ///
    /// # Errors
    /// When shapes do not fit.
    fn on_numbers(&mut self, at: &Site<'_>) -> Result<Numeric>;

    /// The next layer's input, given a layer's output.
    ///
    /// # Errors
    /// When the tensor library fails.
    fn next(&self, y_nd: Tensor) -> Result<Tensor> {
        Ok(y_nd)
    }
}

/// The heads of a layer in one pass.
#[derive(Debug, Clone)]
pub struct Heads {
    /// Number of heads (h).
    pub count: usize,
    /// Dropout of the probabilities, `None` outside training.
    pub dropout: Option<Dropout>,
    /// Tokens of each row that are looked at, if some are not ([`Tokens::seen`]).
    pub seen: Option<Arc<[usize]>>,
}

/// One layer of a pass as its attention sees it.
#[derive(Debug)]
pub struct Site<'a> {
    /// Number of the layer, from 0.
    pub layer: usize,
    /// Its heads.
    pub heads: &'a Heads,
    /// The rows of the batch.
    pub spans: &'a [Span],
    /// Its projection of queries, for siblings with queries of their own.
    pub query: &'a Linear,
    /// Dtype of its activations.
    pub dtype: DType,
    /// Hidden width (d).
    pub d: usize,
    /// Memory that steps hand on.
    pub buffers: &'a Buffers,
}

/// What a layer's attention computes of differentiable operations.
#[derive(Debug)]
pub struct Composed {
    /// The contexts of all heads, heads side by side: `[n, d]`.
    pub context_nd: Tensor,
    /// The probabilities before dropout, `[b, h, t, t]`, rows padded to the longest.
    pub probs_bhtt: Tensor,
    /// What scores were merged to with something else, if they were, `[b, h, t, t]`: for inspection.
    pub merged_bhtt: Option<Tensor>,
}

/// An attention on f32 numbers on the CPU, for a layer that is one operation.
pub trait OnNumbers: Send + Sync {
    /// The contexts `[n, d]` of queries, keys and values side by side, `[n, 3 d]`.
    ///
    /// # Errors
    /// When something that it reads is not there.
    fn context(&self, qkv: &[f32]) -> Result<Buffer>;

    /// Given the gradient of the contexts, that of `qkv`, and of each tensor of [`Numeric::reads`].
    ///
    /// # Errors
    /// When something that it reads is not there.
    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)>;
}

/// What a layer that is one operation attends with.
pub struct Numeric {
    /// The attention.
    pub attention: Box<dyn OnNumbers>,
    /// The tensors that it reads besides queries, keys and values, and gives gradients of.
    pub reads: Vec<Tensor>,
}

/// An attention that has kernels.
#[derive(Debug, Clone, PartialEq)]
pub enum OnCuda {
    /// Plain attention.
    Plain,
    /// Label embeddings.
    Labels {
        /// How they are attended with.
        settings: label::LabelAttention,
        /// How many there are.
        classes: usize,
    },
    /// Maps of knowledge.
    Knowledge(kam::Settings),
}

impl Chosen {
    /// A model that attends by this sibling.
    pub fn new(sibling: impl Sibling + 'static) -> Self {
        Chosen(Arc::new(sibling))
    }

    /// Its settings.
    #[must_use]
    pub fn sibling(&self) -> &dyn Sibling {
        &*self.0
    }

    /// Whether it is plain attention, of which settings say nothing.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Chosen::default()
    }
}

impl Default for Chosen {
    fn default() -> Self {
        Chosen::new(plain::Plain)
    }
}

impl PartialEq for Chosen {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.0.to_json(), other.0.to_json()), (Ok(one), Ok(other)) if one == other)
    }
}

impl Serialize for Chosen {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.to_json().map_err(serde::ser::Error::custom)?.serialize(to)
    }
}

impl Site<'_> {
    /// Whether `qkv_n3d` holds queries, keys and values of the heads for all tokens of the rows, which lie one after the other.
    pub(crate) fn check(&self, qkv_n3d: &Tensor) -> Result<()> {
        let ((n, width), heads) = (qkv_n3d.dims2()?, self.heads.count);
        if !width.is_multiple_of(3 * heads) {
            candle_core::bail!("{width} columns do not hold queries, keys and values of {heads} heads");
        }
        check_spans(self.spans, n)
    }
}

/// Whether spans cover `n` tokens one after the other, which the operations on slices rely on.
pub(crate) fn check_spans(spans: &[Span], n: usize) -> Result<()> {
    let end =
        spans.iter().try_fold(0, |end, span| (span.start == end && span.len > 0).then_some(end + span.len));
    if end == Some(n) {
        Ok(())
    } else {
        candle_core::bail!("spans do not cover the {n} tokens one after the other")
    }
}
