//! Counts of the shards of a corpus put together. Knows no text.

use std::path::PathBuf;

use super::accumulate::key;
use super::pass::{Counts, ranks};
use super::read::Read;
use super::runs::Runs;
use super::scan::OUT;
use super::schema::Table;
use super::{Adjacent, Counting, Error, Order, Room};
use crate::corpus::lexicon::Lexicon;
use crate::stop::Stop;
use crate::unfit::Unfit;

/// Puts the counts of shards together: what comes out is, byte for byte, what counting all of the corpus at once gives. `limits` are
/// `min_count` and `max_words` of the whole.
///
/// # Errors
/// When a folder has no counts, the shards were counted in different ways, or words are missing from one because of a limit.
pub fn merge(
    folders: &[PathBuf],
    (min_count, max_words): (u64, Option<usize>),
    room: &Room,
) -> Result<Counts, Error> {
    room.check()?;
    let read = shards(folders, &room.stop)?;
    let Some(first) = read.first() else {
        return Err(Unfit::new("shards", 0, "at least 1").into());
    };
    let mut config = first.index.config.clone();
    (config.min_count, config.max_words) = (min_count, max_words);
    config.check()?;
    let mut lexicon = Lexicon::default();
    let numbers: Vec<Vec<u32>> = read
        .iter()
        .map(|shard| shard.words.iter().map(|w| lexicon.add(&w.letters, w.occurrences)).collect())
        .collect();
    let (ranked, rank_of) = ranks(&lexicon, &config)?;
    let by_unit = !matches!(config.pairs, Counting::Distance(_));
    let mut units_of = vec![0; if by_unit { ranked.len() } else { 0 }];
    for (shard, numbers) in read.iter().zip(&numbers) {
        for (word, &number) in shard.words.iter().zip(numbers) {
            if let Some(sum) = units_of.get_mut(rank_of[number as usize] as usize) {
                *sum += word.units.unwrap_or(0);
            }
        }
    }
    let ranks: Vec<Vec<u32>> =
        numbers.into_iter().map(|all| all.into_iter().map(|n| rank_of[n as usize]).collect()).collect();
    let symmetric = config.order() == Order::Symmetric;
    let pairs = pairs(&read, &ranks, Table::Pairs, (room, symmetric))?;
    let adjacent = (config.adjacent == Adjacent::Count)
        .then(|| self::pairs(&read, &ranks, Table::Adjacent, (room, false)))
        .transpose()?;
    let sum = |of: fn(&Read) -> u64| read.iter().map(of).sum();
    Ok(Counts {
        config,
        lexicon,
        ranked,
        units_of,
        documents: sum(|r| r.index.documents),
        segments: sum(|r| r.index.segments),
        units: sum(|r| r.index.units),
        pairs,
        adjacent,
    })
}

/// The shards, all counted in one way.
fn shards(folders: &[PathBuf], stop: &Stop) -> Result<Vec<Read>, Error> {
    let open = |folder: &PathBuf| Ok(Read::open(folder)?.until(stop.clone()));
    let read: Vec<Read> = folders.iter().map(open).collect::<Result<_, Error>>()?;
    for (shard, folder) in read.iter().zip(folders) {
        let problem = if shard.index.config != read[0].index.config {
            format!("was counted in another way than {}: count both with one config", folders[0].display())
        } else if shard.index.words != shard.index.distinct {
            "lacks words: count shards without min_count and max_words, and set them here".to_owned()
        } else {
            continue;
        };
        return Err(Error::Read { file: folder.clone(), problem });
    }
    Ok(read)
}

fn pairs(
    read: &[Read],
    ranks: &[Vec<u32>],
    table: Table,
    (room, symmetric): (&Room, bool),
) -> Result<Runs, Error> {
    let most = (room.memory / 4 / size_of::<(u64, u64)>()).max(1);
    let (mut runs, mut waiting) = (Runs::new(room), Vec::new());
    for (shard, ranks) in read.iter().zip(ranks) {
        shard.pairs(table, |pair| {
            let [mut left, mut right] = [pair.left, pair.right].map(|rank| ranks[rank as usize]);
            if left == OUT || right == OUT {
                return Ok::<(), Error>(());
            }
            if symmetric && left > right {
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
