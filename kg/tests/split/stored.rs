//! What is written of splits and audits can be read, by the graph that it was made of.

use std::fs;

use kg::split::{Cover, Together, View, split};

use super::toy::{audited, by_ratio, naive, wild};

#[test]
fn a_split_is_read_back_and_that_of_another_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (toy, other) = (wild(7), wild(8));
    let mut options = by_ratio(Together::Inverse, 7, Cover::Leave);
    options.detect_inverses = Some(0.1);
    let made = split(&toy.view(), &options).unwrap();
    assert!(!made.detected.is_empty());
    made.write(folder.path(), &toy.view()).unwrap();
    let bytes = fs::read(folder.path().join("split.parquet")).unwrap();
    let stored = kg::split::read::read(folder.path(), &toy.view()).unwrap();
    assert_eq!((&stored.part, &stored.group, &stored.detected), (&made.part, &made.group, &made.detected));
    made.write(folder.path(), &toy.view()).unwrap();
    assert_eq!(fs::read(folder.path().join("split.parquet")).unwrap(), bytes);

    let refused = |view: &View| kg::split::read::read(folder.path(), view).unwrap_err().to_string();
    assert!(refused(&other.view()).contains("another triple table"));
    let mut rekeyed = toy.clone();
    let used = toy.triples[0].subject.index();
    rekeyed.entities[used].0.push('x');
    assert!(refused(&rekeyed.view()).contains("digest"));
    let half = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
    fs::File::options().write(true).open(folder.path().join("split.parquet")).unwrap().set_len(200).unwrap();
    assert!(refused(&toy.view()).contains("damaged"));
    drop(half);
    fs::remove_file(folder.path().join("split.parquet")).unwrap();
    assert!(refused(&toy.view()).contains("make the split first"));
}

#[test]
fn the_list_of_leaks_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let toy = wild(11);
    let audit = audited(&toy, &naive(11, toy.triples.len()), Together::Pair);
    audit.write(folder.path()).unwrap();
    let file = fs::File::open(folder.path().join("leaks.parquet")).unwrap();
    let rows: usize = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert!(rows > 0 && rows == audit.leaks.len());
}
