//! What engraft writes, read by the tools of its users: pyarrow, Hugging Face datasets and mlcroissant.
#![allow(clippy::unwrap_used, reason = "these are tests; a failed step is a failed test")]

use std::path::Path;
use std::process::Command;

use engraft_tests::{Engraft, skipped};

/// Every part has rows, so that every split of every config is read.
const PARTS: &str =
    "split.parts={ ratio = { train = 0.8, valid = 0.1, test = 0.1, seed = 1, cover = \"train\" } }";

#[test]
fn pyarrow_datasets_and_mlcroissant_read_tables_and_shards_as_they_are() {
    #[allow(clippy::disallowed_methods, reason = "tests take the interpreter from the environment")]
    let Some(python) = std::env::var_os("ENGRAFT_PYTHON") else {
        skipped("ENGRAFT_PYTHON does not name a Python with tests/python/requirements.txt");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    Engraft::small(&["run", "shards"], folder.path()).set(PARTS).ok();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/read_shards.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(folder.path())
        .env("HF_HUB_OFFLINE", "1")
        .env("HF_HOME", folder.path().join(".hf"));
    let ran = command.output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
}
