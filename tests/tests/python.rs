//! Python's door: the package `engraft` in NumPy's and PyTorch's hands.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use base::whole::write_whole;
use batch::Batch;
use engraft_tests::Engraft;
use engraft_tests::python::{interpreter, python_package};
use engraft_tests::s3::S3;
use kg::split::{Part, View, read};
use kg::table::Graph;
use tasks::shard::index::Index;
use tasks::stream::Stream;
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::redraw::{Fresh, Redraw};
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::{Config, Shards, Worker};
use tasks::stream::window::Ahead;
use tasks::token::encode::{Case, Vocabulary};
use tasks::token::folder::find;
use tasks::token::rule::Rule;

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

/// The order of Rust's own stream for settings of many kinds, as `tests/python/stream.py` asks for it: the settings, and the input ids of the first steps of two
/// epochs, by task; negatives are drawn anew for each.
fn first_steps(out: &Path) -> serde_json::Value {
    let folder = out.join("shards");
    let index = Index::read(&folder).unwrap();
    let redraw = Some(redraw(out, &index));
    let shards = Shards { redraw, ..Shards::in_folder(&folder, &index) };
    let config = Config {
        part: Part::Train,
        seed: 3,
        schedule: Schedule::Kimera,
        batching: Batching::Items(48),
        shuffle: Shuffle::Window(4),
        fill: Fill::One,
        ahead: Ahead { windows: 0, threads: 1 },
    };
    let merged = Config { schedule: Schedule::Merged, ..config };
    let bucketed = Batching::Bucketed { items: 48, pool: 5 };
    let tokens = Batching::Tokens { tokens: 900, pool: 4096 };
    let all = [
        (serde_json::json!({}), config),
        (serde_json::json!({"schedule": "merged"}), merged),
        (
            serde_json::json!({"schedule": {"temperature": 2.0}, "window": null}),
            Config { schedule: Schedule::Temperature(2.0), shuffle: Shuffle::None, ..config },
        ),
        (serde_json::json!({"pool": 5}), Config { batching: bucketed, ..config }),
        (serde_json::json!({"items": null, "tokens": 900}), Config { batching: tokens, ..config }),
        (serde_json::json!({"pack": 96}), Config { fill: Fill::Packed(96), ..config }),
    ];
    let ids = |batch: &Batch| {
        let rows: Vec<&[u32]> = batch.input_ids.chunks(batch.width).collect();
        (batch.task.name().to_owned(), serde_json::json!(rows))
    };
    let step = |batches: Vec<Batch>| batches.iter().map(ids).collect::<serde_json::Map<_, _>>();
    let steps = |(how, config): (serde_json::Value, Config)| {
        let mut stream = Stream::new(&shards, &config, Worker::ONLY).unwrap();
        let mut epoch = |number: u64| -> Vec<serde_json::Value> {
            stream.seek(number).unwrap();
            (0..5).map(|_| step(stream.next_step().unwrap()).into()).collect()
        };
        serde_json::json!({"how": how, "epochs": [epoch(0), epoch(1)]})
    };
    all.into_iter().map(steps).collect()
}

/// What draws negatives for an epoch, of the graph that the shards were made of.
fn redraw(out: &Path, index: &Index) -> Arc<dyn Redraw> {
    let graph = Graph::read(&out.join("triples")).unwrap();
    let parts = read::read(&out.join("split"), &View::of(&graph)).unwrap().part;
    let vocabulary = find(&out.join("shards/tokenizer")).unwrap();
    let vocabulary = Vocabulary::load(&vocabulary, Rule::from(Case::Uncased)).unwrap();
    Arc::new(Fresh::new(index, &graph, &parts, &vocabulary).unwrap())
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
fn a_bucket_gives_the_batches_of_the_folder() {
    let (Some(python), Some(s3)) = (interpreter("ENGRAFT_PYTHON"), S3::of_environment().unwrap()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    Engraft::small(&["run", "shards"], &out).ok();
    assert!(s3.put("/bucket", &[]).unwrap().contains("200"));
    for (path, bytes) in engraft_tests::artifacts(&out.join("shards")) {
        assert!(s3.put(&format!("/bucket/shards/{path}"), &bytes).unwrap().contains("200"), "{path}");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/bucket.py");
    let mut command = Command::new(python);
    command.arg(script).arg(out.join("shards")).arg("s3://bucket/shards").arg(folder.path().join("cache"));
    command.env("PYTHONPATH", python_package(&folder.path().join("package")));
    command.env("AWS_ENDPOINT_URL", s3.url()).env("AWS_REGION", "us-east-1");
    succeeds(command.env("AWS_ACCESS_KEY_ID", "testing").env("AWS_SECRET_ACCESS_KEY", "testing"));
}

#[test]
fn folders_of_tokenizers_open_in_transformers_and_split_as_engraft_does() {
    run("ENGRAFT_TORCH", "auto_tokenizer.py", &|_| vec![]);
}

#[test]
fn a_training_of_transformers_trainer_that_was_interrupted_ends_the_same() {
    let Some(python) = interpreter("ENGRAFT_TORCH") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    Engraft::small(&["run", "shards"], &at("out")).ok();
    let package = python_package(&at("package"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/examples/trainer.py");
    let trained = |into: &str, more: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-W", "ignore"]).arg(&example).arg(at("out/shards")).arg(at(into));
        command.args(["--steps", "6", "--every", "2"]).args(more);
        succeeds(command.env("PYTHONPATH", &package).env("OMP_NUM_THREADS", "1"));
        fs::read(at(into).join("model/model.safetensors")).ok()
    };
    assert_eq!(trained("resumed", &["--until", "3"]), None);
    let whole = trained("whole", &[]);
    assert!(whole.is_some() && trained("resumed", &[]) == whole);
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
