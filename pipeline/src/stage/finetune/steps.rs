//! The steps of a fine-tuning: until its last epoch or the end of patience, with states to go on from. Knows no output.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kg::whole::write_whole;
use model::Device;
use model::device::Number;
use model::optim::adamw::Missing;
use model::optim::schedule::Schedule;
use model::train::finetune::{self, Finetuner, Setup, Task};
use model::train::patience::{Patience, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasks::downstream::example::Part;
use tasks::downstream::turns::Turns;
use tasks::seed::Seed;

use super::benchmark::Benchmark;
use super::config::{Fixed, Settings};
use crate::engine::context::Context;
use crate::stage::encoder::MODEL;
use crate::stage::metrics::Lines;

/// The file with one line per step within the artifact.
pub(super) const METRICS: &str = "metrics.jsonl";
/// The file with one line per look at the part `dev` within the artifact.
pub(super) const LOOKS: &str = "dev.jsonl";
/// The parameters that were not trained, with the reason, within the artifact.
const FROZEN: &str = "frozen.json";
/// How it ended. Written once the model is there.
pub(super) const ENDED: &str = "training.json";
/// The folder to go on from; it is gone from a finished artifact.
pub(super) const STATE: &str = "state";
/// Written into [`STATE`] once its first state is whole.
const STATE_INDEX: &str = "state.json";

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ended {
    /// Steps made.
    pub(super) steps: u64,
    /// Steps of all epochs.
    planned: u64,
    /// The step of the model that is kept.
    pub(super) best_step: u64,
    /// Its score on the part `dev`.
    best_score: f64,
}

/// A fine-tuning.
pub(super) struct Run<'a> {
    pub(super) context: &'a Context,
    pub(super) benchmark: &'a dyn Benchmark,
    pub(super) settings: &'a Settings,
    pub(super) fixed: &'a Fixed,
    pub(super) seed: u64,
    /// The device, and the numbers of training.
    pub(super) compute: (&'a Device, Number),
}

impl Run<'_> {
    /// Steps from the encoder in `base` until the end; the best model is then in [`MODEL`], and [`ENDED`] is written.
    pub(super) fn train(&self, base: &Path, name: &str) -> anyhow::Result<()> {
        let items = self.benchmark.items();
        anyhow::ensure!(
            items > 0,
            "benchmark {name} has nothing to fine-tune on: give its part `train` examples"
        );
        let turns = Turns::new(items, self.settings.batch, Seed::new(self.seed).named("finetune"))?;
        let planned = self.settings.epochs.saturating_mul(turns.steps_per_epoch());
        let setup = self.setup(base, name, (planned, turns.steps_per_epoch()))?;
        let at = |name: &str| self.context.out().join(name);
        let (state, best) = (at(STATE), at(MODEL));
        let mut tuner = self.start(setup, base, &state)?;
        let mut metrics = Lines::open_all(&at(METRICS), tuner.steps())?;
        let mut looks = Lines::open(&at(LOOKS), tuner.steps())?;
        let progress = self.context.progress();
        progress.unit("steps");
        progress.total_rows(planned);
        progress.done_before(tuner.steps());
        while tuner.steps() < planned {
            self.context.check()?;
            let (epoch, chosen) = turns.step(tuner.steps());
            let batch = progress.waiting(|| self.benchmark.batch(epoch, &chosen))?;
            let record = tuner.step(epoch, &[batch])?;
            metrics.push(&record)?;
            progress.add_tokens(record.tokens as u64);
            progress.add_rows(1);
            if tuner.look_is_due() || tuner.steps() == planned {
                let score = self.look(&tuner)?;
                let verdict = tuner.look(score, &best)?;
                looks.push(&json!({"step": tuner.steps(), "score": score, "verdict": verdict}))?;
                if verdict == Verdict::Stop {
                    break;
                }
            }
            if tuner.steps().is_multiple_of(self.fixed.checkpoint_every) {
                metrics.sync()?;
                looks.sync()?;
                tuner.save_state(&state, &Value::Null)?;
            }
        }
        metrics.sync()?;
        looks.sync()?;
        tuner.check_frozen()?;
        // A kill while a checkpoint took the place of another leaves one of them beside it.
        model::checkpoint::remove_leftovers(&at(MODEL))?;
        write_whole(&at(FROZEN), &serde_json::to_vec_pretty(&tuner.frozen_in_words())?)?;
        let best = tuner.best().context("no look at the part `dev` was taken")?;
        let ended = Ended { steps: tuner.steps(), planned, best_step: best.step, best_score: best.score };
        Ok(write_whole(&at(ENDED), &serde_json::to_vec_pretty(&ended)?)?)
    }

    fn setup(&self, base: &Path, name: &str, (planned, of_epoch): (u64, u64)) -> anyhow::Result<Setup> {
        let loaded = model::checkpoint::load(base, &Device::Cpu)?;
        self.context.record("drawn_anew", loaded.fresh);
        let encoder = loaded.config;
        let (fixed, settings) = (self.fixed, self.settings);
        anyhow::ensure!(
            encoder.max_position_embeddings >= fixed.max_tokens,
            "finetune.fixed.max_tokens is {}, but the encoder has {} positions: lower it",
            fixed.max_tokens,
            encoder.max_position_embeddings
        );
        let output = self.benchmark.output().clone();
        // Whole steps; a schedule that rises to the last of them would never come down.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share from 0 to below 1 of the steps"
        )]
        let warmup_steps = (settings.warmup * planned as f64).floor() as u64;
        Ok(Setup {
            labels: None,
            encoder,
            tasks: vec![Task { name: name.to_owned(), output, alpha: 1.0 }],
            pooling: fixed.pooling,
            dropout: settings.dropout,
            gates: None,
            train: finetune::Config {
                seed: self.seed,
                schedule: Schedule { peak: settings.learning_rate, warmup_steps, total_steps: planned },
                adamw: fixed.adamw.clone(),
                // One task, so that every parameter has a gradient in every step.
                missing: Missing::Zero,
                clip_norm: fixed.clip_norm,
                frozen: fixed.frozen.clone(),
                patience: Some(Patience {
                    every: of_epoch.div_ceil(fixed.patience.looks_per_epoch),
                    evaluations: fixed.patience.evaluations,
                }),
                covered_by: 1,
                dtype: self.compute.1,
            },
        })
    }

    /// At the first step, or where an interrupted run left it.
    fn start(&self, setup: Setup, base: &Path, state: &PathBuf) -> anyhow::Result<Finetuner> {
        if state.join(STATE_INDEX).exists() {
            return Ok(Finetuner::resume(setup, state, self.compute.0)?.0);
        }
        std::fs::create_dir_all(state)?;
        Ok(Finetuner::from_checkpoint(setup, base, self.compute.0)?)
    }

    /// The score on the part `dev`.
    fn look(&self, tuner: &Finetuner) -> anyhow::Result<f64> {
        let score = super::answers::score(tuner.predictor(), self.benchmark, Part::Dev, self.context)?;
        Ok(score.value)
    }
}

/// How a fine-tuning ended.
pub(super) fn ended(folder: &Path) -> anyhow::Result<Ended> {
    let path = folder.join(ENDED);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}
