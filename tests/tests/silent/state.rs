//! What an interrupted training left: resumed exactly as it was written, refused with the name of what differs, or begun anew when told.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::whole::write_whole;
use engraft_tests::{Engraft, SMALL, artifacts, assert_same, below, json, names_below};
use serde_json::json;

/// A training of eight steps with an evaluation after each and a state after every second.
const TRAINING: [&str; 3] = [
    "split.parts={ ratio = { train = 0.8, valid = 0.2, test = 0.0, seed = 1, cover = \"train\" } }",
    "retrain.epochs=4",
    "retrain.patience={ every = 1, evaluations = 50, batches = 1 }",
];

/// What makes `configs/graft.toml` one fine-tuning that may stop early.
const GRAFT: [&str; 3] = [
    "graft.rows=[\"base\"]",
    "finetune.seeds=[1]",
    "finetune.patience={ evals_per_epoch = 5, evaluations = 50 }",
];

fn training(verb: &[&str], out: &Path) -> Engraft {
    TRAINING.iter().fold(Engraft::small(verb, out), |engraft, set| engraft.set(set))
}

fn graft(verb: &[&str], out: &Path) -> Engraft {
    GRAFT.iter().fold(Engraft::graft(verb, out), |engraft, set| engraft.set(set))
}

/// A copy of an output folder, the runner's own files included.
fn copy(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in below(from, |_| true) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_whole(&path, &bytes).unwrap();
    }
    folder
}

/// The work folder of the only training that was interrupted.
fn work(out: &Path) -> PathBuf {
    let works: Vec<_> = fs::read_dir(out.join(".work")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(works.len(), 1, "{works:?}");
    works[0].clone()
}

/// What is in that folder, without what a kill cut off: the best checkpoint is written while training goes on.
fn whole(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = below(&work(out), |_| true);
    files.retain(|file, _| !file.rsplit('/').next().is_some_and(|name| name.starts_with(".tmp")));
    files
}

/// The first file below `folder` whose path has all of these parts.
fn find(folder: &Path, parts: &[&str]) -> PathBuf {
    let files = below(folder, |_| true);
    let mut found = files.keys().filter(|file| parts.iter().all(|part| file.contains(part)));
    folder.join(found.next().unwrap())
}

/// Runs a subcommand with what a training is tried with.
type Run<'a> = &'a dyn Fn(&[&str], &Path) -> Engraft;

/// What is done to a file.
enum Damage {
    Flip,
    Cut,
    Gone,
    Edit(&'static str, &'static str),
}

impl Damage {
    fn befall(&self, path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        match self {
            Damage::Flip => *bytes.iter_mut().rev().nth(3).unwrap() ^= 1,
            Damage::Cut => bytes.truncate(bytes.len() / 3),
            Damage::Gone => return fs::remove_file(path).unwrap(),
            Damage::Edit(from, to) => {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains(from), "{from} is not in {text}");
                bytes = text.replacen(from, to, 1).into_bytes();
            }
        }
        write_whole(path, &bytes).unwrap();
    }
}

/// Each damage to a copy of `killed` is refused with the name of the file and the way out, which then gives the bytes of `reference`.
fn refuses(
    (killed, reference): (&Path, &Path),
    (stage, run): (&str, Run<'_>),
    damages: &[(&[&str], Damage)],
) {
    for (number, (parts, damage)) in damages.iter().enumerate() {
        let folder = copy(killed);
        let path = find(&work(folder.path()), parts);
        damage.befall(&path);
        let (left, name) = (whole(folder.path()), path.file_name().unwrap().to_string_lossy());
        let ran = run(&["run", stage], folder.path()).output();
        assert_eq!(ran.code(), Some(1), "{number} {parts:?}: {}", ran.text());
        assert!(ran.text().contains(name.as_ref()), "{number} {parts:?}: {}", ran.text());
        assert!(ran.text().contains(&format!("engraft run {stage} --restart")), "{}", ran.text());
        // What is left stays as it is until somebody has decided.
        assert!(whole(folder.path()) == left, "{number} {parts:?}");
        if number == 0 {
            run(&["run", stage, "--restart"], folder.path()).ok();
            assert_same(&artifacts(reference), &artifacts(folder.path()), "begun anew");
        }
    }
    // As it was written, it is resumed.
    let folder = copy(killed);
    run(&["run", stage], folder.path()).ok();
    assert_same(&artifacts(reference), &artifacts(folder.path()), "resumed");
}

/// An output folder in which `stage` was killed, and one in which it was not, with the same inputs.
fn killed_at(stage: &str, point: &str, run: Run<'_>) -> (tempfile::TempDir, tempfile::TempDir) {
    let killed = tempfile::tempdir().unwrap();
    let ran = run(&["run", stage], killed.path()).kill_at(&format!("{stage}:{point}")).output();
    assert_eq!(ran.code(), None, "{}", ran.text());
    let reference = copy(killed.path());
    fs::remove_dir_all(reference.path().join(".work")).unwrap();
    run(&["run", stage], reference.path()).ok();
    (killed, reference)
}

#[test]
fn silent_04_a_damaged_state_of_a_training_is_named_and_begun_anew_only_when_told() {
    use Damage::{Cut, Edit, Flip, Gone};
    let (killed, reference) = killed_at("retrain", "working:12", &training);
    let state = json(work(killed.path()).join("state/state.json"));
    assert!(state["step"].as_u64().unwrap() >= 4 && state["watch"]["best"].is_object(), "{state}");
    let damages: [(&[&str], Damage); 10] = [
        (&["metrics.jsonl"], Edit("\"loss\":", "\"loss\":9")),
        (&["metrics.jsonl"], Cut),
        (&["metrics.jsonl"], Gone),
        (&["held_out.jsonl"], Edit("\"verdict\":\"best\"", "\"verdict\":\"worse\"")),
        (&["held_out.jsonl"], Gone),
        (&["state/state.json"], Edit("\"since\": ", "\"since\": 1")),
        (&["state/state.json"], Gone),
        (&["state/moments"], Flip),
        (&["state/best", "model.safetensors"], Flip),
        (&["state/best", "outputs.json"], Gone),
    ];
    refuses((killed.path(), reference.path()), ("retrain", &training), &damages);
}

#[test]
fn silent_04_a_damaged_training_that_has_ended_is_named() {
    use Damage::{Edit, Flip, Gone};
    let (killed, reference) = killed_at("retrain", "written", &training);
    let damages: [(&[&str], Damage); 6] = [
        (&["model/model.safetensors"], Flip),
        (&["training.json"], Edit("\"steps\": ", "\"steps\": 1")),
        (&["metrics.jsonl"], Gone),
        (&["sealed.json"], Edit("\"bytes\": ", "\"bytes\": 1")),
        (&["sealed.json"], Gone),
        (&["frozen.json"], Edit("{", "{ ")),
    ];
    refuses((killed.path(), reference.path()), ("retrain", &training), &damages);
}

#[test]
fn silent_04_a_damaged_state_of_a_pretraining_or_fine_tuning_is_named() {
    use Damage::{Edit, Flip, Gone};
    let (killed, reference) = killed_at("pretrain", "working:12", &graft);
    let damages: [(&[&str], Damage); 2] =
        [(&["metrics.jsonl"], Edit("\"loss\":", "\"loss\":9")), (&["state/parameters"], Flip)];
    refuses((killed.path(), reference.path()), ("pretrain", &graft), &damages);
    let stage = "finetune-base-capr-1";
    let (killed, reference) = killed_at(stage, "working:40", &graft);
    let damages: [(&[&str], Damage); 4] = [
        (&["dev.jsonl"], Edit("\"score\":", "\"score\":9")),
        (&["metrics.jsonl"], Gone),
        (&["state/state.json"], Edit("\"score\": ", "\"score\": 9")),
        (&["state/best", "model.safetensors"], Flip),
    ];
    refuses((killed.path(), reference.path()), (stage, &graft), &damages);
}

/// Runs `retrain` in this process; `tick` is called between steps. Gives what it failed with.
fn retrain(out: &Path, tick: impl Fn() + Send + Sync + 'static) -> String {
    let sets: Vec<String> = SMALL.iter().chain(&TRAINING).map(|set| (*set).to_owned()).collect();
    engraft::in_process::run("retrain", &sets, out, tick).unwrap().unwrap()
}

#[test]
fn silent_24_a_work_folder_removed_during_a_training_ends_it_and_the_next_run_begins_anew() {
    let [reference, folder, elsewhere] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    training(&["run", "retrain"], reference.path()).ok();
    let (out, removed) = (folder.path().to_owned(), Arc::new(AtomicBool::new(false)));
    let (works, once) = (out.join(".work"), Arc::clone(&removed));
    let away = elsewhere.path().join("work");
    let error = retrain(&out, move || {
        let states = names_below(&works);
        if states.iter().any(|file| file.ends_with("state/state.json")) && !once.swap(true, Ordering::SeqCst)
        {
            // At once: the best checkpoint may be written into it at this moment.
            fs::rename(&works, &away).unwrap();
        }
    });
    assert!(removed.load(Ordering::SeqCst));
    assert!(error.contains("the work folder was removed while training ran"), "{error}");
    assert!(error.contains("the next run begins this training anew"), "{error}");
    training(&["run", "retrain"], &out).ok();
    assert_same(&artifacts(reference.path()), &artifacts(&out), "begun anew");
}

#[test]
fn silent_24_a_file_removed_during_a_training_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let works = folder.path().join(".work");
    let error = retrain(folder.path(), move || {
        let files = names_below(&works);
        if let Some(file) = files.iter().find(|file| file.ends_with("metrics.jsonl"))
            && files.iter().any(|file| file.ends_with("state/state.json"))
        {
            fs::remove_file(works.join(file)).unwrap();
        }
    });
    assert!(error.contains("metrics.jsonl: removed or replaced while training wrote it"), "{error}");
    let ran = training(&["run", "retrain"], folder.path()).output();
    assert!(ran.code() == Some(1) && ran.text().contains("metrics.jsonl: it is missing"), "{}", ran.text());
    training(&["run", "retrain", "--restart"], folder.path()).ok();
    assert_eq!(json(folder.path().join("retrain/training.json"))["stop"], json!("all_epochs"));
}
