//! Where the columns of a triple stand in a row, and what the row tells of them besides their tokens.

use batch::family::Family;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::sample::Slot;
pub use crate::shard::index::Limits;

/// How the columns of a triple form a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct Layout {
    /// Whether columns are concatenated, or each padded to its limit.
    ///
    /// Source: KG-BERT, `run_bert_triple_classifier.py`; KIMERA, section 2.2, has a single input sequence with separators and pads
    /// "accordingly" (3.1).
    pub form: Form,
    /// Segment ids of the columns.
    ///
    /// Source: KIMERA, section 2.2: a single input sequence.
    pub token_types: TokenTypes,
    /// How many mask tokens stand for an entity to be predicted.
    ///
    /// Source: KIMERA, section 2.2: all tokens of the entity are masked and predicted, which leaves padding out.
    pub blanks: Blanks,
    /// Maximum tokens per column; truncations are counted.
    pub limits: Limits,
}

/// Whether columns follow one another or have fixed places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `[CLS] subject [SEP] relation [SEP] object [SEP]`, concatenated without gaps.
    #[default]
    Packed,
    /// The same with each column padded to its limit: 2 node + edge + 4 positions (RoBERTa: 6), whatever the triple.
    Slotted,
}

/// What the token types tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenTypes {
    /// All are 0, as in a single sequence.
    #[default]
    Zero,
    /// 0 / 1 / 0: the relation and the separator after it are 1 (KG-BERT).
    ByColumn,
}

/// How many blanks stand for an entity that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blanks {
    /// As many as the entity has tokens, which gives its length away.
    #[default]
    TrueLength,
    /// As many as its slot has positions, so that the length is not leaked; padding is then predicted too. Needs `form = "slotted"`.
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

    /// Positions of the longest row: three columns and the special tokens around them.
    #[must_use]
    pub fn longest(&self, family: Family) -> usize {
        Slot::ALL.map(|slot| self.width(slot)).iter().sum::<usize>() + family.special_tokens(3)
    }

    /// Whether the columns of such a layout can be told to an encoder of this family.
    ///
    /// # Errors
    /// When they are to have segments and it knows one alone.
    pub fn fits(&self, family: Family) -> Result<(), Error> {
        match (self.token_types, family) {
            (TokenTypes::ByColumn, Family::Roberta) => Err(Error::unfit(
                "token_types is \"by_column\", but RoBERTa has one segment: set it to \"zero\"",
            )),
            _ => Ok(()),
        }
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
        assert_eq!((layout.longest(Family::Bert), layout.longest(Family::Roberta)), (214, 216));
        let error = layout.fits(Family::Roberta).unwrap_err().to_string();
        assert!(layout.fits(Family::Bert).is_ok() && error.contains("one segment"), "{error}");
        layout.check().unwrap();
        let error = Layout { form: Form::Packed, ..layout }.check().unwrap_err().to_string();
        assert!(error.contains("set form to \"slotted\""), "{error}");
        Layout { blanks: Blanks::TrueLength, form: Form::Packed, ..layout }.check().unwrap();
        assert!(serde_json::from_str::<Layout>(&json.replace("blanks", "blank")).is_err());
    }
}
