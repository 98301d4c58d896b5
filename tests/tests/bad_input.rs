//! Bad input through the binary: each a clear message with file, line and remedy; nothing earlier is lost.
use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, Ran, artifacts, assert_same};

/// A world on disk, to be damaged, and a config that reads it as outside data.
struct Outside {
    folder: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Engraft::small(&["run", "world"], &folder.path().join("made")).ok();
        fs::rename(folder.path().join("made/world"), folder.path().join("data")).unwrap();
        let config = engraft_tests::DEFAULT_CONFIG
            .replace("world:", "")
            .replace("[world]\nseed = 1\nscale = 1.0\n", "");
        assert!(!config.contains("[world]"));
        base::whole::write_whole(&folder.path().join("own.toml"), config.as_bytes()).unwrap();
        Self { folder }
    }

    fn run(&self) -> Ran {
        let engraft = Engraft::plain(&["run", "shards"], &self.folder.path().join("out"));
        let small = engraft.set("vocabulary.train.size=500").set("shards.size={ rows = 700 }");
        let (config, data) = (self.folder.path().join("own.toml"), self.folder.path().join("data"));
        small.arg("--config").arg(config).arg("--data").arg(data).output()
    }

    /// Runs on good data, then on `damage`d data, and expects the failure to name everything in `expected` and to leave
    /// the good artifacts alone.
    fn refuses(file: &str, damage: impl FnOnce(Vec<u8>) -> Vec<u8>, expected: &[&str]) {
        let outside = Self::new();
        let good = outside.run();
        assert_eq!(good.code(), Some(0), "{}", good.text());
        let before = artifacts(&outside.folder.path().join("out"));
        let path = outside.folder.path().join("data").join(file);
        let damaged = damage(fs::read(&path).unwrap());
        base::whole::write_whole(&path, &damaged).unwrap();
        let bad = outside.run();
        let text = bad.text();
        assert_eq!(bad.code(), Some(1), "{text}");
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        for word in expected.iter().chain([&name]) {
            assert!(text.contains(word), "`{word}` is missing from: {text}");
        }
        assert!(!text.contains("panicked"), "{text}");
        assert_same(&before, &artifacts(&outside.folder.path().join("out")), "after a failed run");
    }
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
}

#[test]
fn an_rrf_line_that_is_cut_off() {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 20].to_vec();
    Outside::refuses("umls/META/MRREL.RRF", cut, &["line"]);
}

#[test]
fn an_rrf_line_with_a_column_too_few() {
    let damage = |bytes: Vec<u8>| {
        let mut lines = lines(&bytes);
        let column = lines[41].iter().position(|&b| b == b'|').unwrap();
        lines[41].remove(column);
        lines.concat()
    };
    Outside::refuses("umls/META/MRREL.RRF", damage, &["line 42", "columns"]);
}

#[test]
fn a_table_row_with_a_column_too_many() {
    let damage = |bytes: Vec<u8>| {
        let mut lines = lines(&bytes);
        lines[6].insert(0, b'\t');
        lines.concat()
    };
    Outside::refuses("hsdn/Combined-Input.tsv", damage, &["line 7", "columns", "expected 4"]);
}

#[test]
fn bytes_that_are_no_utf8() {
    let damage = |bytes: Vec<u8>| {
        let mut lines = lines(&bytes);
        lines[9][3] = 0xff;
        lines.concat()
    };
    Outside::refuses("hsdn/Combined-Input.tsv", damage, &["line 10", "UTF-8"]);
}

#[test]
fn a_missing_file_is_named() {
    let outside = Outside::new();
    fs::remove_file(outside.folder.path().join("data/rotmensch/DerivedKnowledgeGraph_final.csv")).unwrap();
    let ran = outside.run();
    assert_ne!(ran.code(), Some(0));
    assert!(ran.text().contains("DerivedKnowledgeGraph_final.csv"), "{}", ran.text());
    assert!(!ran.text().contains("panicked"), "{}", ran.text());
}

#[test]
fn an_unknown_config_key_or_stage_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ran = Engraft::plain(&["run"], &out).set("shards.sede=3").output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("sede") && ran.text().contains("seed"), "{}", ran.text());
    let ran = Engraft::plain(&["run", "shrads"], &out).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("shards"), "{}", ran.text());
    let ran = Engraft::plain(&["run"], &out).arg("--config").arg(folder.path().join("none.toml")).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("none.toml"), "{}", ran.text());
    assert!(!out.join("world").exists());
}

#[test]
fn outside_data_without_a_folder_says_how_to_give_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/open.toml");
    let ran = Engraft::plain(&["run"], folder.path()).arg("--config").arg(config).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.text());
    assert!(ran.text().contains("--data DIR"), "{}", ran.text());
}

#[test]
fn a_damaged_shard_is_found_named_and_built_again_before_anybody_trains_on_it() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).ok();
    let good = artifacts(folder.path());
    let name = good.keys().find(|name| name.starts_with("shards/subject/")).unwrap().clone();
    decay(&folder.path().join(&name), good[&name].len() / 3);
    let file = Path::new(&name).file_name().unwrap().to_str().unwrap();

    let ran = Engraft::small(&["verify"], folder.path()).output();
    assert_eq!(ran.code(), Some(3), "{}", ran.text());
    assert!(ran.text().contains(file), "{}", ran.text());

    let why = Engraft::small(&["why", "shards"], folder.path()).ok();
    assert!(why.contains(file), "{why}");
    Engraft::small(&["run"], folder.path()).ok();
    Engraft::small(&["verify"], folder.path()).ok();
    assert_eq!(artifacts(folder.path())[&name], good[&name], "the shard is as it was");
}

/// Flips a bit as a failing disk would: the file's size, place and times stay.
fn decay(path: &Path, at: usize) {
    use std::os::unix::fs::FileExt;
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at as u64).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|ran| ran.status.success()) {
        engraft_tests::skipped("a small disk cannot be mounted here (needs root)");
        return;
    }
    let _unmount = Unmount(disk.clone());
    let out = disk.join("out");
    Engraft::small(&["run", "shards"], &out).set("world.scale=0.05").ok();
    let before = artifacts(&out);
    let ran = Engraft::small(&["run", "shards"], &out).set("world.scale=3").output();
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    let text = ran.text();
    assert!(text.to_lowercase().contains("space") && !text.contains("panicked"), "{text}");
    assert_same(&before, &artifacts(&out), "after the disk was full");
    Engraft::small(&["run", "shards"], &out).set("world.scale=0.05").ok();
}

/// Unmounts the small disk whatever comes of the test.
struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}
