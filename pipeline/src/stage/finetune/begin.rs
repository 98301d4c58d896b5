//! What fine-tunings begin with: the encoder that the config trained last, or one that it names.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::stage::encoder::Base;

/// An encoder that fine-tunings may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum From {
    /// The one trained by `[retrain]`.
    Retrain,
    /// The one trained by `[pretrain]`.
    Pretrain,
    /// The one trained by `[align]`.
    Align,
    /// `[encoder]` as is.
    Encoder,
}

/// The encoders that a config has.
#[derive(Debug, Clone)]
pub(crate) struct Bases {
    /// That of `[encoder]`.
    pub encoder: Base,
    /// What was pretrained, if anything was.
    pub pretrain: Option<Base>,
    /// What was retrained, if anything was.
    pub retrain: Option<Base>,
    /// What was aligned, if anything was.
    pub align: Option<Base>,
}

impl Bases {
    /// Before anything is trained.
    pub(crate) fn of_encoder(encoder: Base) -> Self {
        Self { encoder, pretrain: None, retrain: None, align: None }
    }

    /// The one that `from` names, the value of `key`; without it what was trained last.
    ///
    /// # Errors
    /// When the config does not make it.
    pub(crate) fn of(self, key: &str, from: Option<From>) -> anyhow::Result<Base> {
        let Self { encoder, pretrain, retrain, align } = self;
        let made = |base: Option<Base>, table: &str| {
            base.with_context(|| {
                format!("{key} is {table:?}, but the config has no table [{table}]: add it, or leave {key} out for what was trained last")
            })
        };
        match from {
            None => Ok(align.or(retrain).or(pretrain).unwrap_or(encoder)),
            Some(From::Align) => made(align, "align"),
            Some(From::Retrain) => made(retrain, "retrain"),
            Some(From::Pretrain) => made(pretrain, "pretrain"),
            Some(From::Encoder) => Ok(encoder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_01_what_was_trained_last_comes_first() {
        let stage = |name: &str| Base::Stage(name.to_owned());
        let bases = |pretrain: bool, retrain: bool| Bases {
            encoder: stage("encoder"),
            pretrain: pretrain.then(|| stage("pretrain")),
            retrain: retrain.then(|| stage("retrain")),
            align: None,
        };
        let of = |pretrain, retrain, from| {
            bases(pretrain, retrain).of("finetune.from", from).map(|base| base.name())
        };
        assert_eq!(of(true, true, None).unwrap(), "retrain");
        assert_eq!(of(false, true, None).unwrap(), "retrain");
        assert_eq!(of(true, false, None).unwrap(), "pretrain");
        assert_eq!(of(false, false, None).unwrap(), "encoder");
        assert_eq!(of(true, true, Some(From::Pretrain)).unwrap(), "pretrain");
        assert_eq!(of(true, true, Some(From::Encoder)).unwrap(), "encoder");
        let aligned = Bases { align: Some(stage("align")), ..bases(true, true) };
        assert_eq!(aligned.clone().of("finetune.from", None).unwrap().name(), "align");
        assert_eq!(aligned.of("finetune.from", Some(From::Retrain)).unwrap().name(), "retrain");
        assert!(of(true, true, Some(From::Align)).unwrap_err().to_string().contains("no table [align]"));
        let error = of(true, false, Some(From::Retrain)).unwrap_err().to_string();
        assert!(
            error.contains("finetune.from is \"retrain\"") && error.contains("no table [retrain]"),
            "{error}"
        );
    }
}
