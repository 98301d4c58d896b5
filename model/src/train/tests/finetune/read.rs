//! Tests of what losses and answers read of the last hidden states.

use std::collections::BTreeMap;

use super::*;
use crate::encoder::{Pass, Read};
use crate::nn::check::{distance, numbers};
use crate::train::tests;
use crate::{nn, predict};

/// The loss of a batch as training computes it, and as it is of the states of all tokens.
fn losses(trainer: &Trainer, batch: &Batch) -> [f32; 2] {
    let of = trainer.composed();
    let read = of.evaluated(&[batch]);
    let tokens = trainer.predictor().tokens(batch).unwrap();
    let hidden = of.encoder.forward(&trainer.setup.encoder, &tokens, &Pass::PLAIN).unwrap();
    let rows = of.outputs.rows(&tokens, 0, batch.task);
    let whole = of.outputs.loss(hidden.last().unwrap(), rows, batch, None).unwrap().loss;
    [read, whole.to_scalar().unwrap()]
}

#[test]
fn no_loss_reads_a_token_that_it_does_not_tell() {
    for pooling in Pooling::ALL {
        let [mut one, mut other] = [setup(), tests::setup()];
        (one.outline.pooling, other.outline.pooling) = (pooling, pooling);
        for (setup, batches) in [(one, batches(3)), (other, tests::batches(3))] {
            let trainer = Trainer::new(setup, &Device::Cpu).unwrap();
            for batch in &batches {
                let [read, whole] = losses(&trainer, batch);
                assert_eq!(read, whole, "{pooling:?}, task {}", batch.task);
            }
        }
    }
}

#[test]
fn no_answer_reads_a_token_that_it_does_not_tell() {
    for pooling in Pooling::ALL {
        let mut setup = setup();
        setup.outline.pooling = pooling;
        let trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let model = trainer.predictor();
        let tokens = Tokens::new(&[("texts", &rows(2))], model.config(), &Device::Cpu).unwrap();
        let x_nd = model.forward(&tokens).unwrap();
        let every: Vec<usize> = (0..TASKS.len()).collect();
        for tasks in every.iter().map(std::slice::from_ref).chain([&every[..5], &every[..]]) {
            let said = model.logits_of(tasks, &rows(2)).unwrap();
            for (task, said) in tasks.iter().zip(said) {
                let outputs = &trainer.composed().outputs;
                let of = outputs.rows(&tokens, 0, *task);
                let whole = outputs.logits(&x_nd, of, *task, None).unwrap();
                assert_eq!(said, whole.to_vec2::<f32>().unwrap(), "{pooling:?}, task {task}");
            }
        }
        assert_eq!(model.pooled(&rows(2), pooling).unwrap(), model.logits(6, &rows(2)).unwrap());
    }
}

/// The gradients of a step on all batches, and its losses, with the states that losses read or those of all tokens.
fn gradients(trainer: &Trainer, batches: &[&Batch], read: Reads) -> (Vec<f32>, BTreeMap<String, Tensor>) {
    let (of, key) = (trainer.composed(), CounterRng::new(7));
    let tokens =
        predict::tokens(trainer.predictor().outline(), batches, &trainer.setup.encoder, &Device::Cpu);
    let tokens = tokens.unwrap();
    let places = of.outputs.read_by_losses(&tokens, batches).unwrap().filter(|_| read == Reads::Told);
    let read = Read::some(places.as_deref());
    let pass = Pass { attention: &*of.attention, dropout: Some(key), read, ..Pass::PLAIN };
    let hidden = of.encoder.forward(&trainer.setup.encoder, &tokens, &pass).unwrap();
    let each = batches.iter().enumerate().map(|(at, batch)| {
        let rows = of.outputs.rows(&tokens, at, batch.task);
        of.outputs.loss(hidden.last().unwrap(), rows, batch, Some(key)).unwrap().loss
    });
    let each: Vec<Tensor> = each.collect();
    let total = each.iter().skip(1).fold(each[0].clone(), |sum, loss| (sum + loss).unwrap());
    let found = nn::gradients::gradients(&total).unwrap();
    let named = trainer
        .params()
        .iter()
        .filter_map(|(name, tensor)| Some((name.to_owned(), found.get(tensor)?.clone())));
    (each.iter().map(|loss| loss.to_scalar().unwrap()).collect(), named.collect())
}

/// Which of the last states a test computes.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Told,
    All,
}

#[test]
fn batches_of_several_tasks_have_the_losses_and_gradients_of_all_states() {
    let mut shallow = tests::setup();
    shallow.encoder.num_hidden_layers = 1;
    let words_and_rows = tests::batches(5);
    let plain: Vec<&Batch> = words_and_rows.iter().collect();
    let several = batches(5);
    // Tags read all tokens, and with them nothing would be left out.
    let others: Vec<&Batch> = several.iter().filter(|batch| batch.task != 5).collect();
    let (mut with_maps, known) = (knowledge::alone(), knowledge::known(5));
    with_maps.outline.pooling = Pooling::Cls;
    for (what, setup, batches) in [
        ("words and rows", tests::setup(), plain.clone()),
        ("one layer", shallow, plain),
        ("all outputs", setup(), others),
        ("maps and auxiliary tokens", with_maps, vec![&known]),
        ("labels", labels::labelled(label::Mode::Paper), vec![&several[0]]),
    ] {
        let trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let [told, all] = [Reads::Told, Reads::All].map(|read| gradients(&trainer, &batches, read));
        assert_eq!(told.0, all.0, "{what}");
        assert_eq!(told.1.keys().collect::<Vec<_>>(), all.1.keys().collect::<Vec<_>>(), "{what}");
        for (name, gradient) in &told.1 {
            let far = distance(gradient, &all.1[name]);
            let size = numbers(&all.1[name]).iter().fold(1.0_f64, |top, x| top.max(x.abs()));
            assert!(far < 3e-5 * size, "{what}, {name}: {far} of {size}");
        }
    }
}
