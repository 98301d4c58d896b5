//! The audit finds what is planted, and what the definition says, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use kg::audit::{self, Kind, Leak, Shown, ShownName, audit};
use kg::canon::fold::fold;
use kg::split::{Part, Together};
use kg::table::{EntityId, RelationId, Term, TermKind, TermOrigin};

use super::toy::{Dice, Toy, audited, found, naive, triple, wild};

#[test]
fn planted_leaks_of_each_kind_are_found() {
    let mut toy = Toy::new(6, 4).state(&[(0, 0, 1), (1, 1, 0), (2, 2, 3), (3, 2, 2), (4, 3, 5), (4, 0, 5)]);
    toy.relations[0].2 = Some(1);
    toy.relations[2].3 = true;
    let part = [Part::Train, Part::Test, Part::Test, Part::Valid, Part::Valid, Part::Train];
    let strict = audited(&toy, &part, Together::Inverse);
    assert_eq!(found(&strict), [(1, 0, Kind::Inverse), (2, 3, Kind::Symmetric)]);
    assert_eq!((strict.leaks[1].held_part, strict.leaks[1].shown_part), (Part::Test, Part::Valid));
    let strictest = audited(&toy, &part, Together::Pair);
    assert_eq!(found(&strictest)[2..], [(4, 5, Kind::SamePair)]);

    // The same ids twice cannot stand in a table, but a faulty one is still judged.
    let twice = Toy::new(2, 1).state(&[(0, 0, 1), (0, 0, 1)]);
    let exact = audited(&twice, &[Part::Valid, Part::Train], Together::Inverse);
    assert_eq!(found(&exact), [(0, 1, Kind::Exact)]);

    let mut alike = Toy::new(4, 2).state(&[(0, 0, 1), (2, 1, 3), (3, 0, 2)]);
    alike.entities[2].1 = " ENTITY\t0".to_owned();
    alike.entities[3].1 = "entity 1".to_owned();
    alike.relations[1].1 = "Relates 0".to_owned();
    let same_text = audited(&alike, &[Part::Train, Part::Test, Part::Valid], Together::Inverse);
    assert_eq!(found(&same_text), [(1, 0, Kind::SameText)]);
    alike.relations[0].3 = true;
    let turned = audited(&alike, &[Part::Train, Part::Test, Part::Valid], Together::Inverse);
    assert_eq!(
        found(&turned),
        [(1, 0, Kind::SameText), (1, 2, Kind::Inverse), (2, 0, Kind::SameText)],
        "row 1 says by another relation of the same words what row 2 says turned round"
    );
}

#[test]
fn a_leak_is_told_in_words_and_in_numbers() {
    let mut toy = Toy::new(2, 2).state(&[(0, 0, 1), (1, 1, 0)]);
    toy.relations[0].2 = Some(1);
    let leaky = audited(&toy, &[Part::Train, Part::Test], Together::Inverse);
    let error = leaky.prove(&toy.view()).unwrap_err().to_string();
    for word in
        ["1 held-out", "train-test inverse: 1", "test row 1: key:1 (Entity 1) r1 key:0", "train row 0"]
    {
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(leaky.report.kinds["train-test"], BTreeMap::from([("inverse", 1)]));
    assert_eq!((leaky.report.leaks, leaky.report.rows["train"]), (1, 1));
    let clean = audited(&toy, &[Part::Train, Part::Train], Together::Pair);
    assert_eq!((clean.prove(&toy.view()), clean.report.leaks), (Ok(()), 0));
    let aside = audited(&toy, &[Part::Aside, Part::Test], Together::Pair);
    assert_eq!(aside.report.leaks, 0, "what is aside is shown to nobody");
}

#[test]
fn a_clean_graph_has_no_leaks_whatever_the_parts() {
    let mut toy = Toy::new(400, 5);
    let mut dice = Dice(1);
    let mut pairs = BTreeSet::new();
    for _ in 0..3000 {
        let (a, b) = (dice.below(400), dice.below(400));
        if a != b && pairs.insert((a.min(b), a.max(b))) {
            toy.triples.push(triple(a, dice.below(5), b));
        }
    }
    toy.relations[0].2 = Some(1);
    toy.relations[2].3 = true;
    let part = naive(2, toy.triples.len());
    assert_eq!(audited(&toy, &part, Together::Pair).leaks, []);
}

/// What the two rows give away of each other, from the definition, by trying all chains of inverses.
fn between(toy: &Toy, held: usize, shown: usize, together: Together) -> Option<Kind> {
    let text = |id: EntityId| fold(&toy.entities[id.index()].1);
    let wording = |id: RelationId| fold(&toy.relations[id.index()].1);
    let (a, b) = (toy.triples[held], toy.triples[shown]);
    // Every (wording, turned) that the held relation can be put in.
    let mut ways = BTreeSet::from([(wording(a.relation), false)]);
    loop {
        let before = ways.len();
        for (place, relation) in toy.relations.iter().enumerate() {
            let mut inverses = vec![];
            inverses.extend(relation.2);
            inverses.extend(relation.3.then_some(u32::try_from(place).unwrap()));
            for inverse in inverses {
                let (one, other) = (fold(&relation.1), wording(RelationId(inverse)));
                for turned in [false, true] {
                    for (from, to) in [(&one, &other), (&other, &one)] {
                        if ways.contains(&(from.clone(), turned)) {
                            ways.insert((to.clone(), !turned));
                        }
                    }
                }
            }
        }
        if ways.len() == before {
            break;
        }
    }
    let way = |turned: bool| ways.contains(&(wording(b.relation), turned));
    let one_text = text(a.subject) == text(a.object);
    let straight = text(a.subject) == text(b.subject) && text(a.object) == text(b.object);
    let turned = text(a.subject) == text(b.object) && text(a.object) == text(b.subject);
    let says = (straight && way(false)) || (turned && way(true));
    let ids_straight = (a.subject, a.object) == (b.subject, b.object);
    let ids_turned = (a.subject, a.object) == (b.object, b.subject);
    if a == b {
        Some(Kind::Exact)
    } else if !says {
        (together == Together::Pair && (straight || turned)).then_some(Kind::SamePair)
    } else if one_text || !(ids_straight || ids_turned) {
        Some(Kind::SameText)
    } else if ids_turned && a.relation == b.relation {
        Some(Kind::Symmetric)
    } else if ids_straight && wording(a.relation) == wording(b.relation) {
        Some(Kind::SameText)
    } else {
        Some(Kind::Inverse)
    }
}

#[test]
fn the_audit_agrees_with_the_definition_on_wild_graphs() {
    let mut seen = BTreeMap::new();
    for seed in 0..400 {
        let toy = wild(seed);
        let part = naive(seed, toy.triples.len());
        for together in [Together::Inverse, Together::Pair] {
            let mut expected = Vec::new();
            for (held, &held_part) in part.iter().enumerate() {
                for shown_part in [Part::Train, Part::Valid].into_iter().filter(|&part| part < held_part) {
                    let shown = (0..part.len()).filter(|&row| part[row] == shown_part);
                    let kinds: Vec<Kind> =
                        shown.filter_map(|row| between(&toy, held, row, together)).collect();
                    let Some(&kind) = kinds.iter().min() else { continue };
                    let counted =
                        kinds.iter().filter(|&&k| (k == Kind::SamePair) == (kind == Kind::SamePair));
                    expected.push((held, held_part, shown_part, kind, counted.count()));
                    *seen.entry(kind).or_insert(0) += 1;
                }
            }
            let found = audited(&toy, &part, together).leaks;
            for leak in &found {
                let kind = between(&toy, leak.held as usize, leak.shown as usize, together);
                assert_eq!((kind, part[leak.shown as usize]), (Some(leak.kind), leak.shown_part));
            }
            let told = |l: &Leak| (l.held as usize, l.held_part, l.shown_part, l.kind, l.times as usize);
            assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
    for kind in [Kind::Symmetric, Kind::Inverse, Kind::SameText, Kind::SamePair] {
        assert!(seen.get(&kind) > Some(&100), "{seen:?}");
    }
}

#[test]
fn what_one_task_holds_out_no_other_shows() {
    let mut toy = Toy::new(6, 3).state(&[(0, 0, 1), (1, 1, 0), (2, 2, 3), (4, 2, 5)]);
    toy.relations[0].2 = Some(1);
    let view = toy.view();
    let part = [Part::Train, Part::Train, Part::Valid, Part::Test];
    let options = audit::Options { together: Together::Inverse, inverses: &[], suspicion: None };
    let leaks = |shown: &[(u32, Part, u32)]| {
        let shown = shown.iter().map(|&(task, part, triple)| Shown { task, part, triple });
        audit::tasks(&view, &part, shown, &options).unwrap()
    };
    let as_split: Vec<_> =
        (0..2).flat_map(|task| (0..4).map(move |row| (task, part[row as usize], row))).collect();
    assert_eq!(leaks(&as_split), []);
    // Task 1 learns from the inverse of what task 0 is tested on.
    let crossed = [(0, Part::Test, 0), (1, Part::Train, 1), (0, Part::Train, 1)];
    let found = leaks(&crossed);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].held, found[0].held_task, found[0].shown, found[0].shown_task), (0, 0, 1, 0));
    let mut turned = crossed;
    turned.reverse();
    assert_eq!(leaks(&turned), found, "the order of what is shown does not matter");
    // Tasks that show what the split holds out.
    let found = leaks(&[(1, Part::Train, 2), (1, Part::Valid, 3), (2, Part::Train, 0)]);
    let told: Vec<_> = found.iter().map(|l| (l.held, l.held_part, l.held_task, l.shown_part)).collect();
    let by_split = audit::task::SPLIT;
    assert_eq!(told, [(2, Part::Valid, by_split, Part::Train), (3, Part::Test, by_split, Part::Valid)]);
    let strange =
        audit::tasks(&view, &part, [Shown { task: 0, part: Part::Train, triple: 9 }].into_iter(), &options);
    assert!(strange.unwrap_err().to_string().contains("row 9"));
}

#[test]
fn no_part_shows_a_name_that_another_holds_out() {
    let toy = Toy::new(6, 1).state(&[(0, 0, 1), (1, 0, 2), (3, 0, 2), (4, 0, 4), (5, 0, 5)]);
    let (view, part) = (toy.view(), [Part::Train, Part::Test, Part::Valid, Part::Valid, Part::Aside]);
    let named = [(0, "Fever"), (1, "Cough"), (2, "Flu"), (3, "Grippe"), (4, "FE\u{301}VER"), (5, "Ague")];
    let terms: Vec<Term> = named
        .map(|(entity, text)| Term {
            entity: EntityId(entity),
            kind: TermKind::Synonym,
            text: text.to_owned(),
            origin: TermOrigin { source: "s".to_owned(), vocabulary: None, language: None, level: None },
        })
        .into();
    let leaks = |shown: &[(u32, Part)]| {
        let shown: Vec<_> = shown.iter().map(|&(term, part)| ShownName { term, part, task: 3 }).collect();
        let found = audit::names(&view, &part, &terms, &shown).unwrap();
        found.iter().map(|l| (l.held, l.held_part, l.shown, l.shown_part)).collect::<Vec<_>>()
    };
    let (train, valid, test) = (Part::Train, Part::Valid, Part::Test);
    assert_eq!(leaks(&[(0, train), (1, train), (2, valid), (3, valid)]), []);
    // Entity 2 is in a valid and a test triple, so it is valid's.
    assert_eq!(leaks(&[(2, test), (3, train)]), [(2, valid, 2, test), (3, valid, 3, train)]);
    assert_eq!(leaks(&[(5, train)]), [(5, Part::Aside, 5, train)], "what is aside is shown to nobody");
    assert_eq!(leaks(&[(4, valid), (0, train)]), [(4, valid, 0, train)], "another entity of the same name");
    let strange = audit::names(&view, &part, &terms, &[ShownName { term: 9, part: train, task: 0 }]);
    assert!(strange.unwrap_err().to_string().contains("term 9"));
    let strange = audit::names(&view, &part[1..], &terms, &[]).unwrap_err().to_string();
    assert!(strange.contains("4 parts for 5"), "{strange}");
}

#[test]
fn parts_of_another_graph_are_refused() {
    let toy = wild(1);
    let options = audit::Options {
        together: Together::Inverse,
        inverses: &[(RelationId(0), RelationId(99))],
        suspicion: None,
    };
    let error = audit(&toy.view(), &[], &options).unwrap_err().to_string();
    assert!(error.contains("0 parts for"), "{error}");
    let part = vec![Part::Train; toy.triples.len()];
    assert!(audit(&toy.view(), &part, &options).unwrap_err().to_string().contains("relation 99"));
}
