//! Tests of states that are not what was written: every file of one, and every field.

use std::fs;

use super::super::patience::{Measured, Patience, Verdict};
use super::*;
use crate::checkpoint::whole::write;

fn setup_with_patience() -> Setup {
    let mut setup = setup();
    setup.train.patience = Some(Patience { every: 1, evaluations: 9 });
    setup
}

/// The files of a state, by their paths in its folder.
fn files(dir: &Path) -> Vec<String> {
    let mut files = vec![];
    for entry in fs::read_dir(dir).unwrap() {
        let (path, name) = {
            let entry = entry.unwrap();
            (entry.path(), entry.file_name().into_string().unwrap())
        };
        if path.is_dir() {
            files.extend(self::files(&path).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            files.push(name);
        }
    }
    files.sort();
    files
}

/// The state after two steps and evaluations.
fn state() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut trainer = Trainer::new(setup_with_patience(), &Device::Cpu).unwrap();
    run(&mut trainer, 1..=2);
    assert_eq!(trainer.evaluated(Measured::Loss(1.5), dir.path()).unwrap(), Verdict::Best);
    trainer.save_state(dir.path(), &serde_json::json!({ "at": 2 })).unwrap();
    dir
}

#[test]
fn silent_04_no_training_goes_on_from_a_state_with_another_byte_in_any_file() {
    let dir = state();
    let resume = || Trainer::resume(setup_with_patience(), dir.path(), &Device::Cpu);
    let files = files(dir.path());
    let expected = [
        "best-00000002/config.json",
        "best-00000002/model.safetensors",
        "best-00000002/outputs.json",
        "best-00000002/outputs.safetensors",
        "moments-00000002.safetensors",
        "parameters-00000002.safetensors",
        "state.json",
    ];
    assert!(expected.iter().all(|file| files.iter().any(|found| found == file)), "{files:?}");
    for file in &files {
        let path = dir.path().join(file);
        let whole = fs::read(&path).unwrap();
        // Every third byte of what says where training is, some of what it is made of.
        let by = if file == "state.json" { 3 } else { whole.len() / 5 + 1 };
        let mut damages: Vec<Vec<u8>> = (0..whole.len()).step_by(by).map(|at| flipped(&whole, at)).collect();
        damages.push(whole[..whole.len() * 2 / 3].to_vec());
        damages.push([&whole[..], b"{\"x\":1}\n"].concat());
        for damaged in damages {
            write(&path, &damaged).unwrap();
            let error = resume().expect_err(file).to_string();
            assert!(error.contains(file.as_str()), "{file}: {error}");
        }
        fs::remove_file(&path).unwrap();
        let error = resume().expect_err(file).to_string();
        assert!(error.contains(file.as_str()), "{file}: {error}");
        write(&path, &whole).unwrap();
    }
    let (trainer, stream) = resume().unwrap();
    assert_eq!((trainer.steps(), stream), (2, serde_json::json!({ "at": 2 })));
}

fn flipped(whole: &[u8], at: usize) -> Vec<u8> {
    let mut damaged = whole.to_vec();
    damaged[at] ^= 1 << (at % 7);
    damaged
}

#[test]
fn silent_04_no_field_of_a_state_can_be_edited() {
    let dir = state();
    let path = dir.path().join("state.json");
    let whole = fs::read_to_string(&path).unwrap();
    let edits = [
        ("\"step\": 2", "\"step\": 1"),
        ("\"missed\": {}", "\"missed\": {\"pooler.dense.bias\": 1}"),
        ("\"since\": 0", "\"since\": 8"),
        ("\"uncovered\": []", "\"uncovered\": [\"pooler.dense.bias\"]"),
        ("\"at\": 2", "\"at\": 1"),
        ("\"parameters-00000002.safetensors\"", "\"../../etc/parameters.safetensors\""),
    ];
    for (from, to) in edits {
        assert!(whole.contains(from), "{from} is not in {whole}");
        write(&path, whole.replacen(from, to, 1).as_bytes()).unwrap();
        let error = Trainer::resume(setup_with_patience(), dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(error.contains("state.json: damaged: its contents give the check"), "{from}: {error}");
        assert!(error.contains("engraft run STAGE --restart"), "{error}");
    }
}
