//! Stage `scores`: what an encoder, fine-tuned on each benchmark, came to, with intervals over seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::token_classes::is_default;
use model::eval::interval::across_seeds;
use model::predict::Parameters;
use serde::{Deserialize, Serialize};

use super::finetune::quirks::ChosenOn;
use super::finetune::{Scores, scores, together};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use ::report::FEWEST_SEEDS;
use ::report::number::thousands;

/// All scores, within the artifact.
pub(crate) const SCORES: &str = "scores.json";
/// The same as a table to be read.
pub(crate) const TABLE: &str = "scores.md";
/// Share of intervals that hold the mean over all seeds.
pub(crate) const LEVEL: f64 = 0.95;

#[derive(Debug)]
pub(crate) struct Table {
    /// What is compared on which benchmark.
    pub of: Vec<Compared>,
}

/// One row of the table: an encoder on a benchmark.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    /// How it was fine-tuned: `alone`, a recipe's name, or a recipe's name and `then`.
    pub how: String,
    pub benchmark: String,
    /// What the models began with: the stage, or the checkpoint, each once.
    pub began_with: Vec<String>,
    /// The stages of the fine-tunings, one for each seed.
    pub stages: Vec<String>,
    /// Whether those stages had other benchmarks too.
    pub whose: Whose,
}

/// Whose scores an artifact has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of one benchmark.
    One,
    /// Those of all benchmarks of a recipe.
    Several,
}

/// What came of a benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) benchmark: String,
    pub(crate) how: String,
    /// What the models began with.
    pub(crate) began_with: Vec<String>,
    pub(crate) metric: String,
    /// Examples, or pieces of them, that were trained on, and the examples of the part `test`.
    pub(crate) train: usize,
    pub(crate) test: usize,
    /// How many numbers the model has where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<Parameters>,
    /// The mean of the seeds' scores.
    pub(crate) mean: f64,
    /// The best of them.
    pub(crate) best: f64,
    /// Where the mean over all seeds lies; none of one seed.
    pub(crate) interval: Option<[f64; 2]>,
    /// Whether models were chosen by their scores on the part `test` itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) chosen_on: ChosenOn,
    /// The seeds' scores.
    pub(crate) seeds: Vec<f64>,
    /// The seeds that these are of, in their order; artifacts of version 5 do not say.
    #[serde(default)]
    pub(crate) seed_numbers: Vec<u64>,
    /// Means of the other metrics.
    pub(crate) others: BTreeMap<String, f64>,
}

impl Line {
    fn new(Compared { how, benchmark, began_with, .. }: &Compared, all: &[Scores]) -> anyhow::Result<Self> {
        let test = |of: &Scores| of.test.clone().context("a fine-tuning without scores of the part `test`");
        let tests = all.iter().map(test).collect::<anyhow::Result<Vec<_>>>()?;
        let (Some(first), Some(one)) = (tests.first(), all.first()) else {
            anyhow::bail!("{benchmark}: there is no fine-tuning")
        };
        let seeds: Vec<f64> = tests.iter().map(|score| score.value).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let others = first.others.keys().map(|name| {
            let values: Vec<f64> = tests.iter().filter_map(|score| score.others.get(name).copied()).collect();
            (name.clone(), mean(&values))
        });
        let interval = match seeds.len() {
            1 => None,
            _ => {
                let over = across_seeds(&seeds, LEVEL)?;
                Some([over.low, over.high])
            }
        };
        Ok(Self {
            benchmark: benchmark.to_owned(),
            how: how.to_owned(),
            began_with: began_with.clone(),
            metric: first.metric.clone(),
            train: one.train,
            test: first.samples,
            parameters: one.parameters,
            mean: mean(&seeds),
            best: seeds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            chosen_on: one.chosen_on,
            interval,
            others: others.collect(),
            seeds,
            seed_numbers: all.iter().map(|of| of.seed).collect(),
        })
    }
}

/// How many parameters there are, and what of them an attention brings.
fn told(Parameters { encoder, attention, outputs }: Parameters) -> String {
    let all = thousands((encoder + attention + outputs) as u64);
    match attention {
        0 => all,
        _ => format!("{all}, of which attention brings {}", thousands(attention as u64)),
    }
}

/// Scores as a table in Markdown, in hundredths.
fn table(lines: &[Line]) -> String {
    let mut text = "| benchmark | fine-tuned | began with | train | test | metric | mean [95 % over seeds] | best | seeds | others | parameters |\n|---|---|---|--:|--:|---|--:|--:|---|---|---|\n".to_owned();
    for line in lines {
        let Line { benchmark, how, metric, train, test, mean, .. } = line;
        let best = if line.chosen_on == ChosenOn::Test { ", best of the looks at test" } else { "" };
        let percent = |value: &f64| format!("{:.1}", 100.0 * value);
        let interval = line
            .interval
            .filter(|_| line.seeds.len() >= FEWEST_SEEDS)
            .map_or_else(String::new, |[low, high]| format!(" [{}, {}]", percent(&low), percent(&high)));
        let seeds = line.seeds.iter().map(percent).collect::<Vec<_>>().join(", ");
        let others = line.others.iter().map(|(name, value)| format!("{name} {value:.3}"));
        let others = others.collect::<Vec<_>>().join(", ");
        // Writing into a text cannot fail.
        _ = writeln!(
            text,
            "| {benchmark} | {how}{best} | {} | {train} | {test} | {metric} | {}{interval} | {} | {seeds} | {others} | {} |",
            line.began_with.join(", "),
            percent(mean),
            percent(&line.best),
            line.parameters.map_or_else(String::new, told)
        );
    }
    text
}

impl Stage for Table {
    fn name(&self) -> &str {
        "scores"
    }

    // The table of a config, whichever stage makes it: `results` where there is `[graft]`.
    fn also_called(&self) -> Option<&str> {
        Some("results")
    }

    fn version(&self) -> u32 {
        6
    }

    fn describe(&self, to: &mut dyn Describe) {
        for Compared { how, benchmark, stages, began_with, .. } in &self.of {
            to.field(&format!("scores.{benchmark}.{how}"), stages.join(", ").into());
            to.field(&format!("scores.{benchmark}.{how}.began_with"), began_with.join(", ").into());
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let stages: BTreeSet<&String> = self.of.iter().flat_map(|of| &of.stages).collect();
        stages.into_iter().map(Input::artifact).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let mut lines = vec![];
        for of in &self.of {
            let Compared { benchmark, stages, whose, .. } = of;
            let read = |stage: &String| {
                let folder = context.artifact(stage)?;
                match whose {
                    Whose::One => scores(folder),
                    Whose::Several => together::scores(folder, benchmark),
                }
            };
            let all = stages.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
            lines.push(Line::new(of, &all)?);
        }
        let table = table(&lines);
        write_whole(&context.out().join(TABLE), table.as_bytes())?;
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&lines)?)?;
        context.record("scores", serde_json::to_value(&lines)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::finetune::benchmark::Score;
    use crate::stage::finetune::config::Settings;

    fn scores(seed: u64, value: f64) -> Scores {
        let others = [("recall".to_owned(), 2.0 * value)].into();
        let score = Score { samples: 7, metric: "entity_f1".to_owned(), value, others };
        let settings = Settings { learning_rate: 1e-5, warmup: 0.1, epochs: 1, batch: 8, dropout: 0.1 };
        let chosen_on = ChosenOn::Dev;
        let dev = score.clone();
        let parameters = Some(Parameters { encoder: 1000, attention: 60, outputs: 7 });
        Scores {
            seed,
            settings,
            train: 9,
            parameters,
            steps: 3,
            best_step: 2,
            chosen_on,
            dev,
            test: Some(score),
        }
    }

    fn alone() -> Compared {
        let began_with = vec!["retrain".to_owned()];
        let (how, benchmark) = ("alone".to_owned(), "ner".to_owned());
        Compared { how, benchmark, began_with, stages: vec![], whose: Whose::One }
    }

    #[test]
    fn a_line_has_the_mean_and_its_interval() {
        let line = Line::new(&alone(), &[scores(1, 0.25), scores(2, 0.35), scores(3, 0.30)]).unwrap();
        assert!(
            (line.mean - 0.3).abs() < 1e-12
                && line.best == 0.35
                && (line.others["recall"] - 0.6).abs() < 1e-12
        );
        let [low, high] = line.interval.unwrap();
        assert!(low < 0.25 && high > 0.35, "{low} {high}");
        let text = table(&[line]);
        assert!(text.contains("| ner | alone | retrain | 9 | 7 | entity_f1 | 30.0 ["), "{text}");
        assert!(text.ends_with("| 1,067, of which attention brings 60 |\n"), "{text}");
        let two = Line::new(&alone(), &[scores(1, 0.25), scores(2, 0.35)]).unwrap();
        assert!(
            two.interval.is_some() && table(&[two]).contains("| 30.0 | 35.0 | 25.0, 35.0 |"),
            "no interval is shown"
        );
        let one = Line::new(&alone(), &[scores(1, 0.25)]).unwrap();
        assert!(table(&[one]).contains("| 25.0 | 25.0 | 25.0 |"));
        assert!(Line::new(&alone(), &[]).is_err());
        let trial = Scores { test: None, ..scores(1, 0.1) };
        assert!(Line::new(&alone(), &[trial]).is_err());
    }
}
