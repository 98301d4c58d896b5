//! How answers are looked for in passages.

use serde::{Deserialize, Serialize};

use crate::config::range::{MANY, whole};

/// How answers are looked for in passages (extractive question answering).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spans {
    /// Tokens of a passage longer than a row that the next row repeats; below half of `finetune.max_tokens`. Left out, a third of these.
    ///
    /// Source: transformers' `run_qa.py` (`doc_stride`), 128 of 384.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<usize>,
    /// Maximum tokens of an answer that is given.
    ///
    /// Source: BERT's `run_squad.py` (`max_answer_length`).
    pub longest: usize,
    /// Maximum tokens of a question; the rest of it is left out, and such questions counted. At most half a row in any case.
    ///
    /// Source: BERT's `run_squad.py` (`max_query_length`).
    pub question: usize,
    /// Rows without the answer that a question is trained on beside one with it, drawn anew in every epoch.
    ///
    /// Source: ours: because a passage of SQuAD has one or two rows, and a question of Quasar-T has 100 passages.
    pub negatives: usize,
}

impl Default for Spans {
    fn default() -> Self {
        Self { overlap: None, longest: 30, question: 64, negatives: 2 }
    }
}

impl Spans {
    /// Whether nothing was set.
    #[must_use]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Tokens that rows of at most so many tokens share.
    #[must_use]
    pub(crate) fn overlap_of(&self, max_tokens: usize) -> usize {
        self.overlap.unwrap_or(max_tokens / 3)
    }

    /// Refuses settings outside their ranges.
    pub(super) fn check(&self, max_tokens: usize) -> anyhow::Result<()> {
        whole("finetune.spans.longest", self.longest as u64, 1..=MANY)?;
        whole("finetune.spans.question", self.question as u64, 1..=MANY)?;
        whole("finetune.spans.negatives", self.negatives as u64, 0..=MANY)?;
        let (overlap, half) = (self.overlap.unwrap_or_default(), max_tokens / 2);
        anyhow::ensure!(
            overlap < half,
            "finetune.spans.overlap is {overlap}, expected below {half}, half of finetune.max_tokens: rows that repeat more would hardly advance"
        );
        Ok(())
    }
}
