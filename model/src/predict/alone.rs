//! An encoder that answers by itself.

use std::path::Path;

use candle_core::Device;

use super::Predictor;
use crate::Error;
use crate::attention::Chosen;
use crate::checkpoint;
use crate::encoder::pool::Pooling;
use crate::output::{Outline, OutputDropout};

impl Predictor {
    /// The encoder of any checkpoint folder alone: it has no outputs, and answers with hidden states and pooled vectors, by a pooler only where
    /// the checkpoint has one.
    ///
    /// # Errors
    /// Names the file that is missing or damaged.
    pub fn encoder(dir: &Path, device: &Device) -> Result<Self, Error> {
        let checkpoint::Checkpoint { config, params, fresh, .. } = checkpoint::load(dir, device)?;
        let outline = Outline {
            tasks: vec![],
            pooling: Pooling::default(),
            dropout: 0.0,
            thinned: OutputDropout::ElementWise,
            labels: None,
            knowledge: None,
        };
        let predictor = Predictor::over(&config, &outline, &Chosen::default(), &params, device)?;
        Ok(Predictor { lacking: fresh, ..predictor })
    }
}
