//! Fine-tuning with attention by what is known of the rows.

use batch::maps::expand::Map;
use batch::maps::sample::{NO_WORD, Sample};

use super::*;
use crate::attention::kam::{self, Auxiliary, Merge, Skip};

const MAPS: [Map; 2] = [Map::Entity, Map::Term];

pub(crate) fn settings() -> kam::Settings {
    let (auxiliary, merge) = (Auxiliary::ZeroPad, Merge::Convolution);
    kam::Settings { maps: MAPS.len(), alpha: 0.2, skip: Skip::PostAdd, auxiliary, merge }
}

fn knowing() -> Setup {
    let mut setup = setup();
    setup.outline.pooling = Pooling::Mean;
    setup.outline.knowledge = Some(settings());
    setup
}

/// The same rows, in which each token but \[CLS\] and \[SEP\] is a word and all words are one entity.
pub(crate) fn with_maps(batch: &Batch) -> Batch {
    let (mut rows, mut ids) = (Rows::default(), &batch.rows.ids[..]);
    for length in &batch.rows.lengths {
        let (row, others) = ids.split_at(*length);
        ids = others;
        let mut sample = Sample { real: u16::try_from(*length).unwrap(), ..Sample::default() };
        sample.input_ids = row.iter().map(|id| id.cast_signed()).collect();
        sample.token_types = vec![0; row.len()];
        let mut words = 0..;
        sample.words = row.iter().map(|id| if *id < 4 { NO_WORD } else { words.next().unwrap() }).collect();
        sample.types = (0..words.start).collect();
        sample.entities = vec![1; sample.types.len()];
        sample.phrases = sample.types.iter().map(|word| word + 1).collect();
        rows.push_known(&sample.row(), &MAPS).unwrap();
    }
    Batch { rows, ..batch.clone() }
}

/// `[CLS] a b [SEP]` and so many auxiliary tokens; a and b are one entity.
fn sample(words: [u32; 2], auxiliary: u16) -> Sample {
    let mut sample = Sample { real: 4, auxiliary, ..Sample::default() };
    let ids = [2, words[0], words[1], 3].into_iter().chain((0..u32::from(auxiliary)).map(|at| 9 + at));
    sample.input_ids = ids.map(u32::cast_signed).collect();
    sample.token_types = vec![0; sample.input_ids.len()];
    sample.words = [NO_WORD, 0, 1, NO_WORD].into_iter().chain(2..2 + auxiliary).collect();
    sample.types = (0..2 + auxiliary).collect();
    sample.entities = [1, 1].into_iter().chain((0..auxiliary).map(|_| 0)).collect();
    sample.phrases = [1, 2].into_iter().chain((0..auxiliary).map(|_| 0)).collect();
    for other in 2..2 + auxiliary {
        sample.terms.pairs.push(0, other);
        sample.terms.relevance.push(0.5);
    }
    sample
}

/// Rows whose class is that of their first word; every second has auxiliary tokens.
pub(crate) fn known(seed: u64) -> Batch {
    let (mut rows, words) = (Rows::default(), words(seed));
    for (at, word) in words.iter().enumerate() {
        let sample = sample([*word, 7], u16::try_from(at % 2 * 3).unwrap());
        rows.push_known(&sample.row(), &MAPS).unwrap();
    }
    Batch { task: 0, rows, targets: Targets::Classes(words.iter().map(|word| word % 3).collect()) }
}

pub(crate) fn alone() -> Setup {
    let mut setup = knowing();
    setup.outline.tasks.truncate(1);
    setup
}

fn step(trainer: &mut Trainer, number: u64) -> StepRecord {
    trainer.step(0, &[known(number)]).unwrap()
}

#[test]
fn it_learns_and_what_is_loaded_answers_alike() {
    for skip in [Skip::PostAdd, Skip::PreAdd, Skip::None] {
        let mut setup = alone();
        setup.outline.knowledge.iter_mut().for_each(|of| of.skip = skip);
        let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let before = trainer.params().get(&kam::weight_name(1)).unwrap().copy().unwrap();
        let first = step(&mut trainer, 0).loss;
        let last = (1..120).map(|number| step(&mut trainer, number % 5).loss).last().unwrap();
        assert!(last < first * 0.6, "{skip:?}: {first} {last}");
        let after = trainer.params().get(&kam::weight_name(1)).unwrap();
        assert!(
            (before - after).unwrap().abs().unwrap().min_all().unwrap().to_scalar::<f32>().unwrap() > 0.0
        );
        let dir = tempfile::tempdir().unwrap();
        trainer.save_checkpoint(dir.path()).unwrap();
        let loaded = Predictor::load(dir.path(), &Device::Cpu).unwrap();
        let rows = known(7).rows;
        assert_eq!(loaded.logits(0, &rows).unwrap(), trainer.predictor().logits(0, &rows).unwrap());
        // Alone, a row is what it is among others.
        let mut one = Rows::default();
        one.push_known(&sample([words(7)[1], 7], 3).row(), &MAPS).unwrap();
        let (alone, among) = (loaded.logits(0, &one).unwrap(), loaded.logits(0, &rows).unwrap());
        let distance = alone[0].iter().zip(&among[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(distance < 1e-5, "{distance}");
    }
}

#[test]
fn what_no_loss_reaches_is_frozen_with_its_reason() {
    let frozen = |change: fn(&mut kam::Settings)| {
        let mut setup = alone();
        setup.outline.knowledge.iter_mut().for_each(change);
        let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        // The gate of the first steps refuses a parameter without a gradient that is not frozen.
        (0..3).for_each(|number| drop(step(&mut trainer, number)));
        let frozen = trainer.frozen_reasons().into_keys();
        frozen.filter(|name| name.starts_with(&kam::prefix())).collect::<Vec<_>>()
    };
    let layers = alone().encoder.num_hidden_layers;
    let biases: Vec<String> = (0..layers).map(kam::bias_name).collect();
    assert_eq!(frozen(|_| {}), biases);
    assert_eq!(frozen(|of| of.skip = Skip::PreAdd), biases[layers - 1..]);
    assert_eq!(frozen(|of| of.alpha = 0.0).len(), 2 * layers);
    assert!(frozen(|of| of.merge = Merge::Mean).is_empty());
}

#[test]
fn killed_and_resumed_gives_the_same_bits() {
    let start = || Trainer::new(alone(), &Device::Cpu).unwrap();
    let mut whole = start();
    (1..=4).for_each(|number| drop(step(&mut whole, number)));
    let mut first = start();
    (1..=2).for_each(|number| drop(step(&mut first, number)));
    let dir = tempfile::tempdir().unwrap();
    first.save_state(dir.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(alone(), dir.path(), &Device::Cpu).unwrap();
    (3..=4).for_each(|number| drop(step(&mut second, number)));
    assert_eq!(bits(&second), bits(&whole));
}

#[test]
fn rows_without_maps_and_models_without_knowledge_are_told_apart() {
    let mut trainer = Trainer::new(alone(), &Device::Cpu).unwrap();
    let text = trainer.step(0, &batches(1)[..1]).unwrap_err().to_string();
    assert!(text.contains("attends by maps of what is known, and these rows have none"), "{text}");
    let mut plain = Trainer::new(setup(), &Device::Cpu).unwrap();
    let text = plain.step(0, &[known(1)]).unwrap_err().to_string();
    assert!(text.contains("this model does not attend by any"), "{text}");
    let mut of_both = Trainer::new(knowing(), &Device::Cpu).unwrap();
    let text = of_both.step(0, &[known(1), batches(1)[1].clone()]).unwrap_err().to_string();
    assert!(
        text.contains("batch of any: 0 maps of what is known of its rows, the batch before has 2"),
        "{text}"
    );
    let mut other = alone();
    other.outline.knowledge.iter_mut().for_each(|of| of.maps = 3);
    let text = Trainer::new(other, &Device::Cpu).unwrap().step(0, &[known(1)]).unwrap_err().to_string();
    assert!(text.contains("2 maps a sample for an attention that merges 3"), "{text}");
}

#[test]
fn settings_that_cannot_be_are_errors() {
    let told = |change: fn(&mut Setup)| {
        let mut setup = alone();
        change(&mut setup);
        Trainer::new(setup, &Device::Cpu).unwrap_err().to_string()
    };
    let text = told(|of| of.outline.knowledge.iter_mut().for_each(|of| of.alpha = 1.5));
    assert!(text.contains("knowledge.alpha is 1.5, expected a share from 0 to 1"), "{text}");
    let mode = label::Mode::Paper;
    let labels = label::LabelAttention { mode, lambda: 3.0 };
    let mut setup = alone();
    setup.outline.labels = Some(labels);
    let text = Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("expected one attention: labels or knowledge"), "{text}");
}

#[test]
fn tokens_know_which_are_their_own() {
    let read = Tokens::new(&[("x", &known(1).rows)], &alone().encoder, &Device::Cpu).unwrap();
    assert_eq!((read.samples(0)[1].len, read.own(0)[1].len, read.own(0)[1].start), (7, 4, 4));
    let mut rows = known(1).rows;
    rows.known.iter_mut().for_each(|known| known.real.truncate(1));
    let error = Tokens::new(&[("x", &rows)], &alone().encoder, &Device::Cpu).unwrap_err();
    assert!(matches!(error, Error::Tensor(_)), "{error}");
}
