//! Stage `align`: an encoder learns that names of one entity mean the same (SapBERT: Liu et al. 2021), or what stands where a triple has a blank (SimKGC: Wang et al. 2022).
//!
//! A sample is a pair of names of an entity, or a triple with a blank and a name. Within a batch each is compared with all others: what means the same is to be near, all else far, but for
//! names that mean the same as well. It goes on where it was interrupted.

mod answers;
pub(crate) mod config;
mod facts;
mod learnt;
mod names;
mod shown;

use downstream::encode::Cut;
use downstream::tagging::Subwords;
use downstream::token_classes::Classing;
use kg::table::Graph;
use model::attention::Chosen;
use model::optim::adamw::Missing;
use model::optim::schedule::Schedule;
use model::output::{Outline, OutputDropout, Task};
use model::params::OUTPUTS;
use model::train::{self, Setup, Trainer};
use model::{Device, encoder::config::Config as Sizes};
use tasks::builder::Layout;
use tasks::token::encode::Case;
use tasks::token::folder;

use super::compute::Compute;
use super::encoder::{self, Base, MODEL};
use super::finetune::quirks::PairOrder;
use super::location::Places;
use super::metrics;
use super::retrain::heads;
use super::training::steps::{Batches, Planned, Sharing, Training, ended};
use super::training::{METRICS, SHAPES_NOTHING};
use super::{frozen, vocabulary};
use crate::bundle::card::{self, Card, Kind, Said};
use crate::bundle::task_file::{self, Asked, TaskFile};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Artifacts, Input, Resume, Stage};
pub(crate) use config::Config;
use learnt::Trained;

/// The name of the stage, and of the table.
const NAME: &str = "align";
/// The name of the output of triples beside names.
const RELATIONS: &str = "relations";

/// The stage.
#[derive(Debug)]
pub(crate) struct Aligning {
    name: String,
    config: Config,
    from: From,
    mask: Option<heads::Source>,
}

/// What it is made from besides its own settings.
#[derive(Debug, Clone)]
pub(crate) struct From {
    /// The encoder to begin with.
    pub base: Base,
    /// What names are encoded with, and whether a `vocab.txt` keeps case.
    pub vocabulary: (vocabulary::Source, Case),
    /// How the columns of a triple become a row.
    pub layout: Layout,
    /// What is computed on and in.
    pub compute: Compute,
    /// Sizes of the encoder, as far as they are known.
    pub sizes: Option<Sizes>,
}

/// The table `[align]`, if the config has one, and what it is made from besides `base`.
///
/// # Errors
/// When the config has no graph, or names a place that is invalid.
pub(crate) fn described<'c>(
    config: &'c crate::config::Config,
    base: Base,
    words: &(vocabulary::Source, Case),
    places: &Places<'_>,
) -> anyhow::Result<Option<(&'c Config, From)>> {
    let Some(align) = &config.align else { return Ok(None) };
    anyhow::ensure!(
        config.sources.is_some(),
        "[align] learns from a graph, but the config has none: add [sources]"
    );
    let (vocabulary, sizes) = (words.clone(), super::sizes(config, places)?);
    let (layout, compute) = (config.shards.layout, config.compute);
    Ok(Some((align, From { base, vocabulary, layout, compute, sizes })))
}

/// The stages that an alignment can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one of an encoder by itself.
    Align,
    /// That of a comparison, with the mask of a stage.
    Row {
        /// The stage's name.
        name: String,
        /// The stage that searches the mask.
        mask: String,
    },
}

impl Aligning {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When the config contradicts itself or the encoder, or names a place that is invalid.
    pub(crate) fn new(
        which: Which,
        config: &Config,
        from: From,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        if config.relations.is_some() {
            from.compute.on_cpu("align.relations")?;
        }
        frozen::check("align.frozen", &config.frozen, from.sizes.as_ref(), &[])?;
        if let (Some(sizes), None) = (&from.sizes, &config.answers) {
            encoder::room(NAME, config.max_tokens, sizes.max_position_embeddings)?;
        }
        let (name, mask) = match which {
            Which::Align => {
                let heads = config.heads.as_ref();
                (NAME.to_owned(), heads.map(|heads| heads.source(NAME, places)).transpose()?.flatten())
            }
            Which::Row { name, mask } => (name, Some(heads::Source::Stage(mask))),
        };
        Ok(Self { name, config: config.clone(), from, mask })
    }

    fn outline(&self, tasks: Vec<Task>) -> Outline {
        Outline {
            tasks,
            pooling: self.config.pooling,
            // A vector has no layer whose input could be dropped.
            dropout: 0.0,
            thinned: OutputDropout::default(),
            labels: None,
            knowledge: None,
        }
    }

    fn setup(&self, context: &Context, outline: Outline, planned: u64) -> anyhow::Result<Setup> {
        let base = self.from.base.folder(context)?;
        let loaded = model::checkpoint::load(&base, &Device::Cpu)?;
        context.record("drawn_anew", loaded.fresh);
        context.record("left_out", loaded.left_out);
        let config = &self.config;
        let encoder = encoder::with_dropout(loaded.config, config.hidden_dropout, config.attention_dropout);
        let vocabulary = self.from.vocabulary.0.load(context, self.from.vocabulary.1)?;
        context.record("padded_rows", encoder::fits(vocabulary.size(), vocabulary.special(), &encoder)?);
        if config.answers.is_none() {
            encoder::room(NAME, config.max_tokens, encoder.max_position_embeddings)?;
        }
        self.from.vocabulary.0.belongs(&vocabulary, &base)?;
        Ok(Setup {
            encoder,
            outline,
            attention: Chosen::default(),
            mask: self.mask.as_ref().map(|mask| mask.read(context)).transpose()?,
            gates: None,
            train: train::Config {
                seed: config.seed,
                schedule: Schedule {
                    peak: config.learning_rate,
                    warmup_steps: config.warmup_steps,
                    total_steps: planned,
                    decay: config.schedule,
                    reference: None,
                },
                adamw: config.adamw.clone(),
                missing: Missing::Zero,
                optimiser: config.optimiser.clone(),
                clip_norm: config.clip_norm,
                frozen: config.frozen.clone(),
                heads: heads::heads(config.heads.as_ref()),
                lora: None,
                accumulate: config.accumulate,
                patience: None,
                // A batch may have no hard pair.
                covered_by: planned,
                recompute: self.from.compute.recompute,
                dtype: self.from.compute.dtype,
            },
        })
    }

    /// Trains on so many batches an epoch, which `shown` shows from a step on.
    fn train<B: Batches>(
        &self,
        context: &Context,
        tasks: Vec<Task>,
        batches: usize,
        shown: impl FnOnce(u64) -> B,
    ) -> anyhow::Result<()> {
        let config = &self.config;
        let micro_batches = config.epochs.saturating_mul(batches as u64);
        let planned = Planned::new(micro_batches, config.accumulate, config.max_steps);
        let device = self.from.compute.device(context)?;
        let training = Training {
            context,
            setup: self.setup(context, self.outline(tasks), planned.steps)?,
            device: &device,
            planned,
            checkpoint_every: config.checkpoint_every,
            evaluation: None,
            sharing: Sharing::Nothing,
        };
        training.to_the_end(
            |setup| {
                let trainer = Trainer::from_checkpoint(setup, &self.from.base.folder(context)?, &device)?;
                anyhow::ensure!(
                    trainer.params().iter().any(|(name, _)| {
                        !trainer.frozen().contains_key(name) && !name.starts_with(OUTPUTS)
                    }),
                    "[align] trains nothing: align.frozen and align.heads leave no parameter; an encoder's vectors have no layer of their own"
                );
                Ok(trainer)
            },
            |_, step| Ok(shown(step)),
        )
    }

    /// Puts what it takes to ask the model beside its weights: `said` of what, over texts of so many tokens.
    fn complete(&self, context: &Context, said: &Trained) -> anyhow::Result<()> {
        let folder = context.out().join(MODEL);
        let (source, case) = &self.from.vocabulary;
        let vocabulary = source.load(context, *case)?;
        folder::add(&folder, &source.path(context)?, &vocabulary, Some(said.max_tokens))?;
        let task = task_file::Task {
            name: said.output.to_owned(),
            asked: Asked::Similarity,
            pairs: true,
            classes: vec![],
            tags: Classing::default(),
            max_tokens: None,
            spans: None,
        };
        let file = TaskFile {
            format: task_file::FORMAT.to_owned(),
            version: task_file::VERSION,
            tasks: vec![task],
            max_tokens: said.max_tokens,
            cut: Cut::Longest,
            subwords: Subwords::default(),
            pairs: PairOrder::default(),
            knowledge: None,
        };
        file.write(&folder)?;
        Ok(model::checkpoint::digests::seal(&folder)?)
    }

    /// What the finished model says of itself.
    fn card(&self, context: &Context, said: Trained) -> anyhow::Result<()> {
        let out = context.out();
        let training = format!(
            "## Training\n\nStage `{}`: {} steps over {}, seed {}, peak learning rate {}.\n\n{}",
            self.name,
            ended(out)?.steps,
            said.over,
            self.config.seed,
            self.config.learning_rate,
            card::table(&metrics::by_epoch(&out.join(METRICS))?)
        );
        let licences = vec![card::LICENCES.to_owned()];
        let tasks = vec![Said { name: said.output.to_owned(), says: said.says, classes: vec![] }];
        let card = Card {
            stage: self.name.clone(),
            kind: Kind::Tasks { tasks, attention: None, class: None },
            sizes: model::checkpoint::sizes(&out.join(MODEL))?,
            trained: [vec![training], said.sources, licences].concat(),
            scores: vec![],
            began_with: Some(card::of_base(&self.from.base, context)?),
        };
        card.write(out)
    }
}

impl Stage for Aligning {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        2
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config_but(to, NAME, &self.config, &SHAPES_NOTHING);
        self.from.compute.describe(to);
        self.from.base.describe(to);
        self.from.vocabulary.0.describe_with(self.from.vocabulary.1, to);
        self.from.vocabulary.0.describe_written(to);
        self.mask.iter().for_each(|mask| mask.describe(to));
        if self.config.answers.is_some() {
            describe::config(to, "shards.layout", &self.from.layout);
        }
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.from.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let own = [Input::artifact("triples"), self.from.base.input()];
        let is_of_triples = self.config.relations.is_some() || self.config.answers.is_some();
        let split = is_of_triples.then(|| Input::artifact("split"));
        let mask = self.mask.iter().map(heads::Source::input);
        super::location::once(own.into_iter().chain(split).chain(mask).chain(self.from.vocabulary.0.inputs()))
    }

    fn foresee(&self, _: &Artifacts<'_>) -> anyhow::Result<()> {
        self.from.base.early()
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.from.base.name())
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let vocabulary = self.from.vocabulary.0.load(context, self.from.vocabulary.1)?;
        let graph = Graph::read(context.artifact("triples")?)?;
        let said = match &self.config.answers {
            Some(answers) => self.blanks(context, graph, &vocabulary, answers)?,
            None => self.names(context, graph, &vocabulary)?,
        };
        self.complete(context, &said)?;
        self.card(context, said)?;
        super::retrain::record(context, context.out())
    }
}
