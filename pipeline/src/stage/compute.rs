//! What trainings compute on and in: the device, and the numbers of activations.

use model::Device;
use model::device::{ActivationDtype, Recompute, Wanted};
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};

/// The table `[compute]` of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(crate) struct Compute {
    /// `auto`, `cpu` or `cuda:N`, N from 0. `auto` takes the first CUDA device if this build has CUDA and the driver has one; the ledger records
    /// which and why. Bit-identical results are promised on the CPU only; an artifact made on one kind of device is rebuilt or resumed only on that
    /// kind. Of processes that `torchrun` started on one machine, each takes the device of its `LOCAL_RANK`, counted from the one named here. A CUDA
    /// build starts only where the driver library is installed.
    ///
    /// Source: ours: every machine has one, and results on it are bit-identical.
    pub device: Wanted,
    /// Dtype of activations and matrix products in training; weights, gradients and optimiser state are always f32.
    ///
    /// Source: ours: `bf16` is faster only on hardware that multiplies it.
    pub dtype: ActivationDtype,
    /// What training computes a second time to save memory (activation checkpointing). Not part of any fingerprint: results are bit-identical.
    ///
    /// Source: ours: time is what is short.
    #[serde(skip_serializing)]
    #[schemars(extend("default" = "none"))]
    pub recompute: Recompute,
}

impl Compute {
    /// Refuses what does not go together.
    ///
    /// # Errors
    /// Says what.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.dtype {
            ActivationDtype::Tf32 if self.device.foresee().is_ok_and(|device| device.is_cpu()) => {
                anyhow::bail!(
                    "compute.dtype is tf32, and compute.device comes to the CPU, which has no tensor cores: take f32, or a CUDA device"
                )
            }
            _ => Ok(()),
        }
    }

    /// Refuses a setting that the CPU alone computes, where the device is another.
    ///
    /// # Errors
    /// Names the setting, by `key`, and the device.
    pub(crate) fn on_cpu(&self, key: &str) -> anyhow::Result<()> {
        match self.device.foresee() {
            Ok(device) if !device.is_cpu() => anyhow::bail!(
                "{key} is computed on the CPU alone so far, and compute.device comes to {}: set compute.device = \"cpu\", or leave {key} out",
                device.describe()
            ),
            // A device that cannot be had is said where it is asked for.
            _ => Ok(()),
        }
    }

    /// Describes it.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "compute.dtype", &self.dtype);
        // What a device comes to decides the bits, so that is described, and not the word `auto`.
        match self.device.foresee() {
            Ok(device) => to.field("compute.device", if device.is_cpu() { "cpu" } else { "cuda" }.into()),
            Err(error) => to.unfit("compute.device", error.to_string()),
        }
    }

    /// Which device it comes to, and why.
    pub(crate) fn told(&self) -> String {
        self.device.foresee().map_or_else(|error| error.to_string(), |device| device.describe())
    }

    /// The device, which is left among the facts with the reason why it was taken; and what multiplies factors in bf16 on the CPU. Processes
    /// that were started together have a GPU each.
    ///
    /// # Errors
    /// When a device is asked for by number and cannot be had, or nothing says which GPU is this process's.
    pub(crate) fn device(&self, context: &Context) -> anyhow::Result<Device> {
        let chosen = match context.local_rank() {
            None => self.device.choose()?,
            Some(local) => {
                let chosen = self.device.choose_beside(local.unwrap_or(0))?;
                anyhow::ensure!(
                    local.is_some() || chosen.device.is_cpu(),
                    "several processes train on GPUs, and no variable LOCAL_RANK says which of those of its machine this process has: start all of them with `torchrun --no-python`, or set compute.device = \"cpu\""
                );
                chosen
            }
        };
        context.record("device", chosen.describe());
        let together = context.local_rank().is_some();
        if let Some(facts) = if together { chosen.facts_of_rank()? } else { chosen.facts()? } {
            context.record("gpu", serde_json::json!(facts));
        }
        if self.dtype == ActivationDtype::Bf16 && chosen.device.is_cpu() {
            context.record("bf16_products", model::device::bf16_products());
        }
        Ok(chosen.device)
    }
}
