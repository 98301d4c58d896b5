//! An encoder fine-tuned on several benchmarks together, and on every two of them.

use anyhow::Context as _;

use super::Row;
use super::around::Around;
use crate::engine::stage::Stage;
use crate::stage::encoder::Base;
use crate::stage::finetune::attention;
use crate::stage::finetune::config::Source;
use crate::stage::finetune::{Chosen, Tried, together};
use crate::stage::matrix::Matrix;
use crate::stage::scores::{Compared, Whose};
use crate::stage::shards::Shards;

impl Around<'_> {
    /// Refuses a recipe with more tasks than its steps have turns for: a batch is of one task.
    pub(super) fn check_turns(&self, recipe: &together::Config) -> anyhow::Result<()> {
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
            let attending =
                attention.attending(self.table(task)?, self.mapping.as_ref(), self.parsed.get(task))?;
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
            format!("{key} names tasks of shards, and the config has none: add [sources] for those of a graph, or [shards] with tasks on texts")
        })?;
        let built = &shards.config.tasks;
        if let Some(task) = recipe.shards.iter().find(|task| !built.contains(task)) {
            let names: Vec<&str> = built.iter().map(|task| task.name()).collect();
            anyhow::bail!("{key} has {:?}, but shards.tasks has {}", task.name(), names.join(", "));
        }
        Ok(shards.clone())
    }

    /// The stages of a recipe of pairs, and the matrix of which helps which.
    pub(super) fn pairs(&self, recipe: &together::Config) -> anyhow::Result<Vec<Box<dyn Stage>>> {
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
    pub(super) fn recipe(
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
            let trained = Compared {
                how: name.clone(),
                benchmark: task.clone(),
                began_with: vec![self.base.name()],
                stages: seeds.iter().map(stage_of).collect(),
                whose: Whose::Several,
            };
            let elsewhere = self.elsewhere(
                &trained,
                tried,
                |other, seed| format!("recipe-{name}-{other}-{seed}"),
                compared,
            );
            stages.extend(elsewhere);
            compared.push(trained);
            let Some(then) = &recipe.then else { continue };
            let then = recipe.then_of.get(task).unwrap_or(then);
            let (how, chosen) = (format!("{name}, then alone"), Chosen::Given(then.clone()));
            let base = |seed: &u64| Base::Stage(stage_of(seed));
            stages.extend(self.by_seed(how, name, tried, &chosen, base, compared));
        }
        Ok(stages)
    }
}
