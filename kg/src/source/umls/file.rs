//! One file of a Metathesaurus, which may be read more than once.

use base::read::ReadError;

pub use crate::source::files::Reopened as File;
use crate::source::files::unopened;
use crate::source::rrf::{Rows, scan};

/// Name of the source in the table's origins.
pub const SOURCE: &str = "umls";

impl File<'_> {
    /// Has the records parsed and taken; see [`scan::scan`].
    pub(in crate::source) fn scan<const N: usize, T: Send>(
        &self,
        parse: impl Fn(&mut Rows<'_, N>) -> Result<T, ReadError> + Sync,
        take: impl FnMut(T) -> Result<(), ReadError> + Send,
    ) -> Result<scan::Totals, ReadError> {
        let reader = (self.open)().map_err(|error| unopened(&self.label, &error))?;
        scan::scan(scan::Input::new(reader, &self.label), parse, take)
    }

    /// That a needed file says nothing.
    pub(super) fn is_empty(&self) -> ReadError {
        ReadError::new(&self.label, "found no row", "at least one", "fetch the file again")
    }
}
