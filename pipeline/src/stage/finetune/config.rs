//! The fine-tuning's part of a config.

mod limits;
mod ranking;
mod spans;

use std::collections::{BTreeMap, BTreeSet};

use downstream::encode::{Cut, Frame};
use downstream::tagging::Subwords;
use model::encoder::pool::Pooling;
use model::optim::adamw::AdamWConfig;
use model::optim::bert;
use model::optim::schedule::Decay;
use model::range::{DROPOUT, RATE, WARM_UP};
use serde::{Deserialize, Serialize};
use tasks::token::encode::Vocabulary;

use super::begin::From;
use super::quirks::{ChosenOn, Quirks};
use super::search::Search;
use crate::config::range::{MANY, number, whole};
use crate::stage::LONGEST;
use crate::stage::training::settings::Updates;
use limits::{MaxExamples, Patience};
use ranking::Ranking;
pub(super) use ranking::{NegativesFrom, Scorer};
pub(super) use spans::Spans;

/// How encoders are fine-tuned on every benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Config {
    /// One fine-tuning run for each: seeds of the task head's weights, dropout and the order of examples. Intervals are over seeds.
    ///
    /// Source: ours: one run is the least; give three or more for intervals.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// The encoder that fine-tuning, attentions and recipes start from; not with `[graft]`, where each row determines it. Left out, the last one
    /// trained: by `[align]` if the config has it, else by `[retrain]`, else by `[pretrain]`, else `[encoder]` as is. `plan` shows it after each stage
    /// (`finetune-base-ner-1 <- retrain`), score tables in a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<From>,
    /// Names of the benchmarks for single-task fine-tuning; not with `[graft]`. Left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<String>>,
    /// Shares of the training examples, each above 0 and below 1, on which everything is fine-tuned as well, for a curve of scores over their number: rows
    /// such as `alone, 5 %`. Each has the steps that its epochs come to. Not with `[graft]`; recipes have none.
    ///
    /// Source: none: Wang et al. 2020 are about small training sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<f64>,
    /// What a search may choose.
    #[serde(flatten)]
    pub settings: Settings,
    /// The five settings above for single benchmarks, by name; what is left out is as in `[finetune]`.
    #[serde(default)]
    pub settings_of: BTreeMap<String, Settings>,
    /// Random search over settings, for every benchmark without its own: stages `trial-ROW-NAME-N-SEED`, and `settings-ROW-NAME`, which takes the
    /// best on `dev`. A trial depends only on the seed and its number, so adding trials changes none, and all rows have the same trials.
    pub search: Option<Search>,
    /// What no search chooses.
    #[serde(flatten)]
    pub fixed: Fixed,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// What a search may choose (KIMERA, table A3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Settings {
    /// Peak learning rate, from 1e-12 to 1000. In `settings_of`, recipes, `then` and `then_of`, this, `warmup`, `epochs`, `batch` and `dropout` are
    /// those of `[finetune]` where left out.
    ///
    /// Source: BERT's `run_classifier.py`, and MT-BERT, section 4.2.
    pub learning_rate: f64,
    /// Share of the steps over which it rises, from 0 to below 1; then it follows `finetune.schedule`.
    ///
    /// Source: BERT's `run_classifier.py`, and MT-BERT, section 4.2.
    pub warmup: f64,
    /// Maximum number of epochs; in recipes, those of the schedule. 0 evaluates the encoder as it is, for bi-encoders, which need no training to answer.
    ///
    /// Source: ours: above BERT's 2 to 4 (Devlin et al. 2019, appendix A.3), since the model kept is the best evaluation's.
    pub epochs: u64,
    /// Examples (or ranking queries) per step.
    ///
    /// Source: Devlin et al. 2019, appendix A.3: 16 or 32.
    pub batch: usize,
    /// Dropout on the task head's input, from 0 to 0.95; a bi-encoder has no head.
    ///
    /// Source: MT-BERT, section 4.2: 0.1 for all task-specific layers.
    pub dropout: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { learning_rate: 5e-5, warmup: 0.1, epochs: 5, batch: 16, dropout: 0.1 }
    }
}

/// What says the settings of a benchmark's fine-tunings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source<'a> {
    /// These settings.
    Given(&'a Settings),
    /// What this search finds.
    Search(&'a Search),
}

/// What no search chooses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Fixed {
    /// Maximum tokens per row, special tokens included, from 8 to 65,534; truncations are counted.
    ///
    /// Source: BERT's `run_classifier.py`, and MT-BERT, section 4.2.
    pub max_tokens: usize,
    /// The same for single benchmarks, by name: by themselves and in recipes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub max_tokens_of: BTreeMap<String, usize>,
    /// Which text of a pair is truncated.
    ///
    /// Source: BERT's `run_classifier.py`.
    pub truncation: Cut,
    /// How a row is pooled for the task head.
    ///
    /// Source: MT-BERT, sections 3.1 to 3.3: the output of `[CLS]`.
    pub pooling: Pooling,
    /// Reference-code quirks, where a code differs from its paper: see Papers and their reference codes, below.
    #[serde(skip_serializing_if = "Quirks::is_as_written")]
    pub quirks: Quirks,
    /// Which subwords are labelled with a word's tag, and which one's prediction is used.
    ///
    /// Source: Devlin et al. 2019, on NER.
    pub subwords: Subwords,
    /// Whether to correct imbalance of the classes of whole texts (for sets of classes: negative over positive examples). Tags, scores, choices, spans and rankings are not
    /// weighed, which a warning says.
    ///
    /// Source: MT-BERT, sections 3.1 to 3.4: no loss is weighted.
    pub class_weights: ClassWeights,
    /// How passages are ranked for a query.
    pub ranking: Ranking,
    /// How answers are looked for in passages (formats `squad`, `quasar_t`, `search_qa`).
    #[serde(skip_serializing_if = "Spans::is_default")]
    pub spans: Spans,
    /// What the learning rate does after `warmup`: down to 0 along a line or half a cosine, or constant. A recipe's `quirks` replace it.
    ///
    /// Source: BERT's `optimization.py`, and MT-BERT, section 4.2.
    pub schedule: Decay,
    /// AdamW's constants.
    pub adamw: AdamWConfig,
    /// An optimiser in place of AdamW; left out, AdamW with the constants of `adamw`. A recipe's `quirks` replace it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<bert::Config>,
    /// Maximum global gradient norm, at least 1e-12; a high value disables clipping.
    ///
    /// Source: BERT's `optimization.py`, and MT-BERT, section 4.2.
    pub clip_norm: f64,
    /// Dropout of hidden states while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_dropout: Option<f64>,
    /// Dropout of attention probabilities while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_dropout: Option<f64>,
    /// Upper limit on steps; left out, all epochs are trained. The learning rate follows `schedule` to the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Name prefixes of parameters to freeze, such as `embeddings.`.
    ///
    /// Source: Devlin et al. 2019: all parameters are fine-tuned.
    pub frozen: Vec<String>,
    /// Early stopping. The model kept is the best evaluation's.
    pub patience: Patience,
    /// Steps between training states, from which an interrupted run resumes and which `--restart` removes. Shapes no artifact.
    ///
    /// Source: ours: minutes of work at most are lost.
    pub checkpoint_every: u64,
    /// Batches whose gradients are averaged for a step of the optimiser (gradient accumulation): a step has so many times the samples in the memory of one
    /// batch. Steps everywhere are those of the optimiser. Up to 1,000,000.
    ///
    /// Source: ours: a batch is a step unless memory is short.
    pub accumulate: u64,
    /// Maximum examples or queries of each part used for training or evaluation, sampled once, seeded by the benchmark's name.
    pub max_examples: MaxExamples,
}

impl Default for Fixed {
    fn default() -> Self {
        Self {
            max_tokens: 128,
            max_tokens_of: BTreeMap::new(),
            truncation: Cut::default(),
            pooling: Pooling::default(),
            quirks: Quirks::default(),
            subwords: Subwords::default(),
            class_weights: ClassWeights::default(),
            ranking: Ranking::default(),
            spans: Spans::default(),
            schedule: Decay::default(),
            adamw: AdamWConfig::default(),
            optimiser: None,
            clip_norm: 1.0,
            hidden_dropout: None,
            attention_dropout: None,
            max_steps: None,
            frozen: Vec::new(),
            patience: Patience::default(),
            checkpoint_every: 200,
            accumulate: 1,
            max_examples: MaxExamples::default(),
        }
    }
}

/// Whether class imbalance is corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClassWeights {
    /// Every example has the same weight.
    #[default]
    None,
    /// Every class has the same weight in all.
    Balanced,
}

impl Config {
    /// What says the settings of a benchmark's fine-tunings: its own, a search, or those for all.
    #[must_use]
    pub(crate) fn source(&self, benchmark: &str) -> Source<'_> {
        match (self.settings_of.get(benchmark), &self.search) {
            (Some(settings), _) => Source::Given(settings),
            (None, None) => Source::Given(&self.settings),
            (None, Some(search)) => Source::Search(search),
        }
    }

    /// Refuses settings that no fine-tuning can come of, before any stage runs.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn check(&self, benchmarks: &[&str]) -> anyhow::Result<()> {
        for (place, share) in self.curve.iter().enumerate() {
            anyhow::ensure!(
                *share > 0.0 && *share < 1.0,
                "finetune.curve has {share}, expected shares above 0 and below 1: all examples are a row anyway"
            );
            anyhow::ensure!(
                !self.curve[..place].contains(share),
                "finetune.curve has {share} twice: leave one out"
            );
        }
        let MaxExamples { train, train_share, .. } = &self.fixed.max_examples;
        anyhow::ensure!(
            self.curve.is_empty() || (train.is_none() && train_share.is_none()),
            "finetune.curve has shares of all training examples, and finetune.max_examples bounds them: leave one of them out"
        );
        for (place, name) in self.on.iter().flatten().enumerate() {
            let (known, all) = (benchmarks.contains(&name.as_str()), benchmarks.join(", "));
            anyhow::ensure!(known, "finetune.on has {name:?}, but [[benchmarks]] has {all}");
            let twice = self.on.iter().flatten().take(place).any(|other| other == name);
            anyhow::ensure!(!twice, "finetune.on has {name:?} twice: leave one out");
        }
        if let Some(name) = self.settings_of.keys().find(|name| !benchmarks.contains(&name.as_str())) {
            anyhow::bail!(
                "finetune.settings_of.{name}: there is no such benchmark; [[benchmarks]] has {}",
                benchmarks.join(", ")
            );
        }
        anyhow::ensure!(
            self.search.is_none() || self.fixed.quirks.chosen_on == ChosenOn::Dev,
            "finetune.search chooses settings by the part `dev`, finetune.quirks.chosen_on the model by `test`: leave one of them out"
        );
        let lengths = &self.fixed.max_tokens_of;
        if let Some(name) = lengths.keys().find(|name| !benchmarks.contains(&name.as_str())) {
            anyhow::bail!(
                "finetune.max_tokens_of.{name}: there is no such benchmark; [[benchmarks]] has {}",
                benchmarks.join(", ")
            );
        }
        Ok(())
    }

    /// Refuses to leave an encoder as it is for benchmarks that no bi-encoder answers; `rankings` says which benchmarks are rankings.
    ///
    /// # Errors
    /// Names the key and the benchmark.
    pub(crate) fn check_untrained(&self, rankings: &[(&str, bool)]) -> anyhow::Result<()> {
        for (name, is_ranking) in rankings {
            let Source::Given(settings) = self.source(name) else { continue };
            let asked = self.on.as_ref().is_none_or(|on| on.iter().any(|of| of == name));
            let answers = *is_ranking && self.fixed.ranking.scorer == Scorer::BiEncoder;
            let of = if self.settings_of.contains_key(*name) {
                format!("settings_of.{name}.")
            } else {
                String::new()
            };
            anyhow::ensure!(
                settings.epochs > 0 || !asked || answers,
                "finetune.{of}epochs is 0, which leaves the encoder as it is, and only a ranking by a bi-encoder (finetune.ranking.scorer) can be answered so, not {name}: give at least 1 epoch, or leave {name} out of finetune.on"
            );
        }
        Ok(())
    }

    /// Refuses settings outside their ranges.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn ranges(&self) -> anyhow::Result<()> {
        distinct(&self.seeds, "finetune.seeds")?;
        self.settings.check("finetune")?;
        for (name, settings) in &self.settings_of {
            settings.check(&format!("finetune.settings_of.{name}"))?;
        }
        self.search.as_ref().map_or(Ok(()), Search::check)?;
        self.fixed.check()
    }
}

/// Refuses seeds that are none, or no others. `key` is where they stand.
pub(crate) fn distinct(seeds: &[u64], key: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!seeds.is_empty(), "{key} is empty: give a seed at least");
    let different: BTreeSet<&u64> = seeds.iter().collect();
    anyhow::ensure!(different.len() == seeds.len(), "{key} names a seed twice: a run twice is no second run");
    Ok(())
}

impl Settings {
    /// Whether they can be meant. `key` is where they stand.
    ///
    /// # Errors
    /// Names the first that cannot.
    pub(super) fn check(&self, key: &str) -> anyhow::Result<()> {
        let Settings { learning_rate, warmup, epochs, batch, dropout } = *self;
        number(format!("{key}.learning_rate"), learning_rate, &RATE)?;
        number(format!("{key}.warmup"), warmup, &WARM_UP)?;
        number(format!("{key}.dropout"), dropout, &DROPOUT)?;
        whole(format!("{key}.epochs"), epochs, 0..=MANY)?;
        whole(format!("{key}.batch"), batch as u64, 1..=MANY)
    }
}

impl Fixed {
    /// As it is for one benchmark.
    #[must_use]
    pub(crate) fn of(&self, benchmark: &str) -> Self {
        let max_tokens = self.max_tokens_of.get(benchmark).copied().unwrap_or(self.max_tokens);
        Self { max_tokens, max_tokens_of: BTreeMap::new(), ..self.clone() }
    }

    /// How rows are laid out.
    pub(super) fn frame(&self, vocabulary: &Vocabulary) -> Frame {
        Frame { special: vocabulary.special(), most: self.max_tokens, cut: self.truncation }
    }

    fn check(&self) -> anyhow::Result<()> {
        let updates = Updates {
            adamw: &self.adamw,
            optimiser: self.optimiser.as_ref(),
            clip_norm: self.clip_norm,
            hidden_dropout: self.hidden_dropout,
            attention_dropout: self.attention_dropout,
            frozen: &self.frozen,
        };
        updates.check("finetune")?;
        self.ranking.check()?;
        self.spans.check(self.max_tokens_of.values().copied().fold(self.max_tokens, usize::min))?;
        self.quirks.check(self.subwords)?;
        let key = "finetune.max_tokens";
        whole(key, self.max_tokens as u64, 8..=LONGEST)?;
        for (name, most) in &self.max_tokens_of {
            whole(format!("{key}_of.{name}"), *most as u64, 8..=LONGEST)?;
        }
        if let Some(share) = self.max_examples.train_share {
            anyhow::ensure!(
                share > 0.0 && share < 1.0,
                "finetune.max_examples.train_share is {share}, expected above 0 and below 1; leave it out for all"
            );
        }
        let numbers = [
            ("patience.evals_per_epoch", self.patience.evals_per_epoch, MANY),
            ("patience.every", self.patience.every.unwrap_or(1), u64::MAX),
            ("patience.evaluations", self.patience.evaluations, u64::MAX),
            ("max_steps", self.max_steps.unwrap_or(1), u64::MAX),
            ("checkpoint_every", self.checkpoint_every, u64::MAX),
            ("accumulate", self.accumulate, MANY),
            ("max_examples.train", self.max_examples.train.unwrap_or(1) as u64, u64::MAX),
            ("max_examples.dev", self.max_examples.dev as u64, u64::MAX),
            ("max_examples.mask_search", self.max_examples.mask_search as u64, u64::MAX),
            ("max_examples.test", self.max_examples.test as u64, u64::MAX),
        ];
        numbers
            .into_iter()
            .try_for_each(|(key, found, most)| whole(format!("finetune.{key}"), found, 1..=most))
    }
}
