//! Samples that go through an encoder together, as rows without padding.

use batch::rows::Rows;

use super::Sample;

/// The rows of some samples, and where in its row each token stands: padding within a row leaves a gap.
#[derive(Debug, Default)]
pub struct Gathered {
    rows: Rows,
    positions: Vec<u32>,
}

impl Gathered {
    /// Adds a row: the tokens of a sample that are no padding.
    pub fn push(&mut self, sample: &Sample) {
        let seen =
            || (0..).zip(&sample.attention).filter(|(_, seen)| **seen == 1).map(|(at, _): (u32, _)| at);
        self.positions.extend(seen());
        self.rows.push(seen().map(|at| (sample.input_ids[at as usize], sample.token_type_ids[at as usize])));
    }

    /// How many tokens all rows have.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.positions.len()
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows.
    #[must_use]
    pub fn into_rows(mut self) -> Rows {
        self.rows.set_positions(self.positions);
        self.rows
    }
}
