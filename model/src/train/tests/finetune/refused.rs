//! Batches that do not fit their outputs.

use super::*;

#[test]
fn anchors_that_do_not_fit_are_named() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let mut text = |task: usize, targets: Targets| {
        let batch = Batch { targets, ..batches(1)[task].clone() };
        trainer.step(0, &[batch]).unwrap_err().to_string()
    };
    let mut near = |also_match: &[usize]| {
        let also_match = also_match.to_vec();
        text(
            6,
            Targets::Anchors(vec![
                Anchor { negatives: 1, also_match },
                Anchor { negatives: 3, also_match: vec![] },
            ]),
        )
    };
    // Its own row, the other's anchor, none.
    for row in [2, 3, 8] {
        let found = near(&[7, row]);
        assert!(
            found.contains(&format!("batch of near, anchor 0: row {row} (from 0) is said to match it")),
            "{found}"
        );
    }
    let named = |also: &[u32]| {
        let rows = vec![Identity { class: 1, also: also.to_vec() }; 8];
        Targets::Identities(rows)
    };
    for also in [&[2, 0][..], &[1], &[2, 2]] {
        let found = text(7, named(also));
        assert!(found.contains("batch of alike, row 0: it may also name ["), "{found}");
    }
    let few = text(6, Targets::Anchors(vec![Anchor { negatives: 1, also_match: vec![] }]));
    assert!(few.contains("8 rows but anchors with a row that matches for 3"), "{few}");
}

#[test]
fn batches_that_do_not_fit_are_named_and_move_nothing() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let before = bits(&trainer);
    let mut text = |task: usize, targets: Targets| {
        let batch = Batch { targets, ..batches(1)[task].clone() };
        trainer.step(0, &[batch]).unwrap_err().to_string()
    };
    assert!(
        text(0, Targets::Classes(vec![0, 0, 3, 0, 0, 0, 0, 0]))
            .contains("batch of one, row 2: class 3 is not below 3")
    );
    assert!(text(0, Targets::Classes(vec![0; 7])).contains("8 rows but one class for each row for 7"));
    assert!(
        text(0, Targets::Scores(vec![0.0; 8]))
            .contains("it asks for one class for each row, the targets are one score")
    );
    let sets = |first: &[u32]| Targets::Sets([vec![first.to_vec()], vec![vec![]; 7]].concat());
    assert!(text(1, sets(&[1, 5])).contains("batch of any, row 0: class 5 is not below 5"));
    assert!(text(1, sets(&[3, 1])).contains("the classes [3, 1] do not rise"));
    assert!(
        text(2, Targets::Scores([vec![f64::NAN], vec![0.0; 7]].concat())).contains("row 0: the score is NaN")
    );
    let tagged = |change: &dyn Fn(&mut Tags)| {
        let mut tags = tags(&words(1));
        change(&mut tags);
        Targets::Tokens(tags)
    };
    assert!(
        text(5, tagged(&|tags| tags[1][1] = Some(4)))
            .contains("batch of tags, row 1: class 4 is not below 4")
    );
    let missing = text(5, tagged(&|tags| _ = tags[2].pop()));
    assert!(missing.contains("row 2: 5 classes for 6 tokens, of which 1 ask for a class"), "{missing}");
    assert!(
        text(5, tagged(&|tags| tags[0].fill(None))).contains("row 0: 4 classes for 4 tokens, of which 0 ask")
    );
    let groups = |rows, right| Targets::Groups(vec![Group { rows: 8, right: 1 }, Group { rows, right }]);
    assert!(
        text(3, groups(0, 0))
            .contains("batch of rank, group 1: row 0 (from 0) is said to be right, but it has 0 rows")
    );
    assert!(text(4, groups(1, 0)).contains("8 rows but groups of rows with a right one for 9"));
    let mut step = |batches: &[Batch]| trainer.step(0, batches).unwrap_err().to_string();
    let one = batches(1)[0].clone();
    assert!(step(&[one.clone(), one.clone()]).contains("two batches of one"));
    assert!(step(&[Batch { task: 9, ..one.clone() }]).contains("no task number 9 (from 0), only 9"));
    assert!(
        step(&[Batch { rows: Rows::default(), targets: Targets::Classes(vec![]), ..one }])
            .contains("it has no row")
    );
    assert!(step(&[]).contains("no batch of a task with alpha above 0"));
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
    let bias = trainer.params().get("outputs.score.bias").unwrap().detach();
    bias.slice_set(&Tensor::new(&[f32::NAN], &Device::Cpu).unwrap(), 0, 0).unwrap();
    let found = trainer.step(0, &batches(1)).unwrap_err().to_string();
    assert!(found.contains("step 1: the loss of score is NaN"), "{found}");
}
