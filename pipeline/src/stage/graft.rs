//! The whole of KIMERA as stages: fine-tuned encoders, the importance of their heads, masks, encoders retrained in several ways, these fine-tuned again, and
//! one table of what came of it.
//!
//! | stage | what |
//! |---|---|
//! | `trial-ROW-BENCHMARK-N-SEED`, `settings-ROW-BENCHMARK` | a search of settings for a row's encoder |
//! | `finetune-ROW-BENCHMARK-SEED` | a row's encoder, fine-tuned |
//! | `importance-ROW` | how much each head of the row's best model matters |
//! | `mask-hard`, `mask-soft` | which heads of the best model of row `base` are vacant |
//! | `pruned-BENCHMARK-SEED` | the models of row `base` without their vacant heads |
//! | `retrain-ROW` | the encoder, retrained on the graph |
//! | `results` | the table, the page |

mod alone;
pub(crate) mod best;
pub(crate) mod importance;
pub(crate) mod mask;
pub(crate) mod pruned;
pub(crate) mod results;
pub(crate) mod settings;

use std::sync::Arc;

use model::encoder::config::Config as Sizes;
use model::head::importance::AcrossLayers;
use model::optim::head_mask::SoftOn;
use model::train::heads::{Mode, Shared};
use serde::{Deserialize, Serialize};
use tasks::token::encode::Case;

use super::benchmark as tried;
use super::compute::Compute;
use super::encoder::Base;
use super::finetune::attention::{self, Attending};
use super::finetune::config::{Config as Finetuning, Source};
use super::finetune::quirks::ChosenOn;
use super::finetune::search::{Rows, Search};
use super::finetune::{Chosen, Finetune, Looked, Tried, together};
use super::location::Places;
use super::maps::Mapping;
use super::retrain::{self, From, Retrain, Which, heads};
use super::shards::Shards;
use super::vocabulary;
use crate::engine::stage::Stage;
use best::Candidates;

/// The grafting's part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The encoders to compare, as rows of the table.
    ///
    /// Source: KIMERA, table 1: all of them.
    #[serde(default = "Row::all")]
    pub rows: Vec<Row>,
    /// The benchmark whose part `mask_search` is used to measure importance and search masks, with the best model of row `base`. Left out, the
    /// first with such a part.
    #[serde(default)]
    pub mask_benchmark: String,
    /// As `retrain.heads.shared`, for the rows with a mask; `scratch` and `no_mask` train everything.
    ///
    /// Source: KIMERA, equation 3, which is about heads alone.
    #[serde(default)]
    pub shared: Shared,
    /// As `retrain.heads.soft_on`, for row `soft`.
    ///
    /// Source: ours: KIMERA's equation 3 scales the gradient, which has next to no effect with Adam.
    #[serde(default)]
    pub soft_on: SoftOn,
    /// How the importance of heads is measured.
    #[serde(default)]
    pub importance: importance::Config,
    /// How masks are searched.
    #[serde(default)]
    pub search: mask::Search,
}

/// A row of the table (KIMERA, table 1).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    /// The encoder as is.
    Base,
    /// The models of row `base` without their vacant heads: gates of 0, nothing trained.
    Pruned,
    /// Trained on the graph from random weights.
    Scratch,
    /// Retrained on the graph, every parameter.
    NoMask,
    /// Retrained on the graph, with important heads frozen.
    Hard,
    /// Retrained on the graph, each head the less the more important it is.
    Soft,
    /// As `hard`, with only the vacant heads in the forward pass (KIMERA b+f).
    Forward,
}

impl Row {
    fn all() -> Vec<Self> {
        vec![Row::Base, Row::Pruned, Row::Scratch, Row::NoMask, Row::Hard, Row::Soft, Row::Forward]
    }

    /// The name in configs, stages and tables.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Row::Base => "base",
            Row::Pruned => "pruned",
            Row::Scratch => "scratch",
            Row::NoMask => "no_mask",
            Row::Hard => "hard",
            Row::Soft => "soft",
            Row::Forward => "forward",
        }
    }

    /// How it is retrained, if it is.
    fn mode(self) -> Option<Mode> {
        match self {
            Row::Base | Row::Pruned => None,
            Row::Scratch => Some(Mode::Scratch),
            Row::NoMask => Some(Mode::None),
            Row::Hard => Some(Mode::Hard),
            Row::Soft => Some(Mode::Soft),
            Row::Forward => Some(Mode::Forward),
        }
    }

    /// The stage of the mask that it needs.
    fn mask(self) -> Option<&'static str> {
        match self {
            Row::Pruned | Row::Hard | Row::Forward => Some(mask::HARD),
            Row::Soft => Some(mask::SOFT),
            Row::Base | Row::Scratch | Row::NoMask => None,
        }
    }

    /// The row whose trials choose its settings.
    fn searched(self, search: &Search) -> Row {
        match search.rows {
            Rows::Base => Row::Base,
            Rows::Each => self,
        }
    }
}

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
    /// The tables `[[recipes]]`.
    pub recipes: &'a [together::Config],
    /// The table `[retrain]` and what it is made from, if there is one.
    pub retraining: Option<(&'a retrain::Config, From)>,
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
fn finetune_name(row: Row, benchmark: &str, seed: u64) -> String {
    format!("finetune-{}-{benchmark}-{seed}", row.name())
}

impl Around<'_> {
    fn tried(&self, benchmark: &str) -> Tried {
        Tried {
            name: benchmark.to_owned(),
            vocabulary: self.words.0.clone(),
            case: self.words.1,
            compute: self.compute,
            fixed: self.finetuning.fixed.of(benchmark),
            attending: Attending::Plain,
        }
    }

    /// Refuses what may have longer rows than the encoder has positions.
    fn room(&self, tried: &Tried) -> anyhow::Result<()> {
        self.sizes.as_ref().map_or(Ok(()), |sizes| tried.room(sizes.max_position_embeddings))
    }

    /// Where the settings of a row's fine-tunings on a benchmark come from.
    fn chosen(&self, row: Row, benchmark: &str) -> Chosen {
        match self.finetuning.source(benchmark) {
            Source::Given(settings) => Chosen::Given(settings.clone()),
            Source::Search(search) => Chosen::Stage(settings::name(row.searched(search), benchmark)),
        }
    }

    /// Names of the benchmarks that an encoder is fine-tuned on by itself.
    fn by_itself(&self) -> &[String] {
        self.finetuning.on.as_deref().unwrap_or(&self.benchmarks)
    }

    /// The fine-tunings of a row on a benchmark, one for each seed.
    fn candidates(&self, row: Row, benchmark: &str) -> Candidates {
        let seeds = self.finetuning.seeds.iter();
        Candidates { stages: seeds.map(|&seed| finetune_name(row, benchmark, seed)).collect() }
    }

    /// The search for a row on every benchmark whose settings one finds for it.
    fn searches(&self, row: Row, base: &Base) -> Vec<Box<dyn Stage>> {
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        for benchmark in self.by_itself() {
            let Source::Search(search) = self.finetuning.source(benchmark) else { continue };
            if row.searched(search) != row {
                continue;
            }
            let mut trials = Vec::new();
            for number in 0..search.trials {
                let of = search.finetune_seeds.iter().map(|&seed| Finetune {
                    name: format!("trial-{}-{benchmark}-{number}-{seed}", row.name()),
                    tried: self.tried(benchmark),
                    base: base.clone(),
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

    /// The fine-tunings of a row, with the search for their settings.
    fn finetunings(&self, row: Row, base: &Base) -> Vec<Box<dyn Stage>> {
        let mut stages = self.searches(row, base);
        let each = self
            .by_itself()
            .iter()
            .flat_map(|benchmark| self.finetuning.seeds.iter().map(move |&seed| (benchmark, seed)));
        let stage = |(benchmark, seed): (&String, u64)| {
            let chosen = self.chosen(row, benchmark);
            let (name, tried) = (finetune_name(row, benchmark, seed), self.tried(benchmark));
            Box::new(Finetune { name, tried, base: base.clone(), chosen, seed, looked: Looked::DevAndTest })
                as Box<dyn Stage>
        };
        stages.extend(each.map(stage));
        stages
    }
}

impl Config {
    /// All stages, in data-flow order.
    ///
    /// # Errors
    /// When tables contradict each other.
    pub(crate) fn stages(
        &self,
        around: &Around<'_>,
        places: &Places<'_>,
    ) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        self.check(around)?;
        around.by_itself().iter().try_for_each(|benchmark| around.room(&around.tried(benchmark)))?;
        let mut stages = around.finetunings(Row::Base, &around.base);
        let on = around.tried(&self.mask_benchmark);
        let measuring = |row: Row| importance::Measuring {
            row,
            tried: on.clone(),
            of: around.candidates(row, &self.mask_benchmark),
            config: self.importance.clone(),
        };
        stages.push(Box::new(measuring(Row::Base)));
        for (name, kind) in [(mask::HARD, mask::KINDS[0]), (mask::SOFT, mask::KINDS[1])] {
            if self.rows.iter().any(|row| row.mask() == Some(name)) {
                stages.push(Box::new(mask::Searching {
                    name,
                    kind,
                    measuring: measuring(Row::Base),
                    search: self.search.clone(),
                }));
            }
        }
        for row in self.rows.iter().copied() {
            match (row.mode(), &around.retraining) {
                (Some(mode), Some((retraining, from))) => {
                    let stage = self.retrain(row, mode, retraining, from, places)?;
                    let base = Base::Stage(stage.name().to_owned());
                    stages.push(Box::new(stage));
                    stages.extend(around.finetunings(row, &base));
                    stages.push(Box::new(measuring(row)));
                }
                _ if row == Row::Pruned => stages.extend(self.pruned(around)),
                _ => {}
            }
        }
        stages.push(Box::new(results::Results::new(self, around)));
        Ok(stages)
    }

    fn retrain(
        &self,
        row: Row,
        mode: Mode,
        retraining: &retrain::Config,
        from: &From,
        places: &Places<'_>,
    ) -> anyhow::Result<Retrain> {
        // Without a mask it is ordinary training: `scratch` would keep random layers otherwise.
        let shared = if mode.needs_mask() { self.shared } else { Shared::Train };
        let heads = heads::Config { mask: None, mode, shared, soft_on: self.soft_on };
        let config = retrain::Config { heads: Some(heads), ..(*retraining).clone() };
        let which = Which::Row { name: row.name(), mask: row.mask() };
        Retrain::new(which, &config, from.clone(), places)
    }

    fn pruned(&self, around: &Around<'_>) -> Vec<Box<dyn Stage>> {
        let each = around
            .benchmarks
            .iter()
            .flat_map(|benchmark| around.finetuning.seeds.iter().map(move |&seed| (benchmark, seed)));
        let stage = |(benchmark, seed): (&String, u64)| {
            let of = finetune_name(Row::Base, benchmark, seed);
            Box::new(pruned::Pruning::new(around.tried(benchmark), of, seed)) as Box<dyn Stage>
        };
        each.map(stage).collect()
    }

    fn check(&self, around: &Around<'_>) -> anyhow::Result<()> {
        anyhow::ensure!(
            around.recipes.is_empty() && around.attentions.is_empty(),
            "[[recipes]] and [[attentions]] begin with the encoder of [encoder], [graft] compares grafted ones: take them into a config of their own, whose encoder.path is a grafted one (out/retrain-ROW/model)"
        );
        let names: Vec<&str> = around.benchmarks.iter().map(String::as_str).collect();
        around.finetuning.check(&names)?;
        around.check_quirks()?;
        anyhow::ensure!(
            around.finetuning.fixed.quirks.chosen_on == ChosenOn::Dev,
            "finetune.quirks.chosen_on is test, and [graft] compares encoders by that part: leave one of them out"
        );
        anyhow::ensure!(
            around.finetuning.from.is_none(),
            "finetune.from names one encoder, but [graft] compares several, and each row says what it begins with: leave finetune.from out"
        );
        anyhow::ensure!(
            around.finetuning.on.is_none(),
            "finetune.on names some benchmarks, but [graft] compares rows on all: leave it out"
        );
        anyhow::ensure!(
            names.contains(&self.mask_benchmark.as_str()),
            "graft.mask_benchmark is {:?}, but [[benchmarks]] has {}",
            self.mask_benchmark,
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        );
        anyhow::ensure!(
            self.rows.contains(&Row::Base),
            "graft.rows has no `base`: what every other row is compared with, and what masks are searched on"
        );
        for (place, row) in self.rows.iter().enumerate() {
            let name = row.name();
            anyhow::ensure!(
                !self.rows[..place].contains(row),
                "graft.rows has `{name}` twice: leave one out"
            );
            anyhow::ensure!(
                row.mode().is_none() || around.retraining.is_some(),
                "graft.rows has `{name}`, which is retrained on the graph: add the table [retrain]"
            );
        }
        if let Some((retraining, _)) = &around.retraining {
            anyhow::ensure!(
                retraining.heads.is_none(),
                "[retrain.heads] says how the one training is masked, [graft] how each row is: leave [retrain.heads] out"
            );
        }
        let heads = around.sizes.as_ref().map_or(usize::MAX, |sizes| sizes.num_attention_heads);
        anyhow::ensure!(
            self.search.keep_per_layer < heads,
            "graft.search.keep_per_layer is {}, and a layer has {heads} heads, so that no mask could free one: expected at most {}",
            self.search.keep_per_layer,
            heads - 1
        );
        anyhow::ensure!(
            !self.rows.contains(&Row::Soft) || self.importance.across_layers == AcrossLayers::MinMax,
            "graft.rows has `soft`, whose gates are importances from 0 to 1, but graft.importance.across_layers is `raw`: set it to \"min_max\""
        );
        Ok(())
    }
}
