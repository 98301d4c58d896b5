//! Dense ids.

/// Number of an entity: its row in `entities.parquet`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// Number of a relation: its row in `relations.parquet`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub u32);

impl EntityId {
    /// The id as a place in a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RelationId {
    /// The id as a place in a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The `n`-th number of a dense range. What is numbered here takes tens of bytes each, so memory ends long before `u32` does.
#[allow(
    clippy::cast_possible_truncation,
    reason = "4,294,967,296 rows of tens of bytes do not fit in memory"
)]
pub(crate) fn dense(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok());
    n as u32
}
