//! Stages `retrain-ROW` with `graft.retrain_search`: the encoder is retrained with settings drawn at random, one trial after the other, and the row's is the
//! one whose fine-tuning has the best score on the part `dev`.

use std::path::Path;

use anyhow::Context as _;
use base::rng::RngKey;
use base::whole::write_whole;
use model::encoder::pool::Pooling;
use model::output::shards::Alphas;
use model::range::DROPOUT;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::mask;
use crate::config::range::{MANY, inside, number, whole};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use crate::stage::finetune::config::distinct;
use crate::stage::finetune::scores;
use crate::stage::finetune::search::{Range, one_of};
use crate::stage::retrain;

/// What was chosen, within the artifact.
pub(super) const CHOSEN: &str = "chosen.json";

/// What is searched of retraining. A list that is empty is not searched: `[retrain]` and `graft.search.tau` say it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Search {
    /// Number of retrainings of every row, from 1 to 10,000.
    ///
    /// Source: ours: a retraining takes hours, so fewer than of fine-tuning; the best of 8 is, 19 times out of 20, among the best 31 percent.
    pub trials: u64,
    /// Seed of the sampling.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// The seeds that each trial is fine-tuned with, as row `base` is; the mean over them and over the benchmarks that share the row's mask counts.
    ///
    /// Source: ours: one run is the least.
    pub finetune_seeds: Vec<u64>,
    /// The range of learning rates, sampled log-uniformly; left out, from 3e-6 to 5e-5.
    ///
    /// Source: KIMERA, table A3, retraining.
    pub learning_rate: Range,
    /// Numbers of steps of warm-up.
    ///
    /// Source: KIMERA, table A3: from 1,000; up to half of all steps, which is a number for each graph.
    pub warmup_steps: Vec<u64>,
    /// Numbers of epochs.
    ///
    /// Source: KIMERA, table A3: 3 to 5.
    pub epochs: Vec<u64>,
    /// Dropouts on the input of the tasks' outputs, each from 0 to 0.95.
    ///
    /// Source: KIMERA, table A3, dropout of the last layer.
    pub dropout: Vec<f64>,
    /// Dropouts of hidden states, each from 0 to 0.95.
    ///
    /// Source: KIMERA, table A3.
    pub hidden_dropout: Vec<f64>,
    /// Dropouts of attention probabilities, each from 0 to 0.95.
    ///
    /// Source: KIMERA, table A3.
    pub attention_dropout: Vec<f64>,
    /// Poolings for relation and triplet classification.
    ///
    /// Source: KIMERA, section 2.2, which tries several; ours: that of `[retrain]` unless some are named.
    pub pooling: Vec<Pooling>,
    /// Weights of the tasks' losses.
    ///
    /// Source: KIMERA, section 4 and table A3, which turns tasks on and off; ours: those of `[retrain]` unless some are named.
    pub alphas: Vec<Alphas>,
    /// Shares of the score that a mask must retain, each from 0 to 1, for rows with a mask.
    ///
    /// Source: KIMERA, table A3.
    pub tau: Vec<f64>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            trials: 8,
            seed: 1,
            finetune_seeds: vec![1],
            learning_rate: Range { least: 3e-6, most: 5e-5 },
            warmup_steps: vec![1000],
            epochs: vec![3, 4, 5],
            dropout: vec![0.1, 0.25, 0.8],
            hidden_dropout: vec![0.1, 0.25],
            attention_dropout: vec![0.1, 0.25],
            pooling: vec![],
            alphas: vec![],
            tau: vec![0.95, 0.98, 0.99],
        }
    }
}

/// What a trial is made with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    /// The settings of its retraining.
    pub(super) config: retrain::Config,
    /// What its mask must retain, if that is searched.
    pub(super) tau: Option<f64>,
}

impl Search {
    /// What a trial, counted from 0, makes of the settings of `[retrain]`.
    #[must_use]
    pub(super) fn trial(&self, number: u64, retraining: &retrain::Config) -> Drawn {
        let seed = RngKey::new(self.seed).named("retraining").at(number);
        let mut config = retraining.clone();
        config.learning_rate = self.learning_rate.draw(seed.named("learning_rate"));
        config.warmup_steps =
            drawn(&self.warmup_steps, seed.named("warmup_steps")).unwrap_or(config.warmup_steps);
        config.epochs = drawn(&self.epochs, seed.named("epochs")).unwrap_or(config.epochs);
        let heads = &mut config.task_heads;
        heads.dropout = drawn(&self.dropout, seed.named("dropout")).unwrap_or(heads.dropout);
        heads.pooling = drawn(&self.pooling, seed.named("pooling")).unwrap_or(heads.pooling);
        config.hidden_dropout =
            drawn(&self.hidden_dropout, seed.named("hidden_dropout")).or(config.hidden_dropout);
        config.attention_dropout =
            drawn(&self.attention_dropout, seed.named("attention_dropout")).or(config.attention_dropout);
        config.alphas = drawn(&self.alphas, seed.named("alphas")).unwrap_or(config.alphas);
        Drawn { config, tau: drawn(&self.tau, seed.named("tau")) }
    }

    /// Refuses what nothing can be drawn from, and values outside their ranges.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        const TABLE: &str = "graft.retrain_search";
        whole(format!("{TABLE}.trials"), self.trials, 1..=10_000)?;
        distinct(&self.finetune_seeds, &format!("{TABLE}.finetune_seeds"))?;
        self.learning_rate.check(&format!("{TABLE}.learning_rate"))?;
        let at = |name: &str, place: usize| format!("{TABLE}.{name}.{place}");
        for (i, epochs) in self.epochs.iter().enumerate() {
            whole(at("epochs", i), *epochs, 1..=MANY)?;
        }
        let dropouts = [
            ("dropout", &self.dropout),
            ("hidden_dropout", &self.hidden_dropout),
            ("attention_dropout", &self.attention_dropout),
        ];
        for (name, values) in dropouts {
            for (i, share) in values.iter().enumerate() {
                number(at(name, i), *share, &DROPOUT)?;
            }
        }
        for (i, alphas) in self.alphas.iter().enumerate() {
            inside(at("alphas", i), alphas.check())?;
        }
        for (i, tau) in self.tau.iter().enumerate() {
            let search = mask::Search { tau: *tau, ..mask::Search::default() };
            search
                .check()
                .map_err(|_| anyhow::anyhow!("{} is {tau}, expected a number from 0 to 1", at("tau", i)))?;
        }
        Ok(())
    }
}

/// One of some values, if there are any.
fn drawn<T: Clone>(values: &[T], seed: RngKey) -> Option<T> {
    (!values.is_empty()).then(|| one_of(values, seed))
}

/// A trial and the stages that it consists of.
#[derive(Debug)]
pub(super) struct Trial {
    /// The stage of its retraining.
    pub(super) retrained: String,
    /// The stage of its mask.
    pub(super) mask: Option<String>,
    /// The stages that fine-tune its encoder.
    pub(super) tried: Vec<String>,
    /// Its settings.
    pub(super) drawn: Drawn,
}

/// What an artifact says of the trial that it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chosen {
    /// Its number, from 0.
    pub(super) trial: u64,
    /// The stage of its mask.
    pub(super) mask: Option<String>,
    /// The mean score on the part `dev`.
    pub(super) dev: f64,
}

/// The stage of a row.
#[derive(Debug)]
pub(super) struct Choosing {
    pub(super) name: String,
    pub(super) trials: Vec<Trial>,
}

impl Stage for Choosing {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        let trials: Vec<&String> = self.trials.iter().map(|trial| &trial.retrained).collect();
        to.field("trials", json!(trials));
    }

    fn inputs(&self) -> Vec<Input> {
        let of = |trial: &Trial| {
            let tried = trial.tried.iter().cloned();
            std::iter::once(trial.retrained.clone()).chain(tried).collect::<Vec<_>>()
        };
        self.trials.iter().flat_map(of).map(Input::artifact).collect()
    }

    /// Takes the trial with the highest mean; of equals the first.
    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let mut best: Option<(&Trial, Chosen)> = None;
        let mut rows = Vec::new();
        for (number, trial) in (0..).zip(&self.trials) {
            let found = trial.tried.iter().map(|stage| Ok(scores(context.artifact(stage)?)?.dev.value));
            let dev = found.collect::<anyhow::Result<Vec<f64>>>()?;
            let mean = dev.iter().sum::<f64>() / dev.len() as f64;
            let retrain::Config { learning_rate, warmup_steps, epochs, ref task_heads, ref alphas, .. } =
                trial.drawn.config;
            rows.push(json!({
                "trial": number, "dev": mean, "dev_of_each": dev, "learning_rate": learning_rate, "warmup_steps": warmup_steps, "epochs": epochs,
                "pooling": task_heads.pooling, "dropout": task_heads.dropout, "hidden_dropout": trial.drawn.config.hidden_dropout,
                "attention_dropout": trial.drawn.config.attention_dropout, "alphas": alphas, "tau": trial.drawn.tau,
            }));
            if best.as_ref().is_none_or(|(_, best)| mean > best.dev) {
                best = Some((trial, Chosen { trial: number, mask: trial.mask.clone(), dev: mean }));
            }
        }
        let (trial, chosen) = best.context("there is no trial to choose from")?;
        copy(context.artifact(&trial.retrained)?, context.out(), context)?;
        write_whole(&context.out().join(CHOSEN), &serde_json::to_vec_pretty(&chosen)?)?;
        context.record("trials", rows);
        context.record("chosen", trial.retrained.clone());
        context.record("dev", chosen.dev);
        Ok(())
    }
}

/// Copies everything in a folder into another.
fn copy(from: &Path, to: &Path, context: &Context) -> anyhow::Result<()> {
    for entry in from.read_dir().with_context(|| from.display().to_string())? {
        context.check()?;
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            std::fs::create_dir(&to).with_context(|| to.display().to_string())?;
            copy(&from, &to, context)?;
        } else {
            std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

/// The mask that a row's encoder was chosen with, where its retraining was searched.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn chosen(folder: &Path) -> anyhow::Result<Chosen> {
    let file = folder.join(CHOSEN);
    let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
    serde_json::from_slice(&bytes).with_context(|| file.display().to_string())
}
