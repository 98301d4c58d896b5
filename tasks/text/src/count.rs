//! How often words, and pairs of words, occur together in a corpus: exact counts under a bound on memory.
//!
//! Texts are split into words and spooled to disk as numbers; when all words are known, pairs are counted by their ranks: those of
//! frequent words in an array, all others as keys that are sorted, summed and merged from disk. Everything that is added up is a
//! whole number, so neither the number of threads nor the bound on memory nor the way a corpus was cut into shards changes a byte.

mod accumulate;
mod corpus;
mod feed;
mod merged;
mod part;
mod pass;
mod piece;
mod read;
mod run;
mod runs;
mod scan;
mod schema;
mod shard;
mod spool;
pub(super) mod table;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use base::cancel::{CancelToken, Cancelled};
use base::self_check;
use base::setting::InvalidSetting;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};

pub use feed::{Feed, count};
pub use merged::{Limits, join, merge};
pub use part::{Extent, Share};
pub use pass::Counts;
pub use read::{Pair, Read, Word};
pub use schema::{INDEX, Index, Table, Total, VERSION};
pub use shard::Shard;

use crate::word::Case;

/// The most words that a vocabulary may have: a pair and its distance share 64 bits.
pub const MOST_WORDS: usize = 1 << 28;
/// The widest window with weights 1/distance: beyond it the smallest common unit of the weights grows past what sums can hold.
pub const WIDEST_INVERSE: usize = 22;
/// The widest window: a distance has 8 bits.
pub const WIDEST: usize = 255;

/// Different words of a sentence whose pairs are counted by presence, where nothing else is said: the longest that people write have some
/// hundreds, a table or a damaged text without a full stop has more.
pub const MOST_IN_SENTENCE: usize = 1_000;
/// Those of a document: long articles have a few thousand, and ten thousand make fifty million pairs.
pub const MOST_IN_DOCUMENT: usize = 10_000;

/// What is counted: words, and pairs of words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether upper and lower case are told apart; `uncased` strips accents too. Words are those of BERT's basic tokenizer: every
    /// punctuation mark is a word. With `[maps]` it must equal `vocabulary.case`.
    ///
    /// Source: ours: because it is the default of `vocabulary.case`, after BERT-base-uncased.
    pub case: Case,
    /// The boundary that pairs do not cross. Sentences come from the file where its format has them, else from rules.
    ///
    /// Source: KAM-BERT, section 3.4, which counts word pairs appearing jointly but names no unit; ours: sentences, the default unit of
    /// maps.
    pub within: Within,
    /// What counts as a co-occurrence of two words.
    ///
    /// Source: KAM-BERT, section 3.4, which counts word pairs appearing jointly but names no unit; ours: presence in one sentence, which
    /// needs no choice of a window.
    pub pairs: Counting,
    /// Whether adjacent words are counted too, in order; phrases made of neighbours need it.
    ///
    /// Source: ours: because phrases need it, and it costs little.
    pub adjacent: Adjacent,
    /// Rarer words are dropped from words and pairs. They keep their positions, so distances do not change.
    ///
    /// Source: ours: because counts can be thinned later (`pmi.min_count`) but not completed.
    pub min_count: u64,
    /// Keep at most this many words, the most frequent: up to 268,435,456. Without it, all words are kept.
    pub max_words: Option<usize>,
    /// Only with `pairs = "presence"`: a sentence (document) with more distinct words than this, at least 2, is skipped, since pairs grow
    /// quadratically. Default: 1,000 for sentences and 10,000 for documents. A skipped unit contributes no pairs and is not a unit (its
    /// words still count as occurrences, and its neighbours are counted); the fact `units_skipped` has the number, and if everything is
    /// skipped the stage fails. Windows need no limit.
    #[serde(default)]
    pub max_distinct: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            case: Case::default(),
            within: Within::default(),
            pairs: Counting::default(),
            adjacent: Adjacent::default(),
            min_count: 1,
            max_words: None,
            max_distinct: None,
        }
    }
}

/// What no pair reaches beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// A pair is within one sentence.
    #[default]
    Sentence,
    /// A pair is within one document.
    Document,
}

/// Which pairs count, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Counting {
    /// A pair counts once in each sentence (document) that contains both words.
    #[default]
    Presence,
    /// A pair counts once in each window of this many words, 2 to 255, that contains both; a shorter text is one window.
    Window(usize),
    /// Every two positions at most `window` apart count.
    Distance(Distance),
}

/// Places that count as together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// The largest distance, 1 (neighbours) to 255; up to 22 with `weight = "inverse"`, beyond which sums could overflow 64 bits.
    pub window: usize,
    /// What a pair of positions counts.
    ///
    /// Source: ours: because raw counts are what PMI is defined on; GloVe weighs by 1/distance.
    #[serde(default)]
    pub weight: Weight,
    /// Whether word order is ignored, or each order is counted separately.
    ///
    /// Source: GloVe, `cooccur`, which is symmetric by default.
    #[serde(default)]
    pub order: Order,
}

/// How much two places count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Every pair counts 1.
    #[default]
    Equal,
    /// It counts 1/distance (GloVe), computed exactly: see `weight_unit` in docs/formats.md.
    Inverse,
}

/// Whether the order of the two words of a pair counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A pair is counted once, whichever word comes first.
    #[default]
    Symmetric,
    /// Each order is counted separately, the left word first.
    Directed,
}

/// Whether neighbours are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Adjacent {
    /// Adjacent words are counted.
    #[default]
    Count,
    /// Adjacent words are not counted; phrases can then not be made of neighbours.
    Leave,
}

/// What counting may use.
#[derive(Debug, Clone)]
pub struct Room {
    /// Bytes of memory.
    pub memory: usize,
    /// Threads.
    pub threads: usize,
    /// A folder with room for what does not fit into memory; nothing has a name there.
    pub folder: PathBuf,
    /// Asked now and then whether to go on.
    pub cancel: CancelToken,
}

/// The least memory that counting accepts.
pub const LEAST_MEMORY: usize = 32 << 20;

/// Why a corpus cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A config that is invalid.
    #[error(transparent)]
    InvalidSetting(#[from] InvalidSetting),
    /// The words alone do not fit.
    #[error(
        "the corpus has more different words than fit in memory: {words} of them take {bytes} bytes, a quarter of the {memory} allowed; allow more memory"
    )]
    Words {
        /// Words met.
        words: usize,
        /// Bytes that they take.
        bytes: usize,
        /// What was allowed.
        memory: usize,
    },
    /// More words than can be numbered.
    #[error("the corpus has more than {MOST_WORDS} different words: set max_words or min_count")]
    TooMany,
    /// The system gives no more threads.
    #[error("no thread can be started to count: {0}")]
    Thread(#[source] io::Error),
    /// A thread has failed, and says itself why.
    #[error("counting has stopped")]
    Cancelled,
    /// The run was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Cancelled),
    /// A sum beyond 64 bits.
    #[error("the count of a pair is beyond 64 bits: use a smaller window, or equal weights")]
    Overflow,
    /// A disk refused.
    #[error("{}: {done}: {source}; make sure that there is room and run again", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What was done.
        done: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] kg::table::parquet_file::Error),
    /// The index of counts cannot be read or written, is damaged or of another version.
    #[error(transparent)]
    Index(#[from] self_check::Error),
    /// The counts that are to be put together are not each of a corpus's shards once.
    #[error(
        "the folders are not all shards of one corpus, each once: {problems}; count what is missing with the same corpus, and name each shard's folder once"
    )]
    Shards {
        /// What is missing, there twice or of something else, with the folders.
        problems: String,
    },
    /// Counts that were made before cannot be used.
    #[error("{}: {problem}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What is wrong, and how to fix it.
        problem: String,
    },
}

impl Error {
    fn temporary(folder: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = folder.to_owned();
        move |source| Self::Io { path: path.clone(), done: "cannot keep what does not fit in memory", source }
    }
}

impl Room {
    /// Checks that counting can be done with it.
    ///
    /// # Errors
    /// When there is too little memory, or no thread.
    pub fn check(&self) -> Result<(), Error> {
        if self.memory < LEAST_MEMORY {
            let expected = format!("at least {LEAST_MEMORY} bytes");
            return Err(InvalidSetting::new("memory", self.memory, expected).into());
        }
        if self.threads == 0 {
            return Err(InvalidSetting::new("threads", 0, "at least 1").into());
        }
        Ok(())
    }

    fn pool(&self, threads: usize) -> Result<ThreadPool, Error> {
        let built = ThreadPoolBuilder::new().num_threads(threads).build();
        built.map_err(|refused| Error::Thread(io::Error::other(refused)))
    }
}

impl Config {
    /// Checks that the config can be meant.
    ///
    /// # Errors
    /// When a number is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let (field, window, widest) = match self.pairs {
            Counting::Presence => return self.check_words().and_then(|()| self.check_distinct()),
            Counting::Window(window) => ("pairs.window", window, WIDEST),
            Counting::Distance(Distance { window, weight: Weight::Equal, .. }) => {
                ("pairs.distance.window", window, WIDEST)
            }
            Counting::Distance(Distance { window, .. }) => ("pairs.distance.window", window, WIDEST_INVERSE),
        };
        let least = if matches!(self.pairs, Counting::Window(_)) { 2 } else { 1 };
        if window < least || window > widest {
            return Err(InvalidSetting::new(field, window, format!("{least} to {widest}")).into());
        }
        if let Some(most) = self.max_distinct {
            let expected = "nothing: only pairs = \"presence\" has such a limit, windows have one already";
            return Err(InvalidSetting::new("max_distinct", most, expected).into());
        }
        self.check_words()
    }

    fn check_distinct(&self) -> Result<(), Error> {
        match self.max_distinct {
            Some(most) if most < 2 => Err(InvalidSetting::new("max_distinct", most, "at least 2").into()),
            _ => Ok(()),
        }
    }

    /// Different words of a sentence or document beyond which its pairs are not counted.
    fn most_distinct(&self) -> usize {
        let most = match self.within {
            Within::Sentence => MOST_IN_SENTENCE,
            Within::Document => MOST_IN_DOCUMENT,
        };
        match self.pairs {
            Counting::Presence => self.max_distinct.unwrap_or(most),
            Counting::Window(_) | Counting::Distance(_) => usize::MAX,
        }
    }

    fn check_words(&self) -> Result<(), Error> {
        match self.max_words {
            Some(most) if most == 0 || most > MOST_WORDS => {
                Err(InvalidSetting::new("max_words", most, format!("1 to {MOST_WORDS}")).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a pair has an order.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.pairs {
            Counting::Distance(distance) => distance.order,
            Counting::Presence | Counting::Window(_) => Order::Symmetric,
        }
    }

    /// The table with the counts of neighbours in order; none where they were not counted.
    #[must_use]
    pub fn neighbours(&self) -> Option<Table> {
        match (self.adjacent, self.pairs) {
            (Adjacent::Count, _) => Some(Table::Adjacent),
            (_, Counting::Distance(Distance { window: 1, order: Order::Directed, .. })) => Some(Table::Pairs),
            (Adjacent::Leave, _) => None,
        }
    }

    /// By how much two places at each distance from 0 count, in units.
    fn weights(&self) -> Vec<u32> {
        let Counting::Distance(Distance { window, weight: Weight::Inverse, .. }) = self.pairs else {
            return vec![1; WIDEST + 1];
        };
        let unit = unit(window);
        // Up to the widest window the unit is below 2^28.
        (0..=window as u64)
            .map(|d| unit.checked_div(d).map_or(0, |w| u32::try_from(w).unwrap_or(0)))
            .collect()
    }

    /// How many units of a stored count make 1.
    #[must_use]
    pub fn unit(&self) -> u64 {
        match self.pairs {
            Counting::Distance(Distance { window, weight: Weight::Inverse, .. }) => unit(window),
            _ => 1,
        }
    }
}

/// The least common multiple of 1 to `window`.
fn unit(window: usize) -> u64 {
    (2..=window as u64).fold(1, |all, next| {
        let (mut a, mut b) = (all, next);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        all / a * next
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;
    use std::collections::BTreeMap;
    use std::fs;
    use tempfile::tempdir;

    const TEXTS: [&str; 5] = [
        "The heart pumps blood. Blood carries oxygen to the heart, the heart beats.",
        "Oxygen! Fever and cough. A cough.",
        "",
        "Sjögren's syndrome: dry eyes, dry mouth; DRY eyes again and again and again.",
        "fever",
    ];

    fn config(pairs: Counting, within: Within) -> Config {
        Config {
            case: Case::Uncased,
            within,
            pairs,
            adjacent: Adjacent::Count,
            min_count: 1,
            max_words: None,
            max_distinct: None,
        }
    }

    fn every_config() -> Vec<Config> {
        let distance = |window, weight, order| Counting::Distance(Distance { window, weight, order });
        let mut all = Vec::new();
        for within in [Within::Sentence, Within::Document] {
            for pairs in [
                Counting::Presence,
                Counting::Window(3),
                distance(1, Weight::Equal, Order::Directed),
                distance(4, Weight::Inverse, Order::Symmetric),
                distance(22, Weight::Inverse, Order::Directed),
                distance(255, Weight::Equal, Order::Symmetric),
            ] {
                all.push(config(pairs, within));
                all.push(Config { min_count: 2, max_words: Some(7), ..config(pairs, within) });
            }
        }
        all
    }

    fn room(folder: &Path, threads: usize) -> Room {
        Room { memory: LEAST_MEMORY, threads, folder: folder.to_owned(), cancel: CancelToken::NEVER }
    }

    fn counted(config: &Config, threads: usize, texts: &[&str], to: &Path) -> Index {
        counted_share(config, (Share::Whole, threads), texts, to)
    }

    fn limits_of(config: &Config) -> Limits {
        Limits { min_count: config.min_count, max_words: config.max_words }
    }

    fn shard(text: &str) -> Share {
        Share::Shard(Shard::try_from(text.to_owned()).unwrap())
    }

    fn counted_share(config: &Config, (share, threads): (Share, usize), texts: &[&str], to: &Path) -> Index {
        fs::create_dir_all(to).unwrap();
        let counts: Result<Counts, Error> = count(config, share, &room(to, threads), |feed| {
            texts.iter().try_for_each(|text| feed.text(text))
        });
        counts.unwrap().write(to).unwrap()
    }

    fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.map(|f| (f.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(f).unwrap())).collect()
    }

    /// The counts in the plainest way, words by their letters.
    fn plainly(config: &Config) -> BTreeMap<(String, String), u64> {
        let mut segments: Vec<Vec<String>> = Vec::new();
        for text in TEXTS {
            let starts = crate::sentence::starts(text);
            let cuts = if config.within == Within::Document { vec![] } else { starts };
            let mut from = 0;
            for to in cuts.into_iter().chain([text.len()]) {
                let mut words = crate::word::Words::new(config.case);
                words.split(&text[from..to]);
                segments.push(words.iter().map(|w| w.letters.to_owned()).collect());
                from = to;
            }
        }
        let mut times: BTreeMap<&String, u64> = BTreeMap::new();
        segments.iter().flatten().for_each(|word| *times.entry(word).or_insert(0) += 1);
        let mut kept: Vec<_> = times.into_iter().filter(|(_, n)| *n >= config.min_count).collect();
        kept.sort_by_key(|(word, n)| (std::cmp::Reverse(*n), (*word).clone()));
        kept.truncate(config.max_words.unwrap_or(usize::MAX));
        let rank = |word: &String| kept.iter().position(|(kept, _)| *kept == word);
        let mut pairs = BTreeMap::new();
        let mut add = |a: &String, b: &String, times: u64| {
            let (Some(x), Some(y)) = (rank(a), rank(b)) else { return };
            let turned = config.order() == Order::Symmetric && x > y;
            let (a, b) = if turned { (b, a) } else { (a, b) };
            *pairs.entry((a.clone(), b.clone())).or_insert(0) += times;
        };
        for segment in &segments {
            match config.pairs {
                Counting::Distance(Distance { window, weight, .. }) => {
                    for i in 0..segment.len() {
                        for j in i + 1..segment.len().min(i + window + 1) {
                            let inverse = config.unit() / (j - i) as u64;
                            let times = if weight == Weight::Inverse { inverse } else { 1 };
                            add(&segment[i], &segment[j], times);
                        }
                    }
                }
                Counting::Presence | Counting::Window(_) => {
                    let width = if let Counting::Window(n) = config.pairs { n } else { usize::MAX };
                    let all = segment.len().saturating_sub(width) + 1;
                    for start in 0..all {
                        let window = &segment[start..segment.len().min(start.saturating_add(width))];
                        let distinct: std::collections::BTreeSet<&String> = window.iter().collect();
                        for a in &distinct {
                            distinct
                                .range::<String, _>((
                                    std::ops::Bound::Excluded(*a),
                                    std::ops::Bound::Unbounded,
                                ))
                                .for_each(|b| add(a, b, 1));
                        }
                    }
                }
            }
        }
        pairs
    }

    #[test]
    fn counts_are_those_of_the_plainest_way_with_any_threads() {
        for config in every_config() {
            let dir = tempdir().unwrap();
            let (one, three) = (dir.path().join("1"), dir.path().join("3"));
            let index = counted(&config, 1, &TEXTS, &one);
            counted(&config, 3, &TEXTS, &three);
            assert!(bytes(&one) == bytes(&three));
            let read = Read::open(&one).unwrap();
            assert_eq!(read.index, index);
            assert_eq!((index.documents, index.occurrences), (5, 45));
            let mut found = BTreeMap::new();
            read.pairs(Table::Pairs, |pair| {
                let word = |rank: u32| read.words[rank as usize].letters.clone();
                found.insert((word(pair.left), word(pair.right)), pair.count);
                Ok::<(), Error>(())
            })
            .unwrap();
            assert_eq!(found, plainly(&config), "{config:?}");
            assert_eq!(index.pairs.count, found.values().sum::<u64>());
        }
    }

    #[test]
    fn shards_put_together_are_the_whole_to_the_byte() {
        for whole in every_config() {
            let dir = tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            counted(&whole, 2, &TEXTS, &at("whole"));
            let part = Config { min_count: 1, max_words: None, ..whole.clone() };
            let shards: Vec<PathBuf> = (1..=3).map(|n| at(&n.to_string())).collect();
            for (n, shard) in (1..).zip(&shards) {
                counted_share(&part, (self::shard(&format!("{n}/3")), 1), &TEXTS, shard);
            }
            fs::create_dir(at("merged")).unwrap();
            merge(&shards, limits_of(&whole), &room(dir.path(), 1)).unwrap().write(&at("merged")).unwrap();
            assert!(bytes(&at("whole")) == bytes(&at("merged")), "{whole:?}");
        }
    }

    #[test]
    fn parts_joined_in_any_number_of_steps_are_the_whole_to_the_byte() {
        for whole in every_config() {
            let dir = tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            counted(&whole, 2, &TEXTS, &at("whole"));
            let plain = Config { min_count: 1, max_words: None, ..whole.clone() };
            // One of them is empty.
            for (name, texts) in
                ["1", "2", "3", "4"].iter().zip([&TEXTS[..2], &[], &TEXTS[2..3], &TEXTS[3..]])
            {
                counted_share(&plain, (Share::Part, 1), texts, &at(name));
            }
            let joined = |(share, limits): (Share, &Config), from: &[&str], to: &str| {
                let folders: Vec<PathBuf> = from.iter().map(|name| at(name)).collect();
                fs::create_dir(at(to)).unwrap();
                let joined = join(&folders, share, limits_of(limits), &room(dir.path(), 3));
                joined.unwrap().write(&at(to)).unwrap()
            };
            joined((Share::Whole, &whole), &["1", "2", "3", "4"], "at once");
            let middle = joined((Share::Part, &plain), &["2", "3"], "2-3");
            assert_eq!((middle.extent, middle.documents), (Extent::Part, 1));
            joined((Share::Part, &plain), &["1", "2-3"], "1-3");
            joined((Share::Whole, &whole), &["1-3", "4"], "as a tree");
            for other in ["at once", "as a tree"] {
                assert!(bytes(&at("whole")) == bytes(&at(other)), "{other}: {whole:?}");
            }
            let turned = joined((Share::Whole, &whole), &["4", "3", "2", "1"], "turned");
            assert_ne!(turned.corpus, Read::open(&at("whole")).unwrap().index.corpus);
        }
    }

    #[test]
    fn parts_and_shards_are_not_mixed_up() {
        let dir = tempdir().unwrap();
        let config = config(Counting::Presence, Within::Sentence);
        let made = |name: &str, share| {
            counted_share(&config, (share, 1), &TEXTS, &dir.path().join(name));
            dir.path().join(name)
        };
        let (part, half) = (made("part", Share::Part), made("half", shard("1/2")));
        let refused = |merged: Result<Counts, Error>| merged.map(drop).unwrap_err().to_string();
        let room = room(dir.path(), 1);
        let alone = refused(merge(std::slice::from_ref(&part), limits_of(&config), &room));
        assert!(alone.contains("part holds a part of a corpus"), "{alone}");
        let both = refused(join(&[part, half], Share::Whole, limits_of(&config), &room));
        assert!(both.contains("half is shard 1/2"), "{both}");
    }

    #[test]
    fn silent_03_a_merge_takes_each_shard_of_one_corpus_exactly_once() {
        let dir = tempdir().unwrap();
        let config = config(Counting::Presence, Within::Sentence);
        let made = |name: &str, shard: Option<&str>, texts: &[&str]| {
            let folder = dir.path().join(name);
            counted_share(&config, (shard.map_or(Share::Whole, self::shard), 1), texts, &folder);
            folder
        };
        let [one, two, three] =
            ["1/3", "2/3", "3/3"].map(|shard| made(&shard.replace('/', "of"), Some(shard), &TEXTS));
        let (whole, half) = (made("whole", None, &TEXTS), made("half", Some("2/2"), &TEXTS));
        // The same texts in another order, and one that is cut in two: other corpora, whatever the words.
        let turned: Vec<&str> = TEXTS.into_iter().rev().collect();
        let other = made("other", Some("2/3"), &turned);
        let cut: Vec<&str> = TEXTS.iter().flat_map(|text| [&text[..0], *text]).collect();
        let in_two = made("in_two", Some("2/3"), &cut);
        let merged = |folders: &[&PathBuf]| {
            let folders: Vec<PathBuf> = folders.iter().map(|folder| (*folder).clone()).collect();
            merge(&folders, limits_of(&config), &room(dir.path(), 1))
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(merged(&[&three, &one, &two]), Ok(()), "in any order");
        assert_eq!(merged(&[&whole]), Ok(()));
        let twice = format!("shard 1/3 is there 2 times: {}, {}", one.display(), one.display());
        for (folders, says) in [
            (&[&one, &one, &two, &three][..], twice.as_str()),
            (&[&one, &three], "missing: shard 2/3"),
            (&[&one, &one, &one], "missing: shard 2/3, 3/3"),
            (&[&one, &other, &three], "other is of another corpus than"),
            (&[&one, &in_two, &three], "in_two is of another corpus than"),
            (&[&one, &half, &three], "half is shard 2/2, but"),
            (&[&one, &two, &three, &whole], "whole is shard 1/1, but"),
            (&[&whole, &whole], "shard 1/1 is there 2 times"),
        ] {
            let refused = merged(folders).unwrap_err();
            assert!(refused.contains(says) && refused.contains("each once"), "{says}: {refused}");
        }
    }

    #[test]
    fn silent_14_sentences_of_files_are_what_pairs_do_not_reach_beyond() {
        let dir = tempdir().unwrap();
        let config = config(Counting::Presence, Within::Sentence);
        let text = "Odds were 0 . 64 . Next one .";
        let units = |sentences: &[usize]| {
            let document =
                Document { text: text.to_owned(), sentences: sentences.into(), ..Document::default() };
            let counted: Result<_, Error> =
                count(&config, Share::Whole, &room(dir.path(), 1), |feed| feed.document(&document));
            counted.unwrap().write(dir.path()).unwrap().units
        };
        assert_eq!([units(&[]), units(&[0]), units(&[0, 19])], [3, 1, 2]);
    }

    #[test]
    fn silent_23_units_of_too_many_words_are_skipped_and_counted() {
        // Without a limit, the first text alone makes two hundred million pairs.
        let long: String = (0..20_000).map(|word| format!("word{word} ")).collect();
        let texts = [long.as_str(), "fever and cough", "a b c d a b c d"];
        for within in [Within::Sentence, Within::Document] {
            let dir = tempdir().unwrap();
            let plain = config(Counting::Presence, within);
            let index = counted(&plain, 1, &texts, &dir.path().join("plain"));
            assert_eq!((index.segments, index.units, index.skipped, index.pairs.rows), (3, 2, 1, 9));
            assert_eq!(
                (index.occurrences, index.adjacent.map(|all| all.rows > 19_999)),
                (20_011, Some(true))
            );
            let three = Config { max_distinct: Some(3), ..plain.clone() };
            let index = counted(&three, 1, &texts, &dir.path().join("three"));
            assert_eq!((index.units, index.skipped, index.pairs.rows), (1, 2, 3));
            // Words that are left out count too, so that shards, which leave out none, skip what the whole does.
            let whole = Config { min_count: 2, ..three.clone() };
            counted(&whole, 1, &texts, &dir.path().join("whole"));
            let shards: Vec<PathBuf> = (1..=2).map(|n| dir.path().join(n.to_string())).collect();
            for (n, shard) in (1..).zip(&shards) {
                counted_share(&three, (self::shard(&format!("{n}/2")), 1), &texts, shard);
            }
            let merged = merge(&shards, limits_of(&whole), &room(dir.path(), 1)).unwrap();
            fs::create_dir(dir.path().join("merged")).unwrap();
            merged.write(&dir.path().join("merged")).unwrap();
            assert!(bytes(&dir.path().join("whole")) == bytes(&dir.path().join("merged")));
        }
        let windows = Config { max_distinct: Some(9), ..config(Counting::Window(4), Within::Sentence) };
        assert!(windows.check().unwrap_err().to_string().contains("only pairs = \"presence\""));
        let one = Config { max_distinct: Some(1), ..config(Counting::Presence, Within::Sentence) };
        assert!(one.check().unwrap_err().to_string().contains("at least 2"));
    }

    #[test]
    fn words_of_shards_that_do_not_fit_in_memory_are_refused() {
        let dir = tempdir().unwrap();
        let neighbours = Distance { window: 1, weight: Weight::Equal, order: Order::Directed };
        let config = config(Counting::Distance(neighbours), Within::Document);
        let many: String = (0..300_000).map(|word| format!("word{word}. ")).collect();
        let wide = Room { memory: 512 << 20, ..room(dir.path(), 1) };
        let counted: Result<_, Error> = count(&config, Share::Whole, &wide, |feed| feed.text(&many));
        counted.unwrap().write(dir.path()).unwrap();
        let shards = [dir.path().to_owned()];
        let refused = merge(&shards, limits_of(&config), &room(dir.path(), 1)).unwrap_err().to_string();
        assert!(refused.contains("300001 of them") && refused.contains("allow more memory"), "{refused}");
        assert!(merge(&shards, limits_of(&config), &wide).is_ok());
    }

    #[test]
    fn what_cannot_be_meant_or_merged_is_refused_with_the_remedy() {
        let dir = tempdir().unwrap();
        let inverse = |window| {
            Counting::Distance(Distance { window, weight: Weight::Inverse, order: Order::Symmetric })
        };
        for (pairs, says) in
            [(Counting::Window(1), "2 to 255"), (inverse(0), "1 to 22"), (inverse(23), "1 to 22")]
        {
            let error = config(pairs, Within::Sentence).check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = Room { memory: 5, ..room(dir.path(), 1) }.check().unwrap_err().to_string();
        assert!(error.contains("memory is 5"), "{error}");
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        let plain = config(Counting::Presence, Within::Sentence);
        counted_share(&plain, (shard("1/2"), 1), &TEXTS, &one);
        let windows = config(Counting::Window(4), Within::Sentence);
        counted_share(&windows, (shard("2/2"), 1), &TEXTS, &two);
        let merged = |folders: &[PathBuf]| {
            merge(folders, limits_of(&plain), &room(dir.path(), 1)).unwrap_err().to_string()
        };
        assert!(merged(&[one.clone(), two.clone()]).contains("one config"));
        counted(&Config { min_count: 2, ..plain.clone() }, 1, &TEXTS, &two);
        assert!(merged(&[two]).contains("lacks words"));
        assert!(merged(&[]).contains("at least 1"));
        assert!(merged(&[dir.path().join("none")]).contains("folder of counts"));
        counted(&plain, 1, &TEXTS, &one);
        let pairs = one.join("pairs.parquet");
        base::whole::write_whole(&pairs, &fs::read(&pairs).unwrap()[..100]).unwrap();
        assert!(merged(std::slice::from_ref(&one)).contains("count again"));
        let index = one.join("index.json");
        let text = fs::read_to_string(&index).unwrap();
        for (from, to, says) in [
            ("\"documents\": 5", "\"documents\": 7", "damaged: its contents give the check"),
            ("\"version\": 4", "\"version\": 3", "\"engraft-counts\" version 3, but this engraft reads"),
        ] {
            assert!(text.contains(from), "{text}");
            base::whole::write_whole(&index, text.replace(from, to).as_bytes()).unwrap();
            let error = merged(std::slice::from_ref(&one));
            assert!(error.contains(says) && error.contains("count again"), "{error}");
        }
    }

    #[test]
    fn a_failing_reader_ends_the_count_with_its_error() {
        let dir = tempdir().unwrap();
        let config = config(Counting::Presence, Within::Sentence);
        let result = count(&config, Share::Whole, &room(dir.path(), 2), |feed| {
            (0..10_000).try_for_each(|_| feed.text(TEXTS[0]))?;
            Err(Error::TooMany)
        });
        assert!(matches!(result, Err(Error::TooMany)));
    }
}
