//! Why a batch or rows cannot be read.

/// A batch that the encoder cannot read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A matrix whose length is not rows * width.
    #[error(
        "batch of {task}: {field} has {found} numbers, expected rows * width = {expected}; the batch was put together wrongly"
    )]
    Length {
        /// Task of the batch.
        task: String,
        /// The matrix.
        field: &'static str,
        /// Numbers found.
        found: usize,
        /// Numbers expected.
        expected: usize,
    },
    /// A number outside its range.
    #[error(
        "batch of {task}, row {row}, position {position}: {field} is {found}, it must be below {limit}; {remedy}"
    )]
    Range {
        /// Task of the batch.
        task: String,
        /// Row in the batch.
        row: usize,
        /// Position in the row.
        position: usize,
        /// What is out of range.
        field: &'static str,
        /// Its value.
        found: usize,
        /// The first value that is too large.
        limit: usize,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A sample without a token.
    #[error(
        "batch of {task}, row {row}: it has no token, every position is padding; a sample needs at least one token"
    )]
    Empty {
        /// Task of the batch.
        task: String,
        /// Row in the batch.
        row: usize,
    },
    /// A sample that does not lie in its batch.
    #[error(
        "batch of {task}, row {row}: a sample ends beyond the {width} positions of a row, or beyond the last row; the batch was put together wrongly"
    )]
    Place {
        /// Task of the batch.
        task: String,
        /// Row of the sample.
        row: usize,
        /// Positions in a row.
        width: usize,
    },
    /// Rows whose lengths are not those of their tokens.
    #[error(
        "batch of {task}: {ids} token ids, {types} segments and lengths of {lengths} tokens together, expected the same of each; the rows were put together wrongly"
    )]
    Rows {
        /// Task of the batch.
        task: String,
        /// Token ids.
        ids: usize,
        /// Segments.
        types: usize,
        /// Tokens of all rows, as their lengths say.
        lengths: usize,
    },
    /// Rows of which more is looked at than there is, or nothing, or of some of which that is not said.
    #[error(
        "batch of {task}, row {row}: {seen} of its {length} tokens are looked at, expected at least one of each row and at most all; the rows were put together wrongly"
    )]
    Seen {
        /// Task of the batch.
        task: String,
        /// Row in the batch.
        row: usize,
        /// Tokens that are looked at.
        seen: usize,
        /// Tokens of the row.
        length: usize,
    },
    /// Rows of which something is known beside rows of which nothing is, or other maps.
    #[error(
        "batch of {task}: {found} maps of what is known of its rows, the batch before has {expected}; rows that are read together have the same maps"
    )]
    Known {
        /// Task of the batch.
        task: String,
        /// Its maps.
        found: usize,
        /// Those of the first batch.
        expected: usize,
    },
    /// The tensor library failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}
