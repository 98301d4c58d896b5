//! The table `[align]`.

use model::encoder::pool::Pooling;
use model::optim::adamw::AdamWConfig;
use model::optim::bert;
use model::optim::schedule::Decay;
use model::output::PairLoss;
use model::range::{DISTANCE, POSITIVE_WEIGHT, RATE};
use model::train::heads::Mode;
use serde::{Deserialize, Serialize};
use tasks::negative::Same;
use tasks::sample::Slot;
use text::ner::filters::Types;

use crate::config::range::{MANY, inside, number, whole};
use crate::stage::finetune::begin::From;
use crate::stage::retrain::heads;
use crate::stage::training::settings::Updates;
use crate::stage::{LONGEST, encoder};

/// Trains an encoder so that names of one entity have near vectors, and names of others do not (SapBERT: Liu et al. 2021); or with `answers`, so that a triple with a
/// blank is near the name of what stands there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The encoder to begin with: `encoder` as it is, `pretrain`, `retrain`. Left out, the last one trained.
    #[serde(skip_serializing)]
    pub from: Option<From>,
    /// Seed of the pairs that are drawn, of the order of what is shown and of dropout.
    ///
    /// Source: ours: any number would do.
    pub seed: u64,
    /// Semantic types of the entities whose names are learnt, by code or name; left out, of all.
    ///
    /// Source: Liu et al. 2021: all of UMLS.
    pub types: Types,
    /// Most pairs of one entity's names; of more, so many are drawn.
    ///
    /// Source: SapBERT, `training_data/generate_pretraining_data.ipynb`: 50.
    pub pairs_per_entity: usize,
    /// Pairs of names (with `answers` rows with a blank) for each step, from 2 to 4,096: each is compared with all others of the batch.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 256.
    pub batch: usize,
    /// Times that every pair, or row, is shown.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 1.
    pub epochs: u64,
    /// Upper limit on steps; left out, all epochs are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// How the tokens of a name or row become one vector: `cls`, `mean` or `max`. `link.pooling` and `rank.pooling` follow it.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: `cls`.
    pub pooling: Pooling,
    /// Maximum tokens of a name, `[CLS]` and `[SEP]` included, from 6; longer ones are cut and counted (`cut`).
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 25.
    pub max_tokens: usize,
    /// The loss over the cosines of a batch's names.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: `multi_similarity`.
    pub loss: PairLoss,
    /// Whether of all pairs in a batch only hard ones are trained, by triplets whose negative is nearer than their positive, or farther by at most this distance, from 0 to 2, or
    /// `"all"`.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 0.2.
    pub margin: Margin,
    /// A second loss, over triples of the split's part `train`, as a term of CODER's (Yuan et al. 2022): the vector of a subject's name, moved by a vector that is learnt of the relation, is to be
    /// nearer to that of a name of its object than to that of another entity (TransE, between vectors of any length). Names of triples have no part in the loss of names,
    /// as they have in CODER. On the CPU. Left out, names are learnt alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relations: Option<Relations>,
    /// In place of names, what stands where a triple of the split's part `train` has a blank: a bi-encoder for link prediction, which `rank.by = "similarity"` asks, as SimKGC (Wang et al.
    /// 2022). The row of the triple, by `shards.layout`, is to have a larger cosine with the name of what stands there than with the other names of the batch and that of the triple's
    /// other end, but for names that may stand there as well. `batch` counts rows with a blank; `types`, `pairs_per_entity`, `loss`, `margin`, `relations` and `max_tokens` apply to names only.
    /// SimKGC has separate encoders for rows and names, learns the temperature, subtracts a margin from matches, also ranks rows for each name, and compares a triple's other end with its own row only;
    /// here all rows of the batch are compared with it (`models.py`, `trainer.py`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// Steps between training states, from which an interrupted run resumes and which `--restart` removes. Shapes no artifact.
    ///
    /// Source: ours: minutes of work at most are lost.
    pub checkpoint_every: u64,
    /// Batches whose gradients are averaged for a step of the optimiser (gradient accumulation); names are compared within a batch. Up to 1,000,000.
    ///
    /// Source: ours: a batch is a step, since a larger one has more to compare.
    pub accumulate: u64,
    /// Peak learning rate, from 1e-12 to 1000.
    ///
    /// Source: SapBERT, `train/pretrain.sh`: 2e-5.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises linearly to its peak.
    ///
    /// Source: SapBERT, `train/train.py`: none.
    pub warmup_steps: u64,
    /// What the learning rate does after `warmup_steps`.
    ///
    /// Source: SapBERT, `train/train.py`: constant.
    pub schedule: Decay,
    /// AdamW's constants.
    pub adamw: AdamWConfig,
    /// An optimiser in place of AdamW; left out, AdamW with the constants of `adamw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<bert::Config>,
    /// Maximum global gradient norm, at least 1e-12; a high value disables clipping.
    ///
    /// Source: ours: 1, as in BERT's `optimization.py`; SapBERT's `train/train.py` does not clip.
    pub clip_norm: f64,
    /// Dropout of hidden states while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_dropout: Option<f64>,
    /// Dropout of attention probabilities while training, from 0 to 0.95; left out, the encoder's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_dropout: Option<f64>,
    /// Name prefixes of parameters to freeze, such as `embeddings.`.
    ///
    /// Source: SapBERT, `train/train.py`: nothing is frozen.
    pub frozen: Vec<String>,
    /// How a head mask is applied, as in `[retrain.heads]`; left out, every head is trained. Not with `[graft]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<heads::Config>,
}

/// How triples are learnt beside names. Each batch of pairs has a batch of triples beside it, with names that are drawn anew each time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Relations {
    /// Weight of this loss beside that of names, from 1e-12 to 1e6.
    ///
    /// Source: CODER, `pretrain/train.py`: 1.
    pub weight: f64,
    /// How much nearer objects are to be, from 1e-12 to 1e6.
    ///
    /// Source: CODER, `pretrain/train.py`: 1.
    pub margin: f64,
    /// Triples in a batch, from 1 to 4,096; each has three names.
    ///
    /// Source: CODER, `pretrain/train.py`: 256 names.
    pub batch: usize,
}

impl Default for Relations {
    fn default() -> Self {
        Self { weight: 1.0, margin: 1.0, batch: 85 }
    }
}

impl Relations {
    fn ranges(&self) -> anyhow::Result<()> {
        whole("align.relations.batch", self.batch as u64, 1..=4096)?;
        number("align.relations.weight", self.weight, &POSITIVE_WEIGHT)?;
        number("align.relations.margin", self.margin, &POSITIVE_WEIGHT)
    }
}

/// How triples with a blank are learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answers {
    /// Where blanks are: in the place of `subject`, `relation`, `object`. A triple is shown once for each in an epoch.
    ///
    /// Source: SimKGC, `doc.py`: subjects, as objects of inverse relations, and objects.
    pub slots: Vec<Slot>,
    /// What cosines are multiplied by in the softmax over a batch's names, from 1e-12 to 1e6: the inverse of its temperature.
    ///
    /// Source: SimKGC, `config.py`: 20, a temperature of 0.05, which is where it begins to learn one.
    pub scale: f64,
    /// When a name may stand in a blank as well: a triple of the part `train` says the same with it, or its declared inverse does.
    ///
    /// Source: ours: as ranks have it.
    pub same: Same,
}

impl Default for Answers {
    fn default() -> Self {
        Self { slots: vec![Slot::Subject, Slot::Object], scale: 20.0, same: Same::Texts }
    }
}

impl Answers {
    fn ranges(&self) -> anyhow::Result<()> {
        let mut different = self.slots.clone();
        different.sort_unstable();
        different.dedup();
        anyhow::ensure!(
            !different.is_empty() && different.len() == self.slots.len(),
            "align.answers.slots is {:?}: name one or more of subject, relation and object, each once",
            self.slots.iter().map(|slot| slot.name()).collect::<Vec<_>>()
        );
        number("align.answers.scale", self.scale, &POSITIVE_WEIGHT)
    }
}

/// Which pairs of a batch are trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(crate) enum Margin {
    /// Those of triplets within so much.
    Within(f64),
    /// All of them.
    Every(Every),
}

/// The word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Every {
    /// All pairs.
    All,
}

impl Margin {
    /// The distance, if there is one.
    #[must_use]
    pub(crate) fn within(self) -> Option<f64> {
        match self {
            Margin::Within(distance) => Some(distance),
            Margin::Every(Every::All) => None,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            from: None,
            seed: 1,
            types: Types::default(),
            pairs_per_entity: 50,
            batch: 256,
            epochs: 1,
            max_steps: None,
            pooling: Pooling::Cls,
            max_tokens: 25,
            loss: PairLoss::default(),
            margin: Margin::Within(0.2),
            relations: None,
            answers: None,
            checkpoint_every: 200,
            accumulate: 1,
            learning_rate: 2e-5,
            warmup_steps: 0,
            schedule: Decay::Constant,
            adamw: AdamWConfig::default(),
            optimiser: None,
            clip_norm: 1.0,
            hidden_dropout: None,
            attention_dropout: None,
            frozen: Vec::new(),
            heads: None,
        }
    }
}

impl Config {
    /// Refuses settings of names where none are learnt.
    fn without_names(&self) -> anyhow::Result<()> {
        let names = Self::default();
        let given = [
            ("types", self.types != names.types),
            ("pairs_per_entity", self.pairs_per_entity != names.pairs_per_entity),
            ("loss", self.loss != names.loss),
            ("margin", self.margin != names.margin),
            ("relations", self.relations.is_some()),
            ("max_tokens", self.max_tokens != names.max_tokens),
        ];
        let given = given.into_iter().find(|(_, given)| *given);
        anyhow::ensure!(
            given.is_none(),
            "align.{} applies to names, and with [align.answers] triples are learnt in their place: leave one of the two out",
            given.map_or("", |(key, _)| key)
        );
        Ok(())
    }

    /// Refuses settings outside their ranges.
    ///
    /// # Errors
    /// Names the first.
    pub(crate) fn ranges(&self) -> anyhow::Result<()> {
        let counts = [
            ("pairs_per_entity", self.pairs_per_entity as u64, 1..=MANY),
            // A pair alone has nothing to be told from; of too many, the cosines of all names with all would not fit into memory.
            ("batch", self.batch as u64, 2..=4096),
            ("epochs", self.epochs, 1..=MANY),
            ("max_steps", self.max_steps.unwrap_or(1), 1..=u64::MAX),
            ("max_tokens", self.max_tokens as u64, 6..=LONGEST),
            ("checkpoint_every", self.checkpoint_every, 1..=u64::MAX),
            ("accumulate", self.accumulate, 1..=MANY),
        ];
        for (key, value, range) in counts {
            whole(format!("align.{key}"), value, range)?;
        }
        encoder::without_parameters("align.pooling", self.pooling)?;
        anyhow::ensure!(
            self.from != Some(From::Align),
            "align.from is \"align\", which this table makes: name encoder, pretrain or retrain"
        );
        anyhow::ensure!(
            self.heads.as_ref().is_none_or(|heads| heads.mode != Mode::Scratch),
            "align.heads.mode is \"scratch\", and names are learnt by an encoder that has read: use none, hard, soft or forward"
        );
        self.relations.map_or(Ok(()), |relations| relations.ranges())?;
        self.answers
            .as_ref()
            .map_or(Ok(()), |answers| answers.ranges().and_then(|()| self.without_names()))?;
        inside("align.loss", self.loss.check())?;
        number("align.margin", self.margin.within().unwrap_or(0.0), &DISTANCE)?;
        let updates = Updates {
            adamw: &self.adamw,
            optimiser: self.optimiser.as_ref(),
            clip_norm: self.clip_norm,
            hidden_dropout: self.hidden_dropout,
            attention_dropout: self.attention_dropout,
            frozen: &self.frozen,
        };
        updates.check("align")?;
        number("align.learning_rate", self.learning_rate, &RATE)
    }
}
