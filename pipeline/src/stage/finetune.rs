//! Stages that fine-tune an encoder on a benchmark, `finetune-ROW-BENCHMARK-SEED` and the trials of a search. They go on where they were interrupted.

pub(crate) mod answers;
pub(crate) mod attention;
pub(crate) mod begin;
pub(crate) mod benchmark;
pub(crate) mod config;
mod examples;
mod known;
mod masked;
pub(crate) mod measure;
mod model_card;
mod questions;
pub(crate) mod quirks;
mod ranking;
pub(crate) mod scored;
pub(crate) mod search;
mod sharded;
mod steps;
mod tagged;
pub(crate) mod together;
mod tried;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::Part;
use downstream::token_classes::{Classing, is_default};
use model::checkpoint::CONFIG_FILE;
use model::predict::{Parameters, Predictor};
use serde::{Deserialize, Serialize};
use tasks::stream::schedule::Schedule;
use tasks::token::folder;

use super::encoder::{Base, MODEL};
use crate::bundle::task_file::{self, TaskFile};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Artifacts, Input, Resume, Stage};
use crate::stage::training::rewrite_sealed;
use crate::stage::training::steps::ended;
use benchmark::{Benchmark, Score};
use config::Settings;
use quirks::ChosenOn;
pub(crate) use tried::Tried;

/// The scores within the artifact. Written once everything else is there.
pub(crate) const SCORES: &str = "scores.json";
/// What the model said of the part `test` within the artifact.
pub(crate) const SAID: &str = "test.jsonl";
/// The file of the settings that a search chose within its artifact.
pub(crate) const SETTINGS: &str = "settings.json";

/// Scores of one fine-tuned model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scores {
    /// The seed.
    pub seed: u64,
    /// The settings.
    pub settings: Settings,
    /// Examples or queries that it was trained on; where sentences are cut by the right tags, their pieces.
    pub train: usize,
    /// How many numbers the model has where.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parameters: Option<Parameters>,
    /// Steps made, and those after which the model was best.
    pub steps: u64,
    /// The step of the model that is kept.
    pub best_step: u64,
    /// The part by whose scores the model was chosen, where that is not `dev`: then those on it are the best of several looks.
    #[serde(skip_serializing_if = "is_default", default)]
    pub chosen_on: ChosenOn,
    /// On the part that settings and the stop are chosen by.
    pub dev: Score,
    /// On the part that is reported; a trial of a search does not look at it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub test: Option<Score>,
}

/// What a model is tried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The part `dev` alone: a trial of a search.
    Dev,
    /// That and the part `test`.
    DevAndTest,
}

/// Where the settings of a fine-tuning come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Chosen {
    /// The config.
    Given(Settings),
    /// The artifact of a search.
    Stage(String),
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Finetune {
    /// Its name.
    pub name: String,
    /// What it is fine-tuned on.
    pub tried: Tried,
    /// What it begins with.
    pub base: Base,
    /// How.
    pub chosen: Chosen,
    /// Seed of the output's weights, dropout and the order of samples.
    pub seed: u64,
    /// What the model is tried on.
    pub looked: Looked,
}

impl Finetune {
    fn settings(&self, context: &Context) -> anyhow::Result<Settings> {
        match &self.chosen {
            Chosen::Given(settings) => Ok(settings.clone()),
            Chosen::Stage(name) => {
                let path = context.artifact(name)?.join(SETTINGS);
                let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
            }
        }
    }
}

/// Puts what it takes to ask the model beside its weights. All of `tried` have one vocabulary, and one layout of rows but for their lengths.
fn complete(context: &Context, tried: &Tried, of: &[steps::Task<'_>]) -> anyhow::Result<()> {
    let folder = context.out().join(MODEL);
    let max_tokens = of.iter().map(|of| of.max_tokens).max().unwrap_or(tried.fixed.max_tokens);
    let vocabulary = tried.vocabulary.load(context, tried.case)?;
    folder::add(&folder, &tried.vocabulary.path(context)?, &vocabulary, Some(max_tokens))?;
    let task = |of: &steps::Task<'_>| task_file::Task {
        name: of.name.to_owned(),
        asked: of.benchmark.asked(),
        pairs: of.benchmark.pairs(),
        classes: of.benchmark.classes().to_vec(),
        tags: match of.benchmark.asked() {
            task_file::Asked::Tags => tried.fixed.quirks.tags,
            _ => Classing::default(),
        },
        max_tokens: (of.max_tokens != max_tokens).then_some(of.max_tokens),
        spans: of.benchmark.spans(),
    };
    let file = TaskFile {
        format: task_file::FORMAT.to_owned(),
        version: task_file::VERSION,
        tasks: of.iter().map(task).collect(),
        max_tokens,
        cut: tried.fixed.truncation,
        subwords: tried.fixed.subwords,
        pairs: tried.fixed.quirks.pairs,
        knowledge: tried.attending.told(&tried.name, context)?,
    };
    file.write(&folder)?;
    model::checkpoint::digests::seal(&folder)?;
    match file.tasks.as_slice() {
        [task] => {
            let config = format!("{MODEL}/{CONFIG_FILE}");
            rewrite_sealed(context.out(), &config, || task.name_classes(&folder))
        }
        _ => Ok(()),
    }
}

/// The facts of benchmarks, and what was cut of their rows.
fn facts(benchmark: &dyn Benchmark) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let cuts = [Part::Dev, Part::Test].map(|part| Ok((part.name(), benchmark.cuts(part)?)));
    let cuts = cuts.into_iter().collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    let mut facts: serde_json::Map<_, _> = benchmark.facts().into_iter().collect();
    facts.insert("rows_cut".to_owned(), serde_json::to_value(cuts)?);
    Ok(facts)
}

impl Stage for Finetune {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        7
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.tried.describe(to);
        self.base.describe(to);
        to.field("finetune.seed", self.seed.into());
        if let Chosen::Given(settings) = &self.chosen {
            describe::config(to, "finetune", settings);
        }
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.tried.compute.told())
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.tried.attending.licence())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.tried.inputs();
        inputs.push(self.base.input());
        if let Chosen::Stage(name) = &self.chosen {
            inputs.push(Input::artifact(name));
        }
        inputs
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.base.name())
    }

    fn foresee(&self, _: &Artifacts<'_>) -> anyhow::Result<()> {
        self.base.early()
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let settings = self.settings(context)?;
        let benchmark = self.tried.read(context, self.seed)?;
        let device = self.tried.compute.device(context)?;
        self.tried.fits(&self.base.folder(context)?, context)?;
        let (name, batch, max_tokens) = (&self.tried.name, settings.batch, self.tried.fixed.max_tokens);
        let tasks = [steps::Task { name, benchmark: benchmark.as_ref(), alpha: 1.0, batch, max_tokens }];
        let run = steps::Run {
            context,
            tasks: &tasks,
            schedule: Schedule::Merged,
            settings: &settings,
            released: None,
            tried: &self.tried,
            seed: self.seed,
            device: &device,
            compute: self.tried.compute,
        };
        run.to_the_end(&self.base.folder(context)?, vec![])?;
        complete(context, &self.tried, &tasks)?;
        let ended = ended(context.out())?;
        let predictor = Predictor::load(&context.out().join(MODEL), &device)?;
        let dev = answers::score(&predictor, 0, benchmark.as_ref(), Part::Dev, context)?;
        let test = match self.looked {
            Looked::Dev => None,
            Looked::DevAndTest => {
                let outputs = answers::outputs(&predictor, 0, benchmark.as_ref(), Part::Test, context)?;
                answers::write(&context.out().join(SAID), benchmark.as_ref(), Part::Test, &outputs)?;
                Some(answers::measured(benchmark.as_ref(), Part::Test, &outputs)?)
            }
        };
        let scores = Scores {
            seed: self.seed,
            settings,
            train: benchmark.items(),
            parameters: Some(predictor.parameters()),
            steps: ended.steps,
            best_step: ended.best.map_or(ended.steps, |best| best.step),
            chosen_on: self.tried.fixed.quirks.chosen_on,
            dev,
            test,
        };
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        let of = model_card::Tuned {
            stage: &self.name,
            tried: std::slice::from_ref(&self.tried),
            base: &self.base,
        };
        of.write(context, &[(&scores, benchmark.as_ref())])?;
        context.record("scores", serde_json::to_value(&scores)?);
        facts(benchmark.as_ref())?.into_iter().for_each(|(key, value)| context.record(&key, value));
        Ok(())
    }
}

/// The scores in the artifact of a fine-tuning.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn scores(folder: &Path) -> anyhow::Result<Scores> {
    let path = folder.join(SCORES);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}
