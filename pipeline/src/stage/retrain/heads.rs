//! What a head mask does to a training, as a config says it.

use anyhow::Context as _;
use model::head::mask::Mask;
use model::optim::head_mask::SoftOn;
use model::train::heads::{Heads, Mode, Shared};
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::Input;
use crate::stage::location::{Location, Place, Places};

/// The file of a mask within the artifact of a stage that searches one.
pub(crate) const MASK: &str = "mask.json";

/// The heads' part of a training's config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// A head mask (docs/formats.md) of the encoder's shape; for `hard`, `soft` and `forward` only.
    #[serde(skip_serializing)]
    pub mask: Option<Location>,
    /// How the mask is applied.
    pub mode: Mode,
    /// Whether to train parameters that belong to no head (embeddings, norms, feed-forward layers, pooler); task heads are always trained.
    ///
    /// Source: KIMERA, equation 3, which is about heads alone.
    #[serde(default)]
    pub shared: Shared,
    /// What a soft mask scales.
    ///
    /// Source: ours: KIMERA's equation 3 scales the gradient, which has next to no effect with Adam.
    #[serde(default)]
    pub soft_on: SoftOn,
}

/// Where a mask comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file of the user's.
    File(Place),
    /// The artifact of a stage that searched it.
    Stage(String),
}

impl Config {
    /// Where the mask is, if the mode uses one; `table` is that of the training.
    ///
    /// # Errors
    /// When the mode needs a mask and there is none, or the other way round.
    pub(crate) fn source(&self, table: &str, places: &Places<'_>) -> anyhow::Result<Option<Source>> {
        let mode = self.mode.name();
        anyhow::ensure!(
            self.mask.is_some() || !self.mode.needs_mask(),
            "{table}.heads.mode = \"{mode}\" needs a head mask: name its file in {table}.heads.mask, or use the mode none"
        );
        anyhow::ensure!(
            self.mask.is_none() || self.mode.needs_mask(),
            "{table}.heads.mode = \"{mode}\" uses no head mask: leave {table}.heads.mask out, or use the mode hard, soft or forward"
        );
        let key = format!("{table}.heads.mask");
        let place = self.mask.as_ref().map(|mask| mask.place(&key, places)).transpose()?;
        Ok(place.map(Source::File))
    }
}

impl Source {
    /// The input that a stage declares.
    #[must_use]
    pub(crate) fn input(&self) -> Input {
        match self {
            Source::File(place) => place.input(),
            Source::Stage(name) => Input::artifact(name),
        }
    }

    /// Describes which it is, as far as its contents do not say it.
    pub(crate) fn describe(&self, to: &mut dyn Describe) {
        if let Source::File(place) = self {
            place.describe(to);
        }
    }

    /// The mask.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self, context: &Context) -> anyhow::Result<Mask> {
        match self {
            Source::File(place) => Mask::read(&place.path(context)?)
                .with_context(|| format!("the head mask of {}", place.label())),
            Source::Stage(name) => Ok(Mask::read(&context.artifact(name)?.join(MASK))?),
        }
    }
}

/// What the trainer is to do with a mask.
#[must_use]
pub(in crate::stage) fn heads(config: Option<&Config>) -> Heads {
    config.map_or(Heads::OPEN, |config| {
        let Config { mode, shared, soft_on, .. } = *config;
        Heads { mode, shared, soft_on }
    })
}
