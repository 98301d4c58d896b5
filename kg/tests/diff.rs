//! What a diff of two triple tables finds.

use std::collections::BTreeMap;
use std::fs::{self, File};

use kg::canon::{Inverses, Policy};
use kg::diff::report::{Delta, Triples};
use kg::diff::{Diff, diff};
use kg::split::{ByRatio, Cover, Leaky, Mode, Official, Options, Part, Ratios, Together, View, split};
use kg::table::{Builder, Graph, Origin};

/// A statement: source, part or vocabulary, subject, relation, object. An entity is `key=text`, or a key that is its own text.
type Said = (&'static str, Option<&'static str>, [&'static str; 3]);

fn build(said: &[Said]) -> Builder {
    let mut builder = Builder::new();
    for (source, vocabulary, names) in said {
        let [subject, object] = [names[0], names[2]].map(|name| {
            let (key, text) = name.split_once('=').unwrap_or((name, name));
            builder.entity(source, key, text)
        });
        let relation = builder.relation(source, names[1], names[1]);
        let origin = builder.origin(Origin {
            source: (*source).to_owned(),
            vocabulary: vocabulary.map(str::to_owned),
            weight: None,
            count: None,
            level: None,
        });
        builder.triple(subject, relation, object, origin).unwrap();
    }
    builder
}

fn table(said: &[Said]) -> Graph {
    kg::canon::merge(build(said), &Policy::standard()).unwrap().graph().unwrap()
}

fn nobody(_: &str) -> Option<String> {
    None
}

/// (change, old key, new key).
fn told<'a>(found: &Diff, old: &'a Graph, new: &'a Graph) -> Vec<(&'static str, &'a str, &'a str)> {
    let key = |graph: &'a Graph, id: Option<kg::table::EntityId>| {
        id.map_or("", |id| graph.entities()[id.index()].key.as_str())
    };
    found.moved.iter().map(|m| (m.change.name(), key(old, m.old), key(new, m.new))).collect()
}

#[test]
fn a_table_does_not_differ_from_itself() {
    let one = table(&[("s", None, ["a", "r", "b"]), ("t", None, ["b", "q", "c"])]);
    let found = diff(&one, &one, nobody);
    assert_eq!(found.moved, []);
    let report = &found.report;
    assert_eq!(
        report.triples,
        Triples { old: 2, new: 2, kept: 2, merged: 0, turned: 0, added: 0, removed: 0 }
    );
    assert_eq!((report.entities.kept, report.entities.added), (3, 0));
    assert!(report.by_source.is_empty() && report.by_relation.is_empty());
    assert_eq!((&report.relations.added, &report.relations.removed), (&vec![], &vec![]));
}

#[test]
fn every_fate_of_an_entity_is_told() {
    let old = table(&[
        ("s", None, ["b", "r", "gone"]),
        ("s", None, ["u:1=Flu", "r", "u:2=Cold"]),
        ("s", None, ["name:fever=Fever", "r", "b"]),
    ]);
    let new = table(&[
        ("s", None, ["a", "r", "b"]),
        ("s", None, ["u:2=Common cold", "r", "a"]),
        ("s", None, ["u:9=fever", "r", "b"]),
    ]);
    let retired = |key: &str| (key == "u:1").then(|| "u:2".to_owned());
    let found = diff(&old, &new, retired);
    assert_eq!(
        told(&found, &old, &new),
        [
            ("renumbered", "b", "b"),
            ("removed", "gone", ""),
            ("rekeyed", "name:fever", "u:9"),
            ("merged", "u:1", "u:2"),
            ("renumbered", "u:2", "u:2"),
            ("renamed", "u:2", "u:2"),
            ("added", "", "a"),
        ]
    );
    let count = found.report.entities;
    assert_eq!((count.old, count.new, count.kept, count.rekeyed, count.merged), (5, 4, 2, 1, 1));
    assert_eq!((count.by_text, count.by_retired, count.by_same_as), (1, 1, 0));
    assert_eq!(count.old, count.kept + count.rekeyed + count.merged + count.removed);
    let unexplained = diff(&old, &new, nobody).report.entities;
    assert_eq!((unexplained.merged, unexplained.removed), (0, 2));
}

#[test]
fn a_text_that_several_have_finds_nobody() {
    let old = table(&[("s", None, ["one=Cold", "r", "two=cold"])]);
    let new = table(&[("s", None, ["three=Cold", "r", "x"])]);
    let found = diff(&old, &new, nobody).report.entities;
    assert_eq!((found.by_text, found.removed, found.added), (0, 2, 2));
}

#[test]
fn triples_come_and_go_by_relation_and_by_source() {
    let old = table(&[
        ("s", None, ["a", "r", "b"]),
        ("t", None, ["a", "r", "b"]),
        ("s", None, ["b", "q", "c"]),
        ("s", None, ["name:x=X", "r", "b"]),
    ]);
    let new = table(&[
        ("s", None, ["a", "r", "b"]),
        ("u", None, ["c", "r", "b"]),
        ("u", None, ["c", "p", "a"]),
        ("s", None, ["u:1=x", "r", "b"]),
    ]);
    let report = diff(&old, &new, nobody).report;
    assert_eq!(
        report.triples,
        Triples { old: 3, new: 4, kept: 2, merged: 0, turned: 0, added: 2, removed: 1 }
    );
    assert_eq!(
        (report.relations.added, report.relations.removed),
        (vec!["p".to_owned()], vec!["q".to_owned()])
    );
    let delta = |added, removed| Delta { added, removed };
    let by_relation = [("p", delta(1, 0)), ("q", delta(0, 1)), ("r", delta(1, 0))];
    assert_eq!(report.by_relation, BTreeMap::from(by_relation.map(|(key, delta)| (key.to_owned(), delta))));
    let by_source = [("s", delta(0, 1)), ("t", delta(0, 1)), ("u", delta(2, 0))];
    assert_eq!(report.by_source, BTreeMap::from(by_source.map(|(key, delta)| (key.to_owned(), delta))));
}

#[test]
fn the_list_of_entities_is_written_whole() {
    let old = table(&[("s", None, ["b", "r", "c"])]);
    let new = table(&[("s", None, ["a", "r", "c=C"])]);
    let folder = tempfile::tempdir().unwrap();
    let found = diff(&old, &new, nobody);
    found.write(folder.path(), &old, &new).unwrap();
    let path = folder.path().join("moved.parquet");
    let bytes = fs::read(&path).unwrap();
    let reader =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap());
    let rows: usize = reader.unwrap().build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, found.moved.len()), (3, 3), "removed, renamed, added");
    found.write(folder.path(), &old, &new).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn what_the_crosswalk_joined_and_turned_round_is_followed() {
    let said = [
        ("s", None, ["name:flu=Flu", "treated_by", "x:drug"]),
        ("s", None, ["a", "sib", "x:drug"]),
        ("s", None, ["a", "r", "b"]),
    ];
    let old = table(&said);
    let mut builder = build(&said);
    builder.alias("name:flu", "umls:C1");
    builder.alias("x:drug", "0:drug");
    builder.entity("u", "umls:C1", "Influenza");
    builder.entity("u", "0:drug", "Drug");
    builder.declare_inverse("treated_by", "treats");
    builder.declare_inverse("sib", "sib");
    let new = kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
    let found = diff(&old, &new, nobody);
    assert_eq!(
        told(&found, &old, &new)
            .into_iter()
            .filter(|(change, ..)| *change != "renumbered")
            .collect::<Vec<_>>(),
        [("rekeyed", "name:flu", "umls:C1"), ("rekeyed", "x:drug", "0:drug")]
    );
    assert_eq!(found.report.entities.by_same_as, 2);
    assert_eq!(
        found.report.triples,
        Triples { old: 3, new: 3, kept: 3, merged: 0, turned: 2, added: 0, removed: 0 }
    );
    assert_eq!(
        (found.report.relations.turned, found.report.relations.added),
        (vec!["treated_by".to_owned()], vec!["treats".to_owned()])
    );
}

fn official(graph: &Graph, leaky: Leaky) -> kg::split::Split {
    let mode = Mode::Official(Official::read(graph, "kgbert", leaky).unwrap());
    split(
        &View::of(graph),
        &Options { together: Together::Inverse, detect_inverses: None, suspicion: None, mode },
    )
    .unwrap()
}

#[test]
fn official_parts_come_from_the_origins() {
    let graph = table(&[
        ("kgbert", Some("train"), ["a", "r", "b"]),
        ("kgbert", Some("dev"), ["b", "r", "c"]),
        ("kgbert", Some("test"), ["c", "r", "d"]),
        ("umls", Some("MSH"), ["c", "r", "d"]),
        ("umls", Some("MSH"), ["C=c", "r", "d"]),
        ("kgbert", Some("test"), ["d", "r", "e"]),
        ("kgbert", Some("train"), ["d", "r", "e"]),
    ]);
    let keep = official(&graph, Leaky::Keep);
    use Part::{Aside, Test, Train, Valid};
    // Sorted by key: C r d, a r b, b r c, c r d, d r e.
    assert_eq!(keep.part, [Train, Train, Valid, Test, Test]);
    assert_eq!((keep.report.stated_twice, keep.report.triples.aside), (1, 0));
    let aside = official(&graph, Leaky::Aside);
    assert_eq!(aside.part, [Aside, Train, Valid, Test, Test]);
    let audit = |part: &[Part]| {
        let options = kg::audit::Options { together: Together::Inverse, inverses: &[], suspicion: None };
        kg::audit::audit(&View::of(&graph), part, &options).unwrap().report.leaks
    };
    assert_eq!((audit(&keep.part), audit(&aside.part)), (1, 0));
}

#[test]
fn an_official_split_with_its_leaks_put_aside_does_not_leak() {
    const NAMES: [&str; 8] = ["a=A", "b=B", "c=a", "d=D", "e=b", "f=F", "g=D ", "h=H"];
    const RELATIONS: [&str; 4] = ["r", "q", "R", "sib"];
    let parts = [Some("train"), Some("train"), Some("valid"), Some("test")];
    let (mut leaky, mut aside) = (0, 0);
    for seed in 0..100_u64 {
        let chance = |place: u64, bound: u64| {
            usize::try_from((seed * 1000 + place).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).unwrap()
                % usize::try_from(bound).unwrap()
        };
        let said: Vec<Said> = (0..20)
            .map(|row| {
                let names = [
                    NAMES[chance(4 * row, 8)],
                    RELATIONS[chance(4 * row + 1, 4)],
                    NAMES[chance(4 * row + 2, 8)],
                ];
                match chance(4 * row + 3, 5) {
                    4 => ("umls", None, names),
                    part => ("kgbert", parts[part], names),
                }
            })
            .collect();
        let mut builder = build(&said);
        builder.declare_inverse("sib", "sib");
        let graph = kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap();
        for together in [Together::Inverse, Together::Pair] {
            let leaks = |leaky| {
                let mode = Mode::Official(Official::read(&graph, "kgbert", leaky).unwrap());
                let made = split(
                    &View::of(&graph),
                    &Options { together, detect_inverses: None, suspicion: None, mode },
                )
                .unwrap();
                let options = kg::audit::Options { together, inverses: &[], suspicion: None };
                let audit = kg::audit::audit(&View::of(&graph), &made.part, &options).unwrap();
                (audit.report.leaks, made.report.triples.aside)
            };
            leaky += leaks(Leaky::Keep).0;
            let put_aside = leaks(Leaky::Aside);
            assert_eq!(put_aside.0, 0, "seed {seed} {together:?}");
            aside += put_aside.1;
        }
    }
    assert!(leaky > 100 && aside > 100, "{leaky} {aside}");
}

#[test]
fn a_source_without_parts_is_refused() {
    let graph = table(&[("umls", Some("MSH"), ["a", "r", "b"])]);
    let error = Official::read(&graph, "kgbert", Leaky::Keep).unwrap_err().to_string();
    assert!(error.contains("`kgbert`") && error.contains("umls"), "{error}");
    let error = Official::read(&graph, "umls", Leaky::Keep).unwrap_err().to_string();
    assert!(error.contains("`MSH`") && error.contains("train, dev, valid or test"), "{error}");
    let other =
        table(&[("kgbert", Some("train"), ["a", "r", "b"]), ("kgbert", Some("dev"), ["a", "r", "c"])]);
    let parts = Official::read(&other, "kgbert", Leaky::Keep).unwrap();
    let options = Options {
        together: Together::Pair,
        detect_inverses: None,
        suspicion: None,
        mode: Mode::Official(parts),
    };
    let error = split(&View::of(&graph), &options).unwrap_err().to_string();
    assert!(error.contains("2 official parts for 1 triples"), "{error}");
}
#[test]
fn inverses_that_the_table_keeps_stay_together() {
    let mut said = Vec::new();
    let names: Vec<String> = (0..41).map(|i| format!("e{i}")).collect();
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    for pair in names.windows(2) {
        said.push(("s", None, [pair[0], "treats", pair[1]]));
        said.push(("s", None, [pair[1], "treated_by", pair[0]]));
    }
    let mut builder = build(&said);
    builder.declare_inverse("treats", "treated_by");
    let policy = Policy { inverses: Inverses::Keep, ..Policy::standard() };
    let graph = kg::canon::merge(builder, &policy).unwrap().graph().unwrap();
    let ratios = Ratios::new(0.5, 0.0, 0.5).unwrap();
    let mode = Mode::Ratio(ByRatio { ratios, seed: 1, cover: Cover::Leave });
    let made = split(
        &View::of(&graph),
        &Options { together: Together::Inverse, detect_inverses: None, suspicion: None, mode },
    );
    assert_eq!(made.unwrap().report.group_sizes, BTreeMap::from([(2, 40)]));
}

#[test]
fn inverses_that_contradict_one_another_are_not_folded_and_stay_together_all_the_same() {
    let mut said = Vec::new();
    let names: Vec<&'static str> = (0..41).map(|i| &*format!("e{i}").leak()).collect();
    for pair in names.windows(2) {
        said.push(("s", None, [pair[0], "has_part", pair[1]]));
        said.push(("s", None, [pair[1], "part_of", pair[0]]));
        said.push(("s", None, [pair[1], "is_part", pair[0]]));
    }
    let mut builder = build(&said);
    builder.declare_inverse("has_part", "part_of");
    builder.declare_inverse("has_part", "is_part");
    let canon = kg::canon::merge(builder, &Policy::standard()).unwrap();
    assert_eq!(canon.report().conflicting_inverses[0].0, "has_part");
    let ratios = Ratios::new(0.5, 0.0, 0.5).unwrap();
    let mode = Mode::Ratio(ByRatio { ratios, seed: 1, cover: Cover::Leave });
    let graph = canon.graph().unwrap();
    let made = split(
        &View::of(&graph),
        &Options { together: Together::Inverse, detect_inverses: None, suspicion: None, mode },
    );
    assert_eq!(made.unwrap().report.group_sizes, BTreeMap::from([(3, 40)]));
}
