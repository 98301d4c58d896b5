//! Inactive rows and names of columns that stand where a row should: seen in all files of a source alike.

use std::io::BufRead;

use base::read::ReadError;

use super::layout::Inactive;
use super::{OTHER_COLUMN, OTHER_LAYOUT};
use crate::source::separated::{Column, NoRow, Record, Records};

/// Rows that are valid no more.
pub(super) const INACTIVE: &str = "inactive";

/// What becomes of inactive rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Drop,
    Keep,
    /// Nobody said what becomes of them.
    Refuse,
}

impl Rule {
    pub(super) fn new(named: Option<&impl Sized>, inactive: Option<Inactive>) -> Self {
        match (inactive, named) {
            (Some(Inactive::Keep), _) => Rule::Keep,
            (Some(Inactive::Drop), _) | (None, Some(_)) => Rule::Drop,
            (None, None) => Rule::Refuse,
        }
    }
}

/// What is expected of a row that is not active where nobody said what becomes of such rows.
pub(super) const ACTIVE_ROWS: &str =
    "1: nothing says whether inactive rows are left out (inactive = \"drop\") or read (\"keep\")";
/// What is expected of a field whose quotes may only wrap it.
pub(super) const NO_QUOTES: &str = "no quotes around it: nothing says whether they only wrap it (quotes = \"double\") or belong to it (\"none\")";
/// What is expected of a first row that looks like names of columns.
pub(super) const NO_NAMES: &str = "a row and no names of columns (first_line = \"names\")";
/// What is expected of a file of texts of which no layout is given.
pub(super) const TWO_COLUMNS: &str = "an id, a tab and a text: nothing says which columns are meant \
    ({ path = \"...\", layout = { separator = \"tab\", first_line = \"row\", columns = { id = 1, text = 2 } } })";

/// Names that a column has which says whether rows are active.
pub(super) const ACTIVE: [&str; 3] = ["active", "Active", "ACTIVE"];

/// The column that says whether a row is active, if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activity {
    column: Option<usize>,
    rule: Rule,
}

impl Activity {
    pub(super) fn new<R: BufRead>(
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
        Ok(Self { column, rule })
    }

    /// Where it stands, if it is looked at.
    pub(super) fn column(self) -> Option<usize> {
        self.column
    }

    /// Whether the row is left out.
    pub(super) fn leaves_out(self, record: &Record<'_>) -> Result<bool, NoRow> {
        let Some(column) = self.column.filter(|_| self.rule != Rule::Keep) else { return Ok(false) };
        let text = record.field(column).trim();
        let wrong = |expected, remedy| {
            ReadError::text(record.place(Some((column, "active"))), text, expected, remedy)
        };
        match (is_active(text), self.rule) {
            (Some(true), _) | (None, Rule::Refuse) => Ok(false),
            (Some(false), Rule::Refuse) => Err(NoRow::End(wrong(ACTIVE_ROWS, OTHER_LAYOUT))),
            (Some(false), _) => Ok(true),
            (None, _) => Err(NoRow::Unfit(wrong("1 or 0", OTHER_COLUMN))),
        }
    }
}

/// What a field says about its row, if it says such things.
pub(super) fn is_active(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "t" | "yes" | "y" | "active" => Some(true),
        "0" | "false" | "f" | "no" | "n" | "inactive" => Some(false),
        _ => None,
    }
}

/// Whether the fields of a first row are names of columns, each one of those that its column is called by.
pub(super) fn is_header(fields: &[&str], called: &[&[&str]]) -> bool {
    fields.iter().zip(called).all(|(field, called)| {
        let field = field.trim().trim_matches('"').to_ascii_lowercase().replace([' ', '-'], "_");
        called.contains(&field.as_str())
    })
}

/// What columns of subjects, relations and objects are called.
pub(super) const TRIPLE: [&[&str]; 3] = [
    &[
        "subject",
        "subject_id",
        "head",
        "head_id",
        "source",
        "source_id",
        "from",
        "start",
        "start_id",
        "node1",
    ],
    &["relation", "relation_id", "predicate", "predicate_id", "rel", "edge", "type", "label", "relationship"],
    &["object", "object_id", "tail", "tail_id", "target", "target_id", "to", "end", "end_id", "node2"],
];

/// What columns of ids and texts are called.
pub(super) const TEXT: [&[&str]; 2] = [
    &[
        "id",
        "ids",
        "code",
        "key",
        "entity",
        "entity_id",
        "node",
        "node_id",
        "concept",
        "concept_id",
        "conceptid",
        "cui",
        "curie",
        "identifier",
        "mesh_id",
        "relation",
        "relation_id",
        "predicate",
    ],
    &[
        "text",
        "name",
        "label",
        "term",
        "title",
        "description",
        "definition",
        "string",
        "preferred_name",
        "preferred_term",
        "preferred_label",
        "entity_name",
        "entity_text",
        "relation_name",
        "relation_text",
        "node_name",
        "mesh_name",
    ],
];
