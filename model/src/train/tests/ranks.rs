//! Tests of several ranks that train one model.

use std::sync::Arc;

use base::rng::CounterRng;
use batch::rows::Rows;
use candle_core::{Device, Tensor};
use serde_json::Value;

use super::super::collective::{Collective, Thread};
use super::super::record::StepRecord;
use super::super::{Next, Setup, Trainer};
use super::{batches, bits, finetune, quiet, setup};
use crate::attention::label::Mode;
use crate::nn::check::distance;
use crate::optim::adamw::Missing;
use crate::output::{Batch, Targets};

/// A rank's part of a batch, as the stream cuts it: samples side by side. None where it has no sample.
fn share(batch: &Batch, rank: usize, world: usize) -> Option<Batch> {
    let samples = batch.targets.samples();
    let taken = samples * rank / world..samples * (rank + 1) / world;
    let (targets, before, count) = match &batch.targets {
        Targets::Groups(groups) => {
            let rows = |groups: &[crate::output::Group]| groups.iter().map(|group| group.rows).sum::<usize>();
            let own = &groups[taken.clone()];
            (Targets::Groups(own.to_vec()), rows(&groups[..taken.start]), rows(own))
        }
        Targets::Classes(classes) => {
            (Targets::Classes(classes[taken.clone()].to_vec()), taken.start, taken.len())
        }
        Targets::Sets(sets) => (Targets::Sets(sets[taken.clone()].to_vec()), taken.start, taken.len()),
        Targets::Scores(scores) => {
            (Targets::Scores(scores[taken.clone()].to_vec()), taken.start, taken.len())
        }
        Targets::Anchors(_) | Targets::Identities(_) | Targets::Links(_) => {
            panic!("each rank has its own rows to tell a match from")
        }
        Targets::Spans(rows) => (Targets::Spans(rows[taken.clone()].to_vec()), taken.start, taken.len()),
        Targets::Tokens(rows) => (Targets::Tokens(rows[taken.clone()].to_vec()), taken.start, taken.len()),
    };
    let mut rows = Rows::default();
    let mut first = 0;
    for (row, length) in batch.rows.lengths.iter().enumerate() {
        if (before..before + count).contains(&row) {
            rows.push((first..first + length).map(|at| (batch.rows.ids[at], batch.rows.types[at])));
        }
        first += length;
    }
    (count > 0).then_some(Batch { task: batch.task, rows, targets })
}

/// Each rank's trainer after some steps, with what it said of them; `begin` makes that of a rank, `shown` are the micro-batches of a step.
fn trained(
    world: usize,
    begin: impl Fn(usize) -> Trainer + Sync,
    steps: std::ops::RangeInclusive<u64>,
    shown: impl Fn(u64) -> Vec<Vec<Batch>> + Sync,
) -> Vec<(Trainer, Vec<StepRecord>)> {
    let one = |thread: Thread| {
        let rank = thread.rank();
        let mut trainer = begin(rank).among(Arc::new(thread)).unwrap();
        let records = steps.clone().map(|step| {
            assert_eq!(trainer.next(Next::Step).unwrap(), Next::Step);
            let own = |batches: Vec<Batch>| -> Vec<Batch> {
                batches.iter().filter_map(|batch| share(batch, rank, world)).collect()
            };
            let micro: Vec<Vec<Batch>> = shown(step).into_iter().map(own).collect();
            trainer.accumulated(0, &micro).unwrap()
        });
        let records = records.collect();
        (trainer, records)
    };
    std::thread::scope(|scope| {
        let ranks = Thread::ranks(world).into_iter().map(|thread| scope.spawn(|| one(thread)));
        ranks.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn numbers(trainer: &Trainer) -> Tensor {
    let numbers: Vec<f32> = bits(trainer).into_iter().map(f32::from_bits).collect();
    Tensor::new(numbers, &Device::Cpu).unwrap()
}

/// Without dropout, and with an optimiser that takes rounding for nothing: Adam makes whole steps of gradients that are 0 but for it.
fn calm(mut setup: Setup) -> Setup {
    quiet(&mut setup);
    setup.train.adamw.epsilon = 1e-4;
    setup
}

/// The device of each rank.
type Devices = fn(usize) -> Device;

fn cpus(_: usize) -> Device {
    Device::Cpu
}

/// Whether several ranks come to what one comes to, with the same bits on each and each time.
fn as_one(setup: &Setup, steps: u64, shown: impl Fn(u64) -> Vec<Vec<Batch>> + Sync) {
    // Three ranks do not share batches of 8 or 12 evenly, and of 13 some have no sample.
    as_one_on(cpus, &[1, 2, 3, 13], setup, steps, shown);
}

fn as_one_on(
    devices: Devices,
    worlds: &[usize],
    setup: &Setup,
    steps: u64,
    shown: impl Fn(u64) -> Vec<Vec<Batch>> + Sync,
) {
    let begin = |rank| Trainer::new(setup.clone(), &devices(rank)).unwrap();
    let mut alone = begin(0);
    let of_one: Vec<StepRecord> =
        (1..=steps).map(|step| alone.accumulated(0, &shown(step)).unwrap()).collect();
    for &world in worlds {
        let all = trained(world, begin, 1..=steps, &shown);
        let again = trained(world, begin, 1..=steps, &shown);
        for ((trainer, records), (other, _)) in all.iter().zip(&again) {
            assert_eq!(bits(trainer), bits(&all[0].0), "{world} ranks");
            assert_eq!(bits(trainer), bits(other), "{world} ranks");
            assert_eq!(records, &all[0].1, "{world} ranks");
        }
        let (trainer, records) = &all[0];
        if world == 1 {
            assert_eq!((bits(trainer), records), (bits(&alone), &of_one));
        }
        for (of, expected) in records.iter().zip(&of_one) {
            assert_eq!((of.tokens, of.rows, of.step), (expected.tokens, expected.rows, expected.step));
            assert!((of.loss / expected.loss - 1.0).abs() < 1e-4, "{world} ranks: {of:?}, {expected:?}");
            assert!(
                (of.grad_norm / expected.grad_norm - 1.0).abs() < 1e-3,
                "{world} ranks: {of:?}, {expected:?}"
            );
            assert_eq!(of.tasks.keys().collect::<Vec<_>>(), expected.tasks.keys().collect::<Vec<_>>());
            for (of, expected) in of.tasks.values().zip(expected.tasks.values()) {
                assert_eq!((of.targets, of.samples), (expected.targets, expected.samples));
                assert!(
                    (of.loss - expected.loss).abs() < 1e-4 * expected.loss.abs().max(1.0),
                    "{of:?} {expected:?}"
                );
                let accuracy = of.accuracy.zip(expected.accuracy);
                assert!(
                    accuracy.is_none_or(|(of, expected)| (of - expected).abs() < 1e-9),
                    "{of:?} {expected:?}"
                );
                assert_eq!(of.accuracy.is_some(), expected.accuracy.is_some());
            }
            assert_eq!(of.labels.is_some(), expected.labels.is_some());
            let labels = of.labels.zip(expected.labels);
            assert!(labels.is_none_or(|(of, expected)| (of - expected).abs() < 1e-4), "{of:?} {expected:?}");
        }
        let far = distance(&numbers(trainer), &numbers(&alone));
        assert!(far < 1e-4, "{world} ranks: {far:e} from one");
    }
}

#[test]
fn ranks_that_share_batches_make_the_steps_of_one() {
    let mut setup = calm(setup());
    as_one(&setup, 6, |step| vec![batches(step)]);
    setup.train.accumulate = 2;
    as_one(&setup, 3, |step| vec![batches(step), batches(100 + step)]);
}

/// The same with each rank on a GPU of its own.
#[cfg(feature = "cuda")]
pub(crate) fn on_gpus(devices: Devices) {
    let mut setup = calm(setup());
    setup.train.accumulate = 2;
    as_one_on(devices, &[1, 3], &setup, 3, |step| vec![batches(step), batches(100 + step)]);
    let mut setup = calm(finetune::setup());
    setup.train.covered_by = 6;
    as_one_on(devices, &[2], &setup, 6, |step| {
        vec![finetune::batches(step).into_iter().take(6).skip(usize::try_from(step % 4).unwrap()).collect()]
    });
    let setup = calm(finetune::labels::labelled(Mode::Paper));
    as_one_on(devices, &[2], &setup, 3, |step| vec![vec![finetune::batches(step).remove(0)]]);
}

/// A rank's batches, of which rank 1 has one with a class that no output has.
fn wrong(rank: usize) -> Vec<Batch> {
    let mut batches = batches(1);
    if rank == 1 {
        batches[2].targets = Targets::Classes(vec![99; 12]);
    }
    batches
}

/// A rank that fails or leaves is named by the others, wherever they are in a step.
#[cfg(feature = "cuda")]
pub(crate) fn leaving_gpus(devices: Devices) {
    let found = said_on(devices, [setup(), setup()], wrong);
    assert!(found[1].contains("class 99"), "{found:?}");
    assert!(found[0].contains("rank 1 of 2 has stopped"), "{found:?}");
    let found = said_on(|_| devices(0), [setup(), setup()], |_| batches(1));
    assert!(found.iter().all(|said| said.contains("each with a GPU of its own")), "{found:?}");
}

#[test]
fn every_kind_of_output_is_weighed_over_all_ranks() {
    for missing in [Missing::Zero, Missing::Skip] {
        let mut setup = calm(finetune::setup());
        setup.train.missing = missing;
        setup.train.covered_by = 6;
        // Tasks take turns, so that in most steps some outputs have no gradient anywhere.
        as_one(&setup, 6, |step| {
            vec![
                finetune::batches(step)
                    .into_iter()
                    .take(6)
                    .skip(usize::try_from(step % 4).unwrap())
                    .collect(),
            ]
        });
    }
    let setup = calm(finetune::labels::labelled(Mode::Paper));
    as_one(&setup, 3, |step| vec![vec![finetune::batches(step).remove(0)]]);
}

#[test]
fn each_rank_drops_other_units() {
    let setup = setup();
    let begin = |_| Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    // Both ranks see the same rows: with the same masks, they would come to what one rank alone comes to.
    let twice = |step| {
        let both = |batch: Batch| {
            let ids = &batch.rows;
            let mut rows = ids.clone();
            rows.ids.extend(&ids.ids);
            rows.types.extend(&ids.types);
            rows.lengths.extend(&ids.lengths);
            let targets = match batch.targets {
                Targets::Classes(classes) => Targets::Classes([classes.clone(), classes].concat()),
                Targets::Tokens(tokens) => Targets::Tokens([tokens.clone(), tokens].concat()),
                targets => targets,
            };
            Batch { rows, targets, ..batch }
        };
        vec![batches(step).into_iter().map(both).collect()]
    };
    let two = trained(2, begin, 1..=1, twice);
    let mut one = begin(0);
    let alone = one.step(0, &batches(1)).unwrap();
    assert!((two[0].1[0].loss - alone.loss).abs() > 1e-6, "{:?} {alone:?}", two[0].1[0]);
}

#[test]
fn a_state_goes_on_with_another_number_of_ranks() {
    let setup = calm(setup());
    let dir = tempfile::tempdir().unwrap();
    let begin = |_| Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let shown = |step| vec![batches(step)];
    let mut alone = begin(0);
    (1..=8).for_each(|step| drop(alone.step(0, &batches(step)).unwrap()));
    let two = trained(2, begin, 1..=4, shown);
    two[0].0.save_state(dir.path(), &Value::Null).unwrap();
    let resume = |_| Trainer::resume(setup.clone(), dir.path(), &Device::Cpu).unwrap().0;
    // As many ranks: the same bits as without a break. Others: the same but for rounding.
    let whole = trained(2, begin, 1..=8, shown);
    for world in [2, 3, 1] {
        let resumed = trained(world, resume, 5..=8, shown);
        assert_eq!(resumed[0].0.steps(), 8);
        if world == 2 {
            assert_eq!(bits(&resumed[0].0), bits(&whole[0].0));
        }
        let far = distance(&numbers(&resumed[0].0), &numbers(&alone));
        assert!(far < 1e-4, "{world} ranks: {far:e} from one");
    }
}

/// What each of two ranks says that begin with these setups and then make a step.
fn said(setups: [Setup; 2], shown: impl Fn(usize) -> Vec<Batch> + Sync) -> Vec<String> {
    said_on(cpus, setups, shown)
}

fn said_on(
    devices: impl Fn(usize) -> Device + Sync,
    setups: [Setup; 2],
    shown: impl Fn(usize) -> Vec<Batch> + Sync,
) -> Vec<String> {
    let one = |thread: Thread, setup: Setup| {
        let rank = thread.rank();
        let begun = Trainer::new(setup, &devices(rank)).unwrap().among(Arc::new(thread));
        let step = begun.and_then(|mut trainer| trainer.step(0, &shown(rank)).map(drop));
        step.err().map_or(String::new(), |error| error.to_string())
    };
    std::thread::scope(|scope| {
        let both = Thread::ranks(2).into_iter().zip(setups);
        let both = both.map(|(thread, setup)| scope.spawn(|| one(thread, setup)));
        both.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn ranks_that_do_not_belong_together_say_so() {
    let other = |change: fn(&mut Setup)| {
        let mut setup = setup();
        change(&mut setup);
        setup
    };
    let changes: [fn(&mut Setup); 2] = [|setup| setup.train.seed = 2, |setup| setup.train.clip_norm = 2.0];
    for change in changes {
        let found = said([setup(), other(change)], |_| batches(1));
        assert!(
            found[1].starts_with("rank 1 begins with other settings or weights than rank 0"),
            "{found:?}"
        );
        assert!(found[0].contains("rank 1 of 2 has stopped"), "{found:?}");
    }
    // A batch that fails on one rank ends the step on the other, whose parameters have not moved.
    let found = said([setup(), setup()], wrong);
    assert!(found[1].contains("class 99"), "{found:?}");
    assert!(found[0].contains("rank 1 of 2 has stopped"), "{found:?}");
    // No rank has a batch.
    let found = said([setup(), setup()], |_| vec![]);
    assert!(found.iter().all(|said| said.contains("no batch of a task with alpha above 0")), "{found:?}");
}

#[test]
fn all_ranks_stop_with_the_first() {
    let key = CounterRng::new(7);
    let one = |thread: Thread| {
        let rank = thread.rank();
        let trainer = Trainer::new(setup(), &Device::Cpu).unwrap().among(Arc::new(thread)).unwrap();
        let last = 2 + key.bits(0) % 3;
        let stops = |step: u64| if rank == 1 && step == last { Next::Stop } else { Next::Step };
        (0..10).take_while(|step| trainer.next(stops(*step)).unwrap() == Next::Step).count() as u64 == last
    };
    let found: Vec<bool> = std::thread::scope(|scope| {
        let ranks = Thread::ranks(3).into_iter().map(|thread| scope.spawn(|| one(thread)));
        ranks.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found, [true; 3]);
}
