//! Splits by ratio: leak-free, stable, near what was asked.

use std::collections::BTreeMap;

use kg::audit::{self, Kind, audit};
use kg::split::{ByRatio, Cover, Mode, Options, Part, Ratios, Split, Together, split};
use kg::table::EntityId;

use super::toy::{Toy, audited, by_ratio, count, naive, triple, wild};

#[test]
fn no_split_leaks() {
    let mut held_out = 0;
    for seed in 0..400 {
        let toy = wild(seed);
        for (together, cover) in [
            (Together::Inverse, Cover::Leave),
            (Together::Inverse, Cover::Train),
            (Together::Pair, Cover::Leave),
            (Together::Pair, Cover::Train),
        ] {
            let options = by_ratio(together, seed, cover);
            let split = split(&toy.view(), &options).unwrap();
            let audit = audited(&toy, &split.part, together);
            assert_eq!(audit.leaks, [], "seed {seed} {options:?}");
            held_out += split.report.triples.valid + split.report.triples.test;
            if cover == Cover::Train {
                assert_eq!(split.report.uncovered, kg::split::report::Uncovered::default(), "seed {seed}");
            }
        }
        let all =
            Options { together: Together::Pair, detect_inverses: None, suspicion: None, mode: Mode::All };
        assert!(split(&toy.view(), &all).unwrap().part.iter().all(|&part| part == Part::Train));
    }
    assert!(held_out > 5000, "{held_out}");
}

#[test]
fn a_naive_split_of_a_graph_with_inverses_is_caught() {
    let mut toy = Toy::new(100, 2);
    toy.relations[0].2 = Some(1);
    toy.triples = (0..99).flat_map(|i| [triple(i, 0, i + 1), triple(i + 1, 1, i)]).collect();
    let toy = toy.sorted();
    let caught = audited(&toy, &naive(3, toy.triples.len()), Together::Inverse);
    assert!(caught.leaks.len() > 50 && caught.leaks.iter().all(|leak| leak.kind == Kind::Inverse));
    let split = split(&toy.view(), &by_ratio(Together::Inverse, 3, Cover::Leave)).unwrap();
    assert_eq!((split.report.groups, split.report.group_sizes), (99, BTreeMap::from([(2, 99)])));
    assert_eq!(audited(&toy, &split.part, Together::Inverse).leaks, []);
}

/// The part of each triple, by keys.
fn by_key(toy: &Toy, split: &Split) -> BTreeMap<(String, String, String), Part> {
    let key = |id: EntityId| toy.entities[id.index()].0.clone();
    let named = toy
        .triples
        .iter()
        .map(|t| (key(t.subject), toy.relations[t.relation.index()].0.clone(), key(t.object)));
    named.zip(split.part.iter().copied()).collect()
}

/// The same graph with all its ids turned round.
fn renumbered(toy: &Toy) -> Toy {
    let (entities, relations) = (count(&toy.entities), count(&toy.relations));
    let mut other = toy.clone();
    other.entities.reverse();
    other.relations.reverse();
    other.relations.iter_mut().for_each(|r| r.2 = r.2.map(|inverse| relations - 1 - inverse));
    for t in &mut other.triples {
        *t = triple(entities - 1 - t.subject.0, relations - 1 - t.relation.0, entities - 1 - t.object.0);
    }
    other.triples.reverse();
    other
}

#[test]
fn parts_do_not_depend_on_ids_or_the_order_of_rows() {
    for seed in 0..200 {
        let toy = wild(seed);
        let other = renumbered(&toy);
        for (together, cover) in [(Together::Inverse, Cover::Train), (Together::Pair, Cover::Leave)] {
            let options = by_ratio(together, seed, cover);
            let [one, two] = [&toy, &other].map(|toy| split(&toy.view(), &options).unwrap());
            assert_eq!(by_key(&toy, &one), by_key(&other, &two), "seed {seed}");
            assert_eq!(one.report, two.report, "seed {seed}");
        }
    }
}

#[test]
fn another_source_moves_no_group_that_it_does_not_join() {
    let mut moved = 0;
    for seed in 0..200 {
        let toy = wild(seed);
        for together in [Together::Inverse, Together::Pair] {
            let options = by_ratio(together, seed, Cover::Leave);
            let before = by_key(&toy, &split(&toy.view(), &options).unwrap());
            let mut more = toy.clone();
            let first = count(&more.entities);
            more.entities.extend((0..20).map(|i| (format!("a:{i}"), format!("another {i}"))));
            more.relations.push(("other".to_owned(), "Other".to_owned(), None, false));
            let relation = count(&more.relations) - 1;
            let more =
                more.state(&[(first, relation, 0), (first + 1, 0, first + 2), (1, relation, first + 3)]);
            let after = by_key(&more, &split(&more.view(), &options).unwrap());
            assert!(before.iter().all(|(triple, part)| after[triple] == *part), "seed {seed}");
            let other =
                by_key(&toy, &split(&toy.view(), &by_ratio(together, seed + 1, Cover::Leave)).unwrap());
            moved += u32::from(before != other);
        }
    }
    assert!(moved > 300, "another seed is another split: {moved}");
}

#[test]
fn ratios_are_near_those_asked_for() {
    let mut toy = Toy::new(100_001, 1);
    toy.triples = (0..100_000).map(|i| triple(i, 0, i + 1)).collect();
    let ratios = Ratios::new(0.8, 0.15, 0.05).unwrap();
    let mode = Mode::Ratio(ByRatio { ratios, seed: 5, cover: Cover::Leave });
    let split = split(
        &toy.view(),
        &Options { together: Together::Inverse, detect_inverses: None, suspicion: None, mode },
    )
    .unwrap();
    let counts = split.report.triples;
    assert_eq!(split.report.groups, 100_000);
    // Five standard deviations of a binomial: 632, 565, 345.
    assert!(counts.train.abs_diff(80_000) < 633, "{counts:?}");
    assert!(counts.valid.abs_diff(15_000) < 566, "{counts:?}");
    assert!(counts.test.abs_diff(5_000) < 346, "{counts:?}");
    assert_eq!(split.report.relations["r0"], counts);
}

#[test]
fn inverses_that_nobody_declared_are_found_and_kept_together() {
    let mut toy = Toy::new(200, 4);
    for i in 0..99 {
        toy = toy.state(&[(i, 0, i + 100), (i + 100, 1, i), (i, 2, i + 1), (i, 3, i + 1)]);
        if i != 50 {
            toy = toy.state(&[(i + 1, 3, i)]);
        }
    }
    let toy = toy.state(&[(5, 0, 150)]).sorted();
    let mut options = by_ratio(Together::Inverse, 1, Cover::Leave);
    let blind = split(&toy.view(), &options).unwrap();
    assert!(blind.detected.is_empty() && blind.report.inverses.is_empty());
    options.detect_inverses = Some(0.97);
    let seeing = split(&toy.view(), &options).unwrap();
    let names: Vec<_> =
        seeing.report.inverses.iter().map(|i| (i.relation.as_str(), i.inverse.as_str())).collect();
    assert_eq!(names, [("r0", "r1"), ("r3", "r3")]);
    let first = &seeing.report.inverses[0];
    assert_eq!((first.triples, first.inverse_triples, first.reversed), (100, 99, 99));
    let inverses =
        audit::Options { together: Together::Inverse, inverses: &seeing.detected, suspicion: None };
    assert_eq!(audit(&toy.view(), &seeing.part, &inverses).unwrap().leaks, []);
    assert!(audit(&toy.view(), &blind.part, &inverses).unwrap().leaks.len() > 20);
    options.detect_inverses = Some(1.0);
    assert_eq!(split(&toy.view(), &options).unwrap().report.inverses, []);
    for nonsense in [0.0, 1.5, f64::NAN] {
        options.detect_inverses = Some(nonsense);
        assert!(split(&toy.view(), &options).unwrap_err().to_string().contains("0.97"));
    }
}

#[test]
fn declared_inverses_are_not_reported_as_found() {
    let mut toy = Toy::new(4, 2).state(&[(0, 0, 1), (1, 1, 0), (2, 0, 3), (3, 1, 2)]);
    toy.relations[1].2 = Some(0);
    let mut options = by_ratio(Together::Inverse, 1, Cover::Leave);
    options.detect_inverses = Some(0.5);
    assert_eq!(split(&toy.view(), &options).unwrap().report.inverses, []);
}
