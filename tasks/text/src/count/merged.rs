//! Counts of the shards or parts of a corpus put together, each exactly once.

use std::path::{Path, PathBuf};
use std::thread;

use base::self_check;
use base::setting::InvalidSetting;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::accumulate::key;
use super::corpus::Corpus;
use super::part::{Extent, Share};
use super::pass::{Counts, Of, ranks};
use super::piece::{Met, Piece, pieces};
use super::read::Read;
use super::run::Entry;
use super::runs::Runs;
use super::scan::OUT;
use super::schema::{INDEX, Index, Table};
use super::shard::misfits;
use super::{Adjacent, Config, Counting, Error, Order, Room};
use crate::lexicon::Lexicon;

/// Words that are left out of what is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// See [`Config::min_count`].
    pub min_count: u64,
    /// See [`Config::max_words`].
    pub max_words: Option<usize>,
}

/// Puts the counts of shards together: what comes out is, byte for byte, what counting all of the corpus at once gives.
///
/// # Errors
/// When a folder has no counts, a shard is missing, there twice or of another corpus, the shards were counted in different ways, or words are
/// missing from one because of a limit.
pub fn merge(shards: &[PathBuf], limits: Limits, room: &Room) -> Result<Counts, Error> {
    room.check()?;
    let indices = indices(shards)?;
    let part = indices.iter().position(|index| index.extent == Extent::Part);
    let problems = match part {
        Some(part) => vec![format!("{} holds a part of a corpus", shards[part].display())],
        None => misfits(shards, &indices),
    };
    if !problems.is_empty() {
        return Err(Error::Shards { problems: problems.join("; ") });
    }
    // All of them have met all documents.
    let corpus = corpus(&shards[0], &indices[0])?;
    put_together(shards, Of { corpus, share: Share::Whole, documents: documents(&indices) }, limits, room)
}

/// Joins the counts of parts, which follow each other in this order, to those of `share`, the corpus or again a part of it: byte for byte what
/// counting all of it at once gives, in however many steps.
///
/// # Errors
/// When a folder has no counts or those of a shard, the parts were counted in different ways, or words are missing from one because of a limit.
pub fn join(parts: &[PathBuf], share: Share, limits: Limits, room: &Room) -> Result<Counts, Error> {
    room.check()?;
    let indices = indices(parts)?;
    let mut corpus = Corpus::EMPTY;
    for (folder, index) in parts.iter().zip(&indices) {
        if let Some(shard) = index.shard {
            let problem = format!("{} is shard {}", folder.display(), String::from(shard));
            return Err(Error::Read { file: folder.clone(), problem: format!("{problem}, and no part") });
        }
        corpus = corpus.then(self::corpus(folder, index)?);
    }
    put_together(parts, Of { corpus, share, documents: documents(&indices) }, limits, room)
}

fn indices(folders: &[PathBuf]) -> Result<Vec<Index>, Error> {
    if folders.is_empty() {
        return Err(InvalidSetting::new("shards", 0, "at least 1").into());
    }
    folders.iter().map(|folder| Ok(self_check::read::<Index>(&folder.join(INDEX))?)).collect()
}

fn documents(indices: &[Index]) -> u64 {
    indices.iter().map(|index| index.documents).sum()
}

fn corpus(folder: &Path, index: &Index) -> Result<Corpus, Error> {
    Corpus::read(&index.corpus, index.documents).ok_or_else(|| Error::Read {
        file: folder.join(INDEX),
        problem: format!("corpus is {:?}, which is no digest; count again", index.corpus),
    })
}

fn put_together(folders: &[PathBuf], of: Of, limits: Limits, room: &Room) -> Result<Counts, Error> {
    let Shards { read, lexicon, numbers, units } = Shards::read(folders, room)?;
    let Some(first) = read.first() else {
        return Err(InvalidSetting::new("shards", 0, "at least 1").into());
    };
    let mut config = first.index.config.clone();
    (config.min_count, config.max_words) = (limits.min_count, limits.max_words);
    config.check()?;
    let (ranked, rank_of) = ranks(&lexicon, &config)?;
    let by_unit = !matches!(config.pairs, Counting::Distance(_));
    let of_rank = ranked.iter().take(if by_unit { ranked.len() } else { 0 });
    let units_of = of_rank.map(|&number| units[number as usize]).collect();
    drop(units);
    let ranks: Vec<Vec<u32>> =
        numbers.into_iter().map(|all| all.into_iter().map(|n| rank_of[n as usize]).collect()).collect();
    let shards = Ranked { read: &read, ranks: &ranks, room, most: room.memory / 4 / size_of::<Entry>() };
    let pairs = shards.pairs(Table::Pairs, config.order())?;
    let adjacent = (config.adjacent == Adjacent::Count)
        .then(|| shards.pairs(Table::Adjacent, Order::Directed))
        .transpose()?;
    let sum = |of: fn(&Read) -> u64| read.iter().map(of).sum();
    Ok(Counts {
        config,
        lexicon,
        ranked,
        units_of,
        of,
        segments: sum(|r| r.index.segments),
        units: sum(|r| r.index.units),
        skipped: sum(|r| r.index.skipped),
        pairs,
        adjacent,
    })
}

/// The shards, all counted in one way, and their words, each of which is held once.
struct Shards {
    /// Without words.
    read: Vec<Read>,
    lexicon: Lexicon,
    /// For each shard, the numbers of its words.
    numbers: Vec<Vec<u32>>,
    /// Per number: how many units have the word.
    units: Vec<u64>,
}

impl Shards {
    fn read(folders: &[PathBuf], room: &Room) -> Result<Self, Error> {
        let mut all =
            Self { read: Vec::new(), lexicon: Lexicon::default(), numbers: Vec::new(), units: Vec::new() };
        for (folder, shard) in opened(folders, room) {
            let mut shard = shard?.until(room.cancel.clone());
            let first = all.read.first().map(|first: &Read| &first.index.config);
            if let Some(problem) = misfit(&shard, first.map(|config| (config, &folders[0]))) {
                return Err(Error::Read { file: folder.clone(), problem });
            }
            let mut numbers = Vec::with_capacity(shard.words.len());
            for word in std::mem::take(&mut shard.words) {
                let number = all.lexicon.add(&word.letters, word.occurrences);
                all.units.resize(all.lexicon.len(), 0);
                all.units[number as usize] += word.units.unwrap_or(0);
                numbers.push(number);
            }
            all.numbers.push(numbers);
            all.read.push(shard);
            let (bytes, words) = (all.bytes(), all.lexicon.len());
            if bytes > room.memory / 4 {
                return Err(Error::Words { words, bytes, memory: room.memory });
            }
        }
        Ok(all)
    }

    fn bytes(&self) -> usize {
        let numbers: usize = self.numbers.iter().map(|numbers| numbers.capacity() * 4).sum();
        self.lexicon.bytes() + self.units.capacity() * 8 + numbers
    }
}

/// What keeps a shard from being put to the first one, whose config and folder are given; nothing keeps the first itself.
fn misfit(shard: &Read, first: Option<(&Config, &PathBuf)>) -> Option<String> {
    match first {
        Some((config, folder)) if shard.index.config != *config => {
            Some(format!("was counted in another way than {}: count both with one config", folder.display()))
        }
        _ => (shard.index.words != shard.index.distinct).then(|| {
            "lacks words: count shards without min_count and max_words, and set them here".to_owned()
        }),
    }
}

/// The folders one after the other, so many read at once as there are threads.
fn opened<'f>(
    folders: &'f [PathBuf],
    room: &Room,
) -> impl Iterator<Item = (&'f PathBuf, Result<Read, Error>)> {
    folders.chunks(room.threads).flat_map(|some| {
        let read: Vec<_> = thread::scope(|scope| {
            let start = |folder: &'f PathBuf| scope.spawn(move || Read::open(folder));
            let readers: Vec<_> = some.iter().map(start).collect();
            readers.into_iter().map(joined).collect()
        });
        some.iter().zip(read)
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Shards, the ranks of their words in the whole, and what their pairs are put together with.
struct Ranked<'r> {
    read: &'r [Read],
    ranks: &'r [Vec<u32>],
    room: &'r Room,
    /// Pairs that make a run.
    most: usize,
}

impl Ranked<'_> {
    /// The pairs of all shards by their ranks in the whole. As many row groups as memory holds are read and sorted side by side and make one run, whatever the number of
    /// threads.
    fn pairs(&self, table: Table, order: Order) -> Result<Runs, Error> {
        let pool = self.room.pool(self.room.threads)?;
        let met = vec![Vec::new(); self.read.len()];
        let mut all = Waiting { order, met, groups: Vec::new(), runs: Runs::shared(self.room) };
        let mut rows = 0;
        for (shard, (read, ranks)) in self.read.iter().zip(self.ranks).enumerate() {
            for piece in pieces(read, table)? {
                if rows + piece.rows > self.most {
                    pool.install(|| all.run())?;
                    rows = 0;
                }
                rows += piece.rows;
                all.groups.push(Group { shard, piece, ranks });
            }
        }
        pool.install(|| all.run())?;
        self.read.iter().zip(&all.met).try_for_each(|(shard, met)| shard.complete(table, met))?;
        Ok(all.runs)
    }
}

/// Row groups that are to make a run together.
struct Waiting<'r> {
    order: Order,
    groups: Vec<Group<'r>>,
    runs: Runs,
    /// Per shard, what was met in its row groups.
    met: Vec<Vec<Met>>,
}

/// A row group with the ranks in the whole of its shard's words.
struct Group<'r> {
    shard: usize,
    piece: Piece<'r>,
    ranks: &'r [u32],
}

impl Waiting<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let read: Result<Vec<_>, Error> =
            self.groups.par_iter().map(|group| group.sorted(self.order)).collect();
        let (met, lists): (Vec<Met>, Vec<Vec<Entry>>) = read?.into_iter().unzip();
        for (group, met) in self.groups.drain(..).zip(met) {
            self.met[group.shard].push(met);
        }
        self.runs.push_lists(lists)
    }
}

impl Group<'_> {
    fn sorted(&self, order: Order) -> Result<(Met, Vec<Entry>), Error> {
        let mut entries = Vec::with_capacity(self.piece.rows);
        let met = self.piece.pairs(None, |pair| {
            let [mut left, mut right] = [pair.left, pair.right].map(|rank| self.ranks[rank as usize]);
            if left == OUT || right == OUT {
                return Ok::<(), Error>(());
            }
            if order == Order::Symmetric && left > right {
                (left, right) = (right, left);
            }
            entries.push((key(left, right), pair.count));
            Ok(())
        })?;
        radsort::sort_by_key(&mut entries, |entry| entry.0);
        Ok((met, entries))
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::tests::{room, three_words, write};
    use super::*;
    use base::cancel::CancelToken;

    /// What the joined pairs of shards are, put together in runs of so many.
    fn joined(read: &[Read], room: &Room, most: usize) -> Result<(usize, Vec<Entry>), Error> {
        // The words of the second stand the other way round in the whole.
        let ranks = [vec![0, 1, 2], vec![2, 1, 0]];
        let runs = Ranked { read, ranks: &ranks, room, most }.pairs(Table::Pairs, Order::Symmetric)?;
        Ok((runs.len(), runs.entries(0..u64::MAX)?))
    }

    #[test]
    fn pairs_are_the_same_however_few_make_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["a", "b"].map(|name| three_words(&dir.path().join(name)));
        write(&folders[0], &[(0, 1, 1), (0, 2, 1), (1, 2, 1)]);
        write(&folders[1], &[(0, 1, 1), (0, 2, 1), (1, 2, 1)]);
        let read = folders.each_ref().map(|folder| Read::open(folder).unwrap());
        let sum = vec![(key(0, 1), 2), (key(0, 2), 2), (key(1, 2), 2)];
        for threads in [1, 3] {
            let room = Room { threads, ..room(dir.path()) };
            for (most, runs) in [(usize::MAX, 1), (4, 2), (2, 4), (0, 4)] {
                assert_eq!(joined(&read, &room, most).unwrap(), (runs, sum.clone()), "{threads}, {most}");
            }
        }
        // In another order, of which no run knows.
        write(&folders[1], &[(0, 2, 1), (1, 2, 1), (0, 1, 1)]);
        let error = joined(&read, &room(dir.path()), 2).unwrap_err().to_string();
        assert!(error.contains("b/pairs.parquet: row 2: the pair (0, 1)"), "{error}");
        let stopped = Room { cancel: CancelToken::when(|| true), ..room(dir.path()) };
        let read = read.map(|read| read.until(stopped.cancel.clone()));
        assert!(matches!(joined(&read, &stopped, 2), Err(Error::Interrupted(_))));
    }
}
