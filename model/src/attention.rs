//! Ways in which the tokens of a row look at each other: siblings, one per file.

pub mod gate;
pub mod kam;
pub mod label;
pub mod plain;

use candle_core::{Result, Tensor};

use crate::encoder::tokens::Tokens;
use crate::nn::buffers::Buffer;

/// Which of them the layers of a pass use.
#[derive(Debug, Clone, Copy)]
pub enum Attend<'a> {
    /// Tokens look at each other.
    Plain,
    /// Label embeddings are further queries of the first token.
    Labels(&'a label::Labels),
    /// Tokens look at each other by what is known of them as well.
    Knowledge(kam::KamPass<'a>),
}

/// What the attention of one layer of a pass needs.
#[derive(Debug)]
pub(crate) enum LayerAttend<'a> {
    Plain,
    Labels(&'a label::Labels),
    Knowledge(kam::OfLayer<'a>),
}

/// An attention on f32 numbers on the CPU, for a layer that is one operation.
pub(crate) trait OnNumbers: Send + Sync {
    /// The contexts `[n, d]` of queries, keys and values side by side, `[n, 3 d]`.
    fn context(&self, qkv: &[f32]) -> Result<Buffer>;

    /// Given the gradient of the contexts, that of `qkv`, and of each tensor of [`Numeric::reads`].
    fn gradient(&self, qkv: &[f32], d_context: &[f32]) -> Result<(Buffer, Vec<Tensor>)>;
}

/// What a layer that is one operation attends with.
pub(crate) struct Numeric {
    pub(crate) attention: Box<dyn OnNumbers>,
    /// The tensors that it reads besides queries, keys and values, and gives gradients of.
    pub(crate) reads: Vec<Tensor>,
}

/// The attention of a pass on its way through the layers.
#[derive(Debug)]
pub(crate) enum Passing<'a> {
    Plain,
    Labels(&'a label::Labels),
    Knowledge(kam::Carried<'a>),
}

impl<'a> Attend<'a> {
    /// At the first layer, whose input is `first_nd`.
    pub(crate) fn begin(self, first_nd: &Tensor, tokens: &Tokens) -> Result<Passing<'a>> {
        Ok(match self {
            Attend::Plain => Passing::Plain,
            Attend::Labels(labels) => {
                tokens.check_unpadded()?;
                Passing::Labels(labels)
            }
            Attend::Knowledge(pass) => Passing::Knowledge(kam::Carried::new(pass, first_nd, tokens)?),
        })
    }
}

impl Passing<'_> {
    /// What layer `l` needs.
    pub(crate) fn layer(&mut self, l: usize) -> LayerAttend<'_> {
        match self {
            Passing::Plain => LayerAttend::Plain,
            Passing::Labels(labels) => LayerAttend::Labels(labels),
            Passing::Knowledge(carried) => LayerAttend::Knowledge(carried.layer(l)),
        }
    }

    /// The next layer's input, given a layer's output.
    pub(crate) fn next(&self, y_nd: Tensor) -> Result<Tensor> {
        match self {
            Passing::Plain | Passing::Labels(_) => Ok(y_nd),
            Passing::Knowledge(carried) => carried.restored(y_nd),
        }
    }
}
