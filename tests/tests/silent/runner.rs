//! The runner: bits that rot under unchanged time stamps, folders of other configs, a damaged ledger, and a system without threads.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use engraft_tests::{Engraft, Ran, artifacts, assert_same, binary, json, skipped};
use serde_json::json;

/// Flips a bit of an artifact's file and has the memo say that it knew the file so.
fn rot(out: &Path, file: &str, at: usize) {
    let path = out.join(file);
    let mut bytes = fs::read(&path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 4;
    base::whole::write_whole(&path, &bytes).unwrap();
    let memo = out.join(".cache/digests.json");
    let mut known = json(&memo);
    let data = fs::metadata(&path).unwrap();
    known[path.to_str().unwrap()]["stamp"] = json!({
        "bytes": data.len(),
        "modified": [data.mtime(), data.mtime_nsec()],
        "changed": [data.ctime(), data.ctime_nsec()],
        "inode": data.ino(),
    });
    base::whole::write_whole(&memo, known.to_string().as_bytes()).unwrap();
}

#[test]
fn silent_07_rot_in_any_artifact_is_found_by_the_stages_that_read_it_and_by_checking() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    Engraft::small(&["run"], out).ok();
    let sound = artifacts(out);
    for (file, after) in [
        ("world/hsdn/Combined-Input.tsv", "triples"),
        ("vocabulary/vocab.txt", "shards"),
        ("encoder/model/model.safetensors", "retrain"),
    ] {
        rot(out, file, sound[file].len() / 2);
        assert_eq!(Engraft::small(&["plan", "--check"], out).output().code(), Some(3), "{file}");
        fs::remove_dir_all(out.join(after)).unwrap();
        let ran = Engraft::small(&["run"], out).output();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
        assert!(ran.text().contains(&format!("output {file} is not as it was made")), "{}", ran.text());
        assert_same(&sound, &artifacts(out), file);
    }
    rot(out, "audit/audit.json", 7);
    Engraft::small(&["run"], out).ok();
    let ran = Engraft::small(&["run", "--check"], out).output();
    assert!(ran.code() == Some(0) && ran.text().contains("audit/audit.json"), "{}", ran.text());
    assert_same(&sound, &artifacts(out), "checked");
}

/// A config of the small world with another seed.
fn own(folder: &Path) -> PathBuf {
    let path = folder.join("own.toml");
    let text = engraft_tests::DEFAULT_CONFIG.replace("[world]\nseed = 1\n", "[world]\nseed = 7\n");
    assert_ne!(text, engraft_tests::DEFAULT_CONFIG);
    base::whole::write_whole(&path, text.as_bytes()).unwrap();
    path
}

fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    for word in words {
        assert!(ran.text().contains(word), "`{word}` is missing from: {}", ran.text());
    }
}

#[test]
fn silent_08_forgetting_the_config_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let own = own(folder.path());
    let mine = |verb: &[&str]| Engraft::small(verb, &out).arg("--config").arg(&own);
    mine(&["run", "triples"]).ok();
    let before = artifacts(&out);
    for verb in [&["run", "triples"][..], &["plan"], &["status"], &["why", "triples"]] {
        let ran = Engraft::small(verb, &out).output();
        refused(&ran, &["own.toml", "the embedded config", "--replace", "--out"]);
    }
    assert_same(&before, &artifacts(&out), "after refusals");
    Engraft::small(&["verify"], &out).ok();
    refused(&Engraft::plain(&["verify", "--config", "../configs/graft.toml"], &out).output(), &["own.toml"]);
    // The same config edited, moved, and said from elsewhere is the same.
    let text = fs::read_to_string(&own).unwrap() + "\n# edited\n";
    base::whole::write_whole(&own, text.as_bytes()).unwrap();
    assert!(mine(&["run", "triples"]).output().text().contains("2 up to date"));
    let moved = folder.path().join("moved.toml");
    fs::rename(&own, &moved).unwrap();
    Engraft::small(&["run", "triples"], &out).arg("--config").arg(&moved).ok();
    assert_same(&before, &artifacts(&out), "after an edit and a move");
    Engraft::small(&["run", "triples", "--replace"], &out).ok();
    assert_ne!(before, artifacts(&out));
    refused(
        &Engraft::small(&["run"], &out).arg("--config").arg(&moved).output(),
        &["moved.toml", "leave --config out"],
    );
    // What is cleaned away cannot be replaced.
    Engraft::small(&["clean", "--yes"], &out).ok();
    Engraft::small(&["run", "triples"], &out).arg("--config").arg(&moved).ok();
    assert_same(&before, &artifacts(&out), "in a cleaned folder");
}

#[test]
fn silent_08_an_address_is_no_folder() {
    for address in ["s3://bucket/out", "https://host/out", "file:///tmp/out", "s3:/AK:SECRET@bucket"] {
        for verb in [&["run", "world"][..], &["status"]] {
            refused(
                &Engraft::small(verb, Path::new(address)).output(),
                &["--out", "expected a path on this machine"],
            );
        }
        refused(
            &Engraft::plain(&["fetch", "hsdn", "--into", address], Path::new("out")).output(),
            &["--into"],
        );
        assert!(!Path::new(address.split('/').next().unwrap()).exists());
    }
}

#[test]
fn silent_21_verify_needs_no_config_and_looks_at_the_ledger_too() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    refused(&Engraft::plain(&["verify"], &out).output(), &["nothing to verify"]);
    Engraft::small(&["run", "triples"], &out).arg("--config").arg(own(folder.path())).ok();
    let told = Engraft::plain(&["verify"], &out).ok();
    assert!(told.contains("ledger: ok (2 lines)") && told.contains("triples: ok"), "{told}");
    refused(
        &Engraft::plain(&["verify", "shards"], &out).output(),
        &["shards", "never made here", "world, triples"],
    );
    let ledger = out.join("ledger.jsonl");
    let sound = fs::read_to_string(&ledger).unwrap();
    // A digit of how long it took: the line is one still, and only its digest tells.
    let at = sound.find("\"seconds\":").unwrap() + "\"seconds\":".len();
    let digit = if &sound[at..=at] == "0" { "1" } else { "0" };
    let damaged = [&sound[..at], digit, &sound[at + 1..]].concat();
    base::whole::write_whole(&ledger, damaged.as_bytes()).unwrap();
    let ran = Engraft::plain(&["verify"], &out).output();
    assert_eq!(ran.code(), Some(3), "{}", ran.text());
    assert!(ran.text().contains("ledger.jsonl:1:") && ran.text().contains("triples: ok"), "{}", ran.text());
    base::whole::write_whole(&ledger, sound.as_bytes()).unwrap();
    for cut in [sound.len() - 1, sound.find('\n').unwrap() + 1] {
        base::whole::write_whole(&ledger, &sound.as_bytes()[..cut]).unwrap();
        let ran = Engraft::plain(&["verify"], &out).output();
        assert_eq!(ran.code(), Some(3), "{}", ran.text());
        assert!(ran.text().contains("triples: NOT IN THE LEDGER"), "{}", ran.text());
        assert_eq!(ran.text().contains("its last line does not end"), cut == sound.len() - 1);
    }
    base::whole::write_whole(&ledger, sound.as_bytes()).unwrap();
    let table = out.join("triples/triples.parquet");
    let mut bytes = fs::read(&table).unwrap();
    bytes[99] ^= 1;
    base::whole::write_whole(&table, &bytes).unwrap();
    let ran = Engraft::plain(&["verify"], &out).output();
    assert!(ran.code() == Some(3) && ran.text().contains("triples/triples.parquet"), "{}", ran.text());
}

#[test]
fn silent_21_a_plan_that_cannot_be_carried_out_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kg-bert.toml");
    for more in [&["plan"][..], &["plan", "--check"]] {
        let plan = Engraft::plain(more, &folder.path().join("out")).arg("--config").arg(&config);
        let ran = plan.arg("--data").arg(folder.path()).output();
        assert_eq!(ran.code(), Some(1), "{}", ran.text());
        assert!(ran.text().contains("cannot run"), "{}", ran.text());
    }
}

/// Runs `engraft run STAGE --jobs 1` as a user who may have `most` threads, in a folder where that user may write; nothing where that cannot
/// be had. Root may have as many as it likes, so it becomes somebody else.
fn starved(stage: &str, out: &Path, most: usize) -> Option<Output> {
    fs::set_permissions(out.parent()?, fs::Permissions::from_mode(0o777)).ok()?;
    let limit = format!("--nproc={most}:{most}");
    let is_root = Command::new("id").arg("-u").output().ok()?.stdout.trim_ascii() == b"0";
    let mut command = if is_root {
        // A number that nobody has, so that these are all its threads.
        let somebody = format!("{}", 1_000_000_000 + std::process::id());
        // A private TMPDIR keeps them out.
        let enters = Command::new("setpriv")
            .args(["--reuid", &somebody, "--clear-groups", "test", "-w"])
            .arg(out.parent()?)
            .status();
        if !enters.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &somebody, "--clear-groups", "prlimit", &limit]);
        command
    } else if most == 1 {
        let mut command = Command::new("prlimit");
        command.arg(&limit);
        command
    } else {
        return None;
    };
    command.arg(binary()).args(["run", stage, "--jobs", "1", "--set", "world.scale=0.05", "--out"]).arg(out);
    let ran = command.env_remove("ENGRAFT_KILL_AT").env("HOME", out.parent()?).output().ok()?;
    // 126 and 127: the tools are not there, or the binary cannot be read by others.
    ran.status.code().is_some_and(|code| code < 126).then_some(ran)
}

fn said(ran: &Output) -> String {
    [&ran.stdout, &ran.stderr].map(|stream| String::from_utf8_lossy(stream).into_owned()).concat()
}

#[test]
fn silent_24_too_few_threads_are_an_error_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Its own, the pool's, those of stages and of libraries that are tried out.
    let enough = 1 + 1 + 1 + std::thread::available_parallelism().unwrap().get() + 12;
    for most in [1, 2, 3] {
        let Some(ran) = starved("summary", &out, most) else {
            skipped(
                "the number of threads cannot be limited here (needs setpriv, prlimit, a TMPDIR open to all)",
            );
            return;
        };
        let text = said(&ran);
        assert_eq!(ran.status.code(), Some(2), "{most}: {text}");
        for word in ["Resource temporarily unavailable", "ulimit -u", "--jobs"] {
            assert!(text.contains(word) && !text.contains("panicked"), "{most}: {text}");
        }
        assert!(!out.exists(), "nothing was done");
    }
    let ran = starved("summary", &out, enough).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
}

/// Runs stage `world` and has the `nth` start of a thread fail; nothing where that cannot be had.
fn without_thread(nth: usize, out: &Path) -> Option<Output> {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=clone3", "-e"]);
    strace.arg(format!("inject=clone3:error=EAGAIN:when={nth}")).arg(binary());
    strace.args(["run", "world", "--jobs", "1", "--set", "world.scale=0.05", "--out"]).arg(out);
    strace.output().ok()
}

#[test]
fn silent_24_any_thread_that_cannot_be_started_is_an_error_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Those of the pool, those that are tried out, the config reader's, the display's, the page's, and at last the stage's.
    let mut done_without = 0;
    for nth in 1.. {
        let ran = without_thread(nth, &out).filter(|ran| nth > 1 || ran.status.code() != Some(0));
        let Some(ran) = ran else {
            skipped("strace is not there, or cannot inject errors here");
            return;
        };
        if ran.status.code() == Some(0) {
            // The display tells of events alone then, and the page is written at the end alone.
            done_without += 1;
            assert!(done_without <= 2, "{nth}: nobody missed the thread");
            fs::remove_dir_all(&out).unwrap();
            continue;
        }
        let text = said(&ran);
        let of_stage = text.contains("world: failed: no thread can be started for the stage");
        assert_eq!(ran.status.code(), Some(if of_stage { 1 } else { 2 }), "{nth}: {text}");
        for word in ["Resource temporarily unavailable", "ulimit -u", "--jobs"] {
            assert!(text.contains(word) && !text.contains("panicked"), "{nth}: {text}");
        }
        if of_stage {
            assert!(nth > 3, "{nth}");
            break;
        }
    }
    Engraft::plain(&["run", "world"], &out).set("world.scale=0.05").ok();
}
