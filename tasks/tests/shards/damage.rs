//! Whatever bit is flipped in a shard or in the index is found and named, and a writer that was stopped leaves nothing that reads.
#![allow(clippy::disallowed_methods, reason = "files are damaged here, and need not appear whole")]

use std::path::Path;

use batch::task::Task;
use kg::split::Part;
use tasks::Error;
use tasks::shard::index::{self, FileIndex, Index, Source};
use tasks::shard::read::{Of, Shard};
use tasks::shard::write::{From, write};
use tasks::stream::lane::Batching;
use tasks::stream::steps;

use crate::shards::world::{LAYOUT, STREAM, World, files, stream};

/// Reads all rows of a shard.
fn read(folder: &Path, file: &FileIndex, task: Task) -> Result<usize, String> {
    let shard = Shard::open(folder, file, Of { task, form: LAYOUT.form }).map_err(|e| e.to_string())?;
    let groups = (0..file.groups.len()).map(|group| shard.group(group).map(|group| group.starts.len() - 1));
    groups.sum::<Result<usize, _>>().map_err(|e| e.to_string())
}

#[test]
fn every_flipped_bit_of_a_shard_is_found_and_its_file_named() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 1);
    for task in &index.tasks {
        let read = |file: &FileIndex| read(folder.path(), file, task.task).unwrap() as u64;
        assert!(task.parts.iter().all(|part| part.rows == part.files.iter().map(read).sum::<u64>()));
    }
    let file = &index.part(Task::Triplet, Part::Train).unwrap().files[1];
    let path = &file.path;
    let whole = std::fs::read(folder.path().join(path)).unwrap();
    // The first four bytes are Parquet's mark, which no reader of row groups by place needs.
    for byte in 4..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 8);
        std::fs::write(folder.path().join(path), &damaged).unwrap();
        let error = read(folder.path(), file, Task::Triplet).expect_err(&format!("byte {byte}"));
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn every_flipped_bit_of_the_index_is_found_and_named() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    world.write(folder.path(), 1);
    let path = folder.path().join(index::FILE);
    let whole = std::fs::read(&path).unwrap();
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 7);
        let error = Index::parse(damaged, &path).expect_err(&format!("byte {byte}")).to_string();
        assert!(error.contains("index.json"), "{error}");
    }
    Index::parse(whole, &path).unwrap();
}

#[test]
fn a_cut_or_missing_file_is_named_with_what_the_index_says() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 1);
    let path = folder.path().join(&index.tasks[1].parts[0].files[1].path);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..50]).unwrap();
    let error = Index::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("50 bytes, but the index says"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = Index::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("object/train-00001-of-00003.parquet"), "{error}");
    std::fs::write(&path, &whole).unwrap();
    std::fs::remove_file(folder.path().join(index::FILE)).unwrap();
    assert!(Index::read(folder.path()).unwrap_err().to_string().contains("not finished"));
}

#[test]
fn a_damaged_row_group_stops_the_stream_and_the_thread_that_reads_ahead() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 2);
    let file = &index.part(Task::Object, Part::Train).unwrap().files[1];
    let path = folder.path().join(&file.path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(file.start(1)).unwrap() + 9] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    for windows in [0, 1, 3] {
        let ahead = tasks::stream::window::Ahead { windows, threads: 2 };
        let mut stream =
            stream(folder.path(), &steps::Config { ahead, batching: Batching::Items(50), ..STREAM });
        let error = (0..10).find_map(|_| stream.next_step().err()).unwrap().to_string();
        assert!(error.contains("object/train-00001-of-00003.parquet: row group 1"), "{error}");
        assert!(error.contains("engraft run shards"), "{error}");
    }
}

#[test]
fn a_writer_that_is_stopped_leaves_no_index_and_no_temporary_file() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let corpus = world.corpus();
    let sources: [Source; 0] = [];
    let from = From {
        vocabulary: &world.vocabulary,
        vocabulary_digest: "digest",
        sources: &sources,
        texts: &[],
        names: None,
    };
    let left = std::sync::atomic::AtomicI64::new(150);
    let full = |rows: u64| {
        let left = left.fetch_sub(rows.cast_signed(), std::sync::atomic::Ordering::SeqCst);
        if left > 0 { Ok(()) } else { Err(std::io::ErrorKind::StorageFull.into()) }
    };
    let error = write(folder.path(), &corpus, &[], from, &World::config(), &full).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
    let left = files(folder.path());
    assert!(!left.contains_key(index::FILE));
    assert!(
        left.keys().all(|name| name.starts_with("subject/train-")),
        "whole files of a whole task only: {:?}",
        left.keys()
    );
    assert!(Index::read(folder.path()).is_err());
}
