//! Where the columns of a table of triples are.

use std::io::BufRead;

use super::fit::{Activity, NO_NAMES, NO_QUOTES, TRIPLE, is_header};
use super::layout::Layout;
use super::row::Role;
use super::{Error, start};
use crate::source::separated::{Column, Record, Records};

/// Where the columns of a table of text are.
pub(super) struct Places {
    pub(super) ids: [usize; 3],
    pub(super) weight: Option<usize>,
    pub(super) active: Activity,
}

impl Places {
    pub(super) fn new<R: BufRead>(layout: &Layout, records: &mut Records<'_, R>) -> Result<Self, Error> {
        let columns = &layout.columns;
        let mut place = |column: &Column, role: Role| records.column(column, role.name());
        let ids = [
            place(&columns.subject, Role::Subject)?,
            place(&columns.relation, Role::Relation)?,
            place(&columns.object, Role::Object)?,
        ];
        let weight = columns.weight.as_ref().map(|column| place(column, Role::Weight)).transpose()?;
        let active = Activity::new(records, columns.active.as_ref(), layout.inactive)?;
        Ok(Self { ids, weight, active })
    }

    /// Refuses a first row of names where a row is expected.
    pub(super) fn look_at_first(&self, record: &Record<'_>) -> Result<(), Error> {
        let fields = self.ids.map(|column| record.field(column));
        if is_header(&fields, &TRIPLE) {
            let (place, found) = (record.place(None), start(&fields.join(" ")));
            return Err(Error::Laid { place, found, expected: NO_NAMES });
        }
        Ok(())
    }

    /// Refuses a row whose ids are quoted though the layout does not say what quotes are.
    pub(super) fn look(&self, record: &Record<'_>) -> Result<(), Error> {
        let roles = [Role::Subject, Role::Relation, Role::Object];
        match self.ids.into_iter().zip(roles).find(|(column, _)| record.is_wrapped(*column)) {
            Some((column, role)) => Err(Error::Laid {
                place: record.place(Some((column, role.name()))),
                found: start(record.field(column)),
                expected: NO_QUOTES,
            }),
            None => Ok(()),
        }
    }

    /// The column (from 0) that is read as `role`.
    pub(super) fn of(&self, role: Role) -> usize {
        let [subject, relation, object] = self.ids;
        match role {
            Role::Subject => subject,
            Role::Relation => relation,
            Role::Object => object,
            Role::Weight | Role::Active => self.weight.unwrap_or_default(),
        }
    }
}
