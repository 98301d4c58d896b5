//! A shard folder read as a trainer reads it, without any tensor library: one side of `benches/stream.py`.
//!
//! `stream decode FOLDER TASK ROUNDS` decodes every row group of the task's training shards ROUNDS times on one thread. `stream collate
//! FOLDER BATCHING FILL ROUNDS` makes the batches of ROUNDS epochs in KIMERA's order, on one thread; BATCHING is `items:N` or `bucketed:N:POOL`,
//! FILL `one` or `packed:WIDTH`. Both print one line of JSON. `stream steps FOLDER STATE RANK WORLD ITEMS END` goes on from the stream state in
//! the file STATE (`-`: from the beginning) and prints a line for each step up to END: the digests of this rank's samples by task,
//! and the state after it. `stream shuffle FOLDER WINDOW ITEMS` says how well windows of so many row groups mix. Times are of the processor, so that other work on the machine does not count.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use base::rng::RngKey;
use batch::{Batch, Place, Targets};
use kg::split::Part;
use serde_json::json;
use tasks::shard::index::Index;
use tasks::shard::read::{Of, Shard};
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::{Batching, Share};
use tasks::stream::order::{Order, Shuffle};
use tasks::stream::quality;
use tasks::stream::schedule::Schedule;
use tasks::stream::state::State;
use tasks::stream::steps::{Config, Shards, Worker};
use tasks::stream::window::Ahead;

use crate::process::processor;

/// Row groups that are shuffled together.
const WINDOW: usize = 16;

/// What the first lines of this file say.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["decode", folder, task, rounds] => decode(Path::new(folder), task, rounds.parse()?),
        ["collate", folder, batching, fill, rounds] => {
            collate(Path::new(folder), (named_batching(batching)?, named_fill(fill)?), rounds.parse()?)
        }
        ["steps", folder, state, rank, world, items, end] => {
            let share = Share { rank: rank.parse()?, world: world.parse()? };
            steps(
                Path::new(folder),
                (*state != "-").then_some(Path::new(state)),
                share,
                (items.parse()?, end.parse()?),
            )
        }
        ["shuffle", folder, window, items] => shuffle(Path::new(folder), window.parse()?, items.parse()?),
        _ => Err("usage: stream decode FOLDER TASK ROUNDS | collate FOLDER BATCHING FILL ROUNDS | \
                  steps FOLDER STATE RANK WORLD ITEMS END | shuffle FOLDER WINDOW ITEMS"
            .into()),
    }
}

fn decode(folder: &Path, task: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let index = Index::read(folder)?;
    let of = index.tasks.iter().find(|of| of.task.name() == task).ok_or("the shards have no such task")?;
    let files = &of.part(Part::Train).ok_or("the shards have no part train")?.files;
    let clock = Clock::start()?;
    let (mut rows, mut tokens) = (0, 0);
    for _ in 0..rounds {
        for file in files {
            let shard = Shard::open(folder, file, Of { task: of.task, form: index.layout.form })?;
            for number in 0..file.groups.len() {
                let group = shard.group(number)?;
                rows += group.starts.len() - 1;
                tokens += group.input_ids.len();
            }
        }
    }
    let (seconds, processor) = clock.stop()?;
    println!("{}", json!({ "rows": rows, "tokens": tokens, "seconds": seconds, "processor": processor }));
    Ok(())
}

fn collate(folder: &Path, (batching, fill): (Batching, Fill), rounds: u64) -> Result<(), Box<dyn Error>> {
    let index = Index::read(folder)?;
    let mut stream = Stream::new(&Shards::in_folder(folder, &index), &config(batching, fill), Worker::ONLY)?;
    let steps = stream.steps_per_epoch().ok_or("batches of so many items are needed")? * rounds;
    let clock = Clock::start()?;
    let (mut samples, mut tokens, mut positions) = (0, 0, 0);
    for _ in 0..steps {
        for batch in stream.next_step()? {
            samples += batch.samples.len();
            tokens += batch.tokens();
            positions += batch.rows * batch.width;
        }
    }
    let (seconds, processor) = clock.stop()?;
    let padding = 1.0 - tokens as f64 / positions as f64;
    println!(
        "{}",
        json!({ "samples": samples, "tokens": tokens, "padding": padding, "seconds": seconds, "processor": processor })
    );
    Ok(())
}

fn steps(
    folder: &Path,
    state: Option<&Path>,
    share: Share,
    (items, end): (usize, u64),
) -> Result<(), Box<dyn Error>> {
    let index = Index::read(folder)?;
    let worker = Worker { share, number: 0, of: 1 };
    let config = config(Batching::Items(items), Fill::One);
    let mut stream = Stream::new(&Shards::in_folder(folder, &index), &config, worker)?;
    if let Some(state) = state {
        let state: State = serde_json::from_slice(&std::fs::read(state)?)?;
        stream.resume(&state)?;
    }
    let mut out = std::io::stdout().lock();
    while stream.step() < end {
        let samples: Vec<Vec<String>> = stream.next_step()?.iter().map(digests).collect();
        let line = json!({ "step": stream.step(), "samples": samples, "state": stream.state() });
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

fn shuffle(folder: &Path, window: usize, items: usize) -> Result<(), Box<dyn Error>> {
    let index = Index::read(folder)?;
    let first = index.tasks.first().and_then(|task| task.part(Part::Train));
    let groups = first.iter().flat_map(|part| &part.files).flat_map(|file| &file.groups);
    let groups: Vec<u32> = groups.map(|group| group.items).collect();
    let all = groups.len();
    let order = Order::new(groups, Shuffle::Window(window), RngKey::new(1).named("stream"));
    let quality = quality::of(&order, 0, items).ok_or("too few items for two batches")?;
    println!("{}", json!({ "row_groups": all, "quality": quality }));
    Ok(())
}

fn config(batching: Batching, fill: Fill) -> Config {
    Config {
        part: Part::Train,
        seed: 1,
        schedule: Schedule::Kimera,
        batching,
        shuffle: Shuffle::Window(WINDOW),
        fill,
        ahead: Ahead { windows: 0, threads: 1 },
    }
}

/// A digest of each sample's contents.
fn digests(batch: &Batch) -> Vec<String> {
    let digest = |(number, place): (usize, &Place)| {
        let start = place.row * batch.width + place.start;
        let cells = start..start + place.len;
        let real = cells.clone().filter(|&cell| batch.attention_mask[cell] == 1);
        let ids: Vec<u8> = real.flat_map(|cell| batch.input_ids[cell].to_le_bytes()).collect();
        let asked: Vec<u8> = match &batch.targets {
            Targets::Tokens(labels) => labels[cells].iter().flat_map(|label| label.to_le_bytes()).collect(),
            Targets::Classes(classes) => classes[number].to_le_bytes().to_vec(),
        };
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&[ids, asked].concat()))
    };
    batch.samples.iter().enumerate().map(digest).collect()
}

fn named_batching(name: &str) -> Result<Batching, Box<dyn Error>> {
    match name.split(':').collect::<Vec<_>>().as_slice() {
        ["items", items] => Ok(Batching::Items(items.parse()?)),
        ["bucketed", items, pool] => Ok(Batching::Bucketed { items: items.parse()?, pool: pool.parse()? }),
        _ => Err("BATCHING is items:N or bucketed:N:POOL".into()),
    }
}

fn named_fill(name: &str) -> Result<Fill, Box<dyn Error>> {
    match name.split_once(':') {
        None if name == "one" => Ok(Fill::One),
        Some(("packed", width)) => Ok(Fill::Packed(width.parse()?)),
        _ => Err("FILL is one or packed:WIDTH".into()),
    }
}

/// Seconds on the clock and of the processor.
struct Clock {
    start: Instant,
    processor: f64,
}

impl Clock {
    fn start() -> Result<Self, Box<dyn Error>> {
        Ok(Self { start: Instant::now(), processor: processor()? })
    }

    fn stop(&self) -> Result<(f64, f64), Box<dyn Error>> {
        Ok((self.start.elapsed().as_secs_f64(), processor()? - self.processor))
    }
}
