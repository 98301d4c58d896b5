//! What became of everything that a benchmark's source has, step by step, until it was an example or a passage.

use std::collections::BTreeMap;

use base::funnel::Tally;
use serde::{Deserialize, Serialize};

/// One step: `read` = the sum of `dropped` + `kept`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is counted: `notes`, `admissions`, `examples`, `documents`, `passages`.
    pub of: String,
    /// How many there were.
    pub read: u64,
    /// How many were left out, by the first reason that applied.
    pub dropped: BTreeMap<String, u64>,
    /// How many went on.
    pub kept: u64,
    /// What was read other than as published, by what was done to it; it is counted in its own units, and none of it is left out for that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mended: BTreeMap<String, u64>,
}

impl Step {
    /// A step in which nothing has been read yet.
    #[must_use]
    pub fn new(of: &str) -> Self {
        Self { of: of.to_owned(), ..Self::default() }
    }

    /// A step from its counts; reasons that dropped nothing stand in it too.
    #[must_use]
    pub fn counted(of: &str, dropped: &[(&str, u64)], kept: u64) -> Self {
        let mut step = Self::new(of);
        dropped.iter().for_each(|&(reason, count)| step.drop(reason, count));
        step.keep(kept);
        step
    }

    /// What became of a file's lines that are no documents, and what was read other than as published.
    #[must_use]
    pub fn other_lines(documents: &Tally) -> Self {
        let mut step = Self::new("other lines");
        documents.dropped.iter().for_each(|(reason, count)| step.drop(reason, *count));
        documents.mended.iter().for_each(|(how, count)| step.mend(how, *count));
        step
    }

    /// So many more were left out for `reason`.
    pub fn drop(&mut self, reason: &str, count: u64) {
        self.read += count;
        *self.dropped.entry(reason.to_owned()).or_default() += count;
    }

    /// So many more went on.
    pub fn keep(&mut self, count: u64) {
        self.read += count;
        self.kept += count;
    }

    /// So many more were read other than as published.
    pub fn mend(&mut self, how: &str, count: u64) {
        if count > 0 {
            *self.mended.entry(how.to_owned()).or_default() += count;
        }
    }

    /// Whether everything that was read is accounted for.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let parts = self.dropped.values().try_fold(self.kept, |sum, &count| sum.checked_add(count));
        parts == Some(self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_dropped_or_kept() {
        let mut step = Step::counted("notes", &[("no text", 2), ("marked", 0)], 3);
        step.drop("no text", 1);
        assert_eq!((step.read, step.kept, step.dropped["no text"], step.dropped["marked"]), (6, 3, 3, 0));
        assert!(step.adds_up());
        assert!(!Step { read: 7, ..step.clone() }.adds_up());
        assert!(!Step { kept: u64::MAX, ..step }.adds_up());
    }
}
