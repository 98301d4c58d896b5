//! Stage `submission`: what the best model of each row says of GLUE's test files, which have no labels, as the leaderboard takes it: `ROW/RTE.tsv` and so on,
//! `index` and `prediction` between tabs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::{Answer, Example, Examples, Kind, Part};
use downstream::set::PublishedSet as _;
use downstream::set::glue::{Task, Unlabelled};
use model::predict::Predictor;
use serde_json::{Value, json};

use super::benchmark::set::UNLABELLED;
use super::encoder::MODEL;
use super::finetune::measure::best;
use super::finetune::{Tried, answers};
use super::graft::best::Candidates;
use super::maps::benchmark::Of;
use crate::bundle::task_file::{self, TaskFile};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

/// The stage.
#[derive(Debug)]
pub(crate) struct Submission {
    /// What is handed in.
    pub of: Vec<HandedIn>,
}

/// A task's predictions by the models of one row.
#[derive(Debug, Clone)]
pub(crate) struct HandedIn {
    /// What the row is called.
    pub row: String,
    /// The task of GLUE.
    pub task: Task,
    /// How its texts are read.
    pub tried: Tried,
    /// The fine-tunings, of which the best on the part `dev` is asked.
    pub candidates: Candidates,
}

impl HandedIn {
    /// Writes a file for each of the task's test files; facts about each.
    fn write(&self, context: &Context) -> anyhow::Result<Vec<Value>> {
        let best = self.candidates.best(context)?;
        let folder = best.folder.join(MODEL);
        let file = TaskFile::read(&folder)?;
        let asked = file.tasks.first().with_context(|| format!("{}: it has no task", folder.display()))?;
        let predictor = Predictor::load(&folder, &self.tried.compute.device(context)?)?;
        let mut facts = vec![];
        let mut before = 0;
        for (name, path) in files(context.artifact(&self.tried.stage())?)? {
            context.check()?;
            let rows = rows(&path)?;
            let of = Of::Unlabelled { before };
            before += rows.len();
            let benchmark = self.tried.of_examples(self.examples(&rows, asked), of, context)?;
            let outputs = answers::outputs(&predictor, 0, benchmark.as_ref(), Part::Test, context)?;
            anyhow::ensure!(
                outputs.len() == rows.len(),
                "{}: there is not a row for each line",
                path.display()
            );
            let mut said = "index\tprediction\n".to_owned();
            for (row, output) in rows.iter().zip(&outputs) {
                // Writing into a text cannot fail.
                _ = writeln!(said, "{}\t{}", row.index, self.prediction(output, &asked.classes)?);
            }
            let out = context.out().join(&self.row);
            std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
            write_whole(&out.join(format!("{name}.tsv")), said.as_bytes())?;
            context.progress().add_rows(rows.len() as u64);
            facts.push(json!({
                "row": self.row, "file": format!("{name}.tsv"), "predictions": rows.len(),
                "model": best.stage, "dev": best.scores.dev.value, "metric": best.scores.dev.metric,
            }));
        }
        Ok(facts)
    }

    /// The rows as examples, whose answers nobody looks at.
    fn examples(&self, rows: &[Unlabelled], asked: &task_file::Task) -> Examples {
        let kind = self.task.kind();
        let answer = if kind == Kind::Score { Answer::Score(0.0) } else { Answer::Class(0) };
        let example = |row: &Unlabelled| Example {
            id: row.index.clone(),
            part: Part::Test,
            text: row.text.clone(),
            pair: row.pair.clone(),
            answer: answer.clone(),
        };
        Examples {
            name: self.tried.name.clone(),
            kind,
            classes: asked.classes.clone(),
            measure: self.task.measure(),
            negative_class: None,
            examples: rows.iter().map(example).collect(),
        }
    }

    /// As the leaderboard takes it: a class by its mark, a score from 0 to 5.
    fn prediction(&self, output: &[f32], classes: &[String]) -> anyhow::Result<String> {
        if let ([score], true) = (output, self.task.kind() == Kind::Score) {
            return Ok(format!("{:.3}", score.clamp(0.0, 5.0)));
        }
        let class = classes.get(best(output)).context("an output without a class")?;
        let mark = self.task.mark(class);
        Ok(mark.with_context(|| format!("{} has no class {class:?}", self.task.name()))?.to_owned())
    }
}

/// All rows without labels in the artifact of a benchmark, file by file, each called by the file that is handed in and its index; none where it has no such
/// files.
///
/// # Errors
/// When one cannot be read.
pub(super) fn unlabelled(benchmark: &Path) -> anyhow::Result<Vec<(String, Unlabelled)>> {
    let mut all = vec![];
    if benchmark.join(UNLABELLED).is_dir() {
        for (name, path) in files(benchmark)? {
            all.extend(rows(&path)?.into_iter().map(|row| (format!("{name}/{}", row.index), row)));
        }
    }
    Ok(all)
}

/// The files of rows without labels, by the names that their predictions get.
fn files(benchmark: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let folder = benchmark.join(UNLABELLED);
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    Ok(paths.into_iter().filter_map(|path| Some((name(&path)?, path))).collect())
}

fn rows(path: &Path) -> anyhow::Result<Vec<Unlabelled>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().with_context(|| path.display().to_string())
}

impl Stage for Submission {
    fn name(&self) -> &'static str {
        "submission"
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        for HandedIn { row, task, tried, .. } in &self.of {
            let path = format!("submission.{row}.{}", tried.name);
            to.field(&path, task.name().into());
            describe::under(to, &path, |to| tried.describe(to));
        }
    }

    fn computes_on(&self) -> Option<String> {
        self.of.first().map(|of| of.tried.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs: Vec<Input> = vec![];
        for of in &self.of {
            for input in of.tried.inputs().into_iter().chain(of.candidates.inputs()) {
                if !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
        }
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let files = self.of.iter().map(|of| of.write(context)).collect::<anyhow::Result<Vec<_>>>()?;
        context.record("files", files.concat());
        Ok(())
    }
}
