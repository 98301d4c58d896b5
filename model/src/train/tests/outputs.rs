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
