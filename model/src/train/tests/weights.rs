//! Tests of the weights of tasks, and of tasks beside those of KIMERA.

use super::*;

#[test]
fn weights_are_written_by_task_and_mean_the_same_with_and_without_a_zero() {
    let read = |json: &str| serde_json::from_str::<Alphas>(json).map_err(|error| error.to_string());
    let written = r#"{"subject":1.0,"object":1.0,"relation":1.0,"triplet":1.0,"masked_lm":0.0}"#;
    assert_eq!(serde_json::to_string(&Alphas::default()).unwrap(), written);
    assert_eq!(read(written).unwrap(), Alphas::default());
    let short = read(r#"{"triplet":1.0,"relation":1.0,"object":1.0,"subject":1.0}"#).unwrap();
    assert_eq!(serde_json::to_string(&short).unwrap(), written);
    assert!(
        read(r#"{"tagging":1.0}"#).unwrap_err().starts_with("alphas.tagging is 1, expected weights of tasks")
    );
    assert!(
        read(r#"{"subjects":1.0}"#)
            .unwrap_err()
            .contains("unknown variant `subjects`, expected one of `subject`")
    );
}

#[test]
fn a_task_beside_those_of_kimera_has_an_output_with_gradient_and_loss() {
    let with = |seed: u64| {
        let triplets = batches(seed).into_iter().find(|batch| batch.task == Task::Triplet);
        [batches(seed), vec![Batch { task: Task::Synonyms, ..triplets.unwrap() }]].concat()
    };
    let names = |trainer: &Trainer| {
        let names = trainer.params().iter().map(|(name, _)| name.to_owned());
        names.filter(|name| name.starts_with("outputs.synonyms.")).collect::<Vec<_>>()
    };
    let mut without = Trainer::new(setup(), &Device::Cpu).unwrap();
    assert!(names(&without).is_empty(), "{:?}", names(&without));
    let plain = without.step(0, &with(1)).unwrap();
    assert!(!plain.tasks.contains_key(&Task::Synonyms), "a task of weight 0 is not shown");

    let mut setup = setup();
    setup.train.alphas = Alphas::new(KIMERA.into_iter().chain([(Task::Synonyms, 0.5)])).unwrap();
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    assert_eq!(names(&trainer), ["outputs.synonyms.bias", "outputs.synonyms.weight"]);
    let missed = trainer.step(0, &batches(1)).unwrap_err().to_string();
    assert!(
        missed.contains("no gradient reaches [outputs.synonyms.bias, outputs.synonyms.weight]"),
        "{missed}"
    );
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let made = trainer.step(0, &with(1)).unwrap();
    assert_eq!(made.tasks[&Task::Triplet], plain.tasks[&Task::Triplet], "no other task's loss moves");
    let of = made.tasks[&Task::Synonyms];
    assert!((made.loss - plain.loss - 0.5 * of.loss).abs() < 1e-5 && of.targets == 12, "{made:?}");
    assert!(!trainer.frozen().keys().any(|name| name.contains("synonyms")));
}
