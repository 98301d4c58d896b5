//! Tests of evaluations on held-out samples: the best one is kept, and belongs to the state.

use super::*;
use crate::checkpoint::whole;
use crate::train::patience::{Best, Measured, Patience, Verdict};

#[test]
fn the_best_score_is_kept_until_patience_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let (best, state) = (dir.path().join("best"), dir.path().join("state"));
    let mut setup = setup();
    setup.train.patience = Some(Patience { every: 2, evaluations: 2 });
    let mut trainer = Trainer::new(setup.clone(), &Device::Cpu).unwrap();
    assert!(!trainer.evaluation_is_due());
    let (mut verdicts, mut kept) = (vec![], vec![]);
    for (step, score) in (1..).zip([0.5, 0.7, 0.7, 0.9, 0.2, 0.9]) {
        run(&mut trainer, step..=step);
        assert_eq!(trainer.evaluation_is_due(), step % 2 == 0);
        let verdict = trainer.evaluated(Measured::Score(score), &state).unwrap();
        if verdict == Verdict::Best {
            kept = trainer.predictor().logits(0, &rows(9)).unwrap();
        }
        verdicts.push(verdict);
        trainer.save_state(&state, &Value::Null).unwrap();
        trainer = Trainer::resume(setup.clone(), &state, &Device::Cpu).unwrap().0;
    }
    use Verdict::{Best as B, Stop, Worse as W};
    assert_eq!(verdicts, [B, B, W, B, W, Stop]);
    assert_eq!(trainer.best(), Some(Best { step: 4, measured: Measured::Score(0.9) }));
    trainer.save_best(&state, &best).unwrap();
    let stored = Predictor::load(&best, &Device::Cpu).unwrap();
    assert_eq!(stored.logits(0, &rows(9)).unwrap(), kept);
    let text = trainer.evaluated(Measured::Score(f64::NAN), &state).unwrap_err().to_string();
    assert!(text.contains("step 6: the score on held-out samples is NaN"), "{text}");
    assert_eq!(trainer.best(), Some(Best { step: 4, measured: Measured::Score(0.9) }));
}

#[test]
fn the_best_checkpoint_is_that_of_its_step_though_training_goes_on_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (best, state) = (dir.path().join("best"), dir.path().join("state"));
    let mut trainer = trained(setup(), 1);
    let at_once = trainer.predictor().logits(0, &rows(9)).unwrap();
    trainer.evaluated(Measured::Score(0.5), &state).unwrap();
    run(&mut trainer, 2..=4);
    assert_ne!(trainer.predictor().logits(0, &rows(9)).unwrap(), at_once);
    trainer.save_best(&state, &best).unwrap();
    assert_eq!(Predictor::load(&best, &Device::Cpu).unwrap().logits(0, &rows(9)).unwrap(), at_once);
}

#[test]
fn a_best_checkpoint_that_could_not_be_written_is_told_to_all_who_need_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = trained(setup(), 1);
    // A file stands where the folder would be.
    let state = dir.path().join("state");
    whole::write(&state, b"").unwrap();
    assert_eq!(trainer.evaluated(Measured::Score(0.5), &state).unwrap(), Verdict::Best);
    let told = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("state/best-00000001"), "{text}");
    };
    told(trainer.save_best(&state, &dir.path().join("best")).unwrap_err());
    told(trainer.save_state(&dir.path().join("other"), &Value::Null).unwrap_err());
    told(trainer.evaluated(Measured::Score(0.9), &state).unwrap_err());
    // It never was.
    assert_eq!(trainer.best(), Some(Best { step: 1, measured: Measured::Score(0.5) }));
}

#[test]
fn silent_04_a_best_look_that_a_kill_took_back_leaves_that_of_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let (best, state) = (dir.path().join("best"), dir.path().join("state"));
    let mut trainer = trained(setup(), 1);
    trainer.evaluated(Measured::Score(0.5), &state).unwrap();
    let kept = trainer.predictor().logits(0, &rows(9)).unwrap();
    trainer.save_state(&state, &Value::Null).unwrap();
    run(&mut trainer, 2..=2);
    assert_eq!(trainer.evaluated(Measured::Score(0.9), &state).unwrap(), Verdict::Best);
    drop(trainer);
    // The steps that are made again may show something else: another evaluation may be the best.
    let mut resumed = Trainer::resume(setup(), &state, &Device::Cpu).unwrap().0;
    assert_eq!(resumed.best(), Some(Best { step: 1, measured: Measured::Score(0.5) }));
    resumed.save_best(&state, &best).unwrap();
    assert_eq!(Predictor::load(&best, &Device::Cpu).unwrap().logits(0, &rows(9)).unwrap(), kept);
    run(&mut resumed, 2..=2);
    resumed.evaluated(Measured::Score(0.1), &state).unwrap();
    resumed.save_state(&state, &Value::Null).unwrap();
    // What nothing speaks of is gone.
    let names = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let expected =
        ["best-00000001", "moments-00000002.safetensors", "parameters-00000002.safetensors", "state.json"];
    assert_eq!(names, expected);
}
