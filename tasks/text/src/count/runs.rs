//! Sorted runs of counted keys, and their sum in order: of all keys, or of ranges of them side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::run::{BUFFER, Entry, MARK, Reading, Run, Stretch, Writing};
use super::{Error, Room};

/// So many runs are merged into a longer one before there are more of their kind: each open one has a buffer. More than four threads share as many as four have, since
/// each run is an open file.
const MOST_RUNS: usize = 48;
/// Every thread may have as many all the same, and as many of each longer kind.
const LEAST_RUNS: usize = 8;
/// Entries of all lists or runs that are merged by one thread at a time: few enough to stay near the processor.
const PIECE: usize = 1 << 16;
/// Every key.
const ALL: Range<u64> = 0..u64::MAX;

/// Runs; each has every key once, in ascending order.
#[derive(Debug)]
pub(super) struct Runs {
    /// Runs as they came, then those of so many of these, and so on: a key is written again as seldom as the number of kinds.
    kinds: Vec<Vec<Run>>,
    room: Room,
    most: usize,
}

impl Runs {
    /// None yet; those to come lie in the room's folder, without names.
    pub(super) fn new(room: &Room) -> Self {
        let most = (MOST_RUNS * 4 / room.threads.max(1)).clamp(LEAST_RUNS, MOST_RUNS);
        Self { kinds: Vec::new(), room: room.clone(), most }
    }

    /// None yet, for all threads together: [`Self::push_lists`].
    pub(super) fn shared(room: &Room) -> Self {
        Self { kinds: Vec::new(), room: room.clone(), most: MOST_RUNS }
    }

    /// What was to be counted with.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.iter().map(Vec::len).sum()
    }

    /// Keeps a run. Keys must ascend.
    pub(super) fn push(&mut self, mut entries: impl Iterator<Item = Entry>) -> Result<(), Error> {
        let refused = Error::temporary(&self.room.folder);
        let mut run = Writing::new(&self.room.folder).map_err(&refused)?;
        let mut keys = 0;
        entries.try_for_each(|(key, count)| {
            keys += 1;
            self.room.cancel.check_at(keys)?;
            run.push(key, count).map_err(&refused)
        })?;
        self.keep(0, run.finish().map_err(&refused)?);
        self.settle(|runs, full| {
            let mut run = Writing::new(&runs.room.folder).map_err(&refused)?;
            runs.add_up(full, ALL, |key, count| run.push(key, count).map_err(&refused))?;
            run.finish().map_err(&refused)
        })
    }

    /// Keeps one run of all lists, each of which has keys that ascend: ranges of keys are merged and encoded side by side, by the pool that this is called in.
    pub(super) fn push_lists(&mut self, lists: Vec<Vec<Entry>>) -> Result<(), Error> {
        if lists.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let marks = lists.iter().flatten().skip(MARK).step_by(MARK).map(|entry| entry.0).collect();
        let run = self.merged(&between(marks, PIECE), |keys| {
            let place = |list: &[Entry], key| list.partition_point(|entry| entry.0 < key);
            let within = lists.iter().map(|list| &list[place(list, keys.start)..place(list, keys.end)]);
            let mut entries = within.collect::<Vec<_>>().concat();
            // Digit by digit: lists that are merged would cost a comparison that is hard to predict for each entry and level.
            radsort::sort_by_key(&mut entries, |entry| entry.0);
            add_equal(&mut entries)?;
            Ok(entries)
        })?;
        drop(lists);
        self.keep(0, run);
        self.settle(|runs, full| runs.merged(&ranges(full, PIECE), |keys| runs.sums(full, keys)))
    }

    /// A run of what `entries` has in each of the ranges, which follow each other.
    fn merged(
        &self,
        ranges: &[Range<u64>],
        entries: impl Fn(Range<u64>) -> Result<Vec<Entry>, Error> + Sync,
    ) -> Result<Run, Error> {
        let refused = Error::temporary(&self.room.folder);
        let mut run = Writing::new(&self.room.folder).map_err(&refused)?;
        for some in ranges.chunks(2 * self.at_once()) {
            self.room.cancel.check()?;
            let stretches: Result<Vec<_>, Error> =
                some.par_iter().map(|keys| Stretch::new(&entries(keys.clone())?).map_err(&refused)).collect();
            for stretch in stretches?.into_iter().flatten() {
                run.append(&stretch).map_err(&refused)?;
            }
        }
        run.finish().map_err(&refused)
    }

    /// So many ranges are merged side by side as there are threads, and room for their entries, as they are and while they are sorted, and for a buffer of each run.
    fn at_once(&self) -> usize {
        let each = PIECE * size_of::<Entry>() * 3 + MOST_RUNS * BUFFER;
        (self.room.memory / 4 / each).clamp(1, self.room.threads.max(1))
    }

    /// Merges as many runs of a kind as there may be into one of the next.
    fn settle(&mut self, merged: impl Fn(&Self, &[Run]) -> Result<Run, Error>) -> Result<(), Error> {
        for kind in 0.. {
            let most = if kind == 0 { self.most } else { LEAST_RUNS };
            if self.kinds.get(kind).is_none_or(|runs| runs.len() < most) {
                break;
            }
            let full = std::mem::take(&mut self.kinds[kind]);
            let run = merged(self, &full)?;
            self.keep(kind + 1, run);
        }
        Ok(())
    }

    fn keep(&mut self, kind: usize, run: Run) {
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, Vec::new);
        }
        self.kinds[kind].push(run);
    }

    /// Takes over the runs of another.
    pub(super) fn append(&mut self, other: Self) {
        for (kind, runs) in other.kinds.into_iter().enumerate() {
            runs.into_iter().for_each(|run| self.keep(kind, run));
        }
    }

    /// Ranges of keys that follow each other and are all there are, each with about `entries` entries of all runs together.
    pub(super) fn ranges(&self, entries: usize) -> Vec<Range<u64>> {
        ranges(self.kinds.iter().flatten(), entries)
    }

    /// The keys of a range with the sums of their counts.
    pub(super) fn entries(&self, keys: Range<u64>) -> Result<Vec<Entry>, Error> {
        self.sums(self.kinds.iter().flatten(), keys)
    }

    fn sums<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r Run>,
        keys: Range<u64>,
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        self.add_up(runs, keys, |key, sum| {
            entries.push((key, sum));
            Ok(())
        })?;
        Ok(entries)
    }

    fn add_up<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r Run>,
        keys: Range<u64>,
        mut take: impl FnMut(u64, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let refused = Error::temporary(&self.room.folder);
        let mut open: Vec<Reading> = Vec::new();
        let mut heap = BinaryHeap::new();
        for run in runs {
            let mut reading = Reading::new(run, keys.end);
            if let Some((key, count)) = reading.seek(keys.start).map_err(&refused)? {
                heap.push(Reverse((key, open.len(), count)));
                open.push(reading);
            }
        }
        let mut current: Option<(u64, u64)> = None;
        let mut keys = 0;
        while let Some(mut top) = heap.peek_mut() {
            keys += 1;
            self.room.cancel.check_at(keys)?;
            let Reverse((key, run, count)) = *top;
            match open[run].next().map_err(&refused)? {
                Some((next, count)) => *top = Reverse((next, run, count)),
                None => {
                    PeekMut::pop(top);
                }
            }
            current = match current {
                Some((last, sum)) if last == key => {
                    Some((key, sum.checked_add(count).ok_or(Error::Overflow)?))
                }
                Some((last, sum)) => {
                    take(last, sum)?;
                    Some((key, count))
                }
                None => Some((key, count)),
            };
        }
        current.map_or(Ok(()), |(key, sum)| take(key, sum))
    }
}

/// The ranges of keys of runs, each with about `entries` of their entries.
fn ranges<'r>(runs: impl IntoIterator<Item = &'r Run>, entries: usize) -> Vec<Range<u64>> {
    between(
        runs.into_iter().flat_map(|run| run.marks.iter().skip(1)).map(|mark| mark.last).collect(),
        entries,
    )
}

/// The ranges of keys between some of which there are [`MARK`] entries each, in each about `entries` entries.
fn between(mut lasts: Vec<u64>, entries: usize) -> Vec<Range<u64>> {
    lasts.sort_unstable();
    let step = (entries / MARK).max(1);
    let mut cuts: Vec<u64> = lasts.chunks_exact(step).map(|some| some[step - 1] + 1).collect();
    cuts.dedup();
    let starts = std::iter::once(ALL.start).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain(std::iter::once(ALL.end));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Makes one entry of those with the same key, which follow each other.
fn add_equal(entries: &mut Vec<Entry>) -> Result<(), Error> {
    let mut fits = true;
    entries.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            let (sum, beyond) = kept.1.overflowing_add(next.1);
            kept.1 = sum;
            fits &= !beyond;
        }
        same
    });
    if fits { Ok(()) } else { Err(Error::Overflow) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::cancel::CancelToken;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn room(cancel: CancelToken) -> Room {
        Room { memory: 0, threads: 1, folder: std::env::temp_dir(), cancel }
    }

    #[test]
    fn runs_add_up_in_order_however_many_there_are() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        for run in 0..200u64 {
            runs.push(
                [(run % 7, 1), (100 + run % 3, 1 << 40), (u64::MAX - 1, u64::from(run == 0))].into_iter(),
            )
            .unwrap();
        }
        assert_eq!(runs.kinds.iter().map(Vec::len).collect::<Vec<_>>(), [200 % MOST_RUNS, 200 / MOST_RUNS]);
        let all = runs.entries(ALL).unwrap();
        assert!(all.is_sorted());
        assert_eq!(all.iter().filter(|(key, _)| *key < 7).map(|(_, count)| count).sum::<u64>(), 200);
        assert_eq!(
            all.iter().filter(|(key, _)| (100..103).contains(key)).map(|(_, c)| c >> 40).sum::<u64>(),
            200
        );
        assert_eq!(all.last(), Some(&(u64::MAX - 1, 1)));
        assert!(Runs::new(&room(CancelToken::NEVER)).entries(ALL).unwrap().is_empty());
    }

    #[test]
    fn ranges_side_by_side_are_the_sum_of_all() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        let mut expected = BTreeMap::new();
        for run in 1..=20u64 {
            let entries: Vec<(u64, u64)> =
                (0..run * 300).map(|n| (n * n % 97 + n * (100 + run), n * run)).collect();
            for (key, count) in &entries {
                *expected.entry(*key).or_insert(0) += count;
            }
            runs.push(entries.into_iter()).unwrap();
        }
        let expected: Vec<(u64, u64)> = expected.into_iter().collect();
        for entries in [0, 1, 700, 5_000, usize::MAX] {
            let ranges = runs.ranges(entries);
            assert_eq!(ranges.len() > 20, entries <= 700, "{}", ranges.len());
            assert!(ranges[0].start == 0 && ranges[ranges.len() - 1].end == u64::MAX);
            assert!(ranges.windows(2).all(|two| two[0].end == two[1].start && two[0].start < two[0].end));
            let all: Vec<_> = ranges.into_iter().flat_map(|keys| runs.entries(keys).unwrap()).collect();
            assert!(all == expected, "{entries}");
        }
        // Wherever they begin and end.
        for keys in [5..5, 0..1, 101..102, 1_000..250_000, 400_000..u64::MAX] {
            let within: Vec<_> = expected.iter().copied().filter(|(key, _)| keys.contains(key)).collect();
            assert_eq!(runs.entries(keys).unwrap(), within);
        }
    }

    #[test]
    fn a_run_of_sorted_lists_is_their_sum_and_can_be_entered_anywhere() {
        let list = |of: u64, keys: u64| -> Vec<Entry> {
            (0..keys).map(|n| ((n * (of % 5 + 1)) << (of % 3), n % 3 + (of << 20) + 1)).collect()
        };
        let mut expected = BTreeMap::new();
        let (mut shared, mut one) =
            (Runs::shared(&room(CancelToken::NEVER)), Runs::new(&room(CancelToken::NEVER)));
        shared.push_lists(vec![Vec::new(), Vec::new()]).unwrap();
        assert_eq!(shared.len(), 0);
        let times = MOST_RUNS as u64 + 3;
        for time in 0..times {
            // So many that one thread does not merge them at once, now and then; and some of them empty.
            let keys = if time % 20 == 0 { PIECE as u64 } else { 700 };
            let lists = vec![list(time, keys), Vec::new(), list(time + 1, keys), list(time + 2, 1)];
            for (key, count) in lists.iter().flatten() {
                *expected.entry(*key).or_insert(0) += count;
            }
            shared.push_lists(lists.clone()).unwrap();
            lists.into_iter().for_each(|list| one.push(list.into_iter()).unwrap());
        }
        assert_eq!(shared.kinds.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
        let expected: Vec<Entry> = expected.into_iter().collect();
        assert!(expected.len() > PIECE);
        for runs in [&shared, &one] {
            assert!(runs.entries(ALL).unwrap() == expected);
            let ranges = runs.ranges(1_000);
            assert!(ranges.len() > 100);
            let all: Vec<_> = ranges.into_iter().flat_map(|keys| runs.entries(keys).unwrap()).collect();
            assert!(all == expected);
        }
        for keys in [0..1, 511..514, 65_530..65_545, 300_000..300_001] {
            let within: Vec<_> = expected.iter().copied().filter(|(key, _)| keys.contains(key)).collect();
            assert_eq!(shared.entries(keys).unwrap(), within);
        }
    }

    #[test]
    fn a_sum_beyond_64_bits_is_an_error() {
        let mut runs = Runs::new(&room(CancelToken::NEVER));
        runs.push([(1, u64::MAX)].into_iter()).unwrap();
        runs.push([(1, 1)].into_iter()).unwrap();
        assert!(matches!(runs.entries(ALL), Err(Error::Overflow)));
        let lists = vec![vec![(0, 1), (1, u64::MAX)], vec![(1, 1), (2, 1)]];
        assert!(matches!(Runs::shared(&room(CancelToken::NEVER)).push_lists(lists), Err(Error::Overflow)));
    }

    #[test]
    fn a_long_run_and_a_long_sum_hear_that_they_are_to_stop() {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&asked);
        let mut runs = Runs::new(&room(CancelToken::when(move || flag.load(Ordering::Relaxed))));
        let many = || (0..100_000).map(|key| (key, 1));
        runs.push(many()).unwrap();
        asked.store(true, Ordering::Relaxed);
        assert!(matches!(runs.push(many()), Err(Error::Interrupted(_))));
        assert!(matches!(runs.push_lists(vec![many().collect()]), Err(Error::Interrupted(_))));
        assert!(matches!(runs.entries(ALL), Err(Error::Interrupted(_))));
    }
}
