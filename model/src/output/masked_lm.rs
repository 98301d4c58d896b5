//! BERT's masked-language-model output: a transform, then the token embeddings as decoder.

use candle_core::{Result, Tensor};

use crate::encoder::config::Config;
use crate::encoder::embedding::token_table;
use crate::nn::gelu::gelu;
use crate::nn::layer_norm::LayerNorm;
use crate::nn::linear::{Linear, linear};
use crate::params::{Init, Params, Spec};

/// `LayerNorm(GELU(x W + b)) E^T + c` with E the encoder's token embeddings.
#[derive(Debug, Clone)]
pub struct MaskedLm {
    transform: Linear,
    norm: LayerNorm,
    decoder_vd: Tensor,
    bias_v: Tensor,
}

impl MaskedLm {
    pub(crate) fn specs(name: &str, config: &Config) -> Vec<Spec> {
        let d = config.hidden_size;
        let mut specs = Spec::linear(&format!("{name}.dense"), [d, d], config.initializer_range).to_vec();
        specs.extend(Spec::layer_norm(&format!("{name}.LayerNorm"), d));
        specs.push(Spec::new(format!("{name}.decoder.bias"), &[config.vocab_size], Init::Zeros));
        specs
    }

    pub(crate) fn new(params: &Params, name: &str, config: &Config) -> Result<Self> {
        Ok(MaskedLm {
            transform: Linear::new(params, &format!("{name}.dense"))?,
            norm: LayerNorm::new(params, &format!("{name}.LayerNorm"), config.layer_norm_eps)?,
            decoder_vd: token_table(params)?,
            bias_v: params.get(&format!("{name}.decoder.bias"))?,
        })
    }

    pub(crate) fn forward(&self, x_md: &Tensor) -> Result<Tensor> {
        let t_md = self.norm.forward(&gelu(&self.transform.forward(x_md)?)?)?;
        linear(&t_md, &self.decoder_vd, &self.bias_v)
    }
}
