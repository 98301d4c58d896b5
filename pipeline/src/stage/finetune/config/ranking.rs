//! How passages are ranked for a query.

use downstream::capr::Wording;
use model::output::RankLoss;
use model::range::POSITIVE_WEIGHT;
use serde::{Deserialize, Serialize};

use crate::config::range::{MANY, number, whole};

/// Which model says how well a passage answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scorer {
    /// Reads query and passage together and gives a number, once for each pair.
    #[default]
    CrossEncoder,
    /// Reads each by itself; the cosine of their vectors counts. Passages are encoded once for all queries. Trained against the negatives and the passages of the
    /// batch's other queries, so larger batches are harder.
    BiEncoder,
}

/// Where negative passages are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NegativesFrom {
    /// All passages of documents that do not answer the query.
    #[default]
    Documents,
    /// The wrong ones among the query's candidates, which BM25 takes for answers (hard negatives); as above where there are too few.
    Candidates,
}

/// How passages are ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ranking {
    /// Which model says how well a passage answers a query.
    ///
    /// Source: KIMERA, section 3.2.
    pub scorer: Scorer,
    /// What is minimised; a bi-encoder has `softmax` only.
    ///
    /// Source: Humeau et al. 2020, whose cross-encoder KIMERA uses (section 3.2) without naming a loss.
    pub loss: RankLoss,
    /// Negative passages per query in training.
    ///
    /// Source: the code of CDV: 10 candidates, one of which answers.
    pub negatives: usize,
    /// Where they are drawn from.
    ///
    /// Source: the code of CDV.
    pub negatives_from: NegativesFrom,
    /// What a bi-encoder's cosines are multiplied by in its softmax, from 1e-12 to 1e6.
    ///
    /// Source: the default of Sentence Transformers' `MultipleNegativesRankingLoss`.
    pub scale: f64,
    /// How a query is worded.
    ///
    /// Source: the files of CDV as published.
    pub wording: Wording,
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            scorer: Scorer::default(),
            loss: RankLoss::default(),
            negatives: 9,
            negatives_from: NegativesFrom::default(),
            scale: 20.0,
            wording: Wording::default(),
        }
    }
}

impl Ranking {
    /// Refuses settings outside their ranges.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        whole("finetune.ranking.negatives", self.negatives as u64, 1..=MANY)?;
        number("finetune.ranking.scale", self.scale, &POSITIVE_WEIGHT)?;
        anyhow::ensure!(
            self.scorer == Scorer::CrossEncoder || self.loss == RankLoss::Softmax,
            "finetune.ranking.loss is \"binary\", but a bi-encoder is trained by a softmax over the batch: leave it out, or set finetune.ranking.scorer to \"cross_encoder\""
        );
        Ok(())
    }
}
