//! What the stages of fine-tunings are made of, whether encoders are compared or one is tried alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::encoder::config::Config as Sizes;
use tasks::token::encode::Case;

use super::best::Candidates;
use super::group::Group;
use super::{Row, mask, pruned, settings};
use crate::engine::stage::Stage;
use crate::stage::align;
use crate::stage::benchmark as tried;
use crate::stage::compute::Compute;
use crate::stage::corpus::Corpus;
use crate::stage::encoder::Base;
use crate::stage::finetune::attention::{self, Attending};
use crate::stage::finetune::config::{ClassWeights, Config as Finetuning, Source};
use crate::stage::finetune::scored::{Scored, Trained};
use crate::stage::finetune::{Chosen, Finetune, Looked, Tried, together};
use crate::stage::maps::Mapping;
use crate::stage::retrain::{self, From};
use crate::stage::scores::Whose;
use crate::stage::shards::Shards;
use crate::stage::submission::{HandedIn, Submission};
use crate::stage::vocabulary;

/// What the stages are made of besides the table `[graft]`.
pub(crate) struct Around<'a> {
    /// Names of the benchmarks, in order.
    pub benchmarks: Vec<String>,
    /// The table `[finetune]`.
    pub finetuning: &'a Finetuning,
    /// The tables `[[benchmarks]]`.
    pub tables: &'a [tried::Config],
    /// The tables `[[attentions]]`.
    pub attentions: &'a [attention::Config],
    /// How the maps that attentions attend by are made, if the config says so.
    pub mapping: Option<Arc<Mapping>>,
    /// What annotators say of the texts of benchmarks.
    pub parsed: BTreeMap<String, Corpus>,
    /// The tables `[[recipes]]`.
    pub recipes: &'a [together::Config],
    /// Benchmarks with masks of their own.
    pub own_masks: &'a [String],
    /// The table `[retrain]` and what it is made from, if there is one.
    pub retraining: Option<(&'a retrain::Config, From)>,
    /// The table `[align]` and what it is made from, if there is one.
    pub aligning: Option<(&'a align::Config, align::From)>,
    /// What makes the shards, if the config has a graph.
    pub shards: Option<&'a Shards>,
    /// What everything begins with.
    pub base: Base,
    /// Sizes of that encoder, as far as they are known.
    pub sizes: Option<Sizes>,
    /// What texts are encoded with, and whether a `vocab.txt` keeps case.
    pub words: (vocabulary::Source, Case),
    /// What is computed on and in.
    pub compute: Compute,
}

/// The stage of a fine-tuning.
pub(super) fn finetune_name(row: Row, benchmark: &str, seed: u64) -> String {
    stage_name(row.name(), benchmark, seed)
}

/// The same of a row by its name, which may be an attention's or a recipe's.
pub(super) fn stage_name(row: &str, benchmark: &str, seed: u64) -> String {
    format!("finetune-{row}-{benchmark}-{seed}")
}

/// The stage that writes what is handed in, if anything is.
pub(super) fn submission(of: Vec<HandedIn>) -> Option<Box<dyn Stage>> {
    (!of.is_empty()).then(|| Box::new(Submission { of }) as Box<dyn Stage>)
}

impl Around<'_> {
    pub(super) fn tried(&self, benchmark: &str) -> Tried {
        let read_as = self.trained_on(benchmark);
        let mut fixed = self.finetuning.fixed.of(read_as.unwrap_or(benchmark));
        if read_as.is_some() {
            // Of examples that nothing is trained on none weighs anything.
            fixed.class_weights = ClassWeights::None;
        }
        Tried {
            name: benchmark.to_owned(),
            vocabulary: self.words.0.clone(),
            case: self.words.1,
            compute: self.compute,
            fixed,
            attending: Attending::Plain,
        }
    }

    /// The benchmark whose models are tried on this one, if it has none of its own.
    pub(super) fn trained_on(&self, benchmark: &str) -> Option<&str> {
        self.tables.iter().find(|of| of.name == benchmark)?.trained_on.as_deref()
    }

    /// Benchmarks that an encoder is fine-tuned on by itself, each with those that its models are tried on as well.
    pub(super) fn trained(&self) -> impl Iterator<Item = &String> {
        self.by_itself().iter().filter(|benchmark| self.trained_on(benchmark).is_none())
    }

    /// The benchmarks that models of `benchmark` are tried on as well.
    pub(super) fn tried_too<'a>(&'a self, benchmark: &'a str) -> impl Iterator<Item = &'a String> {
        self.by_itself().iter().filter(move |other| self.trained_on(other) == Some(benchmark))
    }

    /// The benchmarks that a benchmark shares its masks with.
    pub(super) fn group(&self, benchmark: &str) -> Group<'_> {
        let on = self.trained_on(benchmark).unwrap_or(benchmark);
        self.own_masks.iter().find(|own| *own == on).map_or(Group::SHARED, |own| Group::own(own))
    }

    /// Refuses benchmarks that are trained on nothing.
    ///
    /// # Errors
    /// Names the key.
    pub(super) fn check_trained_on(&self) -> anyhow::Result<()> {
        self.tables.iter().try_for_each(|of| of.check_trained_on(self.tables))?;
        for benchmark in self.by_itself() {
            let Some(on) = self.trained_on(benchmark) else { continue };
            anyhow::ensure!(
                self.by_itself().iter().any(|other| other == on),
                "finetune.on has {benchmark:?} without {on:?}, whose models are tried on it: add that, or leave it out"
            );
            let Finetuning { settings_of, fixed, .. } = self.finetuning;
            for (table, has) in [
                ("settings_of", settings_of.contains_key(benchmark)),
                ("max_tokens_of", fixed.max_tokens_of.contains_key(benchmark)),
            ] {
                anyhow::ensure!(
                    !has,
                    "finetune.{table}.{benchmark}: nothing is trained on it; give it to {on}, whose models are tried on it"
                );
            }
        }
        let of_recipes =
            self.recipes.iter().flat_map(|recipe| recipe.tasks.iter().map(|task| (&recipe.name, task)));
        for (recipe, task) in of_recipes {
            if let Some(on) = self.trained_on(task) {
                anyhow::bail!(
                    "recipes.{recipe}.tasks has {task:?}, which nothing is trained on: it is tried wherever {on} is trained on; leave it out"
                );
            }
        }
        Ok(())
    }

    /// What is handed in of a row's models for a benchmark, if it has texts for that.
    pub(super) fn handed_in(&self, row: &str, mut tried: Tried, candidates: Candidates) -> Option<HandedIn> {
        let task = self.tables.iter().find(|of| of.name == tried.name)?.handed_in()?;
        // Every text has its prediction.
        tried.fixed.max_examples.test = usize::MAX;
        Some(HandedIn { row: row.to_owned(), task, tried, candidates })
    }

    /// The stages that try the models of a row on the benchmarks which have none of their own.
    pub(super) fn tried_elsewhere(&self, row: Row) -> Vec<Box<dyn Stage>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        for on in self.trained() {
            for benchmark in self.tried_too(on) {
                let of = |&seed: &u64| {
                    let stage = finetune_name(if row == Row::Pruned { Row::Base } else { row }, on, seed);
                    let mask = self.group(on).named(mask::HARD);
                    let pruned = (row == Row::Pruned).then(|| (pruned::name(on, seed), mask));
                    let name = match row {
                        Row::Pruned => pruned::name(benchmark, seed),
                        _ => finetune_name(row, benchmark, seed),
                    };
                    let model = Trained { stage, on: on.clone(), whose: Whose::One, pruned };
                    Box::new(Scored { name, tried: self.tried(benchmark), model, seed }) as Box<dyn Stage>
                };
                stages.extend(self.finetuning.seeds.iter().map(of));
            }
        }
        stages
    }

    /// Refuses what may have longer rows than the encoder has positions.
    pub(super) fn room(&self, tried: &Tried) -> anyhow::Result<()> {
        self.sizes.as_ref().map_or(Ok(()), |sizes| tried.room(sizes.max_position_embeddings))
    }

    /// Where the settings of a row's fine-tunings on a benchmark come from.
    pub(super) fn chosen(&self, row: Row, benchmark: &str) -> Chosen {
        match self.finetuning.source(benchmark) {
            Source::Given(settings) => Chosen::Given(settings.clone()),
            Source::Search(search) => Chosen::Stage(settings::name(row.searched(search), benchmark)),
        }
    }

    /// Names of the benchmarks that an encoder is fine-tuned on by itself.
    pub(super) fn by_itself(&self) -> &[String] {
        self.finetuning.on.as_deref().unwrap_or(&self.benchmarks)
    }

    /// The fine-tunings of a row on a benchmark, one for each seed.
    pub(super) fn candidates(&self, row: Row, benchmark: &str) -> Candidates {
        let seeds = self.finetuning.seeds.iter();
        Candidates { stages: seeds.map(|&seed| finetune_name(row, benchmark, seed)).collect() }
    }

    /// The search for a row on every benchmark whose settings one finds for it.
    fn searches(&self, row: Row, base: &dyn Fn(&str) -> Base) -> Vec<Box<dyn Stage>> {
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        for benchmark in self.trained() {
            let Source::Search(search) = self.finetuning.source(benchmark) else { continue };
            if row.searched(search) != row {
                continue;
            }
            let mut trials = Vec::new();
            for number in 0..search.trials {
                let of = search.finetune_seeds.iter().map(|&seed| Finetune {
                    name: format!("trial-{}-{benchmark}-{number}-{seed}", row.name()),
                    tried: self.tried(benchmark),
                    base: base(benchmark),
                    chosen: Chosen::Given(search.trial(number)),
                    seed,
                    looked: Looked::Dev,
                });
                let of: Vec<Finetune> = of.collect();
                trials.push(of.iter().map(|trial| trial.name.clone()).collect());
                stages.extend(of.into_iter().map(|trial| Box::new(trial) as Box<dyn Stage>));
            }
            stages.push(Box::new(settings::Choosing::new(row, benchmark, trials)));
        }
        stages
    }

    /// The fine-tunings of a row, with the search for their settings. `base` says what each benchmark's begin with.
    pub(super) fn finetunings(&self, row: Row, base: &dyn Fn(&str) -> Base) -> Vec<Box<dyn Stage>> {
        let mut stages = self.searches(row, base);
        let each = self
            .trained()
            .flat_map(|benchmark| self.finetuning.seeds.iter().map(move |&seed| (benchmark, seed)));
        let stage = |(benchmark, seed): (&String, u64)| {
            let chosen = self.chosen(row, benchmark);
            let (name, tried) = (finetune_name(row, benchmark, seed), self.tried(benchmark));
            let base = base(benchmark);
            Box::new(Finetune { name, tried, base, chosen, seed, looked: Looked::DevAndTest })
                as Box<dyn Stage>
        };
        stages.extend(each.map(stage));
        stages.extend(self.tried_elsewhere(row));
        stages
    }
}
