//! Pairs of ranks counted under a bound on memory.

use std::collections::BTreeMap;

use super::runs::Runs;
use super::{Error, Order, Room};

/// Bits of a rank.
const RANK: u32 = 28;
/// Bits of a distance behind the pair, in the keys that wait to be sorted.
const DISTANCE: u32 = 8;

/// The two ranks of a key.
pub(super) fn ranks(key: u64) -> (u32, u32) {
    let mask = (1 << RANK) - 1;
    // Both have 28 bits.
    (u32::try_from(key >> RANK & mask).unwrap_or(0), u32::try_from(key & mask).unwrap_or(0))
}

pub(super) fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << RANK | u64::from(right)
}

/// Cells that are added to together: few enough for the processor to have all of their pages at hand.
const BLOCK: u32 = 18;
/// Additions that wait for a block.
const DUE: u32 = 1 << 15;
/// Bytes of the additions that wait, per byte of the cells.
const DUE_SHARE: usize = 8;

/// Which pairs have a cell in the array: those with a small product of ranks, since the counts of words fall about as 1 over their rank.
#[derive(Debug)]
pub(super) struct Shape {
    rows: Vec<Row>,
    cells: usize,
    order: Order,
}

/// The cells of a left rank.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Right ranks below this have a cell.
    limit: u32,
    /// What, added to the right rank, is the cell (wrapping).
    start: u32,
}

impl Row {
    #[inline]
    fn cell(self, right: u32) -> u32 {
        self.start.wrapping_add(right)
    }
}

impl Shape {
    /// More cells than this have no number.
    const MOST: usize = 1 << 30;

    /// Cells, with the additions that wait for them, for at most `bytes` bytes, and at most `most` cells for pairs of `words` words.
    pub(super) fn new(words: usize, most: usize, bytes: usize, order: Order) -> Self {
        let most = most.min(bytes / 4 / (DUE_SHARE + 1) * DUE_SHARE).min(Self::MOST);
        let cells = |product: usize| -> usize {
            let row =
                |left: usize| (product / (left + 1)).min(words).saturating_sub(Self::first(left, order));
            (0..words).map(row).take_while(|&cells| cells > 0).fold(0, usize::saturating_add)
        };
        // The largest product whose cells still fit.
        let (mut low, mut high) = (0, words.saturating_mul(words).saturating_add(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if cells(middle) <= most { low = middle } else { high = middle }
        }
        let (mut rows, mut total) = (Vec::with_capacity(words), 0usize);
        // All are below 2^30.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        for left in 0..words {
            let (first, limit) = (Self::first(left, order), (low / (left + 1)).min(words));
            let row = limit.saturating_sub(first);
            let limit = if row > 0 { number(limit) } else { 0 };
            rows.push(Row { limit, start: number(total).wrapping_sub(number(first)) });
            total += row;
        }
        Self { rows, cells: total, order }
    }

    fn first(left: usize, order: Order) -> usize {
        match order {
            Order::Symmetric => left,
            Order::Directed => 0,
        }
    }

    /// Hands all pairs that have a cell to `each`, with its number, in order.
    fn pairs(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        (0..).zip(&self.rows).flat_map(|(left, row)| {
            let first = u32::try_from(Self::first(left as usize, self.order)).unwrap_or(u32::MAX);
            (first..row.limit.max(first)).map(move |right| (key(left, right), row.cell(right) as usize))
        })
    }
}

/// One thread's counts of pairs.
#[derive(Debug)]
pub(super) struct Accumulator<'s> {
    shape: &'s Shape,
    weights: &'s [u32],
    cells: Vec<u32>,
    /// Per block of cells, [`DUE`] places for additions: the cell's number in the block, then the distance. Made at once, since each would wait for
    /// memory: its cell and, among so many, the cell's page as well.
    due: Vec<u32>,
    /// Per block, the place of its next addition.
    next: Vec<u32>,
    /// What no longer fitted into a cell.
    carried: BTreeMap<usize, u64>,
    /// Keys with distances that wait to be sorted.
    waiting: Vec<u64>,
    most: usize,
    runs: Runs,
}

impl<'s> Accumulator<'s> {
    /// Counts nothing yet. `weights` says how much a pair at each distance counts; `waiting` keys are sorted at a time.
    pub(super) fn new(shape: &'s Shape, weights: &'s [u32], waiting: usize, room: &Room) -> Self {
        let blocks = shape.cells.div_ceil(1 << BLOCK);
        // At most 2^12 blocks of 2^15 places.
        let place = |block: usize| u32::try_from(block * DUE as usize).unwrap_or(0);
        Self {
            shape,
            weights,
            cells: vec![0; shape.cells],
            due: vec![0; blocks * DUE as usize],
            next: (0..blocks).map(place).collect(),
            carried: BTreeMap::new(),
            waiting: Vec::with_capacity(waiting.max(1)),
            most: waiting.max(1),
            runs: Runs::new(room),
        }
    }

    /// Counts a pair. Where order does not count, the smaller rank comes first.
    #[inline]
    pub(super) fn add(&mut self, a: u32, b: u32, distance: u32) -> Result<(), Error> {
        let (left, right) = match self.shape.order {
            Order::Symmetric => (a.min(b), a.max(b)),
            Order::Directed => (a, b),
        };
        let row = self.shape.rows[left as usize];
        if right < row.limit {
            let cell = row.cell(right);
            let block = (cell >> BLOCK) as usize;
            let next = &mut self.next[block];
            self.due[*next as usize] = (cell & ((1 << BLOCK) - 1)) << DISTANCE | distance;
            *next += 1;
            if next.is_multiple_of(DUE) {
                *next -= DUE;
                self.settle(block, DUE as usize);
            }
            return Ok(());
        }
        self.waiting.push(key(left, right) << DISTANCE | u64::from(distance));
        if self.waiting.len() >= self.most { self.spill() } else { Ok(()) }
    }

    /// Makes the first `due` additions that wait for a block.
    fn settle(&mut self, block: usize, due: usize) {
        let first = block << BLOCK;
        let end = (first + (1 << BLOCK)).min(self.cells.len());
        let (cells, weights) = (&mut self.cells[first..end], self.weights);
        for &addition in &self.due[block * DUE as usize..][..due] {
            let at = (addition >> DISTANCE) as usize;
            let (sum, over) = cells[at].overflowing_add(weights[(addition & ((1 << DISTANCE) - 1)) as usize]);
            cells[at] = sum;
            if over {
                *self.carried.entry(first + at).or_insert(0) += 1 << 32;
            }
        }
    }

    fn spill(&mut self) -> Result<(), Error> {
        self.waiting.sort_unstable();
        let weights = self.weights;
        let groups = self.waiting.chunk_by(|a, b| a >> DISTANCE == b >> DISTANCE);
        self.runs.push(groups.map(|group| {
            let weight = |key: &u64| u64::from(weights[(key & ((1 << DISTANCE) - 1)) as usize]);
            (group[0] >> DISTANCE, group.iter().map(weight).sum())
        }))?;
        self.waiting.clear();
        Ok(())
    }

    /// All that was counted, as runs.
    pub(super) fn finish(mut self) -> Result<Runs, Error> {
        if !self.waiting.is_empty() {
            self.spill()?;
        }
        self.waiting = Vec::new();
        for block in 0..self.next.len() {
            self.settle(block, (self.next[block] % DUE) as usize);
        }
        let (cells, carried) = (&self.cells, &self.carried);
        let counted = self.shape.pairs().map(|(key, cell)| {
            let more = if carried.is_empty() { 0 } else { carried.get(&cell).copied().unwrap_or(0) };
            (key, u64::from(cells[cell]) + more)
        });
        self.runs.push(counted.filter(|(_, count)| *count > 0))?;
        Ok(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::cancel::CancelToken;

    fn counted(order: Order, most_cells: usize, waiting: usize) -> Vec<(u64, u64)> {
        let (shape, weights) = (Shape::new(50, most_cells, usize::MAX, order), [0, 3_000_000_000, 7]);
        assert!(shape.cells <= most_cells);
        let room = Room { memory: 0, threads: 1, folder: std::env::temp_dir(), cancel: CancelToken::NEVER };
        let mut pairs = Accumulator::new(&shape, &weights, waiting, &room);
        let mut state = 1u64;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [a, b, d] = [state >> 33, state >> 40, state >> 50].map(|x| u32::try_from(x % 50).unwrap());
            pairs.add(a * a / 50, b, 1 + d % 2).unwrap();
        }
        pairs.finish().unwrap().entries(0..u64::MAX).unwrap()
    }

    #[test]
    fn neither_cells_nor_what_waits_changes_a_count() {
        for order in [Order::Symmetric, Order::Directed] {
            let plain = counted(order, 0, 1 << 20);
            assert!(plain.is_sorted() && plain.len() > 500);
            assert_eq!(
                plain.iter().filter(|(key, _)| ranks(*key).0 > ranks(*key).1).count() > 0,
                order == Order::Directed
            );
            for (cells, waiting) in [(100, 10), (2_000, 7), (10_000, 1), (10_000, 10_000)] {
                assert_eq!(counted(order, cells, waiting), plain, "{cells} {waiting}");
            }
        }
    }
}
