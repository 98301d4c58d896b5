//! Token rows of a batch, one behind the other and without padding: what an encoder without padding reads. Knows no text and no answer.

/// Rows of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Token ids of all rows, `[n]`.
    pub ids: Vec<u32>,
    /// Segment (BERT's token type, 0 or 1) of each token, `[n]`.
    pub types: Vec<u32>,
    /// Tokens of each row, at least 1; together n.
    pub lengths: Vec<usize>,
}

impl Rows {
    /// Adds a row: tokens with their segments.
    pub fn push(&mut self, tokens: impl IntoIterator<Item = (u32, u32)>) {
        let before = self.ids.len();
        for (id, kind) in tokens {
            self.ids.push(id);
            self.types.push(kind);
        }
        self.lengths.push(self.ids.len() - before);
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_one_behind_the_other() {
        let mut rows = Rows::default();
        assert!(rows.is_empty());
        rows.push([(2, 0), (7, 0), (3, 1)]);
        rows.push([(2, 0)]);
        assert_eq!((rows.ids.as_slice(), rows.types.as_slice()), (&[2, 7, 3, 2][..], &[0, 0, 1, 0][..]));
        assert_eq!((rows.lengths.as_slice(), rows.len()), (&[3, 1][..], 2));
    }
}
