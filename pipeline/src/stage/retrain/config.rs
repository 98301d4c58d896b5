//! The training's part of a config, and what of it no training can come of.

use batch::task::{Material, Task};
use model::optim::adamw::AdamWConfig;
use model::optim::bert;
use model::optim::schedule::Decay;
use model::output::shards::{Alphas, OutputConfig};
use model::range::RATE;
use model::train::lora;
use serde::{Deserialize, Serialize};

use super::heads;
use crate::config::range::{MANY, inside, number, whole};
use crate::stage::shards;
use crate::stage::stream::Stream;
use crate::stage::training::settings::Updates;

/// The weighted sum of the tasks' losses, as a measure.
pub(super) const LOSS: &str = "loss";

/// A training on shards: of `[pretrain]` or `[retrain]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Seed of new weights, dropout and sample order.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// Epochs of the schedule; with `kimera` and `merged` every row is shown once per epoch. Under a budget of tokens `max_steps` alone decides how
    /// long training lasts.
    ///
    /// Source: KIMERA, table A3: 3 to 5.
    pub epochs: u64,
    /// Upper limit on steps; left out, all epochs are trained. Needed with a budget of tokens, which decides only while reading how many steps an epoch
    /// has. The learning rate follows `schedule` to the last one or, if that is within `warmup_steps`, only rises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The order in which samples are shown.
    pub stream: Stream,
    /// Steps between training states, from which an interrupted run resumes and which `--restart` removes. Shapes no artifact.
    ///
    /// Source: ours: minutes of work at most are lost.
    pub checkpoint_every: u64,
    /// Batches whose gradients are averaged for a step of the optimiser (gradient accumulation): a step has so many times the samples in the memory of one
    /// batch. Steps everywhere are those of the optimiser. Up to 1,000,000.
    ///
    /// Source: ours: a batch is a step unless memory is short.
    pub accumulate: u64,
    /// How task heads are made.
    pub task_heads: OutputConfig,
    /// Weights of the tasks' losses.
    pub alphas: Alphas,
    /// Peak learning rate, from 1e-12 to 1000: reached after `warmup_steps` by linear warm-up, then as `schedule` says.
    ///
    /// Source: KIMERA, table A3: the highest of 5e-5 to 3e-6.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises linearly to its peak.
    ///
    /// Source: KIMERA, table A3: the lowest of 1,000 to half of all steps.
    pub warmup_steps: u64,
    /// What the learning rate does after `warmup_steps`: down to 0 along a line or half a cosine, or constant.
    ///
    /// Source: BERT's `optimization.py`; KIMERA names none.
    pub schedule: Decay,
    /// AdamW's constants.
    pub adamw: AdamWConfig,
    /// An optimiser in place of AdamW; left out, AdamW with the constants of `adamw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<bert::Config>,
    /// Maximum global gradient norm, at least 1e-12; a high value disables clipping.
    ///
    /// Source: BERT's `optimization.py`; KIMERA names none.
    pub clip_norm: f64,
    /// Dropout of hidden states while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_dropout: Option<f64>,
    /// Dropout of attention probabilities while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_dropout: Option<f64>,
    /// Name prefixes of parameters to freeze, such as `embeddings.`.
    ///
    /// Source: KIMERA, equation 3: nothing but heads is frozen.
    pub frozen: Vec<String>,
    /// Low-rank adapters (LoRA) that are trained in the encoder's place; left out, the encoder is. The artifact has them added, and `engraft export --to peft`
    /// gives them alone. On the CPU; without `frozen` and without `heads`. With `[graft]`, `graft.lora` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<lora::Config>,
    /// Early stopping on the part `valid`, which `split.parts` makes of triples and `valid` of `shards.masked_lm.files` and `shards.tagging.files` of texts;
    /// left out, all epochs are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Patience>,
    /// How a head mask is applied (KIMERA, section 2.1); left out, every head is trained. Not with `[graft]`, nor in `[pretrain]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<heads::Config>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            epochs: 3,
            max_steps: None,
            stream: Stream::default(),
            checkpoint_every: 200,
            accumulate: 1,
            task_heads: OutputConfig::default(),
            alphas: Alphas::default(),
            learning_rate: 5e-5,
            warmup_steps: 1000,
            schedule: Decay::default(),
            adamw: AdamWConfig::default(),
            optimiser: None,
            clip_norm: 1.0,
            hidden_dropout: None,
            attention_dropout: None,
            frozen: Vec::new(),
            lora: None,
            patience: None,
            heads: None,
        }
    }
}

/// When training stops before its last epoch: after so many evaluations in a row without a better one on the part `valid`. The artifact is the best
/// evaluation's encoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Patience {
    /// Steps between two evaluations on the part `valid`.
    ///
    /// Source: the code of clinical outcome prediction (van Aken et al. 2021).
    pub every: u64,
    /// Evaluations in a row without a better one after which training stops; the artifact is the best evaluation's encoder.
    ///
    /// Source: KIMERA, table A3.
    pub evaluations: u64,
    /// What decides, of the part `valid`: `loss`, the weighted sum of the tasks' losses, or that of one task (`TASK.loss`), where lower is better, or
    /// `TASK.accuracy`, where higher is. Tasks without that part do not count.
    ///
    /// Source: ours: KIMERA has a patience (table A3) and does not say of what.
    pub measure: String,
    /// An evaluation uses at most this many steps' worth of `valid`, the same samples every time.
    ///
    /// Source: ours: an evaluation takes a few percent of the time between two.
    pub batches: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self { every: 500, evaluations: 3, measure: LOSS.to_owned(), batches: 20 }
    }
}

impl Config {
    /// The tasks that are trained, among those that the shards have.
    #[must_use]
    pub(crate) fn tasks(&self, built: &[Task]) -> Vec<Task> {
        let weighs = |task: &&Task| self.alphas.of(**task) != 0.0;
        built.iter().filter(weighs).copied().collect()
    }

    /// Whether only samples of a graph can say when it stops.
    #[must_use]
    pub(crate) fn asks_graph(&self, shards: &shards::Config) -> bool {
        let Some(Patience { measure, .. }) = &self.patience else { return false };
        let asked = self.tasks(&shards.held_out()).into_iter();
        let of: Vec<Material> = asked
            .filter(|task| measure.split_once('.').is_none_or(|(name, _)| name == task.name()))
            .map(Task::made_of)
            .collect();
        !of.is_empty() && !of.contains(&Material::Texts)
    }

    /// Refuses settings outside their ranges. `table` is its name in the config.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn ranges(&self, table: &str) -> anyhow::Result<()> {
        let patience = self.patience.clone().unwrap_or_default();
        let counts = [
            ("epochs", self.epochs, MANY),
            ("max_steps", self.max_steps.unwrap_or(1), u64::MAX),
            ("checkpoint_every", self.checkpoint_every, u64::MAX),
            ("accumulate", self.accumulate, MANY),
            ("patience.every", patience.every, u64::MAX),
            ("patience.evaluations", patience.evaluations, u64::MAX),
            ("patience.batches", patience.batches as u64, MANY),
        ];
        self.stream.check(table, self.max_steps)?;
        for (key, value, most) in counts {
            whole(format!("{table}.{key}"), value, 1..=most)?;
        }
        inside(table, self.task_heads.check())?;
        inside(table, self.alphas.check())?;
        let updates = Updates {
            adamw: &self.adamw,
            optimiser: self.optimiser.as_ref(),
            clip_norm: self.clip_norm,
            hidden_dropout: self.hidden_dropout,
            attention_dropout: self.attention_dropout,
            frozen: &self.frozen,
        };
        updates.check(table)?;
        inside(table, self.lora.as_ref().map_or(Ok(()), |lora| lora.check(None)))?;
        anyhow::ensure!(
            self.lora.is_none() || (self.frozen.is_empty() && self.heads.is_none()),
            "{table}.lora trains adapters in the place of the whole encoder, and {table}.{} says what of it is trained: leave one of them out",
            if self.heads.is_some() { "heads" } else { "frozen" }
        );
        number(format!("{table}.learning_rate"), self.learning_rate, &RATE)
    }

    /// Refuses what the shards have no samples for, before any stage runs. `table` is its name in the config.
    pub(super) fn check(&self, table: &str, shards: &shards::Config) -> anyhow::Result<()> {
        let (built, held_out) = (&shards.tasks, self.tasks(&shards.held_out()));
        for task in Task::ALL {
            let (name, alpha) = (task.name(), self.alphas.of(task));
            anyhow::ensure!(
                alpha == 0.0 || built.contains(&task),
                "{table}.alphas.{name} is {alpha}, but shards.tasks has no {name}: set it to 0, or build that task's shards"
            );
        }
        anyhow::ensure!(
            !self.tasks(built).is_empty(),
            "{table}.alphas are all 0, so there is nothing to train: give one of the tasks in shards.tasks a weight"
        );
        anyhow::ensure!(
            self.patience.is_none() || !held_out.is_empty(),
            "{table}.patience looks at samples of the part `valid`, and tasks on texts have none without `valid`, a share, in shards.masked_lm.files or shards.tagging.files: give it, or leave `patience` out"
        );
        if let Some(Patience { measure, .. }) = &self.patience {
            let of_tasks = held_out
                .iter()
                .flat_map(|task| ["loss", "accuracy"].map(|measure| format!("{}.{measure}", task.name())));
            let all: Vec<String> = std::iter::once(LOSS.to_owned()).chain(of_tasks).collect();
            anyhow::ensure!(
                all.contains(measure),
                "{table}.patience.measure is {measure:?}, expected one of {}; tasks on texts have a part `valid` where their files say how large it is (`shards.masked_lm.files.valid`)",
                all.join(", ")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_measured_on_tasks_that_have_a_part_valid() {
        let of = |measure: &str| Config {
            alphas: Alphas::new([(Task::Subject, 1.0), (Task::MaskedLm, 1.0)]),
            patience: Some(Patience { measure: measure.to_owned(), ..Patience::default() }),
            ..Config::default()
        };
        let built = |valid: &str| -> shards::Config {
            let files = format!("files = {{ paths = [\"x\"], format.text = \"line\"{valid} }}");
            toml::from_str(&format!("tasks = [\"subject\", \"masked_lm\"]\nmasked_lm.{files}")).unwrap()
        };
        of("subject.accuracy").check("retrain", &built("")).unwrap();
        let error = of("masked_lm.loss").check("retrain", &built("")).unwrap_err().to_string();
        assert!(
            error.contains("expected one of loss, subject.loss, subject.accuracy; tasks on texts"),
            "{error}"
        );
        of("masked_lm.loss").check("retrain", &built(", valid = 0.1")).unwrap();
    }
}
