//! Answers by kernels on a CUDA device.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use batch::rows::Rows;
use candle_core::{Device, Tensor};

use super::Predictor;
use crate::Error;
use crate::attention::Chosen;
use crate::cuda;
use crate::cuda::tape::{Model, Of};
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::tokens::Tokens;
use crate::optim::head_mask::{HeadMask, SoftOn};

/// A model of kernels, made when it is first asked. Clones share it: gates are said with each question.
#[derive(Clone)]
pub(super) struct Kernels {
    model: Arc<Mutex<Option<Model>>>,
    attention: Chosen,
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("attention", &self.attention).finish_non_exhaustive()
    }
}

/// The tokens of rows, in main memory; their last hidden states `[n, d]`; and the logits of each task that was asked for.
type Said = (Tokens, Tensor, Vec<Tensor>);

impl Kernels {
    pub(super) fn new(attention: &Chosen) -> Self {
        Kernels { model: Arc::default(), attention: attention.clone() }
    }
}

impl Predictor {
    /// What the model says of rows, f32 throughout; none on another device, which composes operations.
    ///
    /// # Errors
    /// When a row does not fit the encoder, there is no such task, or memory is lacking.
    pub(super) fn by_kernels(
        &self,
        names: &str,
        rows: &Rows,
        tasks: &[usize],
    ) -> Result<Option<Said>, Error> {
        if !self.device.is_cuda() {
            return Ok(None);
        }
        let tokens = Tokens::new(&[(names, rows)], &self.config, &Device::Cpu)?;
        let mut model = self.kernels.model.lock().unwrap_or_else(PoisonError::into_inner);
        let model = match &mut *model {
            Some(model) => model,
            none => none.insert(self.model()?),
        };
        let (x_nd, logits) = model.answer(&tokens, tasks, self.gates())?;
        Ok(Some((tokens, x_nd, logits)))
    }

    fn model(&self) -> Result<Model, Error> {
        let of = Of {
            config: &self.config,
            outline: self.outline(),
            attention: &self.kernels.attention,
            params: &self.params,
            gates: None,
            dtype: ActivationDtype::F32,
            recompute: Recompute::None,
        };
        Model::new(cuda::device(&self.device)?, of, &HeadMask::new(None, SoftOn::Step), None)
    }
}
