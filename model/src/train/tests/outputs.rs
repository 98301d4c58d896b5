//! Tests of how rows are pooled and how words are predicted.

use super::*;

#[test]
fn every_pooling_and_both_entity_outputs_pass_the_gate() {
    for pooling in Pooling::ALL {
        for entity in [Decoder::Linear, Decoder::MaskedLm] {
            let mut setup = setup_of(&Alphas::default(), entity);
            setup.outline.pooling = pooling;
            let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
            trainer.step(0, &batches(1)).unwrap();
            let idle = trainer.frozen().keys().filter(|name| name.starts_with("pooler")).count();
            assert_eq!(idle, if pooling == Pooling::LearnedPooler { 0 } else { 2 }, "{pooling:?}");
        }
    }
}

#[test]
fn masked_texts_are_learned_with_their_own_output_or_that_of_entities() {
    for entity in [Decoder::Linear, Decoder::MaskedLm] {
        let without = Trainer::new(setup_of(&Alphas::default(), entity), &Device::Cpu).unwrap();
        let names = |trainer: &Trainer| {
            let named = trainer.params().iter().map(|(name, _)| name.to_owned());
            named.filter(|name| name.starts_with("outputs.masked_lm.")).collect::<Vec<_>>()
        };
        assert_eq!(names(&without).is_empty(), entity == Decoder::Linear);
        let mut setup = setup_of(&beside_kimera(Task::MaskedLm, 2.0), entity);
        quiet(&mut setup);
        setup.train.schedule.total_steps = 160;
        let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
        assert_eq!(names(&trainer).len(), 5);
        let all = |seed| [batches(seed), vec![masked_texts(4, seed)]].concat();
        let records: Vec<StepRecord> = (0..160).map(|i| trainer.step(0, &all(i % 2)).unwrap()).collect();
        let [first, last] = [&records[0], &records[159]].map(|record| record.tasks["masked_lm"]);
        assert!(last.loss < first.loss * 0.5 && last.accuracy > Some(0.8), "{first:?} {last:?}");
        let alpha = |task: &crate::output::Task| task.alpha * records[0].tasks[&task.name].loss;
        let sum: f64 = trainer.setup.outline.tasks.iter().map(alpha).sum();
        assert!((sum - records[0].loss).abs() < 1e-4);
        // Alone: the graph tasks' outputs are frozen, and a step of graph tasks only has nothing to train.
        let alone = setup_of(&Alphas::new([(Task::MaskedLm, 2.0)]), entity);
        let mut alone = Trainer::new(alone, &Device::Cpu).unwrap();
        alone.step(0, &[masked_texts(4, 1)]).unwrap();
        assert!(alone.frozen().contains_key("outputs.relation.bias"));
        assert!(!alone.frozen().keys().any(|name| name.starts_with("outputs.masked_lm")));
        assert!(alone.step(0, &batches(1)).unwrap_err().to_string().contains("no batch of a task"));
    }
}

#[test]
fn the_output_of_a_masked_language_model_goes_on_from_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let texts = |alpha: f64| setup_of(&Alphas::new([(Task::MaskedLm, alpha)]), Decoder::Linear);
    let mut first = Trainer::new(texts(1.0), &Device::Cpu).unwrap();
    first.step(0, &[masked_texts(4, 1)]).unwrap();
    first.save_checkpoint(dir.path()).unwrap();
    let names: Vec<String> = checkpoint::load(dir.path(), &Device::Cpu).unwrap().left_out;
    assert_eq!(masked_lm::published(&names).len(), 5);
    let of = |trainer: &Trainer, prefix: &str| {
        let names = trainer.params().iter().map(|(name, _)| name.to_owned());
        values(trainer, &names.filter(|name| name.starts_with(prefix)).collect::<Vec<_>>())
    };
    let mut other = texts(1.0);
    other.train.seed = 2;
    let next = Trainer::from_checkpoint(other.clone(), dir.path(), &Device::Cpu).unwrap();
    assert_eq!(of(&next, "outputs.masked_lm."), of(&first, "outputs.masked_lm."));
    assert_ne!(of(&next, "outputs.relation."), of(&first, "outputs.relation."));
    // A training without the output leaves it, and its own checkpoint has none.
    let mut without = setup();
    without.train.seed = 2;
    let mut without = Trainer::from_checkpoint(without, dir.path(), &Device::Cpu).unwrap();
    run(&mut without, 1..=1);
    without.save_checkpoint(dir.path()).unwrap();
    let loaded = checkpoint::load(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(loaded.left_out, [""; 0]);
    let drawn = Trainer::from_checkpoint(other.clone(), dir.path(), &Device::Cpu).unwrap();
    let fresh = Trainer::new(other, &Device::Cpu).unwrap();
    assert_eq!(of(&drawn, "outputs.masked_lm."), of(&fresh, "outputs.masked_lm."));
}

#[test]
fn an_output_begins_otherwise_than_the_one_of_its_name_that_the_encoder_has_learnt_with() {
    let dir = tempfile::tempdir().unwrap();
    let outputs = |trainer: &Trainer| {
        let names = trainer.params().iter().map(|(name, _)| name.to_owned());
        values(trainer, &names.filter(|name| name.starts_with("outputs.relation.w")).collect::<Vec<_>>())
    };
    let first = Trainer::new(setup(), &Device::Cpu).unwrap();
    first.save_checkpoint(dir.path()).unwrap();
    let next = || Trainer::from_checkpoint(setup(), dir.path(), &Device::Cpu).unwrap();
    assert_ne!(outputs(&next()), outputs(&first), "the same seed");
    assert_eq!(outputs(&next()), outputs(&next()));
    // And so on, training after training.
    let second = outputs(&next());
    next().save_checkpoint(dir.path()).unwrap();
    assert_ne!(outputs(&next()), second);
    // An encoder that has learnt with no such output knows nothing of it.
    std::fs::remove_file(dir.path().join(checkpoint::OUTPUTS_WEIGHTS_FILE)).unwrap();
    std::fs::remove_file(dir.path().join(checkpoint::digests::DIGESTS_FILE)).unwrap();
    assert_eq!(outputs(&next()), outputs(&first));
}

/// Facts of words with their relations: each a subject, its object, and another word.
fn facts(seed: u64) -> Batch {
    let key = CounterRng::new(seed);
    let below = |i: u64, limit: u64| u32::try_from(key.bits(i) % limit).unwrap();
    let (mut rows, mut links) = (vec![], vec![]);
    for i in 0..8 {
        let (subject, relation) = (10 + below(i, 12), below(100 + i, 2));
        let object = subject + 3 * (1 + relation);
        rows.extend(
            [subject, object, if below(200 + i, 2) == 0 { subject } else { object + 1 }]
                .map(|word| vec![2, word, 3]),
        );
        links.push(relation);
    }
    let refs: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    Batch { task: 0, rows: ragged(&refs), targets: Targets::Links(links) }
}

#[test]
fn relations_are_learnt_between_vectors_and_resume_exactly() {
    let mut setup = finetune::setup();
    quiet(&mut setup);
    setup.outline.tasks.truncate(1);
    setup.outline.tasks[0].output = crate::output::Output::Translation { relations: 2, margin: 1.0 };
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut records = vec![];
    for step in 0..200 {
        records.push(trainer.step(0, &[facts(step % 3)]).unwrap());
        if step == 99 {
            trainer.save_state(dir.path(), &Value::Null).unwrap();
        }
    }
    let (first, last) = (records[0].loss, records[199].loss);
    assert!(last < first * 0.2 && records[0].tasks["one"].samples == 8, "from {first} to {last}");
    let mut second = Trainer::resume(setup.clone(), dir.path(), &Device::Cpu).unwrap().0;
    (100..200).for_each(|step| drop(second.step(0, &[facts(step % 3)]).unwrap()));
    assert_eq!(bits(&second), bits(&trainer));
    let mut wrong = facts(1);
    wrong.targets = Targets::Links(vec![0, 1, 0, 1, 0, 1, 0, 2]);
    let text = trainer.step(0, &[wrong]).unwrap_err().to_string();
    assert!(text.contains("row 21: class 2 is not below 2"), "{text}");
    setup.outline.tasks[0].output = crate::output::Output::Translation { relations: 2, margin: 0.0 };
    let text = Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("output of one: margin is 0, expected from 1e-12 to 1e6"), "{text}");
}
