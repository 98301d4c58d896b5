//! Stage `align`: an encoder learns that names of one entity mean the same (SapBERT: Liu et al. 2021).
//!
//! A sample is a pair of names of an entity. Within a batch each name is compared with all others: those of its entity are to be near, all others far, but for names that are its entity's
//! as well. It goes on where it was interrupted.

pub(crate) mod config;
mod facts;
mod names;
mod shown;

use base::whole::write_whole;
use downstream::encode::{Cut, Frame};
use downstream::tagging::Subwords;
use downstream::token_classes::Classing;
use kg::table::Graph;
use model::attention::Chosen;
use model::optim::adamw::Missing;
use model::optim::schedule::Schedule;
use model::output::{Outline, Output, OutputDropout, Task};
use model::params::OUTPUTS;
use model::train::{self, Setup, Trainer};
use model::{Device, encoder::config::Config as Sizes};
use tasks::shard::hub;
use tasks::token::encode::Case;
use tasks::token::folder;

use super::compute::Compute;
use super::encoder::{self, Base, MODEL};
use super::finetune::quirks::PairOrder;
use super::location::Places;
use super::metrics;
use super::retrain::heads;
use super::training::steps::{Sharing, Training, ended};
use super::training::{METRICS, SHAPES_NOTHING};
use super::{frozen, vocabulary};
use crate::bundle::card::{self, Card, Kind, Said};
use crate::bundle::task_file::{self, Asked, TaskFile};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Resume, Stage};
pub(crate) use config::Config;
use config::Relations;
use facts::Facts;
use names::Names;
use shown::{Learnt, Shown};

/// The name of the stage, and of the table.
const NAME: &str = "align";
/// The name of the output.
const OUTPUT: &str = "names";
/// The name of that of triples.
const RELATIONS: &str = "relations";
/// The keys of the relations, in the order of their vectors.
const RELATIONS_FILE: &str = "relations.json";

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
        "[align] learns names of the entities of a graph, but the config has none: add [sources]"
    );
    let (vocabulary, sizes) = (words.clone(), super::sizes(config, places)?);
    Ok(Some((align, From { base, vocabulary, compute: config.compute, sizes })))
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
        if let Some(sizes) = &from.sizes {
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

    /// What the model's outputs are; `facts` are the triples that are learnt, if any are.
    fn outline(&self, facts: Option<&Facts>) -> Outline {
        let output = Output::Metric { loss: self.config.loss, margin: self.config.margin.within() };
        let relations =
            self.config.relations.zip(facts).map(|(Relations { weight, margin, .. }, facts)| Task {
                name: RELATIONS.to_owned(),
                output: Output::Translation { relations: facts.relations.len(), margin },
                alpha: weight,
            });
        let names = Task { name: OUTPUT.to_owned(), output, alpha: 1.0 };
        Outline {
            tasks: std::iter::once(names).chain(relations).collect(),
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
        encoder::room(NAME, config.max_tokens, encoder.max_position_embeddings)?;
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

    fn train(&self, context: &Context, learnt: Learnt<'_>, frame: Frame) -> anyhow::Result<()> {
        let config = &self.config;
        let micro_batches = config.epochs.saturating_mul(learnt.batches(config) as u64);
        let all = micro_batches.div_ceil(config.accumulate);
        let planned = config.max_steps.unwrap_or(all).min(all);
        let device = self.from.compute.device(context)?;
        let training = Training {
            context,
            setup: self.setup(context, self.outline(learnt.facts), planned)?,
            device: &device,
            micro_batches,
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
            |_, step| Ok(Shown::new(learnt, config, frame, step)),
        )
    }

    /// Puts what it takes to ask the model beside its weights.
    fn complete(&self, context: &Context) -> anyhow::Result<()> {
        let folder = context.out().join(MODEL);
        let (source, case) = &self.from.vocabulary;
        let vocabulary = source.load(context, *case)?;
        folder::add(&folder, &source.path(context)?, &vocabulary, Some(self.config.max_tokens))?;
        let task = task_file::Task {
            name: OUTPUT.to_owned(),
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
            max_tokens: self.config.max_tokens,
            cut: Cut::Longest,
            subwords: Subwords::default(),
            pairs: PairOrder::default(),
            knowledge: None,
        };
        file.write(&folder)?;
        Ok(model::checkpoint::digests::seal(&folder)?)
    }

    /// What the finished model says of itself.
    fn card(&self, context: &Context, learnt: Learnt<'_>) -> anyhow::Result<()> {
        let (out, Learnt { names, facts }) = (context.out(), learnt);
        let counts = names.counts;
        let beside = self.config.relations.zip(facts).map_or_else(String::new, |(relations, facts)| {
            format!(", and beside each {} of {} triples", relations.batch, facts.counts.learnt)
        });
        let training = format!(
            "## Training\n\nStage `{}`: {} steps over {} pairs of names of {} entities, batches of {}{beside}, seed {}, peak learning rate {}.\n\n{}",
            self.name,
            ended(out)?.steps,
            counts.pairs,
            counts.entities - counts.with_one_name,
            self.config.batch,
            self.config.seed,
            self.config.learning_rate,
            card::table(&metrics::by_epoch(&out.join(METRICS))?)
        );
        let of_triples = facts.map(|facts| hub::sources_of_triples(&facts.sources)).into_iter().collect();
        let licences = vec![card::LICENCES.to_owned()];
        let says = "the cosine of two names' vectors";
        let tasks = vec![Said { name: OUTPUT.to_owned(), says, classes: vec![] }];
        let card = Card {
            stage: self.name.clone(),
            kind: Kind::Tasks { tasks, attention: None, class: None },
            sizes: model::checkpoint::sizes(&out.join(MODEL))?,
            trained: [vec![training, hub::sources_of_names(&names.sources)], of_triples, licences].concat(),
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
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config_but(to, NAME, &self.config, &SHAPES_NOTHING);
        self.from.compute.describe(to);
        self.from.base.describe(to);
        self.from.vocabulary.0.describe_with(self.from.vocabulary.1, to);
        self.mask.iter().for_each(|mask| mask.describe(to));
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.from.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let own = [Input::artifact("triples"), self.from.base.input()];
        let split = self.config.relations.map(|_| Input::artifact("split"));
        let mask = self.mask.iter().map(heads::Source::input);
        super::location::once(own.into_iter().chain(split).chain(mask).chain(self.from.vocabulary.0.inputs()))
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.from.base.name())
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let vocabulary = self.from.vocabulary.0.load(context, self.from.vocabulary.1)?;
        let triples = context.artifact("triples")?;
        let graph = Graph::read(triples)?;
        let names = Names::new(&graph, triples, &self.config, &vocabulary)?;
        context.record("names", serde_json::to_value(names.counts)?);
        let facts = self.config.relations.map(|_| Facts::read(&graph, context.artifact("split")?, &names));
        let facts = facts.transpose()?;
        drop(graph);
        if let Some(facts) = &facts {
            context.record("relations", serde_json::to_value(facts.counts)?);
        }
        let learnt = Learnt { names: &names, facts: facts.as_ref() };
        let frame = Frame { special: vocabulary.special(), most: self.config.max_tokens, cut: Cut::Longest };
        self.train(context, learnt, frame)?;
        self.complete(context)?;
        if let Some(facts) = &facts {
            let keys = serde_json::to_vec_pretty(&facts.relations)?;
            write_whole(&context.out().join(RELATIONS_FILE), &keys)?;
        }
        self.card(context, learnt)?;
        let out = context.out();
        context.record("steps_without_hard_pairs", metrics::without_loss(&out.join(METRICS), OUTPUT)?);
        super::retrain::record(context, out)
    }
}
