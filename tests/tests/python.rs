//! Python's door: the package `engraft` in NumPy's and PyTorch's hands.
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use base::whole::write_whole;
use batch::Batch;
use engraft_tests::Engraft;
use engraft_tests::python::{interpreter, python_package};
use kg::split::Part;
use tasks::shard::index::Index;
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::{Config, Shards, Worker};
use tasks::stream::window::Ahead;

/// Runs a script over shards of the world with an interpreter that a variable names.
fn run(variable: &str, script: &str, arguments: &dyn Fn(&Path) -> Vec<OsString>) {
    let Some(python) = interpreter(variable) else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    Engraft::small(&["run", "shards"], &out).ok();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python);
    command.arg("-W").arg("ignore").arg(script).arg(&out).args(arguments(&out));
    command.env("PYTHONPATH", python_package(&folder.path().join("package"))).env("OMP_NUM_THREADS", "1");
    succeeds(&mut command);
}

/// Runs a command that must end well.
fn succeeds(command: &mut Command) {
    let ran = command.output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

/// The input ids of the first steps, by task, as `tests/python/stream.py` asks for them.
fn first_steps(out: &Path) -> serde_json::Value {
    let config = Config {
        part: Part::Train,
        seed: 3,
        schedule: Schedule::Kimera,
        batching: Batching::Items(48),
        shuffle: Shuffle::Window(4),
        fill: Fill::One,
        ahead: Ahead { windows: 0, threads: 1 },
    };
    let folder = out.join("shards");
    let index = Index::read(&folder).unwrap();
    let mut stream = Stream::new(&Shards::in_folder(&folder, &index), &config, Worker::ONLY).unwrap();
    let ids = |batch: &Batch| {
        let rows: Vec<&[u32]> = batch.input_ids.chunks(batch.width).collect();
        (batch.task.name().to_owned(), serde_json::json!(rows))
    };
    let step = |batches: Vec<Batch>| batches.iter().map(ids).collect::<serde_json::Map<_, _>>();
    (0..5).map(|_| step(stream.next_step().unwrap())).map(serde_json::Value::Object).collect()
}

#[test]
fn streams_of_arrays_keep_the_promises_of_the_trainers_own() {
    run("ENGRAFT_PYTHON", "stream.py", &|out| {
        let expected = out.join("../expected.json");
        write_whole(&expected, first_steps(out).to_string().as_bytes()).unwrap();
        vec![expected.into()]
    });
}

#[test]
fn kernels_over_arrow_say_what_plain_python_says_whatever_the_chunks() {
    let config = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(name);
    run("ENGRAFT_PYTHON", "arrow_kernels.py", &|out| {
        let maps = out.join("../maps");
        let run = Engraft::plain(&["run", "maps"], &maps).arg("--config").arg(config("world-maps.toml"));
        run.set("world.scale=0.2").ok();
        vec![config("default.toml").into(), maps.into(), config("parts/world-corpus.toml").into()]
    });
}

#[test]
fn mentions_triples_and_texts_are_tables_of_one_query_of_duckdb() {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (out, at) = (folder.path().join("out"), |name: &str| folder.path().join(name));
    Engraft::small(&["run", "shards"], &out).ok();
    let (package, root) = (python_package(&at("package")), Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let run = |script: &str, arguments: &[&OsStr]| {
        let mut command = Command::new(&python);
        succeeds(command.arg(root.join(script)).args(arguments).env("PYTHONPATH", &package));
    };
    let (texts, found, triples) = (at("texts.parquet"), at("found.parquet"), out.join("triples"));
    let compare = "tests/python/examples.py";
    run(compare, &["texts".as_ref(), out.as_ref(), texts.as_ref()]);
    run("python/examples/duckdb_tables.py", &[texts.as_ref(), triples.as_ref(), found.as_ref()]);
    run(compare, &["duckdb".as_ref(), out.as_ref(), texts.as_ref(), found.as_ref()]);
}

#[test]
fn folders_of_tokenizers_open_in_transformers_and_split_as_engraft_does() {
    run("ENGRAFT_TORCH", "auto_tokenizer.py", &|_| vec![]);
}

#[test]
fn a_distributed_training_is_killed_and_goes_on_with_other_processes() {
    run("ENGRAFT_TORCH", "ddp.py", &|_| vec![]);
}

#[test]
fn loaders_of_pytorch_lose_and_repeat_nothing() {
    run("ENGRAFT_TORCH", "torch_stream.py", &|_| vec![]);
}

#[test]
fn the_tables_of_the_docs_on_scale_are_those_that_the_script_computes() {
    let Some(python) = interpreter("ENGRAFT_PYTHON") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(python);
    succeeds(command.arg(root.join("benches/scale.py")).arg("--check").arg(root.join("docs/scale.md")));
}
