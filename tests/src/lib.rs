//! Runs the `engraft` binary as a user would, for the tests of the whole.

pub mod golden;
pub mod python;
pub mod s3;
pub mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The embedded default config with every setting stated.
pub const DEFAULT_CONFIG: &str = include_str!("../fixtures/default.toml");

/// Settings that make the embedded world and the training on it small enough to run dozens of times.
pub const SMALL: [&str; 11] = [
    "world.scale=0.1",
    "vocabulary.train.size=500",
    "shards.size={ rows = 700 }",
    "shards.items_per_group=50",
    "retrain.epochs=1",
    "retrain.stream.batching={ items = 512 }",
    "retrain.checkpoint_every=2",
    // Of two steps.
    "retrain.warmup_steps=1",
    "encoder.hidden_size=16",
    "encoder.intermediate_size=32",
    "encoder.num_hidden_layers=1",
];

/// What makes `configs/graft.toml` small enough to run in seconds.
const GRAFT: [&str; 18] = [
    "world.scale=1.0",
    "vocabulary.train.size=600",
    "shards.items_per_group=50",
    "encoder.hidden_size=16",
    "encoder.intermediate_size=32",
    "encoder.num_hidden_layers=2",
    "encoder.num_attention_heads=4",
    "pretrain.max_steps=8",
    "pretrain.checkpoint_every=2",
    "pretrain.stream.batching={ items = 64 }",
    "retrain.max_steps=9",
    "finetune.epochs=2",
    "finetune.batch=8",
    "finetune.settings_of.capr.epochs=2",
    "finetune.max_tokens=48",
    "finetune.checkpoint_every=3",
    "finetune.max_examples={ train = 40, dev = 33, mask_search = 63, test = 60 }",
    "finetune.ranking={ loss = \"softmax\", negatives = 3, wording = \"aspect\" }",
];

/// The stages of the embedded pipeline in data-flow order.
pub const STAGES: [&str; 10] =
    ["world", "triples", "split", "vocabulary", "summary", "report", "shards", "audit", "encoder", "retrain"];

/// The binary built together with these tests.
///
/// # Panics
/// When it is not there: `cargo test --workspace` builds it, `cargo test -p engraft-tests` alone does not.
#[must_use]
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().ok();
    let folder = test.as_deref().and_then(Path::parent).and_then(Path::parent);
    let binary = folder.map(|folder| folder.join("engraft")).unwrap_or_default();
    assert!(binary.exists(), "{} is not built: run `cargo test --workspace`", binary.display());
    binary
}

/// A run of the binary in the making.
#[derive(Debug)]
pub struct Engraft(Command);

impl Engraft {
    /// `engraft VERB` with its output folder at `out`, without any setting.
    #[must_use]
    pub fn plain(verb: &[&str], out: &Path) -> Self {
        let mut command = Command::new(binary());
        command.args(verb).arg("--out").arg(out);
        command.env_remove("ENGRAFT_KILL_AT").env_remove("WORLD_SIZE").env("NO_COLOR", "1");
        Self(command)
    }

    /// `engraft VERB` with a config beside its data.
    #[must_use]
    pub fn own(verb: &[&str], config: &Path, out: &Path) -> Self {
        let run = Self::plain(verb, out).arg("--config").arg(config);
        config.parent().into_iter().fold(run, |run, data| run.arg("--data").arg(data))
    }

    /// `engraft export` of a model to a form, into a folder that is not there yet.
    #[must_use]
    pub fn export(model: &Path, form: &str, into: &Path) -> Self {
        let run = Self::plain(&["export"], &into.with_extension("out")).arg(model);
        run.arg("--to").arg(form).arg("--into").arg(into)
    }

    /// `engraft VERB` with [`SMALL`].
    #[must_use]
    pub fn small(verb: &[&str], out: &Path) -> Self {
        SMALL.iter().fold(Self::plain(verb, out), |engraft, set| engraft.set(set))
    }

    /// `engraft SUBCOMMAND` with `configs/graft.toml`, made small.
    #[must_use]
    pub fn graft(subcommand: &[&str], out: &Path) -> Self {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/graft.toml");
        let engraft = Self::plain(subcommand, out).arg("--config").arg(config);
        GRAFT.iter().fold(engraft, |engraft, set| engraft.set(set))
    }

    /// In this working folder.
    #[must_use]
    pub fn inside(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// With one more `--set`.
    #[must_use]
    pub fn set(self, set: &str) -> Self {
        self.arg("--set").arg(set)
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.arg(arg);
        self
    }

    /// With a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// With a file as standard input.
    ///
    /// # Panics
    /// When it cannot be opened.
    #[must_use]
    pub fn fed(mut self, file: &Path) -> Self {
        match fs::File::open(file) {
            Ok(file) => {
                self.0.stdin(file);
                self
            }
            Err(error) => unreachable_start(&error),
        }
    }

    /// The same, started by another program, whose last arguments are this one's.
    #[must_use]
    pub fn under(self, program: &std::ffi::OsStr, arguments: &[&Path]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).arg(self.0.get_program()).args(self.0.get_args());
        for (name, value) in self.0.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self(command)
    }

    /// Dying by SIGKILL at `point`, as `STAGE:POINT`.
    #[must_use]
    pub fn kill_at(mut self, point: &str) -> Self {
        self.0.env("ENGRAFT_KILL_AT", point);
        self
    }

    /// Runs it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn output(mut self) -> Ran {
        match self.0.output() {
            Ok(output) => Ran(output),
            Err(error) => unreachable_start(&error),
        }
    }

    /// Starts it and goes on.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(mut self) -> Running {
        match self.0.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => Running(child),
            Err(error) => unreachable_start(&error),
        }
    }

    /// Runs it and expects success; returns what it printed on standard output.
    ///
    /// # Panics
    /// When it fails.
    pub fn ok(self) -> String {
        let ran = self.output();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
        String::from_utf8_lossy(&ran.0.stdout).into_owned()
    }
}

#[allow(clippy::panic, reason = "a test that cannot start the binary has failed")]
pub(crate) fn unreachable_start(error: &std::io::Error) -> ! {
    panic!("the binary does not start: {error}")
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Waits until a line on standard error has a text; what comes behind is not kept.
    ///
    /// # Panics
    /// When it ends without having said so.
    #[must_use]
    pub fn once_it_says(mut self, text: &str) -> Self {
        let Some(stderr) = self.0.stderr.take() else { return self };
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(text)), "it ended without {text:?}");
        // A full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        self
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it cannot be waited for.
    #[must_use]
    pub fn wait(self) -> Ran {
        match self.0.wait_with_output() {
            Ok(output) => Ran(output),
            Err(error) => unreachable_start(&error),
        }
    }

    /// Sends it SIGINT, as Ctrl-C does, and waits for its end.
    ///
    /// # Panics
    /// When it cannot be waited for.
    #[must_use]
    pub fn interrupt(self) -> Ran {
        let sent = Command::new("kill").arg("-INT").arg(self.0.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal cannot be sent");
        match self.0.wait_with_output() {
            Ok(output) => Ran(output),
            Err(error) => unreachable_start(&error),
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran(Output);

impl Ran {
    /// The exit status; `None` when a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    /// Both streams.
    #[must_use]
    pub fn text(&self) -> String {
        [&self.0.stdout, &self.0.stderr].map(|s| String::from_utf8_lossy(s).into_owned()).concat()
    }
}

/// A JSON file that a run left.
///
/// # Panics
/// When it cannot be read.
#[must_use]
#[allow(clippy::panic, reason = "a test that cannot read what it looks at has failed")]
pub fn json(path: impl AsRef<Path>) -> serde_json::Value {
    let path = path.as_ref();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values of a file of JSON lines.
///
/// # Panics
/// When it cannot be read.
#[must_use]
#[allow(clippy::panic, reason = "a test that cannot read what it looks at has failed")]
pub fn json_lines(path: impl AsRef<Path>) -> Vec<serde_json::Value> {
    let path = path.as_ref();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read =
        |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(read).collect()
}

/// Every file below `folder` by relative path, without the runner's own (`.work`, `.cache`, the ledger).
///
/// # Panics
/// When a file cannot be read.
#[must_use]
pub fn artifacts(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    // The page about the folder is none.
    below(folder, |name| !name.starts_with('.') && !name.starts_with("ledger") && name != "index.html")
}

/// Every file below `folder` by relative path, of those whose paths, and whose folders' paths, are wanted. Links are none.
///
/// # Panics
/// When a file cannot be read.
#[must_use]
pub fn below(folder: &Path, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            if !wanted(&name) || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let read = fs::read(&path);
                assert!(read.is_ok(), "{name} cannot be read");
                found.insert(name, read.unwrap_or_default());
            }
        }
    }
    found
}

/// The relative paths of all files below `folder`, while others write there: what vanishes is none.
#[must_use]
pub fn names_below(folder: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap_or(&path).display().to_string());
            }
        }
    }
    found
}

/// Fails unless both folders hold the same files with the same bytes; names the first that differs.
///
/// # Panics
/// When they differ.
pub fn assert_same(left: &BTreeMap<String, Vec<u8>>, right: &BTreeMap<String, Vec<u8>>, when: &str) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(left), names(right), "{when}: the files differ");
    for (name, bytes) in left {
        assert!(right.get(name) == Some(bytes), "{when}: {name} differs");
    }
}

/// Says that a test did not run because of what is not there.
#[allow(clippy::print_stdout, reason = "a skipped test must say so")]
pub fn skipped(why: &str) {
    println!("skipped: {why}");
}
