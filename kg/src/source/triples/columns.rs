//! Where the columns of a table of triples are, and what its rows hold.

use std::io::BufRead;

use base::read::ReadError;

use super::fit::{NO_NAMES, NO_QUOTES, TRIPLE, is_header};
use super::layout::Layout;
use super::row::{Role, Row, Wrong, finite};
use crate::source::active::Activity;
use crate::source::separated::{Column, FirstLine, NoRow, OTHER_COLUMN, OTHER_LAYOUT, Record, Records};

/// The place of labels in a part of an official split.
const LABEL: usize = 3;

/// What to do about a part that is no part of an official split.
const AS_TABLE: &str = "fix the line, or read the file as a `table` whose columns the config names";

/// Where a table says whether its rows are facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Nowhere: all are.
    None,
    /// In the fourth column of four; of three, all are.
    Fourth,
}

/// Where the columns of a table of text are.
pub(super) struct Places {
    ids: [usize; 3],
    weight: Option<usize>,
    label: Label,
    first_line: FirstLine,
    pub(super) active: Activity,
}

impl Places {
    pub(super) fn new<R: BufRead>(layout: &Layout, records: &mut Records<'_, R>) -> Result<Self, ReadError> {
        Self::told(layout, records, |role| format!("{role} (`layout.columns.{role}`)"))
    }

    /// As [`Places::new`], the roles of columns called so.
    fn told<R: BufRead>(
        layout: &Layout,
        records: &mut Records<'_, R>,
        called: impl Fn(&str) -> String,
    ) -> Result<Self, ReadError> {
        let columns = &layout.columns;
        let mut place = |column: &Column, role: Role| records.column(column, &called(role.name()));
        let ids = [
            place(&columns.subject, Role::Subject)?,
            place(&columns.relation, Role::Relation)?,
            place(&columns.object, Role::Object)?,
        ];
        let weight = columns.weight.as_ref().map(|column| place(column, Role::Weight)).transpose()?;
        let active = Activity::new(records, columns.active.as_ref(), layout.inactive)?;
        Ok(Self { ids, weight, label: Label::None, first_line: layout.first_line, active })
    }

    /// Those of a part of an official split: three columns, and a label perhaps.
    pub(super) fn of_part<R: BufRead>(records: &mut Records<'_, R>) -> Result<Self, ReadError> {
        Ok(Self { label: Label::Fourth, ..Self::told(&Layout::three(), records, str::to_owned)? })
    }

    /// The columns that are read.
    pub(super) fn used(&self) -> Vec<usize> {
        let label = (self.label == Label::Fourth).then_some(LABEL);
        self.ids.into_iter().chain(self.weight).chain(label).chain(self.active.column()).collect()
    }

    /// What a row holds.
    pub(super) fn row<'a>(&self, record: &Record<'a>) -> Result<Row<'a>, NoRow> {
        let weight = self.weight.map(|column| record.field(column).trim()).filter(|text| !text.is_empty());
        let weight = weight.map(|text| finite(text).ok_or(text)).transpose().map_err(|text| {
            self.wrong(record, &Wrong::new(Role::Weight, text, "a finite number, or nothing"))
        })?;
        let [subject, relation, object] = self.ids.map(|column| record.field(column));
        Ok(Row { subject, relation, object, weight })
    }

    /// Whether a row is published as a negative.
    pub(super) fn is_negative(&self, record: &Record<'_>) -> Result<bool, ReadError> {
        match (self.label, record.width()) {
            (Label::None, _) | (Label::Fourth, 3) => Ok(false),
            (Label::Fourth, 4) => match record.field(LABEL).trim() {
                "1" => Ok(false),
                "-1" => Ok(true),
                found => {
                    let expected = "1 (a fact) or -1 (published as a negative)";
                    Err(ReadError::text(record.place(Some((LABEL, "label"))), found, expected, AS_TABLE))
                }
            },
            (Label::Fourth, found) => {
                let expected = "3 (subject, relation, object), or 4 of which the last is a label, 1 or -1";
                Err(ReadError::new(record.place(None), format!("{found} columns"), expected, AS_TABLE))
            }
        }
    }

    /// A field of a row that is not what its column holds.
    pub(super) fn wrong(&self, record: &Record<'_>, wrong: &Wrong) -> NoRow {
        let place = record.place(Some((self.of(wrong.role), wrong.role.name())));
        NoRow::Unfit(ReadError::text(place, &wrong.found, &wrong.expected, OTHER_COLUMN))
    }

    /// Refuses a first row of names where a row is expected.
    pub(super) fn look_at_first(&self, record: &Record<'_>) -> Result<(), ReadError> {
        if self.first_line.has_names() {
            return Ok(());
        }
        let fields = self.ids.map(|column| record.field(column));
        if is_header(&fields, &TRIPLE) {
            return Err(ReadError::text(record.place(None), &fields.join(" "), NO_NAMES, OTHER_LAYOUT));
        }
        Ok(())
    }

    /// Refuses a row whose ids are quoted though the layout does not say what quotes are.
    pub(super) fn look(&self, record: &Record<'_>) -> Result<(), ReadError> {
        let roles = [Role::Subject, Role::Relation, Role::Object];
        match self.ids.into_iter().zip(roles).find(|(column, _)| record.is_wrapped(*column)) {
            Some((column, role)) => {
                let place = record.place(Some((column, role.name())));
                Err(ReadError::text(place, record.field(column), NO_QUOTES, OTHER_LAYOUT))
            }
            None => Ok(()),
        }
    }

    /// The column (from 0) that is read as `role`.
    fn of(&self, role: Role) -> usize {
        let [subject, relation, object] = self.ids;
        match role {
            Role::Subject => subject,
            Role::Relation => relation,
            Role::Object => object,
            Role::Weight | Role::Active => self.weight.unwrap_or_default(),
        }
    }
}
