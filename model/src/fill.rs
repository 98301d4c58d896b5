//! What a masked language model says at a mask token: an encoder with the output for masked words, which only answers.

use std::path::Path;

use base::read::ReadError;
use batch::rows::Rows;
use candle_core::{Device, Tensor};

use crate::Error;
#[cfg(feature = "cuda")]
use crate::attention::Chosen;
use crate::checkpoint::masked_lm::NAME;
use crate::checkpoint::stored::Stored;
use crate::checkpoint::{self, OUTPUTS_WEIGHTS_FILE, masked_lm};
#[cfg(feature = "cuda")]
use crate::cuda::outputs::Question;
use crate::encoder::config::Config;
#[cfg(feature = "cuda")]
use crate::encoder::pool::Pooling;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Encoder, Pass, Read};
use crate::nn::in_pool;
use crate::output::masked_lm::MaskedLm;
use crate::output::some_of;
use crate::output::tag::gather;
#[cfg(feature = "cuda")]
use crate::output::{Decoder, Outline, Output, OutputDropout, Task};
use crate::params::{Params, of_outputs};
#[cfg(feature = "cuda")]
use crate::predict::kernels::{Kernels, Parts};

/// An encoder with its output for masked words.
#[derive(Debug, Clone)]
pub struct Filler {
    config: Config,
    encoder: Encoder,
    output: MaskedLm,
    device: Device,
    #[cfg(feature = "cuda")]
    params: Params,
    #[cfg(feature = "cuda")]
    kernels: Kernels,
}

impl Filler {
    /// The masked language model in a folder: engraft's own (stage `pretrain` or `retrain` with an output for masked words), or as `transformers` saves
    /// `BertForMaskedLM`. Its decoder is the table of token embeddings.
    ///
    /// # Errors
    /// Names the file that is missing or damaged, or the parameter that the checkpoint lacks.
    pub fn load(dir: &Path, device: &Device) -> Result<Self, Error> {
        checkpoint::digests::verify(dir)?;
        let (checkpoint::Checkpoint { config, params, .. }, published) =
            checkpoint::load_verified(dir, device)?;
        let own = dir.join(OUTPUTS_WEIGHTS_FILE);
        let stored = if own.exists() { Stored::open(&own)? } else { published };
        if let Some(name) = masked_lm::lacking(&stored) {
            let found = format!("it has no output for masked words ({name} is missing)");
            let remedy =
                "give the checkpoint of a masked language model, or pretrain this encoder on texts first";
            return Err(ReadError::new(dir, found, "", remedy).into());
        }
        let name = of_outputs(NAME);
        let tensors = masked_lm::read(&stored, device)?.into_iter();
        let tensors = tensors.map(|(name, tensor)| (of_outputs(&name), tensor)).collect();
        let params =
            params.with(Params::from_tensors(&MaskedLm::specs(&name, &config), tensors)?).freeze(|_| true);
        let (encoder, output) = (Encoder::new(&config, &params)?, MaskedLm::new(&params, &name, &config)?);
        let device = device.clone();
        Ok(Filler {
            config,
            encoder,
            output,
            device,
            #[cfg(feature = "cuda")]
            params,
            #[cfg(feature = "cuda")]
            kernels: Kernels::new(&Chosen::default()),
        })
    }

    /// Sizes of the encoder.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The logits `[vocabulary]` at the mask token of each row, `masked` being its place among the row's tokens.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or a mask token its row.
    pub fn logits(&self, rows: &Rows, masked: &[usize]) -> Result<Vec<Vec<f32>>, Error> {
        if rows.is_empty() && masked.is_empty() {
            return Ok(vec![]);
        }
        let device = if self.device.is_cuda() { &Device::Cpu } else { &self.device };
        let tokens = Tokens::new(&[("texts", rows)], &self.config, device)?;
        let mut places = vec![];
        for row in 0..rows.len().max(masked.len()) {
            let (len, mask) = (rows.lengths.get(row).copied().unwrap_or(0), masked.get(row).copied());
            let Some(mask) = mask.filter(|mask| *mask < len) else {
                return Err(Error::Misfit(format!(
                    "row {row}: the mask at token {mask} lies outside of its {tokens} tokens, or has no row",
                    mask = mask.unwrap_or(0),
                    tokens = len
                )));
            };
            places.push(u32::try_from(tokens.spans[row].start + mask).map_err(candle_core::Error::wrap)?);
        }
        let said = self.said(&tokens, &places)?.to_vec2()?;
        match said.iter().position(|logits: &Vec<f32>| logits.iter().any(|logit| !logit.is_finite())) {
            Some(row) => Err(Error::Misfit(format!(
                "row {row}: the model says numbers that are none; look at how it was trained"
            ))),
            None => Ok(said),
        }
    }

    /// The logits `[m, vocabulary]` of some tokens.
    fn said(&self, tokens: &Tokens, places: &[u32]) -> Result<Tensor, Error> {
        #[cfg(feature = "cuda")]
        if self.device.is_cuda() {
            return self.by_kernels(tokens, places);
        }
        in_pool(&self.device, || self.by_layers(tokens, places))
    }

    fn by_layers(&self, tokens: &Tokens, places: &[u32]) -> Result<Tensor, Error> {
        let read = some_of(tokens, places.to_vec());
        let pass = Pass { read: Read::some(read.as_deref()), ..Pass::PLAIN };
        let mut hidden = self.encoder.forward(&self.config, tokens, &pass)?;
        let x_nd = hidden.pop().ok_or_else(|| Error::Misfit("no hidden states; report it".to_owned()))?;
        Ok(self.output.forward(&gather(&x_nd, places)?)?)
    }

    #[cfg(feature = "cuda")]
    fn by_kernels(&self, tokens: &Tokens, places: &[u32]) -> Result<Tensor, Error> {
        let words = Output::Vocabulary { decoder: Decoder::MaskedLm };
        let outline = Outline {
            tasks: vec![Task { name: NAME.to_owned(), output: words, alpha: 1.0 }],
            pooling: Pooling::Cls,
            dropout: 0.0,
            thinned: OutputDropout::default(),
            labels: None,
            knowledge: None,
        };
        let question = [Question { task: 0, tokens: Some(places) }];
        let parts = Parts { config: &self.config, outline: &outline, params: &self.params };
        let (_, mut logits) =
            self.kernels.ask(&self.device, parts, |model| model.answer(tokens, &question, None))?;
        logits.pop().ok_or_else(|| Error::Misfit("no logits; report it".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::config::tests::tiny;
    use crate::params::Spec;
    use batch::family::Family;

    /// A checkpoint with the output under published names.
    fn saved(dir: &Path, rename: impl Fn(&str) -> Option<String>) -> Params {
        let config = tiny();
        let specs: Vec<Spec> = [Encoder::specs(&config), MaskedLm::specs(NAME, &config)].concat();
        let params = Params::fresh(&specs, 5, &Device::Cpu).unwrap();
        let named = params.iter().filter_map(|(name, tensor)| Some((rename(name)?, tensor.clone())));
        let named: Vec<(String, Tensor)> = named.collect();
        checkpoint::save(dir, &config, named.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
        params
    }

    fn rows() -> Rows {
        let mut rows = Rows::default();
        rows.push([2, 7, 4, 3].map(|id| (id, 0)));
        rows.push([2, 4, 9, 9, 3].map(|id| (id, 0)));
        rows
    }

    #[test]
    fn a_published_model_fills_its_mask_tokens_as_its_parts_do() {
        let dir = tempfile::tempdir().unwrap();
        let published =
            |name: &str| Some(masked_lm::published_name(name, Family::Bert).unwrap_or(name).to_owned());
        let params = saved(dir.path(), published);
        let filler = Filler::load(dir.path(), &Device::Cpu).unwrap();
        let found = filler.logits(&rows(), &[2, 1]).unwrap();
        assert_eq!((found.len(), found[0].len()), (2, tiny().vocab_size));
        // The second row alone, computed by hand.
        let encoder = Encoder::new(&tiny(), &params).unwrap();
        let output = MaskedLm::new(&params, NAME, &tiny()).unwrap();
        let tokens = Tokens::new(&[("texts", &rows())], &tiny(), &Device::Cpu).unwrap();
        let last = encoder.forward(&tiny(), &tokens, &Pass::PLAIN).unwrap().pop().unwrap();
        let expected = output.forward(&last.narrow(0, 4 + 1, 1).unwrap()).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(found[1], expected[0]);
        assert!(filler.logits(&rows(), &[2]).unwrap_err().to_string().contains("row 1"));
        assert!(
            filler
                .logits(&rows(), &[4, 1])
                .unwrap_err()
                .to_string()
                .contains("token 4 lies outside of its 4")
        );
        assert!(filler.logits(&Rows::default(), &[]).unwrap().is_empty());
    }

    #[test]
    fn an_encoder_without_the_output_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        saved(dir.path(), |name| (!name.starts_with(NAME)).then(|| name.to_owned()));
        let text = Filler::load(dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(text.contains("masked_lm.dense.weight is missing"), "{text}");
    }
}
