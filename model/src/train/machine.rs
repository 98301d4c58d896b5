//! What computes the steps of a training: the tensor library's operations, or a tape of kernels on CUDA.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::coverage::Coverage;
use super::ranks::Ranks;
use super::record::{Records, StepRecord};
use crate::Error;
use crate::optim::moments::Moments;
use crate::output::Batch;

/// A step that is asked for.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// Its number, from 1.
    pub(super) step: u64,
    /// The epoch as the caller counts.
    pub(super) epoch: u64,
    /// The batches of each micro-batch, at most one of each task, all with an alpha above 0; of a rank among others there may be none.
    pub(super) micro: Vec<Vec<&'a Batch>>,
}

/// How long to wait for a step that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Not at all.
    No,
    /// If no other step could begin before it is done.
    ForRoom,
    /// Until it is done.
    ForAll,
}

/// Makes steps over the parameters of a training, one after the other, and may tell of each one later.
///
/// The numbers of a step are those of its batches, of the parameters and of what steps before have left, whatever machine computes it and whenever it is asked
/// how a step has ended; two machines differ by rounding.
pub(super) trait Machine: Debug + Send {
    /// Begins a step.
    ///
    /// # Errors
    /// When a batch does not fit, or the device has no room for it: nothing has then moved. Of a machine whose steps are done when they have begun, also
    /// what [`Machine::landed`] says.
    fn begin(&mut self, job: &Job<'_>, coverage: &mut Coverage) -> Result<(), Error>;

    /// How the oldest step has ended of which that was not told; none where there is none, or it is still under way.
    ///
    /// # Errors
    /// When a loss or a gradient was not finite, or, once every task has had a batch, a parameter has had no gradient.
    fn landed(&mut self, wait: Wait, coverage: &mut Coverage) -> Result<Option<StepRecord>, Error>;

    /// Whether every step that has begun was told of.
    fn is_idle(&self) -> bool;

    /// Loss and accuracy of each batch without dropout and without an update.
    ///
    /// # Errors
    /// When a batch does not fit.
    fn evaluate(&self, step: u64, batches: &[&Batch]) -> Result<Records, Error>;

    /// From now on it is one rank among others.
    ///
    /// # Errors
    /// When it makes no steps with others.
    fn join(&mut self, ranks: &Ranks) -> Result<(), Error>;

    /// Updates begun so far.
    fn updates(&self) -> u64;

    /// What the optimiser remembers of every parameter that is trained.
    ///
    /// # Errors
    /// When it cannot be read.
    fn moments(&self) -> Result<BTreeMap<String, Moments>, Error>;

    /// Goes on after so many updates with such moments.
    ///
    /// # Errors
    /// When they cannot be written.
    fn restore(&mut self, moments: BTreeMap<String, Moments>, updates: u64) -> Result<(), Error>;

    /// Parameters have been given other numbers than the last step left.
    ///
    /// # Errors
    /// When they cannot be read.
    fn weights_were_set(&mut self) -> Result<(), Error>;

    /// Bytes of a GPU that activations and their gradients took in the last step or evaluation; none of a machine that does not count them.
    fn activation_bytes(&self) -> Option<usize> {
        None
    }

    /// The parts of a machine that composes operations.
    #[cfg(test)]
    fn composed(&self) -> Option<&super::composed::Composed> {
        None
    }

    /// The same to be changed.
    #[cfg(test)]
    fn composed_mut(&mut self) -> Option<&mut super::composed::Composed> {
        None
    }
}
