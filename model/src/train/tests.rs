//! Tests of whole training runs on small made-up batches.

mod damaged;
mod masked;
mod weights;

use std::path::Path;

use batch::task::Task;
use batch::{Batch, IGNORED, Targets};
use candle_core::Device;

use super::config::{Alphas, Config, Setup};
use super::heads::Heads;
use super::record::StepRecord;
use super::*;
use crate::encoder::config::tests::tiny;
use crate::encoder::pool::Pooling;
use crate::encoder::tokens;
use crate::optim::adamw::AdamWConfig;
use crate::optim::schedule::Schedule;
use crate::output::{EntityOutput, OutputConfig, Sizes};

pub(crate) fn setup() -> Setup {
    let mut encoder = tiny();
    (encoder.hidden_dropout_prob, encoder.attention_probs_dropout_prob) = (0.1, 0.1);
    Setup {
        encoder,
        attention: crate::attention::Chosen::default(),
        outputs: OutputConfig { pooling: Pooling::Cls, entity: EntityOutput::Linear, dropout: 0.1 },
        sizes: Sizes { relations: 3 },
        train: Config {
            seed: 1,
            schedule: Schedule { peak: 3e-3, warmup_steps: 3, total_steps: 200 },
            adamw: AdamWConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 },
            clip_norm: 1.0,
            alphas: Alphas::default(),
            frozen: vec![],
            heads: Heads::OPEN,
            patience: None,
            covered_by: 1,
            dtype: crate::device::ActivationDtype::F32,
        },
        mask: None,
    }
}

const KIMERA: [(Task, f64); 4] =
    [(Task::Subject, 1.0), (Task::Object, 1.0), (Task::Relation, 1.0), (Task::Triplet, 1.0)];

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
    for task in Task::GRAPH {
        let (mut rows, mut classes, mut asked) = (vec![], vec![], vec![]);
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
            asked.push(if task == Task::Subject { 1 } else { 5 });
        }
        let refs: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
        let mut batch = tokens::tests::batch(task, &refs, Targets::Classes(classes.clone()));
        if matches!(task, Task::Subject | Task::Object) {
            let mut tokens = vec![IGNORED; batch.rows * batch.width];
            for (i, (class, at)) in classes.iter().zip(asked).enumerate() {
                tokens[i * batch.width + at] = i64::from(*class);
            }
            batch.targets = Targets::Tokens(tokens);
        }
        batches.push(batch);
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
    (setup.encoder.hidden_dropout_prob, setup.encoder.attention_probs_dropout_prob) = (0.0, 0.0);
    (setup.outputs.dropout, setup.train.schedule.total_steps) = (0.0, 400);
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let records: Vec<StepRecord> = (0..400).map(|i| trainer.step(0, &batches(i % 2)).unwrap()).collect();
    for task in Task::GRAPH {
        let (first, last) = (records[0].tasks[&task], records[399].tasks[&task]);
        assert!(last.loss < first.loss * 0.5, "{task:?} from {} to {}", first.loss, last.loss);
        assert!(last.accuracy > 0.8, "{task:?} accuracy {}", last.accuracy);
    }
    let line = serde_json::to_string(&records[0]).unwrap();
    assert!(
        line.starts_with("{\"step\":1,\"epoch\":0,\"loss\":") && line.contains("\"subject\":{\"loss\":"),
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
    assert!(text(setup(), dir.path()).contains("version 3, expected 5"));
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
fn unused_parameters_are_frozen_with_a_reason_and_keep_their_bits() {
    let mut setup = setup();
    setup.train.alphas = Alphas::new(KIMERA.into_iter().filter(|(task, _)| *task != Task::Object)).unwrap();
    setup.train.frozen = vec!["embeddings.position".to_owned()];
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let frozen: Vec<&str> = trainer.frozen().keys().map(String::as_str).collect();
    let expected = ["embeddings.position_embeddings.weight", "outputs.object.bias", "outputs.object.weight"];
    assert_eq!(frozen, [&expected[..], &["pooler.dense.bias", "pooler.dense.weight"]].concat());
    let before: Vec<Vec<f32>> = values(&trainer, &frozen_names(&trainer));
    let record = trainer.step(0, &batches(1)).unwrap();
    assert!(!record.tasks.contains_key(&Task::Object));
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

#[test]
fn every_pooling_and_both_entity_outputs_pass_the_gate() {
    for pooling in Pooling::ALL {
        for entity in [EntityOutput::Linear, EntityOutput::MaskedLm] {
            let mut setup = setup();
            (setup.outputs.pooling, setup.outputs.entity) = (pooling, entity);
            let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
            trainer.step(0, &batches(1)).unwrap();
            let idle = trainer.frozen().keys().filter(|name| name.starts_with("pooler")).count();
            assert_eq!(idle, if pooling == Pooling::LearnedPooler { 0 } else { 2 }, "{pooling:?}");
        }
    }
}

/// Texts of which the fourth token is asked for: it is the second plus one.
fn masked_texts(seed: u64) -> Batch {
    let key = CounterRng::new(seed);
    let word = |i: u64| 10 + u32::try_from(key.bits(i) % 20).unwrap();
    let rows: Vec<[u32; 5]> = (0..12).map(|i| [2, word(i), 7, 4, 3]).collect();
    let refs: Vec<&[u32]> = rows.iter().map(<[u32; 5]>::as_slice).collect();
    let tokens = rows.iter().flat_map(|row| {
        let class = i64::from(row[1]) + 1;
        [IGNORED, IGNORED, IGNORED, class, IGNORED]
    });
    tokens::tests::batch(Task::MaskedLm, &refs, Targets::Tokens(tokens.collect()))
}

#[test]
fn masked_texts_are_learned_with_their_own_output_or_that_of_entities() {
    for entity in [EntityOutput::Linear, EntityOutput::MaskedLm] {
        let mut setup = setup();
        (setup.encoder.hidden_dropout_prob, setup.encoder.attention_probs_dropout_prob) = (0.0, 0.0);
        (setup.outputs.entity, setup.outputs.dropout) = (entity, 0.0);
        setup.train.schedule.total_steps = 300;
        let without = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
        let names = |trainer: &Trainer| {
            let named = trainer.params().iter().map(|(name, _)| name.to_owned());
            named.filter(|name| name.starts_with("outputs.masked_lm.")).collect::<Vec<_>>()
        };
        assert_eq!(names(&without).is_empty(), entity == EntityOutput::Linear);
        setup.train.alphas = Alphas::new(KIMERA.into_iter().chain([(Task::MaskedLm, 2.0)])).unwrap();
        let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
        assert_eq!(names(&trainer).len(), 5);
        let all = |seed| [batches(seed), vec![masked_texts(seed)]].concat();
        let records: Vec<StepRecord> = (0..300).map(|i| trainer.step(0, &all(i % 2)).unwrap()).collect();
        let [first, last] = [&records[0], &records[299]].map(|record| record.tasks[&Task::MaskedLm]);
        assert!(last.loss < first.loss * 0.5 && last.accuracy > 0.8, "{first:?} {last:?}");
        let sum: f64 = records[0]
            .tasks
            .iter()
            .map(|(task, of)| trainer.setup.train.alphas.of(*task).unwrap_or(0.0) * of.loss)
            .sum();
        assert!((sum - records[0].loss).abs() < 1e-4);
        // Alone: the graph tasks' outputs are frozen, and a step of graph tasks only has nothing to train.
        setup.train.alphas = Alphas::new([(Task::MaskedLm, 2.0)]).unwrap();
        let mut alone = Trainer::new(setup, &Device::Cpu).unwrap();
        alone.step(0, &[masked_texts(1)]).unwrap();
        assert!(alone.frozen().contains_key("outputs.relation.bias"));
        assert!(!alone.frozen().keys().any(|name| name.starts_with("outputs.masked_lm")));
        assert!(alone.step(0, &batches(1)).unwrap_err().to_string().contains("no batch of a task"));
    }
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let tagging = Batch { task: Task::Tagging, ..masked_texts(1) };
    let text = trainer.step(0, &[tagging]).unwrap_err().to_string();
    assert!(text.contains("batch of tagging: there is no output for it"), "{text}");
}

#[test]
fn bad_batches_are_named() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let mut text = |batches: &[Batch]| trainer.step(0, batches).unwrap_err().to_string();
    let [subject, _, relation, _] = <[Batch; 4]>::try_from(batches(1)).unwrap();
    assert!(text(&[]).contains("no batch of a task with alpha above 0"));
    assert!(text(&[relation.clone(), relation.clone()]).contains("two batches of relation"));
    let changed = |batch: &Batch, targets| Batch { targets, ..batch.clone() };
    assert!(
        text(&[changed(&relation, Targets::Classes(vec![3; 12]))])
            .contains("target 0: class 3 is not below 3")
    );
    assert!(
        text(&[changed(&relation, Targets::Classes(vec![]))]).contains("one class for each of 12 samples")
    );
    assert!(
        text(&[changed(&subject, Targets::Classes(vec![1]))]).contains("found 1 targets of kind classes")
    );
    let cells = subject.rows * subject.width;
    assert!(
        text(&[changed(&subject, Targets::Tokens(vec![IGNORED; cells]))]).contains("nothing is asked for")
    );
    assert!(
        text(&[changed(&subject, Targets::Tokens(vec![1; cells]))]).contains("a target at a padded position")
    );
}

#[test]
fn settings_out_of_range_are_named() {
    let text = |change: fn(&mut Setup)| {
        let mut setup = setup();
        change(&mut setup);
        setup.check().unwrap_err().to_string()
    };
    assert_eq!(text(|s| s.train.clip_norm = 0.0), "clip_norm is 0, expected at least 1e-12");
    assert_eq!(text(|s| s.outputs.dropout = 1.0), "task_heads.dropout is 1, expected from 0 to 0.95");
    let none = |s: &mut Setup| {
        s.train.alphas = Alphas::new([]).unwrap();
    };
    assert!(text(none).contains("one task's weight above 0"));
    let negative = |s: &mut Setup| s.train.alphas = Alphas::new([(Task::MaskedLm, -1.0)]).unwrap();
    assert!(text(negative).contains("alphas.masked_lm is -1"));
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
