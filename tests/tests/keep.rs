//! What a run replaces is kept: going back in settings restores it, a kill loses none of it, `gc` and `clean` remove it, and `clean` asks first.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use engraft_tests::{Engraft, artifacts, assert_same, below, binary, skipped};

type Files = BTreeMap<String, Vec<u8>>;

/// Runs all stages with so many epochs of training.
fn epochs(verb: &[&str], out: &Path, epochs: u32) -> Engraft {
    Engraft::small(verb, out).set(&format!("retrain.epochs={epochs}"))
}

/// The artifacts of one epoch and of two, of which the second are in place and the first are kept.
fn there_and_back(out: &Path) -> [Files; 2] {
    [1, 2].map(|n| {
        epochs(&["run"], out, n).ok();
        artifacts(out)
    })
}

#[test]
fn going_back_in_settings_restores_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let [one, two] = there_and_back(out);
    assert_ne!(one["retrain/model/model.safetensors"], two["retrain/model/model.safetensors"]);
    let status = epochs(&["status"], out, 2).ok();
    assert!(status.contains("KEPT") && status.contains("1 artifact of earlier settings kept"), "{status}");
    let plan = epochs(&["plan"], out, 1).ok();
    let row = plan.lines().find(|line| line.starts_with("retrain")).unwrap();
    assert!(row.contains("  restore  ") && row.contains("  retrain.epochs: 2 -> 1; kept, made in"), "{plan}");
    let why = epochs(&["why", "retrain"], out, 1).ok();
    assert!(why.contains("retrain will be restored") && why.contains("retrain.epochs: 2 -> 1"), "{why}");
    let ran = epochs(&["run"], out, 1).output();
    assert!(ran.text().contains("retrain: restored"), "{}", ran.text());
    assert!(ran.text().contains("1 restored, 9 up to date"), "{}", ran.text());
    assert_same(&one, &artifacts(out), "restored");
    assert!(epochs(&["run"], out, 1).output().text().contains("10 up to date"));
    assert!(epochs(&["why", "retrain"], out, 1).ok().contains("It was last restored because:"));
    epochs(&["run"], out, 2).ok();
    assert_same(&two, &artifacts(out), "and forth");
    let verified = Engraft::plain(&["verify"], out).ok();
    assert!(verified.contains("retrain (kept in .kept/retrain-"), "{verified}");
    // Another config may take the folder over, and what it replaces comes back with the first one.
    Engraft::small(&["run", "world", "--replace"], out).set("world.seed=9").ok();
    assert!(epochs(&["run"], out, 2).output().text().contains("world: restored"));
    assert_same(&two, &artifacts(out), "after a visit");
}

#[test]
fn a_killed_restoration_leaves_one_training_whole_and_loses_none() {
    for point in ["moved", "swapped", "torn-ledger", "kept"] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let [one, two] = there_and_back(out);
        let killed = epochs(&["run"], out, 1).kill_at(&format!("retrain:{point}")).output();
        assert_eq!(killed.code(), None, "{point} was not hit: {}", killed.text());
        let found = artifacts(out);
        assert!(found == one || found == two, "{point}: neither the one nor the other");
        for (n, files) in [(1, &one), (2, &two), (1, &one)] {
            let ran = epochs(&["run"], out, n).output();
            assert!(ran.code() == Some(0) && !ran.text().contains("started"), "{point}: {}", ran.text());
            assert_same(files, &artifacts(out), point);
        }
        Engraft::plain(&["verify"], out).ok();
    }
}

#[test]
fn a_damaged_kept_training_is_said_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let [one, _] = there_and_back(out);
    let kept = fs::read_dir(out.join(".kept")).unwrap().next().unwrap().unwrap().path();
    let file = kept.join("model/model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    base::whole::write_whole(&file, &bytes).unwrap();
    let verified = Engraft::plain(&["verify"], out).output();
    assert_eq!(verified.code(), Some(3), "{}", verified.text());
    assert!(verified.text().contains("will not be restored"), "{}", verified.text());
    let ran = epochs(&["run"], out, 1).output();
    let said = "retrain: started: kept output .kept/retrain-";
    assert!(ran.code() == Some(0) && ran.text().contains(said), "{}", ran.text());
    assert_same(&one, &artifacts(out), "made again");
    Engraft::plain(&["verify"], out).ok();
}

#[test]
fn what_is_kept_is_bounded_and_gc_says_what_it_removes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let seed = |verb: &[&str], seed: u32| {
        Engraft::plain(verb, out).set("world.scale=0.05").set(&format!("world.seed={seed}"))
    };
    let kept = || fs::read_dir(out.join(".kept")).into_iter().flatten().count();
    for n in 1..=5 {
        seed(&["run", "world"], n).ok();
    }
    assert_eq!(kept(), 3, "the default");
    seed(&["run", "world", "--keep", "2"], 5).ok();
    assert_eq!(kept(), 2);
    seed(&["run", "world"], 5).set("keep=1").ok();
    assert_eq!(kept(), 1);
    assert!(seed(&["run", "world"], 4).output().text().contains("world: restored"), "the last one stays");
    let told = seed(&["gc", "--all", "--dry-run"], 4).ok();
    assert!(told.contains("would remove") && told.contains(".kept/world-") && told.contains("B)"), "{told}");
    assert_eq!(kept(), 1);
    assert_eq!(seed(&["gc", "--all", "--keep", "1"], 4).output().code(), Some(2), "all, or a bound");
    let told = seed(&["gc", "--keep-bytes", "1"], 4).ok();
    assert!(told.contains("removed 1 file or folder"), "{told}");
    assert!(!out.join(".kept").exists());
    let told = seed(&["gc"], 4).ok();
    assert!(told.contains("removed 0 files and folders"), "{told}");
    // Nothing is kept where nobody wants it.
    seed(&["run", "world", "--keep", "0"], 6).ok();
    assert!(!out.join(".kept").exists());
    assert!(seed(&["run", "world"], 4).output().text().contains("world: done"));
}

#[test]
fn clean_refuses_where_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let all = || below(out, |name| !name.starts_with(".lock"));
    Engraft::plain(&["run", "world"], out).set("world.scale=0.05").ok();
    let before = all();
    for more in [&["clean"][..], &["clean", "world"], &["clean", "--json"]] {
        let ran = Engraft::plain(more, out).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        for word in ["no terminal to ask on", "--yes", "--dry-run", "nothing was removed"] {
            assert!(ran.text().contains(word), "{word} is missing from: {}", ran.text());
        }
    }
    let told = Engraft::plain(&["clean", "--dry-run"], out).ok();
    assert!(told.contains("would remove") && told.contains("/world (") && told.contains("B)"), "{told}");
    assert_same(&before, &all(), "nothing is removed unasked");
    let told = Engraft::plain(&["clean", "--yes"], out).ok();
    assert!(told.contains("removed") && artifacts(out).is_empty(), "{told}");
    // Where there is nothing to remove there is nothing to ask.
    Engraft::plain(&["clean", "world"], out).ok();
}

/// What `engraft clean` says on a terminal to `answer`, and how it ends; nothing where no terminal can be had.
fn asked(out: &Path, answer: &str) -> Option<(String, Option<i32>)> {
    let command = format!("{} clean --out {}", binary().display(), out.display());
    let typed = out.join("typed");
    base::whole::write_whole(&typed, answer.as_bytes()).ok()?;
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(fs::File::open(&typed).ok()?);
    let ran = script.output().ok()?;
    Some((String::from_utf8_lossy(&ran.stdout).into_owned(), ran.status.code()))
}

#[test]
fn clean_asks_on_a_terminal_and_anything_but_yes_is_no() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    Engraft::plain(&["run", "world"], out).set("world.scale=0.05").ok();
    let before = artifacts(&out.join("world"));
    for (answer, code) in [("n\n", Some(2)), ("\n", Some(2)), ("y\n", Some(0))] {
        let Some((said, ended)) = asked(out, answer) else {
            skipped("`script` (util-linux) is not there to make a terminal");
            return;
        };
        assert!(said.contains("would remove") && said.contains("Remove them? [y/N]"), "{said}");
        assert_eq!(ended, code, "{said}");
        assert_eq!(said.contains("nothing was removed"), answer != "y\n", "{said}");
        if answer != "y\n" {
            assert_same(&before, &artifacts(&out.join("world")), "after a no");
        }
    }
    assert!(!out.join("world").exists());
}
