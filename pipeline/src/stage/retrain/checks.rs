//! Whether shards, encoder and settings of a training go together, as far as the shards' index and its stream say.

use std::path::Path;

use anyhow::Context as _;
use batch::task::{Material, Task};
use kg::split::Part;
use model::encoder::config::Config;
use serde_json::Value;
use tasks::shard::index::Index;
use tasks::stream::steps as stream;

use super::{Config as Settings, Retrain};
use crate::engine::context::Context;
use crate::stage::encoder::Base;
use crate::stage::report::json;
use crate::stage::training::steps::Planned;
use crate::stage::{encoder, split};

/// How many triples the split in `folder` has to learn from.
///
/// # Errors
/// When its report cannot be read.
pub(super) fn learnt_from(folder: &Path) -> anyhow::Result<u64> {
    let file = folder.join(split::REPORT);
    let report: Value = json(&file)?;
    let count = report["triples"]["train"].as_u64();
    count.with_context(|| format!("{}: expected triples.train, a count", file.display()))
}

impl Retrain {
    /// What is worth saying of a training of so many steps before it begins.
    pub(super) fn warn(&self, context: &Context, planned: u64) {
        self.warn_of_warmup(context, planned);
        self.warn_of_patience(context, planned);
        self.warn_of_untrained(context);
    }

    /// Warns of a training that ends before its learning rate has risen: it changes next to nothing.
    fn warn_of_warmup(&self, context: &Context, planned: u64) {
        let Settings { learning_rate, warmup_steps, .. } = self.config;
        if warmup_steps > planned {
            context.warn(format!(
                "{}.warmup_steps is {warmup_steps}, and the training has {planned} steps: its learning rate never comes to {learning_rate:e} (it ends at {:.1e}), and little is learnt; \
                 take at most half of all steps ({}), or more epochs",
                self.table,
                learning_rate * planned as f64 / warmup_steps.max(1) as f64,
                planned / 2
            ));
        }
    }

    /// Warns of evaluations so far apart that there is one alone.
    fn warn_of_patience(&self, context: &Context, planned: u64) {
        if let Some(patience) = self.config.patience.as_ref().filter(|patience| patience.every >= planned) {
            context.warn(format!(
                "{}.patience.every is {}, and the training has {planned} steps: it is evaluated once, at its end, and never ended before",
                self.table, patience.every
            ));
        }
    }

    /// Warns of texts whose samples are built and that this training has no weight for: by default it has the four tasks on triples alone.
    fn warn_of_untrained(&self, context: &Context) {
        if self.table != "retrain" {
            return;
        }
        let built = &self.from.shards.config.tasks;
        let is_pretrained = matches!(&self.from.base, Base::Stage(name) if name == "pretrain");
        let left = [Task::MaskedLm, Task::Tagging].into_iter().filter(|task| {
            built.contains(task)
                && self.config.alphas.of(*task) == 0.0
                && !(is_pretrained && *task == Task::MaskedLm)
        });
        for task in left.map(Task::name) {
            context.warn(format!(
                "shards.tasks has {task}, and retrain.alphas.{task} is 0: it is not trained here; a weight above 0 trains it"
            ));
        }
    }

    /// Whether encoder and shards go together. Gives the number of rows of the encoder's table that no token has.
    pub(super) fn check(&self, encoder: &Config, index: &Index) -> anyhow::Result<usize> {
        let padded = encoder::fits(index.tokenizer.size, index.tokenizer.special, encoder)
            .context("the shards do not fit the encoder")?;
        self.room(encoder.max_position_embeddings, index)?;
        Ok(padded)
    }

    /// Whether the encoder has positions for all rows.
    pub(super) fn room(&self, positions: usize, index: &Index) -> anyhow::Result<()> {
        let longest = self.from.shards.longest(index);
        anyhow::ensure!(
            positions >= longest,
            "shards.layout.limits: the longest row has {longest} tokens and the encoder {positions} positions: lower node, or raise \
             encoder.max_position_embeddings"
        );
        Ok(())
    }

    /// Whether each task has a turn.
    fn check_turns(&self, stream: &stream::Stream, planned: u64) -> anyhow::Result<()> {
        let (table, schedule) = (self.table, self.config.stream.schedule.name());
        if let Some(task) = stream.without_turn(planned) {
            let task = task.name();
            anyhow::bail!(
                "{table}.stream.schedule: {task} never has a turn in {planned} steps by the schedule {schedule}: take another schedule, or more \
                 steps, or set {table}.alphas.{task} to 0"
            );
        }
        Ok(())
    }

    /// How many batches there are, and how many steps are planned on them.
    pub(super) fn planned(&self, stream: &stream::Stream) -> anyhow::Result<Planned> {
        let (accumulate, most) = (self.config.accumulate, self.config.max_steps);
        let micro_batches = match stream.steps_per_epoch() {
            Some(of_epoch) => self.config.epochs.saturating_mul(of_epoch),
            // Under a budget of tokens, where `max_steps` is never left out.
            None => most.unwrap_or(u64::MAX).saturating_mul(accumulate),
        };
        let planned = Planned::new(micro_batches, accumulate, most);
        self.check_turns(stream, planned.shown())?;
        Ok(planned)
    }

    /// Whether the shards have what the settings ask for.
    pub(super) fn check_shards(&self, index: &Index) -> anyhow::Result<()> {
        let table = self.table;
        let tasks: Vec<Task> = index.tasks.iter().map(|task| task.task).collect();
        anyhow::ensure!(
            index.relations.len() > 1
                || !tasks.contains(&Task::Relation)
                || self.config.alphas.of(Task::Relation) == 0.0,
            "{table}.alphas.relation is above 0, but the graph has one relation only, so there is nothing to predict: set it to 0"
        );
        self.check_batch(&tasks, index.triples.get(&Part::Train).copied().unwrap_or(0))
    }

    /// Whether `triples`, those to learn from, fill a step of `tasks`.
    pub(super) fn check_batch(&self, tasks: &[Task], triples: u64) -> anyhow::Result<()> {
        let (table, batch) = (self.table, self.config.stream.items());
        let on_graph = tasks.iter().any(|task| task.made_of() == Material::Triples);
        anyhow::ensure!(
            !on_graph || batch.is_none_or(|batch| batch as u64 <= triples),
            "{table}.stream.batching.items is {}, and the number of triples to learn from is {triples}: lower it",
            batch.unwrap_or(0)
        );
        Ok(())
    }
}
