//! The metrics of a training run as JSON lines, one per step or per look, without clock times: an interrupted and resumed run leaves the
//! same bytes as an undisturbed one. Knows no tensor.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use kg::whole::write_whole;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A file of lines with a `step` each that grows.
#[derive(Debug)]
pub(super) struct Lines {
    file: BufWriter<File>,
}

/// The step of a line.
#[derive(Deserialize)]
struct Stepped {
    step: u64,
}

impl Lines {
    /// Opens the file at `path` and drops what was written after step `kept`: those steps are made again.
    ///
    /// # Errors
    /// When the file cannot be read or written, or holds something else.
    pub(super) fn open(path: &Path, kept: u64) -> anyhow::Result<Self> {
        let old = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let mut lines = Vec::new();
        for line in old.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Stepped { step } = serde_json::from_str(line)
                .with_context(|| format!("{}: line {}", path.display(), lines.len() + 1))?;
            if step > kept {
                break;
            }
            lines.push(line);
        }
        write_whole(path, lines.concat().as_bytes())?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self { file: BufWriter::new(file) })
    }

    /// As [`Lines::open`], of a file that has a line for every step.
    ///
    /// # Errors
    /// As [`Lines::open`], and when one of the steps up to `kept` has none.
    pub(super) fn open_all(path: &Path, kept: u64) -> anyhow::Result<Self> {
        let opened = Self::open(path, kept)?;
        let found = std::fs::read_to_string(path)?.lines().count();
        anyhow::ensure!(
            u64::try_from(found)? == kept,
            "{}: only {found} of {kept} steps are recorded; remove the stage's work folder (`engraft clean STAGE`) to start anew",
            path.display(),
        );
        Ok(opened)
    }

    /// Adds the line of one step.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn push(&mut self, record: &impl Serialize) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.file, record)?;
        Ok(self.file.write_all(b"\n")?)
    }

    /// Makes sure that all lines so far are on disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn sync(&mut self) -> anyhow::Result<()> {
        self.file.flush()?;
        Ok(self.file.get_ref().sync_all()?)
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
    accuracy: f64,
    targets: u64,
}

/// What one epoch's steps add up to.
#[derive(Default)]
struct Epoch {
    steps: u64,
    loss: f64,
    tokens: u64,
    /// Loss and accuracy, each times targets, and targets.
    tasks: BTreeMap<String, [f64; 3]>,
}

/// One row per epoch: mean loss, and per task the mean loss and accuracy over its targets.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn by_epoch(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let mut epochs: BTreeMap<u64, Epoch> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let step: Step =
            serde_json::from_str(line).with_context(|| format!("{}: line {}", path.display(), number + 1))?;
        let epoch = epochs.entry(step.epoch).or_default();
        epoch.steps += 1;
        epoch.loss += step.loss;
        epoch.tokens += step.tokens;
        for (name, task) in step.tasks {
            let sums = epoch.tasks.entry(name).or_default();
            let targets = task.targets as f64;
            for (sum, value) in sums.iter_mut().zip([task.loss * targets, task.accuracy * targets, targets]) {
                *sum += value;
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
            for (name, [loss, accuracy, targets]) in self.tasks {
                row.insert(format!("{name}_loss"), round(loss / targets.max(1.0)).into());
                row.insert(format!("{name}_accuracy"), round(accuracy / targets.max(1.0)).into());
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_file_forgets_what_came_after_the_state_and_refuses_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let line = |step: u64| {
            json!({"step": step, "epoch": 0, "loss": step, "tokens": 10,
                   "tasks": {"relation": {"loss": step, "accuracy": 0.5, "targets": 4}}})
            .to_string()
                + "\n"
        };
        write_whole(&path, (line(1) + &line(2) + &line(3) + "{\"st").as_bytes()).unwrap();
        Lines::open_all(&path, 2).unwrap().sync().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line(1) + &line(2));
        let epochs = by_epoch(&path).unwrap();
        assert_eq!(epochs.len(), 1);
        assert_eq!((&epochs[0]["loss"], &epochs[0]["relation_accuracy"]), (&json!(1.5), &json!(0.5)));
        let error = Lines::open_all(&path, 3).unwrap_err().to_string();
        assert!(error.contains("only 2 of 3 steps"), "{error}");
    }
}
