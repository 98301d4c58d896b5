//! Tests of what losses and answers read of the last hidden states.

use super::*;
use crate::encoder::Pass;
use crate::train::tests;

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
