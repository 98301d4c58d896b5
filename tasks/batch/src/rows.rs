//! Token rows of a batch, one behind the other and with no padding but such as is to be read.

use base::read::ReadError;

use crate::Place;
use crate::maps::expand::{Map, expand};
use crate::maps::sample::{Row, Sample};

/// Rows of tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Token ids of all rows, `[n]`.
    pub ids: Vec<u32>,
    /// Segment (BERT's token type, 0 or 1) of each token, `[n]`.
    pub types: Vec<u32>,
    /// Tokens of each row, at least 1; together n.
    pub lengths: Vec<usize>,
    /// Tokens of each row that are attended to; those behind them are padding, which attends to them and is attended to by none. Empty where no row has any.
    pub seen: Vec<usize>,
    /// Position of each token in its row, `[n]`; empty where every row counts from 0 without a gap.
    pub positions: Vec<u32>,
    /// What is known of the tokens of every row, if anything is.
    pub known: Option<Known>,
}

/// What is known of the tokens of rows (KAM-BERT's maps).
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Maps of a row (m).
    pub maps: usize,
    /// Tokens of each row that are its own; the rest of it are auxiliary terms.
    pub real: Vec<usize>,
    /// Of each row of t tokens its maps, `[m, t, t]`, one behind the other.
    pub numbers: Vec<f32>,
}

impl Rows {
    /// Adds a row: tokens with their segments.
    pub fn push(&mut self, tokens: impl IntoIterator<Item = (u32, u32)>) {
        let before = self.ids.len();
        for (id, kind) in tokens {
            self.ids.push(id);
            self.types.push(kind);
        }
        let length = self.ids.len() - before;
        self.lengths.push(length);
        if !self.seen.is_empty() {
            self.seen.push(length);
        }
        self.count_on(0, length);
    }

    /// Gives all tokens their positions, which are kept where they are not what counting says.
    pub fn set_positions(&mut self, positions: Vec<u32>) {
        let counted = self.lengths.iter().flat_map(|&length| (0..).take(length));
        self.positions = if positions.iter().copied().eq(counted) { vec![] } else { positions };
    }

    /// Adds positions from `first` to before `end` for tokens of the last row, where positions are kept.
    fn count_on(&mut self, first: usize, end: usize) {
        if !self.positions.is_empty() {
            self.positions.extend((0..).skip(first).take(end - first));
        }
    }

    /// Gives the last row padding until it has `width` tokens, each of segment 0.
    pub fn pad(&mut self, width: usize, padding: u32) {
        if self.seen.is_empty() {
            self.seen.clone_from(&self.lengths);
        }
        let Some(length) = self.lengths.last_mut() else { return };
        let before = *length;
        let more = width.saturating_sub(before);
        *length += more;
        self.ids.extend(std::iter::repeat_n(padding, more));
        self.types.extend(std::iter::repeat_n(0, more));
        self.count_on(before, before + more);
    }

    /// Adds a row with these maps of what is known of its tokens. All rows have the same maps, or none.
    ///
    /// # Errors
    /// When the numbers of the row do not fit each other.
    pub fn push_known(&mut self, row: &Row<'_>, maps: &[Map]) -> Result<(), ReadError> {
        let tokens = row.tokens();
        let place = Place { row: 0, start: 0, len: tokens };
        let numbers = expand(&[(place, *row)], maps, 1, tokens)?;
        let known = self.known.get_or_insert(Known { maps: maps.len(), real: vec![], numbers: vec![] });
        known.numbers.extend(numbers);
        known.real.push(row.real.into());
        // Unsound rows, such as those of ids below 0, do not come here.
        let ids = row.input_ids.iter().map(|id| id.cast_unsigned());
        let types = row.token_types.iter().map(|kind| u32::from(kind.cast_unsigned()));
        self.push(ids.zip(types));
        Ok(())
    }

    /// The same rows with maps in which nothing is known of any token: each but the first and the last is a word of its own.
    ///
    /// # Errors
    /// When a row has more tokens than maps can have.
    pub fn with_nothing_known(self, maps: &[Map]) -> Result<Self, ReadError> {
        let mut unknown = Rows::default();
        for ids in self.each() {
            unknown.push_known(&Sample::unknown(ids).row(), maps)?;
        }
        Ok(Rows { known: unknown.known, ..self })
    }

    /// Adds rows without padding, of which as much is known as of these.
    pub fn append(&mut self, other: Rows) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.ids.extend(other.ids);
        self.types.extend(other.types);
        self.lengths.extend(other.lengths);
        if let (Some(known), Some(more)) = (&mut self.known, other.known) {
            known.real.extend(more.real);
            known.numbers.extend(more.numbers);
        }
    }

    /// The token ids of each row.
    pub fn each(&self) -> impl Iterator<Item = &[u32]> {
        self.lengths.iter().scan(self.ids.as_slice(), |rest, length| {
            let (row, others) = rest.split_at_checked(*length)?;
            *rest = others;
            Some(row)
        })
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
    use crate::maps::sample::Sample;

    #[test]
    fn what_is_known_of_rows_stands_square_behind_square() {
        let sample = crate::maps::sample::example();
        let (mut rows, tokens) = (Rows::default(), sample.input_ids.len());
        for _ in 0..2 {
            rows.push_known(&sample.row(), &[Map::Entity, Map::Term]).unwrap();
        }
        assert_eq!((rows.lengths.as_slice(), rows.ids.len()), (&[tokens; 2][..], 2 * tokens));
        let Known { maps, real, numbers } = rows.known.clone().unwrap();
        assert_eq!((maps, real, numbers.len()), (2, vec![sample.real.into(); 2], 4 * tokens * tokens));
        let (one, other) = numbers.split_at(2 * tokens * tokens);
        assert!(one == other && one.contains(&1.0));
        let mut unsound = sample;
        unsound.types.pop();
        let before = rows.clone();
        let error = rows.push_known(&unsound.row(), &[Map::Entity, Map::Term]).unwrap_err().to_string();
        assert!(error.starts_with("sample 0 of the batch"), "{error}");
        assert!(rows == before, "what is refused leaves nothing behind");
    }

    #[test]
    fn padding_stands_behind_what_is_seen() {
        let mut rows = Rows::default();
        rows.push([(2, 0), (3, 1)]);
        rows.push([(2, 0), (7, 1), (3, 1)]);
        rows.pad(5, 9);
        rows.push([(4, 1)]);
        rows.pad(1, 9);
        assert_eq!((rows.lengths.as_slice(), rows.seen.as_slice()), (&[2, 5, 1][..], &[2, 3, 1][..]));
        assert_eq!((&rows.ids[2..7], &rows.types[2..7]), (&[2, 7, 3, 9, 9][..], &[0, 1, 1, 0, 0][..]));
        let mut none = Rows::default();
        none.pad(3, 9);
        assert!(none.is_empty() && none.ids.is_empty());
    }

    #[test]
    fn rows_stand_one_behind_the_other() {
        let mut rows = Rows::default();
        assert!(rows.is_empty());
        rows.push([(2, 0), (7, 0), (3, 1)]);
        rows.push([(2, 0)]);
        assert_eq!((rows.ids.as_slice(), rows.types.as_slice()), (&[2, 7, 3, 2][..], &[0, 0, 1, 0][..]));
        assert_eq!((rows.lengths.as_slice(), rows.len()), (&[3, 1][..], 2));
    }

    #[test]
    fn rows_come_together_with_what_is_known() {
        let maps = [Map::Entity, Map::Term];
        let example = crate::maps::sample::example();
        let of = |example: &Sample| {
            let mut rows = Rows::default();
            rows.push_known(&example.row(), &maps).unwrap();
            rows
        };
        let singles = [of(&example), of(&example.clone().without_terms())];
        assert_eq!(singles[1].lengths.as_slice(), &[usize::from(example.real)][..]);
        let known = singles[1].known.as_ref().unwrap();
        assert_eq!((known.real.as_slice(), known.numbers.len()), (&[7][..], 2 * 7 * 7));
        let mut rows = Rows::default();
        rows.push_known(&example.row(), &maps).unwrap();
        rows.push_known(&example.clone().without_terms().row(), &maps).unwrap();
        let mut again = Rows::default();
        singles.into_iter().for_each(|row| again.append(row));
        assert_eq!(again, rows);
    }
}
