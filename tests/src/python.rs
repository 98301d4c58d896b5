//! Python's side: scripts over what engraft wrote, transformers and ONNX Runtime beside `engraft predict`, the package `engraft` as a wheel has it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Engraft, binary, skipped, unreachable_start};

/// The interpreter that a variable names; without it a test says that it skips.
#[must_use]
pub fn interpreter(variable: &str) -> Option<OsString> {
    #[allow(clippy::disallowed_methods, reason = "tests take the interpreter from the environment")]
    let python = std::env::var_os(variable);
    if python.is_none() {
        skipped(&format!(
            "{variable} does not name a Python with tests/python/requirements.txt (ENGRAFT_TORCH: requirements-torch.txt)"
        ));
    }
    python
}

/// A script of `python/`, over an output folder; skipped where no Python is named.
///
/// # Panics
/// When the script fails.
pub fn python(script: &str, out: &Path) {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python);
    command.arg(script).arg(out).env("HF_HUB_OFFLINE", "1").env("HF_HOME", out.join(".hf"));
    let ran = match command.output() {
        Ok(ran) => ran,
        Err(error) => unreachable_start(&error),
    };
    let text = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// Asks `transformers`, and ONNX Runtime with what is exported of it, with a fine-tuned folder what `engraft predict` was asked, the lines of `asked`, and compares; skipped where `ENGRAFT_TORCH` names
/// no Python.
///
/// # Panics
/// When an answer differs.
pub fn at_home(model: &Path, asked: &Path, said: &str) {
    let Some(python) = interpreter("ENGRAFT_TORCH") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/at_home.py");
    let answers = asked.with_extension("said");
    if let Err(error) = base::whole::write_whole(&answers, said.as_bytes()) {
        unreachable_start(&error);
    }
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => unreachable_start(&error),
    };
    let onnx = folder.path().join("onnx");
    Engraft::export(model, "onnx", &onnx).ok();
    match Command::new(python).arg(script).arg(model).arg(asked).arg(&answers).arg(&onnx).output() {
        Ok(ran) => {
            let text = [ran.stdout, ran.stderr].concat();
            assert!(ran.status.success(), "{}: {}", model.display(), String::from_utf8_lossy(&text));
        }
        Err(error) => unreachable_start(&error),
    }
}

/// The package of Python as a wheel has it: Python's files, and the library that cargo has built for the tests.
///
/// # Panics
/// When it cannot be put together.
#[must_use]
pub fn python_package(folder: &Path) -> PathBuf {
    let package = folder.join("engraft");
    let of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/engraft");
    let built = std::env::current_exe().unwrap_or_default().with_file_name("lib_engraft.so");
    let copied = fs::create_dir_all(&package)
        .and_then(|()| {
            fs::read_dir(of)?.map(|file| file.map(|file| file.path())).collect::<std::io::Result<Vec<_>>>()
        })
        .and_then(|files| {
            let files = files.into_iter().filter(|file| file.is_file());
            let names = files.map(|file| (package.join(file.file_name().unwrap_or_default()), file));
            names
                .chain([(package.join("_engraft.abi3.so"), built)])
                .try_for_each(|(to, from)| fs::copy(from, to).map(drop))
        });
    assert!(copied.is_ok(), "{}: {copied:?}", folder.display());
    folder.to_owned()
}

/// Asks the package of Python with a fine-tuned folder what `engraft predict` was asked; skipped where `ENGRAFT_PYTHON` names no Python.
///
/// # Panics
/// When an answer differs.
pub fn loaded(model: &Path, asked: &Path, said: &[serde_json::Value]) {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let answers = asked.with_extension("answers");
    let said: Vec<_> = said.iter().map(ToString::to_string).collect();
    let written = base::whole::write_whole(&answers, said.join("\n").as_bytes());
    let folder = tempfile::tempdir();
    let (Ok(()), Ok(folder)) = (written, folder) else {
        return assert!(answers.exists(), "the disk refuses");
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/loaded.py");
    let mut command = Command::new(python);
    command.arg(script).arg(model).arg(asked).arg(&answers).env("ENGRAFT_BIN", binary());
    command.env("PYTHONPATH", python_package(folder.path()));
    match command.output() {
        Ok(ran) => {
            let text = [ran.stdout, ran.stderr].concat();
            assert!(ran.status.success(), "{}: {}", model.display(), String::from_utf8_lossy(&text));
        }
        Err(error) => unreachable_start(&error),
    }
}
