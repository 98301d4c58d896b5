//! Relations that look inverse or symmetric though nobody declared them so.

use std::collections::{BTreeMap, BTreeSet};

use kg::audit::{self, Audit, audit, published};
use kg::split::{Cover, Mode, Part, Suspicion, Together, split};
use kg::table::Negative;

use super::toy::{Dice, Toy, audited, by_ratio, naive, triple};

const SUSPICION: Suspicion = Suspicion { share: 0.8, support: 5 };

fn suspecting(toy: &Toy, part: &[Part], suspicion: Suspicion) -> Audit {
    let options = audit::Options { together: Together::Inverse, inverses: &[], suspicion: Some(suspicion) };
    audit(&toy.view(), part, &options).unwrap()
}

/// As WN18 is: what stands under one relation stands turned round under another, and a third is symmetric; a fourth is neither.
fn published_split() -> (Toy, Vec<Part>) {
    let mut toy = Toy::new(400, 4);
    for i in 0..100 {
        toy =
            toy.state(&[(i, 0, i + 100), (i + 100, 1, i), (i, 2, i + 200), (i + 200, 2, i), (i, 3, i + 300)]);
    }
    let toy = toy.sorted();
    // One direction is shown, the other held out.
    let held = |t: &kg::table::Triple| match t.relation.0 {
        1 if t.object.0.is_multiple_of(2) => Part::Test,
        2 if t.subject.0 >= 200 && t.subject.0.is_multiple_of(4) => Part::Test,
        3 if t.subject.0 < 4 => Part::Test,
        3 if t.subject.0 < 8 => Part::Valid,
        _ => Part::Train,
    };
    let part = toy.triples.iter().map(held).collect();
    (toy, part)
}

#[test]
fn silent_12_a_split_that_can_be_read_off_is_told_by_relations_and_refused() {
    let (toy, part) = published_split();
    let found = suspecting(&toy, &part, SUSPICION);
    assert_eq!(found.report.leaks, 0, "nothing is declared");
    let suspected = &found.report.suspected;
    assert_eq!(suspected.would_leak, BTreeMap::from([("test", 75)]));
    let pairs: Vec<_> = suspected
        .pairs
        .iter()
        .map(|p| (&*p.relation, &*p.inverse, p.triples, p.reversed, p.would_leak["test"]))
        .collect();
    assert_eq!(pairs, [("r0", "r1", 100, 100, 50), ("r2", "r2", 200, 200, 25)]);
    let refused = found.suspect(0.01).unwrap_err();
    assert_eq!((refused.would_leak, refused.held, refused.least()), (75, 79, 0.95));
    let text = refused.to_string();
    for says in [
        "75 of 79 triples of test (94.9 %)",
        "at most 1.0 %",
        "50 would leak if \"r0\" were the inverse of \"r1\"",
        "25 would leak if \"r2\" were symmetric",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert_eq!(found.suspect(refused.least()), Ok(()), "the share that is told accepts the split");
    assert_eq!(audited(&toy, &part, Together::Inverse).report.suspected, audit::Suspects::default());
}

#[test]
fn silent_12_splits_by_ratio_hold_suspects_together() {
    let (toy, _) = published_split();
    for seed in 0..20 {
        let mut options = by_ratio(Together::Inverse, seed, Cover::Train);
        let blind = split(&toy.view(), &options).unwrap();
        assert!(suspecting(&toy, &blind.part, SUSPICION).suspect(0.01).is_err(), "chance gives some away");
        options.suspicion = Some(SUSPICION);
        let made = split(&toy.view(), &options).unwrap();
        let names: Vec<_> =
            made.report.suspected.iter().map(|s| (s.relation.as_str(), s.inverse.as_str())).collect();
        assert_eq!(names, [("r0", "r1"), ("r2", "r2")]);
        assert_eq!((made.detected, made.report.inverses), (vec![], vec![]), "they do not count as inverse");
        assert_eq!(suspecting(&toy, &made.part, SUSPICION).report.suspected.would_leak, BTreeMap::new());
    }
    let mut options = by_ratio(Together::Inverse, 1, Cover::Leave);
    (options.suspicion, options.mode) = (Some(SUSPICION), Mode::All);
    assert_eq!(split(&toy.view(), &options).unwrap().report.suspected, [], "nothing is held out");
}

/// A small relation may be the inverse of a part of a large one.
#[test]
fn silent_12_one_relation_may_suggest_another_that_says_more() {
    let mut toy = Toy::new(400, 2);
    for i in 0..200 {
        toy = toy.state(&[(i, 0, i + 200)]);
    }
    for i in 0..10 {
        toy = toy.state(&[(i + 200, 1, i)]);
    }
    let toy = toy.sorted();
    let held = |relation: u32| -> Vec<Part> {
        let part = |t: &kg::table::Triple| match t.relation.0 == relation && t.subject.0 % 200 < 5 {
            true => Part::Test,
            false => Part::Train,
        };
        toy.triples.iter().map(part).collect()
    };
    let found = suspecting(&toy, &held(0), SUSPICION).report.suspected;
    assert_eq!(found.would_leak, BTreeMap::from([("test", 5)]), "r1 says all of it");
    let found = suspecting(&toy, &held(1), SUSPICION).report.suspected;
    assert_eq!(
        found.would_leak,
        BTreeMap::from([("test", 5)]),
        "the other 190 of r0 make none of these harder to read off"
    );
    let strict = Suspicion { support: 11, ..SUSPICION };
    let found = suspecting(&toy, &held(0), strict).report.suspected;
    assert_eq!(found.would_leak, BTreeMap::from([("test", 5)]), "little is asked for of a part of five");
}

/// What is held out may be read off however much else its relation and others say.
#[test]
fn silent_12_what_a_part_holds_out_is_looked_at_by_itself() {
    /// Triples shown and held out, and how many of the latter would leak.
    type Case = (fn(u32) -> [Option<(u32, u32, u32)>; 2], u64);
    let cases: [Case; 4] = [
        // 200 are shown, 40 of them held out under another relation.
        (|i| [Some((i, 0, i + 200)), (i < 40).then_some((i + 200, 1, i))], 40),
        // A relation that is symmetric where it is held out.
        (|i| [(i < 120).then_some((i, 0, i + 200)), (i < 30).then_some((i + 200, 0, i))], 30),
        // A small part.
        (|i| [Some((i, 0, i + 200)), (i < 4).then_some((i + 200, 1, i))], 4),
        // Half of another's: what is held out of r1 from 100 on is shown by none.
        (|i| [(i < 100).then_some((i, 0, i + 200)), (i >= 90).then_some((i + 200, 1, i))], 0),
    ];
    for (number, (stated, expected)) in cases.into_iter().enumerate() {
        let mut toy = Toy::new(400, 2);
        for i in 0..200 {
            toy = stated(i).into_iter().flatten().fold(toy, |toy, triple| toy.state(&[triple]));
        }
        let toy = toy.sorted();
        let held = |t: &kg::table::Triple| if t.subject.0 >= 200 { Part::Test } else { Part::Train };
        let part: Vec<Part> = toy.triples.iter().map(held).collect();
        let found = suspecting(&toy, &part, SUSPICION);
        let would = found.report.suspected.would_leak.get("test").copied().unwrap_or_default();
        assert_eq!(would, expected, "case {number}");
        assert_eq!(found.suspect(0.01).is_err(), expected > 0, "case {number}");
        let inverted = found.report.suspected.inverted["test"];
        assert_eq!(inverted, if expected > 0 { expected } else { 10 }, "case {number}: told however few");
    }
}

/// The same by going through all pairs of rows, on graphs in which chance makes and unmakes suspects.
#[test]
fn silent_12_suspects_are_those_of_all_pairs_of_rows() {
    let mut some = [0; 2];
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let (entities, relations) = (4 + dice.below(5), 1 + dice.below(4));
        let mut toy = Toy::new(entities, relations);
        for _ in 0..20 + dice.below(60) {
            let (s, r, o) = (dice.below(entities), dice.below(relations), dice.below(entities));
            toy.triples.push(triple(s, r, o));
            if dice.below(3) > 0 {
                toy.triples.push(triple(o, (r + 1) % relations, s));
            }
        }
        let toy = toy.sorted();
        let mut part = naive(seed, toy.triples.len());
        part.iter_mut().step_by(7).for_each(|part| *part = Part::Aside);
        let suspicion = Suspicion { share: 0.7, support: 4 };
        let found = suspecting(&toy, &part, suspicion).report.suspected;
        let expected = by_all_pairs(&toy, &part, suspicion);
        assert_eq!(found.would_leak, expected, "seed {seed}");
        some[usize::from(expected.is_empty())] += 1;
    }
    assert!(some.iter().all(|&n| n > 10), "{some:?}");
}

fn by_all_pairs(toy: &Toy, part: &[Part], suspicion: Suspicion) -> BTreeMap<&'static str, u64> {
    let rows: Vec<_> = toy.triples.iter().map(|t| (t.subject.0, t.relation.0, t.object.0)).collect();
    let all: BTreeSet<_> = rows.iter().copied().collect();
    let of = |relation: u32| rows.iter().filter(move |r| r.1 == relation && r.0 != r.2);
    let suggests = |from: u32, to: u32| {
        let reversed = of(from).filter(|r| all.contains(&(r.2, to, r.0))).count();
        reversed >= 4 && reversed as f64 >= suspicion.share * of(from).count() as f64
    };
    // Of the held-out triples of a relation, those that are shown inverted under another.
    let held_out = |part_of: Part, to: u32| {
        let mine =
            move |(row, p): &(&(u32, u32, u32), &Part)| **p == part_of && row.1 == to && row.0 != row.2;
        rows.iter().zip(part).filter(mine)
    };
    let suggests_held = |from: u32, to: u32, held_part: Part| {
        let is_shown = |row: &(u32, u32, u32)| {
            rows.iter().zip(part).any(|(shown, &p)| p < held_part && *shown == (row.2, from, row.0))
        };
        let all: BTreeSet<_> = held_out(held_part, to).map(|(row, _)| *row).collect();
        let shown = all.iter().filter(|row| is_shown(row)).count() as u64;
        let least =
            suspicion.support.min((part.iter().filter(|&&p| p == held_part).count() as u64 / 100).max(2));
        shown >= least && shown as f64 >= suspicion.share * all.len() as f64
    };
    let mut would = BTreeMap::new();
    for (held, &held_part) in rows.iter().zip(part).filter(|(row, part)| part.is_held_out() && row.0 != row.2)
    {
        let gives = |(shown, &shown_part): (&(u32, u32, u32), &Part)| {
            shown_part < held_part
                && (shown.0, shown.2) == (held.2, held.0)
                && (suggests(shown.1, held.1) || suggests_held(shown.1, held.1, held_part))
        };
        if rows.iter().zip(part).any(gives) {
            *would.entry(held_part.name()).or_default() += 1;
        }
    }
    would
}

#[test]
fn silent_11_negatives_that_a_triple_states_are_told_by_the_part_that_shows_most() {
    let mut toy = Toy::new(6, 2).state(&[(0, 0, 1), (2, 0, 3), (4, 1, 5)]);
    toy.relations[1].3 = true;
    let part = [Part::Train, Part::Test, Part::Valid];
    let negative = |subject: &str, relation: &str, object: &str, part: Option<&str>| Negative {
        keys: [subject, relation, object].map(str::to_owned),
        texts: [subject, relation, object].map(str::to_owned),
        source: "s".to_owned(),
        part: part.map(str::to_owned),
    };
    let negatives = [
        negative("key:0", "r0", "key:1", Some("dev")),
        negative("key:1", "r0", "key:0", Some("dev")),
        negative("key:2", "r0", "key:3", Some("dev")),
        negative("key:5", "r1", "key:4", Some("test")),
        negative("key:5", "r1", "elsewhere", None),
    ];
    let found = published(&toy.view(), &part, &negatives).unwrap();
    let by_part = [("dev", 3), ("test", 1), ("none", 1)].map(|(part, n)| (part.to_owned(), n));
    assert_eq!(found.negatives, BTreeMap::from(by_part));
    assert_eq!(found.also_stated, BTreeMap::from([("train", 1), ("test", 1), ("valid", 1)]));
    assert_eq!(found.beside_the_graph, 1);
}
