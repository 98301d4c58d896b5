//! Stages `matrix-NAME`: which benchmark, trained on together with another, helps it (MT-BERT's pairwise tables).

use anyhow::Context as _;
use base::whole::write_whole;
use model::eval::interval::across_seeds;
use serde::Serialize;

use super::finetune::quirks::ChosenOn;
use super::finetune::{scores, together};
use super::scores::LEVEL;
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};
use ::report::FEWEST_SEEDS;
use ::report::pairs::{Effect, Effects, Task};

/// All differences, within the artifact.
pub(crate) const MATRIX: &str = "matrix.json";
/// The same as a table to be read.
pub(crate) const TABLE: &str = "matrix.md";
/// What its pictures are called, without `.svg`: the square, and with `-arrows` behind it the same as arrows.
const PICTURE: &str = "matrix";
/// What is to be said of models that were chosen so.
const CHOSEN_ON_TEST: &str = "Models were chosen by the very scores that are compared here: each is the best of its looks at the part `test`.";

#[derive(Debug)]
pub(crate) struct Matrix {
    /// `matrix-NAME`.
    pub name: String,
    /// The benchmarks, in order.
    pub tasks: Vec<String>,
    /// Of each benchmark the stages that are fine-tuned on it alone, one for each seed.
    pub alone: Vec<Vec<String>>,
    /// Two benchmarks by their places, and the stages of both together, one for each seed in the same order.
    pub pairs: Vec<((usize, usize), Vec<String>)>,
    /// What all of them began with: the stage, or the checkpoint.
    pub began_with: String,
}

/// What a benchmark gains from another.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Gain {
    /// The benchmark that is measured.
    task: String,
    /// That which is trained on together with it.
    with: String,
    /// What is measured.
    metric: String,
    /// The mean over seeds of the score together less the score alone.
    mean: f64,
    /// Where the mean over all seeds lies; none of one seed.
    interval: Option<[f64; 2]>,
    /// The differences, seed by seed.
    seeds: Vec<f64>,
}

impl Gain {
    fn new(task: &str, with: &str, metric: String, [alone, together]: [&[f64]; 2]) -> anyhow::Result<Self> {
        let seeds: Vec<f64> = together.iter().zip(alone).map(|(with, alone)| with - alone).collect();
        let mean = seeds.iter().sum::<f64>() / seeds.len().max(1) as f64;
        let interval = match seeds.len() {
            0 | 1 => None,
            _ => across_seeds(&seeds, LEVEL).map(|over| Some([over.low, over.high]))?,
        };
        Ok(Self { task: task.to_owned(), with: with.to_owned(), metric, mean, interval, seeds })
    }

    /// The interval, where there are seeds enough for one to be shown.
    fn shown(&self) -> Option<[f64; 2]> {
        self.interval.filter(|_| self.seeds.len() >= FEWEST_SEEDS)
    }

    /// Whether its interval leaves out 0.
    fn is_sure(&self) -> bool {
        self.shown().is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }

    /// In hundredths, with the interval.
    fn told(&self) -> String {
        let percent = |value: f64| format!("{:+.1}", 100.0 * value);
        let interval = self
            .shown()
            .map_or_else(String::new, |[low, high]| format!(" [{}, {}]", percent(low), percent(high)));
        let mark = if self.is_sure() { "**" } else { "" };
        format!("{mark}{}{mark}{interval}", percent(self.mean))
    }
}

/// Gains as a table in Markdown: a row for each benchmark, a column for each that it is trained on together with.
fn table(tasks: &[String], gains: &[Gain], began_with: &str) -> String {
    let mut text =
        format!("| measured on | {} |\n|---{}|\n", tasks.join(" | with "), "|--:".repeat(tasks.len()));
    text =
        text.replacen("| measured on | ", &format!("| measured on (all began with {began_with}) | with "), 1);
    for task in tasks {
        let cells = tasks.iter().map(|with| {
            let gain = gains.iter().find(|gain| gain.task == *task && gain.with == *with);
            gain.map_or_else(String::new, Gain::told)
        });
        text.push_str(&format!("| {task} | {} |\n", cells.collect::<Vec<_>>().join(" | ")));
    }
    text
}

impl Matrix {
    /// All of it for the page and its pictures.
    fn effects(&self, alone: Vec<(String, Vec<f64>)>, gains: &[Gain], note: Option<&str>) -> Effects {
        let place = |name: &String| self.tasks.iter().position(|task| task == name);
        let effect = |gain: &Gain| {
            let (with, on) = (place(&gain.with)?, place(&gain.task)?);
            Some(Effect { with, on, mean: gain.mean, interval: gain.interval, seeds: gain.seeds.clone() })
        };
        let tasks = self.tasks.iter().zip(alone);
        Effects {
            name: PICTURE.to_owned(),
            title: self.name.clone(),
            began_with: self.began_with.clone(),
            tasks: tasks.map(|(name, (metric, alone))| Task { name: name.clone(), metric, alone }).collect(),
            effects: gains.iter().filter_map(effect).collect(),
            notes: note.map(str::to_owned).into_iter().collect(),
        }
    }
}

impl Stage for Matrix {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        3
    }

    fn describe(&self, to: &mut dyn Describe) {
        to.field("matrix.tasks", self.tasks.join(", ").into());
        to.field("matrix.began_with", self.began_with.clone().into());
    }

    fn inputs(&self) -> Vec<Input> {
        let pairs = self.pairs.iter().flat_map(|(_, stages)| stages);
        self.alone.iter().flatten().chain(pairs).map(Input::artifact).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let mut chosen_on = ChosenOn::Dev;
        let mut test = |of: super::finetune::Scores| {
            chosen_on = of.chosen_on;
            of.test.context("a fine-tuning without scores of the part `test`")
        };
        let mut alone: Vec<(String, Vec<f64>)> = vec![];
        for stages in &self.alone {
            let mut read = |stage: &String| test(scores(context.artifact(stage)?)?);
            let of = stages.iter().map(&mut read).collect::<anyhow::Result<Vec<_>>>()?;
            let metric = of.first().map(|score| score.metric.clone()).unwrap_or_default();
            alone.push((metric, of.into_iter().map(|score| score.value).collect()));
        }
        let mut gains = vec![];
        for ((one, other), stages) in &self.pairs {
            for (task, with) in [(*one, *other), (*other, *one)] {
                let read = |stage: &String| {
                    Ok(test(together::scores(context.artifact(stage)?, &self.tasks[task])?)?.value)
                };
                let found = stages.iter().map(read).collect::<anyhow::Result<Vec<f64>>>()?;
                let (metric, of_task) = &alone[task];
                let (task, with) = (&self.tasks[task], &self.tasks[with]);
                gains.push(Gain::new(task, with, metric.clone(), [of_task, &found])?);
            }
        }
        let mut text = table(&self.tasks, &gains, &self.began_with);
        let note = (chosen_on == ChosenOn::Test).then_some(CHOSEN_ON_TEST);
        note.iter().for_each(|note| text += &format!("\n{note}\n"));
        write_whole(&context.out().join(TABLE), text.as_bytes())?;
        let page = self.effects(alone, &gains, note).page();
        ::report::write(&page, context.out())?;
        write_whole(&context.out().join(MATRIX), &serde_json::to_vec_pretty(&gains)?)?;
        context.record("began_with", self.began_with.clone());
        context.record("gains", serde_json::to_value(&gains)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_differences_seed_by_seed() {
        let gain = |with: &[f64]| Gain::new("a", "b", "f1".to_owned(), [&[0.5, 0.6, 0.7], with]).unwrap();
        let better = gain(&[0.6, 0.71, 0.79]);
        assert!((better.mean - 0.1).abs() < 1e-9 && better.is_sure(), "{better:?}");
        assert!(better.told().starts_with("**+10.0** [+"), "{}", better.told());
        let unsure = gain(&[0.9, 0.5, 0.6]);
        assert!(!unsure.is_sure() && unsure.told().starts_with("+6.7 [-"), "{}", unsure.told());
        let one = Gain::new("a", "b", "f1".to_owned(), [&[0.5], &[0.4]]).unwrap();
        assert_eq!((one.interval, one.told().as_str()), (None, "-10.0"));
        let tasks = ["a", "b"].map(str::to_owned);
        let text = table(&tasks, std::slice::from_ref(&better), "encoder");
        assert!(
            text.starts_with("| measured on (all began with encoder) | with a | with b |\n|---|--:|--:|\n| a |  | **+10.0**"),
            "{text}"
        );
        let two = Gain::new("a", "b", "f1".to_owned(), [&[0.5, 0.6], &[0.6, 0.7001]]).unwrap();
        assert!(
            two.interval.is_some() && two.told() == "+10.0",
            "two seeds show no interval: {}",
            two.told()
        );
    }
}
