//! The pass over the spooled words that counts pairs, all words being known.

use std::{io, thread};

use super::accumulate::{Accumulator, Shape};
use super::corpus::Corpus;
use super::feed::Spooled;
use super::part::Share;
use super::runs::Runs;
use super::scan::{OUT, Scanner, places};
use super::spool::Unwinding;
use super::{Adjacent, Config, Counting, Error, MOST_WORDS, Order, Room};
use crate::lexicon::Lexicon;

/// More cells than this are slower than sorting: they no longer stay near the processor.
const MOST_CELLS: usize = 1 << 26;
/// Bytes of the program itself.
const PROGRAM: usize = 8 << 20;

/// What was counted, ready to be written.
#[derive(Debug)]
pub struct Counts {
    pub(super) config: Config,
    pub(super) lexicon: Lexicon,
    /// The words that are kept, by rank.
    pub(super) ranked: Vec<u32>,
    /// Per rank, how many units have the word; empty where pairs are counted by distance.
    pub(super) units_of: Vec<u64>,
    pub(super) of: Of,
    pub(super) segments: u64,
    pub(super) units: u64,
    pub(super) skipped: u64,
    pub(super) pairs: Runs,
    pub(super) adjacent: Option<Runs>,
}

/// What was counted: which corpus, and how much of it.
#[derive(Debug)]
pub(super) struct Of {
    pub(super) corpus: Corpus,
    pub(super) share: Share,
    pub(super) documents: u64,
}

impl Counts {
    /// What was counted.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// Words by rank, and the rank of each number, or [`OUT`].
pub(super) fn ranks(lexicon: &Lexicon, config: &Config) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let mut ranked = lexicon.ranked();
    let most = config.max_words.unwrap_or(usize::MAX);
    let kept = ranked.partition_point(|&number| lexicon.count(number) >= config.min_count).min(most);
    if kept > MOST_WORDS {
        return Err(Error::TooMany);
    }
    ranked.truncate(kept);
    let mut rank_of = vec![OUT; lexicon.len()];
    for (rank, &number) in (0..).zip(&ranked) {
        rank_of[number as usize] = rank;
    }
    Ok((ranked, rank_of))
}

/// Counts the pairs of what was spooled.
pub(super) fn pairs(config: &Config, room: &Room, spooled: Vec<Spooled>, of: Of) -> Result<Counts, Error> {
    let segments = spooled.iter().map(|s| s.segments).sum();
    let mut lexicon = Lexicon::default();
    let mut parts = Vec::new();
    for Spooled { lexicon: own, spool, .. } in spooled {
        let numbers = 0..u32::try_from(own.len()).map_err(|_| Error::TooMany)?;
        let ours: Vec<u32> = numbers.map(|n| lexicon.add(own.word(n), own.count(n))).collect();
        parts.push((spool.unwind().map_err(Error::temporary(&room.folder))?, ours));
    }
    let (ranked, rank_of) = ranks(&lexicon, config)?;
    for number in parts.iter_mut().flat_map(|(_, ours)| ours) {
        *number = rank_of[*number as usize];
    }
    drop(rank_of);
    let plan = Plan::new(config, room, ranked.len(), &lexicon);
    let counted: Vec<Part> = thread::scope(|scope| {
        let plan = &plan;
        let start = |(spool, ranks): (_, Vec<u32>)| {
            thread::Builder::new().spawn_scoped(scope, move || plan.part(spool, &ranks))
        };
        let workers: io::Result<Vec<_>> = parts.into_iter().map(start).collect();
        let joined = workers.map_err(Error::Thread)?.into_iter().map(|worker| match worker.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<_, _>>()
    })?;
    let units_of = vec![0; if plan.is_by_unit() { ranked.len() } else { 0 }];
    let mut counts = Counts {
        config: config.clone(),
        lexicon,
        ranked,
        units_of,
        of,
        segments,
        units: 0,
        skipped: 0,
        pairs: Runs::new(room),
        adjacent: plan.adjacent.is_some().then(|| Runs::new(room)),
    };
    for part in counted {
        counts.units += part.scanner.units;
        counts.skipped += part.skipped;
        counts.units_of.iter_mut().zip(&part.scanner.units_of).for_each(|(sum, more)| *sum += more);
        counts.pairs.append(part.pairs);
        if let (Some(all), Some(more)) = (&mut counts.adjacent, part.adjacent) {
            all.append(more);
        }
    }
    Ok(counts)
}

/// How all threads count.
struct Plan<'r> {
    counting: Counting,
    words: usize,
    /// Different words that a segment may have for its pairs to count.
    most: usize,
    room: &'r Room,
    weights: Vec<u32>,
    shape: Shape,
    adjacent: Option<Shape>,
    /// Keys that wait to be sorted, per thread and table.
    waiting: usize,
}

/// What one thread has counted.
struct Part {
    scanner: Scanner,
    skipped: u64,
    pairs: Runs,
    adjacent: Option<Runs>,
}

impl<'r> Plan<'r> {
    fn new(config: &Config, room: &'r Room, words: usize, lexicon: &Lexicon) -> Self {
        // Besides what is counted there are the program, the words, the numbers of each thread's own ones, and buffers.
        let taken = PROGRAM + lexicon.bytes() + room.threads * (lexicon.len() * 12 + (4 << 20));
        let each = (room.memory.saturating_sub(taken) / room.threads).max(1 << 20);
        let tables = if config.adjacent == Adjacent::Count { 2 } else { 1 };
        let bytes = each / tables / 2;
        let adjacent = (tables > 1).then(|| Shape::new(words, MOST_CELLS, bytes, Order::Directed));
        Self {
            counting: config.pairs,
            words,
            most: config.most_distinct(),
            room,
            weights: config.weights(),
            shape: Shape::new(words, MOST_CELLS, bytes, config.order()),
            adjacent,
            waiting: bytes / 8,
        }
    }

    fn is_by_unit(&self) -> bool {
        !matches!(self.counting, Counting::Distance(_))
    }

    fn part(&self, mut spool: Unwinding, ranks: &[u32]) -> Result<Part, Error> {
        let mut scanner = Scanner::new(self.counting, self.words);
        let folder = &self.room.folder;
        let mut pairs = Accumulator::new(&self.shape, &self.weights, self.waiting, self.room);
        let mut adjacent =
            self.adjacent.as_ref().map(|shape| Accumulator::new(shape, &[1, 1], self.waiting, self.room));
        let (mut segment, mut words, mut skipped) = (Vec::new(), 0, 0);
        let mut distinct = Vec::new();
        while spool.next(&mut segment).map_err(Error::temporary(folder))?.is_some() {
            if words >> 16 != (words + segment.len()) >> 16 {
                self.room.cancel.check()?;
            }
            words += segment.len();
            // Before words are left out, so that shards, which keep all of them, skip what the whole does.
            let skips = segment.len() > self.most && {
                distinct.clone_from(&segment);
                distinct.sort_unstable();
                distinct.dedup();
                distinct.len() > self.most
            };
            for word in &mut segment {
                *word = ranks[*word as usize];
            }
            if skips {
                skipped += 1;
            } else {
                scanner.segment(&segment, &mut pairs)?;
            }
            if let Some(adjacent) = &mut adjacent {
                places(&segment, 1, adjacent)?;
            }
        }
        let pairs = pairs.finish()?;
        Ok(Part { scanner, skipped, pairs, adjacent: adjacent.map(Accumulator::finish).transpose()? })
    }
}
