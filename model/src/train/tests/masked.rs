//! Tests of training under a head mask, of what it freezes, and of patience.

use super::super::heads::{Heads, Mode, Shared};
use super::super::patience::{Measured, Patience, Verdict};
use super::*;
use crate::head::mask::Mask;
use crate::optim::head_mask::SoftOn;

/// Layer 0 has heads of every kind, layer 1 only such as are kept.
pub(crate) fn masked(mode: Mode, shared: Shared) -> Setup {
    let mut setup = setup();
    setup.train.heads = Heads { mode, shared, soft_on: SoftOn::Step };
    setup.mask = Some(Mask::new([2, 4], vec![1.0, 0.0, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap());
    setup
}

const QUERY: &str = "encoder.layer.0.attention.self.query.weight";

#[test]
fn masked_training_moves_what_it_should_and_says_what_is_frozen() {
    for mode in [Mode::Hard, Mode::Soft, Mode::Forward] {
        for shared in [Shared::Train, Shared::Freeze] {
            let mut trainer = Trainer::new(masked(mode, shared), &Device::Cpu).unwrap();
            let names: Vec<String> = trainer.params().iter().map(|(name, _)| name.to_owned()).collect();
            let before = values(&trainer, &names);
            run(&mut trainer, 1..=3);
            trainer.check_frozen().unwrap();
            let moved: Vec<&String> = names
                .iter()
                .zip(before.iter().zip(values(&trainer, &names)))
                .filter_map(|(name, (a, b))| (*a != b).then_some(name))
                .collect();
            // Pooler and layer 1's heads never move; with `freeze`, nothing but layer 0's heads and the outputs does.
            let still = |name: &str| {
                let layer_0 = name.starts_with("encoder.layer.0.attention");
                let of_head = name.contains(".self.") || name.ends_with("attention.output.dense.weight");
                name.starts_with("pooler")
                    || (of_head && !layer_0)
                    || (shared == Shared::Freeze && !name.starts_with("outputs.") && !of_head)
            };
            let expected: Vec<&String> = names.iter().filter(|name| !still(name)).collect();
            assert_eq!(moved, expected, "{mode:?} {shared:?}");
            assert!(trainer.frozen().keys().all(|name| still(name)));
            assert_eq!(trainer.frozen().len(), names.len() - expected.len());
            assert_eq!((trainer.frozen_heads().len(), &trainer.frozen_heads()[QUERY]), (7, &vec![0, 3]));
            let why = trainer.frozen()["encoder.layer.1.attention.self.value.bias"];
            assert_eq!(why, "the head mask keeps all heads of its layer");
            let words = trainer.frozen_reasons();
            assert_eq!(words.len(), trainer.frozen().len() + 7);
            assert!(
                words[QUERY].starts_with("the head mask keeps heads 0 and 3 (from 0)"),
                "{}",
                words[QUERY]
            );
        }
    }
}

#[test]
fn what_is_frozen_wholly_is_not_in_the_graph() {
    let trainer = Trainer::new(masked(Mode::Hard, Shared::Freeze), &Device::Cpu).unwrap();
    for (name, _) in trainer.params().iter() {
        let tracked = trainer.params().get(name).unwrap().track_op();
        assert_eq!(tracked, !trainer.frozen().contains_key(name), "{name}");
    }
    // Without embeddings and without the first layer, the graph begins above them.
    let nodes = |frozen: &[&str]| {
        let mut setup = setup();
        setup.train.frozen = frozen.iter().map(|name| (*name).to_owned()).collect();
        let trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        trainer.composed().graph_nodes(&batches(1).iter().collect::<Vec<_>>())
    };
    let all = nodes(&[]);
    let [bottom, top] = [&["embeddings.", "encoder.layer.0."][..], &["encoder.layer.1."]].map(nodes);
    assert!(
        bottom * 3 < all * 2 && top < all,
        "{all} nodes, {bottom} without the first layer, {top} without the last"
    );
}

#[test]
fn forward_gates_shut_kept_heads_out_while_training() {
    let trainer = Trainer::new(masked(Mode::Forward, Shared::Train), &Device::Cpu).unwrap();
    let plain = Trainer::new(setup(), &Device::Cpu).unwrap();
    assert_eq!(bits(&trainer), bits(&plain));
    assert_ne!(trainer.evaluate(&batches(1)).unwrap(), plain.evaluate(&batches(1)).unwrap());
    // The gates that would be the mask itself give the heads that are trained no gradient at all.
    let mut wrong = Trainer::new(masked(Mode::Forward, Shared::Freeze), &Device::Cpu).unwrap();
    let gates_lh = wrong.setup.mask.as_ref().unwrap().hard().gates(&Device::Cpu).unwrap();
    wrong.machine.composed_mut().unwrap().gates_lh = Some(gates_lh);
    let text = wrong.step(0, &batches(1)).unwrap_err().to_string();
    assert!(text.contains("no gradient reaches [encoder.layer.0.attention.output.dense.weight"), "{text}");
}

#[test]
fn a_frozen_number_that_moved_stops_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(masked(Mode::Hard, Shared::Train), &Device::Cpu).unwrap();
    run(&mut trainer, 1..=1);
    let nudge = |trainer: &Trainer, name: &str, at: usize| {
        let param = trainer.params().get(name).unwrap().detach();
        let mut numbers = param.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        numbers[at] += 1e-6;
        let moved = Tensor::from_vec(numbers, param.shape(), &Device::Cpu).unwrap();
        param.slice_set(&moved, 0, 0).unwrap();
    };
    // Head 1 is trained, head 3 is not: rows 12 to 15 of the query, columns 12 to 15 of the output.
    nudge(&trainer, QUERY, 4 * 16);
    trainer.save_checkpoint(dir.path()).unwrap();
    nudge(&trainer, "encoder.layer.0.attention.output.dense.weight", 5 * 16 + 15);
    let text = trainer.save_checkpoint(dir.path()).unwrap_err().to_string();
    assert!(
        text.contains("attention.output.dense.weight, head 3 (from 0), is frozen, but after step 1"),
        "{text}"
    );
    nudge(&trainer, "pooler.dense.bias", 0);
    let text = trainer.check_frozen().unwrap_err().to_string();
    assert!(text.starts_with("pooler.dense.bias is frozen, but"), "{text}");
}

#[test]
fn masked_training_killed_and_resumed_gives_the_same_bits_and_keeps_its_seal() {
    let dir = tempfile::tempdir().unwrap();
    let setup = || masked(Mode::Soft, Shared::Train);
    let mut whole = Trainer::new(setup(), &Device::Cpu).unwrap();
    run(&mut whole, 1..=4);
    let mut first = Trainer::new(setup(), &Device::Cpu).unwrap();
    run(&mut first, 1..=2);
    first.save_state(dir.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(setup(), dir.path(), &Device::Cpu).unwrap();
    run(&mut second, 3..=4);
    assert_eq!(bits(&second), bits(&whole));
    assert_eq!((&second.seal, second.check_frozen().is_ok()), (&whole.seal, true));
    let text = |setup: Setup| Trainer::resume(setup, dir.path(), &Device::Cpu).unwrap_err().to_string();
    let mut other = setup();
    other.mask = Some(Mask::new([2, 4], [vec![0.5], vec![1.0; 7]].concat()).unwrap());
    let found = text(other.clone());
    let [old, new] = [setup(), other].map(|setup| setup.mask.unwrap().digest());
    assert!(found.contains(&format!("made with the digest of the head mask = {old}, now {new}")), "{found}");
    assert!(text(masked(Mode::Hard, Shared::Train)).contains("train.heads.mode = \"soft\", now \"hard\""));
}

#[test]
fn masks_and_modes_that_contradict_each_other_are_named() {
    let text = |setup: &Setup| setup.check().unwrap_err().to_string();
    let mut without = masked(Mode::Hard, Shared::Train);
    without.mask = None;
    assert!(text(&without).contains("mode is hard, which needs a head mask"));
    assert!(text(&masked(Mode::None, Shared::Train)).contains("mode is none, which uses no head mask"));
    let mut other = masked(Mode::Soft, Shared::Train);
    other.mask = Some(Mask::new([3, 4], vec![0.0; 12]).unwrap());
    assert!(text(&other).contains("for 3 layers of 4 heads, the encoder has 2 layers of 4"));
    other.mask = Some(Mask::all_kept([2, 4]));
    assert!(text(&other).contains("keeps every head"));
    let mut scratch = setup();
    scratch.train.heads.mode = Mode::Scratch;
    let trainer = Trainer::new(scratch.clone(), &Device::Cpu).unwrap();
    let dir = tempfile::tempdir().unwrap();
    trainer.save_checkpoint(dir.path()).unwrap();
    let found = Trainer::from_checkpoint(scratch, dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(found.contains("begins with fresh weights: leave the checkpoint out"), "{found}");
}

#[test]
fn the_parameters_of_the_best_look_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (best, state) = (dir.path().join("best"), dir.path().join("state"));
    let mut setup = setup();
    // A rate that soon makes everything worse.
    (setup.train.schedule.peak, setup.train.schedule.warmup_steps) = (0.5, 4);
    setup.train.schedule.total_steps = 100;
    setup.train.patience = Some(Patience { every: 1, evaluations: 2 });
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let (mut looks, mut kept) = (vec![], vec![]);
    assert!(!trainer.evaluation_is_due());
    while looks.last() != Some(&Verdict::Stop) {
        trainer.step(0, &batches(1)).unwrap();
        assert!(trainer.evaluation_is_due() && trainer.steps() < 50);
        let held_out = [batches(2), batches(3)];
        let (loss, tasks) = trainer.held_out_loss(held_out.iter().map(Vec::as_slice)).unwrap();
        assert!((loss.value() - tasks.values().map(|task| task.loss).sum::<f64>()).abs() < 1e-9);
        let alone = [2, 3].map(|seed| trainer.evaluate(&batches(seed)).unwrap()["triplet"].loss);
        assert!((tasks["triplet"].loss - (alone[0] + alone[1]) / 2.0).abs() < 1e-9);
        assert_eq!(tasks["triplet"].targets, 24);
        let verdict = trainer.evaluated(loss, &state).unwrap();
        if verdict == Verdict::Best {
            kept = bits(&trainer);
        }
        looks.push(verdict);
        // A resumed run has the same best evaluation.
        trainer.save_state(&state, &Value::Null).unwrap();
        let resumed = Trainer::resume(setup.clone(), &state, &Device::Cpu).unwrap().0;
        let [one, other] = [&resumed, &trainer].map(|of| serde_json::to_value(&of.watch).unwrap());
        assert_eq!(one, other);
        assert_eq!(resumed.watch.kept.files().unwrap(), trainer.watch.kept.files().unwrap());
        trainer = resumed;
    }
    assert_ne!(bits(&trainer), kept);
    trainer.save_best(&state, &best).unwrap();
    let stored = checkpoint::load(&best, &Device::Cpu).unwrap().params;
    let name = "encoder.layer.0.output.dense.weight";
    let numbers = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let stored: Vec<u32> = numbers(stored.get(name).unwrap()).into_iter().map(f32::to_bits).collect();
    assert!(kept.windows(stored.len()).any(|window| window == stored));
    let at = trainer.best().unwrap().step;
    assert_eq!(looks.iter().rposition(|look| *look == Verdict::Best).unwrap() as u64 + 1, at);
    assert!(trainer.held_out_loss([]).unwrap_err().to_string().contains("no batch"));
    let wild = trainer.evaluated(Measured::Loss(f64::NAN), &state).unwrap_err().to_string();
    assert!(wild.contains("the loss on held-out samples is NaN"), "{wild}");
}
