//! A small graph, its shards and what can be asked of their batches.

use std::collections::BTreeMap;
use std::path::Path;

use batch::task::Task;
use batch::{Batch, Targets};
use kg::canon::relation::Turn;
use kg::split::Part;
use tasks::builder::{Blanks, Form, Layout, Limits, TokenTypes};
use tasks::negative::{self, Corruption, Draw, Filter, Same};
use tasks::sample::Held;
use tasks::sample::{Corpus, Slot};
use tasks::shard::file::Size;
use tasks::shard::index::{Index, Source};
use tasks::shard::write::{Config, From, write};
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::{self, Shards, Worker};
use tasks::stream::window::Ahead;
use tasks::token::encode::{Case, Vocabulary};

/// Triples that are shown; ten more are held out.
pub(crate) const TRIPLES: u32 = 101;

pub(crate) struct World {
    pub(crate) names: Vec<String>,
    pub(crate) vocabulary: Vocabulary,
}

pub(crate) const LAYOUT: Layout = Layout {
    form: Form::Packed,
    token_types: TokenTypes::Zero,
    blanks: Blanks::TrueLength,
    limits: Limits { node: 100, edge: 10 },
};

impl World {
    pub(crate) fn new() -> Self {
        // Names of two to five tokens.
        let name = |i: u32| format!("a{} b{i}{}", i % 7, " a0".repeat(i as usize % 4));
        let names: Vec<String> = (0..40).map(name).collect();
        let mut lines: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
        lines.extend((0..7).map(|i| format!("a{i}")));
        lines.extend((0..40).map(|i| format!("b{i}")));
        lines.extend(["may", "treat", "finds", "causes"].map(str::to_owned));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, lines.join("\n").as_bytes()).unwrap();
        Self { names, vocabulary: Vocabulary::load(&path, Case::Uncased).unwrap() }
    }

    pub(crate) fn corpus(&self) -> Corpus<'_> {
        Corpus {
            entities: self.names.iter().map(String::as_str).collect(),
            types: vec![&[]; 40],
            relations: vec!["may treat", "finds", "causes"],
            ways: (0..3).map(|relation| (relation, Turn::Stays)).collect(),
            triples: (0..TRIPLES).map(|i| [i % 19, i % 3, 19 + (i * 5) % 21]).collect(),
            rows: (0..TRIPLES).collect(),
            held: Self::held().triples,
        }
    }

    pub(crate) fn held() -> Held {
        let triples = (0..10).map(|i| [20 + i, i % 3, i]).collect();
        Held { part: Part::Valid, triples, rows: (TRIPLES..TRIPLES + 10).collect() }
    }

    pub(crate) fn config() -> Config {
        Config {
            tasks: Task::GRAPH.to_vec(),
            layout: LAYOUT,
            negatives: negative::Config {
                sampler: Corruption::Uniform,
                slots: Slot::ALL.to_vec(),
                per_triple: 1,
                filter: Filter::Train,
                same: Same::Texts,
                draw: Draw::Fresh,
                max_draws: 100,
            },
            seed: 3,
            size: Size::Rows(40),
            items_per_group: 8,
        }
    }

    pub(crate) fn write(&self, folder: &Path, threads: usize) -> Index {
        self.write_as(folder, threads, &Self::config())
    }

    pub(crate) fn write_as(&self, folder: &Path, threads: usize, config: &Config) -> Index {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (corpus, held) = (self.corpus(), [Self::held()]);
        let sources =
            [Source { name: "invented".to_owned(), levels: BTreeMap::from([("0".to_owned(), 101)]) }];
        let from = From {
            vocabulary: &self.vocabulary,
            vocabulary_digest: "digest",
            sources: &sources,
            texts: &[],
            names: None,
        };
        pool.install(|| write(folder, &corpus, &held, from, config, &|_| Ok(()))).unwrap()
    }
}

pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

pub(crate) const STREAM: steps::Config = steps::Config {
    part: Part::Train,
    seed: 9,
    schedule: Schedule::Kimera,
    batching: Batching::Items(7),
    shuffle: Shuffle::Window(2),
    fill: Fill::One,
    ahead: Ahead { windows: 0, threads: 1 },
};

pub(crate) fn stream(folder: &Path, config: &steps::Config) -> Stream {
    stream_as(folder, config, Worker::ONLY)
}

pub(crate) fn stream_as(folder: &Path, config: &steps::Config, worker: Worker) -> Stream {
    let index = Index::read(folder).unwrap();
    Stream::new(&Shards::in_folder(folder, &index), config, worker).unwrap()
}

/// Token ids, and labels or class, of one sample.
pub(crate) type Row = (Vec<u32>, Vec<i64>);

/// The samples of a batch in the order of the stream, without padding.
pub(crate) fn rows(batch: &Batch) -> Vec<Row> {
    let samples = batch.samples.iter().enumerate().map(|(number, place)| {
        let start = place.row * batch.width + place.start;
        let at = start..start + place.len;
        assert!(batch.attention_mask[at.clone()].iter().all(|&mask| mask == 1));
        let labels = match &batch.targets {
            Targets::Tokens(labels) => labels[at.clone()].to_vec(),
            Targets::Classes(classes) => vec![i64::from(classes[number])],
        };
        (batch.input_ids[at].to_vec(), labels)
    });
    samples.collect()
}

/// What a row says once its blanks are filled.
pub(crate) fn restored((ids, labels): &Row) -> Vec<u32> {
    let of = |(&id, &label): (&u32, &i64)| u32::try_from(label).unwrap_or(id);
    ids.iter().zip(labels).map(of).collect()
}
