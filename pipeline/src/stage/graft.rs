//! The whole of KIMERA as stages: fine-tuned encoders, the importance of their heads, masks, encoders retrained in several ways, these fine-tuned again, and
//! one table of what came of it.
//!
//! | stage | what |
//! |---|---|
//! | `trial-ROW-BENCHMARK-N-SEED`, `settings-ROW-BENCHMARK` | a search of settings for a row's encoder |
//! | `finetune-ROW-BENCHMARK-SEED` | a row's encoder, fine-tuned |
//! | `importance-ROW` | how much each head of the row's best model matters |
//! | `mask-hard`, `mask-soft`, `mask-KIND-BENCHMARK` | which heads of the best model of row `base` are vacant |
//! | `pruned-BENCHMARK-SEED` | the models of row `base` without their vacant heads |
//! | `retrain-ROW`, `retrain-ROW-BENCHMARK` | the encoder, retrained on the graph, for benchmarks with a mask of their own once for each |
//! | `results` | the table, the page |

mod alone;
mod around;
pub(crate) mod best;
mod checks;
mod group;
pub(crate) mod importance;
pub(crate) mod mask;
pub(crate) mod pruned;
mod recipes;
pub(crate) mod results;
pub(crate) mod retraining;
pub(crate) mod settings;

use anyhow::Context as _;
use model::optim::head_mask::SoftOn;
use model::train::heads::{Mode, Shared};
use model::train::lora;
use serde::{Deserialize, Serialize};

use super::align::{self, Aligning};
use super::encoder::Base;
use super::finetune::search::{Rows, Search};
use super::finetune::{Finetune, Looked};
use super::location::Places;
use super::retrain::{self, Retrain, Which, heads};
use crate::engine::stage::Stage;
pub(crate) use around::Around;
use around::{finetune_name, submission};
use group::Group;
use retraining::{Choosing, Trial};

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
    /// Benchmarks with masks of their own, searched on their part `mask_search` with the best model of row `base` on them. The rows that are retrained under a
    /// mask are so once for each of these, and fine-tuned on it; all other benchmarks share the masks of `mask_benchmark`.
    ///
    /// Source: none: one mask for all benchmarks; KIMERA, section 4.3, has one for each task of outcome prediction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_masks: Vec<String>,
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
    /// As `retrain.lora`, for row `lora`; left out, with its defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<lora::Config>,
    /// Peak learning rate of row `lora`; left out, that of `[retrain]`.
    ///
    /// Source: ours: one rate for all rows; adapters usually take a higher one than the encoder does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_learning_rate: Option<f64>,
    /// How the importance of heads is measured.
    #[serde(default)]
    pub importance: importance::Config,
    /// How masks are searched.
    #[serde(default)]
    pub search: mask::Search,
    /// A search for settings of retraining, of every row by itself: each trial is retrained and fine-tuned, and the best one's encoder is the row's. Left out,
    /// `[retrain]` says all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrain_search: Option<retraining::Search>,
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
    /// Retrained on the graph by low-rank adapters (LoRA), as `graft.lora` says.
    Lora,
    /// Aligned by the graph's synonyms as `[align]` says, with important heads frozen.
    Synonyms,
}

impl Row {
    /// Those of KIMERA's table 1.
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
            Row::Lora => "lora",
            Row::Synonyms => "synonyms",
        }
    }

    /// How it is retrained, if it is.
    fn mode(self) -> Option<Mode> {
        match self {
            Row::Base | Row::Pruned => None,
            Row::Scratch => Some(Mode::Scratch),
            Row::NoMask | Row::Lora => Some(Mode::None),
            Row::Hard | Row::Synonyms => Some(Mode::Hard),
            Row::Soft => Some(Mode::Soft),
            Row::Forward => Some(Mode::Forward),
        }
    }

    /// The stage of the mask that it needs.
    fn mask(self) -> Option<&'static str> {
        match self {
            Row::Pruned | Row::Hard | Row::Forward | Row::Synonyms => Some(mask::HARD),
            Row::Soft => Some(mask::SOFT),
            Row::Base | Row::Scratch | Row::NoMask | Row::Lora => None,
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
        let mut stages = around.finetunings(Row::Base, &|_| around.base.clone());
        stages.push(Box::new(self.measuring(Row::Base, Group::SHARED, around)));
        for group in Group::all(&self.own_masks) {
            stages.extend(self.searching(group, around));
        }
        for row in self.rows.iter().copied() {
            if row.mode().is_some() {
                stages.extend(self.retrained(row, around, places)?);
                let base = |benchmark: &str| Base::Stage(around.group(benchmark).retrained(row));
                stages.extend(around.finetunings(row, &base));
                stages.push(Box::new(self.measuring(row, Group::SHARED, around)));
            } else if row == Row::Pruned {
                stages.extend(self.pruned(around));
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

    /// How the heads of a row's best model are measured, on the benchmark that the masks of a group are searched on.
    fn measuring(&self, row: Row, group: Group<'_>, around: &Around<'_>) -> importance::Measuring {
        let on = group.benchmark().unwrap_or(&self.mask_benchmark);
        let also: &[String] = if group == Group::SHARED { &self.mask_also } else { &[] };
        importance::Measuring {
            row,
            tried: around.tried(on),
            also: also.iter().map(|benchmark| around.tried(benchmark)).collect(),
            of: around.candidates(row, on),
            config: self.importance.clone(),
        }
    }

    /// The searches for the masks of a group that some row needs, with every share of the score that trials of retraining have.
    fn searching(&self, group: Group<'_>, around: &Around<'_>) -> Vec<Box<dyn Stage>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        for (name, kind) in [(mask::HARD, mask::KINDS[0]), (mask::SOFT, mask::KINDS[1])] {
            if !self.rows.iter().any(|row| row.mask() == Some(name)) {
                continue;
            }
            let mut stage = |name: String, search: mask::Search| {
                let measuring = self.measuring(Row::Base, group, around);
                stages.push(Box::new(mask::Searching { name, kind, measuring, search }));
            };
            stage(group.named(name), self.search.clone());
            let retrained = |row: &Row| row.mask() == Some(name) && row.mode().is_some();
            let search = self.retrain_search.as_ref().filter(|_| self.rows.iter().any(retrained));
            for &tau in search.map_or(&[][..], |search| &search.tau) {
                stage(group.with_tau(name, tau), mask::Search { tau, ..self.search.clone() });
            }
        }
        stages
    }

    /// The settings that a row is retrained with, but for its heads.
    fn retraining(&self, row: Row, retraining: &retrain::Config) -> retrain::Config {
        let mut of_row = retraining.clone();
        if row == Row::Lora {
            of_row.lora = Some(self.lora.clone().unwrap_or_default());
            of_row.learning_rate = self.lora_learning_rate.unwrap_or(of_row.learning_rate);
        }
        of_row
    }

    /// The stages that retrain a row's encoders.
    fn retrained(
        &self,
        row: Row,
        around: &Around<'_>,
        places: &Places<'_>,
    ) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        if row == Row::Synonyms {
            return self.aligned(around, places);
        }
        let (Some(mode), Some((retraining, from))) = (row.mode(), &around.retraining) else {
            return Ok(vec![]);
        };
        // Without a mask it is ordinary training: `scratch` would keep random layers otherwise.
        let shared = if mode.needs_mask() { self.shared } else { Shared::Train };
        let heads = heads::Config { mask: None, mode, shared, soft_on: self.soft_on };
        let retraining = &self.retraining(row, retraining);
        let retrain = |name: &str, mask: Option<&str>, config: &retrain::Config| {
            let heads = config.lora.is_none().then(|| heads.clone());
            let config = retrain::Config { heads, ..config.clone() };
            Retrain::new(Which::Row { name, mask }, &config, from.clone(), places)
        };
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        for group in Group::of_row(row, &self.own_masks) {
            let name = group.named(row.name());
            let Some(search) = &self.retrain_search else {
                let mask = row.mask().map(|kind| group.named(kind));
                stages.push(Box::new(retrain(&name, mask.as_deref(), retraining)?));
                continue;
            };
            let mut trials = vec![];
            for number in 0..search.trials {
                let drawn = search.trial(number, retraining);
                let mask = row.mask().map(|kind| match drawn.tau {
                    Some(tau) => group.with_tau(kind, tau),
                    None => group.named(kind),
                });
                let stage = retrain(&format!("{name}-trial-{number}"), mask.as_deref(), &drawn.config)
                    .with_context(|| format!("trial {number} of graft.retrain_search"))?;
                let retrained = stage.name().to_owned();
                stages.push(Box::new(stage));
                let mut tried = vec![];
                for benchmark in
                    around.trained().filter(|on| row.mask().is_none() || around.group(on) == group)
                {
                    for &seed in &search.finetune_seeds {
                        let stage = Finetune {
                            name: format!("trial-{retrained}-{benchmark}-{seed}"),
                            tried: around.tried(benchmark),
                            base: Base::Stage(retrained.clone()),
                            chosen: around.chosen(Row::Base, benchmark),
                            seed,
                            looked: Looked::Dev,
                        };
                        tried.push(stage.name.clone());
                        stages.push(Box::new(stage));
                    }
                }
                trials.push(Trial { retrained, mask, tried, drawn });
            }
            let name = group.retrained(row);
            stages.push(Box::new(Choosing { name, trials }));
        }
        Ok(stages)
    }

    /// The stages that align encoders by the graph's synonyms, once for each mask.
    fn aligned(&self, around: &Around<'_>, places: &Places<'_>) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let Some((aligning, from)) = &around.aligning else { return Ok(vec![]) };
        let (row, shared, soft_on) = (Row::Synonyms, self.shared, self.soft_on);
        let heads = heads::Config { mask: None, mode: Mode::Hard, shared, soft_on };
        let config = align::Config { heads: Some(heads), ..(*aligning).clone() };
        let of_group = |group: Group<'_>| {
            let which = align::Which::Row { name: group.retrained(row), mask: group.named(mask::HARD) };
            let stage = Aligning::new(which, &config, from.clone(), places)?;
            anyhow::Ok(Box::new(stage) as Box<dyn Stage>)
        };
        Group::of_row(row, &self.own_masks).map(of_group).collect()
    }

    fn pruned(&self, around: &Around<'_>) -> Vec<Box<dyn Stage>> {
        let each = around
            .trained()
            .flat_map(|benchmark| around.finetuning.seeds.iter().map(move |&seed| (benchmark, seed)));
        let stage = |(benchmark, seed): (&String, u64)| {
            let of = finetune_name(Row::Base, benchmark, seed);
            let mask = around.group(benchmark).named(mask::HARD);
            Box::new(pruned::Pruning::new(around.tried(benchmark), of, mask, seed)) as Box<dyn Stage>
        };
        each.map(stage).chain(around.tried_elsewhere(Row::Pruned)).collect()
    }
}
