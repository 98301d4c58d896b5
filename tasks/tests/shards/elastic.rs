//! Streams that are stopped and go on, with as many ranks or workers as there then are: nothing lost, nothing twice, the same order.

use batch::Batch;
use batch::task::Task;
use tasks::shard::index::Index;
use tasks::stream::lane::{Batching, Share};
use tasks::stream::prefetch::Prefetched;
use tasks::stream::schedule::{Schedule, round_robin::Rule};
use tasks::stream::state::State;
use tasks::stream::steps::{Config, Worker};
use tasks::stream::window::Ahead;

use crate::shards::world::{Row, STREAM, World, rows, stream, stream_as};

const SCHEDULES: [Schedule; 5] = [
    Schedule::Kimera,
    Schedule::Merged,
    Schedule::RoundRobin(Rule::Paper),
    Schedule::Proportional,
    Schedule::Temperature(2.0),
];

const BATCHINGS: [Batching; 3] = [
    Batching::Items(7),
    Batching::Bucketed { items: 6, pool: 4 },
    Batching::Tokens { tokens: 500, pool: 30 },
];

fn round_trip(state: &State) -> State {
    let json = serde_json::to_string(state).unwrap();
    assert!(json.len() < 700, "{}", json.len());
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_resumed_stream_goes_on_with_the_batch_that_would_have_come_whatever_the_schedule() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    for schedule in SCHEDULES {
        for batching in BATCHINGS {
            if matches!(batching, Batching::Tokens { .. }) && schedule.counts_batches() {
                continue;
            }
            let config = Config { schedule, batching, ahead: Ahead { windows: 1, threads: 1 }, ..STREAM };
            let mut whole = stream(folder.path(), &config);
            for step in 0..70 {
                let mut resumed = stream(folder.path(), &config);
                resumed.resume(&round_trip(&whole.state())).unwrap();
                assert_eq!(
                    resumed.next_step().unwrap(),
                    whole.next_step().unwrap(),
                    "{schedule:?} {batching:?} {step}"
                );
                assert_eq!(resumed.state(), whole.state());
            }
        }
    }
}

/// The rows of one step on so many ranks, in the order of ranks, and the state that all of them have after it.
fn step(streams: &mut [tasks::stream::Stream]) -> (Vec<(Task, Vec<Row>)>, State) {
    let steps: Vec<Vec<Batch>> = streams.iter_mut().map(|rank| rank.next_step().unwrap()).collect();
    let tasks = (0..steps[0].len()).map(|task| {
        let all = steps.iter().flat_map(|rank| rows(&rank[task])).collect();
        (steps[0][task].task, all)
    });
    let tasks = tasks.collect();
    assert!(
        streams.iter().all(|rank| rank.state() == streams[0].state()),
        "all ranks stand at the same place"
    );
    (tasks, streams[0].state())
}

#[test]
fn one_three_and_two_ranks_show_the_rows_of_one_in_its_order() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    for schedule in SCHEDULES {
        let config = Config { schedule, ..STREAM };
        let mut whole = [stream(folder.path(), &config)];
        let mut state = None;
        for (world, steps) in [(1, 11), (3, 23), (2, 17), (9, 5)] {
            let share = |rank| Worker { share: Share { rank, world }, ..Worker::ONLY };
            let mut ranks: Vec<_> =
                (0..world).map(|rank| stream_as(folder.path(), &config, share(rank))).collect();
            for rank in &mut ranks {
                state.iter().for_each(|state| rank.resume(&round_trip(state)).unwrap());
            }
            for _ in 0..steps {
                let (shown, after) = step(&mut ranks);
                assert_eq!(shown, step(&mut whole).0, "{schedule:?} on {world} ranks");
                state = Some(after);
            }
        }
    }
}

#[test]
fn workers_take_turns_with_the_steps() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let config = Config { schedule: Schedule::Merged, ..STREAM };
    let worker = |number| stream_as(folder.path(), &config, Worker { number, of: 3, ..Worker::ONLY });
    let mut workers = [worker(0), worker(1), worker(2)];
    let mut whole = stream(folder.path(), &config);
    for number in 0..90 {
        assert_eq!(workers[number % 3].next_step().unwrap(), whole.next_step().unwrap(), "step {number}");
    }
}

#[test]
fn steps_made_ahead_do_not_count_as_taken() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let mut plain = stream(folder.path(), &STREAM);
    let mut ahead = Prefetched::new(stream(folder.path(), &STREAM), 3).unwrap();
    assert_eq!((ahead.state(), ahead.steps_per_epoch()), (&plain.state(), plain.steps_per_epoch()));
    for _ in 0..40 {
        assert_eq!(ahead.next_step().unwrap(), plain.next_step().unwrap());
        assert_eq!(ahead.state(), &plain.state());
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_what_differs() {
    let world = World::new();
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    world.write(folder.path(), 2);
    world.write_as(other.path(), 2, &tasks::shard::write::Config { seed: 4, ..World::config() });
    let state = stream(folder.path(), &STREAM).state();
    let refused = |config: Config| stream(folder.path(), &config).resume(&state).unwrap_err().to_string();
    let found = refused(Config { batching: Batching::Items(8), ..STREAM });
    assert!(found.contains("batch was items(7) when it was saved and is items(8) now"), "{found}");
    assert!(refused(Config { seed: 1, ..STREAM }).contains("seed was 9 when it was saved and is 1 now"));
    assert!(refused(Config { schedule: Schedule::Merged, ..STREAM }).contains("schedule was kimera"));
    let shuffle = tasks::stream::order::Shuffle::None;
    assert!(refused(Config { shuffle, ..STREAM }).contains("shuffle was window(2)"));
    let found = stream(other.path(), &STREAM).resume(&state).unwrap_err();
    assert!(found.to_string().contains("does not fit: shard index was"), "{found}");
    let mut damaged = state.clone();
    damaged.lanes[0].item += 1;
    let found = stream(folder.path(), &STREAM).resume(&damaged).unwrap_err();
    assert!(found.to_string().contains("state is damaged"), "{found}");
    // Reading ahead and packing change no order.
    let same = Config { ahead: Ahead { windows: 2, threads: 2 }, ..STREAM };
    stream(folder.path(), &same).resume(&state).unwrap();
}

#[test]
fn shares_and_schedules_that_make_no_sense_are_refused() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 2);
    let index = Index::read(folder.path()).unwrap();
    let shards = tasks::stream::steps::Shards::in_folder(folder.path(), &index);
    let refused = |config: Config, worker: Worker| {
        tasks::stream::Stream::new(&shards, &config, worker).unwrap_err().to_string()
    };
    let third = Worker { share: Share { rank: 3, world: 3 }, ..Worker::ONLY };
    assert!(refused(STREAM, third).contains("rank 3 of 3"));
    let budget =
        Config { schedule: Schedule::Merged, batching: Batching::Tokens { tokens: 100, pool: 9 }, ..STREAM };
    assert!(refused(budget, Worker::ONLY).contains("token budget"));
}
