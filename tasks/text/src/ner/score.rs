//! How well spans that were found agree with those that should be.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Spans of one text or many. A span that is listed twice, as a corpus does with one that has two concepts, counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Spans found.
    pub predicted: u64,
    /// Spans that should be found.
    pub gold: u64,
    /// Spans found that are to be found, with both ends.
    pub exact: u64,
    /// Spans found that share something with one that should be found.
    pub predicted_overlapping: u64,
    /// Spans that should be found and share something with one that is.
    pub gold_overlapping: u64,
}

impl Score {
    /// Adds the counts of other texts.
    pub fn add(&mut self, other: &Score) {
        let Score { predicted, gold, exact, predicted_overlapping, gold_overlapping } = *other;
        self.predicted += predicted;
        self.gold += gold;
        self.exact += exact;
        self.predicted_overlapping += predicted_overlapping;
        self.gold_overlapping += gold_overlapping;
    }

    /// Share of the spans found that are exactly right, 0 to 1; 0 where nothing was found.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.exact, self.predicted)
    }

    /// Share of the spans to be found that are exactly found, 0 to 1; 0 where there are none.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.exact, self.gold)
    }

    /// Harmonic mean of [`Score::precision`] and [`Score::recall`], 0 to 1.
    #[must_use]
    pub fn f1(&self) -> f64 {
        harmonic(self.precision(), self.recall())
    }

    /// Share of the spans found that overlap one to be found, 0 to 1.
    #[must_use]
    pub fn overlap_precision(&self) -> f64 {
        share(self.predicted_overlapping, self.predicted)
    }

    /// Share of the spans to be found that overlap one found, 0 to 1.
    #[must_use]
    pub fn overlap_recall(&self) -> f64 {
        share(self.gold_overlapping, self.gold)
    }

    /// Harmonic mean of [`Score::overlap_precision`] and [`Score::overlap_recall`], 0 to 1.
    #[must_use]
    pub fn overlap_f1(&self) -> f64 {
        harmonic(self.overlap_precision(), self.overlap_recall())
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn harmonic(one: f64, other: f64) -> f64 {
    if one + other == 0.0 { 0.0 } else { 2.0 * one * other / (one + other) }
}

/// Compares the spans of one text, in bytes or whatever both count in, in any order; empty ones overlap nothing.
#[must_use]
pub fn evaluate(predicted: &[Range<usize>], gold: &[Range<usize>]) -> Score {
    let (predicted, gold) = (once(predicted), once(gold));
    let exact = predicted.iter().filter(|span| gold.binary_search(span).is_ok()).count();
    Score {
        predicted: predicted.len() as u64,
        gold: gold.len() as u64,
        exact: exact as u64,
        predicted_overlapping: overlapping(&predicted, &gold),
        gold_overlapping: overlapping(&gold, &predicted),
    }
}

/// Beginnings and ends, in order, each once.
fn once(spans: &[Range<usize>]) -> Vec<(usize, usize)> {
    let mut once: Vec<_> = spans.iter().map(|span| (span.start, span.end)).collect();
    once.sort_unstable();
    once.dedup();
    once
}

/// How many of `spans` overlap one of `others`.
fn overlapping(spans: &[(usize, usize)], others: &[(usize, usize)]) -> u64 {
    // How far those reach that have begun so far; one that begins before a span's end overlaps it if it reaches beyond its beginning.
    let reach: Vec<usize> = others
        .iter()
        .scan(0, |reach, &(start, end)| {
            *reach = if end > start { end.max(*reach) } else { *reach };
            Some(*reach)
        })
        .collect();
    let overlaps = |&&(start, end): &&(usize, usize)| {
        let begun = others.partition_point(|&(other, _)| other < end);
        start < end && begun > 0 && reach[begun - 1] > start
    };
    spans.iter().filter(overlaps).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::RngKey;

    #[test]
    fn exact_and_overlapping_spans_are_counted_apart() {
        let score = evaluate(&[0..5, 6..9, 20..22, 30..40], &[0..5, 0..5, 7..12, 36..38, 50..51, 39..41]);
        let expected =
            Score { predicted: 4, gold: 5, exact: 1, predicted_overlapping: 3, gold_overlapping: 4 };
        assert_eq!(score, expected);
        assert_eq!((score.precision(), score.recall()), (0.25, 0.2));
        assert_eq!((score.overlap_precision(), score.overlap_recall()), (0.75, 0.8));
        assert!((score.f1() - 2.0 / 9.0).abs() < 1e-15 && (score.overlap_f1() - 24.0 / 31.0).abs() < 1e-15);
        let mut twice = score;
        twice.add(&score);
        assert_eq!((twice.f1(), twice.gold), (score.f1(), 10));
        assert_eq!(evaluate(&[], &[]).f1(), 0.0);
    }

    #[test]
    fn overlaps_are_those_that_comparing_all_pairs_finds() {
        for round in 0..300 {
            let seed = RngKey::new(3).at(round);
            let spans = |seed: RngKey| -> Vec<Range<usize>> {
                let number = |i, bound| usize::try_from(seed.at(i).below(bound)).unwrap();
                (0..8).map(|i| number(i, 40)..number(i, 40) + number(i + 20, 9)).collect()
            };
            let (predicted, gold) = (spans(seed.at(1)), spans(seed.at(2)));
            let share = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start) < a.end.min(b.end);
            let count = |these: &[Range<usize>], those: &[Range<usize>]| {
                let unique: std::collections::HashSet<_> = these.iter().collect();
                unique.into_iter().filter(|a| those.iter().any(|b| share(a, b))).count() as u64
            };
            let score = evaluate(&predicted, &gold);
            assert_eq!(score.predicted_overlapping, count(&predicted, &gold));
            assert_eq!(score.gold_overlapping, count(&gold, &predicted));
        }
    }
}
