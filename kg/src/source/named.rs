//! Tables row by row, in the columns that are asked for; among them those whose first line names the columns, between tabs and without quoting, as
//! terminologies are released.

use std::io::{BufRead, BufReader};
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;
use base::share::Share;

use super::files::{Bytes, Reopened, unopened};
use super::separated::{NoRow, Quotes, Record, Records, Shape};
use super::unfit::{UNFIT, Unfit};

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

/// Columns of a table that are read.
pub(super) trait Used {
    /// Their places.
    fn used(&self) -> Vec<usize>;
}

impl Used for Vec<(&'static str, usize)> {
    fn used(&self) -> Vec<usize> {
        self.iter().map(|(_, place)| *place).collect()
    }
}

/// Hands on each row of a file whose columns `find` has found, and says how many lines and bytes it has, which rows were none and which columns are not
/// used. Of rows that do not fit, by another width than the first line's or by what `take` says, as many are left out as `unfit` allows.
///
/// # Errors
/// When more do not fit, or `find` or `take` fails.
pub(super) fn rows<'f, C: Used>(
    file: &'f Reopened<'_>,
    shape: Shape,
    unfit: Unfit,
    find: impl FnOnce(&mut Records<'f, BufReader<Bytes<'f>>>) -> Result<C, ReadError>,
    take: impl FnMut(&C, &Record<'_>) -> Result<(), NoRow>,
) -> Result<Tally, ReadError> {
    let opened = (file.open)().map_err(|error| unopened(&file.label, &error))?;
    rows_of(Records::new(BufReader::new(opened), &file.label, shape)?, unfit, find, take)
}

/// As [`rows`], of rows that are there.
///
/// # Errors
/// As [`rows`].
pub(super) fn rows_of<'f, R: BufRead, C: Used>(
    mut records: Records<'f, R>,
    unfit: Unfit,
    find: impl FnOnce(&mut Records<'f, R>) -> Result<C, ReadError>,
    mut take: impl FnMut(&C, &Record<'_>) -> Result<(), NoRow>,
) -> Result<Tally, ReadError> {
    let columns = find(&mut records)?;
    let mut tally = Tally::new(records.file(), &[]);
    let left_out = each_fitting(&mut records, unfit, |record| take(&columns, record))?;
    if left_out > 0 {
        tally.drop_all(UNFIT, left_out);
    }
    records.account(&mut tally);
    tally.columns_not_used = records.unused(&columns.used());
    Ok(tally)
}

/// Hands on each row, and says how many were left out because they do not fit.
///
/// # Errors
/// When more do not fit than `unfit` allows, or `take` fails.
pub(super) fn each_fitting<R: BufRead>(
    records: &mut Records<'_, R>,
    mut unfit: Unfit,
    mut take: impl FnMut(&Record<'_>) -> Result<(), NoRow>,
) -> Result<u64, ReadError> {
    let (mut left_out, mut read) = (Tally::new(Path::new(""), &[UNFIT]), 0);
    loop {
        let taken = match records.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => take(&record),
            Err(no) => Err(no),
        };
        read += 1;
        if let Err(no) = taken {
            unfit.drop(no, &mut left_out)?;
        }
    }
    unfit.settle(&Tally { read, ..left_out.clone() })?;
    Ok(left_out.dropped[UNFIT])
}

/// As [`rows`], of a file of a terminology.
///
/// # Errors
/// When a column is missing, or as [`rows`].
pub(super) fn each(
    file: &Reopened<'_>,
    columns: &[&'static str],
    mut take: impl FnMut(&Row<'_, '_>) -> Result<(), ReadError>,
) -> Result<Tally, ReadError> {
    let shape = Shape { quotes: Some(Quotes::None), ..Shape::TABS };
    rows(
        file,
        shape,
        Unfit::new(Share::default()),
        |records| {
            let place = |name: &&'static str| Ok((*name, records.released(name, REMEDY)?));
            columns.iter().map(place).collect::<Result<Vec<_>, ReadError>>()
        },
        |columns, record| Ok(take(&Row { record, columns })?),
    )
}
