//! Token, position and segment embeddings.

mod lookup;

use candle_core::{Result, Tensor};

use super::config::Config;
use super::tokens::Tokens;
use crate::nn;
use crate::nn::buffers::Buffers;
use crate::nn::layer_norm::LayerNorm;
use crate::params::{Init, Params, Spec};

/// The table of token embeddings among the parameters.
pub(crate) const TOKEN: &str = "embeddings.word_embeddings.weight";
/// The table of position embeddings among the parameters.
pub(crate) const POSITION: &str = "embeddings.position_embeddings.weight";
const SEGMENT: &str = "embeddings.token_type_embeddings.weight";
const NORM: &str = "embeddings.LayerNorm";

/// The tables behind the input of the first layer.
#[derive(Debug, Clone)]
pub struct Embedding {
    token_vd: Tensor,
    position_td: Tensor,
    segment_cd: Tensor,
    norm: LayerNorm,
    buffers: Buffers,
}

impl Embedding {
    pub(crate) fn specs(config: &Config) -> Vec<Spec> {
        let d = config.hidden_size;
        let table = |name, rows| Spec::new(name, &[rows, d], Init::Normal(config.initializer_range));
        let mut specs = vec![
            table(TOKEN, config.vocab_size),
            table(POSITION, config.max_position_embeddings),
            table(SEGMENT, config.type_vocab_size),
        ];
        specs.extend(Spec::layer_norm(NORM, d));
        specs
    }

    pub(crate) fn new(config: &Config, params: &Params) -> Result<Self> {
        Ok(Embedding {
            token_vd: token_table(params)?,
            position_td: params.get(POSITION)?,
            segment_cd: params.get(SEGMENT)?,
            norm: LayerNorm::new(params, NORM, config.layer_norm_eps)?,
            buffers: params.buffers().clone(),
        })
    }

    pub(crate) fn forward(&self, tokens: &Tokens) -> Result<Tensor> {
        self.norm.forward(&self.sum(tokens)?)
    }

    /// The sum of a token's three embeddings, as one operation where there is one for it.
    fn sum(&self, tokens: &Tokens) -> Result<Tensor> {
        if nn::fused(&self.token_vd) {
            let tables = [&self.token_vd, &self.position_td, &self.segment_cd];
            return lookup::sum(tables, [&tokens.ids_n, &tokens.positions_n, &tokens.types_n], &self.buffers);
        }
        self.composed(tokens)
    }

    fn composed(&self, tokens: &Tokens) -> Result<Tensor> {
        let token_nd = self.token_vd.index_select(&tokens.ids_n, 0)?;
        let position_nd = self.position_td.index_select(&tokens.positions_n, 0)?;
        let segment_nd = self.segment_cd.index_select(&tokens.types_n, 0)?;
        (token_nd + position_nd)? + segment_nd
    }
}

/// The table of token embeddings `[v, d]`, which a masked-LM output shares.
///
/// # Errors
/// When `params` holds no encoder.
pub(crate) fn token_table(params: &Params) -> Result<Tensor> {
    params.get(TOKEN)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::super::config::tests::tiny;
    use super::super::tokens::tests::tokens;
    use super::*;
    use crate::nn::check::{distance, numbers};
    use crate::nn::gradients::gradients;

    #[test]
    fn one_operation_is_the_composed_sum_and_frozen_tables_get_no_gradient() {
        let params = Params::fresh(&Embedding::specs(&tiny()), 1, &Device::Cpu).unwrap();
        let tokens = tokens(&[&[2, 7, 7, 3], &[2, 9, 3]], &tiny(), &Device::Cpu);
        for frozen in ["", "embeddings.word"] {
            let params = params.clone().freeze(|name| !frozen.is_empty() && name.starts_with(frozen));
            let embedding = Embedding::new(&tiny(), &params).unwrap();
            let found = [embedding.sum(&tokens), embedding.composed(&tokens)].map(|sum| {
                let sum = sum.unwrap();
                let grads = gradients(&sum.sin().unwrap().sum_all().unwrap()).unwrap();
                let grads = params.iter().filter_map(|(name, var)| Some((name, grads.get(var)?.clone())));
                (sum, grads.collect::<Vec<_>>())
            });
            let [(one, grads), (composed, others)] = found;
            assert_eq!(numbers(&one), numbers(&composed));
            assert_eq!((grads.len(), others.len()), if frozen.is_empty() { (3, 3) } else { (2, 2) });
            for ((name, a), (other, b)) in grads.iter().zip(&others) {
                assert!(name == other && distance(a, b) < 1e-6, "{name} {other}");
            }
        }
    }
}
