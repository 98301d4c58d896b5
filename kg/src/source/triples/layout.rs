//! How files of triples and of texts are laid out: separator, quotes, first line, columns.

use serde::{Deserialize, Serialize};

use crate::source::Inactive;
use crate::source::separated::{Column, FirstLine, Quotes, Separator, Shape};

/// The columns that are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Columns {
    /// The column of the subject: a name, or a position from 1.
    ///
    /// Source: ours: the name of the part itself.
    pub subject: Column,
    /// The column of the relation: a name, or a position from 1.
    ///
    /// Source: ours: the name of the part itself.
    pub relation: Column,
    /// The column of the object: a name, or a position from 1.
    ///
    /// Source: ours: the name of the part itself.
    pub object: Column,
    /// The column of a number that says how strongly the triple holds; an empty field has none.
    pub weight: Option<Column>,
    /// The column that says whether a row is still valid: 1 or 0 (or true, false, yes, no).
    pub active: Option<Column>,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            subject: named("subject"),
            relation: named("relation"),
            object: named("object"),
            weight: None,
            active: None,
        }
    }
}

impl Columns {
    /// Subject, relation, object: the first three.
    #[must_use]
    pub fn first_three() -> Self {
        let [subject, relation, object] = [1, 2, 3].map(Column::Position);
        Self { subject, relation, object, weight: None, active: None }
    }
}

/// How a table of text is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// The character between columns.
    ///
    /// Source: ours: a tab is what most triples lie between.
    pub separator: Separator,
    /// What double quotes around a field mean. Default: `double` for commas and semicolons; with tabs and pipes, a quoted field is an
    /// error.
    pub quotes: Option<Quotes>,
    /// Whether the first line has the names of the columns or is a row of data.
    ///
    /// Source: ours: names say which column is what, so nothing is guessed.
    pub first_line: FirstLine,
    /// Which columns are read; any others are reported as `columns_not_used`.
    pub columns: Columns,
    /// What to do with rows whose column `active` is 0 (false, no): drop and count them, or read them like any other. Without it they are
    /// dropped if `columns.active` names the column; otherwise a 0 in a column called `active` is an error.
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
#[serde(deny_unknown_fields, default)]
pub struct TextColumns {
    /// The column of ids of entities or relations: a name, or a position from 1.
    ///
    /// Source: ours: the name of the part itself.
    pub id: Column,
    /// The column of their texts: a name, or a position from 1.
    ///
    /// Source: ours: the name of the part itself.
    pub text: Column,
    /// The column that says whether a row is still valid: 1 or 0 (or true, false, yes, no).
    pub active: Option<Column>,
}

fn named(name: &str) -> Column {
    Column::Name(name.to_owned())
}

impl Default for TextColumns {
    fn default() -> Self {
        Self { id: named("id"), text: named("text"), active: None }
    }
}

/// How a file of texts is laid out, as a table of triples is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TextLayout {
    /// The character between columns.
    ///
    /// Source: ours: a tab is what most triples lie between.
    pub separator: Separator,
    /// What double quotes around a field mean. Default: `double` for commas and semicolons; with tabs and pipes, a quoted field is an
    /// error.
    pub quotes: Option<Quotes>,
    /// Whether the first line has the names of the columns or is a row of data.
    ///
    /// Source: ours: names say which column is what, so nothing is guessed.
    pub first_line: FirstLine,
    /// Which columns are read; any others are reported as `columns_not_used`.
    pub columns: TextColumns,
    /// What to do with rows whose column `active` is 0 (false, no): drop and count them, or read them like any other. Without it they are
    /// dropped if `columns.active` names the column; otherwise a 0 in a column called `active` is an error.
    pub inactive: Option<Inactive>,
}

impl TextLayout {
    pub(super) fn shape(&self) -> Shape {
        Shape { separator: self.separator, quotes: self.quotes, first_line: self.first_line }
    }
}
