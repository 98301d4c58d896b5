//! Tests of tasks beside those of KIMERA.

use super::*;

/// A batch of this task's number, made of the triplets of [`batches`].
fn triplets(task: usize, seed: u64) -> Batch {
    Batch { task, ..batches(seed).remove(3) }
}

#[test]
fn a_task_beside_those_of_kimera_has_an_output_with_gradient_and_loss() {
    let with = |seed: u64| [batches(seed), vec![triplets(4, seed)]].concat();
    let names = |trainer: &Trainer| {
        let names = trainer.params().iter().map(|(name, _)| name.to_owned());
        names.filter(|name| name.starts_with("outputs.synonyms.")).collect::<Vec<_>>()
    };
    let mut without = Trainer::new(setup(), &Device::Cpu).unwrap();
    assert!(names(&without).is_empty(), "{:?}", names(&without));
    let plain = without.step(0, &batches(1)).unwrap();

    let setup = setup_of(&beside_kimera(Task::Synonyms, 0.5), Decoder::Linear);
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    assert_eq!(names(&trainer), ["outputs.synonyms.bias", "outputs.synonyms.weight"]);
    let missed = trainer.step(0, &batches(1)).unwrap_err().to_string();
    assert!(
        missed.contains("no gradient reaches [outputs.synonyms.bias, outputs.synonyms.weight]"),
        "{missed}"
    );
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let made = trainer.step(0, &with(1)).unwrap();
    assert_eq!(made.tasks["triplet"], plain.tasks["triplet"], "no other task's loss moves");
    let of = made.tasks["synonyms"];
    assert!((made.loss - plain.loss - 0.5 * of.loss).abs() < 1e-5 && of.targets == 12, "{made:?}");
    assert!(!trainer.frozen().keys().any(|name| name.contains("synonyms")));
}

#[test]
fn tags_of_shards_are_learned() {
    let mut setup = setup_of(&Alphas::new([(Task::Tagging, 1.0)]), Decoder::Linear);
    quiet(&mut setup);
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    // The class of the second token is what it is modulo 4.
    let batch = |seed: u64| {
        let Batch { task, rows, targets } = masked_texts(4, seed);
        let Targets::Tokens(mut words) = targets else { panic!("tokens") };
        for (row, words) in words.iter_mut().enumerate() {
            (words[1], words[3]) = (Some(rows.ids[row * 5 + 1] % 4), None);
        }
        [Batch { task, rows, targets: Targets::Tokens(words) }]
    };
    let records: Vec<StepRecord> = (0..150).map(|i| trainer.step(0, &batch(i % 2)).unwrap()).collect();
    let [first, last] = [&records[0], &records[149]].map(|record| record.tasks["tagging"]);
    assert!(last.loss < first.loss * 0.5 && last.accuracy > Some(0.8), "{first:?} {last:?}");
    assert_eq!((first.targets, first.samples), (12, 12));
}

#[test]
fn tasks_of_every_kind_are_trained_together_with_any_attention_and_optimiser() {
    use crate::attention::label::{LabelAttention, Mode};
    let mut setup = finetune::setup();
    let of_shards = setup_of(&beside_kimera(Task::MaskedLm, 0.5), Decoder::MaskedLm).outline.tasks;
    let first = setup.outline.tasks.len();
    setup.outline.tasks.extend(of_shards);
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let moved = |batch: Batch| Batch { task: batch.task + first, ..batch };
    let graph = batches(1).into_iter().chain([masked_texts(4, 1)]).map(moved);
    let all: Vec<Batch> = finetune::batches(1).into_iter().chain(graph).collect();
    let record = trainer.step(0, &all).unwrap();
    assert_eq!(record.tasks.len(), finetune::TASKS.len() + 5);
    // The relation task alone, with its classes as labels.
    let mut labelled = setup_of(&Alphas::new([(Task::Relation, 1.0)]), Decoder::Linear);
    labelled.outline.tasks.retain(|task| task.name == "relation");
    labelled.outline.labels = Some(LabelAttention { mode: Mode::Paper, lambda: 1.0 });
    labelled.train.released = Some(finetune::as_released(crate::optim::bert::Kind::Adamax));
    let mut trainer = Trainer::new(labelled, &Device::Cpu).unwrap();
    let record = trainer.step(0, &[Batch { task: 0, ..batches(1).remove(2) }]).unwrap();
    assert!(record.labels > Some(0.0), "{record:?}");
}
