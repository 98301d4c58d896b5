//! Fine-tuning with attention by labels.

use super::*;
use crate::attention::Attention;
use crate::attention::label::begin::ClassMeans;
use crate::attention::label::{LabelAttention, Mode};
use crate::attention::plain::Plain;
use crate::encoder::Pass;

const EMBEDDINGS: &str = "outputs.label_attention.embeddings";

/// The first task alone, with its labels.
pub(crate) fn labelled(mode: Mode) -> Setup {
    let mut setup = setup();
    setup.outline.tasks.truncate(1);
    setup.outline.pooling = Pooling::LearnedPooler;
    setup.outline.labels = Some(LabelAttention { mode, lambda: 3.0 });
    setup
}

fn step(trainer: &mut Trainer, number: u64) -> StepRecord {
    trainer.step(0, &batches(number % 4)[..1]).unwrap()
}

fn embeddings(trainer: &Trainer) -> Vec<Vec<f32>> {
    trainer.params().get(EMBEDDINGS).unwrap().to_vec2().unwrap()
}

#[test]
fn labels_are_learned_and_what_is_loaded_attends_with_them() {
    for mode in [Mode::Paper, Mode::Repo] {
        let mut setup = labelled(mode);
        (setup.encoder.hidden_dropout_prob, setup.encoder.attention_probs_dropout_prob) = (0.0, 0.0);
        (setup.outline.dropout, setup.train.clip_norm) = (0.0, 5.0);
        let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
        let before = embeddings(&trainer);
        let records: Vec<StepRecord> = (0..150).map(|number| step(&mut trainer, number)).collect();
        assert!(records[149].loss < records[0].loss * 0.5, "{mode:?}: {:?}", records[149]);
        let after = embeddings(&trainer);
        assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{mode:?}");
        // Each label is of its own class.
        let logits = trainer.params().get(EMBEDDINGS).unwrap();
        let logits = trainer.composed().outputs.logits_of_vectors(&logits).unwrap().to_vec2::<f32>().unwrap();
        for (label, row) in logits.iter().enumerate() {
            let most = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]));
            assert_eq!(most, Some(label), "{mode:?}: {logits:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        trainer.save_checkpoint(dir.path()).unwrap();
        let loaded = Predictor::load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.logits(0, &rows(3)).unwrap(), trainer.predictor().logits(0, &rows(3)).unwrap());
        // The labels' loss is a term of its own.
        let look = trainer.evaluate(&batches(0)[..1]).unwrap()["one"].loss;
        let record = step(&mut trainer, 0);
        let labels = record.labels.unwrap();
        assert!(labels > 0.0 && (record.loss - record.tasks["one"].loss - labels).abs() < 1e-5, "{mode:?}");
        assert!((look - record.tasks["one"].loss).abs() < 1e-5, "{mode:?}: {record:?}");
    }
}

#[test]
fn training_and_answers_attend_with_the_labels() {
    // Without their own loss and without decay, attention alone moves embeddings.
    let mut setup = labelled(Mode::Paper);
    setup.outline.labels = Some(LabelAttention { mode: Mode::Paper, lambda: 0.0 });
    (setup.train.adamw.weight_decay, setup.train.schedule.peak) = (0.0, 0.05);
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let before = embeddings(&trainer);
    (0..20).for_each(|number| drop(step(&mut trainer, number)));
    assert_ne!(before, embeddings(&trainer));
    let tokens = Tokens::new(&[("x", &rows(3))], &trainer.setup.encoder, &Device::Cpu).unwrap();
    let said = |attention: &dyn Attention| {
        let pass = Pass { attention, ..Pass::PLAIN };
        let hidden = trainer.composed().encoder.forward(&trainer.setup.encoder, &tokens, &pass).unwrap();
        let logits =
            trainer.composed().outputs.logits(hidden.last().unwrap(), &tokens.spans, 0, None).unwrap();
        logits.to_vec2::<f32>().unwrap()
    };
    let answers = trainer.predictor().logits(0, &rows(3)).unwrap();
    assert_eq!(answers, said(&*trainer.composed().attention));
    assert_ne!(answers, said(&Plain));
}

#[test]
fn killed_and_resumed_gives_the_same_bits() {
    let start = || Trainer::new(labelled(Mode::Paper), &Device::Cpu).unwrap();
    let mut whole = start();
    (1..=5).for_each(|number| drop(step(&mut whole, number)));
    let mut first = start();
    (1..=2).for_each(|number| drop(step(&mut first, number)));
    let dir = tempfile::tempdir().unwrap();
    first.save_state(dir.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(labelled(Mode::Paper), dir.path(), &Device::Cpu).unwrap();
    (3..=5).for_each(|number| drop(step(&mut second, number)));
    assert_eq!(bits(&second), bits(&whole));
}

#[test]
fn labels_begin_as_they_are_told_and_only_before_the_first_step() {
    let mut trainer = Trainer::new(labelled(Mode::Paper), &Device::Cpu).unwrap();
    let drawn = embeddings(&trainer);
    let d = trainer.setup.encoder.hidden_size;
    let mut means = ClassMeans::new(3, d);
    (0..3).for_each(|class| means.add(class, &vec![f32::from(u8::try_from(class).unwrap()); d]).unwrap());
    let told = means.embeddings(&Device::Cpu).unwrap();
    trainer.begin_labels(&told).unwrap();
    assert!(embeddings(&trainer) == told.to_vec2::<f32>().unwrap() && drawn != embeddings(&trainer));
    assert!(trainer.begin_labels(&told.narrow(0, 0, 2).unwrap()).is_err());
    step(&mut trainer, 1);
    let text = trainer.begin_labels(&told).unwrap_err().to_string();
    assert!(text.contains("after 1 steps"), "{text}");
    // Labels that stay as they are told.
    let mut setup = labelled(Mode::Paper);
    setup.train.frozen = vec!["outputs.label_attention".to_owned()];
    let mut frozen = Trainer::new(setup, &Device::Cpu).unwrap();
    frozen.begin_labels(&told).unwrap();
    step(&mut frozen, 1);
    frozen.save_checkpoint(tempfile::tempdir().unwrap().path()).unwrap();
    assert!(embeddings(&frozen) == told.to_vec2::<f32>().unwrap());
    let mut plain = Trainer::new(super::setup(), &Device::Cpu).unwrap();
    assert!(plain.begin_labels(&told).unwrap_err().to_string().contains("no parameter named"));
}

#[test]
fn labels_that_no_task_can_have_are_errors() {
    let text = |change: fn(&mut Setup)| {
        let mut setup = labelled(Mode::Paper);
        change(&mut setup);
        Trainer::new(setup, &Device::Cpu).unwrap_err().to_string()
    };
    let found = text(|of| of.outline.tasks[0].output = Output::Score);
    assert!(found.contains("one task with the output one_class"), "{found}");
    let found = text(|of| of.outline.tasks = setup().outline.tasks);
    assert!(found.contains("labels is there, for 9 tasks"), "{found}");
    let found = text(|of| of.outline.labels = Some(LabelAttention { mode: Mode::Paper, lambda: -1.0 }));
    assert!(found.contains("labels.lambda is -1, expected 0 or above"), "{found}");
    let found = text(|of| of.outline.tasks[0].name = "label_attention".to_owned());
    assert!(found.contains("none of pool_attn, label_attention and knowledge"), "{found}");
}
