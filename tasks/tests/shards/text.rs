//! Tasks on text beside the graph's: what their shards hold, and how they are mixed with the others.

use std::path::Path;

use base::read::ReadError;
use base::rng::RngKey;
use batch::task::Task;
use batch::{IGNORED, Targets};
use kg::split::Part;
use tasks::builder::masked_lm::{Masker, Rates, Unit};
use tasks::builder::tagging::{Classes, LaterSubwords};
use tasks::shard::index::Index;
use tasks::shard::text::{Chunks, MaskedLm, Tagging, Texts};
use tasks::shard::write::{Config, From, write};
use tasks::stream::lane::Batching;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps;
use text::file::{Format, documents};
use text::{Labels, jsonl};

use crate::shards::world::{STREAM, World, files, stream};

const FORMAT: jsonl::Config = jsonl::Config {
    unit: Some(jsonl::Unit::Characters),
    overlaps: jsonl::Overlaps::Refuse,
    other_keys: jsonl::OtherKeys::Refuse,
};

/// Twenty texts of names, each with its second word marked; one of them has nothing to mask.
fn lines(world: &World) -> String {
    let line = |i: usize| {
        let text = format!("a1 {} finds a2", world.names[i]);
        let end = 3 + world.names[i].find(' ').unwrap();
        format!(
            "{{\"text\": \"{text}\", \"spans\": [{{\"start\": 3, \"end\": {end}, \"label\": \"Name\"}}]}}\n"
        )
    };
    (0..20).map(line).collect::<String>() + "{\"text\": \"zzz\"}\n"
}

fn texts(world: &World) -> (Chunks, Labels) {
    let (mut texts, mut labels) = (Texts::default(), Labels::default());
    let (text, file) = (lines(world), Path::new("x.jsonl"));
    documents(
        text.as_bytes(),
        file,
        &Format::Jsonl(FORMAT),
        &mut labels,
        |document| -> Result<(), ReadError> {
            texts.push(&world.vocabulary, document, 8).unwrap();
            Ok(())
        },
    )
    .unwrap();
    (Chunks::held(texts).unwrap(), labels)
}

/// The graph's tasks and those on text.
fn tasks() -> Vec<Task> {
    [&Task::GRAPH[..], &[Task::MaskedLm, Task::Tagging]].concat()
}

fn written(world: &World, folder: &Path) -> Index {
    let rates = Rates { rate: 0.3, mask: 1.0, random: 0.0 };
    let masker = Masker::new(&world.vocabulary, rates, Unit::Words, RngKey::new(5)).unwrap();
    let masked = MaskedLm::new(texts(world).0, masker).unwrap();
    let (tagged, labels) = texts(world);
    let tagging = Tagging::new(tagged, Classes::new(&labels), LaterSubwords::Ignored).unwrap();
    let from = From {
        vocabulary: &world.vocabulary,
        vocabulary_digest: "digest",
        sources: &[],
        texts: &[&masked, &tagging],
        names: None,
    };
    let config = Config { tasks: tasks(), ..World::config() };
    write(folder, &world.corpus(), &[World::held()], from, &config, &|_| Ok(())).unwrap()
}

#[test]
fn text_shards_ask_for_what_was_hidden_and_for_tags() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = written(&world, folder.path());
    let counts = &index.texts[&Task::MaskedLm];
    let masked = counts.masked.unwrap();
    assert_eq!((counts.passages.documents, masked.nothing_to_ask), (21, 1));
    let rows = |task| index.part(task, Part::Train).unwrap().rows;
    assert_eq!((rows(Task::MaskedLm), rows(Task::MaskedLm) + 1), (masked.rows, rows(Task::Tagging)));
    assert_eq!(index.classes, ["O", "B-Name", "I-Name"]);
    let only = steps::Config { schedule: Schedule::Proportional, batching: Batching::Items(5), ..STREAM };
    let mut stream = stream(folder.path(), &only);
    let (mut asked, mut names) = (0, 0);
    for _ in 0..60 {
        let batch = stream.next_step().unwrap().remove(0);
        let Targets::Tokens(labels) = &batch.targets else { continue };
        let cells = batch.input_ids.iter().zip(labels).filter(|(_, label)| **label != IGNORED);
        match batch.task {
            Task::MaskedLm => cells.for_each(|(id, _)| {
                assert_eq!(*id, 4, "hidden");
                asked += 1;
            }),
            Task::Tagging => names += cells.filter(|(_, label)| **label == 1).count(),
            _ => {}
        }
    }
    assert!(asked > 0 && names > 0, "{asked} {names}");
    let again = tempfile::tempdir().unwrap();
    assert_eq!(written(&world, again.path()), index);
    assert_eq!(files(again.path()), files(folder.path()));
}

#[test]
fn with_kimera_every_step_has_a_batch_of_the_text_tasks_too() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    written(&world, folder.path());
    let mut stream = stream(folder.path(), &STREAM);
    for _ in 0..30 {
        let shown: Vec<Task> = stream.next_step().unwrap().iter().map(|batch| batch.task).collect();
        assert_eq!(shown, tasks());
    }
}
