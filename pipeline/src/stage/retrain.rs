//! Stage `retrain`: trains an encoder on the shards of the KIMERA tasks, and goes on where it was interrupted. Knows no
//! tensor.

mod heads;

use std::collections::BTreeMap;

use anyhow::Context as _;
use kg::split::Part;
use kg::whole::write_whole;
use model::Device;
use model::encoder::config as encoder;
use model::optim::adamw::AdamWConfig;
use model::optim::schedule::Schedule;
use model::output::{OutputConfig, Sizes};
use model::train::Trainer;
use model::train::config::{self as train, Alphas, Setup};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tasks::shard::index::Index;
use tasks::stream::prefetch::Prefetched;
use tasks::stream::schedule;
use tasks::stream::state::State;
use tasks::stream::steps::{self, Shards, Worker};
use tasks::task::Task;

use super::location::{Location, Place, Places};
use super::metrics::{self, Metrics};
use super::stream::Stream;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Resume, Stage};

/// The folder of the finished encoder within the artifact.
pub const MODEL: &str = "model";
/// The file with one line per step within the artifact.
pub const METRICS: &str = "metrics.jsonl";
/// The folder to go on from; it is gone from a finished artifact.
const STATE: &str = "state";
/// Written into [`STATE`] once its first state is whole.
const STATE_INDEX: &str = "state.json";
/// The parameters that were not trained, with the reason, within the artifact.
const FROZEN: &str = "frozen.json";
/// Written into [`MODEL`] once everything else is there.
const LAST_FILE: &str = "outputs.json";

/// The training's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Seed of fresh weights, dropout and the order of samples.
    pub seed: u64,
    /// Times that every triple is shown in every task.
    pub epochs: u64,
    /// The order in which samples are shown.
    pub stream: Stream,
    /// Steps between states that an interrupted run goes on from.
    pub checkpoint_every: u64,
    /// The encoder to begin with.
    pub encoder: Encoder,
    /// How outputs are made.
    pub outputs: OutputConfig,
    /// Weights of the tasks' losses.
    pub alphas: Alphas,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Steps over which the rate rises to it.
    pub warmup_steps: u64,
    /// Constants of the optimiser.
    pub adamw: AdamWConfig,
    /// Largest norm of all gradients together.
    pub clip_norm: f64,
    /// Beginnings of the names of parameters that must not move.
    pub frozen: Vec<String>,
    /// What a head mask does; without it every head is trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<heads::Config>,
}

impl Config {
    /// Refuses settings that no training can come of, before any stage runs.
    fn check(&self, tasks: &[Task]) -> anyhow::Result<()> {
        let counts = [
            ("epochs", self.epochs),
            ("stream.steps_ahead", self.stream.steps_ahead as u64),
            ("checkpoint_every", self.checkpoint_every),
        ];
        self.stream.check()?;
        for (key, value) in counts {
            anyhow::ensure!(value > 0, "retrain.{key} is 0, expected at least 1");
        }
        for task in Task::ALL {
            let (name, has) = (task.name(), tasks.contains(&task));
            match self.alphas.of(task) {
                Some(alpha) => {
                    anyhow::ensure!(
                        alpha == 0.0 || has,
                        "retrain.alphas.{name} is {alpha}, but shards.tasks has no {name}: set it to 0, or build that task's shards"
                    );
                    anyhow::ensure!(
                        alpha > 0.0 || !has || !self.stream.schedule.counts_batches(),
                        "retrain.alphas.{name} is {alpha}, but with this schedule {name} takes turns of its own: leave it out of shards.tasks"
                    );
                }
                None => anyhow::ensure!(
                    !has,
                    "shards.tasks has {name}, which KIMERA has no output for: leave it out of the shards that are trained on"
                ),
            }
        }
        let rate = self.learning_rate;
        anyhow::ensure!(rate > 0.0 && rate.is_finite(), "retrain.learning_rate is {rate}, expected above 0");
        Ok(())
    }
}

/// The encoder to begin with: one of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// A folder with `config.json` and `model.safetensors` of a BERT.
    #[serde(skip_serializing)]
    pub checkpoint: Option<Location>,
    /// Sizes of one with fresh weights.
    pub fresh: Option<Fresh>,
}

/// Sizes of an encoder with fresh weights; names as in `transformers.BertConfig`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fresh {
    /// Width of a hidden state.
    pub hidden_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Attention heads of a layer.
    pub num_attention_heads: usize,
    /// Width of the feed-forward part.
    pub intermediate_size: usize,
    /// Longest row in tokens.
    pub max_position_embeddings: usize,
    /// Dropout of hidden states.
    pub hidden_dropout_prob: f64,
    /// Dropout of attention probabilities.
    pub attention_probs_dropout_prob: f64,
}

/// The stage.
#[derive(Debug)]
pub struct Retrain {
    config: Config,
    checkpoint: Option<Place>,
    mask: Option<Place>,
    /// What made the shards.
    shards: super::shards::Shards,
}

impl Retrain {
    /// The stage for `config`, on the shards that `shards` makes.
    ///
    /// # Errors
    /// When the config names both kinds of encoder, or neither, or a place that cannot be meant.
    pub fn new(config: &Config, shards: super::shards::Shards, places: &Places<'_>) -> anyhow::Result<Self> {
        config.check(&shards.config.tasks)?;
        let checkpoint = match (&config.encoder.checkpoint, &config.encoder.fresh) {
            (Some(folder), None) => Some(folder.place("retrain.encoder.checkpoint", places)?),
            (None, Some(_)) => None,
            _ => anyhow::bail!(
                "[retrain.encoder] needs either `checkpoint` or a table `fresh`, not both and not neither"
            ),
        };
        let named = config.encoder.checkpoint.as_ref();
        let mask = config.heads.as_ref().map(|heads| heads.place(places, named)).transpose()?.flatten();
        Ok(Self { config: config.clone(), checkpoint, mask, shards })
    }

    /// Sizes and settings of the training, from the config, the shards and, if there is one, the checkpoint.
    fn setup(&self, context: &Context, index: &Index, total_steps: u64) -> anyhow::Result<Setup> {
        let encoder = match (&self.checkpoint, &self.config.encoder.fresh) {
            (Some(place), _) => {
                let loaded = model::checkpoint::load(&place.path(context)?, &device())?;
                context.record("drawn_anew", loaded.fresh);
                context.record("left_out", loaded.left_out);
                loaded.config
            }
            (None, Some(fresh)) => fresh.config(index),
            (None, None) => anyhow::bail!("there is no encoder to begin with"),
        };
        anyhow::ensure!(
            encoder.vocab_size == index.tokenizer.size,
            "the encoder has {} token ids and the shards' vocabulary {}: build the shards with the encoder's own \
             vocabulary (vocabulary.file)",
            encoder.vocab_size,
            index.tokenizer.size
        );
        let longest = self.shards.longest(index);
        anyhow::ensure!(
            encoder.max_position_embeddings >= longest,
            "the longest row has {longest} tokens and the encoder {} positions: raise max_position_embeddings or lower \
             shards.layout.limits.node",
            encoder.max_position_embeddings
        );
        anyhow::ensure!(
            index.relations.len() > 1 || self.config.alphas.relation == 0.0,
            "the graph has one relation only, so there is nothing to predict: set retrain.alphas.relation to 0"
        );
        let (batch, triples) =
            (self.config.stream.items(), index.triples.get(&Part::Train).copied().unwrap_or(0));
        anyhow::ensure!(
            batch.is_none_or(|batch| batch as u64 <= triples),
            "retrain.stream.batching asks for {} triples in a step, but there are only {triples}: lower it",
            batch.unwrap_or(0)
        );
        let (heads, mask) = heads::read(self.config.heads.as_ref(), self.mask.as_ref(), context)?;
        let Config { seed, learning_rate, warmup_steps, clip_norm, .. } = self.config;
        Ok(Setup {
            encoder,
            outputs: self.config.outputs.clone(),
            sizes: Sizes { relations: index.relations.len() },
            mask,
            train: train::Config {
                seed,
                schedule: Schedule { peak: learning_rate, warmup_steps, total_steps },
                adamw: self.config.adamw.clone(),
                clip_norm,
                alphas: self.config.alphas.clone(),
                frozen: self.config.frozen.clone(),
                heads,
                patience: None,
                // With KIMERA's schedule every step shows all tasks; others have shown all by the end, or one was never trained.
                covered_by: if self.config.stream.schedule == schedule::Schedule::Kimera {
                    1
                } else {
                    total_steps
                },
            },
        })
    }

    /// A trainer and a stream at the first step, or where an interrupted run left them.
    fn start(&self, context: &Context, setup: Setup, stream: &mut steps::Stream) -> anyhow::Result<Trainer> {
        let folder = context.out().join(STATE);
        if folder.join(STATE_INDEX).exists() {
            let (trainer, state) = Trainer::resume(setup, &folder, &device())?;
            let state: State = serde_json::from_value(state)
                .with_context(|| format!("{}: the stream's state", folder.display()))?;
            stream.resume(&state)?;
            return Ok(trainer);
        }
        std::fs::create_dir_all(&folder)?;
        Ok(match &self.checkpoint {
            Some(place) => Trainer::from_checkpoint(setup, &place.path(context)?, &device())?,
            None => Trainer::new(setup, &device())?,
        })
    }

    /// Steps until the end, then writes the checkpoint. The checkpoint's last file says that training is done.
    fn train(&self, context: &Context, index: &Index) -> anyhow::Result<()> {
        let folder = context.artifact("shards")?;
        let shards = Shards { redraw: self.shards.redraw(context)?, ..Shards::in_folder(folder, index) };
        let mut stream =
            steps::Stream::new(&shards, &self.config.stream.config(self.config.seed), Worker::ONLY)?;
        let steps_per_epoch = stream.steps_per_epoch().context("the stream does not know its steps")?;
        let total_steps = self.config.epochs * steps_per_epoch;
        let setup = self.setup(context, index, total_steps)?;
        let mut trainer = self.start(context, setup, &mut stream)?;
        let mut stream = Prefetched::new(stream, self.config.stream.steps_ahead)?;
        let state = context.out().join(STATE);
        let mut metrics = Metrics::open(&context.out().join(METRICS), trainer.steps())?;
        let progress = context.progress();
        progress.unit("steps");
        progress.total_rows(total_steps);
        progress.add_rows(trainer.steps());
        while trainer.steps() < total_steps {
            context.check()?;
            let batches = stream.next_step()?;
            let record = trainer.step(trainer.steps() / steps_per_epoch, &batches)?;
            metrics.push(&record)?;
            progress.add_rows(1);
            if trainer.steps().is_multiple_of(self.config.checkpoint_every) {
                metrics.sync()?;
                trainer.save_state(&state, &serde_json::to_value(stream.state())?)?;
            }
        }
        metrics.sync()?;
        let frozen = serde_json::to_vec_pretty(&trainer.frozen_in_words())?;
        write_whole(&context.out().join(FROZEN), &frozen)?;
        let model = context.out().join(MODEL);
        std::fs::create_dir_all(&model)?;
        Ok(trainer.save_checkpoint(&model)?)
    }
}

impl Fresh {
    fn config(&self, index: &Index) -> encoder::Config {
        encoder::Config {
            vocab_size: index.tokenizer.size,
            hidden_size: self.hidden_size,
            num_hidden_layers: self.num_hidden_layers,
            num_attention_heads: self.num_attention_heads,
            intermediate_size: self.intermediate_size,
            max_position_embeddings: self.max_position_embeddings,
            type_vocab_size: 2,
            hidden_dropout_prob: self.hidden_dropout_prob,
            attention_probs_dropout_prob: self.attention_probs_dropout_prob,
            initializer_range: 0.02,
            layer_norm_eps: 1e-12,
            pad_token_id: index.tokenizer.special.padding,
        }
    }
}

impl Stage for Retrain {
    fn name(&self) -> &'static str {
        "retrain"
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "retrain", &self.config);
        self.checkpoint.iter().chain(&self.mask).for_each(|place| place.describe(to));
    }

    fn inputs(&self) -> Vec<Input> {
        // The audit is an input so that nothing is trained on shards that leak.
        let artifacts = ["shards", "audit"].map(Input::artifact);
        // Negatives of later epochs are drawn from what the shards were made of.
        artifacts
            .into_iter()
            .chain(self.shards.inputs())
            .chain(self.checkpoint.iter().chain(&self.mask).map(Place::input))
            .collect()
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let index = Index::read(context.artifact("shards")?)?;
        // A kill between the finished checkpoint and the end of the stage must not cost the training.
        if !context.out().join(MODEL).join(LAST_FILE).exists() {
            self.train(context, &index)?;
        }
        let state = context.out().join(STATE);
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        let frozen: BTreeMap<String, String> =
            serde_json::from_slice(&std::fs::read(context.out().join(FROZEN))?)?;
        let frozen = frozen.iter().map(|(name, why)| json!({"parameter": name, "frozen_because": why}));
        context.record("frozen", frozen.collect::<Vec<_>>());
        context.record("epochs", metrics::by_epoch(&context.out().join(METRICS))?);
        Ok(())
    }
}

/// Where tensors live. CUDA comes with its own issue; until then every run is on the CPU.
fn device() -> Device {
    Device::Cpu
}
