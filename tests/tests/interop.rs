//! What engraft writes, read by the tools of its users: pyarrow, Hugging Face datasets and mlcroissant.
use std::path::Path;
use std::process::Command;

use engraft_tests::{Engraft, skipped};

/// Every part has rows, so that every split of every config is read.
const PARTS: &str =
    "split.parts={ ratio = { train = 0.8, valid = 0.1, test = 0.1, seed = 1, cover = \"train\" } }";

/// A script of `python/`, over an output folder; skipped where no Python is named.
fn python(script: &str, out: &Path) {
    #[allow(clippy::disallowed_methods, reason = "tests take the interpreter from the environment")]
    let Some(python) = std::env::var_os("ENGRAFT_PYTHON") else {
        skipped("ENGRAFT_PYTHON does not name a Python with tests/python/requirements.txt");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python);
    command.arg(script).arg(out).env("HF_HUB_OFFLINE", "1").env("HF_HOME", out.join(".hf"));
    let ran = command.output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn pyarrow_datasets_and_mlcroissant_read_tables_and_shards_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).set(PARTS).ok();
    python("read_shards.py", folder.path());
}

#[test]
fn they_read_maps_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
    let run = Engraft::plain(&["run", "maps"], folder.path()).arg("--config").arg(config);
    run.set("world.scale=0.3").ok();
    python("read_maps.py", folder.path());
}
