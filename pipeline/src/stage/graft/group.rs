//! Benchmarks that share masks, and so the encoders that are retrained under them.

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
