//! Trainings on both machines: whatever can be set, the numbers are the CPU's.

use batch::task::Task;
use candle_core::Device;

use super::{agrees, agrees_for, beside, bits, device, distance, numbers, trained};
use crate::attention::kam::{Auxiliary, Merge, Skip};
use crate::attention::label;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::pool::Pooling;
use crate::head::mask::Mask;
use crate::optim::adamw::Missing;
use crate::optim::bert::Kind;
use crate::output::{Batch, Decoder, Ends, Output, OutputDropout, Targets};
use crate::train::heads::{Mode, Shared};
use crate::train::tests::{self, finetune};
use crate::train::{StepRecord, Trainer};

#[test]
fn twenty_steps_of_tasks_on_graphs_are_the_cpus() {
    let _beside = beside();
    agrees_for(20, "graph", &tests::setup(), tests::batches);
}

#[test]
fn twenty_steps_of_every_output_are_the_cpus() {
    let _beside = beside();
    agrees_for(20, "outputs", &finetune::setup(), finetune::batches);
}

/// The second token of each row and the one behind it are the answer.
fn answers(seed: u64) -> Vec<Batch> {
    let rows = finetune::rows(seed);
    let ends = rows.lengths.iter().map(|&tokens| Ends { tokens, first: 1, last: 2 }).collect();
    vec![Batch { task: 0, rows, targets: Targets::Spans(ends) }]
}

#[test]
fn twenty_steps_of_answers_in_passages_are_the_cpus() {
    let _beside = beside();
    let mut setup = finetune::setup();
    setup.outline.tasks.truncate(1);
    setup.outline.tasks[0].output = Output::Span;
    agrees_for(20, "answers", &setup, answers);
}

/// One task after the other.
fn turns(seed: u64) -> Vec<Batch> {
    let mut all = finetune::batches(seed);
    vec![all.swap_remove((seed % 6) as usize)]
}

#[test]
fn head_masks_and_gates_are_the_cpus() {
    let _beside = beside();
    for (mode, shared) in
        [(Mode::Hard, Shared::Freeze), (Mode::Soft, Shared::Train), (Mode::Forward, Shared::Freeze)]
    {
        agrees(&format!("{mode:?} {shared:?}"), &tests::masked::masked(mode, shared), tests::batches);
    }
    let mut pruned = finetune::setup();
    pruned.gates = Some(Mask::new([2, 4], vec![1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.25]).unwrap());
    agrees("gates", &pruned, finetune::batches);
    let mut frozen = finetune::setup();
    frozen.train.frozen = vec!["embeddings.".to_owned(), "encoder.layer.0.".to_owned()];
    agrees("frozen", &frozen, finetune::batches);
    frozen.train.frozen = vec!["encoder.layer.1.attention.self.key".to_owned(), "embeddings.word".to_owned()];
    agrees("parts", &frozen, finetune::batches);
}

#[test]
fn every_optimiser_is_the_cpus() {
    let _beside = beside();
    for kind in [Kind::Adamax, Kind::BertAdam, Kind::BertAdamSparing] {
        let mut setup = finetune::setup();
        (setup.train.optimiser, setup.train.covered_by) = (Some(finetune::as_released(kind)), 9);
        agrees_for(8, &format!("{kind:?}"), &setup, turns);
    }
    for missing in [Missing::Skip, Missing::Zero] {
        let mut setup = finetune::setup();
        (setup.train.missing, setup.train.covered_by) = (missing, 9);
        agrees_for(8, &format!("{missing:?}"), &setup, turns);
    }
}

#[test]
fn every_pooling_is_the_cpus() {
    let _beside = beside();
    for pooling in [Pooling::Mean, Pooling::Max, Pooling::LearnedAttn] {
        let mut pooled = finetune::setup();
        pooled.outline.pooling = pooling;
        agrees(&format!("{pooling:?}"), &pooled, finetune::batches);
        // What was trained answers the same.
        let [cpu, cuda] =
            [Device::Cpu, device()].map(|device| trained(&pooled, &device, 2, finetune::batches).0);
        let rows = finetune::rows(7);
        let [a, b] = [cpu, cuda].map(|trainer| trainer.predictor().logits(1, &rows).unwrap().concat());
        assert!(distance(&a, &b) < 1e-4, "{pooling:?}");
        // Bits do not depend on chance.
        let [a, b] = [(); 2].map(|()| bits(&trained(&pooled, &device(), 2, finetune::batches).0));
        assert!(a == b, "{pooling:?}");
    }
    let mut knowing = finetune::knowledge::alone();
    knowing.outline.pooling = Pooling::LearnedAttn;
    agrees("weighted, without auxiliary tokens", &knowing, |seed| vec![finetune::knowledge::known(seed)]);
    let mut labelled = finetune::labels::labelled(label::Mode::Repo);
    labelled.outline.pooling = Pooling::Mean;
    agrees("labels, mean", &labelled, |seed| finetune::batches(seed).into_iter().take(1).collect());
}

#[test]
fn poolers_words_and_shared_masks_are_the_cpus() {
    let _beside = beside();
    let mut pooled = finetune::setup();
    pooled.outline.pooling = Pooling::LearnedPooler;
    agrees("pooler", &pooled, finetune::batches);
    pooled.outline.dropout = 0.0;
    agrees("pooler without dropout", &pooled, finetune::batches);
    let mut shared = finetune::setup();
    shared.outline.thinned = OutputDropout::Variational;
    agrees("variational", &shared, finetune::batches);
    for decoder in [Decoder::Linear, Decoder::MaskedLm] {
        let setup = tests::setup_of(&tests::beside_kimera(Task::MaskedLm, 0.5), decoder);
        let with_words =
            |seed| tests::batches(seed).into_iter().chain([tests::masked_texts(4, seed)]).collect();
        agrees_for(20, &format!("words, {decoder:?}"), &setup, with_words);
    }
}

#[test]
fn labels_are_the_cpus() {
    let _beside = beside();
    let first = |seed| finetune::batches(seed).into_iter().take(1).collect();
    for mode in [label::Mode::Paper, label::Mode::Repo] {
        agrees_for(20, &format!("labels, {mode:?}"), &finetune::labels::labelled(mode), first);
    }
    let mut frozen = finetune::labels::labelled(label::Mode::Paper);
    frozen.outline.pooling = Pooling::Cls;
    frozen.train.frozen = vec!["embeddings.".to_owned(), "encoder.layer.0.attention.self.query".to_owned()];
    agrees("labels, a frozen projection", &frozen, first);
}

#[test]
fn maps_of_knowledge_are_the_cpus() {
    let _beside = beside();
    for (skip, auxiliary, merge) in [
        (Skip::PostAdd, Auxiliary::ZeroPad, Merge::Convolution),
        (Skip::PreAdd, Auxiliary::Qk, Merge::Convolution),
        (Skip::None, Auxiliary::ZeroPad, Merge::Mean),
    ] {
        let mut setup = finetune::knowledge::alone();
        (setup.outline.pooling, setup.encoder.max_position_embeddings) = (Pooling::LearnedPooler, 40);
        let of = setup.outline.knowledge.as_mut().unwrap();
        (of.skip, of.auxiliary, of.merge) = (skip, auxiliary, merge);
        let known = |seed| vec![finetune::knowledge::known(seed)];
        agrees_for(20, &format!("{skip:?} {auxiliary:?} {merge:?}"), &setup, known);
        let [a, b] = [Device::Cpu, device()].map(|device| {
            let (trainer, _) = trained(&setup, &device, 3, known);
            let loss = trainer.evaluate(&known(9)).unwrap()["one"].loss;
            (loss, trainer.predictor().hidden(&known(9)[0].rows).unwrap().concat())
        });
        assert!((a.0 - b.0).abs() < 1e-4 && distance(&a.1, &b.1) < 1e-4, "{skip:?}");
    }
}

#[test]
fn padding_that_is_seen_by_none_is_the_cpus() {
    let _beside = beside();
    let padded = |seed| {
        let mut batches = finetune::batches(seed);
        batches.truncate(3);
        for rows in batches.iter_mut().map(|batch| &mut batch.rows) {
            rows.seen = rows.lengths.iter().map(|length| length - 1).collect();
        }
        batches
    };
    let mut setup = finetune::setup();
    setup.outline.tasks.truncate(3);
    agrees("padding", &setup, padded);
}

#[test]
fn micro_batches_are_the_cpus() {
    let _beside = beside();
    let mut setup = tests::setup();
    setup.train.accumulate = 3;
    let [cpu, cuda] = [Device::Cpu, device()].map(|device| {
        let mut trainer = Trainer::new(setup.clone(), &device).unwrap();
        let step = |seed| trainer.accumulated(0, &tests::weights::micro(seed)).unwrap();
        let records: Vec<StepRecord> = (1..=5).map(step).collect();
        (numbers(&trainer), records)
    });
    for (a, b) in cpu.1.iter().zip(&cuda.1) {
        assert!((a.loss - b.loss).abs() < 1e-4 && (a.grad_norm - b.grad_norm).abs() < 1e-4, "{a:?} {b:?}");
    }
    for ((of, a), (_, b)) in cpu.0.iter().zip(&cuda.0) {
        assert!(of.ends_with("key.bias") || distance(a, b) < 1e-4, "{of}: {}", distance(a, b));
    }
}

#[test]
fn layers_computed_a_second_time_change_no_bit() {
    let _beside = beside();
    let all = |seed: u64| finetune::batches(seed);
    let first = |seed| finetune::batches(seed).into_iter().take(1).collect();
    let mut frozen = finetune::setup();
    frozen.train.frozen = vec!["embeddings.".to_owned(), "encoder.layer.0.".to_owned()];
    let mut half = finetune::setup();
    half.train.dtype = ActivationDtype::Bf16;
    type Batches = fn(u64) -> Vec<Batch>;
    let trainings: [(_, Batches); 4] = [
        (finetune::setup(), all),
        (frozen, all),
        (half, all),
        (finetune::labels::labelled(label::Mode::Paper), first),
    ];
    for (setup, batches) in trainings {
        let [kept, again] = [Recompute::None, Recompute::Layers].map(|recompute| {
            let mut setup = setup.clone();
            (setup.train.recompute, setup.encoder.num_hidden_layers) = (recompute, 3);
            let (trainer, records) = trained(&setup, &device(), 3, batches);
            (bits(&trainer), records)
        });
        assert!(kept == again);
    }
}

#[test]
fn tf32_stays_near_the_cpus() {
    let _beside = beside();
    let mut setup = finetune::setup();
    let (_, single) = trained(&setup, &Device::Cpu, 10, finetune::batches);
    setup.train.dtype = ActivationDtype::Tf32;
    let (_, rounded) = trained(&setup, &device(), 10, finetune::batches);
    for (a, b) in single.iter().zip(&rounded) {
        let apart = ((a.loss - b.loss) / a.loss).abs();
        // Nearer than bf16, and not f32.
        assert!(apart > 1e-9 && apart < 0.005, "step {}: {} {}", a.step, a.loss, b.loss);
        assert!(((a.grad_norm - b.grad_norm) / a.grad_norm).abs() < 0.02, "{a:?} {b:?}");
    }
}

#[test]
fn bf16_stays_near_the_cpus() {
    let _beside = beside();
    // Heads of 32 and 64 have kernels of their own, others go through the general ones.
    for (d, heads, steps) in [(64, 2, 20), (128, 2, 8), (48, 3, 8)] {
        let mut setup = finetune::setup();
        (setup.encoder.hidden_size, setup.encoder.num_attention_heads) = (d, heads);
        (setup.encoder.intermediate_size, setup.encoder.initializer_range) = (2 * d, 0.05);
        let (_, single) = trained(&setup, &Device::Cpu, steps, finetune::batches);
        setup.train.dtype = ActivationDtype::Bf16;
        let (trainer, half) = trained(&setup, &device(), steps, finetune::batches);
        for (a, b) in single.iter().zip(&half) {
            let apart = ((a.loss - b.loss) / a.loss).abs();
            assert!(apart < 0.02, "{d}, {heads} heads, step {}: {} {}", a.step, a.loss, b.loss);
            assert!(((a.grad_norm - b.grad_norm) / a.grad_norm).abs() < 0.06, "{a:?} {b:?}");
        }
        assert!(numbers(&trainer).iter().all(|(_, numbers)| numbers.iter().all(|x| x.is_finite())));
    }
}
