//! KG-BERT's UMLS with its official split. Knows where this machine has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kg::audit::{self, Audit, audit};
use kg::split::{Cover, Part, Suspicion, Together, split};
use kg::table::Triple;

use super::toy::{Toy, audited, by_ratio, triple};

/// KG-BERT's `umls` folder under ENGRAFT_DATA as a graph with its official parts, if this machine has it.
#[allow(clippy::disallowed_methods, reason = "a test has no command line to be told by")]
fn kg_bert() -> Option<(Toy, Vec<Part>)> {
    let folder = std::env::var_os("ENGRAFT_DATA").map(|data| PathBuf::from(data).join("kg-bert/data/umls"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("skipped: ENGRAFT_DATA is not set to a folder with kg-bert/data/umls");
        return None;
    };
    let lines = |file: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    };
    let names = |file: &str| -> BTreeMap<String, String> {
        lines(file).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
    };
    let (entities, relations) = (names("entity2text.txt"), names("relation2text.txt"));
    let place = |names: &BTreeMap<String, String>, key: &String| {
        u32::try_from(names.keys().position(|k| k == key).unwrap()).unwrap()
    };
    let mut rows: Vec<(Triple, Part)> = Vec::new();
    for (file, part) in [("train.tsv", Part::Train), ("dev.tsv", Part::Valid), ("test.tsv", Part::Test)] {
        let read = |row: Vec<String>| {
            (triple(place(&entities, &row[0]), place(&relations, &row[1]), place(&entities, &row[2])), part)
        };
        rows.extend(lines(file).into_iter().map(read));
    }
    rows.sort_unstable();
    let toy = Toy {
        entities: entities.into_iter().collect(),
        relations: relations.into_iter().map(|(key, text)| (key, text, None, false)).collect(),
        triples: rows.iter().map(|row| row.0).collect(),
    };
    Some((toy, rows.into_iter().map(|row| row.1).collect()))
}

/// All numbers here were counted independently, by set operations on the files' lines in Python.
#[test]
fn the_official_split_of_kg_bert_umls_leaks_as_counted_elsewhere() {
    let Some((toy, part)) = kg_bert() else { return };
    let plain = audited(&toy, &part, Together::Inverse);
    println!("{:?}", plain.report);
    assert_eq!(
        (plain.report.rows["train"], plain.report.rows["valid"], plain.report.rows["test"]),
        (5216, 652, 661)
    );
    assert_eq!(plain.report.leaks, 0, "its relations have no declared inverses, its texts are all different");
    let suspicion = Some(Suspicion { share: 0.8, support: 5 });
    let suspecting = audit::Options { together: Together::Inverse, inverses: &[], suspicion };
    let suspected = audit(&toy.view(), &part, &suspecting).unwrap().report.suspected;
    assert_eq!(suspected.would_leak, BTreeMap::from([("valid", 41), ("test", 49)]));
    let pair = audited(&toy, &part, Together::Pair);
    println!("{:?}", pair.report);
    let told = |audit: &Audit, between: &str, kind: &str| {
        (audit.report.kinds[between][kind], audit.report.pairs[between][kind])
    };
    assert_eq!(told(&pair, "train-valid", "same_pair"), (404, 1216));
    assert_eq!(told(&pair, "train-test", "same_pair"), (421, 1470));
    assert_eq!(told(&pair, "valid-test", "same_pair"), (125, 160));
    assert_eq!(pair.report.leaks, 404 + 421 + 125);

    let mut options = by_ratio(Together::Pair, 1, Cover::Train);
    options.detect_inverses = Some(0.97);
    let made = split(&toy.view(), &options).unwrap();
    let names: Vec<_> =
        made.report.inverses.iter().map(|i| (i.relation.as_str(), i.triples, i.reversed)).collect();
    assert_eq!(names, [("degree_of", 34, 34), ("precedes", 73, 72)]);
    let seeing = audit::Options { together: Together::Inverse, inverses: &made.detected, suspicion: None };
    let official = audit(&toy.view(), &part, &seeing).unwrap();
    println!("{:?}", official.report);
    assert_eq!(official.report.leaks, SYMMETRIC.iter().map(|(_, rows)| rows).sum::<u64>());
    for (between, rows) in SYMMETRIC {
        assert_eq!(told(&official, between, "symmetric"), (rows, rows));
    }
    let strict = audit::Options { together: Together::Pair, inverses: &made.detected, suspicion: None };
    assert_eq!(audit(&toy.view(), &made.part, &strict).unwrap().leaks, []);
    assert!(made.report.triples.test > 0 && made.report.triples.valid > 0, "{:?}", made.report.triples);
}

/// Rows of the second part whose reverse is in the first, of the two relations that are symmetric in the data.
const SYMMETRIC: [(&str, u64); 3] = [("train-valid", 8), ("train-test", 11), ("valid-test", 2)];
