//! Token, position and segment embeddings. Knows no attention.

use candle_core::{Result, Tensor};

use super::config::Config;
use super::tokens::Tokens;
use crate::nn::layer_norm::LayerNorm;
use crate::params::{Init, Params, Spec};

const TOKEN: &str = "embeddings.word_embeddings.weight";
const POSITION: &str = "embeddings.position_embeddings.weight";
const SEGMENT: &str = "embeddings.token_type_embeddings.weight";
const NORM: &str = "embeddings.LayerNorm";

/// The tables behind the input of the first layer.
#[derive(Debug, Clone)]
pub struct Embedding {
    token_vd: Tensor,
    position_td: Tensor,
    segment_cd: Tensor,
    norm: LayerNorm,
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
        })
    }

    pub(crate) fn forward(&self, tokens: &Tokens) -> Result<Tensor> {
        let token_nd = self.token_vd.index_select(&tokens.ids_n, 0)?;
        let position_nd = self.position_td.index_select(&tokens.positions_n, 0)?;
        let segment_nd = self.segment_cd.index_select(&tokens.types_n, 0)?;
        self.norm.forward(&((token_nd + position_nd)? + segment_nd)?)
    }
}

/// The table of token embeddings `[v, d]`, which a masked-LM output shares.
///
/// # Errors
/// When `params` holds no encoder.
pub(crate) fn token_table(params: &Params) -> Result<Tensor> {
    params.get(TOKEN)
}
