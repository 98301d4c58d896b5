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
mod around;
pub(crate) mod best;
pub(crate) mod importance;
pub(crate) mod mask;
pub(crate) mod pruned;
mod recipes;
pub(crate) mod results;
pub(crate) mod settings;

use model::head::importance::AcrossLayers;
use model::optim::head_mask::SoftOn;
use model::train::heads::{Mode, Shared};
use serde::{Deserialize, Serialize};

use super::benchmark as tried;
use super::encoder::Base;
use super::finetune::quirks::ChosenOn;
use super::finetune::search::{Rows, Search};
use super::location::Places;
use super::retrain::{self, From, Retrain, Which, heads};
use crate::engine::stage::Stage;
pub(crate) use around::Around;
use around::{finetune_name, submission};

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
    /// Further benchmarks on whose parts `mask_search` importance is measured and masks are searched as well, each with `trained_on` set to `mask_benchmark`:
    /// importance is over all their samples, the score that counts the mean of theirs.
    ///
    /// Source: none: one benchmark; KIMERA, section 4.2, has one mask for all its sets of retrieval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mask_also: Vec<String>,
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
            also: self.mask_also.iter().map(|benchmark| around.tried(benchmark)).collect(),
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
        let measured = self.rows.iter().filter(|row| **row == Row::Base || row.mode().is_some());
        let handed = measured.flat_map(|&row| {
            let of = move |benchmark: &String| {
                around.handed_in(row.name(), around.tried(benchmark), around.candidates(row, benchmark))
            };
            around.trained().filter_map(of)
        });
        stages.extend(submission(handed.collect()));
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
            .trained()
            .flat_map(|benchmark| around.finetuning.seeds.iter().map(move |&seed| (benchmark, seed)));
        let stage = |(benchmark, seed): (&String, u64)| {
            let of = finetune_name(Row::Base, benchmark, seed);
            Box::new(pruned::Pruning::new(around.tried(benchmark), of, seed)) as Box<dyn Stage>
        };
        each.map(stage).chain(around.tried_elsewhere(Row::Pruned)).collect()
    }

    fn check(&self, around: &Around<'_>) -> anyhow::Result<()> {
        anyhow::ensure!(
            around.recipes.is_empty() && around.attentions.is_empty(),
            "[[recipes]] and [[attentions]] begin with the encoder of [encoder], [graft] compares grafted ones: take them into a config of their own, whose encoder.path is a grafted one (out/retrain-ROW/model)"
        );
        let names: Vec<&str> = around.benchmarks.iter().map(String::as_str).collect();
        around.finetuning.check(&names)?;
        around.check_trained_on()?;
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
            around.finetuning.curve.is_empty(),
            "finetune.curve is for one encoder, and [graft] compares several: leave it out, or set finetune.max_examples.train_share"
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
        if let Some(on) = around.trained_on(&self.mask_benchmark) {
            anyhow::bail!(
                "graft.mask_benchmark is {:?}, which has no model of its own: name {on:?}",
                self.mask_benchmark
            );
        }
        for (place, name) in self.mask_also.iter().enumerate() {
            let of = around.tables.iter().find(|of| of.name == *name);
            anyhow::ensure!(
                of.is_some_and(|of| of.trained_on.as_ref() == Some(&self.mask_benchmark)),
                "graft.mask_also has {name:?}: expected a benchmark whose trained_on is {:?}, for masks are of one model",
                self.mask_benchmark
            );
            anyhow::ensure!(
                of.is_some_and(tried::Config::has_mask_search),
                "graft.mask_also has {name:?}, which has no part mask_search: give it a share (held_out.mask_search)"
            );
            anyhow::ensure!(!self.mask_also[..place].contains(name), "graft.mask_also has {name:?} twice");
        }
        self.check_rows(around)
    }

    /// Whether the rows can be made, and their masks searched.
    fn check_rows(&self, around: &Around<'_>) -> anyhow::Result<()> {
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
