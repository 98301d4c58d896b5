//! What the tokens of a row attend to, for inspection.

use batch::rows::Rows;
use candle_core::{DType, IndexOp, Result, Tensor};

use super::Predictor;
use crate::Error;
use crate::attention::Composed;
use crate::encoder::tokens::Tokens;
use crate::encoder::{Gates, Pass, Read};
use crate::nn::in_pool;

/// The attention of one layer over the tokens of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Attended {
    /// Heads (h).
    pub heads: usize,
    /// Tokens (t).
    pub tokens: usize,
    /// The share of each token (last) in what each token (second) takes in under each head, `[h, t, t]`; the last axis adds up to 1.
    pub shares: Vec<f32>,
}

impl Attended {
    /// Of the first row of a layer, `t` of whose positions are its own.
    fn first(composed: &Composed, t: usize) -> Result<Self> {
        let shares_htt = composed.probs_bhtt.i(0)?.narrow(1, 0, t)?.narrow(2, 0, t)?;
        let heads = shares_htt.dim(0)?;
        let shares = shares_htt.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        Ok(Self { heads, tokens: t, shares })
    }

    /// The shares under one head, `[t, t]`.
    #[must_use]
    pub fn head(&self, head: usize) -> &[f32] {
        let square = self.tokens * self.tokens;
        &self.shares[head * square..(head + 1) * square]
    }

    /// The mean over the heads, `[t, t]`.
    #[must_use]
    pub fn mean(&self) -> Vec<f32> {
        let sum = |at: usize| (0..self.heads).map(|head| self.head(head)[at]).sum::<f32>();
        (0..self.tokens * self.tokens).map(|at| sum(at) / self.heads as f32).collect()
    }
}

impl Predictor {
    /// The hidden states of all layers, the embedding layer's first, as [`crate::encoder::Encoder::forward`] tells them: the last ones of what is `read`.
    pub(super) fn states(&self, tokens: &Tokens, read: Read<'_>) -> Result<Vec<Tensor>> {
        let gates = self.gates.as_ref().map_or(Gates::Open, |(_, gates_lh)| Gates::Shared(gates_lh));
        let pass = Pass { attention: &*self.attention, gates, dropout: None, read };
        in_pool(&self.device, || self.encoder.forward(&self.config, tokens, &pass))
    }

    /// What the tokens of the first of some rows attend to, layer after layer, by whatever attention the model has and under its gates.
    ///
    /// # Errors
    /// When a row does not fit the encoder, or there is none.
    pub fn attention(&self, rows: &Rows) -> std::result::Result<Vec<Attended>, Error> {
        let tokens = Tokens::new(&[("texts", rows)], &self.config, &self.device)?;
        let own = rows.lengths.first().copied();
        let t =
            own.ok_or_else(|| Error::Misfit("there is no row whose attention could be told".to_owned()))?;
        let mut inputs = self.states(&tokens, Read::All)?;
        // The last one is no layer's input.
        inputs.pop();
        let layers = self.encoder.inspect(&inputs, &tokens, &*self.attention)?;
        Ok(layers.iter().map(|layer| Attended::first(layer, t)).collect::<Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::tests::finetune::{rows, setup, trained};

    #[test]
    fn every_token_takes_in_one_whole_and_rows_besides_change_nothing() {
        let trainer = trained(setup(), 1);
        let model = trainer.predictor();
        let together = model.attention(&rows(3)).unwrap();
        let mut alone = Rows::default();
        let t = rows(3).lengths[0];
        alone.push((0..t).map(|at| (rows(3).ids[at], rows(3).types[at])));
        let alone = model.attention(&alone).unwrap();
        assert_eq!(alone.len(), model.config().num_hidden_layers);
        for (one, other) in alone.iter().zip(&together) {
            assert_eq!((one.heads, one.tokens), (model.config().num_attention_heads, t));
            assert_eq!((one.heads, one.tokens), (other.heads, other.tokens));
            for from in one.shares.chunks(t) {
                assert!((from.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{from:?}");
            }
            let of_heads: f32 = (0..one.heads).map(|head| one.head(head)[1]).sum();
            assert!((one.mean()[1] - of_heads / one.heads as f32).abs() < 1e-6);
            let far = one.shares.iter().zip(&other.shares).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-5, "{far}");
        }
        assert!(model.attention(&Rows::default()).is_err());
    }
}
