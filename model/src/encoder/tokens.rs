//! The tokens of the rows of some batches, one behind the other, with no padding but such as is to be read.

mod grid;
mod knowledge;

use std::sync::Arc;

use batch::rows::{Known, Rows};
use candle_core::{Device, Tensor};

use super::config::Config;
use crate::Error;
pub(crate) use grid::Grid;
pub use knowledge::Knowledge;

/// Where one sample of a batch lies among the real tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Index of its first token.
    pub start: usize,
    /// Number of its tokens, at least 1.
    pub len: usize,
}

/// Tokens of one or more batches on a device: the real ones, and padding where rows say that it is to be read. A token keeps the position that its
/// row gives it, so rows may have gaps.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Token ids `[n]`.
    pub ids_n: Tensor,
    /// Position of each token in its sample `[n]`.
    pub positions_n: Tensor,
    /// Segment of each token `[n]`.
    pub types_n: Tensor,
    /// The samples of all batches in order.
    pub spans: Vec<Span>,
    /// Tokens of each sample that are looked at, if some are not: those behind them are padding, which looks at them and is looked at by none.
    pub seen: Option<Arc<[usize]>>,
    /// What is known of them, if anything is.
    pub knowledge: Option<Knowledge>,
    /// The samples without their auxiliary tokens; empty where nothing is known of them.
    own: Vec<Span>,
    /// For each batch, the index of its first sample in `spans`.
    first_samples: Vec<usize>,
}

/// The columns of a [`Tokens`] while it is filled.
#[derive(Default)]
struct Columns {
    ids: Vec<u32>,
    positions: Vec<u32>,
    types: Vec<u32>,
    spans: Vec<Span>,
    /// As [`Tokens::seen`], of all samples so far; empty as long as none has padding.
    seen: Vec<usize>,
}

impl Tokens {
    /// The rows of batches with the names of their tasks, one behind the other.
    ///
    /// # Errors
    /// Names batch, row and position of the first number that does not fit `config`.
    pub fn new(batches: &[(&str, &Rows)], config: &Config, device: &Device) -> Result<Self, Error> {
        let (mut columns, mut first_samples) = (Columns::default(), vec![]);
        for (task, rows) in batches {
            first_samples.push(columns.spans.len());
            columns.push_rows(task, rows, config)?;
        }
        let tokens = Tokens { first_samples, ..columns.on(device)? };
        match known(batches)? {
            Some(Known { maps, real, numbers }) => {
                let knowledge = Knowledge::new(numbers, maps, real, &tokens.spans, device)?;
                let own = knowledge.real(&tokens.spans);
                Ok(Tokens { own, knowledge: Some(knowledge), ..tokens })
            }
            None => Ok(tokens),
        }
    }

    /// The same with more tokens, in rows of their own that belong to no batch, and with rows of no token: as many of both as
    /// [`rounded`](crate::cuda::feed::rounded) says. Nothing may be known of the rows.
    #[cfg(feature = "cuda")]
    pub(crate) fn rounded(&self, config: &Config) -> candle_core::Result<Self> {
        use crate::cuda::feed::rounded;
        let (real, mut spans, mut first_samples) =
            (self.count(), self.spans.clone(), self.first_samples.clone());
        first_samples.push(spans.len());
        let more = rounded(real) - real;
        let longest = config.max_position_embeddings.max(1);
        for start in (0..more).step_by(longest) {
            spans.push(Span { start: real + start, len: longest.min(more - start) });
        }
        spans.resize(rounded(spans.len()), Span { start: real + more, len: 0 });
        let mut positions = (0_u32..).take(longest).cycle().take(more);
        let column = |column: &Tensor, more: &mut dyn Iterator<Item = u32>| {
            let numbers: Vec<u32> = column.to_vec1()?.into_iter().chain(more).collect();
            Tensor::from_vec(numbers, rounded(real), column.device())
        };
        let seen = self.seen.as_ref().map(|seen| {
            let behind = spans[seen.len()..].iter().map(|span| span.len);
            seen.iter().copied().chain(behind).collect::<Vec<usize>>().into()
        });
        Ok(Tokens {
            ids_n: column(&self.ids_n, &mut std::iter::repeat_n(config.pad_token_id, more))?,
            positions_n: column(&self.positions_n, &mut positions)?,
            types_n: column(&self.types_n, &mut std::iter::repeat_n(0, more))?,
            spans,
            seen,
            knowledge: None,
            own: vec![],
            first_samples,
        })
    }

    /// How many real tokens there are (n).
    #[must_use]
    pub fn count(&self) -> usize {
        self.spans.last().map_or(0, |span| span.start + span.len)
    }

    /// The samples of one batch.
    #[must_use]
    pub fn samples(&self, batch: usize) -> &[Span] {
        let end = self.first_samples.get(batch + 1).copied().unwrap_or(self.spans.len());
        self.first_samples.get(batch).map_or(&[], |&start| &self.spans[start..end])
    }

    /// The samples of one batch without their auxiliary tokens: what is pooled. Rows with padding are not pooled.
    #[must_use]
    pub fn own(&self, batch: usize) -> &[Span] {
        let samples = self.samples(batch);
        match &self.knowledge {
            None => samples,
            Some(_) => {
                let first = self.first_samples.get(batch).copied().unwrap_or(0);
                self.own.get(first..first + samples.len()).unwrap_or(&[])
            }
        }
    }

    /// Refuses rows with padding, which plain attention alone can be asked of.
    pub(crate) fn check_unpadded(&self) -> candle_core::Result<()> {
        if self.seen.is_some() {
            candle_core::bail!(
                "rows with padding are for plain attention: labels and maps of knowledge are of rows without"
            )
        }
        Ok(())
    }

    /// Refuses rows of which something is known, where attention would pass it over.
    pub(crate) fn check_unknown(&self) -> candle_core::Result<()> {
        if self.knowledge.is_some() {
            candle_core::bail!(
                "these rows have maps of what is known, and this model does not attend by any; make rows without"
            )
        }
        Ok(())
    }

    /// For each real token, the sample that it belongs to `[n]`.
    pub(crate) fn sample_of_token(&self) -> candle_core::Result<Tensor> {
        let samples = (0..).zip(&self.spans).flat_map(|(s, span)| std::iter::repeat_n(s, span.len));
        Tensor::from_iter(samples.collect::<Vec<u32>>(), self.ids_n.device())
    }
}

/// What is known of the rows of some batches, one behind the other.
fn known(batches: &[(&str, &Rows)]) -> Result<Option<Known>, Error> {
    let of = |rows: &Rows| rows.known.as_ref().map_or(0, |known| known.maps);
    let expected = batches.first().map_or(0, |(_, rows)| of(rows));
    if let Some((task, rows)) = batches.iter().find(|(_, rows)| of(rows) != expected) {
        return Err(Error::Misfit(format!(
            "batch of {task}: {found} maps of what is known of its rows, the batch before has {expected}; rows that are read together have the same maps",
            found = of(rows)
        )));
    }
    if expected == 0 {
        return Ok(None);
    }
    let mut all = Known { maps: expected, real: vec![], numbers: vec![] };
    for known in batches.iter().filter_map(|(_, rows)| rows.known.as_ref()) {
        all.real.extend_from_slice(&known.real);
        all.numbers.extend_from_slice(&known.numbers);
    }
    Ok(Some(all))
}

impl Columns {
    fn push_rows(&mut self, task: &str, rows: &Rows, config: &Config) -> Result<(), Error> {
        let (ids, types) = (rows.ids.len(), rows.types.len());
        let lengths: usize = rows.lengths.iter().sum();
        let positions = if rows.positions.is_empty() { ids } else { rows.positions.len() };
        if [types, lengths, positions] != [ids; 3] {
            return Err(Error::Misfit(format!(
                "batch of {task}: {ids} token ids, {types} segments, {positions} positions and lengths of {lengths} tokens together, expected the same of each; the rows were put together wrongly"
            )));
        }
        self.push_seen(task, rows)?;
        let mut tokens = (0..).zip(rows.ids.iter().zip(&rows.types));
        for (row, &len) in rows.lengths.iter().enumerate() {
            if len == 0 {
                return Err(Error::Misfit(format!(
                    "batch of {task}, row {row}: it has no token, every position is padding; a sample needs at least one token"
                )));
            }
            self.spans.push(Span { start: self.ids.len(), len });
            for (at, (token, (&id, &kind))) in (0..).zip(tokens.by_ref().take(len)) {
                let position = rows.positions.get(token).copied().unwrap_or(at);
                if let Some(wrong) = Beyond::of([id, kind, position], config) {
                    return Err(wrong.at(task, row, at as usize));
                }
                self.ids.push(id);
                self.types.push(kind);
                self.positions.push(position);
            }
        }
        Ok(())
    }

    /// What is seen of rows that are about to be added.
    fn push_seen(&mut self, task: &str, rows: &Rows) -> Result<(), Error> {
        let Rows { seen, lengths, .. } = rows;
        let rows = if seen.is_empty() { 0 } else { lengths.len().max(seen.len()) };
        for row in 0..rows {
            let of = |each: &[usize]| each.get(row).copied().unwrap_or(0);
            let (seen, length) = (of(seen), of(lengths));
            if seen == 0 || seen > length {
                return Err(Error::Misfit(format!(
                    "batch of {task}, row {row}: {seen} of its {length} tokens are looked at, expected at least one of each row and at most all; the rows were put together wrongly"
                )));
            }
        }
        if self.seen.is_empty() && !seen.is_empty() {
            self.seen = self.spans.iter().map(|span| span.len).collect();
        }
        if !self.seen.is_empty() || !seen.is_empty() {
            self.seen.extend(if seen.is_empty() { lengths } else { seen });
        }
        Ok(())
    }

    /// The columns on a device, of no batch.
    fn on(self, device: &Device) -> candle_core::Result<Tokens> {
        let count = self.ids.len();
        Ok(Tokens {
            ids_n: Tensor::from_vec(self.ids, count, device)?,
            positions_n: Tensor::from_vec(self.positions, count, device)?,
            types_n: Tensor::from_vec(self.types, count, device)?,
            spans: self.spans,
            seen: (!self.seen.is_empty()).then(|| self.seen.into()),
            knowledge: None,
            own: vec![],
            first_samples: vec![],
        })
    }
}

/// A number of a token that is not below its limit.
struct Beyond {
    field: &'static str,
    found: u32,
    limit: usize,
    remedy: &'static str,
}

impl Beyond {
    /// The first of id, segment and position that the tables of an encoder do not have.
    fn of([id, kind, position]: [u32; 3], config: &Config) -> Option<Self> {
        let Config { vocab_size, type_vocab_size, max_position_embeddings, .. } = *config;
        [
            ("token id", id, vocab_size, "the vocabulary is not the model's"),
            ("segment", kind, type_vocab_size, "raise type_vocab_size"),
            ("position", position, max_position_embeddings, "shorten rows or raise max_position_embeddings"),
        ]
        .into_iter()
        .find(|(_, found, limit, _)| *found as usize >= *limit)
        .map(|(field, found, limit, remedy)| Beyond { field, found, limit, remedy })
    }

    fn at(self, task: &str, row: usize, position: usize) -> Error {
        let Beyond { field, found, limit, remedy } = self;
        Error::Misfit(format!(
            "batch of {task}, row {row}, position {position}: {field} is {found}, it must be below {limit}; {remedy}",
            found = found as usize
        ))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::config::tests::tiny;
    use super::super::{Encoder, Pass};
    use super::*;

    /// Rows of these ids, without segments.
    pub(crate) fn ragged(rows: &[&[u32]]) -> Rows {
        let mut ragged = Rows::default();
        rows.iter().for_each(|row| ragged.push(row.iter().map(|id| (*id, 0))));
        ragged
    }

    /// The tokens of rows of these ids.
    pub(crate) fn tokens(rows: &[&[u32]], config: &Config, device: &Device) -> Tokens {
        Tokens::new(&[("texts", &ragged(rows))], config, device).unwrap()
    }

    #[test]
    fn gaps_keep_positions() {
        let mut gap = ragged(&[&[2, 7, 3]]);
        gap.set_positions(vec![0, 2, 3]);
        let of = |gap: &Rows| {
            Tokens::new(&[("a", &ragged(&[&[2, 3], &[2, 9, 3]])), ("b", gap)], &tiny(), &Device::Cpu)
        };
        let tokens = of(&gap).unwrap();
        assert_eq!(tokens.ids_n.to_vec1::<u32>().unwrap(), [2, 3, 2, 9, 3, 2, 7, 3]);
        assert_eq!(tokens.positions_n.to_vec1::<u32>().unwrap(), [0, 1, 0, 1, 2, 0, 2, 3]);
        assert_eq!(tokens.samples(0), [Span { start: 0, len: 2 }, Span { start: 2, len: 3 }]);
        assert_eq!((tokens.samples(1), tokens.count()), (&[Span { start: 5, len: 3 }][..], 8));
        gap.positions[2] = 12;
        let found = of(&gap).unwrap_err().to_string();
        assert!(
            found.contains("batch of b, row 0, position 2: position is 12, it must be below 12"),
            "{found}"
        );
        gap.positions.pop();
        assert!(of(&gap).unwrap_err().to_string().contains("2 positions and lengths of 3 tokens"));
    }

    #[test]
    fn rows_without_padding_are_read_as_they_are_and_misfits_are_named() {
        let mut rows = Rows::default();
        rows.push([(2, 0), (7, 0), (3, 1)]);
        rows.push([(2, 0)]);
        let of = |batches: &[(&str, &Rows)]| Tokens::new(batches, &tiny(), &Device::Cpu);
        let tokens = of(&[("a", &rows), ("b", &rows)]).unwrap();
        assert_eq!(tokens.ids_n.to_vec1::<u32>().unwrap(), [2, 7, 3, 2, 2, 7, 3, 2]);
        assert_eq!(tokens.types_n.to_vec1::<u32>().unwrap(), [0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(tokens.positions_n.to_vec1::<u32>().unwrap(), [0, 1, 2, 0, 0, 1, 2, 0]);
        assert_eq!(tokens.samples(1), [Span { start: 4, len: 3 }, Span { start: 7, len: 1 }]);
        let text = |change: fn(&mut Rows)| {
            let mut rows = rows.clone();
            change(&mut rows);
            of(&[("mp", &rows)]).unwrap_err().to_string()
        };
        let found = text(|rows| rows.push([(2, 0), (50, 0)]));
        assert!(
            found.contains("batch of mp, row 2, position 1: token id is 50, it must be below 50"),
            "{found}"
        );
        assert!(text(|rows| rows.types[2] = 2).contains("row 0, position 2: segment is 2"));
        assert!(text(|rows| rows.push([(1, 0); 13])).contains("row 2, position 12: position is 12"));
        assert!(text(|rows| rows.push([])).contains("row 2: it has no token"));
        assert!(
            text(|rows| rows.lengths[0] = 2)
                .contains("4 token ids, 4 segments, 4 positions and lengths of 3 tokens")
        );
    }

    #[test]
    fn padding_that_is_read_looks_at_its_row_alone() {
        let (mut padded, mut whole) = (Rows::default(), Rows::default());
        padded.push([(2, 0), (7, 0), (3, 0)]);
        padded.pad(5, 0);
        whole.push([(2, 0), (3, 0)]);
        let of = |batches: &[(&str, &Rows)]| Tokens::new(batches, &tiny(), &Device::Cpu);
        let both = of(&[("ner", &whole), ("ner", &padded), ("ner", &whole)]).unwrap();
        assert_eq!(both.seen.as_deref(), Some(&[2, 3, 2][..]));
        assert!(of(&[("ner", &whole)]).unwrap().seen.is_none());
        assert_eq!(both.positions_n.to_vec1::<u32>().unwrap(), [0, 1, 0, 1, 2, 3, 4, 0, 1]);
        // The row's own tokens come to what they come to without padding.
        let params = crate::params::Params::fresh(&Encoder::specs(&tiny()), 5, &Device::Cpu).unwrap();
        let encoder = Encoder::new(&tiny(), &params).unwrap();
        let last = |tokens: &Tokens| encoder.forward(&tiny(), tokens, &Pass::PLAIN).unwrap().pop().unwrap();
        let mut bare = Rows::default();
        bare.push([(2, 0), (7, 0), (3, 0)]);
        let (with, without) = (last(&both), last(&of(&[("ner", &bare)]).unwrap()));
        let far = crate::nn::check::distance(&with.narrow(0, 2, 3).unwrap(), &without);
        assert!(far < 1e-5, "{far}");
        padded.seen[0] = 6;
        let found = of(&[("ner", &padded)]).unwrap_err().to_string();
        assert!(found.contains("batch of ner, row 0: 6 of its 5 tokens are looked at"), "{found}");
        padded.seen[0] = 3;
        padded.push([(2, 0), (3, 0)]);
        padded.seen.pop();
        let found = of(&[("ner", &padded)]).unwrap_err().to_string();
        assert!(found.contains("row 1: 0 of its 2 tokens are looked at"), "{found}");
    }

    #[test]
    fn a_grid_spreads_and_gathers() {
        let tokens = tokens(&[&[2, 3], &[2, 9, 3]], &tiny(), &Device::Cpu);
        let x_nd = crate::nn::check::randn(1, &[5, 4]);
        let grid = Grid::new(&tokens.spans, &x_nd).unwrap();
        let x_btd = grid.spread(&x_nd).unwrap();
        assert_eq!(x_btd.dims(), [2, 3, 4]);
        assert_eq!(crate::nn::check::distance(&grid.gather(&x_btd).unwrap(), &x_nd), 0.0);
        assert_eq!(grid.padding_bt.to_vec2::<f32>().unwrap()[0], [0.0, 0.0, f32::NEG_INFINITY]);
    }
}
