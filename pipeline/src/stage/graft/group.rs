//! Benchmarks that share masks, and so the encoders that are retrained under them.

use super::Row;

/// All benchmarks without masks of their own, or one that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group<'a>(Option<&'a str>);

impl<'a> Group<'a> {
    /// All benchmarks without masks of their own.
    pub(super) const SHARED: Self = Self(None);

    /// A benchmark that has its own.
    #[must_use]
    pub(super) fn own(benchmark: &'a str) -> Self {
        Self(Some(benchmark))
    }

    /// All groups where these benchmarks have masks of their own, the shared one first.
    pub(super) fn all(own_masks: &'a [String]) -> impl Iterator<Item = Self> {
        std::iter::once(Self::SHARED).chain(own_masks.iter().map(|own| Self::own(own)))
    }

    /// Those of them whose benchmarks have encoders of a row to themselves: a row without a mask has one for all.
    pub(super) fn of_row(row: Row, own_masks: &'a [String]) -> impl Iterator<Item = Self> {
        Self::all(own_masks).filter(move |&group| row.mask().is_some() || group == Self::SHARED)
    }

    /// The stage of the encoder of a row that its benchmarks are fine-tuned from.
    #[must_use]
    pub(super) fn retrained(self, row: Row) -> String {
        let group = if row.mask().is_some() { self } else { Self::SHARED };
        group.named(&format!("retrain-{}", row.name()))
    }

    /// The benchmark that has its own.
    #[must_use]
    pub(super) fn benchmark(self) -> Option<&'a str> {
        self.0
    }

    /// What a stage is called that stands once for each group.
    #[must_use]
    pub(super) fn named(self, stage: &str) -> String {
        self.0.map_or_else(|| stage.to_owned(), |own| format!("{stage}-{own}"))
    }

    /// The stage of a mask that retains another share of the score than `graft.search.tau`.
    #[must_use]
    pub(super) fn with_tau(self, stage: &str, tau: f64) -> String {
        format!("{}-tau-{}", self.named(stage), tau.to_string().replace('.', "_"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_called_by_what_they_are_for() {
        assert_eq!(Group::SHARED.named("mask-hard"), "mask-hard");
        assert_eq!(Group::own("mortality").named("mask-hard"), "mask-hard-mortality");
        assert_eq!(Group::own("mortality").with_tau("mask-soft", 0.95), "mask-soft-mortality-tau-0_95");
    }
}
