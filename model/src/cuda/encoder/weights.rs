//! Where the weights of the encoder's layers and their gradients stand.

use super::super::Numbers;
use super::super::arenas::{Arenas, Parameter};
use super::super::args::Address;
use super::Sizes;
use super::attention::Attend;
use super::attention::labels::Labels;
use crate::Error;
use crate::attention::OnCuda;
use crate::encoder::config::Config;
use crate::nn::single;

/// A linear layer `[o, i]` with its bias `[o]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub(crate) weight: Parameter,
    pub(crate) bias: Parameter,
}

/// Whether the weights `[d, d]` of queries, keys and values stand side by side, and so their biases: they are one layer `[3 d, d]`. Those of a training do;
/// where products read the parameters themselves, each stands by itself.
pub(super) fn are_one([query, key, value]: &[Linear; 3], d: usize, bytes: usize) -> bool {
    let follows = |one: Address, next: Address, count: usize| one + (count * bytes) as u64 == next;
    [(query, key), (key, value)].iter().all(|(one, next)| {
        follows(one.weight.product, next.weight.product, d * d)
            && follows(one.bias.product, next.bias.product, d)
    })
}

/// Gain and shift of a norm, `[d]` each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) gain: Parameter,
    pub(crate) shift: Parameter,
}

/// One layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer {
    /// Of queries, keys and values, which stand side by side: the weight `[3 d, d]` of all begins with that of queries.
    pub(super) query_key_value: [Linear; 3],
    pub(super) output: Linear,
    pub(super) norms: [Norm; 2],
    pub(super) widen: Linear,
    pub(super) narrow: Linear,
}

/// Tables of tokens, positions and segments, and their norm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Embedding {
    pub(super) tables: [Parameter; 3],
    pub(super) norm: Norm,
}

/// The encoder over its arenas.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) sizes: Sizes,
    pub(super) embedding: Embedding,
    pub(super) layers: Vec<Layer>,
    pub(super) attend: Attend,
}

impl Linear {
    /// The layer `name`.
    ///
    /// # Errors
    /// When the model has none.
    pub(crate) fn new(arenas: &Arenas, name: &str) -> Result<Self, Error> {
        let weight = arenas.parameter(&format!("{name}.weight"))?;
        Ok(Linear { weight, bias: arenas.parameter(&format!("{name}.bias"))? })
    }

    /// Whether anything of it is trained.
    pub(crate) fn is_trained(&self) -> bool {
        self.weight.gradient != 0 || self.bias.gradient != 0
    }
}

impl Norm {
    /// The norm `name`.
    ///
    /// # Errors
    /// When the model has none.
    pub(crate) fn new(arenas: &Arenas, name: &str) -> Result<Self, Error> {
        let gain = arenas.parameter(&format!("{name}.weight"))?;
        Ok(Norm { gain, shift: arenas.parameter(&format!("{name}.bias"))? })
    }

    fn is_trained(&self) -> bool {
        self.gain.gradient != 0 || self.shift.gradient != 0
    }
}

impl Layer {
    fn new(arenas: &Arenas, l: usize) -> Result<Self, Error> {
        let name = |part: &str| format!("encoder.layer.{l}.{part}");
        let of = |part: &str| Linear::new(arenas, &name(part));
        let norm = |part: &str| Norm::new(arenas, &name(part));
        Ok(Layer {
            query_key_value: [
                of("attention.self.query")?,
                of("attention.self.key")?,
                of("attention.self.value")?,
            ],
            output: of("attention.output.dense")?,
            norms: [norm("attention.output.LayerNorm")?, norm("output.LayerNorm")?],
            widen: of("intermediate.dense")?,
            narrow: of("output.dense")?,
        })
    }

    fn is_trained(&self) -> bool {
        let linears = self.query_key_value.iter().chain([&self.output, &self.widen, &self.narrow]);
        linears.into_iter().any(Linear::is_trained) || self.norms.iter().any(Norm::is_trained)
    }
}

impl Embedding {
    fn new(arenas: &Arenas) -> Result<Self, Error> {
        let table = |name: &str| arenas.parameter(&format!("embeddings.{name}_embeddings.weight"));
        let tables = [table("word")?, table("position")?, table("token_type")?];
        Ok(Embedding { tables, norm: Norm::new(arenas, "embeddings.LayerNorm")? })
    }
}

impl Encoder {
    /// The encoder over arenas.
    ///
    /// # Errors
    /// When a parameter is missing, or its sizes are beyond what kernels take.
    pub(crate) fn new(
        numbers: Numbers,
        arenas: &Arenas,
        config: &Config,
        attention: &OnCuda,
    ) -> Result<Self, Error> {
        let (d, heads) = (config.hidden_size, config.num_attention_heads);
        if !d.is_multiple_of(4) || d > 1024 || !config.intermediate_size.is_multiple_of(4) || d / heads > 128
        {
            return Err(Error::Misfit(format!(
                "an encoder {d} wide with {heads} heads and feed-forward layers of {}: on CUDA widths are multiples of 4, hidden states at most 1024 and heads at most 128 wide; take the device cpu",
                config.intermediate_size
            )));
        }
        let sizes =
            Sizes { d, heads, i: config.intermediate_size, epsilon: single(config.layer_norm_eps), numbers };
        let layers =
            (0..config.num_hidden_layers).map(|l| Layer::new(arenas, l)).collect::<Result<_, _>>()?;
        let attend = Attend::new(arenas, attention, config.num_hidden_layers)?;
        Ok(Encoder { sizes, embedding: Embedding::new(arenas)?, layers, attend })
    }

    /// Of which tables of tokens, positions and segments a gradient is wanted.
    pub(crate) fn trained_tables(&self) -> [bool; 3] {
        self.embedding.tables.map(|table| table.gradient != 0)
    }

    /// Whether anything is trained of the embeddings.
    pub(super) fn embedding_is_trained(&self) -> bool {
        self.trained_tables().contains(&true) || self.embedding.norm.is_trained()
    }

    /// The lowest layer that the backward pass comes to; none if only what stands behind the encoder is trained.
    pub(super) fn lowest(&self) -> Option<usize> {
        if self.embedding_is_trained() {
            return (!self.layers.is_empty()).then_some(0);
        }
        let learns = |l: usize| match &self.attend {
            Attend::Knowledge(kam) => kam.is_trained(l),
            Attend::Labels(labels) => labels.embeddings.gradient != 0,
            Attend::Plain => false,
        };
        (0..self.layers.len()).find(|l| self.layers[*l].is_trained() || learns(*l))
    }

    /// Labels that its tokens attend with, if they do.
    pub(crate) fn labels(&self) -> Option<&Labels> {
        match &self.attend {
            Attend::Labels(labels) => Some(labels),
            _ => None,
        }
    }
}
