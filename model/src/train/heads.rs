//! What a head mask does to a training: KIMERA's modes of retraining and their ablations.

use serde::{Deserialize, Serialize};

use crate::head::mask::Mask;
use crate::optim::head_mask::{HeadMask, SoftOn};

/// How the mask is used (KIMERA, section 2.1 and table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Not at all: every parameter is trained.
    None,
    /// Heads with mask value 1 are frozen; all others are trained like any other parameter.
    Hard,
    /// Heads with mask value 1 are frozen; each step of the others is scaled by `1 - m`.
    Soft,
    /// As `hard`, with only the trained heads in the forward pass while training lasts (KIMERA b+f).
    Forward,
    /// Not at all, from random weights of the encoder's sizes.
    Scratch,
}

/// What becomes of the encoder's parameters that belong to no head: embeddings, layer norms, feed-forward layers, the pooler and the
/// bias of the attention's output. The tasks' outputs are always trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shared {
    /// They are trained: what KIMERA's equation 3 says.
    #[default]
    Train,
    /// They are frozen: what KIMERA's text promises of the parts that are kept.
    Freeze,
}

/// What a head mask does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heads {
    /// How it is used.
    pub mode: Mode,
    /// What becomes of parameters that belong to no head.
    pub shared: Shared,
    /// What a soft mask scales.
    pub soft_on: SoftOn,
}

impl Mode {
    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::None => "none",
            Mode::Hard => "hard",
            Mode::Soft => "soft",
            Mode::Forward => "forward",
            Mode::Scratch => "scratch",
        }
    }

    /// Whether there must be a mask.
    #[must_use]
    pub fn needs_mask(self) -> bool {
        matches!(self, Mode::Hard | Mode::Soft | Mode::Forward)
    }
}

impl Heads {
    /// Training without a mask, all parameters.
    pub const OPEN: Heads = Heads { mode: Mode::None, shared: Shared::Train, soft_on: SoftOn::Step };

    /// How updates spare kept heads.
    pub(super) fn over(&self, mask: Option<&Mask>) -> HeadMask {
        let mask = match self.mode {
            Mode::None | Mode::Scratch => None,
            Mode::Hard | Mode::Forward => mask.map(Mask::hard),
            Mode::Soft => mask.cloned(),
        };
        HeadMask::new(mask.as_ref(), self.soft_on)
    }

    /// Gates of the forward pass while training lasts.
    pub(super) fn gates(&self, mask: Option<&Mask>) -> Option<Mask> {
        mask.filter(|_| self.mode == Mode::Forward).map(Mask::forward_gates)
    }
}
