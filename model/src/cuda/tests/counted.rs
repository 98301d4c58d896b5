//! What steps ask of the driver, and that a graph of one has its bits.

use std::ffi::c_char;
use std::sync::PoisonError;

use super::{ALONE, beside, bits, device, repeated};
use crate::device::ActivationDtype;
use crate::output::Batch;
use crate::train::tests::{self, finetune};
use crate::train::{Setup, Trainer};

unsafe extern "C" {
    fn mock_json(text: *mut c_char, size: usize) -> usize;
    fn mock_reset();
}

/// What the mock counted since it was last asked.
pub(super) fn counted() -> serde_json::Value {
    let mut text = vec![0_u8; 1 << 16];
    // SAFETY: so many bytes are there; the mock is the driver that this test is linked with.
    let length = unsafe { mock_json(text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: as above.
    unsafe { mock_reset() };
    serde_json::from_slice(&text[..length]).unwrap()
}

/// A step, and one that is no larger.
type Steps = [Vec<Batch>; 2];

/// Steps of an encoder of BERT-base's depth behind a larger one: what the first of its size asks of the driver, and what the third does. Widths play no part in it.
fn count(setup: &Setup, dtype: ActivationDtype, [larger, step]: &Steps) -> [serde_json::Value; 2] {
    let mut setup = setup.clone();
    (setup.encoder.num_hidden_layers, setup.train.dtype) = (12, dtype);
    let mut trainer = Trainer::new(setup, &device()).unwrap();
    trainer.step(0, larger).unwrap();
    let mut counts = [1, 2, 3].map(|_| {
        counted();
        trainer.advance(0, &[step]).unwrap();
        let counts = counted();
        trainer.settle().unwrap();
        counts
    });
    [0, 2].map(|which: usize| counts[which].take())
}

#[test]
fn a_step_is_few_launches_one_upload_and_no_wait() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let mut one = finetune::setup();
    one.outline.tasks.truncate(1);
    let of_one = finetune::batches(1).remove(0);
    let of_one = [vec![repeated(&of_one, 2)], vec![of_one]];
    // KIMERA's four tasks.
    let of_four = tests::batches(1);
    let of_four = [of_four.iter().map(|batch| repeated(batch, 2)).collect(), of_four];
    let steps = [("", &one, &of_one), ("of the graph's tasks ", &tests::setup(), &of_four)];
    let dtypes = [ActivationDtype::F32, ActivationDtype::Bf16];
    for (dtype, (of, setup, steps)) in dtypes.into_iter().flat_map(|dtype| steps.map(|of| (dtype, of))) {
        let [counts, by_graph] = count(setup, dtype, steps);
        println!("a step {of}in {dtype:?}: {counts}");
        let of = |what: &str| counts[what].as_u64().unwrap();
        let all = of("launches") + of("products");
        assert!(all <= 400 && of("graph_launches") == 0, "{counts}");
        assert_eq!((of("uploads"), of("downloads"), of("waits")), (1, 1, 0), "{counts}");
        assert_eq!(
            (of("allocations"), of("pinned_allocations"), of("fills"), of("moves")),
            (0, 0, 0, 0),
            "{counts}"
        );
        let of = |what: &str| by_graph[what].as_u64().unwrap();
        assert_eq!(
            (of("graph_launches"), of("graph_nodes"), of("launches"), of("products")),
            (1, all, 0, 0),
            "{by_graph}"
        );
        assert_eq!((of("uploads"), of("downloads"), of("waits")), (1, 1, 0), "{by_graph}");
    }
}

/// Bytes that a step of so many times the rows of a batch needs.
fn taken(layers: usize, times: usize) -> f64 {
    let mut setup = finetune::setup();
    setup.outline.tasks.truncate(1);
    let sizes = &mut setup.encoder;
    (sizes.num_hidden_layers, sizes.hidden_size, sizes.intermediate_size) = (layers, 128, 512);
    (sizes.num_attention_heads, setup.train.dtype) = (2, ActivationDtype::Bf16);
    let mut trainer = Trainer::new(setup, &device()).unwrap();
    trainer.step(0, &[repeated(&finetune::batches(1)[0], times)]).unwrap();
    trainer.activation_bytes().unwrap() as f64
}

#[test]
fn a_token_takes_at_most_25_kilobytes_of_a_layer_as_wide_as_bert_base() {
    let _beside = beside();
    let tokens: usize = finetune::rows(1).lengths.iter().sum();
    // Eight times as many tokens, and two layers more: embeddings, outputs and what alignment fills up fall out. All that a layer keeps is as wide as its states, or
    // as many as its heads, of 64 numbers as BERT's.
    let [one, three] = [1, 3].map(|layers| taken(layers, 9) - taken(layers, 1));
    let of_token_and_layer = (three - one) / 2.0 / (8 * tokens) as f64 * 768.0 / 128.0;
    println!("{of_token_and_layer:.0} bytes a token and layer of 768");
    assert!((9000.0..25.0 * 1024.0).contains(&of_token_and_layer), "{of_token_and_layer}");
}

#[test]
fn steps_of_like_sizes_are_graphs_and_have_the_same_bits() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let mut micro = tests::setup();
    micro.train.accumulate = 3;
    let mut half = finetune::setup();
    half.train.dtype = ActivationDtype::Bf16;
    type Steps = fn(u64) -> Vec<Vec<Batch>>;
    let trainings: [(_, Steps); 4] = [
        (finetune::setup(), |step| vec![finetune::batches(step)]),
        (half, |step| vec![finetune::batches(step)]),
        (tests::setup(), |step| vec![tests::batches(step)]),
        (micro, tests::weights::micro),
    ];
    for (setup, batches) in trainings {
        let step = |trainer: &mut Trainer, step: u64| {
            counted();
            let record = trainer.accumulated(0, &batches(step)).unwrap();
            (record, counted()["graph_launches"].as_u64().unwrap())
        };
        let mut whole = Trainer::new(setup.clone(), &device()).unwrap();
        let graphs: u64 = (1..=11).map(|number| step(&mut whole, number).1).sum();
        assert!(graphs >= 4, "{graphs} of 11 ragged steps");
        let dir = tempfile::tempdir().unwrap();
        whole.save_state(dir.path(), &serde_json::Value::Null).unwrap();
        let (mut resumed, _) = Trainer::resume(setup, dir.path(), &device()).unwrap();
        // The sizes of step 11 came before; who has just begun has no graph of any.
        let [(a, by_graph), (b, launched)] = [&mut whole, &mut resumed].map(|trainer| step(trainer, 11));
        assert_eq!((by_graph, launched), (1, 0));
        assert!(a == b && bits(&whole) == bits(&resumed));
    }
}
