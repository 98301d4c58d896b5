//! Tests of batches and settings that are refused.

use super::*;

#[test]
fn bad_batches_are_named() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let mut text = |batches: &[Batch]| trainer.step(0, batches).unwrap_err().to_string();
    let [subject, _, relation, _] = <[Batch; 4]>::try_from(batches(1)).unwrap();
    assert!(text(&[]).contains("no batch of a task with alpha above 0"));
    assert!(text(&[relation.clone(), relation.clone()]).contains("two batches of relation"));
    let changed = |batch: &Batch, targets| Batch { targets, ..batch.clone() };
    assert!(
        text(&[changed(&relation, Targets::Classes(vec![3; 12]))])
            .contains("batch of relation, row 0: class 3 is not below 3")
    );
    assert!(
        text(&[changed(&relation, Targets::Classes(vec![]))])
            .contains("12 rows but one class for each row for 0")
    );
    assert!(
        text(&[changed(&subject, Targets::Classes(vec![1]))])
            .contains("the targets are one class for each row")
    );
    let all = |class: Option<u32>| {
        Targets::Tokens(subject.rows.lengths.iter().map(|length| vec![class; *length]).collect())
    };
    assert!(text(&[changed(&subject, all(None))]).contains("nothing is asked for"));
    assert!(
        text(&[changed(&subject, all(Some(50)))])
            .contains("batch of subject, row 0: class 50 is not below 50")
    );
}

#[test]
fn settings_out_of_range_are_named() {
    let text = |change: fn(&mut Setup)| {
        let mut setup = setup();
        change(&mut setup);
        setup.check().unwrap_err().to_string()
    };
    assert_eq!(text(|s| s.train.clip_norm = 0.0), "clip_norm is 0, expected at least 1e-12");
    let none = |s: &mut Setup| {
        s.outline = OutputConfig::default().outline(&Alphas::new([]), Sizes { relations: 1, tags: 0 });
    };
    assert!(text(none).contains("one task's weight above 0"));
    assert!(text(|s| s.outline.tasks[0].alpha = -1.0).contains("output of subject: alpha is -1"));
    let one = |s: &mut Setup| {
        s.outline = OutputConfig::default().outline(&Alphas::default(), Sizes { relations: 1, tags: 0 });
    };
    assert!(text(one).contains("output of relation: classes is 1, expected at least 2"));
}
