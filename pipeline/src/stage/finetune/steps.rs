//! What a fine-tuning shows and is evaluated by: batches of one benchmark or of several in turns, and their scores.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::rng::RngKey;
use downstream::turns::{Mixed, Shown};
use model::Device;
use model::attention::Chosen;
use model::checkpoint::{Checkpoint, masked_lm};
use model::encoder::config::Config;
use model::optim::adamw::Missing;
use model::optim::chosen::ReferenceCode;
use model::optim::schedule::Schedule;
use model::output::{self, Batch, Outline};
use model::train::heads::Heads;
use model::train::patience::{Measured, Patience};
use model::train::{self, Setup, Trainer};
use serde::Deserialize;
use serde_json::{Value, json};
use tasks::stream::schedule::Schedule as TaskOrder;

use super::Tried;
use super::attention::Attending;
use super::benchmark::Benchmark;
use super::config::Settings;
use super::quirks::ChosenOn;
use super::sharded::{self, Sharded};
use crate::engine::context::Context;
use crate::stage::compute::Compute;
use crate::stage::encoder::{fits, with_dropout};
use crate::stage::training::steps::{Batches, Evaluated, Evaluation, Planned, Sharing, Training};

/// The file with one line per look at the part `dev`, or whichever models are chosen by, within the artifact.
pub(super) const LOOKS: &str = "dev.jsonl";
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
    pub(super) device: &'a Device,
    /// The numbers of training.
    pub(super) compute: Compute,
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
    pub(super) fn to_the_end(&self, base: &Path, mut sharded: Vec<Sharded>) -> anyhow::Result<()> {
        let mut order = self.order(&sharded)?;
        let micro_batches = self.settings.epochs.saturating_mul(order.steps_per_epoch());
        let fixed = &self.tried.fixed;
        let planned = Planned::new(micro_batches, fixed.accumulate, fixed.max_steps);
        self.all_have_turns(order.clone(), planned.shown(), &sharded)?;
        let of_epoch = order.steps_per_epoch().div_ceil(fixed.accumulate);
        let setup = self.setup(base, planned.steps, of_epoch, &sharded)?;
        let outline = setup.outline.clone();
        let training = Training {
            context: self.context,
            setup,
            device: self.device,
            planned,
            checkpoint_every: self.tried.fixed.checkpoint_every,
            evaluation: Some(self),
            sharing: Sharing::Nothing,
        };
        training.to_the_end(
            |setup| self.begin(setup, base),
            |state, shown| {
                order.pass_over(shown);
                if let Some(state) = state {
                    sharded::resume(&mut sharded, &state)?;
                }
                Ok(Turns { tasks: self.tasks, sharded, outline, order })
            },
        )
    }

    /// What each micro-batch shows.
    fn order(&self, sharded: &[Sharded]) -> anyhow::Result<Mixed> {
        let benchmarks = self.tasks.iter().map(|task| (task.benchmark.items(), task.batch));
        let each: Vec<(usize, usize)> =
            benchmarks.chain(sharded.iter().map(|of| (of.items, of.asked.batch))).collect();
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
    fn all_have_turns(&self, mut order: Mixed, planned: u64, sharded: &[Sharded]) -> anyhow::Result<()> {
        let benchmarks = self.tasks.iter().map(|task| task.name);
        let names: Vec<&str> = benchmarks.chain(sharded.iter().map(|of| of.asked.task.name())).collect();
        if planned == 0 {
            return Ok(());
        }
        let mut turns = vec![0_u64; names.len()];
        (0..planned).filter_map(|_| order.turn()).for_each(|(task, _)| turns[task] += 1);
        match names.iter().zip(&turns).find(|(_, turns)| **turns == 0) {
            None => Ok(()),
            Some((task, _)) => anyhow::bail!(
                "{task} never has a turn in {planned} batches by the schedule {}: take another schedule, or more epochs or steps",
                self.schedule.name()
            ),
        }
    }

    fn setup(&self, base: &Path, planned: u64, of_epoch: u64, sharded: &[Sharded]) -> anyhow::Result<Setup> {
        let loaded = model::checkpoint::load(base, &Device::Cpu)?;
        let tasks = self.outputs(sharded);
        self.tell_of(&loaded, &tasks);
        let fixed = &self.tried.fixed;
        let encoder = with_dropout(loaded.config, fixed.hidden_dropout, fixed.attention_dropout);
        self.padded(&encoder)?;
        let settings = self.settings;
        self.rooms(encoder.max_position_embeddings, sharded)?;
        let alone = tasks.len() == 1;
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
                tasks,
                pooling: fixed.pooling,
                dropout: settings.dropout,
                thinned: fixed.quirks.dropout,
                labels: self.tried.attending.labels(),
                knowledge: self.tried.attending.knowledge(),
            },
            attention: Chosen::default(),
            mask: None,
            gates: None,
            train: train::Config {
                seed: self.seed,
                schedule: Schedule {
                    peak: settings.learning_rate,
                    warmup_steps,
                    // Of none there is one that is never made.
                    total_steps: planned.max(1),
                    decay: fixed.schedule,
                    reference: self.released.map(|of| of.pace),
                },
                adamw: fixed.adamw.clone(),
                // Of one task every parameter has a gradient in every step; of several only the one whose turn it is moves its output.
                missing: if alone { Missing::Zero } else { Missing::Skip },
                // What a recipe follows a code in is that code's, whatever other trainings are made with.
                optimiser: self.released.map_or(fixed.optimiser.clone(), |of| of.optimiser.clone()),
                clip_norm: fixed.clip_norm,
                frozen: fixed.frozen.clone(),
                heads: Heads::OPEN,
                lora: None,
                accumulate: fixed.accumulate,
                patience: Some(self.patience(of_epoch)),
                covered_by: match self.schedule {
                    _ if alone => 1,
                    TaskOrder::Merged | TaskOrder::RoundRobin(_) | TaskOrder::Kimera => of_epoch.min(planned),
                    // Chance may leave a small task out for long.
                    TaskOrder::Proportional | TaskOrder::Temperature(_) => planned,
                },
                recompute: self.compute.recompute,
                dtype: self.compute.dtype,
            },
        })
    }

    /// Leaves among the facts what the checkpoint lacked, and what it had of an output for masked words, where one is trained.
    fn tell_of(&self, loaded: &Checkpoint, tasks: &[output::Task]) {
        self.context.record("drawn_anew", loaded.fresh.clone());
        if tasks.iter().any(output::Task::is_shared) {
            self.context.record("loaded_outputs", masked_lm::published(&loaded.left_out));
        }
    }

    /// Refuses rows that may have more tokens than an encoder has positions.
    fn rooms(&self, positions: usize, sharded: &[Sharded]) -> anyhow::Result<()> {
        let auxiliary = self.tried.attending.auxiliary();
        for Task { name, max_tokens, .. } in self.tasks {
            room(name, *max_tokens, auxiliary, positions)?;
        }
        for Sharded { asked, longest, .. } in sharded {
            anyhow::ensure!(
                *longest <= positions,
                "shards: rows of {} may have {longest} tokens, but the encoder has {positions} positions: make shorter ones",
                asked.task.name()
            );
        }
        Ok(())
    }

    /// The tasks with their outputs: the benchmarks, then those of shards.
    fn outputs(&self, sharded: &[Sharded]) -> Vec<output::Task> {
        let benchmarks = self.tasks.iter().map(|task| output::Task {
            name: task.name.to_owned(),
            output: task.benchmark.output().clone(),
            alpha: task.alpha,
        });
        let of_shards = sharded.iter().map(|of| output::Task {
            name: of.asked.task.name().to_owned(),
            output: of.output.clone(),
            alpha: of.asked.alpha,
        });
        benchmarks.chain(of_shards).collect()
    }

    fn patience(&self, steps_per_epoch: u64) -> Patience {
        let patience = &self.tried.fixed.patience;
        Patience {
            every: patience.every.unwrap_or(steps_per_epoch.div_ceil(patience.evals_per_epoch)),
            evaluations: patience.evaluations,
        }
    }

    /// Tells how many rows of the encoder's table no token has.
    fn padded(&self, encoder: &Config) -> anyhow::Result<()> {
        let vocabulary = self.tried.vocabulary.load(self.context, self.tried.case)?;
        self.context.record("padded_rows", fits(vocabulary.size(), vocabulary.special(), encoder)?);
        Ok(())
    }

    /// At the first step.
    fn begin(&self, setup: Setup, base: &Path) -> anyhow::Result<Trainer> {
        let mut trainer = Trainer::from_checkpoint(setup, base, self.device)?;
        if let ([Task { benchmark, .. }], Attending::Labels(..)) = (self.tasks, &self.tried.attending) {
            let vocabulary = self.tried.vocabulary.load(self.context, self.tried.case)?;
            let (attending, device) = (&self.tried.attending, self.device);
            attending.begin(&mut trainer, *benchmark, base, &vocabulary, self.context, device)?;
        }
        Ok(trainer)
    }
}

/// Benchmarks, and tasks of shards, whose batches take turns.
struct Turns<'a> {
    tasks: &'a [Task<'a>],
    sharded: Vec<Sharded>,
    outline: Outline,
    order: Mixed,
}

impl Batches for Turns<'_> {
    fn advance(&mut self) -> anyhow::Result<(u64, Vec<Batch>)> {
        let Shown { task, epoch, items } = self.order.advance().context("there is no task to show")?;
        let batches = match self.tasks.get(task) {
            Some(of) => vec![Batch { task, ..of.benchmark.batch(epoch, &items)? }],
            None => self.sharded[task - self.tasks.len()].advance(&self.outline)?,
        };
        Ok((epoch, batches))
    }

    fn state(&self) -> anyhow::Result<Value> {
        sharded::state(&self.sharded)
    }
}

impl Evaluation for Run<'_> {
    fn file(&self) -> &'static str {
        LOOKS
    }

    fn name(&self) -> &'static str {
        match self.tried.fixed.quirks.chosen_on {
            ChosenOn::Dev => "dev score",
            ChosenOn::Test => "test score",
        }
    }

    /// The score on the part that models are chosen by, of several tasks the mean of theirs, and that of each.
    fn evaluate(&self, trainer: &Trainer) -> anyhow::Result<Evaluated> {
        let (mut sum, mut each) = (0.0, serde_json::Map::new());
        for (number, Task { name, benchmark, .. }) in self.tasks.iter().enumerate() {
            let part = self.tried.fixed.quirks.chosen_on.part();
            let score = super::answers::score(trainer.predictor(), number, *benchmark, part, self.context)?;
            let value = match &self.tried.fixed.patience.measure {
                None => score.value,
                Some(measure) => score.get(measure).with_context(|| {
                    format!("{name} has no {measure:?}: leave finetune.patience.measure out")
                })?,
            };
            sum += value;
            each.insert((*name).to_owned(), json!(value));
        }
        let measured = Measured::Score(sum / self.tasks.len() as f64);
        Ok(Evaluated { measured, tasks: (self.tasks.len() > 1).then_some(each.into()) })
    }
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
