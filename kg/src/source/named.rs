//! Tables whose first line names the columns, between tabs and without quoting, as terminologies are released: the columns that are asked for, row by row.

use std::io::BufReader;

use base::funnel::Tally;
use base::read::ReadError;

use super::files::{Reopened, unopened};
use super::separated::{Column, Quotes, Record, Records, Shape};

/// What to do about a value that is none.
const REMEDY: &str = "fetch the file again";

/// A row in the columns that are read, in the order in which they were asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'r, 'a> {
    record: &'r Record<'a>,
    columns: &'r [(&'static str, usize)],
}

impl Row<'_, '_> {
    /// A value, perhaps empty.
    pub(super) fn field(&self, at: usize) -> &str {
        self.columns.get(at).map_or("", |(_, column)| self.record.field(*column).trim())
    }

    /// A value that must be there.
    pub(super) fn text(&self, at: usize) -> Result<&str, ReadError> {
        Some(self.field(at)).filter(|text| !text.is_empty()).ok_or_else(|| self.wrong(at, "a value"))
    }

    /// The error that a value is not as `expected`.
    pub(super) fn wrong(&self, at: usize, expected: &str) -> ReadError {
        let column = self.columns.get(at).map(|&(name, column)| (column, name));
        ReadError::text(self.record.place(column), self.field(at), expected, REMEDY)
    }

    /// The error that the row is not one.
    pub(super) fn refused(&self, found: String, expected: &str) -> ReadError {
        ReadError::new(self.record.place(None), found, expected, REMEDY)
    }

    /// The line that it stands in.
    pub(super) fn line(&self) -> u64 {
        self.record.place(None).line
    }
}

/// Hands on each row of a file, and says how many lines and bytes it has and which columns are not used.
///
/// # Errors
/// When a column is missing, a row has another width than the first line, or `take` fails.
pub(super) fn each(
    file: &Reopened<'_>,
    columns: &[&'static str],
    mut take: impl FnMut(&Row<'_, '_>) -> Result<(), ReadError>,
) -> Result<Tally, ReadError> {
    let opened = (file.open)().map_err(|error| unopened(&file.label, &error))?;
    let shape = Shape { quotes: Some(Quotes::None), ..Shape::TABS };
    let mut records = Records::new(BufReader::new(opened), &file.label, shape)?;
    let mut places = Vec::with_capacity(columns.len());
    for name in columns {
        places.push((*name, records.column(&Column::Name((*name).to_owned()), name)?));
    }
    while let Some(record) = records.next_record()? {
        take(&Row { record: &record, columns: &places })?;
    }
    let mut tally = Tally::new(&file.label, &[]);
    records.account(&mut tally);
    let used: Vec<usize> = places.iter().map(|(_, place)| *place).collect();
    tally.columns_not_used = records.unused(&used);
    Ok(tally)
}
