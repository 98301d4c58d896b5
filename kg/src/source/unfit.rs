//! Rows that do not fit: an error, or counted and left out where the config allows some.

use base::funnel::Tally;
use base::read::ReadError;
use base::share::Share;

use super::separated::NoRow;

/// Rows that do not fit and are left out.
pub(in crate::source) const UNFIT: &str = "unfit";

/// The rows of a file that do not fit.
#[derive(Debug)]
pub(in crate::source) struct Unfit {
    allowed: Share,
    first: Option<ReadError>,
}

impl Unfit {
    pub(in crate::source) fn new(allowed: Share) -> Self {
        Self { allowed, first: None }
    }

    /// Drops a row that does not fit, if any may be dropped.
    pub(in crate::source) fn drop(&mut self, no: NoRow, tally: &mut Tally) -> Result<(), ReadError> {
        match no {
            NoRow::Unfit(error) if !self.allowed.is_nothing() => {
                tally.drop(UNFIT);
                self.first.get_or_insert(error);
                Ok(())
            }
            NoRow::Unfit(error) | NoRow::End(error) => Err(error),
        }
    }

    /// Refuses the file if more was dropped than may be.
    pub(in crate::source) fn settle(self, tally: &Tally) -> Result<(), ReadError> {
        let rows = tally.dropped.get(UNFIT).copied().unwrap_or_default();
        match self.first {
            Some(first) if !self.allowed.allows(rows, tally.read) => {
                let all = tally.read;
                let many = format!("{rows} of {all} rows of the file do not fit, this first");
                let remedy = format!("{}; {many}: max_unfit allows fewer", first.remedy());
                Err(ReadError::new(first.place().clone(), first.found(), first.expected(), remedy))
            }
            _ => Ok(()),
        }
    }
}
