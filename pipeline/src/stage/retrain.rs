//! Stages that train an encoder on shards, `pretrain` and `retrain`: what they read, what they are made from, what they leave. They go on where they were
//! interrupted.

mod card;
mod checks;
pub(crate) mod config;
pub(crate) mod heads;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use batch::task::Task;
use model::Device;
use model::attention::Chosen;
use model::checkpoint::masked_lm;
use model::optim::adamw::Missing;
use model::optim::schedule::Schedule;
use model::output::Outline;
use model::output::shards::Sizes;
use model::train::heads::Mode;
use model::train::patience::Patience;
use model::train::{self, Setup, Trainer};
use serde_json::{Value, json};
use tasks::shard::index::Index;
use tasks::stream::lane::Share;
use tasks::stream::schedule;
use tasks::stream::steps::{self as stream, Shards, Worker};
use tasks::task::has_negatives;

use super::compute::Compute;
use super::encoder::{self, Base, MODEL};
use super::frozen;
use super::location::Places;
use super::metrics;
use super::training::steps::{Evaluation, FROZEN, Sharing, Training, ended};
use super::training::{METRICS, SHAPES_NOTHING};
use crate::config::range::inside;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::ranks::{Joined, Others};
use crate::engine::stage::{Artifacts, Input, Resume, Stage};
pub(crate) use config::Config;
use steps::{HeldOut, Streamed};

/// Tensors of outputs that are named among the facts of a training.
const LISTED: usize = 100;

/// A training: which of the stages it is, and where what it needs comes from.
#[derive(Debug)]
pub(crate) struct Retrain {
    /// The stage's name.
    name: String,
    /// The table of the config that it is of.
    table: &'static str,
    config: Config,
    from: From,
    mask: Option<heads::Source>,
}

/// What a training is made from besides its own settings.
#[derive(Debug, Clone)]
pub(crate) struct From {
    /// The encoder to begin with.
    pub base: Base,
    /// What makes the shards.
    pub shards: super::shards::Shards,
    /// What it computes on and in.
    pub compute: Compute,
    /// Sizes of the encoder, as far as they are known.
    pub sizes: Option<model::encoder::config::Config>,
}

/// The stages that a training can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// On texts, before everything else.
    Pretrain,
    /// On the graph.
    Retrain,
    /// On the graph, one of several ways that are compared, with the mask of a stage.
    Row {
        /// The way's name.
        name: &'a str,
        /// The stage that searches the mask, if it needs one.
        mask: Option<&'a str>,
    },
}

/// Which rank of a training this process is.
enum Role {
    /// The first, or the only one.
    Lead,
    /// Another one, with what rank 0 has said.
    Follow { joined: Joined, more: Value },
}

impl Role {
    /// Its part of every batch.
    fn share(&self, context: &Context) -> Share {
        match self {
            Role::Lead => Share { rank: 0, world: context.others().map_or(1, Others::world) },
            Role::Follow { joined, .. } => Share { rank: joined.rank, world: joined.world },
        }
    }
}

impl Retrain {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config contradicts itself or the shards, or names a place that is invalid.
    pub(crate) fn new(
        which: Which<'_>,
        config: &Config,
        from: From,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        let table = if which == Which::Pretrain { "pretrain" } else { "retrain" };
        config.check(table, &from.shards.config)?;
        if let Some(lora) = &config.lora {
            let of = if matches!(which, Which::Row { .. }) { "graft" } else { table };
            inside(of, lora.check(from.sizes.as_ref()))?;
            from.compute.on_cpu(&format!("{of}.lora"))?;
        }
        frozen::check(&format!("{table}.frozen"), &config.frozen, from.sizes.as_ref(), &["outputs."])?;
        let (name, mask) = match which {
            Which::Pretrain => {
                anyhow::ensure!(
                    config.heads.is_none(),
                    "[pretrain.heads]: a head mask is searched on what was pretrained; leave the table out"
                );
                (table.to_owned(), None)
            }
            Which::Retrain => {
                let heads = config.heads.as_ref();
                (table.to_owned(), heads.map(|heads| heads.source(table, places)).transpose()?.flatten())
            }
            Which::Row { name, mask } => {
                (format!("{table}-{name}"), mask.map(|stage| heads::Source::Stage(stage.to_owned())))
            }
        };
        Ok(Self { name, table, config: config.clone(), from, mask })
    }

    /// Sizes and settings of the training, from the config, the shards and the encoder to begin with.
    fn setup(&self, context: &Context, index: &Index, planned: u64) -> anyhow::Result<Setup> {
        self.warn(context, planned);
        let base = self.from.base.folder(context)?;
        let loaded = model::checkpoint::load(&base, &Device::Cpu)?;
        context.record("drawn_anew", loaded.fresh);
        let outline = self.outline(index);
        let mut left_out = loaded.left_out;
        if outline.has_masked_lm() {
            let published = masked_lm::published(&left_out);
            left_out.retain(|name| !published.contains(name));
            context.record("loaded_outputs", published);
        }
        let (listed, more) = left_out.split_at(left_out.len().min(LISTED));
        context.record("left_out", listed.to_vec());
        if !more.is_empty() {
            context.record("left_out_more", more.len());
        }
        let encoder =
            encoder::with_dropout(loaded.config, self.config.hidden_dropout, self.config.attention_dropout);
        context.record("padded_rows", self.check(&encoder, index)?);
        self.check_shards(index)?;
        let (source, case) = (&self.from.shards.vocabulary, self.from.shards.case);
        source.belongs(&source.load(context, case)?, &base)?;
        let mask = self.mask.as_ref().map(|mask| mask.read(context)).transpose()?;
        let Config { seed, learning_rate, warmup_steps, clip_norm, .. } = self.config;
        Ok(Setup {
            encoder,
            outline,
            attention: Chosen::default(),
            mask,
            gates: None,
            train: train::Config {
                seed,
                schedule: Schedule {
                    peak: learning_rate,
                    warmup_steps,
                    total_steps: planned,
                    decay: self.config.schedule,
                    reference: None,
                },
                adamw: self.config.adamw.clone(),
                missing: Missing::Zero,
                optimiser: self.config.optimiser.clone(),
                clip_norm,
                frozen: self.config.frozen.clone(),
                heads: heads::heads(self.config.heads.as_ref()),
                lora: self.config.lora.clone(),
                accumulate: self.config.accumulate,
                patience: self.patience(),
                // With KIMERA's schedule every step shows all tasks; others have shown all by the end, or one was never trained.
                covered_by: if self.config.stream.schedule == schedule::Schedule::Kimera {
                    1
                } else {
                    planned
                },
                recompute: self.from.compute.recompute,
                dtype: self.from.compute.dtype,
            },
        })
    }

    /// The tasks with their outputs.
    fn outline(&self, index: &Index) -> Outline {
        let sizes = Sizes { relations: index.relations.len(), tags: index.classes.len() };
        self.config.task_heads.outline(&self.config.alphas, sizes)
    }

    fn patience(&self) -> Option<Patience> {
        let patience = self.config.patience.as_ref()?;
        Some(Patience { every: patience.every, evaluations: patience.evaluations })
    }

    fn train(&self, context: &Context, index: &Index, role: Role) -> anyhow::Result<()> {
        let tasks = self.config.tasks(&self.from.shards.config.tasks);
        let index = &index.of_tasks(&tasks);
        let shards = Shards::in_folder(context.artifact("shards")?, index);
        let redraw = if tasks.iter().any(|&task| has_negatives(task)) {
            self.from.shards.redraw(context, index)?
        } else {
            None
        };
        let shards = Shards { redraw, ..shards };
        let how = self.config.stream.config(self.config.seed);
        let share = role.share(context);
        let stream = stream::Stream::new(&shards, &how, Worker { share, ..Worker::ONLY })?;
        let planned = self.planned(&stream)?;
        let setup = self.setup(context, index, planned.steps)?;
        let outline = setup.outline.clone();
        let held_out = self.config.patience.as_ref().filter(|_| share.rank == 0);
        let held_out = held_out.map(|patience| HeldOut::new(&shards, &how, &outline, patience)).transpose();
        let held_out = held_out.with_context(|| format!("{}.patience", self.table))?;
        let blind: Vec<&str> = steps::without_valid(index).into_iter().map(Task::name).collect();
        if held_out.as_ref().is_some_and(HeldOut::is_of_all) && !blind.is_empty() {
            context.warn(format!(
                "{}.patience goes by the losses of the part `valid`, which {} lack: theirs do not count",
                self.table,
                blind.join(", ")
            ));
        }
        let device = self.from.compute.device(context)?;
        let training = Training {
            context,
            setup,
            device: &device,
            planned,
            checkpoint_every: self.config.checkpoint_every,
            evaluation: held_out.as_ref().map(|held_out| held_out as &dyn Evaluation),
            sharing: Sharing::Batches,
        };
        let begin = |setup: Setup| {
            Ok(match setup.train.heads.mode {
                // The sizes of the encoder to begin with, and none of its weights.
                Mode::Scratch => Trainer::new(setup, &device)?,
                _ => Trainer::from_checkpoint(setup, &self.from.base.folder(context)?, &device)?,
            })
        };
        let ahead = self.config.stream.steps_ahead;
        let batches = |state, steps| Streamed::new(stream, &outline, ahead, state, steps);
        match role {
            Role::Lead => training.to_the_end(begin, batches),
            Role::Follow { joined, more } => training.follow(joined, &more, begin, batches),
        }
    }
}

impl Stage for Retrain {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        7
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config_but(to, self.table, &self.config, &SHAPES_NOTHING);
        self.from.compute.describe(to);
        self.from.base.describe(to);
        self.mask.iter().for_each(|mask| mask.describe(to));
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.from.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.from.shards.trained_on();
        for input in std::iter::once(self.from.base.input()).chain(self.mask.iter().map(heads::Source::input))
        {
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        inputs
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.from.base.name())
    }

    fn foresee(&self, artifacts: &Artifacts<'_>) -> anyhow::Result<()> {
        self.from.base.early()?;
        let tasks = self.config.tasks(&self.from.shards.config.tasks);
        let Some(shards) = artifacts.of("shards") else {
            // Whatever else the shards will be, they have no other triples to learn from.
            let Some(split) = artifacts.of("split") else { return Ok(()) };
            return self.check_batch(&tasks, checks::learnt_from(&split)?);
        };
        let index = Index::read(&shards)?.of_tasks(&tasks);
        self.check_shards(&index)?;
        if let Some(sizes) = &self.from.sizes {
            self.room(sizes.max_position_embeddings, &index)?;
        }
        let (how, shards) = (self.config.stream.config(self.config.seed), Shards::in_folder(&shards, &index));
        if let Some(patience) = &self.config.patience {
            steps::held_out(&shards, &how, patience).with_context(|| format!("{}.patience", self.table))?;
        }
        self.planned(&stream::Stream::new(&shards, &how, Worker::ONLY)?).map(drop)
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        self.train(context, &Index::read(context.artifact("shards")?)?, Role::Lead)?;
        let (source, case) = (&self.from.shards.vocabulary, self.from.shards.case);
        let vocabulary = source.load(context, case)?;
        let most = model::checkpoint::sizes(&context.out().join(MODEL))?.max_position_embeddings;
        tasks::token::folder::add(
            &context.out().join(MODEL),
            &source.path(context)?,
            &vocabulary,
            Some(most),
        )?;
        model::checkpoint::digests::seal(&context.out().join(MODEL))?;
        self.card(context)?;
        record(context, context.out())
    }

    fn follow(&self, context: &Context, joined: Joined, more: Value) -> anyhow::Result<()> {
        let index = Index::read(context.artifact("shards")?)?;
        self.train(context, &index, Role::Follow { joined, more })
    }
}

/// Leaves the facts of a finished training.
pub(super) fn record(context: &Context, folder: &Path) -> anyhow::Result<()> {
    let frozen: BTreeMap<String, String> = serde_json::from_slice(&std::fs::read(folder.join(FROZEN))?)?;
    let frozen = frozen.iter().map(|(name, why)| json!({"parameter": name, "frozen_because": why}));
    context.record("frozen", frozen.collect::<Vec<_>>());
    context.record("epochs", metrics::by_epoch(&folder.join(METRICS))?);
    context.record("training", serde_json::to_value(ended(folder)?)?);
    Ok(())
}
