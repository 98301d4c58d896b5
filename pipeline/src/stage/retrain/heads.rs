//! What a head mask does to a training, as a config says it. Knows no step.

use anyhow::Context as _;
use model::head::mask::Mask;
use model::optim::head_mask::SoftOn;
use model::train::heads::{Heads, Mode, Shared};
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::stage::location::{Location, Place, Places};

/// The heads' part of a training's config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The mask; only modes that use one have it.
    #[serde(skip_serializing)]
    pub mask: Option<Location>,
    /// How it is used.
    pub mode: Mode,
    /// What becomes of parameters that belong to no head.
    pub shared: Shared,
    /// What a soft mask scales.
    pub soft_on: SoftOn,
}

impl Config {
    /// Where the mask is, if the mode uses one.
    ///
    /// # Errors
    /// When the mode needs a mask and there is none, or the other way round, or a fresh encoder is asked for beside a checkpoint.
    pub fn place(&self, places: &Places<'_>, checkpoint: Option<&Location>) -> anyhow::Result<Option<Place>> {
        let mode = self.mode.name();
        anyhow::ensure!(
            self.mask.is_some() || !self.mode.needs_mask(),
            "retrain.heads.mode = \"{mode}\" needs a head mask: name its file in retrain.heads.mask, or use the mode none"
        );
        anyhow::ensure!(
            self.mask.is_none() || self.mode.needs_mask(),
            "retrain.heads.mode = \"{mode}\" uses no head mask: leave retrain.heads.mask out, or use the mode hard, soft or forward"
        );
        anyhow::ensure!(
            checkpoint.is_none() || self.mode != Mode::Scratch,
            "retrain.heads.mode = \"scratch\" begins with fresh weights: give retrain.encoder.fresh instead of a checkpoint"
        );
        self.mask.as_ref().map(|mask| mask.place("retrain.heads.mask", places)).transpose()
    }
}

/// What the trainer is to do, and the mask that it does it with.
///
/// # Errors
/// When the mask cannot be read.
pub(super) fn read(
    config: Option<&Config>,
    place: Option<&Place>,
    context: &Context,
) -> anyhow::Result<(Heads, Option<Mask>)> {
    let heads = config.map_or(Heads::OPEN, |config| {
        let Config { mode, shared, soft_on, .. } = *config;
        Heads { mode, shared, soft_on }
    });
    let mask = place.map(|place| {
        let path = place.path(context)?;
        Mask::read(&path).with_context(|| "the head mask of retrain.heads.mask".to_owned())
    });
    Ok((heads, mask.transpose()?))
}
