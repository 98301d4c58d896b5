//! Stages that fine-tune one encoder on several benchmarks, which take turns: `recipe-NAME-SEED`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use batch::task::Task as ShardTask;
use downstream::example::Part;
use model::optim::chosen::ReferenceCode;
use model::predict::Predictor;
use model::range::{POSITIVE_WEIGHT, TEMPERATURE};
use serde::{Deserialize, Serialize};
use tasks::stream::schedule::Schedule;

use super::benchmark::Benchmark;
use super::config::Settings;
use super::quirks::ChosenOn;
use super::sharded::{Asked, Sharded};
use super::{SCORES, Scores, Tried, answers, complete, facts, model_card, steps};
use crate::config::range::{MANY, inside, number, whole};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Resume, Stage};
use crate::stage::encoder::{Base, MODEL};
use crate::stage::shards::Shards;
use crate::stage::training::steps::ended;

fn merged() -> Schedule {
    Schedule::Merged
}

/// A table of `[[recipes]]`: several benchmarks, one encoder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Config {
    /// The name, in lower-case letters, digits, `-` and `_`; not `alone` or `base`, and unique across attentions and recipes.
    pub name: String,
    /// Benchmark names, at least two, in turn order; left out, all.
    ///
    /// Source: all of `[[benchmarks]]`.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Tasks of `shards.tasks` that take turns with the benchmarks; words are predicted by the output of `masked_lm`. A batch has `batch_of`, else `batch`,
    /// chunks of texts, pairs of names or triples. The model that is kept is that of the benchmarks' scores. Not with `pairwise`.
    ///
    /// Source: MT-BERT, section 3.5: benchmarks alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardTask>,
    /// How tasks take turns. A step has one batch of one task; the other tasks' heads are not updated. The model kept is the one with the highest
    /// mean task score on `dev` (or on the part set by `quirks.chosen_on`). Not `kimera`.
    ///
    /// Source: MT-BERT, algorithm 1.
    #[serde(default = "merged")]
    pub schedule: Schedule,
    /// `true` trains every pair of tasks separately with the settings of `[finetune]`, stages `recipe-NAME-ONE-OTHER-SEED`; stage `matrix-NAME`
    /// reports which task helps which: the difference from single-task training with its interval over seeds, as a table (`matrix.md`), a diagram
    /// (`matrix.svg`) and `matrix.json`. Not with `then`, `attention`, `quirks` or `batch_of`.
    ///
    /// Source: MT-BERT, section 3.5: one model of all tasks; pairs are its analysis (section 4.4.1).
    #[serde(default)]
    pub pairwise: bool,
    /// Loss weights by task, from 1e-12 to 1e6; left out, 1.
    #[serde(default)]
    pub weights: BTreeMap<String, f64>,
    /// Batch size by task, where it differs from `batch`; up to 1,000,000.
    #[serde(default)]
    pub batch_of: BTreeMap<String, usize>,
    /// The name of an `[[attentions]]` entry with `knowledge`, used for all its tasks; in rows of `shards` nothing is known of any token. Left out, BERT's own attention.
    #[serde(default)]
    pub attention: Option<String>,
    /// How they are trained; an epoch is the schedule's.
    #[serde(flatten)]
    pub settings: Settings,
    /// A reference code's optimiser and schedule instead of AdamW with linear decay.
    #[serde(default)]
    pub quirks: Option<ReferenceCode>,
    /// Fine-tunes the refined encoder on each task with a new task head (MT-BERT's third stage, section 3.5.3; with map attention its convolutions
    /// are new too): stages `finetune-RECIPE-BENCHMARK-SEED`. What is left out is as in `[finetune]`.
    #[serde(default)]
    pub then: Option<Settings>,
    /// The same for individual tasks, by name.
    #[serde(default)]
    pub then_of: BTreeMap<String, Settings>,
}

impl Config {
    /// Whether it can be meant, given the names of all benchmarks.
    ///
    /// # Errors
    /// Names the first setting that cannot.
    pub(crate) fn check(&self, benchmarks: &[&str]) -> anyhow::Result<()> {
        let key = format!("recipes.{}", self.name);
        anyhow::ensure!(
            self.tasks.len() > 1 || (self.tasks.len() == 1 && !self.shards.is_empty()),
            "{key}.tasks names {} benchmarks, expected at least 2: [finetune] alone is for one",
            self.tasks.len()
        );
        for (place, task) in self.shards.iter().enumerate() {
            let name = task.name();
            anyhow::ensure!(
                !self.shards[..place].contains(task) && !self.tasks.iter().any(|of| of == name),
                "{key} has {name:?} twice: leave one out, or give the benchmark another name"
            );
        }
        anyhow::ensure!(
            self.shards.is_empty() || !self.pairwise,
            "{key}.shards takes turns with all benchmarks: leave {key}.pairwise out"
        );
        for (place, task) in self.tasks.iter().enumerate() {
            anyhow::ensure!(
                benchmarks.contains(&task.as_str()),
                "{key}.tasks has {task:?}, but [[benchmarks]] has {}",
                benchmarks.join(", ")
            );
            anyhow::ensure!(
                !self.tasks[..place].contains(task),
                "{key}.tasks has {task:?} twice: leave one out"
            );
        }
        self.check_tasks(&key)?;
        anyhow::ensure!(
            self.schedule != Schedule::Kimera,
            "{key}.schedule is {}, expected merged, {{ round_robin = \"paper\" }}, proportional, or {{ temperature = NUMBER }}",
            self.schedule.name()
        );
        anyhow::ensure!(
            !self.pairwise || self.then.is_none(),
            "{key}.then goes on from one encoder of all tasks, and {key}.pairwise makes one of each pair: leave one of them out"
        );
        anyhow::ensure!(
            !self.pairwise || (self.attention.is_none() && self.quirks.is_none() && self.batch_of.is_empty()),
            "{key}.pairwise compares each pair with what its tasks come to alone, with plain attention, AdamW and one batch: leave {key}.attention, {key}.quirks and {key}.batch_of out"
        );
        Ok(())
    }

    /// Refuses settings outside their ranges.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn ranges(&self) -> anyhow::Result<()> {
        let key = format!("recipes.{}", self.name);
        if let Schedule::Temperature(temperature) = self.schedule {
            number(format!("{key}.schedule.temperature"), temperature, &TEMPERATURE)?;
        }
        inside(&key, self.quirks.as_ref().map_or(Ok(()), ReferenceCode::check))?;
        for (task, weight) in &self.weights {
            number(format!("{key}.weights.{task}"), *weight, &POSITIVE_WEIGHT)?;
        }
        for (task, batch) in &self.batch_of {
            whole(format!("{key}.batch_of.{task}"), *batch as u64, 1..=MANY)?;
        }
        let then_of = self.then_of.iter().map(|(task, then)| (format!("then_of.{task}"), then));
        let then = self.then.iter().map(|then| ("then".to_owned(), then));
        let of_recipe = std::iter::once((key.clone(), &self.settings));
        let goes_on = then_of.chain(then).map(|(name, settings)| (format!("{key}.{name}"), settings));
        of_recipe.chain(goes_on).try_for_each(|(key, settings)| {
            settings.check(&key)?;
            whole(format!("{key}.epochs"), settings.epochs, 1..=MANY)
        })
    }

    /// What is said of single tasks.
    fn check_tasks(&self, key: &str) -> anyhow::Result<()> {
        let has = |task: &String| {
            self.tasks.contains(task) || self.shards.iter().any(|of| of.name() == task.as_str())
        };
        for task in self.weights.keys() {
            anyhow::ensure!(has(task), "{key}.weights.{task}: {task:?} is none of its tasks");
        }
        for task in self.batch_of.keys() {
            anyhow::ensure!(has(task), "{key}.batch_of.{task}: {task:?} is none of its tasks");
        }
        for task in self.then_of.keys() {
            anyhow::ensure!(self.tasks.contains(task), "{key}.then_of.{task}: {task:?} is none of its tasks");
            anyhow::ensure!(
                self.then.is_some(),
                "{key}.then_of.{task} is there without {key}.then, which is for the other tasks: add it"
            );
        }
        Ok(())
    }
}

/// The stage.
#[derive(Debug)]
pub(crate) struct Together {
    /// Its name.
    pub name: String,
    /// What it is fine-tuned on, in the order of the recipe's tasks.
    pub tried: Vec<Tried>,
    /// What it begins with.
    pub base: Base,
    /// The recipe.
    pub recipe: Config,
    /// Seed of the outputs' weights, dropout and orders.
    pub seed: u64,
    /// What makes the shards, if a task is of them.
    pub shards: Option<Shards>,
}

impl Together {
    /// The weight of a task's loss, and examples of one batch.
    fn of(&self, task: &str) -> (f64, usize) {
        let Config { weights, batch_of, settings, .. } = &self.recipe;
        let weight = weights.get(task).copied().unwrap_or(1.0);
        (weight, batch_of.get(task).copied().unwrap_or(settings.batch))
    }

    /// The tasks of shards.
    fn sharded(&self, context: &Context) -> anyhow::Result<Vec<Sharded>> {
        let Some(shards) = &self.shards else { return Ok(vec![]) };
        let asked = self.recipe.shards.iter().map(|&task| {
            let (alpha, batch) = self.of(task.name());
            Asked { task, alpha, batch }
        });
        let maps = self.tried.first().map_or(&[][..], |tried| tried.attending.maps());
        Sharded::all(&asked.collect::<Vec<_>>(), shards, maps, self.seed, context)
    }
}

impl Stage for Together {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        7
    }

    fn describe(&self, to: &mut dyn Describe) {
        // What no recipe chooses is the same for all benchmarks.
        if let Some(tried) = self.tried.first() {
            tried.describe(to);
        }
        for tried in self.tried.iter().skip(1) {
            if let Some(parsed) = tried.attending.parsed() {
                describe::under(to, &format!("parsed.{}", tried.name), |to| parsed.describe(to));
            }
        }
        self.base.describe(to);
        to.field("finetune.seed", self.seed.into());
        let lengths: Vec<usize> = self.tried.iter().map(|tried| tried.fixed.max_tokens).collect();
        if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
            describe::config(to, "recipe.max_tokens", &lengths);
        }
        let prepared = self.tried.first().map(|tried| tried.fixed.quirks);
        if prepared.is_some_and(|prepared| prepared.chosen_on == ChosenOn::Test) {
            to.field("recipe.scores", "with best_look".into());
        }
        let Config { tasks, schedule, weights, batch_of, settings, quirks, .. } = &self.recipe;
        describe::config(to, "recipe.tasks", tasks);
        if !self.recipe.shards.is_empty() {
            describe::config(to, "recipe.shards", &self.recipe.shards);
        }
        describe::config(to, "recipe.schedule", schedule);
        describe::config(to, "recipe.weights", weights);
        if !batch_of.is_empty() {
            describe::config(to, "recipe.batch_of", batch_of);
        }
        describe::config(to, "recipe", settings);
        describe::config(to, "recipe.quirks", quirks);
    }

    fn computes_on(&self) -> Option<String> {
        self.tried.first().map(|tried| tried.compute.told())
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.tried.iter().fold(Licence::None, |all, tried| all.with(tried.attending.licence())))
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs: Vec<Input> = self.tried.iter().map(|tried| Input::artifact(tried.stage())).collect();
        for input in self.tried.iter().flat_map(Tried::tools).chain([self.base.input()]) {
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        if let Some(shards) = &self.shards {
            for input in shards.trained_on() {
                if !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
        }
        inputs
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.base.name())
    }

    fn resume(&self) -> Resume {
        Resume::SameFingerprint
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let one = self.tried.first().context("a recipe without tasks")?;
        let read = self.tried.iter().map(|tried| tried.read(context, self.seed));
        let benchmarks = read.collect::<anyhow::Result<Vec<Box<dyn Benchmark>>>>()?;
        let device = one.compute.device(context)?;
        one.fits(&self.base.folder(context)?, context)?;
        let each = self.tried.iter().zip(&benchmarks);
        let tasks: Vec<steps::Task<'_>> = each
            .map(|(tried, benchmark)| {
                let (name, (alpha, batch)) = (&tried.name, self.of(&tried.name));
                let max_tokens = tried.fixed.max_tokens;
                steps::Task { name, benchmark: benchmark.as_ref(), alpha, batch, max_tokens }
            })
            .collect();
        let run = steps::Run {
            context,
            tasks: &tasks,
            schedule: self.recipe.schedule,
            settings: &self.recipe.settings,
            released: self.recipe.quirks.as_ref(),
            tried: one,
            seed: self.seed,
            device: &device,
            compute: one.compute,
        };
        run.to_the_end(&self.base.folder(context)?, self.sharded(context)?)?;
        complete(context, one, &tasks)?;
        let (ended, chosen_on) = (ended(context.out())?, one.fixed.quirks.chosen_on);
        let predictor = Predictor::load(&context.out().join(MODEL), &device)?;
        // What the codes report, each task at its own best look; the model that is kept is that of the best mean.
        let looks = match chosen_on {
            ChosenOn::Test => steps::best_looks(context.out())?,
            ChosenOn::Dev => BTreeMap::new(),
        };
        let (mut all, mut known) = (BTreeMap::new(), serde_json::Map::new());
        for (number, task) in tasks.iter().enumerate() {
            let score = |part| answers::score(&predictor, number, task.benchmark, part, context);
            let mut test = score(Part::Test)?;
            test.others.extend(looks.get(task.name).map(|best| ("best_look".to_owned(), *best)));
            let scores = Scores {
                seed: self.seed,
                settings: self.recipe.settings.clone(),
                train: task.benchmark.items(),
                parameters: Some(predictor.parameters()),
                steps: ended.steps,
                best_step: ended.best.map_or(ended.steps, |best| best.step),
                chosen_on,
                dev: score(Part::Dev)?,
                test: Some(test),
            };
            all.insert(task.name.to_owned(), scores);
            known.insert(task.name.to_owned(), facts(task.benchmark)?.into());
        }
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&all)?)?;
        let each = tasks.iter().filter_map(|task| Some((all.get(task.name)?, task.benchmark)));
        let of = model_card::Tuned { stage: &self.name, tried: &self.tried, base: &self.base };
        of.write(context, &each.collect::<Vec<_>>())?;
        context.record("scores", serde_json::to_value(&all)?);
        context.record("benchmarks", known);
        Ok(())
    }
}

/// The scores on one benchmark in the artifact of a recipe.
///
/// # Errors
/// When they cannot be read, or the recipe has no such task.
pub(crate) fn scores(folder: &Path, benchmark: &str) -> anyhow::Result<Scores> {
    let path = folder.join(SCORES);
    let bytes = std::fs::read(&path).with_context(|| format!("{}: cannot read it", path.display()))?;
    let mut all: BTreeMap<String, Scores> =
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
    all.remove(benchmark).with_context(|| format!("{}: no scores of {benchmark}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "name = \"mt\"\ntasks = [\"a\", \"b\"]\nschedule = \"merged\"\nweights = { a = 0.5 }\n\
        learning_rate = 1e-5\nepochs = 2\nbatch = 8\n";

    #[test]
    fn what_cannot_be_meant_is_named() {
        let told = |from: &str, to: &str| {
            let config: Config = toml::from_str(&RECIPE.replace(from, to)).unwrap();
            let checked = config.ranges().and_then(|()| config.check(&["a", "b", "c"]));
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(told("", ""), Ok(()));
        assert_eq!(told("\"merged\"", "{ round_robin = \"reference\" }"), Ok(()));
        let wrong = |from: &str, to: &str| told(from, to).unwrap_err();
        assert!(
            wrong("\"b\"", "\"z\"").contains("recipes.mt.tasks has \"z\", but [[benchmarks]] has a, b, c")
        );
        assert!(wrong("\"b\"", "\"a\"").contains("has \"a\" twice"));
        assert!(wrong(", \"b\"", "").contains("names 1 benchmarks, expected at least 2"));
        assert!(wrong("a = 0.5", "c = 0.5").contains("\"c\" is none of its tasks"));
        assert!(
            wrong("a = 0.5", "a = 0.0").contains("recipes.mt.weights.a is 0, expected from 1e-12 to 1e6")
        );
        const THEN: &str = "{ learning_rate = 1e-5, warmup = 0.1, epochs = 2, batch = 8, dropout = 0.1 }";
        assert_eq!(told("weights", &format!("then = {THEN}\nthen_of = {{ a = {THEN} }}\nweights")), Ok(()));
        assert!(
            wrong("weights", &format!("then_of = {{ a = {THEN} }}\nweights"))
                .contains("then_of.a is there without recipes.mt.then")
        );
        assert!(
            wrong("weights", &format!("then = {THEN}\nthen_of = {{ c = {THEN} }}\nweights"))
                .contains("then_of.c: \"c\" is none of its tasks")
        );
        assert_eq!(told("weights", "batch_of = { b = 40 }\nweights"), Ok(()));
        assert!(
            wrong("weights", "batch_of = { c = 4 }\nweights")
                .contains("batch_of.c: \"c\" is none of its tasks")
        );
        assert!(
            wrong("weights", "batch_of = { b = 0 }\nweights")
                .contains("batch_of.b is 0, expected at least 1 and at most 1000000")
        );
        assert!(wrong("\"merged\"", "\"kimera\"").contains("schedule is kimera, expected merged"));
        assert!(wrong("\"merged\"", "{ temperature = -1.0 }").contains("schedule.temperature is -1"));
        let released = "quirks = { optimiser = { kind = \"bert_adam\", beta1 = 1.0, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0.01 }, pace = \"linear061\" }\nweights";
        let text = wrong("weights", released);
        assert!(text.contains("recipes.mt.quirks.optimiser.beta1 is 1, expected at least 0"), "{text}");
        let pairs = "pairwise = true\nthen = { learning_rate = 1e-5, warmup = 0.1, epochs = 2, batch = 8, dropout = 0.1 }\nweights";
        assert!(wrong("weights", pairs).contains("leave one of them out"));
        let by_maps = "pairwise = true\nattention = \"kam\"\nweights";
        assert!(wrong("weights", by_maps).contains("with plain attention, AdamW and one batch"));
        assert!(wrong("epochs = 2", "epochs = 0").contains("recipes.mt.epochs is 0"));
    }
}
