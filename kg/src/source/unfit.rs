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
    /// Rows of the file that did not fit when it was read before.
    before: u64,
    first: Option<ReadError>,
}

impl Unfit {
    pub(in crate::source) fn new(allowed: Share) -> Self {
        Self::after(allowed, 0)
    }

    /// Those of a file that is read a second time, in other ways, when so many did not fit.
    pub(in crate::source) fn after(allowed: Share, before: u64) -> Self {
        Self { allowed, before, first: None }
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
        let rows = self.before + tally.dropped.get(UNFIT).copied().unwrap_or_default();
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
