//! Questions about a model: how much its heads matter, and what it says at mask tokens.

use candle_core::Device;

use super::{beside, device, distance};
use crate::attention::label;
use crate::fill::Filler;
use crate::head::importance::{AcrossLayers, Importance, Method, WithinLayer};
use crate::head::mask::Mask;
use crate::output::{Batch, Decoder, Targets};
use crate::predict::Predictor;
use crate::train::tests::{self, finetune};
use crate::train::{Setup, Trainer};

/// The importances of a model's heads to some batches on both devices; a part of the heads is gated.
fn measured(name: &str, methods: &[Method], setup: &Setup, batches: fn(u64) -> Vec<Batch>) {
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    (1..=2).for_each(|step| drop(trainer.step(0, &batches(step)).unwrap()));
    let dir = tempfile::tempdir().unwrap();
    trainer.save_checkpoint(dir.path()).unwrap();
    let masks =
        [Mask::all_kept([2, 4]), Mask::new([2, 4], vec![1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.25]).unwrap()];
    let [cpu, cuda] = [Device::Cpu, device()].map(|device| Predictor::load(dir.path(), &device).unwrap());
    for &method in methods {
        // Rows of a metric alone have no loss.
        let alone = |of: &Batch| !matches!(of.targets, Targets::Identities(_));
        let asked = |mask| batches(5).into_iter().filter(alone).map(move |of| (mask, of));
        for (mask, batch) in masks.iter().flat_map(asked) {
            let [a, b] = [&cpu, &cuda].map(|predictor| {
                let mut importance = Importance::new(method, [2, 4]);
                predictor.measure(&mut importance, mask, &batch).unwrap();
                importance.finish(WithinLayer::Raw, AcrossLayers::Raw).unwrap()
            });
            let largest = a.iter().copied().fold(0.0, f64::max);
            let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(
                largest > 0.0 && apart < 1e-4 * largest,
                "{name}, {method:?}, task {}: {a:?} {b:?}",
                batch.task
            );
        }
    }
}

#[test]
fn importances_are_the_cpus() {
    let _beside = beside();
    let all = [Method::PerSample, Method::PerBatch, Method::Accumulated, Method::TokenLevel];
    // How gradients of gates are added up is the same whatever they come from.
    let (two, one) = (&all[2..], &all[..1]);
    measured("outputs", &all, &finetune::setup(), finetune::batches);
    measured("graph", two, &tests::setup(), tests::batches);
    let mut weighted = finetune::setup();
    if let crate::output::Output::OneClass { weights, classes } = &mut weighted.outline.tasks[0].output {
        *weights = Some((1_u8..).map(f64::from).take(*classes).map(|weight| weight / 4.0).collect());
    }
    measured("weights of classes", one, &weighted, finetune::batches);
    measured("labels", two, &finetune::labels::labelled(label::Mode::Paper), |seed| {
        finetune::batches(seed).into_iter().take(1).collect()
    });
    measured("maps", one, &finetune::knowledge::alone(), |seed| vec![finetune::knowledge::known(seed)]);
}

#[test]
fn mask_tokens_are_filled_as_on_the_cpu() {
    let _beside = beside();
    let setup = tests::setup_of(&tests::beside_kimera(batch::task::Task::MaskedLm, 0.5), Decoder::MaskedLm);
    let trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let dir = tempfile::tempdir().unwrap();
    trainer.save_checkpoint(dir.path()).unwrap();
    let rows = finetune::rows(3);
    let masked: Vec<usize> = rows.lengths.iter().map(|length| length - 1).collect();
    let [cpu, cuda] = [Device::Cpu, device()]
        .map(|device| Filler::load(dir.path(), &device).unwrap().logits(&rows, &masked).unwrap().concat());
    assert!(!cpu.is_empty() && distance(&cpu, &cuda) < 1e-4, "{}", distance(&cpu, &cuda));
    // A fine-tuned model says the same of these tokens.
    let places: Vec<Vec<usize>> = masked.iter().map(|token| vec![*token]).collect();
    for (device, filled) in [(Device::Cpu, &cpu), (device(), &cuda)] {
        let predictor = Predictor::load(dir.path(), &device).unwrap();
        let said = predictor.at(predictor.task("masked_lm").unwrap(), &rows, &places).unwrap().concat();
        assert!(distance(filled, &said) < 1e-6, "{}", distance(filled, &said));
    }
}
