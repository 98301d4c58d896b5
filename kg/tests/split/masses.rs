//! Many rows and several threads.

use kg::split::{Cover, Together, split};

use super::toy::{Dice, Toy, audited, by_ratio, naive, triple, wild};

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut toy = wild(21);
    let mut dice = Dice(22);
    toy.entities.extend((0..5000).map(|i| (format!("more:{i}"), format!("Text {}", i % 1500))));
    for _ in 0..50_000 {
        toy.triples.push(triple(dice.below(5000), 0, dice.below(5000)));
    }
    let toy = toy.sorted();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut options = by_ratio(Together::Inverse, 9, Cover::Train);
            options.detect_inverses = Some(0.5);
            let made = split(&toy.view(), &options).unwrap();
            let part = naive(9, toy.triples.len());
            (made, audited(&toy, &part, Together::Pair))
        })
    };
    assert_eq!(run(1), run(5));
}

/// Work that grew with the square of what is alike would not come to an end here.
#[test]
fn masses_of_rows_that_say_the_same_are_no_trap() {
    let mut toy = Toy::new(100_000, 1000);
    toy.entities.iter_mut().for_each(|entity| entity.1 = "Same".to_owned());
    for (place, relation) in toy.relations.iter_mut().enumerate() {
        relation.2 = u32::try_from(place).unwrap().checked_sub(1);
    }
    toy.triples = (0..99_999).map(|i| triple(i, i % 1000, i + 1)).collect();
    let toy = toy.sorted();
    let part = naive(4, toy.triples.len());
    let held_out = part.iter().map(|&part| part as usize).sum::<usize>();
    for together in [Together::Inverse, Together::Pair] {
        let audit = audited(&toy, &part, together);
        assert_eq!(audit.leaks.len(), held_out, "each of valid leaks once, each of test twice");
        let mut options = by_ratio(together, 1, Cover::Leave);
        options.detect_inverses = Some(0.9);
        assert_eq!(split(&toy.view(), &options).unwrap().report.groups, 1);
    }
}
