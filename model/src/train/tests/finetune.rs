//! Tests of fine-tuning on small made-up rows.

mod best;
pub(crate) mod knowledge;
pub(crate) mod labels;
mod read;
mod refused;

use std::path::Path;

use base::rng::CounterRng;
use batch::rows::Rows;
use candle_core::{Device, Tensor};
use serde_json::Value;

use super::super::{Setup, StepRecord, Trainer};
use super::{bits, config, quiet};
use crate::Error;
use crate::attention::{Chosen, label};
use crate::encoder::config::tests::tiny;
use crate::encoder::pool::Pooling;
use crate::encoder::tokens::Tokens;
use crate::head::mask::Mask;
use crate::optim::adamw::Missing;
use crate::optim::bert::{self, Kind};
use crate::optim::schedule::ReferencePace;
use crate::output::{Anchor, Batch, Group, Identity, Outline, Output, PairLoss, RankLoss, Targets, Task};
use crate::predict::Predictor;

pub(crate) const TASKS: [&str; 9] =
    ["one", "any", "score", "rank", "pairs", "tags", "near", "alike", "contrast"];

pub(crate) fn setup() -> Setup {
    let mut encoder = tiny();
    (encoder.hidden_dropout_prob, encoder.attention_probs_dropout_prob) = (0.1, 0.1);
    let outputs = [
        Output::OneClass { classes: 3, weights: Some(vec![0.5, 1.0, 2.0]) },
        Output::AnyClasses { classes: 5, positive: Some(vec![2.0, 1.0, 1.0, 3.0, 1.5]) },
        Output::Score,
        Output::Rank { loss: RankLoss::Softmax },
        Output::Rank { loss: RankLoss::Binary },
        Output::Tag { classes: 4 },
        Output::Embedding { scale: 5.0 },
        Output::Metric {
            loss: PairLoss::MultiSimilarity { alpha: 1.0, beta: 5.0, base: 0.5 },
            margin: Some(0.2),
        },
        Output::Metric { loss: PairLoss::InfoNce { temperature: 0.5 }, margin: None },
    ];
    let task = |(name, output): (&str, Output)| Task { name: name.to_owned(), output, alpha: 1.0 };
    Setup {
        encoder,
        outline: Outline {
            tasks: TASKS.into_iter().zip(outputs).map(task).collect(),
            pooling: Pooling::Cls,
            dropout: 0.1,
            thinned: crate::output::OutputDropout::ElementWise,
            labels: None,
            knowledge: None,
        },
        attention: Chosen::default(),
        train: config(300),
        mask: None,
        gates: None,
    }
}

/// The word at the second place of each row; what is right follows from it.
fn words(seed: u64) -> Vec<u32> {
    let key = CounterRng::new(seed);
    (0..8).map(|i| 10 + u32::try_from(key.bits(i) % 15).unwrap()).collect()
}

/// Rows of different lengths, segments among them.
pub(crate) fn rows(seed: u64) -> Rows {
    let mut rows = Rows::default();
    for (i, word) in words(seed).into_iter().enumerate() {
        let filling = (0..i % 3).map(|_| (7, 1));
        rows.push([(2, 0), (word, 0), (3, 0)].into_iter().chain(filling).chain([(3, 1)]));
    }
    rows
}

/// Classes of tokens, row by row.
type Tags = Vec<Vec<Option<u32>>>;

/// The class of each word and of the end of its row, none of the other tokens of [`rows`].
fn tags(words: &[u32]) -> Tags {
    let row = |(i, word): (usize, &u32)| {
        let filling = (0..i % 3).map(|_| None);
        [None, Some(word % 3), None].into_iter().chain(filling).chain([Some(3)]).collect()
    };
    words.iter().enumerate().map(row).collect()
}

/// Three samples of an embedding over [`rows`]: the match of the last is no negative of the first.
fn anchors() -> Vec<Anchor> {
    let of = |negatives, also_match: &[usize]| Anchor { negatives, also_match: also_match.to_vec() };
    vec![of(1, &[6]), of(0, &[]), of(1, &[])]
}

/// What each word names: every fifth may name what the next class's words do.
fn identities(words: &[u32]) -> Vec<Identity> {
    let may = |word: u32| if word.is_multiple_of(5) { vec![(word + 1) % 3] } else { vec![] };
    words.iter().map(|&word| Identity { class: word % 3, also: may(word) }).collect()
}

/// A batch of each task.
pub(crate) fn batches(seed: u64) -> Vec<Batch> {
    let words = words(seed);
    let right = |rows: &[u32]| (0..rows.len()).max_by_key(|i| (rows[*i], *i)).unwrap();
    let groups =
        [&words[..3], &words[3..5], &words[5..]].map(|of| Group { rows: of.len(), right: right(of) });
    let set = |word: &u32| (0..5).filter(|class| word >> class & 1 == 1).collect();
    let targets = [
        Targets::Classes(words.iter().map(|word| word % 3).collect()),
        Targets::Sets(words.iter().map(set).collect()),
        Targets::Scores(words.iter().map(|word| f64::from(*word) / 8.0 - 2.0).collect()),
        Targets::Groups(groups.to_vec()),
        Targets::Groups(groups.to_vec()),
        Targets::Tokens(tags(&words)),
        Targets::Anchors(anchors()),
        Targets::Identities(identities(&words)),
        Targets::Identities(identities(&words)),
    ];
    (0..).zip(targets).map(|(task, targets)| Batch { task, rows: rows(seed), targets }).collect()
}

fn run(trainer: &mut Trainer, steps: std::ops::RangeInclusive<u64>) -> Vec<StepRecord> {
    steps.map(|step| trainer.step(0, &batches(step)).unwrap()).collect()
}

pub(crate) fn trained(setup: Setup, steps: u64) -> Trainer {
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    run(&mut trainer, 1..=steps);
    trainer
}

#[test]
fn it_learns_every_kind_of_output_together() {
    let mut setup = setup();
    quiet(&mut setup);
    setup.train.clip_norm = 5.0;
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let records: Vec<StepRecord> = (0..300).map(|i| trainer.step(0, &batches(i % 4)).unwrap()).collect();
    for task in TASKS {
        let [first, last] = [0, 299].map(|i: usize| records[i].tasks[task]);
        assert!(last.loss < first.loss * 0.5, "{task}: from {first:?} to {last:?}");
    }
    assert_eq!((records[0].rows, records[0].tasks["rank"].samples), (72, 3));
    let sum: f64 = records[0].tasks.values().map(|task| task.loss).sum();
    assert!((sum - records[0].loss).abs() < 1e-4);
    // What was learned is what is said: of tags a row of numbers for each token.
    let (said, of) = (trainer.predictor().logits(5, &rows(0)).unwrap(), tags(&words(0)).concat());
    assert_eq!(said.len(), of.len());
    for (logits, tag) in said.iter().zip(of).filter_map(|(logits, tag)| Some((logits, tag?))) {
        let best = (0..4).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
        assert_eq!(best, Some(tag as usize), "{logits:?}");
    }
    // Of each group the right row has the highest score.
    let Targets::Groups(groups) = &batches(0)[3].targets else { panic!("a ranking") };
    let scores = trainer.predictor().logits(3, &rows(0)).unwrap();
    let mut first = 0;
    for group in groups {
        let best = (0..group.rows).max_by(|a, b| scores[first + a][0].total_cmp(&scores[first + b][0]));
        assert_eq!(best, Some(group.right));
        first += group.rows;
    }
    let line = serde_json::to_string(&records[0]).unwrap();
    assert!(line.contains("\"any\":{\"loss\":"), "{line}");
    assert_eq!(trainer.evaluate(&batches(0)).unwrap(), trainer.evaluate(&batches(0)).unwrap());
}

#[test]
fn killed_at_any_step_and_resumed_gives_the_same_bits() {
    for missing in [Missing::Zero, Missing::Skip] {
        killed_at_any_step(missing, None);
    }
    for kind in [Kind::Adamax, Kind::BertAdam] {
        killed_at_any_step(Missing::Skip, Some(as_released(kind)));
    }
}

/// An optimiser as MT-BERT's code has it.
pub(crate) fn as_released(kind: Kind) -> bert::Config {
    let (beta1, beta2, epsilon, weight_decay) = (0.9, 0.999, 1e-6, 0.01);
    bert::Config { kind, beta1, beta2, epsilon, weight_decay, clip_norm: Some(1.0) }
}

#[test]
fn a_released_optimiser_learns_and_its_constants_are_checked() {
    let mut setup = setup();
    quiet(&mut setup);
    setup.train.clip_norm = 5.0;
    setup.train.optimiser = Some(as_released(Kind::Adamax));
    setup.train.schedule.reference = Some(ReferencePace::Linear061);
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let records: Vec<StepRecord> = (0..200).map(|i| trainer.step(0, &batches(i % 4)).unwrap()).collect();
    assert!(records[0].learning_rate == 0.0 && records[1].learning_rate > 0.0, "as released");
    assert!(records[199].loss < records[0].loss * 0.6, "{:?} {:?}", records[0], records[199]);
    let mut wrong = as_released(Kind::Adamax);
    wrong.epsilon = 0.0;
    setup.train.optimiser = Some(wrong);
    let text = Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("optimiser.epsilon is 0, expected from 1e-30 to 1"), "{text}");
}

fn killed_at_any_step(missing: Missing, optimiser: Option<bert::Config>) {
    let mut setup = setup();
    if optimiser.is_some() {
        setup.train.schedule.reference = Some(ReferencePace::Linear061);
    }
    setup.train.optimiser = optimiser;
    (setup.outline.pooling, setup.train.covered_by, setup.train.missing) = (Pooling::LearnedAttn, 7, missing);
    let start = || Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    // Tasks in turns, so that some parameters have had no gradient yet.
    let turn = |trainer: &mut Trainer, step: u64| {
        let task = usize::try_from(step % 7).unwrap();
        trainer.step(step, &batches(step)[task..=task]).unwrap()
    };
    let mut whole = start();
    let all: Vec<StepRecord> = (1..=7).map(|step| turn(&mut whole, step)).collect();
    for killed in [0, 1, 3, 6] {
        let dir = tempfile::tempdir().unwrap();
        let mut first = start();
        for step in 1..=killed {
            turn(&mut first, step);
        }
        first.save_state(dir.path(), &serde_json::json!({ "at": killed })).unwrap();
        drop(first);
        let (mut second, stream) = Trainer::resume(setup.clone(), dir.path(), &Device::Cpu).unwrap();
        assert_eq!((second.steps(), stream), (killed, serde_json::json!({ "at": killed })));
        let rest: Vec<StepRecord> = (killed + 1..=7).map(|step| turn(&mut second, step)).collect();
        assert_eq!(rest, all[usize::try_from(killed).unwrap()..]);
        assert_eq!(bits(&second), bits(&whole), "killed after {killed}");
    }
}

#[test]
fn tasks_that_take_turns_leave_the_outputs_of_others_or_fade_them() {
    for (missing, stays) in [(Missing::Zero, false), (Missing::Skip, true)] {
        let mut setup = setup();
        (setup.train.missing, setup.train.covered_by) = (missing, 9);
        let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let numbers = |trainer: &Trainer| {
            let weight = trainer.params().get("outputs.one.weight").unwrap();
            weight.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        trainer.step(0, &batches(1)[..1]).unwrap();
        let before = numbers(&trainer);
        trainer.step(0, &batches(2)[1..2]).unwrap();
        assert_eq!(numbers(&trainer) == before, stays, "{missing:?}");
        trainer.step(0, &batches(3)[..1]).unwrap();
        assert_ne!(numbers(&trainer), before);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bits(&trained(setup(), 2)))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn states_of_other_settings_and_other_trainings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = |setup: Setup| Trainer::resume(setup, dir.path(), &Device::Cpu).unwrap_err().to_string();
    trained(setup(), 1).save_state(dir.path(), &Value::Null).unwrap();
    let mut other = setup();
    other.outline.dropout = 0.2;
    assert!(text(other).contains("made with dropout = 0.1, now 0.2"));
    let mut other = setup();
    other.gates = Some(Mask::new([2, 4], [vec![0.0], vec![1.0; 7]].concat()).unwrap());
    assert!(text(other).contains("made with the digest of the gates = none, now "));
    // KIMERA's tasks are another training.
    super::run(&mut Trainer::new(super::setup(), &Device::Cpu).unwrap(), 1..=1);
    let other = Trainer::new(super::setup(), &Device::Cpu).unwrap();
    other.save_state(dir.path(), &Value::Null).unwrap();
    assert!(text(setup()).contains("made with tasks = "));
}

#[test]
fn what_nothing_trains_is_frozen_with_a_reason() {
    let mut setup = setup();
    setup.outline.tasks[2].alpha = 0.0;
    setup.train.frozen = vec!["embeddings.".to_owned()];
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    let why = trainer.frozen_reasons();
    assert_eq!(why["outputs.score.weight"], "the alpha of its task is 0");
    assert_eq!(why["pooler.dense.bias"], "no task pools with it");
    assert_eq!(why["embeddings.LayerNorm.bias"], "listed in `frozen`");
    assert!(why["outputs.rank.bias"].contains("softmax over a group"));
    assert!(!why.contains_key("outputs.pairs.bias") && !why.contains_key("outputs.rank.weight"));
    let record = trainer.step(0, &batches(1)).unwrap();
    assert!(!record.tasks.contains_key("score"));
    trainer.check_frozen().unwrap();
    setup.train.frozen = vec!["layer".to_owned()];
    let text = Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("no parameter begins with `layer`"), "{text}");
}

#[test]
fn a_task_that_never_comes_stops_the_gate() {
    let mut trainer = Trainer::new(setup(), &Device::Cpu).unwrap();
    let before = bits(&trainer);
    let text = trainer.step(0, &batches(1)[..5]).unwrap_err().to_string();
    assert!(
        text.contains("by step 1, no gradient reaches [outputs.tags.bias, outputs.tags.weight]"),
        "{text}"
    );
    assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
}

#[test]
fn a_pruned_encoder_is_trained_without_its_heads() {
    // The whole first layer is off, and two heads of the second.
    let mask = Mask::new([2, 4], [vec![0.0; 4], vec![1.0, 0.0, 0.0, 1.0]].concat()).unwrap();
    let mut pruned = setup();
    pruned.gates = Some(mask);
    let mut trainer = Trainer::new(pruned.clone(), &Device::Cpu).unwrap();
    let whole = Trainer::new(setup(), &Device::Cpu).unwrap();
    assert_eq!(bits(&trainer), bits(&whole));
    assert_ne!(trainer.evaluate(&batches(1)).unwrap(), whole.evaluate(&batches(1)).unwrap());
    let why = trainer.frozen_reasons();
    let name = "encoder.layer.0.attention.self.query.weight";
    assert_eq!(why[name], "the gates turn off all heads of its layer");
    assert!(!why.contains_key("encoder.layer.0.attention.output.dense.bias"));
    run(&mut trainer, 1..=2);
    trainer.check_frozen().unwrap();
    pruned.gates = Some(Mask::all_kept([3, 4]));
    let text = Trainer::new(pruned, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("for 3 layers of 4 heads"), "{text}");
}

#[test]
fn an_encoder_comes_from_a_checkpoint_of_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let first = trained(setup(), 2);
    first.save_checkpoint(dir.path()).unwrap();
    let next = Trainer::from_checkpoint(setup(), dir.path(), &Device::Cpu).unwrap();
    let hidden = |trainer: &Trainer| trainer.predictor().hidden(&rows(1)).unwrap();
    assert_eq!(hidden(&next), hidden(&first));
    assert_ne!(next.predictor().logits(0, &rows(1)).unwrap(), first.predictor().logits(0, &rows(1)).unwrap());
    assert_eq!(next.steps(), 0);
    let mut wider = setup();
    wider.encoder.hidden_size *= 2;
    let text = Trainer::from_checkpoint(wider, dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("the model needs [") && text.contains("32"), "{text}");
    assert!(Trainer::from_checkpoint(setup(), Path::new("/nowhere"), &Device::Cpu).is_err());
}

#[test]
fn settings_that_cannot_be_are_named() {
    let text = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup();
        change(&mut setup);
        setup.check().unwrap_err().to_string()
    };
    let name = |to: &str| {
        let to = to.to_owned();
        text(&move |setup| setup.outline.tasks[0].name.clone_from(&to))
    };
    assert!(name("pool_attn").contains("name is `pool_attn`, expected letters"));
    assert!(name("a.b").contains("name is `a.b`, expected letters, digits"));
    assert!(name("any").contains("name is `any` twice"));
    assert!(text(&|setup| setup.outline.tasks[1].alpha = -1.0).contains("output of any: alpha is -1"));
    assert!(
        text(&|setup| setup.outline.dropout = 1.0).contains("dropout is 1, expected at least 0 and below 1")
    );
    assert!(text(&|setup| setup.train.clip_norm = 0.0).contains("clip_norm is 0, expected at least 1e-12"));
    let output = |output: Output| text(&move |setup| setup.outline.tasks[0].output = output.clone());
    let one = |classes, weights| output(Output::OneClass { classes, weights });
    assert!(one(1, None).contains("output of one: classes is 1, expected at least 2"));
    assert!(one(2, Some(vec![1.0])).contains("weights is 1 numbers, expected one for each of 2 classes"));
    assert!(one(2, Some(vec![1.0, 0.0])).contains("weights[1] is 0, expected above 0"));
    let positive = Some(vec![f64::INFINITY]);
    assert!(output(Output::AnyClasses { classes: 1, positive }).contains("positive[0] is inf"));
    assert!(text(&|setup| setup.outline.tasks.clear()).contains("one task's weight above 0"));
}
