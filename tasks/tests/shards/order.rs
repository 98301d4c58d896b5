//! The order of a stream: every row once, the same triples in every task, schedules, batches of like length, packing, fresh negatives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use batch::task::Task;
use batch::{Batch, IGNORED};
use kg::split::Part;
use tasks::shard::index::Index;
use tasks::shard::items::Encoder;
use tasks::shard::write::negatives;
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::redraw::Fresh;
use tasks::stream::schedule::{Schedule, round_robin};
use tasks::stream::steps::{Config, Shards, Worker};
use tasks::stream::window::Ahead;

use crate::shards::world::{LAYOUT, Row, STREAM, TRIPLES, World, restored, rows, stream};

fn stated(world: &World) -> BTreeSet<Vec<u32>> {
    let corpus = world.corpus();
    let ids = |text: &str| world.vocabulary.encode(text).unwrap();
    let row = |&[s, r, o]: &[u32; 3]| {
        let columns =
            [corpus.entities[s as usize], corpus.relations[r as usize], corpus.entities[o as usize]];
        columns.into_iter().fold(vec![2], |row, column| [row, ids(column), vec![3]].concat())
    };
    corpus.triples.iter().map(row).collect()
}

/// All rows of so many steps, by task.
fn take(stream: &mut Stream, steps: u64) -> BTreeMap<Task, Vec<Row>> {
    let mut seen: BTreeMap<Task, Vec<Row>> = BTreeMap::new();
    for _ in 0..steps {
        for batch in stream.next_step().unwrap() {
            seen.entry(batch.task).or_default().extend(rows(&batch));
        }
    }
    seen
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

fn written(world: &World) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    folder
}

#[test]
fn an_epoch_shows_every_row_once_and_rows_say_what_the_triples_say() {
    let world = World::new();
    let folder = written(&world);
    let one = Config { batching: Batching::Items(1), ..STREAM };
    let seen = take(&mut stream(folder.path(), &one), u64::from(TRIPLES));
    let stated = stated(&world);
    for row in &seen[&Task::Object] {
        assert!(stated.contains(&restored(row)));
        assert!(row.0.iter().zip(&row.1).all(|(&id, &label)| (id == 4) == (label != IGNORED)));
    }
    assert_eq!(seen[&Task::Relation].len(), TRIPLES as usize);
    for (ids, class) in &seen[&Task::Triplet] {
        assert_eq!(stated.contains(ids), class == &[1], "{ids:?}");
    }
    let valid = Config { part: Part::Valid, ..one };
    assert_eq!(take(&mut stream(folder.path(), &valid), 10)[&Task::Relation].len(), 10);
    let index = Index::read(folder.path()).unwrap();
    let test = Stream::new(
        &Shards::in_folder(folder.path(), &index),
        &Config { part: Part::Test, ..one },
        Worker::ONLY,
    );
    assert!(test.unwrap_err().to_string().contains("no rows for test"));
}

#[test]
fn every_step_of_kimera_shows_the_same_triples_in_every_task_and_each_negative_with_its_triple() {
    let world = World::new();
    let folder = written(&world);
    let mut stream = stream(folder.path(), &Config { batching: Batching::Items(5), ..STREAM });
    for _ in 0..50 {
        let step = stream.next_step().unwrap();
        assert_eq!(step.iter().map(|batch| batch.task).collect::<Vec<_>>(), Task::GRAPH);
        let of = |batch: &Batch| -> Vec<Vec<u32>> {
            let all = rows(batch).into_iter();
            match batch.task {
                Task::Triplet => all.filter(|row| row.1 == [1]).map(|row| row.0).collect(),
                _ => all.map(|row| restored(&row)).collect(),
            }
        };
        assert_eq!(of(&step[0]), of(&step[1]), "subject and object ask about the same triples");
        assert_eq!(of(&step[0]), of(&step[3]), "so does the triplet task");
        assert_eq!(step[3].rows, 10, "each with its negative");
    }
}

#[test]
fn reading_ahead_with_any_number_of_threads_changes_no_batch() {
    let world = World::new();
    let folder = written(&world);
    let plain: Vec<_> = {
        let mut s = stream(folder.path(), &STREAM);
        (0..40).map(|_| s.next_step().unwrap()).collect()
    };
    for (windows, threads) in [(1, 1), (2, 3), (5, 2)] {
        let mut ahead = stream(folder.path(), &Config { ahead: Ahead { windows, threads }, ..STREAM });
        for step in &plain {
            assert_eq!(&ahead.next_step().unwrap(), step);
        }
    }
}

#[test]
fn merged_and_round_robin_take_every_task_by_its_own_batches_and_begin_epochs_together() {
    let world = World::new();
    let folder = written(&world);
    let batches = u64::from(TRIPLES).div_ceil(7);
    let merged = Config { schedule: Schedule::Merged, ..STREAM };
    let mut merged = stream(folder.path(), &merged);
    assert_eq!(merged.steps_per_epoch(), Some(4 * batches));
    let (first, second) = (take(&mut merged, 4 * batches), take(&mut merged, 4 * batches));
    for task in Task::GRAPH {
        assert_ne!(first[&task], second[&task], "another order in each epoch");
        assert_eq!(sorted(first[&task].clone()), sorted(second[&task].clone()), "the same rows, once each");
    }
    let robin = Config {
        schedule: Schedule::RoundRobin(round_robin::Rule::Reference),
        shuffle: Shuffle::None,
        ..STREAM
    };
    let mut robin = stream(folder.path(), &robin);
    let steps = robin.steps_per_epoch().unwrap();
    assert_eq!(steps, 4 * batches + 1);
    let tasks = |stream: &mut Stream| -> Vec<(Task, Vec<Row>)> {
        (0..steps)
            .map(|_| {
                let batch = stream.next_step().unwrap().remove(0);
                (batch.task, rows(&batch))
            })
            .collect()
    };
    let (first, second) = (tasks(&mut robin), tasks(&mut robin));
    assert_eq!(first, second, "as released: not shuffled, and every round begins anew");
    assert_eq!(first[0], first[first.len() - 1], "the first batch comes once more at the end");
}

#[test]
fn proportional_schedules_draw_from_all_tasks() {
    let world = World::new();
    let folder = written(&world);
    let mut stream = stream(folder.path(), &Config { schedule: Schedule::Temperature(4.0), ..STREAM });
    let seen = take(&mut stream, 80);
    assert!(Task::GRAPH.iter().all(|task| seen[task].len() > 7 * 5), "{:?}", seen.keys());
}

#[test]
fn buckets_and_token_budgets_show_every_row_once_with_less_padding() {
    let world = World::new();
    let folder = written(&world);
    let padding = |batching| {
        let mut stream = stream(folder.path(), &Config { batching, ..STREAM });
        let (mut tokens, mut cells, mut seen) = (0, 0, Vec::new());
        while seen.len() < 2 * TRIPLES as usize {
            for batch in stream.next_step().unwrap() {
                tokens += batch.tokens();
                cells += batch.rows * batch.width;
                seen.extend(if batch.task == Task::Subject { rows(&batch) } else { Vec::new() });
            }
        }
        (1.0 - tokens as f64 / cells as f64, sorted(seen))
    };
    let (plain, all) = padding(Batching::Items(1 + TRIPLES as usize / 10));
    let (bucketed, _) = padding(Batching::Bucketed { items: 10, pool: 5 });
    assert!(bucketed < 0.7 * plain, "{bucketed} {plain}");
    // Pools of all triples: two epochs are two pools.
    let (budget, same) = padding(Batching::Tokens { tokens: 400, pool: TRIPLES as usize });
    assert!(budget < 0.7 * plain, "{budget} {plain}");
    assert_eq!(all.len().min(same.len()), 2 * TRIPLES as usize);
    assert!(same.chunks(2).all(|pair| pair[0] == pair[1]), "every row once in each epoch");
    let mut stream =
        stream(folder.path(), &Config { batching: Batching::Tokens { tokens: 400, pool: 50 }, ..STREAM });
    for _ in 0..30 {
        let step = stream.next_step().unwrap();
        let cells: usize = step.iter().map(|batch| batch.rows * batch.width).sum();
        assert!(cells <= 400, "{cells}");
    }
}

#[test]
fn packed_batches_hold_the_same_samples_in_fewer_cells() {
    let world = World::new();
    let folder = written(&world);
    let thirty = Config { batching: Batching::Items(30), ..STREAM };
    let mut plain = stream(folder.path(), &thirty);
    let mut packed = stream(folder.path(), &Config { fill: Fill::Packed(64), ..thirty });
    let (mut cells, mut packed_cells) = (0, 0);
    for _ in 0..20 {
        for (one, other) in plain.next_step().unwrap().iter().zip(packed.next_step().unwrap()) {
            assert_eq!(rows(one), rows(&other));
            cells += one.rows * one.width;
            packed_cells += other.rows * other.width;
        }
    }
    assert!(packed_cells < cells, "{packed_cells} {cells}");
}

fn fresh(world: &World, folder: &Path) -> Stream {
    let index = Index::read(folder).unwrap();
    let corpus = world.corpus();
    let redraw = Fresh {
        sampler: negatives(&World::config().negatives, World::config().seed, &corpus).unwrap(),
        encoder: Encoder::new(&corpus, &world.vocabulary, LAYOUT).unwrap(),
        triples: corpus.triples,
    };
    let shards = Shards { redraw: Some(Arc::new(redraw)), ..Shards::in_folder(folder, &index) };
    Stream::new(&shards, &Config { batching: Batching::Items(TRIPLES as usize), ..STREAM }, Worker::ONLY)
        .unwrap()
}

#[test]
fn fresh_negatives_are_those_of_the_shards_first_and_others_in_every_later_epoch() {
    let world = World::new();
    let folder = written(&world);
    let mut fixed = stream(folder.path(), &Config { batching: Batching::Items(TRIPLES as usize), ..STREAM });
    let mut anew = fresh(&world, folder.path());
    let triplets = |stream: &mut Stream| {
        let rows = take(stream, 1).remove(&Task::Triplet).unwrap();
        let (stated, false_): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.1 == [1]);
        (sorted(stated), sorted(false_))
    };
    let (first, same) = (triplets(&mut fixed), triplets(&mut anew));
    assert_eq!(first, same);
    let known = stated(&world);
    for _ in 1..4 {
        let (shards, drawn) = (triplets(&mut fixed), triplets(&mut anew));
        assert_eq!(shards, first);
        assert_eq!(drawn.0, first.0, "stated triples stay");
        assert_ne!(drawn.1, first.1);
        assert!(drawn.1.iter().all(|(ids, _)| !known.contains(ids)), "no false negative");
        assert_eq!(drawn.1.len(), first.1.len());
    }
}
