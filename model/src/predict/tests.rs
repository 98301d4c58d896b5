//! Tests of trained models that answer.

use super::*;
use crate::checkpoint::whole;
use crate::encoder::{Gates, Pass};
use crate::head::importance::{AcrossLayers, Method, WithinLayer};
use crate::nn::check::numbers;
use crate::output::Targets;
use crate::train::tests::finetune::{TASKS, batches, rows, setup, trained};

#[test]
fn a_loaded_model_says_what_the_trainer_said() {
    let dir = tempfile::tempdir().unwrap();
    for pooling in Pooling::ALL {
        let mut setup = setup();
        setup.outline.pooling = pooling;
        let trainer = trained(setup, 2);
        trainer.save_checkpoint(dir.path()).unwrap();
        let loaded = Predictor::load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.outline(), trainer.predictor().outline());
        for name in TASKS {
            let task = loaded.task(name).unwrap();
            let logits = loaded.logits(task, &rows(3)).unwrap();
            assert_eq!(logits, trainer.predictor().logits(task, &rows(3)).unwrap(), "{name}");
            let output = &loaded.outline().tasks[task].output;
            assert_eq!(logits.len(), output.answers(&rows(3)));
            let width = if output.is_vector() { loaded.config().hidden_size } else { output.width(0) };
            assert!(logits.iter().all(|row| row.len() == width));
            assert!(loaded.logits(task, &Rows::default()).unwrap().is_empty());
        }
        let hidden = loaded.hidden(&rows(3)).unwrap();
        assert_eq!(hidden.len(), rows(3).ids.len());
        let first = loaded.pooled(&rows(3), Pooling::Cls).unwrap();
        let mut at = 0;
        for (row, len) in rows(3).lengths.iter().enumerate() {
            assert_eq!(first[row], hidden[at]);
            at += len;
        }
        let own = loaded.pooled(&rows(3), pooling).unwrap();
        assert_eq!(own.len(), rows(3).len());
        assert_eq!(loaded.pooled(&rows(3), Pooling::LearnedAttn).is_ok(), pooling == Pooling::LearnedAttn);
    }
}

#[test]
fn rows_do_not_see_each_other() {
    let trainer = trained(setup(), 1);
    let predictor = trainer.predictor();
    let together = predictor.logits(0, &rows(5)).unwrap();
    let mut at = 0;
    for (row, &len) in rows(5).lengths.iter().enumerate() {
        let all = rows(5);
        let mut alone = Rows::default();
        alone.push((at..at + len).map(|i| (all.ids[i], all.types[i])));
        at += len;
        let logits = predictor.logits(0, &alone).unwrap();
        let near = logits[0].iter().zip(&together[row]).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{row}: {logits:?} {:?}", together[row]);
    }
}

#[test]
fn gates_are_kept_taken_off_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let mask = Mask::new([2, 4], vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]).unwrap();
    let mut pruned = setup();
    pruned.gates = Some(mask.clone());
    let trainer = trained(pruned, 2);
    trainer.save_checkpoint(dir.path()).unwrap();
    let load = || Predictor::load(dir.path(), &Device::Cpu).unwrap();
    let gated = load().logits(0, &rows(1)).unwrap();
    assert_eq!(gated, trainer.predictor().logits(0, &rows(1)).unwrap());
    assert_eq!(load().gates(), Some(&mask));
    let open = load().without_gates();
    assert_ne!(open.logits(0, &rows(1)).unwrap(), gated);
    assert_eq!(open.with_gates(mask).unwrap().logits(0, &rows(1)).unwrap(), gated);
    let other = Mask::new([3, 4], vec![1.0; 12]).unwrap();
    let text = load().with_gates(other).unwrap_err().to_string();
    assert!(text.contains("for 3 layers of 4 heads, the encoder has 2 layers of 4"), "{text}");
}

#[test]
fn heads_are_measured_by_each_samples_own_loss() {
    let trainer = trained(setup(), 2);
    let predictor = trainer.predictor();
    let mask = Mask::all_kept([2, 4]);
    for batch in batches(4) {
        let mut importance = Importance::new(Method::PerSample, [2, 4]);
        let measured = predictor.measure(&mut importance, &mask, &batch);
        if let Targets::Identities(_) = batch.targets {
            assert!(measured.unwrap_err().to_string().contains("one alone has no loss"));
            continue;
        }
        measured.unwrap();
        let found = importance.finish(WithinLayer::Raw, AcrossLayers::Raw).unwrap();
        assert!(found.iter().all(|x| x.is_finite()) && found.iter().any(|x| *x > 0.0), "{found:?}");
        let tokens = predictor.tokens(&batch).unwrap();
        let x_nd = predictor.forward(&tokens).unwrap();
        let sum = numbers(&predictor.sample_losses(&x_nd, &tokens, &batch).unwrap())[0];
        assert!(sum.is_finite() && sum > 0.0);
    }
    // The gradient of a gate is that of the loss: moving one gate moves the loss so much.
    let batch = &batches(4)[0];
    let tokens = predictor.tokens(batch).unwrap();
    let at = |gate: f32| {
        let mut values = vec![1.0; 8];
        values[5] = gate;
        let gates_lh = Mask::new([2, 4], values).unwrap().gates(&Device::Cpu).unwrap();
        let pass = Pass { gates: Gates::Shared(&gates_lh), ..Pass::PLAIN };
        let hidden = predictor.encoder.forward(&predictor.config, &tokens, &pass).unwrap();
        numbers(&predictor.sample_losses(hidden.last().unwrap(), &tokens, batch).unwrap())[0]
    };
    let mut importance = Importance::new(Method::PerBatch, [2, 4]);
    predictor.measure(&mut importance, &mask, batch).unwrap();
    let found = importance.finish(WithinLayer::Raw, AcrossLayers::Raw).unwrap()[5];
    let estimate = (at(1.0) - at(0.98)).abs() / 0.02 / batch.rows.len() as f64;
    assert!((found - estimate).abs() < 0.05 * estimate.max(1e-3), "{found} {estimate}");
}

#[test]
fn what_is_no_finetuned_model_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let text = || Predictor::load(dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text().contains("outputs.json"));
    let trainer = trained(setup(), 1);
    trainer.save_checkpoint(dir.path()).unwrap();
    std::fs::remove_file(dir.path().join(checkpoint::digests::DIGESTS_FILE)).unwrap();
    let index = dir.path().join(OUTPUTS_FILE);
    let written = std::fs::read_to_string(&index).unwrap();
    let with = |from: &str, to: &str| {
        assert!(written.contains(from), "{written}");
        whole::write(&index, written.replace(from, to).as_bytes()).unwrap();
        text()
    };
    assert!(with("\"version\": 3", "\"version\": 2").contains("version 2, expected 3"));
    assert!(with("\"dropout\"", "\"drop\"").contains("outputs.json"));
    assert!(with("\"classes\": 3", "\"classes\": 4").contains("one for each of 4 classes"));
    let found = with("\"name\": \"score\"", "\"name\": \"other\"");
    assert!(found.contains("missing [outputs.other.weight, outputs.other.bias]"), "{found}");
    let found = with("\"kind\": \"score\"", "\"kind\": \"any_classes\", \"classes\": 2, \"positive\": null");
    assert!(found.contains("outputs.score.weight has shape [1, 16], the model needs [2, 16]"), "{found}");
    assert!(with("{", "[").contains("line"));
    whole::write(&index, written.as_bytes()).unwrap();
    let weights = dir.path().join(OUTPUTS_WEIGHTS_FILE);
    let bytes = std::fs::read(&weights).unwrap();
    whole::write(&weights, &bytes[..bytes.len() - 5]).unwrap();
    assert!(text().contains("outputs.safetensors") && text().contains("expected a whole safetensors file"));
    std::fs::remove_file(&weights).unwrap();
    assert!(text().contains("outputs.safetensors"));
    let predictor = trainer.predictor();
    let found = predictor.task("los").unwrap_err().to_string();
    assert!(found.contains("no output for `los`, only for one, any, score, rank, pairs"), "{found}");
    assert!(predictor.logits(9, &rows(1)).unwrap_err().to_string().contains("no task number 9"));
    let mut long = Rows::default();
    long.push([(2, 0), (50, 0)]);
    let found = predictor.logits(0, &long).unwrap_err().to_string();
    assert!(found.contains("batch of one, row 0, position 1: token id is 50"), "{found}");
    let found = predictor.pooled(&rows(1), Pooling::LearnedAttn).unwrap_err().to_string();
    assert!(found.contains("pools by cls and has learned no weights"), "{found}");
}

/// A trained model's folder in which every number of a parameter is another.
fn with_numbers(dir: &Path, name: &str, number: f32) {
    let path = dir.join(checkpoint::WEIGHTS_FILE);
    let mut tensors = whole::tensors_in(&path, &whole::read(&path).unwrap(), &Device::Cpu).unwrap();
    let changed = tensors[name].ones_like().unwrap().affine(f64::from(number), 0.0).unwrap();
    tensors.insert(name.to_owned(), changed);
    whole::write_tensors(&path, tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
    let _gone = std::fs::remove_file(dir.join(checkpoint::digests::DIGESTS_FILE));
}

#[test]
fn vectors_are_pooled_by_no_pooler_that_was_only_drawn() {
    let dir = tempfile::tempdir().unwrap();
    trained(setup(), 1).save_checkpoint(dir.path()).unwrap();
    let encoder = Predictor::encoder(dir.path(), &Device::Cpu).unwrap();
    let whole = Predictor::load(dir.path(), &Device::Cpu).unwrap();
    for pooling in [Pooling::Cls, Pooling::Mean, Pooling::Max, Pooling::LearnedPooler] {
        let [own, found] = [&whole, &encoder].map(|model| model.pooled(&rows(2), pooling).unwrap());
        assert_eq!(own, found);
    }
    let path = dir.path().join(checkpoint::WEIGHTS_FILE);
    let mut tensors = whole::tensors_in(&path, &whole::read(&path).unwrap(), &Device::Cpu).unwrap();
    tensors.retain(|name, _| !name.starts_with("pooler."));
    whole::write_tensors(&path, tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
    std::fs::remove_file(dir.path().join(checkpoint::digests::DIGESTS_FILE)).unwrap();
    let lacking = Predictor::encoder(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(
        lacking.pooled(&rows(2), Pooling::Mean).unwrap(),
        encoder.pooled(&rows(2), Pooling::Mean).unwrap()
    );
    for said in
        [lacking.can_pool(Pooling::LearnedPooler), lacking.pooled(&rows(2), Pooling::LearnedPooler).map(drop)]
    {
        let text = said.unwrap_err().to_string();
        assert!(text.contains("has no pooler (it lacks pooler.dense.bias, pooler.dense.weight)"), "{text}");
    }
}

#[test]
fn silent_05_numbers_that_are_none_are_no_answers() {
    let dir = tempfile::tempdir().unwrap();
    trained(setup(), 1).save_checkpoint(dir.path()).unwrap();
    let name = "encoder.layer.1.output.dense.weight";
    for number in [f32::NAN, f32::INFINITY] {
        with_numbers(dir.path(), name, number);
        let text = Predictor::load(dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(text.contains("model.safetensors: encoder.layer.1.output.dense.weight: [0, 0] is"), "{text}");
    }
    // Finite ones with which nothing finite is computed.
    with_numbers(dir.path(), name, 1e38);
    let loaded = Predictor::load(dir.path(), &Device::Cpu).unwrap();
    let said = [
        loaded.logits(0, &rows(2)).map(|_| ()),
        loaded.hidden(&rows(2)).map(|_| ()),
        loaded.pooled(&rows(2), Pooling::Mean).map(|_| ()),
    ];
    for said in said {
        let text = said.unwrap_err().to_string();
        assert!(text.contains("of row 0") && text.contains("no answer"), "{text}");
    }
}

#[test]
fn single_tokens_are_asked_and_none_outside_of_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    trained(setup(), 2).save_checkpoint(dir.path()).unwrap();
    let loaded = Predictor::load(dir.path(), &Device::Cpu).unwrap();
    let of_tokens = |task: &crate::output::Task| task.output.is_of_tokens();
    let tags = loaded.outline().tasks.iter().position(of_tokens).unwrap();
    let whole = loaded.outline().tasks.iter().position(|task| !of_tokens(task)).unwrap();
    let rows = rows(3);
    let all = loaded.logits(tags, &rows).unwrap();
    // Of every row the first token and the last, but of the second nothing.
    let asked: Vec<Vec<usize>> = rows
        .lengths
        .iter()
        .enumerate()
        .map(|(row, len)| if row == 1 { vec![] } else { vec![0, len - 1] })
        .collect();
    let said = loaded.at(tags, &rows, &asked).unwrap();
    let starts = rows.lengths.iter().scan(0, |next, len| Some(std::mem::replace(next, *next + len)));
    let expected = starts.zip(&asked).flat_map(|(start, asked)| asked.iter().map(move |token| start + token));
    assert_eq!(said, expected.map(|token| all[token].clone()).collect::<Vec<_>>());
    assert!(loaded.at(tags, &rows, &vec![vec![]; rows.len()]).unwrap().is_empty());
    let outside = loaded.at(tags, &rows, &[vec![rows.lengths[0]]]).unwrap_err().to_string();
    assert!(outside.contains("row 0: token"), "{outside}");
    let of_rows = loaded.at(whole, &rows, &asked).unwrap_err().to_string();
    assert!(of_rows.contains("it speaks of whole rows"), "{of_rows}");
}
