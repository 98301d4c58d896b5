//! A task on names beside the graph's: what its shards hold, how they are mixed with the others, and that they stop and go on.

use std::path::Path;

use batch::task::{Material, Task};
use batch::{Batch, Targets};
use kg::split::Part;
use rayon::ThreadPoolBuilder;
use tasks::names::{Name, Names};
use tasks::shard::index::Index;
use tasks::shard::shown;
use tasks::shard::write::{Config, From, write};
use tasks::stream::lane::Batching;
use tasks::stream::schedule::{Schedule, round_robin::Rule};
use tasks::stream::steps;

use crate::shards::world::{Row, STREAM, World, files, rows, stream};

/// Names of an entity: its own and two more.
const NAMES: u32 = 3;
/// Entities that only held-out triples would mention.
const HELD: u32 = 4;

fn names(world: &World) -> Names {
    let named = (0_u32..).zip(&world.names).flat_map(|(entity, name)| {
        [name.clone(), format!("may b{entity}"), format!("treat b{entity}")].map(|text| (entity, text))
    });
    let named = (0..).zip(named);
    let named = named.map(|(row, (entity, text))| Name { entity, row, level: Some(0), text });
    let texts: Vec<&str> = world.names.iter().map(String::as_str).collect();
    let parts = (0..40).map(|entity| if entity < 40 - HELD { Part::Train } else { Part::Valid });
    Names::new(named.collect(), &texts, parts.collect()).unwrap()
}

fn written(world: &World, folder: &Path, threads: usize) -> Index {
    let names = names(world);
    let from = From {
        vocabulary: &world.vocabulary,
        vocabulary_digest: "digest",
        sources: &[],
        texts: &[],
        names: Some(&names),
    };
    let tasks = [&Task::GRAPH[..], &[Task::Synonyms]].concat();
    let config = Config { tasks, ..World::config() };
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| write(folder, &world.corpus(), &[World::held()], from, &config, &|_| Ok(()))).unwrap()
}

/// The rows of a batch of synonyms, each true one with the false one behind it.
fn pairs(batch: &Batch) -> Vec<[Row; 2]> {
    let rows = rows(batch);
    let pair = |pair: &[Row]| {
        let [yes, no] = [pair[0].clone(), pair[1].clone()];
        assert_eq!((&yes.1, &no.1), (&vec![1], &vec![0]), "the true row, and behind it the false one");
        let first = |row: &Row| row.0[..row.0.iter().position(|token| *token == 3).unwrap()].to_vec();
        assert_eq!(first(&yes), first(&no), "both begin with the same name");
        [yes, no]
    };
    rows.chunks(2).map(pair).collect()
}

#[test]
fn names_have_parts_and_levels_and_the_same_bytes_for_any_number_of_threads() {
    let world = World::new();
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = written(&world, one.path(), 1);
    assert_eq!(written(&world, four.path(), 4), index);
    assert_eq!(files(one.path()), files(four.path()));
    let part = |part| index.part(Task::Synonyms, part).unwrap();
    assert_eq!((part(Part::Train).items, part(Part::Train).rows), (72, 144));
    assert_eq!((part(Part::Valid).items, part(Part::Valid).rows), (8, 16));
    let of = |of: Part| shown::names(one.path(), &part(of).files).unwrap();
    assert!(of(Part::Train).iter().all(|row| *row < NAMES * (40 - HELD)));
    assert!(of(Part::Valid).iter().all(|row| *row >= NAMES * (40 - HELD)));
    let source = &index.sources[0];
    assert_eq!(source.levels["0"], u64::from(40 * NAMES), "{source:?}");
    assert_eq!(index.names[&Task::Synonyms]["pairs"], 80);
    // The other tasks' files are those that are written without it.
    let without = tempfile::tempdir().unwrap();
    world.write(without.path(), 2);
    let of_graph = |folder| {
        let mut files = files(folder);
        files.retain(|name, _| name.ends_with(".parquet") && !name.starts_with("synonyms/"));
        files
    };
    assert_eq!(of_graph(one.path()), of_graph(without.path()));
}

#[test]
fn every_schedule_shows_all_pairs_of_an_epoch_and_goes_on_where_it_stopped() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    written(&world, folder.path(), 2);
    for schedule in [
        Schedule::Kimera,
        Schedule::Merged,
        Schedule::RoundRobin(Rule::Paper),
        Schedule::Proportional,
        Schedule::Temperature(2.0),
    ] {
        let config = steps::Config { schedule, batching: Batching::Items(6), ..STREAM };
        let mut whole = stream(folder.path(), &config);
        let mut resumed = stream(folder.path(), &config);
        let mut seen = Vec::new();
        while seen.len() < 72 {
            let batches = whole.next_step().unwrap();
            assert_eq!(batches, resumed.next_step().unwrap(), "{schedule:?}");
            let state = resumed.state();
            resumed = stream(folder.path(), &config);
            resumed.resume(&state).unwrap();
            let tasks: Vec<Task> = batches.iter().map(|batch| batch.task).collect();
            if schedule == Schedule::Kimera {
                assert_eq!(tasks, [&Task::GRAPH[..], &[Task::Synonyms]].concat());
            }
            let of = batches.iter().filter(|batch| batch.task.made_of() == Material::Names);
            for batch in of {
                assert!(matches!(&batch.targets, Targets::Classes(classes) if classes.len() == 12));
                seen.extend(pairs(batch));
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 72, "{schedule:?}: every pair once");
    }
}
