//! What an encoder comes to without grafting: fine-tuned as it is, with other attentions, on several benchmarks together; and one table of it all.

use anyhow::Context as _;
use model::device::Recompute;
use tasks::downstream::example::Kind;

use super::{Around, Finetune, Row, Tried};
use crate::engine::stage::Stage;
use crate::stage::benchmark as tried;
use crate::stage::encoder::Base;
use crate::stage::finetune::attention;
use crate::stage::finetune::config::Source;
use crate::stage::finetune::measure::metrics;
use crate::stage::finetune::quirks::{PairOrder, Quirks, TrainOn};
use crate::stage::finetune::{Chosen, Looked, together};
use crate::stage::matrix::Matrix;
use crate::stage::scores::{self, Compared, Whose};
use crate::stage::shards::Shards;

/// Names of rows that are no attention's and no recipe's.
const TAKEN: [&str; 2] = ["alone", "base"];

impl Around<'_> {
    /// The fine-tunings of the encoder as it is, and a table of their scores.
    ///
    /// # Errors
    /// When there is nothing to be tried on, or a setting is invalid.
    pub(crate) fn alone(&self) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let names: Vec<&str> = self.benchmarks.iter().map(String::as_str).collect();
        anyhow::ensure!(
            !names.is_empty(),
            "[finetune] has nothing to be tried on: add a table [[benchmarks]]"
        );
        self.finetuning.check(&names)?;
        self.check_quirks()?;
        self.by_itself().iter().try_for_each(|benchmark| self.room(&self.tried(benchmark)))?;
        let mut stages = self.finetunings(Row::Base, &self.base);
        let mut compared: Vec<Compared> = vec![];
        for benchmark in self.by_itself() {
            let (how, whose) = ("alone".to_owned(), Whose::One);
            let stages = self.candidates(Row::Base, benchmark).stages;
            let (benchmark, began_with) = (benchmark.clone(), vec![self.base.name()]);
            compared.push(Compared { how, benchmark, began_with, stages, whose });
        }
        self.check_names()?;
        for attention in self.attentions {
            stages.extend(self.attention(attention, &mut compared)?);
        }
        for recipe in self.recipes {
            recipe.check(&names)?;
            self.check_turns(recipe)?;
            stages.extend(match recipe.pairwise {
                true => self.pairs(recipe)?,
                false => self.recipe(recipe, &mut compared)?,
            });
        }
        compared.sort_by_key(|of| self.benchmarks.iter().position(|name| *name == of.benchmark));
        stages.push(Box::new(scores::Table { of: compared }));
        Ok(stages)
    }

    /// Refuses a recipe with more tasks than its steps have turns for: a batch is of one task.
    fn check_turns(&self, recipe: &together::Config) -> anyhow::Result<()> {
        let fixed = &self.finetuning.fixed;
        let tasks = if recipe.pairwise { 2 } else { (recipe.tasks.len() + recipe.shards.len()) as u64 };
        let turns = fixed.max_steps.map(|most| most.saturating_mul(fixed.accumulate));
        anyhow::ensure!(
            turns.is_none_or(|turns| turns >= tasks),
            "finetune.max_steps is {}, and recipes.{} has {tasks} tasks at a time, each of which needs a batch of its own: expected at least {}",
            fixed.max_steps.unwrap_or(0),
            recipe.name,
            tasks.div_ceil(fixed.accumulate)
        );
        Ok(())
    }

    /// Refuses names of attentions and recipes that would give two stages, or two rows of the table, one name.
    fn check_names(&self) -> anyhow::Result<()> {
        let attentions = self.attentions.iter().map(|of| ("attentions", &of.name));
        let names: Vec<_> = attentions.chain(self.recipes.iter().map(|of| ("recipes", &of.name))).collect();
        for (place, (table, name)) in names.iter().enumerate() {
            anyhow::ensure!(
                tried::can_name_a_stage(name) && !TAKEN.contains(&name.as_str()),
                "{table}.name = {name:?}: expected lower-case letters, digits, - and _, and neither `alone` nor `base`, for stages are called by it"
            );
            let twice = names[..place].iter().any(|(_, other)| other == name);
            anyhow::ensure!(
                !twice,
                "{table}.name = {name:?} stands twice among attentions and recipes: give each its own name"
            );
        }
        Ok(())
    }

    /// The table of a benchmark.
    fn table(&self, name: &str) -> anyhow::Result<&tried::Config> {
        let found = self.tables.iter().find(|of| of.name == name);
        found.with_context(|| format!("there is no benchmark {name}"))
    }

    /// The fine-tunings with another attention; what they lead to is added to `compared`.
    fn attention(
        &self,
        attention: &attention::Config,
        compared: &mut Vec<Compared>,
    ) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        anyhow::ensure!(
            !attention.has_maps() || self.compute.recompute == Recompute::None,
            "compute.recompute is layers, and attentions.{} goes by maps, which one layer hands to the next: leave one of them out",
            attention.name
        );
        for benchmark in attention.benchmarks(self.tables, self.by_itself(), &self.finetuning.fixed)? {
            let attending = attention.attending(self.table(benchmark)?, self.mapping.as_ref())?;
            let tried = Tried { attending, ..self.tried(benchmark) };
            self.room(&tried)?;
            let (how, chosen) = (attention.name.clone(), self.chosen(Row::Base, benchmark));
            stages.extend(self.by_seed(
                how,
                &attention.name,
                &tried,
                &chosen,
                |_| self.base.clone(),
                compared,
            ));
        }
        Ok(stages)
    }

    /// Refuses what a reference code does otherwise where a benchmark is of another kind.
    pub(super) fn check_quirks(&self) -> anyhow::Result<()> {
        let Quirks { pairs, train, .. } = self.finetuning.fixed.quirks;
        let told = [
            (pairs != PairOrder::AsGiven, "pairs turns the pairs of sets round"),
            (train == TrainOn::TrainAndDev, "train is train_and_dev, which is for sets of examples"),
        ];
        let ranking = self.tables.iter().find(|of| of.kind().is_none());
        if let (Some(ranking), Some((_, what))) = (ranking, told.iter().find(|(said, _)| *said)) {
            anyhow::bail!(
                "finetune.quirks.{what}, and {} is a ranking of passages: take one of them into a config of its own",
                ranking.name
            );
        }
        let trained_on = |name: &String| {
            self.by_itself().contains(name) || self.recipes.iter().any(|recipe| recipe.tasks.contains(name))
        };
        if let Some(measure) = &self.finetuning.fixed.patience.measure {
            for of in self.tables.iter().filter(|of| trained_on(&of.name)) {
                let metrics = metrics(of.kind());
                anyhow::ensure!(
                    metrics.contains(&measure.as_str()),
                    "finetune.patience.measure is {measure:?}, which {} does not have, expected one of {}",
                    of.name,
                    metrics.join(", ")
                );
            }
        }
        let tagged = self.tables.iter().filter(|of| of.kind() == Some(Kind::Tags));
        let mut tagged = tagged.filter(|of| trained_on(&of.name));
        tagged.try_for_each(|of| {
            let fixed = self.finetuning.fixed.of(&of.name);
            fixed.quirks.check_rows(fixed.max_tokens, &of.name)
        })
    }

    /// A row of the table, `how`: the fine-tunings that are called by `name`, one for each seed, and what each begins with.
    fn by_seed(
        &self,
        how: String,
        name: &str,
        tried: &Tried,
        chosen: &Chosen,
        base: impl Fn(&u64) -> Base,
        compared: &mut Vec<Compared>,
    ) -> Vec<Box<dyn Stage>> {
        let stage_of = |seed: &u64| format!("finetune-{name}-{}-{seed}", tried.name);
        let seeds = &self.finetuning.seeds;
        let (benchmark, stages) = (tried.name.clone(), seeds.iter().map(stage_of).collect());
        let mut began_with: Vec<String> = seeds.iter().map(|seed| base(seed).name()).collect();
        began_with.dedup();
        compared.push(Compared { how, benchmark, began_with, stages, whose: Whose::One });
        let stage = |seed: &u64| {
            Box::new(Finetune {
                name: stage_of(seed),
                tried: tried.clone(),
                base: base(seed),
                chosen: chosen.clone(),
                seed: *seed,
                looked: Looked::DevAndTest,
            }) as Box<dyn Stage>
        };
        seeds.iter().map(stage).collect()
    }

    /// How the tasks of a recipe attend, in their order.
    fn attending(&self, recipe: &together::Config) -> anyhow::Result<Vec<Tried>> {
        let Some(name) = &recipe.attention else {
            let all: Vec<Tried> = recipe.tasks.iter().map(|task| self.tried(task)).collect();
            all.iter().try_for_each(|tried| self.room(tried))?;
            return Ok(all);
        };
        let key = format!("recipes.{}", recipe.name);
        let found = self.attentions.iter().find(|of| of.name == *name);
        let attention = found.with_context(|| {
            format!("{key}.attention is {name:?}, and no table of [[attentions]] is called so")
        })?;
        anyhow::ensure!(
            matches!(attention.by, attention::By::Knowledge(_)),
            "{key}.attention is {name:?}, whose labels are the classes of one task, and a recipe has several: take one with `knowledge`"
        );
        let on = attention::Config { on: Some(recipe.tasks.clone()), ..attention.clone() };
        on.benchmarks(self.tables, &self.benchmarks, &self.finetuning.fixed)
            .with_context(|| format!("{key}.attention"))?;
        let each = recipe.tasks.iter().map(|task| {
            let attending = attention.attending(self.table(task)?, self.mapping.as_ref())?;
            let tried = Tried { attending, ..self.tried(task) };
            self.room(&tried)?;
            Ok(tried)
        });
        each.collect()
    }

    /// What makes the shards that a recipe has tasks of.
    fn shards_of(&self, recipe: &together::Config) -> anyhow::Result<Shards> {
        let key = format!("recipes.{}.shards", recipe.name);
        let shards = self.shards.with_context(|| {
            format!("{key} names tasks of shards, and the config has none: add [sources] and the tables that go with it")
        })?;
        let built = &shards.config.tasks;
        if let Some(task) = recipe.shards.iter().find(|task| !built.contains(task)) {
            let names: Vec<&str> = built.iter().map(|task| task.name()).collect();
            anyhow::bail!("{key} has {:?}, but shards.tasks has {}", task.name(), names.join(", "));
        }
        Ok(shards.clone())
    }

    /// The stages of a recipe of pairs, and the matrix of which helps which.
    fn pairs(&self, recipe: &together::Config) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let (name, seeds, tasks) = (&recipe.name, &self.finetuning.seeds, &recipe.tasks);
        if let Some(task) = tasks.iter().find(|task| !self.by_itself().contains(task)) {
            anyhow::bail!(
                "recipes.{name}.tasks has {task:?}, which finetune.on leaves out: pairs are compared with what it comes to alone"
            );
        }
        let other = |task: &&String| self.finetuning.source(task) != Source::Given(&recipe.settings);
        if let Some(task) = tasks.iter().find(other) {
            anyhow::bail!(
                "settings of recipes.{name} are others than those of {task} alone, and a pair would differ from it by more than the other task: give them the settings of [finetune], and {task} none of its own"
            );
        }
        let tried = self.attending(recipe)?;
        let (mut stages, mut pairs): (Vec<Box<dyn Stage>>, _) = (vec![], vec![]);
        for one in 0..tasks.len() {
            for other in one + 1..tasks.len() {
                let stage_of = |seed: &u64| format!("recipe-{name}-{}-{}-{seed}", tasks[one], tasks[other]);
                for &seed in seeds {
                    let of = [&tasks[one], &tasks[other]].map(String::clone);
                    let weights = recipe.weights.iter().filter(|(task, _)| of.contains(task));
                    stages.push(Box::new(together::Together {
                        name: stage_of(&seed),
                        tried: vec![tried[one].clone(), tried[other].clone()],
                        base: self.base.clone(),
                        recipe: together::Config {
                            weights: weights.map(|(task, weight)| (task.clone(), *weight)).collect(),
                            tasks: of.to_vec(),
                            ..recipe.clone()
                        },
                        seed,
                        shards: None,
                    }));
                }
                pairs.push(((one, other), seeds.iter().map(stage_of).collect()));
            }
        }
        let alone = tasks.iter().map(|task| self.candidates(Row::Base, task).stages).collect();
        let (name, tasks, began_with) = (format!("matrix-{name}"), tasks.clone(), self.base.name());
        stages.push(Box::new(Matrix { name, tasks, alone, pairs, began_with }));
        Ok(stages)
    }

    /// The stages of a recipe; what they lead to is added to `compared`.
    fn recipe(
        &self,
        recipe: &together::Config,
        compared: &mut Vec<Compared>,
    ) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        let (name, seeds) = (&recipe.name, &self.finetuning.seeds);
        let stage_of = |seed: &u64| format!("recipe-{name}-{seed}");
        let tried = self.attending(recipe)?;
        let shards = if recipe.shards.is_empty() { None } else { Some(self.shards_of(recipe)?) };
        for &seed in seeds {
            stages.push(Box::new(together::Together {
                name: stage_of(&seed),
                tried: tried.clone(),
                base: self.base.clone(),
                recipe: recipe.clone(),
                seed,
                shards: shards.clone(),
            }));
        }
        for (task, tried) in recipe.tasks.iter().zip(&tried) {
            compared.push(Compared {
                how: name.clone(),
                benchmark: task.clone(),
                began_with: vec![self.base.name()],
                stages: seeds.iter().map(stage_of).collect(),
                whose: Whose::Several,
            });
            let Some(then) = &recipe.then else { continue };
            let then = recipe.then_of.get(task).unwrap_or(then);
            let (how, chosen) = (format!("{name}, then alone"), Chosen::Given(then.clone()));
            let base = |seed: &u64| Base::Stage(stage_of(seed));
            stages.extend(self.by_seed(how, name, tried, &chosen, base, compared));
        }
        Ok(stages)
    }
}
