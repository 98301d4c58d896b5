//! Where the columns of a triple stand in a row, and what the row tells of them besides their tokens.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::sample::Slot;
pub use crate::shard::index::Limits;

/// How rows are laid out (MODELS section 1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// Whether columns follow one another or have fixed places.
    pub form: Form,
    /// What the token types tell.
    pub token_types: TokenTypes,
    /// How many blanks stand for an entity.
    pub blanks: Blanks,
    /// Where columns are cut.
    pub limits: Limits,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            form: Form::default(),
            token_types: TokenTypes::default(),
            blanks: Blanks::default(),
            limits: Limits::default(),
        }
    }
}

/// Whether columns follow one another or have fixed places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `[CLS] subject [SEP] relation [SEP] object [SEP]` without gaps.
    #[default]
    Packed,
    /// The same with every column filled with padding to its limit: 2 node + edge + 4 positions, whatever the triple.
    Slotted,
}

/// What the token types tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenTypes {
    /// Nothing: all are 0 (KIMERA: a single sequence).
    #[default]
    Zero,
    /// The relation's slot and the separator after it are 1, all others 0 (KG-BERT's 0/1/0).
    ByColumn,
}

/// How many blanks stand for an entity that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blanks {
    /// One per token: their number tells how long the entity is.
    #[default]
    TrueLength,
    /// One per position of its slot, padding included, which is then a target as well; needs [`Form::Slotted`].
    WholeSlot,
}

impl Layout {
    /// Whether the settings fit together.
    ///
    /// # Errors
    /// When whole slots are to be blanks and there are none.
    pub fn check(&self) -> Result<(), Error> {
        match (self.form, self.blanks) {
            (Form::Packed, Blanks::WholeSlot) => Err(Error::unfit(
                "blanks is \"whole_slot\", but form is \"packed\", where an entity has no slot of a fixed width; set form to \
                 \"slotted\" or blanks to \"true_length\"",
            )),
            _ => Ok(()),
        }
    }

    /// Most tokens of a column.
    #[must_use]
    pub fn width(&self, slot: Slot) -> usize {
        match slot {
            Slot::Subject | Slot::Object => self.limits.node,
            Slot::Relation => self.limits.edge,
        }
    }

    /// Positions of the longest row: three columns, `[CLS]` and three separators.
    #[must_use]
    pub fn longest(&self) -> usize {
        Slot::ALL.map(|slot| self.width(slot) + 1).iter().sum::<usize>() + 1
    }

    /// The token type of a column and of the separator after it.
    pub(super) fn token_type(&self, slot: Slot) -> u32 {
        u32::from(self.token_types == TokenTypes::ByColumn && slot == Slot::Relation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_reads_as_it_is_written_and_whole_slots_need_slots() {
        let json = r#"{"form":"slotted","token_types":"by_column","blanks":"whole_slot","limits":{"node":100,"edge":10}}"#;
        let layout: Layout = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&layout).unwrap(), json);
        assert_eq!(layout.longest(), 214);
        layout.check().unwrap();
        let error = Layout { form: Form::Packed, ..layout }.check().unwrap_err().to_string();
        assert!(error.contains("set form to \"slotted\""), "{error}");
        Layout { blanks: Blanks::TrueLength, form: Form::Packed, ..layout }.check().unwrap();
        assert!(serde_json::from_str::<Layout>(&json.replace("blanks", "blank")).is_err());
    }
}
