//! What a model says at single tokens: which word stands where one was masked.

use batch::rows::Rows;
use candle_core::{Device, Tensor};

use super::{Predictor, finite};
use crate::Error;
#[cfg(feature = "cuda")]
use crate::cuda::outputs::Question;
use crate::encoder::tokens::Tokens;
use crate::output::tag::gather;

impl Predictor {
    /// The logits `[vocabulary]` of a task of words at some tokens of rows; `asked` has the places of tokens for each row, and the answers come row after row.
    ///
    /// # Errors
    /// When a row does not fit the encoder, a token lies outside of its row, or the task says nothing of tokens.
    pub fn at(&self, task: usize, rows: &Rows, asked: &[Vec<usize>]) -> Result<Vec<Vec<f32>>, Error> {
        let of = self.outline().task(task)?;
        if !of.output.is_of_tokens() {
            return Err(Error::Misfit(format!(
                "output of {}: it speaks of whole rows; ask a model that was trained on masked words",
                of.name
            )));
        }
        if rows.is_empty() && asked.is_empty() {
            return Ok(vec![]);
        }
        let device = if self.device.is_cuda() { &Device::Cpu } else { &self.device };
        let tokens = Tokens::new(&[(&of.name, rows)], &self.config, device)?;
        let mut places = vec![];
        for row in 0..rows.len().max(asked.len()) {
            let length = rows.lengths.get(row).copied().unwrap_or(0);
            let of_row = asked.get(row).map_or(&[][..], Vec::as_slice);
            if let Some(token) = of_row.iter().find(|token| **token >= length) {
                return Err(Error::Misfit(format!(
                    "row {row}: token {token} is asked for, which lies outside of its {length} tokens"
                )));
            }
            let of_row = of_row.iter().map(|token| u32::try_from(tokens.spans[row].start + token));
            places.extend(of_row.collect::<Result<Vec<_>, _>>().map_err(candle_core::Error::wrap)?);
        }
        if places.is_empty() {
            return Ok(vec![]);
        }
        finite(self.logits_at(task, &tokens, &places)?.to_vec2()?)
    }

    /// The logits `[m, vocabulary]` of some tokens.
    fn logits_at(&self, task: usize, tokens: &Tokens, places: &[u32]) -> Result<Tensor, Error> {
        #[cfg(feature = "cuda")]
        if self.device.is_cuda() {
            let question = [Question { task, tokens: Some(places) }];
            let (_, mut logits) = self.ask(|model| model.answer(tokens, &question, self.gates()))?;
            return logits.pop().ok_or_else(|| Error::Misfit("no logits; report it".to_owned()));
        }
        let x_md = gather(&self.forward(tokens)?, places)?;
        Ok(self.outputs.logits_of_tokens(&x_md, task)?)
    }
}
