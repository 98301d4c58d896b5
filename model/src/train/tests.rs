//! Tests of whole training runs on small made-up batches.

mod damaged;
pub(crate) mod finetune;
mod lora;
pub(crate) mod masked;
mod outputs;
pub(crate) mod ranks;
mod refused;
pub(crate) mod weights;

use std::path::Path;

use base::rng::CounterRng;
use batch::task::Task;
use candle_core::{Device, Tensor};
use serde_json::Value;

use super::config::{Config, Setup};
use super::heads::Heads;
use super::record::StepRecord;
use super::*;
use crate::attention::Chosen;
use crate::device::{ActivationDtype, Recompute};
use crate::encoder::config::tests::tiny;
use crate::encoder::pool::Pooling;
use crate::encoder::tokens::tests::ragged;
use crate::optim::adamw::{AdamWConfig, Missing};
use crate::optim::schedule::{Decay, Schedule};
use crate::output::shards::{Alphas, OutputConfig, Sizes};
use crate::output::{Batch, Decoder, Targets};

/// How small models are trained.
pub(crate) fn config(total_steps: u64) -> Config {
    Config {
        seed: 1,
        schedule: Schedule {
            peak: 3e-3,
            warmup_steps: 3,
            total_steps,
            decay: Decay::Linear,
            reference: None,
        },
        adamw: AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 },
        missing: Missing::Zero,
        optimiser: None,
        clip_norm: 1.0,
        frozen: vec![],
        heads: Heads::OPEN,
        lora: None,
        accumulate: 1,
        patience: None,
        covered_by: 1,
        recompute: Recompute::None,
        dtype: ActivationDtype::F32,
    }
}

/// KIMERA's tasks.
pub(crate) fn setup() -> Setup {
    setup_of(&Alphas::default(), Decoder::Linear)
}

pub(crate) fn setup_of(alphas: &Alphas, entity: Decoder) -> Setup {
    let mut encoder = tiny();
    (encoder.hidden_dropout_prob, encoder.attention_probs_dropout_prob) = (0.1, 0.1);
    let outputs = OutputConfig { entity, ..OutputConfig::default() };
    Setup {
        encoder,
        outline: outputs.outline(alphas, Sizes { relations: 3, tags: 4 }),
        attention: Chosen::default(),
        train: config(200),
        mask: None,
        gates: None,
    }
}

/// Turns dropout off.
pub(crate) fn quiet(setup: &mut Setup) {
    (setup.encoder.hidden_dropout_prob, setup.encoder.attention_probs_dropout_prob) = (0.0, 0.0);
    setup.outline.dropout = 0.0;
}

pub(crate) fn beside_kimera(task: Task, alpha: f64) -> Alphas {
    Alphas::new(Task::GRAPH.map(|task| (task, 1.0)).into_iter().chain([(task, alpha)]))
}

/// Classes of single tokens: one in each row.
fn single(rows: &[Vec<u32>], at: usize, classes: &[u32]) -> Targets {
    let row = |(row, class): (&Vec<u32>, &u32)| (0..row.len()).map(|t| (t == at).then_some(*class)).collect();
    Targets::Tokens(rows.iter().zip(classes).map(row).collect())
}

/// One batch of each task about the toy facts `object = subject + 1 + relation`, rows of different lengths.
pub(crate) fn batches(seed: u64) -> Vec<Batch> {
    let key = CounterRng::new(seed);
    let below = |i: u64, limit: u64| u32::try_from(key.bits(i) % limit).unwrap();
    let fact = |i: u64| {
        let (s, r) = (10 + below(i, 20), below(1000 + i, 3));
        (s, r, s + 1 + r)
    };
    let row = |i: u64, [s, r, o]: [u32; 3]| {
        let mut row = vec![2, s, 3, r, 3, o, 3];
        row.extend((0..i % 3).map(|_| 3));
        row
    };
    let mut batches = vec![];
    for (number, task) in Task::GRAPH.into_iter().enumerate() {
        let (mut rows, mut classes) = (vec![], vec![]);
        for i in 0..12 {
            let (s, r, o) = fact(i);
            let wrong = 10 + below(2000 + i, 20);
            let (ids, class) = match task {
                Task::Subject => ([4, 5 + r, o], s),
                Task::Object => ([s, 5 + r, 4], o),
                Task::Relation => ([s, 4, o], r),
                Task::Triplet if i % 2 == 0 => ([s, 5 + r, o], 1),
                _ => ([s, 5 + r, wrong], 0),
            };
            rows.push(row(i, ids));
            classes.push(class);
        }
        let refs: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
        let targets = match task {
            Task::Subject => single(&rows, 1, &classes),
            Task::Object => single(&rows, 5, &classes),
            _ => Targets::Classes(classes.clone()),
        };
        batches.push(Batch { task: number, rows: ragged(&refs), targets });
    }
    batches
}

pub(crate) fn run(trainer: &mut Trainer, steps: std::ops::RangeInclusive<u64>) -> Vec<StepRecord> {
    steps.map(|step| trainer.step(0, &batches(step)).unwrap()).collect()
}

pub(crate) fn bits(trainer: &Trainer) -> Vec<u32> {
    let numbers = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    trainer.params().iter().flat_map(|(_, t)| numbers(t)).map(f32::to_bits).collect()
}

#[test]
fn it_learns_all_four_tasks() {
    let mut setup = setup();
    quiet(&mut setup);
    setup.train.schedule.total_steps = 400;
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let records: Vec<StepRecord> = (0..400).map(|i| trainer.step(0, &batches(i % 2)).unwrap()).collect();
    for task in Task::GRAPH {
        let (first, last) = (records[0].tasks[task.name()], records[399].tasks[task.name()]);
        assert!(last.loss < first.loss * 0.5, "{task:?} from {} to {}", first.loss, last.loss);
        assert!(last.accuracy > Some(0.8), "{task:?} {last:?}");
    }
    let line = serde_json::to_string(&records[0]).unwrap();
    assert!(
        line.starts_with("{\"step\":1,\"epoch\":0,\"loss\":")
            && line.contains("\"subject\":{\"loss\":")
            && line.contains("\"targets\":12,\"samples\":12}"),
        "{line}"
    );
    let quiet = trainer.evaluate(&batches(0)).unwrap();
    assert_eq!(quiet, trainer.evaluate(&batches(0)).unwrap());
    assert_eq!(trainer.steps(), 400);
}

#[test]
fn killed_and_resumed_gives_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let mut whole = Trainer::new(setup(), &Device::Cpu).unwrap();
    let all = run(&mut whole, 1..=8);
    let mut first = Trainer::new(setup(), &Device::Cpu).unwrap();
    run(&mut first, 1..=2);
    first.save_state(dir.path(), &serde_json::json!({ "at": 2 })).unwrap();
    run(&mut first, 3..=4);
    first.save_state(dir.path(), &serde_json::json!({ "at": 4 })).unwrap();
    drop(first);
    let (mut second, stream) = Trainer::resume(setup(), dir.path(), &Device::Cpu).unwrap();
    assert_eq!((second.steps(), stream), (4, serde_json::json!({ "at": 4 })));
    assert_eq!(run(&mut second, 5..=8), all[4..]);
    assert_eq!(bits(&second), bits(&whole));
    let mut files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["moments-00000004.safetensors", "parameters-00000004.safetensors", "state.json"]);
}

#[test]
fn a_state_that_is_written_while_steps_go_on_is_that_of_its_step() {
    let (at_once, meanwhile) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    run(&mut trainer, 1..=2);
    trainer.save_state(at_once.path(), &Value::Null).unwrap();
    let mut writer = writer::Writer::default();
    let snapshot = trainer.snapshot(meanwhile.path(), &Value::Null).unwrap();
    run(&mut trainer, 3..=4);
    // A better evaluation, which the state knows nothing of, stays for the next one.
    trainer.evaluated(patience::Measured::Score(0.5), meanwhile.path()).unwrap();
    assert!(!trainer.watch.kept.files().unwrap().is_empty());
    writer.write(snapshot).unwrap();
    assert!(writer.wait().unwrap() && !writer.wait().unwrap());
    assert!(meanwhile.path().join("best-00000004/model.safetensors").exists());
    for file in ["state.json", "parameters-00000002.safetensors", "moments-00000002.safetensors"] {
        let [one, other] = [&at_once, &meanwhile].map(|dir| std::fs::read(dir.path().join(file)).unwrap());
        assert!(one == other, "{file}");
    }
    let (resumed, _) = Trainer::resume(setup(), meanwhile.path(), &Device::Cpu).unwrap();
    assert_eq!(resumed.steps(), 2);
    // The folder around is gone: the next one who asks is told.
    let gone = meanwhile.path().join("none/state");
    writer.write(trainer.snapshot(&gone, &Value::Null).unwrap()).unwrap();
    assert!(writer.wait().unwrap_err().to_string().contains("none/state"));
}

#[test]
fn states_of_other_settings_and_broken_states_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = |setup: Setup, dir: &Path| Trainer::resume(setup, dir, &Device::Cpu).unwrap_err().to_string();
    assert!(text(setup(), dir.path()).contains("state.json"));
    let trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    trainer.save_state(dir.path(), &Value::Null).unwrap();
    let mut other = setup();
    other.train.adamw.beta2 = 0.98;
    let found = text(other, dir.path());
    assert!(found.contains("made with train.adamw.beta2 = 0.999, now 0.98"), "{found}");
    checkpoint::whole::write(&dir.path().join("moments-00000000.safetensors"), b"short").unwrap();
    assert!(text(setup(), dir.path()).contains("moments-00000000.safetensors"));
    checkpoint::whole::write(&dir.path().join("state.json"), b"{}").unwrap();
    assert!(text(setup(), dir.path()).contains("missing field `version`"));
    checkpoint::whole::write(&dir.path().join("state.json"), b"{\"version\": 3}").unwrap();
    assert!(text(setup(), dir.path()).contains("version 3, expected 6"));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let trained = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
            run(&mut trainer, 1..=3);
            bits(&trainer)
        })
    };
    assert_eq!(trained(1), trained(3));
}

#[test]
fn trainings_side_by_side_in_one_pool_change_no_bit_of_each_other() {
    let trained = || {
        let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
        run(&mut trainer, 1..=3);
        bits(&trainer)
    };
    let alone = trained();
    // A thread of the pool that waits for a loop of one step may make a step of another training meanwhile.
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(trained)).collect();
        all.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), alone));
    });
}

#[test]
fn unused_parameters_are_frozen_with_a_reason_and_keep_their_bits() {
    let mut setup = setup();
    setup.outline.tasks[1].alpha = 0.0;
    setup.train.frozen = vec!["embeddings.position".to_owned()];
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let frozen: Vec<&str> = trainer.frozen().keys().map(String::as_str).collect();
    let expected = ["embeddings.position_embeddings.weight", "outputs.object.bias", "outputs.object.weight"];
    assert_eq!(frozen, [&expected[..], &["pooler.dense.bias", "pooler.dense.weight"]].concat());
    let before: Vec<Vec<f32>> = values(&trainer, &frozen_names(&trainer));
    let record = trainer.step(0, &batches(1)).unwrap();
    assert!(!record.tasks.contains_key("object"));
    assert_eq!(values(&trainer, &frozen_names(&trainer)), before);
    setup.train.frozen = vec!["encoder.layers".to_owned()];
    let text = Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("no parameter begins with `encoder.layers`"), "{text}");
}

#[test]
fn frozen_layers_change_no_bit_of_what_the_others_learn() {
    let mut setup = setup();
    setup.train.clip_norm = 1e9;
    let mut whole = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    setup.train.frozen = vec!["embeddings.".to_owned(), "encoder.layer.0.".to_owned()];
    let mut part = Trainer::new(setup, &Device::Cpu).unwrap();
    for trainer in [&mut whole, &mut part] {
        trainer.step(0, &batches(1)).unwrap();
    }
    let free: Vec<String> = part
        .params()
        .iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| !part.frozen().contains_key(name))
        .collect();
    assert!(free.iter().any(|name| name.starts_with("encoder.layer.1.")));
    assert_eq!(values(&part, &free), values(&whole, &free));
}

fn frozen_names(trainer: &Trainer) -> Vec<String> {
    trainer.frozen().keys().cloned().collect()
}

fn values(trainer: &Trainer, names: &[String]) -> Vec<Vec<f32>> {
    let numbers =
        |name: &String| trainer.params().get(name).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    names.iter().map(numbers).collect()
}

#[test]
fn a_parameter_without_a_gradient_stops_step_one_and_moves_nothing() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let before = bits(&trainer);
    let text = trainer.step(0, &batches(1)[..3]).unwrap_err().to_string();
    assert!(text.contains("no gradient reaches [outputs.triplet.bias, outputs.triplet.weight]"), "{text}");
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
}

#[test]
fn tasks_that_take_turns_have_all_had_theirs_before_the_gate_closes() {
    let mut setup = setup();
    setup.train.covered_by = 20;
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    for task in 0..4 {
        trainer.step(0, &batches(1)[task..=task]).unwrap();
    }
    setup.train.covered_by = 3;
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let mut step = |_: u64| trainer.step(0, &batches(1)[..1]);
    let error = (1..=3).find_map(|number| step(number).err()).unwrap().to_string();
    assert!(error.contains("by step 3, no gradient reaches [outputs.object.bias"), "{error}");
}

/// Texts of which the fourth token is asked for: it is the second plus one. As the task of this number.
pub(crate) fn masked_texts(task: usize, seed: u64) -> Batch {
    let key = CounterRng::new(seed);
    let word = |i: u64| 10 + u32::try_from(key.bits(i) % 20).unwrap();
    let rows: Vec<Vec<u32>> = (0..12).map(|i| vec![2, word(i), 7, 4, 3]).collect();
    let refs: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let classes: Vec<u32> = rows.iter().map(|row| row[1] + 1).collect();
    Batch { task, rows: ragged(&refs), targets: single(&rows, 3, &classes) }
}

#[test]
fn a_saved_checkpoint_starts_another_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    run(&mut trainer, 1..=2);
    trainer.save_checkpoint(dir.path()).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(
        files,
        ["config.json", "digests.json", "model.safetensors", "outputs.json", "outputs.safetensors"]
    );
    let next = Trainer::from_checkpoint(setup(), dir.path(), &Device::Cpu).unwrap();
    let name = "encoder.layer.1.output.dense.weight".to_owned();
    assert_eq!(values(&next, std::slice::from_ref(&name)), values(&trainer, &[name]));
    assert_eq!(next.steps(), 0);
    let mut wider = setup();
    wider.encoder.intermediate_size += 1;
    let text = Trainer::from_checkpoint(wider, dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("the model needs [25]") || text.contains("the model needs [25, 16]"), "{text}");
}

#[test]
fn a_loss_that_is_no_number_is_named_with_step_and_task() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let bias = trainer.params().get("outputs.relation.bias").unwrap().detach();
    bias.slice_set(&Tensor::new(&[f32::NAN, 0.0, 0.0], &Device::Cpu).unwrap(), 0, 0).unwrap();
    let text = trainer.step(0, &batches(1)).unwrap_err().to_string();
    assert!(text.contains("step 1: the loss of relation is NaN"), "{text}");
}
