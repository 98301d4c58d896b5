//! What the host has to say of a step, put together in one stretch of bytes that goes up in one copy.

use candle_core::cuda_backend::cudarc::driver::DeviceRepr;

use super::args::{self, Address};
use crate::Error;
use crate::encoder::tokens::{Span, Tokens};
use crate::nn::dropout::Dropout;

/// Bytes at which what is put into a feed begins.
const ALIGNED: usize = 16;

/// The bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    bytes: Vec<u8>,
    sizes: Sizes,
}

/// How many there are of what differs from step to step: tokens, rows, what is asked of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sizes {
    /// As many as there are.
    #[default]
    Exact,
    /// A few more, which come to nothing, so that steps that differ little are launched alike ([`super::graphs`]).
    Rounded,
}

impl Sizes {
    /// So many, or a few more: from 64 on at most an eighth.
    pub(crate) fn of(self, count: usize) -> usize {
        match self {
            Sizes::Exact => count,
            Sizes::Rounded => rounded(count),
        }
    }

    /// So many, or as many as a multiple of 64 has.
    fn wide(self, count: usize) -> usize {
        match self {
            Sizes::Exact => count,
            Sizes::Rounded => count.next_multiple_of(64),
        }
    }
}

/// The least of eight sizes between two powers of 2 that is not below.
pub(crate) fn rounded(count: usize) -> usize {
    count.max(1).next_multiple_of((count.max(1).next_power_of_two() / 16).max(8))
}

/// A place in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(usize);

/// Where the feed begins on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base(pub(crate) Address);

/// What the host says of something, and where its feed begins on the device.
#[derive(Debug)]
pub(crate) struct Sent<'a, T> {
    pub(crate) fed: &'a T,
    pub(crate) base: Base,
}

impl<T> Clone for Sent<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Sent<'_, T> {}

impl Base {
    /// Where something of the feed stands.
    pub(crate) fn of(self, At(place): At) -> Address {
        self.0 + place as u64
    }

    /// The same of what may not be there: null.
    pub(crate) fn of_some(self, place: Option<At>) -> Address {
        place.map_or(0, |place| self.of(place))
    }
}

impl Feed {
    /// Nothing so far, of these sizes.
    pub(crate) fn of(sizes: Sizes) -> Self {
        Feed { bytes: vec![], sizes }
    }

    /// What sizes it is of.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Adds numbers; they stand where it says. What may be more another time has room for that.
    pub(crate) fn put<T: DeviceRepr>(&mut self, numbers: &[T]) -> At {
        let at = self.bytes.len().next_multiple_of(ALIGNED);
        self.bytes.resize(at, 0);
        // SAFETY: `DeviceRepr` says that they are plain numbers, which the device reads as bytes.
        self.bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), size_of_val(numbers))
        });
        self.bytes.resize(at + self.sizes.of(numbers.len()) * size_of::<T>(), 0);
        At(at)
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Dropout at one place, its key in the feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drop {
    key: Option<At>,
    threshold: u32,
    factor: f32,
}

impl Drop {
    /// What is dropped, if anything is.
    pub(crate) fn new(feed: &mut Feed, dropout: Option<Dropout>) -> Self {
        match dropout.filter(|dropout| dropout.is_active()) {
            None => Drop { key: None, threshold: 0, factor: 1.0 },
            Some(dropout) => {
                let (key, threshold, factor) = dropout.for_kernels();
                Drop { key: Some(feed.put(&[key])), threshold, factor }
            }
        }
    }

    /// Whether anything is dropped.
    pub(crate) fn is_active(&self) -> bool {
        self.key.is_some()
    }

    /// As kernels take it.
    pub(crate) fn on(&self, base: Base) -> args::Dropout {
        args::Dropout { key: base.of_some(self.key), threshold: self.threshold, factor: self.factor }
    }
}

/// The rows of a micro-batch.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Tokens of all rows.
    pub(crate) n: usize,
    /// How many rows there are.
    pub(crate) count: usize,
    /// Tokens of the longest.
    pub(crate) longest: usize,
    /// Token, position and segment of each token.
    pub(crate) ids: [At; 3],
    /// Where rows begin, and the last one ends.
    pub(crate) starts: At,
    /// So many first tokens of each row are looked at; all where it is not there.
    pub(crate) seen: Option<At>,
    /// How the gradients of tables of tokens, positions and segments are added up, where they are wanted.
    pub(crate) sums: [Option<TableSum>; 3],
}

/// The order in which rows of a gradient are added to rows of a table, so that the same batch gives the same bits: kernels.h, `RowsSum`.
#[derive(Debug)]
pub(crate) struct TableSum {
    pub(crate) order: At,
    pub(crate) starts: At,
    pub(crate) targets: At,
    pub(crate) pieces: usize,
    /// Rows of the table that many tokens look up, each cut into pieces.
    pub(crate) rows: At,
    pub(crate) slot_starts: At,
    pub(crate) long_rows: usize,
    pub(crate) slots: usize,
}

/// Looked-up rows of a piece: more are cut, so that no block works long alone.
const PIECE: usize = 64;

impl TableSum {
    /// The places of a look-up, sorted by the row of the table.
    pub(crate) fn new(feed: &mut Feed, ids: &[u32]) -> Result<Self, Error> {
        let mut order = (0..number(ids.len())?).collect::<Vec<u32>>();
        order.sort_by_key(|place| ids[*place as usize]);
        let (mut starts, mut targets) = (vec![0_u32], vec![]);
        let (mut rows, mut slots) = (vec![], vec![0_u32]);
        for run in order.chunk_by(|a, b| ids[*a as usize] == ids[*b as usize]) {
            let (first, row) = (starts.last().copied().unwrap_or(0), ids[run[0] as usize]);
            let before = slots.last().copied().unwrap_or(0);
            let pieces = run.len().div_ceil(PIECE) as u32;
            for piece in 0..pieces {
                starts.push(first + (PIECE as u32 * (piece + 1)).min(run.len() as u32));
                targets.push(if pieces == 1 { i64::from(row) } else { -1 - i64::from(before + piece) });
            }
            if pieces > 1 {
                rows.push(row);
                slots.push(before + pieces);
            }
        }
        let mut long_rows = rows.len();
        if feed.sizes == Sizes::Rounded {
            // As many as the look-ups can come to. Pieces of nothing leave their sum in a slot that no row takes up, and rows without slots take up none.
            let slot = slots.last().copied().unwrap_or(0);
            let end = starts.last().copied().unwrap_or(0);
            starts.resize(ids.len() + 1, end);
            targets.resize(ids.len(), -1 - i64::from(slot));
            long_rows = ids.len() / PIECE;
            rows.resize(long_rows, 0);
            slots.resize(long_rows + 1, slot);
        }
        let targets: Vec<i32> = targets.into_iter().map(|target| target as i32).collect();
        Ok(TableSum {
            order: feed.put(&order),
            starts: feed.put(&starts),
            targets: feed.put(&targets),
            pieces: targets.len(),
            rows: feed.put(&rows),
            slot_starts: feed.put(&slots),
            long_rows,
            slots: match feed.sizes {
                Sizes::Exact => slots.last().copied().unwrap_or(0) as usize,
                // A row that is looked up more than a piece's times has at most two pieces for each.
                Sizes::Rounded => 2 * (ids.len() / PIECE) + 1,
            },
        })
    }
}

/// A count as kernels have it.
///
/// # Errors
/// When it is beyond 2^31.
pub(crate) fn number(count: usize) -> Result<u32, Error> {
    i32::try_from(count).map(i32::cast_unsigned).map_err(|_| {
        Error::Misfit(format!(
            "a step of {count} tokens is beyond what a GPU is asked at a time: make batches smaller"
        ))
    })
}

/// Where rows begin, and the end of the last.
///
/// # Errors
/// As [`number`].
pub(crate) fn starts(spans: &[Span]) -> Result<Vec<i32>, Error> {
    let mut all = vec![];
    for span in spans {
        all.push(number(span.start)?.cast_signed());
    }
    let end = spans.last().map_or(0, |span| span.start + span.len);
    all.push(number(end)?.cast_signed());
    Ok(all)
}

impl Rows {
    /// The rows of tokens in main memory; `trained` says of which of the three tables a gradient is wanted.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn new(feed: &mut Feed, tokens: &Tokens, trained: [bool; 3]) -> Result<Self, Error> {
        let columns = [&tokens.ids_n, &tokens.positions_n, &tokens.types_n];
        let [ids, positions, types] = columns.map(|column| column.to_vec1::<u32>());
        let columns = [ids?, positions?, types?];
        let mut sums = [None, None, None];
        for ((sum, ids), _) in sums.iter_mut().zip(&columns).zip(trained).filter(|(_, trained)| *trained) {
            *sum = Some(TableSum::new(feed, ids)?);
        }
        let seen = match &tokens.seen {
            None => None,
            Some(seen) => {
                let seen = seen.iter().map(|seen| number(*seen)).collect::<Result<Vec<u32>, _>>()?;
                Some(feed.put(&seen))
            }
        };
        Ok(Rows {
            n: tokens.count(),
            count: tokens.spans.len(),
            longest: feed.sizes.wide(tokens.spans.iter().map(|span| span.len).max().unwrap_or(0)),
            ids: [feed.put(&columns[0]), feed.put(&columns[1]), feed.put(&columns[2])],
            starts: feed.put(&starts(&tokens.spans)?),
            seen,
            sums,
        })
    }
}
