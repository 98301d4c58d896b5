//! Settings drawn at random from ranges, one trial after the other: a trial is a function of the seed and its number, so more of them change none (Bergstra and
//! Bengio 2012).

use base::exact;
use base::rng::RngKey;
use model::range::{DROPOUT, RATE, WARM_UP};
use serde::{Deserialize, Serialize};

use super::config::{Settings, distinct};
use crate::config::range::{MANY, number, whole};

/// What is searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Search {
    /// Which rows have a search of their own.
    ///
    /// Source: ours: the fewest trials, and nothing but the encoder differs.
    pub rows: Rows,
    /// Number of trials on every benchmark, from 1 to 10,000.
    ///
    /// Source: ours: the best of 20 is, 19 times out of 20, among the best 14 percent of what can be drawn (Bergstra and Bengio 2012 on random search).
    pub trials: u64,
    /// Seed of the sampling.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// Each trial is fine-tuned with every one of these seeds; the mean score counts.
    ///
    /// Source: ours: one run is the least.
    pub finetune_seeds: Vec<u64>,
    /// The range of learning rates, sampled log-uniformly; left out, from 1e-6 to 3e-5.
    ///
    /// Source: KIMERA, table A3, fine-tuning on outcomes.
    pub learning_rate: Range,
    /// Warm-ups, each from 0 to below 1; a trial has one of them.
    ///
    /// Source: 0.1 is that of BERT's `run_classifier.py`; KIMERA, table A3, goes up to half of all steps.
    pub warmup: Vec<f64>,
    /// Numbers of epochs; a trial has one of them.
    ///
    /// Source: ours: KIMERA has 3 to 5 where it retrains, and no number where it fine-tunes (table A3).
    pub epochs: Vec<u64>,
    /// Batch sizes; a trial has one of them.
    ///
    /// Source: KIMERA, table A3, fine-tuning on outcomes: 16 to 128.
    pub batch: Vec<usize>,
    /// Dropouts, each from 0 to 0.95; a trial has one of them.
    ///
    /// Source: KIMERA, table A3, fine-tuning on outcomes: 0.1 to 0.5.
    pub dropout: Vec<f64>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            rows: Rows::Base,
            trials: 20,
            seed: 1,
            finetune_seeds: vec![1],
            learning_rate: Range { least: 1e-6, most: 3e-5 },
            warmup: vec![0.1, 0.5],
            epochs: vec![3, 4, 5],
            batch: vec![16, 32, 64, 128],
            dropout: vec![0.1, 0.3, 0.5],
        }
    }
}

/// Whose settings are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rows {
    /// The base encoder; every row uses the result, so that nothing but the encoder differs.
    Base,
    /// Every row with a different encoder, with the same trials, so that none is judged with settings tuned for another.
    Each,
}

/// From one number to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    /// The lowest, from 1e-12 to 1000.
    pub least: f64,
    /// The highest, from 1e-12 to 1000.
    pub most: f64,
}

impl Search {
    /// The settings of a trial, from 0.
    #[must_use]
    pub(crate) fn trial(&self, number: u64) -> Settings {
        let seed = RngKey::new(self.seed).named("trial").at(number);
        Settings {
            learning_rate: self.learning_rate.draw(seed.named("learning_rate")),
            warmup: one_of(&self.warmup, seed.named("warmup")),
            epochs: one_of(&self.epochs, seed.named("epochs")),
            batch: one_of(&self.batch, seed.named("batch")),
            dropout: one_of(&self.dropout, seed.named("dropout")),
        }
    }

    /// Refuses ranges that nothing can be drawn from.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.learning_rate.check("finetune.search.learning_rate")?;
        // Each is a stage.
        whole("finetune.search.trials", self.trials, 1..=10_000)?;
        distinct(&self.finetune_seeds, "finetune.search.finetune_seeds")?;
        let lists = [
            ("warmup", self.warmup.len()),
            ("epochs", self.epochs.len()),
            ("batch", self.batch.len()),
            ("dropout", self.dropout.len()),
        ];
        for (key, length) in lists {
            anyhow::ensure!(length > 0, "finetune.search.{key} is empty: give a value at least");
        }
        let at = |name: &str, place: usize| format!("finetune.search.{name}.{place}");
        for (i, share) in self.warmup.iter().enumerate() {
            number(at("warmup", i), *share, &WARM_UP)?;
        }
        for (i, share) in self.dropout.iter().enumerate() {
            number(at("dropout", i), *share, &DROPOUT)?;
        }
        for (i, epochs) in self.epochs.iter().enumerate() {
            whole(at("epochs", i), *epochs, 1..=MANY)?;
        }
        for (i, batch) in self.batch.iter().enumerate() {
            whole(at("batch", i), *batch as u64, 1..=MANY)?;
        }
        Ok(())
    }
}

impl Range {
    /// A learning rate of the range, log-uniformly.
    #[must_use]
    pub(crate) fn draw(self, seed: RngKey) -> f64 {
        /// Draws have so many values, exactly representable.
        const STEPS: u64 = 1 << 53;
        let share = seed.below(STEPS) as f64 / STEPS as f64;
        rounded(self.least * exact::pow(self.most / self.least, share))
    }

    /// Refuses what no learning rate can be drawn from; `key` is where it stands.
    ///
    /// # Errors
    /// Names the number.
    pub(crate) fn check(self, key: &str) -> anyhow::Result<()> {
        let Range { least, most } = self;
        anyhow::ensure!(most >= least, "{key} is {least} to {most}, expected the lower one first");
        for (end, rate) in [("least", least), ("most", most)] {
            number(format!("{key}.{end}"), rate, &RATE)?;
        }
        Ok(())
    }
}

/// One of some values, none of which is likelier than another.
pub(crate) fn one_of<T: Clone>(of: &[T], seed: RngKey) -> T {
    of[usize::try_from(seed.below(of.len() as u64)).unwrap_or(0)].clone()
}

/// Three digits are as many as anyone sets, and stand in configs as they are.
fn rounded(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search() -> Search {
        Search {
            rows: Rows::Each,
            trials: 40,
            seed: 1,
            finetune_seeds: vec![1, 2],
            learning_rate: Range { least: 1e-5, most: 1e-3 },
            warmup: vec![0.0, 0.1],
            epochs: vec![3, 4, 5],
            batch: vec![8],
            dropout: vec![0.1, 0.3, 0.5],
        }
    }

    #[test]
    fn trials_are_spread_over_the_ranges_and_more_of_them_change_none() {
        let few = search();
        let many = Search { trials: 80, ..search() };
        let trials: Vec<Settings> = (0..40).map(|number| few.trial(number)).collect();
        assert_eq!(trials, (0..40).map(|number| many.trial(number)).collect::<Vec<_>>());
        let rates: Vec<f64> = trials.iter().map(|settings| settings.learning_rate).collect();
        assert!(rates.iter().all(|rate| (1e-5..=1e-3).contains(rate)), "{rates:?}");
        let low = rates.iter().filter(|&&rate| rate < 1e-4).count();
        assert!((10..=30).contains(&low), "half of them lie below the middle of the scale: {low}");
        for epochs in [3, 4, 5] {
            assert!(trials.iter().any(|settings| settings.epochs == epochs));
        }
        assert_ne!(Search { seed: 2, ..search() }.trial(0), few.trial(0));
    }

    #[test]
    fn ranges_that_hold_nothing_are_refused() {
        search().check().unwrap();
        let refused = |search: Search| search.check().unwrap_err().to_string();
        assert!(refused(Search { epochs: vec![], ..search() }).contains("finetune.search.epochs is empty"));
        let range = Range { least: 1e-3, most: 1e-5 };
        assert!(refused(Search { learning_rate: range, ..search() }).contains("the lower one first"));
        assert!(refused(Search { dropout: vec![1.0], ..search() }).contains("from 0 to 0.95"));
        let twice = Search { finetune_seeds: vec![3, 3], ..search() };
        assert!(refused(twice).contains("finetune.search.finetune_seeds names a seed twice"));
    }
}
