//! Rows of a table that are no longer valid: left out and counted, kept, or refused until somebody says which.

use std::io::BufRead;

use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::separated::{Column, NoRow, OTHER_COLUMN, OTHER_LAYOUT, Record, Records};

/// What to do with rows that are not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inactive {
    /// They are dropped and counted.
    Drop,
    /// They are read like any other row.
    Keep,
}

/// Rows that are no longer valid.
pub(in crate::source) const INACTIVE: &str = "inactive";

/// What becomes of inactive rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Rule {
    Drop,
    Keep,
    /// Nobody said what becomes of them.
    Refuse,
}

impl Rule {
    pub(in crate::source) fn new(named: Option<&impl Sized>, inactive: Option<Inactive>) -> Self {
        match (inactive, named) {
            (Some(Inactive::Keep), _) => Rule::Keep,
            (Some(Inactive::Drop), _) | (None, Some(_)) => Rule::Drop,
            (None, None) => Rule::Refuse,
        }
    }
}

/// What is expected of a row that is not active where nobody said what becomes of such rows.
pub(in crate::source) const ACTIVE_ROWS: &str =
    "1: nothing says whether inactive rows are left out (inactive = \"drop\") or read (\"keep\")";
/// Names that a column has which says whether rows are active.
pub(in crate::source) const ACTIVE: [&str; 3] = ["active", "Active", "ACTIVE"];

/// The column that says whether a row is active, if there is one.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct Activity {
    column: Option<usize>,
    rule: Rule,
    blank: Blank,
}

/// What a row means whose column is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Blank {
    /// That the row is damaged.
    Nothing,
    /// That it is active: where a property that is not set is left empty.
    Active,
}

impl Activity {
    pub(in crate::source) fn new<R: BufRead>(
        records: &mut Records<'_, R>,
        named: Option<&Column>,
        inactive: Option<Inactive>,
    ) -> Result<Self, ReadError> {
        let rule = Rule::new(named, inactive);
        let column = match (named, records.optional(&ACTIVE)) {
            (Some(column), _) => Some(records.column(column, "active")?),
            // Said to be left out, but by which column?
            (None, None) if rule == Rule::Drop => {
                Some(records.column(&Column::Name(ACTIVE[0].to_owned()), "active")?)
            }
            (None, found) => found,
        };
        Ok(Self { column, rule, blank: Blank::Nothing })
    }

    /// The same, of rows that need not say anything of it.
    pub(in crate::source) fn sparse(self) -> Self {
        Self { blank: Blank::Active, ..self }
    }

    /// That of a property, whose place is known and which not every row has.
    pub(in crate::source) fn of_property(column: Option<usize>, rule: Rule) -> Self {
        Self { column, rule, blank: Blank::Active }
    }

    /// Where it stands, if it is looked at.
    pub(in crate::source) fn column(self) -> Option<usize> {
        self.column
    }

    /// Whether the row is left out.
    pub(in crate::source) fn leaves_out(self, record: &Record<'_>) -> Result<bool, NoRow> {
        let Some(column) = self.column.filter(|_| self.rule != Rule::Keep) else { return Ok(false) };
        let text = record.field(column).trim();
        let wrong = |expected, remedy| {
            ReadError::text(record.place(Some((column, "active"))), text, expected, remedy)
        };
        if text.is_empty() && self.blank == Blank::Active {
            return Ok(false);
        }
        match (is_active(text), self.rule) {
            (Some(true), _) | (None, Rule::Refuse) => Ok(false),
            (Some(false), Rule::Refuse) => Err(NoRow::End(wrong(ACTIVE_ROWS, OTHER_LAYOUT))),
            (Some(false), _) => Ok(true),
            (None, _) => Err(NoRow::Unfit(wrong("1 or 0", OTHER_COLUMN))),
        }
    }
}

/// What a field says about its row, if it says such things.
pub(in crate::source) fn is_active(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "1.0" | "true" | "t" | "yes" | "y" | "active" => Some(true),
        "0" | "0.0" | "false" | "f" | "no" | "n" | "inactive" => Some(false),
        _ => None,
    }
}
