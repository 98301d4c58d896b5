//! The metrics of a training run as JSON lines, one per step or per evaluation, without clock times: an interrupted and resumed run leaves the same bytes as an
//! undisturbed one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context as _, bail};
use base::whole::write_whole;
use model::checkpoint::proof::Proof;
use serde::Deserialize;
use serde_json::{Value, json};

/// A file that grows. What is added is in the file at once, so that it can be followed; on disk for good it is after [`Lines::sync`].
#[derive(Debug)]
pub(super) struct Lines {
    file: File,
    /// Over everything that was written.
    hasher: blake3::Hasher,
}

impl Lines {
    /// An empty file at `path`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn begin(path: &Path) -> anyhow::Result<Self> {
        write_whole(path, b"")?;
        Self::open(path, blake3::Hasher::new())
    }

    /// Opens the file at `path`, which begins with what `kept` was taken of; [`Lines::cut`] drops what was written after it.
    ///
    /// # Errors
    /// When it does not, or the disk refuses.
    pub(super) fn resume(path: &Path, kept: &Proof) -> anyhow::Result<Self> {
        let there = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("{}: it is missing", path.display()),
            there => there.with_context(|| path.display().to_string())?,
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(there.take(kept.bytes)).with_context(|| path.display().to_string())?;
        if let Some(problem) = kept.differs(&Proof::so_far(&hasher)) {
            bail!("{}: up to the state's step, {problem}", path.display());
        }
        Self::open(path, hasher)
    }

    /// Drops what was written after the lines that it was opened with.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn cut(&self) -> anyhow::Result<()> {
        Ok(self.file.set_len(self.hasher.count())?)
    }

    fn open(path: &Path, hasher: blake3::Hasher) -> anyhow::Result<Self> {
        let file = OpenOptions::new().append(true).open(path).with_context(|| path.display().to_string())?;
        Ok(Self { file, hasher })
    }

    /// Adds a line, or whatever else is whole by itself.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn append(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.hasher.update(bytes);
        Ok(self.file.write_all(bytes)?)
    }

    /// Makes sure that all lines so far are on disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn sync(&mut self) -> anyhow::Result<()> {
        Ok(self.file.sync_all()?)
    }

    /// Of all lines so far.
    pub(super) fn proof(&self) -> Proof {
        Proof::so_far(&self.hasher)
    }

    /// What tells the file from one that took its name.
    ///
    /// # Errors
    /// When the system does not say.
    pub(super) fn id(&self) -> std::io::Result<(u64, u64)> {
        self.file.metadata().map(|data| (data.dev(), data.ino()))
    }
}

#[derive(Deserialize)]
struct Step {
    epoch: u64,
    loss: f64,
    tokens: u64,
    tasks: BTreeMap<String, Task>,
}

#[derive(Deserialize)]
struct Task {
    loss: f64,
    /// Where one class is asked for.
    accuracy: Option<f64>,
    targets: u64,
}

/// A task's loss and accuracy, each times targets, and targets.
#[derive(Default)]
struct Sums {
    loss: f64,
    accuracy: Option<f64>,
    targets: f64,
}

/// What one epoch's steps add up to.
#[derive(Default)]
struct Epoch {
    steps: u64,
    loss: f64,
    tokens: u64,
    tasks: BTreeMap<String, Sums>,
}

/// The lines of a file of steps.
fn steps(path: &Path) -> anyhow::Result<Vec<Step>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let step = |(number, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("{}: line {}", path.display(), number + 1))
    };
    text.lines().enumerate().map(step).collect()
}

/// How many steps had no loss of a task: in their batches nothing was left to learn of it.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn without_loss(path: &Path, task: &str) -> anyhow::Result<usize> {
    let is_without = |step: &&Step| step.tasks.get(task).is_some_and(|task| task.loss == 0.0);
    Ok(steps(path)?.iter().filter(is_without).count())
}

/// One row per epoch: mean loss, and per task the mean loss and, where it has one, accuracy over its targets.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn by_epoch(path: &Path) -> anyhow::Result<Vec<Value>> {
    let mut epochs: BTreeMap<u64, Epoch> = BTreeMap::new();
    for step in steps(path)? {
        let epoch = epochs.entry(step.epoch).or_default();
        epoch.steps += 1;
        epoch.loss += step.loss;
        epoch.tokens += step.tokens;
        for (name, task) in step.tasks {
            let sums = epoch.tasks.entry(name).or_default();
            let targets = task.targets as f64;
            sums.loss += task.loss * targets;
            sums.targets += targets;
            if let Some(accuracy) = task.accuracy {
                *sums.accuracy.get_or_insert_default() += accuracy * targets;
            }
        }
    }
    Ok(epochs.into_iter().map(|(number, epoch)| epoch.row(number)).collect())
}

impl Epoch {
    fn row(self, number: u64) -> Value {
        let round = |x: f64| (x * 1e4).round() / 1e4;
        let loss = round(self.loss / self.steps.max(1) as f64);
        let mut row = json!({"epoch": number + 1, "steps": self.steps, "tokens": self.tokens, "loss": loss});
        if let Some(row) = row.as_object_mut() {
            for (name, Sums { loss, accuracy, targets }) in self.tasks {
                row.insert(format!("{name}_loss"), round(loss / targets.max(1.0)).into());
                if let Some(accuracy) = accuracy {
                    row.insert(format!("{name}_accuracy"), round(accuracy / targets.max(1.0)).into());
                }
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(step: u64) -> Vec<u8> {
        let line = json!({"step": step, "epoch": 0, "loss": step, "tokens": 10,
                          "tasks": {"relation": {"loss": step, "accuracy": 0.5, "targets": 4}}});
        format!("{line}\n").into_bytes()
    }

    #[test]
    fn silent_04_a_resumed_file_begins_with_the_lines_of_the_state_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut lines = Lines::begin(&path).unwrap();
        lines.append(&line(1)).unwrap();
        lines.append(&line(2)).unwrap();
        lines.sync().unwrap();
        let (kept, two) = (lines.proof(), std::fs::read_to_string(&path).unwrap());
        lines.append(&line(3)).unwrap();
        drop(lines);
        // What a kill leaves: whole lines after the state, a part of one, or none of them.
        let three = std::fs::read_to_string(&path).unwrap();
        for left in [three.clone(), three + "{\"st", two.clone() + "\0\0\0", two.clone()] {
            write_whole(&path, left.as_bytes()).unwrap();
            let mut lines = Lines::resume(&path, &kept).unwrap();
            lines.cut().unwrap();
            assert_eq!((std::fs::read_to_string(&path).unwrap(), lines.proof()), (two.clone(), kept.clone()));
            // It goes on as if nothing had been.
            lines.append(&line(3)).unwrap();
            lines.sync().unwrap();
            assert_eq!(lines.proof(), Proof::of_file(&path).unwrap());
        }
        let refused = |left: &str| {
            write_whole(&path, left.as_bytes()).unwrap();
            Lines::resume(&path, &kept).unwrap_err().to_string()
        };
        let edited = refused(&two.replacen("\"loss\":1", "\"loss\":9", 1));
        assert!(edited.contains("metrics.jsonl: up to the state's step, its contents are not"), "{edited}");
        let cut = refused(&two[..two.len() - 5]);
        assert!(cut.contains(&format!("it has {} bytes, but {} were", two.len() - 5, two.len())), "{cut}");
        std::fs::remove_file(&path).unwrap();
        assert!(
            Lines::resume(&path, &kept).unwrap_err().to_string().ends_with("metrics.jsonl: it is missing")
        );
    }

    #[test]
    fn the_lines_of_steps_add_up_to_a_row_for_each_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut lines = Lines::begin(&path).unwrap();
        lines.append(&line(1)).unwrap();
        lines.append(&line(2)).unwrap();
        lines.sync().unwrap();
        let epochs = by_epoch(&path).unwrap();
        assert_eq!(epochs.len(), 1);
        assert_eq!((&epochs[0]["loss"], &epochs[0]["relation_accuracy"]), (&json!(1.5), &json!(0.5)));
    }
}
