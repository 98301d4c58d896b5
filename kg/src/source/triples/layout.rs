//! How files of triples and of texts are laid out: separator, quotes, first line, columns.

use serde::{Deserialize, Serialize};

use crate::source::separated::{Column, FirstLine, Quotes, Separator, Shape};

/// The columns that are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Of what it is said.
    pub subject: Column,
    /// What is said.
    pub relation: Column,
    /// With respect to what.
    pub object: Column,
    /// How strongly, a number; an empty field has none.
    pub weight: Option<Column>,
    /// Whether the row is valid still, 1 or 0.
    pub active: Option<Column>,
}

impl Columns {
    /// Subject, relation, object: the first three.
    #[must_use]
    pub fn first_three() -> Self {
        let [subject, relation, object] = [1, 2, 3].map(Column::Position);
        Self { subject, relation, object, weight: None, active: None }
    }
}

/// What becomes of rows that are not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inactive {
    /// They are left out and counted.
    Drop,
    /// They are read like all others.
    Keep,
}

/// How a table of text is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// What separates columns.
    pub separator: Separator,
    /// What double quotes around a field are; without it [`Quotes::Double`] for commas and semicolons. Fields between tabs or pipes that
    /// are wrapped in quotes are then refused.
    pub quotes: Option<Quotes>,
    /// What the first line is.
    pub first_line: FirstLine,
    /// The columns.
    pub columns: Columns,
    /// What becomes of rows that are not active: without it they are left out if `columns` names the column, and refused if not.
    pub inactive: Option<Inactive>,
}

impl Layout {
    /// Three columns between tabs, without names.
    #[must_use]
    pub fn three() -> Self {
        let (separator, first_line, columns) = (Separator::Tab, FirstLine::Row, Columns::first_three());
        Self { separator, quotes: None, first_line, columns, inactive: None }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { separator: self.separator, quotes: self.quotes, first_line: self.first_line }
    }
}

/// The columns of a file of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextColumns {
    /// What is named.
    pub id: Column,
    /// Its name.
    pub text: Column,
    /// Whether the row is valid still, 1 or 0.
    pub active: Option<Column>,
}

/// How a file of texts is laid out; the fields are as those of [`Layout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextLayout {
    /// What separates columns.
    pub separator: Separator,
    /// What double quotes around a field are.
    pub quotes: Option<Quotes>,
    /// What the first line is.
    pub first_line: FirstLine,
    /// The columns.
    pub columns: TextColumns,
    /// What becomes of rows that are not active.
    pub inactive: Option<Inactive>,
}

impl TextLayout {
    pub(super) fn shape(&self) -> Shape {
        Shape { separator: self.separator, quotes: self.quotes, first_line: self.first_line }
    }
}
