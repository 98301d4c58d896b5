//! Stage `results`: one table of what came of all rows, with intervals over seeds, and the page about it.

mod masked;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use model::eval::interval::across_seeds;
use model::eval::paired::{Swapping, sign_flip};
use model::head::mask::Mask;
use serde_json::{Value, json};

use super::around::{Around, finetune_name};
use super::importance::{self, IMPORTANCE};
use super::{Config, Row, mask, pruned};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use crate::stage::finetune::benchmark::Score;
use crate::stage::finetune::config::Source;
use crate::stage::finetune::{self, Scores, scores};
use crate::stage::retrain::heads::MASK;
use ::report::grafting;
use ::report::grafting::facts::{Cell, Curve, Difference, Facts, Heads, Iteration, Search, Seed, Size};
use ::report::grafting::settings::Settings;

/// All that is known, within the artifact.
pub(crate) const FACTS: &str = "grafting.json";
/// Share of intervals that hold the mean over all seeds.
const LEVEL: f64 = 0.95;
/// Metrics that stand beside those that models are chosen by.
const BESIDE: [&str; 2] = ["recall_at_5", "mrr"];

#[derive(Debug)]
pub(crate) struct Results {
    rows: Vec<Row>,
    benchmarks: Vec<String>,
    seeds: Vec<u64>,
    /// What importance is measured and masks are searched on.
    masked_on: Vec<String>,
    /// Those with masks of their own.
    own_masks: Vec<String>,
    /// Shares of the score that masks retain in trials of retraining; none if it is not searched.
    taus: Option<Vec<f64>>,
    /// Those on which nothing is trained.
    tried_alone: Vec<String>,
    /// Trials of a search, for benchmarks that have no settings of their own.
    trials: BTreeMap<String, u64>,
}

impl Results {
    /// The stage for a grafting.
    #[must_use]
    pub(crate) fn new(config: &Config, around: &Around<'_>) -> Self {
        let trials = around.benchmarks.iter().filter_map(|name| {
            match around.finetuning.source(around.trained_on(name).unwrap_or(name)) {
                Source::Search(search) => Some((name.clone(), search.trials)),
                Source::Given(_) => None,
            }
        });
        let tried_alone = around.benchmarks.iter().filter(|name| around.trained_on(name).is_some());
        Self {
            trials: trials.collect(),
            rows: config.rows.clone(),
            benchmarks: around.benchmarks.clone(),
            tried_alone: tried_alone.cloned().collect(),
            seeds: around.finetuning.seeds.clone(),
            own_masks: config.own_masks.clone(),
            taus: config.retrain_search.as_ref().map(|search| search.tau.clone()),
            masked_on: std::iter::once(&config.mask_benchmark).chain(&config.mask_also).cloned().collect(),
        }
    }

    /// The stage whose scores are those of a row, a benchmark and a seed.
    fn stage(row: Row, benchmark: &str, seed: u64) -> String {
        match row {
            Row::Pruned => pruned::name(benchmark, seed),
            _ => finetune_name(row, benchmark, seed),
        }
    }

    /// Rows whose models' heads are measured.
    fn measured(&self) -> impl Iterator<Item = Row> {
        self.rows.iter().copied().filter(|&row| row == Row::Base || row.mode().is_some())
    }

    /// Scores of all seeds of a row on a benchmark.
    fn scores(&self, context: &Context, row: Row, benchmark: &str) -> anyhow::Result<Vec<Scores>> {
        let each = self.seeds.iter();
        each.map(|&seed| scores(context.artifact(&Self::stage(row, benchmark, seed))?)).collect()
    }

    fn facts(&self, context: &Context) -> anyhow::Result<Facts> {
        let mut facts = Facts::titled("What the graph brought");
        facts.rows.retain(|row| self.rows.iter().any(|own| own.name() == row.name));
        for row in self.measured() {
            let path = context.artifact(&importance::name(row))?.join(IMPORTANCE);
            let found = importance::read(&path)?;
            facts
                .importance
                .insert(row.name().to_owned(), Heads::new([found.layers, found.heads], found.values)?);
        }
        let masks = self.masks();
        for (stage, called) in &masks {
            let folder = context.artifact(stage)?;
            let mask = Mask::read(&folder.join(MASK))?;
            let values = mask.values().iter().map(|&gate| f64::from(gate)).collect();
            facts.masks.insert(called.clone(), Heads::new(mask.shape(), values)?);
            facts.searches.insert(called.clone(), search(&folder.join(mask::SEARCH))?);
        }
        self.chosen(context, &masks, &mut facts)?;
        for benchmark in &self.benchmarks {
            self.column(context, benchmark, &mut facts)?;
        }
        self.curves(context, &mut facts)?;
        facts.notes.push(format!(
            "Importance is measured and masks are searched on the part mask_search of {}, which is in no score.",
            self.masked_on.join(" and ")
        ));
        if !self.own_masks.is_empty() {
            facts.notes.push(format!(
                "{}: the rows with a mask were retrained under one of the benchmark's own. Importances before and after are those of the encoders that the other benchmarks share.",
                self.own_masks.join(", ")
            ));
        }
        facts.check()?;
        Ok(facts)
    }

    /// All rows' scores on a benchmark.
    fn column(&self, context: &Context, benchmark: &str, facts: &mut Facts) -> anyhow::Result<()> {
        let all: Vec<(Row, Vec<Scores>)> = self
            .rows
            .iter()
            .map(|&row| Ok((row, self.scores(context, row, benchmark)?)))
            .collect::<anyhow::Result<_>>()?;
        let base = all.iter().find(|(row, _)| *row == Row::Base).map(|(_, scores)| scores.as_slice());
        let (Some(base), Some(one)) = (base, base.and_then(<[Scores]>::first)) else {
            anyhow::bail!("row `base` has no scores on {benchmark}")
        };
        let test = test(one)?;
        let metrics = std::iter::once(test.metric.as_str())
            .chain(BESIDE.into_iter().filter(|name| test.others.contains_key(*name)));
        for metric in metrics {
            let mut cells: Vec<Cell> = all
                .iter()
                .map(|(row, scores)| cell(*row, benchmark, metric, scores, base))
                .collect::<anyhow::Result<_>>()?;
            let most = cells.iter().map(|cell| cell.mean).fold(f64::NEG_INFINITY, f64::max);
            cells.iter_mut().for_each(|cell| cell.best = cell.mean >= most);
            facts.cells.extend(cells);
        }
        // A pruned model was fine-tuned as the base.
        for (row, scores) in all.iter().filter(|(row, _)| *row != Row::Pruned) {
            let Some(first) = scores.first() else { continue };
            facts.settings.push(self.settings(*row, benchmark, &first.settings));
        }
        facts.sizes.push(Size {
            benchmark: benchmark.to_owned(),
            train: one.train as u64,
            dev: one.dev.samples as u64,
            test: test.samples as u64,
        });
        Ok(())
    }

    fn settings(&self, row: Row, benchmark: &str, of: &finetune::config::Settings) -> Settings {
        Settings {
            row: row.name().to_owned(),
            benchmark: benchmark.to_owned(),
            learning_rate: of.learning_rate,
            warmup: of.warmup,
            epochs: of.epochs,
            batch: of.batch as u64,
            dropout: of.dropout,
            trials: self.trials.get(benchmark).copied(),
        }
    }

    /// Losses of retraining, held-out losses, and dev scores of fine-tuning.
    fn curves(&self, context: &Context, facts: &mut Facts) -> anyhow::Result<()> {
        for (row, of, stage) in self.retrained() {
            let folder = context.artifact(&stage)?;
            let task = match of.benchmark() {
                None => "retraining on the graph".to_owned(),
                Some(own) => format!("retraining on the graph, masks of {own}"),
            };
            for (file, y) in [("metrics.jsonl", "loss"), ("held_out.jsonl", "held-out loss")] {
                let points = points(&folder.join(file), "loss")?;
                if !points.is_empty() {
                    facts.curves.push(curve(row.name(), &task, y, points));
                }
            }
        }
        for benchmark in self.benchmarks.iter().filter(|name| !self.tried_alone.contains(name)) {
            for row in self.measured() {
                for &seed in &self.seeds {
                    let stage = Self::stage(row, benchmark, seed);
                    let points = points(&context.artifact(&stage)?.join("dev.jsonl"), "score")?;
                    facts.curves.push(curve(row.name(), benchmark, "dev score", points));
                }
            }
        }
        Ok(())
    }
}

/// One cell of the table.
fn cell(row: Row, benchmark: &str, metric: &str, scores: &[Scores], base: &[Scores]) -> anyhow::Result<Cell> {
    let values = |scores: &[Scores]| -> anyhow::Result<Vec<f64>> {
        scores.iter().map(|scores| value(test(scores)?, metric)).collect()
    };
    let (own, before) = (values(scores)?, values(base)?);
    let (mean, low, high) = over_seeds(&own)?;
    let difference_to_base = if row == Row::Base { None } else { Some(difference(&own, &before)?) };
    let seeds = scores.iter().zip(&own).map(|(scores, &test)| Seed {
        seed: scores.seed,
        dev: (scores.dev.metric == metric).then_some(scores.dev.value),
        test,
    });
    Ok(Cell {
        row: row.name().to_owned(),
        benchmark: benchmark.to_owned(),
        metric: metric.to_owned(),
        seeds: seeds.collect(),
        mean,
        low,
        high,
        difference_to_base,
        best: false,
    })
}

/// The score that is reported.
fn test(scores: &Scores) -> anyhow::Result<&Score> {
    scores.test.as_ref().context("a model without a score on the part `test`")
}

fn value(score: &Score, metric: &str) -> anyhow::Result<f64> {
    if score.metric == metric {
        return Ok(score.value);
    }
    score.others.get(metric).copied().with_context(|| format!("a score without {metric}"))
}

/// Mean and interval; a single run has none.
fn over_seeds(values: &[f64]) -> anyhow::Result<(f64, Option<f64>, Option<f64>)> {
    if let [one] = values {
        return Ok((*one, None, None));
    }
    let runs = across_seeds(values, LEVEL)?;
    Ok((runs.mean, Some(runs.low), Some(runs.high)))
}

/// What a row is above the base, seed by seed.
fn difference(own: &[f64], base: &[f64]) -> anyhow::Result<Difference> {
    let differences: Vec<f64> = own.iter().zip(base).map(|(own, base)| own - base).collect();
    let (mean, low, high) = over_seeds(&differences)?;
    let p = match differences.as_slice() {
        [_] => None,
        // All ways of signs are tried up to 16 seeds, so the seed matters beyond that only.
        _ => Some(sign_flip(base, own, &Swapping { draws: 1 << 16, seed: 1 })?.p),
    };
    Ok(Difference { mean, low, high, p })
}

/// What a search left, for the page.
fn search(path: &Path) -> anyhow::Result<Search> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let found: mask::Record = serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
    let stop = serde_json::to_value(found.stop)?;
    let iterations = found.iterations.into_iter().map(|step| Iteration {
        selected: step.selected,
        score: step.score,
        masked: step.masked,
    });
    Ok(Search {
        original_score: found.original_score,
        threshold: found.threshold,
        stop: stop.as_str().unwrap_or_default().to_owned(),
        iterations: iterations.collect(),
    })
}

fn curve(name: &str, task: &str, y: &str, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), task: task.to_owned(), x: "steps".to_owned(), y: y.to_owned(), points }
}

/// The numbers of a field over the steps; none where there is no such file.
fn points(path: &Path, field: &str) -> anyhow::Result<Vec<(f64, f64)>> {
    if !path.exists() {
        return Ok(vec![]);
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let point = |(number, line): (usize, &str)| {
        let line: BTreeMap<String, Value> =
            serde_json::from_str(line).with_context(|| format!("{}: line {}", path.display(), number + 1))?;
        let get = |key: &str| line.get(key).and_then(Value::as_f64);
        Ok(get("step").zip(get(field)))
    };
    text.lines().enumerate().filter_map(|line| point(line).transpose()).collect()
}

impl Stage for Results {
    fn name(&self) -> &'static str {
        "results"
    }

    fn also_called(&self) -> Option<&str> {
        Some("scores")
    }

    fn version(&self) -> u32 {
        4
    }

    fn describe(&self, to: &mut dyn Describe) {
        let names: Vec<&str> = self.rows.iter().map(|row| row.name()).collect();
        to.field("graft.rows", json!(names));
        to.field("graft.mask_benchmark", self.masked_on.join(", ").into());
        to.field("finetune.seeds", json!(self.seeds));
        if !self.own_masks.is_empty() {
            to.field("graft.own_masks", json!(self.own_masks));
        }
        if let Some(taus) = &self.taus {
            to.field("graft.retrain_search.tau", json!(taus));
        }
        if !self.trials.is_empty() {
            to.field("finetune.search.trials", json!(self.trials));
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let scored = self.rows.iter().flat_map(|&row| {
            self.benchmarks.iter().flat_map(move |benchmark| {
                self.seeds.iter().map(move |&seed| Self::stage(row, benchmark, seed))
            })
        });
        let retrained = self.retrained().into_iter().map(|(_, _, stage)| stage);
        let measured = self.measured().map(importance::name);
        let masks = self.masks().into_iter().map(|(stage, _)| stage);
        scored.chain(retrained).chain(measured).chain(masks).map(Input::artifact).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let facts = self.facts(context)?;
        let out = context.out();
        write_whole(&out.join(FACTS), &serde_json::to_vec_pretty(&facts)?)?;
        grafting::write(&facts, out)?;
        let rows = facts.cells.iter().map(|cell| {
            let round = |x: f64| (x * 1e4).round() / 1e4;
            json!({
                "row": cell.row, "benchmark": cell.benchmark, "metric": cell.metric, "mean": round(cell.mean),
                "low": cell.low.map(round), "high": cell.high.map(round), "seeds": cell.seeds.len(),
                "best_of_seeds": cell.best_of_seeds().map(round),
                "above_base": cell.difference_to_base.map(|difference| round(difference.mean)),
                "p": cell.difference_to_base.and_then(|difference| difference.p).map(round),
            })
        });
        context.record("results", rows.collect::<Vec<_>>());
        Ok(())
    }
}
