//! The steps of a fine-tuning: until its last epoch or the end of patience, with states to go on from.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::rng::RngKey;
use base::whole::write_whole;
use model::Device;
use model::device::ActivationDtype;
use model::encoder::config::Config;
use model::optim::adamw::Missing;
use model::optim::chosen::ReferenceCode;
use model::optim::schedule::Schedule;
use model::train::finetune::{self, Batch, Finetuner, Outline, Setup};
use model::train::patience::{Patience, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasks::downstream::turns::{Mixed, Shown};
use tasks::stream::schedule::Schedule as TaskOrder;

use super::Tried;
use super::attention::Attending;
use super::benchmark::Benchmark;
use super::config::Settings;
use super::quirks::ChosenOn;
use crate::engine::context::Context;
use crate::engine::progress::{Evaluation, Step};
use crate::stage::encoder::{MODEL, fits};
use crate::stage::training::{self, Found, METRICS, Records, STATE};

/// The file with one line per look at the part `dev`, or whichever models are chosen by, within the artifact.
pub(super) const LOOKS: &str = "dev.jsonl";
/// The parameters that were not trained, with the reason, within the artifact.
const FROZEN: &str = "frozen.json";
/// How it ended.
const ENDED: &str = "training.json";
/// The files with a line for each step and look.
const LINES: [&str; 2] = [METRICS, LOOKS];

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
    /// Its score on the part that models are chosen on.
    best_score: f64,
}

/// A benchmark that is trained on.
pub(super) struct Task<'a> {
    /// Its name, and that of the output.
    pub(super) name: &'a str,
    pub(super) benchmark: &'a dyn Benchmark,
    /// The weight of its loss.
    pub(super) alpha: f64,
    /// Examples, or queries of a ranking, of one step.
    pub(super) batch: usize,
    /// Most tokens of a row.
    pub(super) max_tokens: usize,
}

/// A fine-tuning.
pub(super) struct Run<'a> {
    pub(super) context: &'a Context,
    pub(super) tasks: &'a [Task<'a>],
    /// How they take turns.
    pub(super) schedule: TaskOrder,
    pub(super) settings: &'a Settings,
    /// An optimiser in place of AdamW.
    pub(super) released: Option<&'a ReferenceCode>,
    /// How all of them are read, and what no recipe chooses.
    pub(super) tried: &'a Tried,
    pub(super) seed: u64,
    /// The device, and the numbers of training.
    pub(super) compute: (&'a Device, ActivationDtype),
}

/// Refuses rows of a benchmark that may have more tokens than an encoder has positions.
///
/// # Errors
/// Names both.
pub(super) fn room(
    benchmark: &str,
    max_tokens: usize,
    auxiliary: usize,
    positions: usize,
) -> anyhow::Result<()> {
    let most = max_tokens + auxiliary;
    anyhow::ensure!(
        most <= positions,
        "finetune.max_tokens: rows of {benchmark} may have {max_tokens} tokens, with auxiliary terms {most}, but the encoder has {positions} positions: lower it, or max_tokens_of.{benchmark}"
    );
    Ok(())
}

impl Run<'_> {
    /// Trains unless it has been done, and leaves nothing to resume from.
    pub(super) fn to_the_end(&self, base: &Path) -> anyhow::Result<()> {
        let out = self.context.out();
        let found = training::found(self.context, &LINES)?;
        // Records facts, too, which a training that has ended has as well.
        let (mut order, planned) = self.planned()?;
        let setup = self.setup(base, planned, order.steps_per_epoch())?;
        if found != Found::Ended {
            let (mut tuner, mut records) = match found {
                Found::State => self.go_on(setup).with_context(|| training::refused(self.context))?,
                _ => (self.begin(setup, base)?, Records::begin(out, &LINES)?),
            };
            order.pass_over(tuner.steps());
            let steps = self.steps(&mut tuner, &mut records, order, planned);
            let ended = steps.and_then(|()| finish(&tuner, &mut records, out, planned));
            // Whatever failed, it is because of that if somebody took the folder away.
            ended.or_else(|error| records.check().and(Err(error)))?;
            training::seal(out)?;
        }
        training::drop_state(out)
    }

    /// Steps until the last epoch or the end of patience.
    fn steps(
        &self,
        tuner: &mut Finetuner,
        records: &mut Records,
        mut order: Mixed,
        planned: u64,
    ) -> anyhow::Result<()> {
        let state = self.context.out().join(STATE);
        let progress = self.context.progress();
        progress
            .training(training::total(planned, Some(&self.patience(order.steps_per_epoch()))), tuner.steps());
        while tuner.steps() < planned {
            self.context.check()?;
            let Shown { task, epoch, items } = order.advance().context("there is no task to show")?;
            let batch = progress.waiting(|| self.tasks[task].benchmark.batch(epoch, &items))?;
            let record = tuner.step(epoch, &[Batch { task, ..batch }])?;
            records.check()?;
            records.push(METRICS, &record)?;
            let (loss, learning_rate) = (record.loss, record.learning_rate);
            progress.trained(Step { loss, learning_rate, tokens: record.tokens as u64 });
            if tuner.evaluation_is_due() || tuner.steps() == planned {
                let (score, of_tasks) = self.look(tuner)?;
                let verdict = tuner.evaluated(score, &state)?;
                let mut line = json!({"step": tuner.steps(), "score": score, "verdict": verdict});
                if self.tasks.len() > 1 {
                    line["tasks"] = of_tasks;
                }
                records.push(LOOKS, &line)?;
                progress.evaluated(Evaluation { of: self.chosen_by(), value: score });
                if verdict == Verdict::Stop {
                    break;
                }
            }
            if tuner.steps().is_multiple_of(self.tried.fixed.checkpoint_every) {
                tuner.save_state(&state, &records.along(Value::Null)?)?;
                training::state_is_there(self.context.out())?;
            }
        }
        Ok(())
    }

    /// What each step shows, and how many there are.
    fn planned(&self) -> anyhow::Result<(Mixed, u64)> {
        let order = self.order()?;
        let planned = self.settings.epochs.saturating_mul(order.steps_per_epoch());
        self.all_have_turns(order.clone(), planned)?;
        Ok((order, planned))
    }

    /// What each step shows.
    fn order(&self) -> anyhow::Result<Mixed> {
        let each: Vec<(usize, usize)> =
            self.tasks.iter().map(|task| (task.benchmark.items(), task.batch)).collect();
        for (task, (items, _)) in self.tasks.iter().zip(&each) {
            anyhow::ensure!(
                *items > 0,
                "benchmark {} has nothing to fine-tune on: give its part `train` examples",
                task.name
            );
        }
        let seed = RngKey::new(self.seed).named("finetune");
        Ok(Mixed::new(&each, self.tried.fixed.quirks.order, self.schedule, seed)?)
    }

    /// Refuses a schedule that leaves a task out, which would only show at the end.
    fn all_have_turns(&self, mut order: Mixed, planned: u64) -> anyhow::Result<()> {
        let mut turns = vec![0_u64; self.tasks.len()];
        (0..planned).filter_map(|_| order.turn()).for_each(|(task, _)| turns[task] += 1);
        match self.tasks.iter().zip(&turns).find(|(_, turns)| **turns == 0) {
            None => Ok(()),
            Some((task, _)) => anyhow::bail!(
                "{} never has a turn in {planned} steps by the schedule {}: take another schedule, or more epochs",
                task.name,
                self.schedule.name()
            ),
        }
    }

    fn setup(&self, base: &Path, planned: u64, of_epoch: u64) -> anyhow::Result<Setup> {
        let loaded = model::checkpoint::load(base, &Device::Cpu)?;
        self.context.record("drawn_anew", loaded.fresh);
        let encoder = loaded.config;
        self.padded(&encoder)?;
        let (fixed, settings) = (&self.tried.fixed, self.settings);
        let auxiliary = self.tried.attending.auxiliary();
        let positions = encoder.max_position_embeddings;
        for Task { name, max_tokens, .. } in self.tasks {
            room(name, *max_tokens, auxiliary, positions)?;
        }
        let tasks = self.tasks.iter().map(|task| finetune::Task {
            name: task.name.to_owned(),
            output: task.benchmark.output().clone(),
            alpha: task.alpha,
        });
        let alone = self.tasks.len() == 1;
        // Whole steps; a schedule that rises to the last of them would never come down.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share from 0 to below 1 of the steps"
        )]
        let warmup_steps = (settings.warmup * planned as f64).floor() as u64;
        Ok(Setup {
            encoder,
            outline: Outline {
                tasks: tasks.collect(),
                pooling: fixed.pooling,
                dropout: settings.dropout,
                thinned: fixed.quirks.dropout,
                labels: self.tried.attending.labels(),
                knowledge: self.tried.attending.knowledge(),
            },
            gates: None,
            train: finetune::Config {
                seed: self.seed,
                schedule: Schedule { peak: settings.learning_rate, warmup_steps, total_steps: planned },
                adamw: fixed.adamw.clone(),
                // Of one task every parameter has a gradient in every step; of several only the one whose turn it is moves its output.
                missing: if alone { Missing::Zero } else { Missing::Skip },
                released: self.released.cloned(),
                clip_norm: fixed.clip_norm,
                frozen: fixed.frozen.clone(),
                patience: Some(self.patience(of_epoch)),
                covered_by: match self.schedule {
                    _ if alone => 1,
                    TaskOrder::Merged | TaskOrder::RoundRobin(_) | TaskOrder::Kimera => of_epoch,
                    // Chance may leave a small task out for long.
                    TaskOrder::Proportional | TaskOrder::Temperature(_) => planned,
                },
                dtype: self.compute.1,
            },
        })
    }

    fn patience(&self, steps_per_epoch: u64) -> Patience {
        let patience = &self.tried.fixed.patience;
        Patience {
            every: steps_per_epoch.div_ceil(patience.evals_per_epoch),
            evaluations: patience.evaluations,
        }
    }

    /// What the score of an evaluation is called.
    fn chosen_by(&self) -> &'static str {
        match self.tried.fixed.quirks.chosen_on {
            ChosenOn::Dev => "dev score",
            ChosenOn::Test => "test score",
        }
    }

    /// Tells how many rows of the encoder's table no token has.
    fn padded(&self, encoder: &Config) -> anyhow::Result<()> {
        let tokens = self.tried.vocabulary.load(self.context, self.tried.case)?.size();
        self.context.record("padded_rows", fits(tokens, encoder)?);
        Ok(())
    }

    /// At the first step.
    fn begin(&self, setup: Setup, base: &Path) -> anyhow::Result<Finetuner> {
        let mut tuner = Finetuner::from_checkpoint(setup, base, self.compute.0)?;
        if let ([Task { benchmark, .. }], Attending::Labels(..)) = (self.tasks, &self.tried.attending) {
            let vocabulary = self.tried.vocabulary.load(self.context, self.tried.case)?;
            self.tried.attending.begin(
                &mut tuner,
                *benchmark,
                base,
                &vocabulary,
                self.context,
                self.compute.0,
            )?;
        }
        Ok(tuner)
    }

    /// Where an interrupted run left it.
    fn go_on(&self, setup: Setup) -> anyhow::Result<(Finetuner, Records)> {
        let out = self.context.out();
        let (tuner, along) = Finetuner::resume(setup, &out.join(STATE), self.compute.0)?;
        Ok((tuner, Records::resume(out, &LINES, &along)?.0))
    }

    /// The score on the part that models are chosen by, of several tasks the mean of theirs, and that of each.
    fn look(&self, tuner: &Finetuner) -> anyhow::Result<(f64, Value)> {
        let (mut sum, mut each) = (0.0, serde_json::Map::new());
        for (number, Task { name, benchmark, .. }) in self.tasks.iter().enumerate() {
            let part = self.tried.fixed.quirks.chosen_on.part();
            let score = super::answers::score(tuner.predictor(), number, *benchmark, part, self.context)?;
            sum += score.value;
            each.insert((*name).to_owned(), json!(score.value));
        }
        Ok((sum / self.tasks.len() as f64, Value::Object(each)))
    }
}

/// Leaves the best model in [`MODEL`], and how training ended.
fn finish(tuner: &Finetuner, records: &mut Records, out: &Path, planned: u64) -> anyhow::Result<()> {
    records.sync()?;
    tuner.check_frozen()?;
    let best = tuner.best().context("no look was taken")?;
    tuner.save_best(&out.join(STATE), &out.join(MODEL))?;
    write_whole(&out.join(FROZEN), &serde_json::to_vec_pretty(&tuner.frozen_reasons())?)?;
    let ended = Ended { steps: tuner.steps(), planned, best_step: best.step, best_score: best.score };
    Ok(write_whole(&out.join(ENDED), &serde_json::to_vec_pretty(&ended)?)?)
}

/// How a fine-tuning ended.
pub(super) fn ended(folder: &Path) -> anyhow::Result<Ended> {
    let path = folder.join(ENDED);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
}

/// The best score of each of several tasks over all looks; empty where one task alone was trained on.
pub(super) fn best_looks(folder: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    #[derive(Deserialize)]
    struct Look {
        #[serde(default)]
        tasks: BTreeMap<String, f64>,
    }
    let path = folder.join(LOOKS);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    let mut best = BTreeMap::new();
    for line in text.lines() {
        let Look { tasks } = serde_json::from_str(line).with_context(|| path.display().to_string())?;
        for (task, score) in tasks {
            let so_far: &mut f64 = best.entry(task).or_insert(score);
            *so_far = so_far.max(score);
        }
    }
    Ok(best)
}
