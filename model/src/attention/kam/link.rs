//! The map of one layer on its way to the next one, and its gradient on the way back, beside candle's graph.
//!
//! In the graph, the gradients of queries, of maps and of the layers' inputs would be added to each other one by one, on a single thread. Beside it they
//! meet inside the layers' operations. That is sound because the next layer's operation reads what this layer's gives, and candle goes back through
//! an operation only when it is through with all that read from it:
//!
//! - In a backward pass that reaches both, the next layer puts its gradient once, before this layer takes it, once. Nothing of it is left then: a second
//!   pass through the same graph begins as the first one did, with the map, which stays as long as the operations do.
//! - In one that begins below the next layer there is no gradient: what comes of the map beyond this layer does not count.
//! - If nothing before this layer's contexts needs a gradient, the map needs none either. What the next layer puts then lies here until the graph goes.
//! - If the map needs one, this layer's output does, which is the next layer's input: the next layer computes the gradient of its scores then.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Result;

use crate::nn::buffers::Buffer;

// The locks order nothing: forward and backward passes of one graph run one after the other on one thread, and only candle's operations, which must be Sync,
// ask for them. A poisoned lock holds a whole value, since each is written by one assignment.

/// The map of a layer, `[h, t, t]` of each sample, and its gradient as far as it comes from the next layer.
#[derive(Debug, Default)]
pub(super) struct Link {
    map: Mutex<Option<Arc<[Buffer]>>>,
    gradient: Mutex<Option<Vec<Buffer>>>,
}

impl Link {
    /// Leaves the map, in the forward pass.
    pub(super) fn leave(&self, map: Vec<Buffer>) {
        *self.map.lock().unwrap_or_else(PoisonError::into_inner) = Some(map.into());
    }

    /// The map.
    ///
    /// # Errors
    /// When there has been no forward pass.
    pub(super) fn read(&self) -> Result<Arc<[Buffer]>> {
        let Some(map) = self.map.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
            candle_core::bail!("the map of a layer without its forward pass")
        };
        Ok(map)
    }

    /// Leaves the map's gradient, in the next layer's backward pass.
    pub(super) fn put(&self, gradient: Vec<Buffer>) {
        *self.gradient.lock().unwrap_or_else(PoisonError::into_inner) = Some(gradient);
    }

    /// Takes the map's gradient; `None` if the next layer had nothing to do with it.
    pub(super) fn take(&self) -> Option<Vec<Buffer>> {
        self.gradient.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
