//! Says of a proposed triple whether it may be a negative.

use serde::{Deserialize, Serialize};

use super::known::Known;
use super::statement::{Same, Statements};
use crate::sample::{Corpus, Triple};

/// What is refused. A proposal that says the same as the triple that it corrupts is refused by every filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Only the triple itself: false negatives are counted and kept.
    None,
    /// Anything that a shown triple states. What a held-out triple states is kept, and counted in total only.
    #[default]
    Train,
    /// Anything that any triple states, held-out ones included. This tells a model something about held-out triples: compare only with
    /// others that filter the same way.
    All,
}

/// What the filter said of a negative that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing: [`Filter::None`].
    Unjudged,
    /// No shown triple says it: [`Filter::Train`]. Whether a held-out one does is not said here, since that would tell of the
    /// held-out triple.
    Absent,
    /// No triple says it, neither shown nor held out: [`Filter::All`].
    AbsentEverywhere,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Verdict; 3] = [Verdict::Unjudged, Verdict::Absent, Verdict::AbsentEverywhere];

    /// The name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Unjudged => "unjudged",
            Verdict::Absent => "absent",
            Verdict::AbsentEverywhere => "absent_everywhere",
        }
    }
}

/// What a judge says of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It says the same as the triple that it corrupts.
    Unchanged,
    /// It says the same as a shown triple.
    Known,
    /// It says the same as a held-out triple.
    Held,
    /// It may be a negative.
    Kept {
        /// What the filter says of it.
        verdict: Verdict,
        /// Whether it is false nevertheless.
        falsely: Falsely,
    },
}

/// Whether a kept negative is none: for totals only, never for a row (see [`Verdict::Absent`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Falsely {
    /// No triple says it, as far as is known.
    No,
    /// A shown triple says it.
    Known,
    /// A held-out triple says it.
    Held,
}

/// Judges the proposals for one corpus.
#[derive(Debug)]
pub struct Judge {
    filter: Filter,
    statements: Statements,
    shown: Known,
    held: Known,
}

impl Judge {
    /// Learns what the shown and the held-out triples say.
    #[must_use]
    pub fn new(corpus: &Corpus<'_>, same: Same, filter: Filter) -> Self {
        let statements = Statements::new(corpus, same);
        let shown = Known::new(&statements, &corpus.triples);
        let held = Known::new(&statements, &corpus.held);
        Self { filter, statements, shown, held }
    }

    /// What the triple says ([`Statements::of`]).
    #[must_use]
    pub fn said(&self, triple: Triple) -> Triple {
        self.statements.of(triple)
    }

    /// Judges a proposal by what it says and what the triple says that it corrupts.
    #[must_use]
    pub fn judge(&self, stated: Triple, proposed: Triple) -> Ruling {
        if proposed == stated {
            return Ruling::Unchanged;
        }
        let falsely = if self.shown.contains(proposed) {
            Falsely::Known
        } else if self.held.contains(proposed) {
            Falsely::Held
        } else {
            Falsely::No
        };
        match (self.filter, falsely) {
            (Filter::None, falsely) => Ruling::Kept { verdict: Verdict::Unjudged, falsely },
            (Filter::Train | Filter::All, Falsely::Known) => Ruling::Known,
            (Filter::Train, falsely) => Ruling::Kept { verdict: Verdict::Absent, falsely },
            (Filter::All, Falsely::Held) => Ruling::Held,
            (Filter::All, Falsely::No) => {
                Ruling::Kept { verdict: Verdict::AbsentEverywhere, falsely: Falsely::No }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kg::canon::relation::Turn;

    use super::*;

    #[test]
    fn each_filter_refuses_what_it_says() {
        let corpus = Corpus {
            entities: vec!["a", "b", "c", "d"],
            types: vec![&[]; 4],
            relations: vec!["r"],
            ways: vec![(0, Turn::Stays)],
            triples: vec![[0, 0, 1], [0, 0, 2]],
            rows: vec![0, 1],
            held: vec![[0, 0, 3]],
        };
        let kept = |verdict, falsely| Ruling::Kept { verdict, falsely };
        let (none, train, all) = (Verdict::Unjudged, Verdict::Absent, Verdict::AbsentEverywhere);
        let rulings = |filter| {
            let judge = Judge::new(&corpus, Same::Texts, filter);
            let stated = judge.said([0, 0, 1]);
            [[0, 0, 1], [0, 0, 2], [0, 0, 3], [1, 0, 1]].map(|triple| judge.judge(stated, judge.said(triple)))
        };
        let unfiltered = [
            Ruling::Unchanged,
            kept(none, Falsely::Known),
            kept(none, Falsely::Held),
            kept(none, Falsely::No),
        ];
        assert_eq!(rulings(Filter::None), unfiltered);
        let by_train =
            [Ruling::Unchanged, Ruling::Known, kept(train, Falsely::Held), kept(train, Falsely::No)];
        assert_eq!(rulings(Filter::Train), by_train);
        let by_all = [Ruling::Unchanged, Ruling::Known, Ruling::Held, kept(all, Falsely::No)];
        assert_eq!(rulings(Filter::All), by_all);
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }
}
