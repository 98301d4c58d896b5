//! What is known of the samples of a batch, as KAM-BERT attends by it: plain data that travels with the tokens.

use candle_core::{Device, Result, Tensor};

use super::Span;

/// What is known of the samples of a batch.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// Of each sample `[m, t, t]`, one behind the other.
    pub(crate) maps: Tensor,
    /// Maps of a sample (m).
    pub(crate) m: usize,
    /// Tokens of each sample.
    pub(crate) lengths: Vec<usize>,
    /// Tokens of each sample that are real; the rest of it are auxiliary.
    pub(crate) real: Vec<usize>,
}

impl Knowledge {
    /// Knowledge of the samples of `spans`; `maps` holds for each of them `m` squares, `real` how many of its tokens are its own.
    ///
    /// # Errors
    /// When there are not as many numbers as the samples need.
    pub fn new(maps: Vec<f32>, m: usize, real: Vec<usize>, spans: &[Span], device: &Device) -> Result<Self> {
        let cells: usize = spans.iter().map(|span| m * span.len * span.len).sum();
        if maps.len() != cells {
            candle_core::bail!("{} numbers of maps, {m} maps of these samples have {cells}", maps.len());
        }
        if real.len() != spans.len() {
            candle_core::bail!("{} numbers of real tokens for {} samples", real.len(), spans.len());
        }
        if let Some(at) = real.iter().zip(spans).position(|(real, span)| *real == 0 || *real > span.len) {
            candle_core::bail!(
                "sample {at}: {} real tokens of {}, expected at least 1 and no more than there are",
                real[at],
                spans[at].len
            );
        }
        let count = maps.len();
        let lengths = spans.iter().map(|span| span.len).collect();
        Ok(Knowledge { maps: Tensor::from_vec(maps, count, device)?, m, lengths, real })
    }

    /// The samples without their auxiliary tokens: what outputs pool.
    #[must_use]
    pub fn real(&self, spans: &[Span]) -> Vec<Span> {
        spans.iter().zip(&self.real).map(|(span, real)| Span { start: span.start, len: *real }).collect()
    }
}
