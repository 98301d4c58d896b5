//! What is looked for in documents.

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

use super::super::approximate::Near;
use super::super::filters::Filters;

/// Which names are found in texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Which names are looked for, and in which spellings.
    pub dictionary: Filters,
    /// Names that are written nearly so; left out, none are.
    ///
    /// Source: none: what is written as no source writes it is a guess, which is to be asked for.
    pub near: Option<Near>,
    /// Whether abbreviations that a document defines (`chronic obstructive pulmonary disease (COPD)`) mean there what they are defined as.
    ///
    /// Source: ours: because no dictionary has them all, and many have several meanings.
    pub abbreviations: Abbreviations,
    /// Maximum entities that a mention lists, from 1, the most likely first.
    ///
    /// Source: ours.
    pub candidates: usize,
}

/// What becomes of abbreviations that a document defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Abbreviations {
    /// They mean throughout the document what they are defined as, by the rules of Schwartz and Hearst (2003), if that is a name; others are looked up like any word.
    #[default]
    Defined,
    /// They are words like any other.
    Plain,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dictionary: Filters::default(),
            near: None,
            abbreviations: Abbreviations::default(),
            candidates: 10,
        }
    }
}

impl Settings {
    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        self.dictionary.check().map_err(|error| error.of("dictionary"))?;
        if let Some(near) = &self.near {
            near.check().map_err(|error| error.of("near"))?;
        }
        if self.candidates == 0 {
            return Err(InvalidSetting::new("candidates", self.candidates, "1 or more"));
        }
        Ok(())
    }
}
