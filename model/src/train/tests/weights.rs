//! Tests of tasks beside those of KIMERA, and of steps of several micro-batches.

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
    use crate::attention::kam;
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
    // KIMERA's tasks, masked words beside them, in rows with maps of what is known of them: each convolution learns of them all.
    let mut knowing = setup_of(&beside_kimera(Task::MaskedLm, 0.5), Decoder::Linear);
    knowing.outline.knowledge = Some(finetune::knowledge::settings());
    let mut trainer = Trainer::new(knowing, &Device::Cpu).unwrap();
    let weight = |trainer: &Trainer| trainer.params().get(&kam::weight_name(1)).unwrap().copy().unwrap();
    let before = weight(&trainer);
    let graph = batches(1).into_iter().chain([masked_texts(4, 1)]);
    let graph: Vec<Batch> = graph.map(|batch| finetune::knowledge::with_maps(&batch)).collect();
    assert_eq!(trainer.step(0, &graph).unwrap().tasks.len(), 5);
    assert!(crate::nn::check::distance(&before, &weight(&trainer)) > 0.0);
    // The relation task alone, with its classes as labels.
    let mut labelled = setup_of(&Alphas::new([(Task::Relation, 1.0)]), Decoder::Linear);
    labelled.outline.tasks.retain(|task| task.name == "relation");
    labelled.outline.labels = Some(LabelAttention { mode: Mode::Paper, lambda: 1.0 });
    labelled.train.optimiser = Some(finetune::as_released(crate::optim::bert::Kind::Adamax));
    let mut trainer = Trainer::new(labelled, &Device::Cpu).unwrap();
    let record = trainer.step(0, &[Batch { task: 0, ..batches(1).remove(2) }]).unwrap();
    assert!(record.labels > Some(0.0), "{record:?}");
}

/// Four rows of a batch whose rows all have one target.
fn quarter(batch: &Batch, part: usize) -> Batch {
    let rows = part * 4..part * 4 + 4;
    let starts: Vec<usize> =
        (0..=batch.rows.len()).map(|row| batch.rows.lengths[..row].iter().sum()).collect();
    let ids = |row: usize| batch.rows.ids[starts[row]..starts[row + 1]].to_vec();
    let all: Vec<Vec<u32>> = rows.clone().map(ids).collect();
    let targets = match &batch.targets {
        Targets::Classes(classes) => Targets::Classes(classes[rows].to_vec()),
        Targets::Tokens(words) => Targets::Tokens(words[rows].to_vec()),
        _ => panic!("classes or tokens"),
    };
    let all: Vec<&[u32]> = all.iter().map(Vec::as_slice).collect();
    Batch { task: batch.task, rows: ragged(&all), targets }
}

pub(crate) fn micro(seed: u64) -> Vec<Vec<Batch>> {
    (0..3).map(|part| batches(seed).iter().map(|batch| quarter(batch, part)).collect()).collect()
}

#[test]
fn micro_batches_make_the_step_of_one_batch() {
    let mut setup = setup();
    quiet(&mut setup);
    setup.train.accumulate = 3;
    let start = || Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let (mut whole, mut parts) = (start(), start());
    for seed in 1..4 {
        let (one, several) =
            (whole.step(0, &batches(seed)).unwrap(), parts.accumulated(0, &micro(seed)).unwrap());
        assert!((one.loss - several.loss).abs() < 1e-5 && (one.grad_norm - several.grad_norm).abs() < 1e-4);
        assert_eq!(
            (one.tokens, one.rows, one.learning_rate),
            (several.tokens, several.rows, several.learning_rate)
        );
        for (name, record) in &one.tasks {
            let other = several.tasks[name];
            assert!((record.loss - other.loss).abs() < 1e-5 && record.targets == other.targets, "{name}");
        }
    }
    for ((name, one), (_, other)) in whole.params().iter().zip(parts.params().iter()) {
        // Rounding is all that a key's bias ever moves by.
        let far = crate::nn::check::distance(one, other);
        assert!(far < 1e-4 || name.ends_with("key.bias"), "{name}: {far}");
    }
    assert!(parts.accumulated::<Vec<Batch>>(0, &[]).unwrap_err().to_string().contains("0 micro-batches"));
    let many = [micro(1), micro(2)].concat();
    assert!(
        parts.accumulated(0, &many).unwrap_err().to_string().contains("expected from 1 to 3 (accumulate)")
    );
}

#[test]
fn steps_of_micro_batches_are_resumed_to_the_bit() {
    let mut setup = setup();
    setup.train.accumulate = 3;
    let dir = tempfile::tempdir().unwrap();
    let start = || Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let (mut whole, mut first) = (start(), start());
    (1..=4).for_each(|seed| drop(whole.accumulated(0, &micro(seed)).unwrap()));
    (1..=2).for_each(|seed| drop(first.accumulated(0, &micro(seed)).unwrap()));
    first.save_state(dir.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(setup.clone(), dir.path(), &Device::Cpu).unwrap();
    (3..=4).for_each(|seed| drop(second.accumulated(0, &micro(seed)).unwrap()));
    assert_eq!(bits(&second), bits(&whole));
    setup.train.accumulate = 2;
    let text = Trainer::resume(setup, dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("made with train.accumulate = 3, now 2"), "{text}");
}

#[test]
fn layers_computed_a_second_time_change_no_bit() {
    let trained = |dtype, recompute: Recompute| {
        let mut setup = setup();
        (setup.train.dtype, setup.train.recompute) = (dtype, recompute);
        let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let records = run(&mut trainer, 1..=3);
        (bits(&trainer), records)
    };
    let [single, half] = [ActivationDtype::F32, ActivationDtype::Bf16].map(|dtype| {
        let once = trained(dtype, Recompute::None);
        assert!(once == trained(dtype, Recompute::Layers), "{dtype:?}");
        once
    });
    assert!(single.1[0].loss != half.1[0].loss && (single.1[0].loss / half.1[0].loss - 1.0).abs() < 0.02);
    let mut half = setup();
    half.train.dtype = ActivationDtype::Tf32;
    let text = Trainer::new(half, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("dtype is tf32, expected f32 or bf16 on the CPU"), "{text}");
}
