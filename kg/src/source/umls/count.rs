//! Rows that went on and rows that did not, by reason.

use std::path::Path;

use base::funnel::Tally;

use crate::source::rrf::scan::Totals;

/// Why a row is left out. Where several reasons apply, the one that stands first here is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    OtherLanguage,
    Suppressed,
    VocabularyNotAskedFor,
    NoLevel,
    AboveMaxSrl,
    RelNotAskedFor,
    Unlabelled,
    RelationNotAskedFor,
    NoName,
    RetiredDeleted,
    RetiredAmbiguous,
    SemanticTypeNotAskedFor,
    InNoTriple,
    NotCurrent,
    OtherKey,
    ContradictedInverse,
    Deleted,
    NotTheSame,
}

const REASONS: usize = Reason::NotTheSame as usize + 1;

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::OtherLanguage => "other_language",
            Reason::Suppressed => "suppressed",
            Reason::VocabularyNotAskedFor => "vocabulary_not_asked_for",
            Reason::NoLevel => "no_level",
            Reason::AboveMaxSrl => "above_max_srl",
            Reason::RelNotAskedFor => "rel_not_asked_for",
            Reason::Unlabelled => "unlabelled",
            Reason::RelationNotAskedFor => "relation_not_asked_for",
            Reason::RetiredDeleted => "retired_deleted",
            Reason::RetiredAmbiguous => "retired_ambiguous",
            Reason::NoName => "no_name",
            Reason::SemanticTypeNotAskedFor => "semantic_type_not_asked_for",
            Reason::InNoTriple => "in_no_triple",
            Reason::NotCurrent => "not_current",
            Reason::OtherKey => "other_key",
            Reason::ContradictedInverse => "contradicted_inverse",
            Reason::Deleted => "deleted",
            Reason::NotTheSame => "not_the_same",
        }
    }
}

/// Counts of a file or of a piece of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    kept: u64,
    dropped: [u64; REASONS],
}

impl Counts {
    pub(super) fn keep(&mut self) {
        self.keep_rows(1);
    }

    pub(super) fn drop(&mut self, reason: Reason) {
        self.drop_rows(reason, 1);
    }

    pub(super) fn keep_rows(&mut self, rows: u64) {
        self.kept += rows;
    }

    pub(super) fn drop_rows(&mut self, reason: Reason, rows: u64) {
        self.dropped[reason as usize] += rows;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.kept += other.kept;
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }

    /// The tally of a file from which rows can be dropped for `reasons`.
    pub(super) fn tally(&self, label: &Path, reasons: &[Reason], totals: Totals) -> Tally {
        let mut tally = Tally::new(label, &[]);
        tally.dropped =
            reasons.iter().map(|&reason| (reason.name(), self.dropped[reason as usize])).collect();
        tally.kept = self.kept;
        tally.read = self.kept + self.dropped.iter().sum::<u64>();
        (tally.lines, tally.bytes) = (totals.lines, totals.bytes);
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_pieces_add_up_and_reasons_are_listed_also_with_none() {
        let mut all = Counts::default();
        for _ in 0..3 {
            let mut piece = Counts::default();
            piece.keep();
            piece.drop(Reason::NotTheSame);
            all.add(&piece);
        }
        let totals = Totals { lines: 6, bytes: 60 };
        let tally = all.tally(Path::new("META/X.RRF"), &[Reason::NotTheSame, Reason::NoName], totals);
        assert_eq!(
            (tally.file.as_str(), tally.read, tally.kept, tally.lines, tally.bytes),
            ("X.RRF", 6, 3, 6, 60)
        );
        assert_eq!(tally.dropped.into_iter().collect::<Vec<_>>(), [("no_name", 0), ("not_the_same", 3)]);
    }
}
