//! Shards from end to end: graph in, files on disk, batches out. Knows no trainer.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use kg::canon::relation::Turn;
use parquet::file::metadata::ParquetMetaDataReader;
use tasks::negative::uniform;
use tasks::sample::{Corpus, Slot};
use tasks::shard::index::{Index, Limits};
use tasks::shard::write::{Config, write};
use tasks::stream::batch::{Batch, IGNORED, Targets};
use tasks::stream::kimera::{self, Stream};
use tasks::task::Task;
use tasks::token::encode::{Case, Vocabulary};

const TRIPLES: u32 = 101;

struct World {
    names: Vec<String>,
    vocabulary: Vocabulary,
}

impl World {
    fn new() -> Self {
        let names: Vec<String> = (0..40).map(|i| format!("a{} b{}", i % 7, i)).collect();
        let mut lines: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
        lines.extend((0..7).map(|i| format!("a{i}")));
        lines.extend((0..40).map(|i| format!("b{i}")));
        lines.extend(["may", "treat", "finds", "causes"].map(str::to_owned));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        kg::whole::write_whole(&path, lines.join("\n").as_bytes()).unwrap();
        Self { names, vocabulary: Vocabulary::load(&path, Case::Uncased).unwrap() }
    }

    fn corpus(&self) -> Corpus<'_> {
        Corpus {
            entities: self.names.iter().map(String::as_str).collect(),
            relations: vec!["may treat", "finds", "causes"],
            triples: (0..TRIPLES).map(|i| [i % 19, i % 3, 19 + (i * 5) % 21]).collect(),
            rows: (0..TRIPLES).collect(),
            ways: (0..3).map(|relation| (relation, Turn::Stays)).collect(),
        }
    }

    fn config() -> Config {
        Config {
            tasks: Task::ALL.to_vec(),
            limits: Limits { node: 100, edge: 10 },
            negatives: uniform::Config { slots: Slot::ALL.to_vec(), max_draws: 100 },
            seed: 3,
            triples_per_shard: 40,
            triples_per_group: 8,
        }
    }

    fn write(&self, folder: &Path, threads: usize) -> Index {
        let config = Self::config();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let corpus = self.corpus();
        pool.install(|| write(folder, &corpus, (&self.vocabulary, "digest"), &config, &|_| Ok(()))).unwrap()
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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

fn stream(folder: &Path, batch: usize) -> Stream {
    let index = Index::read(folder).unwrap();
    Stream::new(folder, &index, &kimera::Config { seed: 9, batch, window: 2 })
}

#[test]
fn one_and_four_threads_write_the_same_bytes_and_the_counts_follow_from_the_triples() {
    let world = World::new();
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = world.write(one.path(), 1);
    assert_eq!(index, world.write(four.path(), 4));
    assert_eq!(files(one.path()), files(four.path()));
    assert_eq!(index, Index::read(one.path()).unwrap());
    let rows: Vec<u64> = index.tasks.iter().map(|task| task.rows).collect();
    let n = u64::from(TRIPLES);
    assert_eq!(rows, [n, n, n, 2 * n - index.negatives.gave_up]);
    assert_eq!(index.tasks[0].files.len(), 3);
    assert_eq!(index.longest(), 2 + 2 + 2 + 4);
    assert_eq!(files(one.path()).len(), 13, "no temporary file stays");
}

/// Token ids, and labels or class, of one row.
type Row = (Vec<u32>, Vec<i64>);

/// The rows of a batch without padding.
fn rows(batch: &Batch) -> Vec<Row> {
    (0..batch.rows)
        .map(|row| {
            let at = row * batch.width..(row + 1) * batch.width;
            let length = batch.attention_mask[at.clone()].iter().filter(|&&m| m == 1).count();
            assert!(batch.input_ids[at.clone()][length..].iter().all(|&id| id == 0), "padding last");
            let ids = batch.input_ids[at.clone()][..length].to_vec();
            match &batch.targets {
                Targets::Tokens(labels) => (ids, labels[at][..length].to_vec()),
                Targets::Classes(classes) => (ids, vec![i64::from(classes[row])]),
            }
        })
        .collect()
}

#[test]
fn an_epoch_shows_every_row_once_and_rows_say_what_the_triples_say() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let mut stream = stream(folder.path(), 1);
    let mut seen: BTreeMap<Task, Vec<Row>> = BTreeMap::new();
    for _ in 0..TRIPLES {
        for batch in stream.next_step().unwrap() {
            seen.entry(batch.task).or_default().extend(rows(&batch));
        }
    }
    let stated: BTreeSet<Vec<u32>> = world
        .corpus()
        .triples
        .iter()
        .map(|&[s, r, o]| {
            let corpus = world.corpus();
            let ids = |text: &str| world.vocabulary.encode(text).unwrap();
            let columns = [
                ids(corpus.entities[s as usize]),
                ids(corpus.relations[r as usize]),
                ids(corpus.entities[o as usize]),
            ];
            columns.into_iter().fold(vec![2], |row, column| [row, column, vec![3]].concat())
        })
        .collect();
    for (ids, labels) in &seen[&Task::Object] {
        let restored: Vec<u32> = ids
            .iter()
            .zip(labels)
            .map(|(&id, &l)| if l == IGNORED { id } else { u32::try_from(l).unwrap() })
            .collect();
        assert!(stated.contains(&restored));
        assert!(ids.iter().zip(labels).all(|(&id, &l)| (id == 4) == (l != IGNORED)));
    }
    assert_eq!(seen[&Task::Relation].len(), TRIPLES as usize);
    for (ids, class) in &seen[&Task::Triplet] {
        assert_eq!(stated.contains(ids), class == &[1], "{ids:?}");
    }
}

#[test]
fn a_resumed_stream_goes_on_with_the_batch_that_would_have_come() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let mut whole = stream(folder.path(), 7);
    for step in 0..40 {
        let mut resumed = stream(folder.path(), 7);
        let json = serde_json::to_string(&whole.state()).unwrap();
        assert!(json.len() < 600, "{}", json.len());
        resumed.resume(&serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(resumed.next_step().unwrap(), whole.next_step().unwrap(), "step {step}");
    }
    let error = stream(folder.path(), 8).resume(&whole.state()).unwrap_err().to_string();
    assert!(error.contains("batch was 7 when it was saved and is 8 now"), "{error}");
}

#[test]
fn a_damaged_or_missing_shard_is_named() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 2);
    let file = &index.tasks[1].files[1];
    let path = folder.path().join(&file.path);
    let mut bytes = std::fs::read(&path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).unwrap();
    let (start, length) = metadata.row_group(0).column(1).byte_range();
    bytes[usize::try_from(start + length).unwrap() - 2] ^= 1;
    kg::whole::write_whole(&path, &bytes).unwrap();
    let mut stream = stream(folder.path(), 50);
    let error = (0..10).find_map(|_| stream.next_step().err()).unwrap().to_string();
    assert!(error.contains("object/train-00001-of-00003.parquet: row group"), "{error}");
    assert!(error.contains("engraft run shards"), "{error}");

    kg::whole::write_whole(&path, &bytes[..50]).unwrap();
    let error = Index::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("50 bytes, but the index says"), "{error}");
    std::fs::remove_file(folder.path().join("index.json")).unwrap();
    assert!(Index::read(folder.path()).unwrap_err().to_string().contains("not finished"));
}

#[test]
fn every_step_shows_the_same_triples_in_every_task_and_each_negative_with_its_triple() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let mut stream = stream(folder.path(), 5);
    for _ in 0..50 {
        let step = stream.next_step().unwrap();
        assert_eq!(step.iter().map(|batch| batch.task).collect::<Vec<_>>(), Task::ALL);
        let stated = |batch: &Batch| -> Vec<Vec<u32>> {
            let of = |(ids, labels): (Vec<u32>, Vec<i64>)| match batch.task {
                Task::Triplet => (labels == [1]).then_some(ids),
                _ => Some(
                    ids.iter()
                        .zip(&labels)
                        .map(|(&id, &l)| if l == IGNORED { id } else { u32::try_from(l).unwrap() })
                        .collect(),
                ),
            };
            rows(batch).into_iter().filter_map(of).collect()
        };
        assert_eq!(stated(&step[0]), stated(&step[1]), "subject and object ask about the same triples");
        assert_eq!(stated(&step[0]), stated(&step[3]), "so does the triplet task");
        assert_eq!(step[3].rows, 10, "each with its negative");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let refuse = |change: fn(&mut Config)| {
        let mut config = World::config();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert!(refuse(|c| c.triples_per_shard = 0).contains("triples_per_shard is 0, expected at least 1"));
    assert!(refuse(|c| c.triples_per_group = 0).contains("triples_per_group"));
    assert!(refuse(|c| c.tasks = vec![Task::Subject, Task::Subject]).contains("none twice"));
    assert!(refuse(|c| c.tasks.clear()).contains("tasks is []"));
    assert!(refuse(|c| c.negatives.slots.clear()).contains("negatives.slots"));
    assert!(refuse(|c| c.negatives.max_draws = 0).contains("max_draws"));
    assert!(refuse(|c| c.limits.edge = 0).contains("edge_tokens"));
    World::config().check().unwrap();
}
