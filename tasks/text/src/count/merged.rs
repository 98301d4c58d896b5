//! Counts of the shards of a corpus put together, each exactly once.

use std::path::PathBuf;

use base::self_check;
use base::setting::InvalidSetting;

use super::accumulate::key;
use super::pass::{Counts, Of, ranks};
use super::read::Read;
use super::runs::Runs;
use super::scan::OUT;
use super::schema::{INDEX, Index, Table};
use super::shard::misfits;
use super::{Adjacent, Config, Counting, Error, Order, Room};
use crate::lexicon::Lexicon;

/// Puts the counts of shards together: what comes out is, byte for byte, what counting all of the corpus at once gives. `limits` are
/// `min_count` and `max_words` of the whole.
///
/// # Errors
/// When a folder has no counts, a shard is missing, there twice or of another corpus, the shards were counted in different ways, or words are
/// missing from one because of a limit.
pub fn merge(
    folders: &[PathBuf],
    min_count: u64,
    max_words: Option<usize>,
    room: &Room,
) -> Result<Counts, Error> {
    room.check()?;
    let of = prove(folders)?;
    let Shards { read, lexicon, numbers, units } = Shards::read(folders, room)?;
    let Some(first) = read.first() else {
        return Err(InvalidSetting::new("shards", 0, "at least 1").into());
    };
    let mut config = first.index.config.clone();
    (config.min_count, config.max_words) = (min_count, max_words);
    config.check()?;
    let (ranked, rank_of) = ranks(&lexicon, &config)?;
    let by_unit = !matches!(config.pairs, Counting::Distance(_));
    let of_rank = ranked.iter().take(if by_unit { ranked.len() } else { 0 });
    let units_of = of_rank.map(|&number| units[number as usize]).collect();
    drop(units);
    let ranks: Vec<Vec<u32>> =
        numbers.into_iter().map(|all| all.into_iter().map(|n| rank_of[n as usize]).collect()).collect();
    let pairs = pairs(&read, &ranks, Table::Pairs, room, config.order())?;
    let adjacent = (config.adjacent == Adjacent::Count)
        .then(|| self::pairs(&read, &ranks, Table::Adjacent, room, Order::Directed))
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

/// The corpus that the folders are all shards of, each once.
fn prove(folders: &[PathBuf]) -> Result<Of, Error> {
    let read = |folder: &PathBuf| self_check::read::<Index>(&folder.join(INDEX));
    let indices: Vec<Index> = folders.iter().map(read).collect::<Result<_, _>>()?;
    let Some(first) = indices.first() else {
        return Err(InvalidSetting::new("shards", 0, "at least 1").into());
    };
    let problems = misfits(folders, &indices);
    if !problems.is_empty() {
        return Err(Error::Shards { problems: problems.join("; ") });
    }
    let documents = indices.iter().map(|index| index.documents).sum();
    Ok(Of { corpus: first.corpus.clone(), shard: None, documents })
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
        for folder in folders {
            let mut shard = Read::open(folder)?.until(room.cancel.clone());
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

fn pairs(read: &[Read], ranks: &[Vec<u32>], table: Table, room: &Room, order: Order) -> Result<Runs, Error> {
    let most = (room.memory / 4 / size_of::<(u64, u64)>()).max(1);
    let (mut runs, mut waiting) = (Runs::new(room), Vec::new());
    for (shard, ranks) in read.iter().zip(ranks) {
        shard.pairs(table, |pair| {
            let [mut left, mut right] = [pair.left, pair.right].map(|rank| ranks[rank as usize]);
            if left == OUT || right == OUT {
                return Ok::<(), Error>(());
            }
            if order == Order::Symmetric && left > right {
                (left, right) = (right, left);
            }
            waiting.push((key(left, right), pair.count));
            if waiting.len() == most { spill(&mut runs, &mut waiting) } else { Ok(()) }
        })?;
    }
    spill(&mut runs, &mut waiting)?;
    Ok(runs)
}

fn spill(runs: &mut Runs, waiting: &mut Vec<(u64, u64)>) -> Result<(), Error> {
    waiting.sort_unstable();
    // Two shards may have the same pair; the runs have each key once.
    waiting.dedup_by(|next, kept| {
        let same = next.0 == kept.0 && kept.1.checked_add(next.1).is_some();
        if same {
            kept.1 += next.1;
        }
        same
    });
    runs.push(waiting.drain(..))
}
