//! What is written: the same bytes whatever the threads, counts that follow from the triples, all parts, no false negative.

use batch::Targets;
use batch::task::Task;
use kg::split::Part;
use tasks::builder::{Blanks, Form};
use tasks::shard::file::Size;
use tasks::shard::index::{FileIndex, Index, PartIndex};

use crate::shards::world::{STREAM, TRIPLES, World, files, stream};

#[test]
fn one_and_four_threads_write_the_same_bytes_and_the_counts_follow_from_the_triples() {
    let world = World::new();
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = world.write(one.path(), 1);
    assert_eq!(index, world.write(four.path(), 4));
    assert_eq!(files(one.path()), files(four.path()));
    assert_eq!(index, Index::read(one.path()).unwrap());
    let rows = |part| Task::GRAPH.map(|task| index.part(task, part).unwrap().rows);
    let n = u64::from(TRIPLES);
    assert_eq!(rows(Part::Train), [n, n, n, 2 * n - index.negatives.counts[&Part::Train].gave_up]);
    assert_eq!(rows(Part::Valid), [10, 10, 10, 20 - index.negatives.counts[&Part::Valid].gave_up]);
    assert_eq!(index.parts(), [Part::Train, Part::Valid]);
    for part in index.tasks.iter().flat_map(|task| &task.parts) {
        assert_eq!(part.files.iter().map(FileIndex::rows).sum::<u64>(), part.rows);
        assert_eq!(part.lengths.values().sum::<u64>(), part.rows);
        let tokens: u64 = part.lengths.iter().map(|(&length, &rows)| length as u64 * rows).sum();
        assert_eq!(tokens, part.tokens);
    }
    // 40 rows are five groups of 8 triples; 20 rows of the triplet task are two of 8 with their negatives.
    assert_eq!(Task::GRAPH.map(|task| index.part(task, Part::Train).unwrap().files.len()), [3, 3, 3, 7]);
    let named = |name: &String| {
        name.ends_with(".parquet") || ["README.md", "croissant.json", "index.json"].contains(&name.as_str())
    };
    assert!(files(one.path()).keys().all(named), "no temporary file stays");
}

#[test]
fn files_end_by_bytes_and_row_groups_are_never_divided() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let whole = world.write_as(
        folder.path(),
        2,
        &tasks::shard::write::Config { size: Size::Bytes(1 << 20), ..World::config() },
    );
    let files = |index: &Index| index.part(Task::Subject, Part::Train).unwrap().files.clone();
    assert_eq!(files(&whole).len(), 1);
    let groups: Vec<u64> = files(&whole)[0].groups.iter().map(|group| group.bytes).collect();
    let folder = tempfile::tempdir().unwrap();
    let limit = groups[0] + groups[1] + 10;
    let parted = world.write_as(
        folder.path(),
        2,
        &tasks::shard::write::Config { size: Size::Bytes(limit), ..World::config() },
    );
    assert!(files(&parted).len() > 4);
    for file in files(&parted) {
        assert!(file.groups.len() == 1 || file.start(file.groups.len()) <= limit + 4, "{file:?}");
    }
    let again: Vec<u64> =
        files(&parted).iter().flat_map(|file| file.groups.iter().map(|group| group.bytes)).collect();
    assert_eq!(groups, again);
    let tiny = tasks::shard::write::Config { size: Size::Bytes(1), ..World::config() };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(files(&world.write_as(folder.path(), 2, &tiny)).len(), groups.len(), "a group each");
}

#[test]
fn slotted_rows_have_one_width_and_padding_inside_that_nobody_attends_to() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let mut config = World::config();
    config.layout.form = Form::Slotted;
    config.layout.blanks = Blanks::WholeSlot;
    config.layout.limits.node = 6;
    config.layout.limits.edge = 3;
    let index = world.write_as(folder.path(), 2, &config);
    assert_eq!(index.longest(), 1 + 6 + 1 + 3 + 1 + 6 + 1);
    for batch in stream(folder.path(), &STREAM).next_step().unwrap() {
        assert_eq!(batch.width, 19);
        let masked = batch.attention_mask.iter().zip(&batch.input_ids);
        assert!(masked.clone().all(|(&mask, &id)| (mask == 0) == (id == 0)), "{batch:?}");
        assert!(masked.filter(|(mask, _)| **mask == 0).count() > 0);
        if let (Task::Subject, Targets::Tokens(labels)) = (batch.task, &batch.targets) {
            let asked = labels.iter().filter(|label| **label != batch::IGNORED).count();
            assert_eq!(asked, 6 * batch.rows, "the whole slot, padding included");
        }
    }
}

#[test]
fn settings_out_of_range_are_named() {
    use tasks::shard::write::Config;
    let refuse = |change: fn(&mut Config)| {
        let mut config = World::config();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert!(refuse(|c| c.size = Size::Rows(0)).contains("size is 0, expected at least 1"));
    assert!(refuse(|c| c.items_per_group = 0).contains("items_per_group"));
    assert!(refuse(|c| c.tasks = vec![Task::Subject, Task::Subject]).contains("none twice"));
    assert!(refuse(|c| c.tasks.clear()).contains("tasks is []"));
    assert!(refuse(|c| c.negatives.slots.clear()).contains("negatives.slots"));
    assert!(refuse(|c| c.negatives.max_draws = 0).contains("max_draws"));
    assert!(refuse(|c| c.layout.limits.edge = 0).contains("limits.edge"));
    World::config().check().unwrap();
}

#[test]
fn a_file_says_what_it_is_without_its_index() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 1);
    let path = folder.path().join(&index.part(Task::Triplet, Part::Valid).unwrap().files[0].path);
    let bytes = bytes::Bytes::from(std::fs::read(path).unwrap());
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let value =
        |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone()).unwrap();
    assert_eq!(value("engraft.format"), "engraft-shards");
    assert_eq!((value("engraft.task"), value("engraft.part")), ("triplet".to_owned(), "valid".to_owned()));
    assert_eq!(value("engraft.tokenizer.blake3"), "digest");
}

#[test]
fn an_index_names_its_parts() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let index = world.write(folder.path(), 1);
    let rows = index
        .part(Task::Subject, Part::Valid)
        .map(|part: &PartIndex| (part.items, part.files[0].path.clone()));
    assert_eq!(rows, Some((10, "subject/valid-00000-of-00001.parquet".to_owned())));
    assert_eq!(index.part(Task::Subject, Part::Test), None);
    assert_eq!(index.sources[0].levels["0"], 101);
}
