//! Where the true answer of a knowledge graph's question stands among its candidates: mean rank, mean reciprocal rank, hits at k.
//!
//! Candidates of the same score as the answer share its place: the rank is the mean of the best and the worst that the order of equal ones could give it
//! ("realistic", Berrendorf et al. 2020). A model that says the same of all candidates so stands in the middle, not at the top.

use serde::Serialize;

use super::{Error, at_least, same_length};

/// The place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Candidates of a higher score.
    pub above: u32,
    /// Others of the same score.
    pub ties: u32,
    /// All candidates, the answer among them.
    pub candidates: u32,
}

impl Rank {
    /// The place of an answer of score `own` among other candidates of these scores, none of which is NaN.
    #[must_use]
    pub fn of(own: f32, others: impl IntoIterator<Item = f32>) -> Self {
        let mut rank = Self { above: 0, ties: 0, candidates: 1 };
        for score in others {
            rank.above += u32::from(score > own);
            // Minus zero and zero are the same score.
            rank.ties += u32::from(score == own);
            rank.candidates += 1;
        }
        rank
    }

    /// The mean of the best and the worst place that it could have, from 1.
    #[must_use]
    pub fn realistic(self) -> f64 {
        f64::from(self.above) + 1.0 + f64::from(self.ties) / 2.0
    }

    /// The mean place of an answer that is drawn by lot.
    fn expected(self) -> f64 {
        f64::midpoint(f64::from(self.candidates), 1.0)
    }
}

/// Means over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Metrics {
    /// How many ranks.
    pub ranks: usize,
    /// Mean of one over the rank.
    pub mrr: f64,
    /// Mean rank, from 1.
    pub mr: f64,
    /// Share of ranks up to 1.
    pub hits_1: f64,
    /// Share of ranks up to 3.
    pub hits_3: f64,
    /// Share of ranks up to 10.
    pub hits_10: f64,
    /// One minus how much of the mean rank by lot, counted from 0, is left (adjusted mean rank index, Berrendorf et al. 2020): 1 is perfect, 0 is by lot, whatever the number
    /// of candidates; nothing where there is no other candidate.
    pub adjusted_mean_rank_index: Option<f64>,
}

impl Metrics {
    /// Of some ranks; nothing of none.
    #[must_use]
    pub fn of(ranks: &[Rank]) -> Option<Self> {
        if ranks.is_empty() {
            return None;
        }
        let count = ranks.len() as f64;
        let mean = |value: &dyn Fn(Rank) -> f64| sum(ranks.iter().map(|&rank| value(rank))) / count;
        let hits = |most: f64| ranks.iter().filter(|rank| rank.realistic() <= most).count() as f64 / count;
        let (mr, by_lot) = (mean(&Rank::realistic), mean(&Rank::expected));
        Some(Self {
            ranks: ranks.len(),
            mrr: mean(&|rank| 1.0 / rank.realistic()),
            mr,
            hits_1: hits(1.0),
            hits_3: hits(3.0),
            hits_10: hits(10.0),
            adjusted_mean_rank_index: (by_lot > 1.0).then(|| 1.0 - (mr - 1.0) / (by_lot - 1.0)),
        })
    }
}

/// A sum whose roundings are carried along (Neumaier 1974), so that the order of the terms does not show.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}

/// Above which score something counts as true.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Threshold {
    /// What is at least as high counts as true.
    pub at: f64,
    /// Share of the samples that it was chosen on of which it is right.
    pub accuracy: f64,
}

impl Threshold {
    /// The one that is right of most samples: midway between two scores that follow one another, or below all of them; of equally good ones the lowest.
    ///
    /// # Errors
    /// When lengths differ, there is no sample, or a score is infinite or NaN.
    pub fn best(scores: &[f64], positive: &[bool]) -> Result<Self, Error> {
        same_length("scores", scores, "positive", positive)?;
        at_least("samples", scores.len(), 1)?;
        super::finite("scores", scores)?;
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        // Below all: everything counts as true.
        let mut right = positive.iter().filter(|&&positive| positive).count();
        let (mut best, mut at) = (right, scores[order[0]] - 1.0);
        let tied: Vec<&[usize]> = order.chunk_by(|&a, &b| scores[a] == scores[b]).collect();
        for (place, below) in tied.iter().enumerate() {
            let positives = below.iter().filter(|&&sample| positive[sample]).count();
            right = right + below.len() - 2 * positives;
            if right > best {
                let last = scores[below[0]];
                best = right;
                at = tied.get(place + 1).map_or(last + 1.0, |next| f64::midpoint(last, scores[next[0]]));
            }
        }
        Ok(Self { at, accuracy: best as f64 / scores.len() as f64 })
    }
}

/// Share of samples whose truth a threshold, which each has of its own, is right of.
///
/// # Errors
/// When there is no sample.
pub fn accuracy(samples: impl IntoIterator<Item = (f64, f64, bool)>) -> Result<f64, Error> {
    let (mut right, mut all) = (0_usize, 0);
    for (score, threshold, positive) in samples {
        right += usize::from((score >= threshold) == positive);
        all += 1;
    }
    at_least("samples", all, 1)?;
    Ok(right as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_share_their_places() {
        let rank = Rank::of(0.5, [0.9, 0.5, 0.1, 0.5]);
        assert_eq!(rank, Rank { above: 1, ties: 2, candidates: 5 });
        assert_eq!(rank.realistic().to_bits(), 3.0_f64.to_bits());
        assert_eq!(Rank::of(0.0, [-0.0]).ties, 1);
        assert_eq!(Rank::of(1.0, []).realistic().to_bits(), 1.0_f64.to_bits());
        // A model that says the same of all is in the middle.
        let same = [Rank::of(0.0, [0.0; 134]); 4];
        let Metrics { mr, mrr, hits_10, adjusted_mean_rank_index, .. } = Metrics::of(&same).unwrap();
        assert_eq!((mr, mrr, hits_10, adjusted_mean_rank_index), (68.0, 1.0 / 68.0, 0.0, Some(0.0)));
    }

    #[test]
    fn means_by_hand() {
        let ranks =
            [(0, 0), (1, 0), (2, 1), (99, 0)].map(|(above, ties)| Rank { above, ties, candidates: 101 });
        let found = Metrics::of(&ranks).unwrap();
        let mrr = (1.0 + 0.5 + 1.0 / 3.5 + 0.01) / 4.0;
        assert!((found.mrr - mrr).abs() < 1e-15, "{found:?}");
        assert_eq!((found.ranks, found.mr), (4, 106.5 / 4.0));
        assert_eq!((found.hits_1, found.hits_3, found.hits_10), (0.25, 0.5, 0.75));
        assert_eq!(found.adjusted_mean_rank_index, Some(1.0 - (106.5 / 4.0 - 1.0) / 50.0));
        assert_eq!(Metrics::of(&[]), None);
        assert_eq!(Metrics::of(&[Rank::of(1.0, [])]).unwrap().adjusted_mean_rank_index, None);
    }

    #[test]
    fn the_order_of_ranks_does_not_show() {
        let ranks: Vec<Rank> = (0..1000)
            .map(|above| Rank { above: above * 7 % 997, ties: above % 3, candidates: 2000 })
            .collect();
        let mut turned = ranks.clone();
        turned.reverse();
        assert_eq!(Metrics::of(&ranks), Metrics::of(&turned));
    }

    #[test]
    fn a_threshold_is_right_of_most() {
        let best = |scores: &[f64], positive: &[bool]| Threshold::best(scores, positive).unwrap();
        assert_eq!(best(&[0.1, 0.4, 0.6], &[false, false, true]), Threshold { at: 0.5, accuracy: 1.0 });
        assert_eq!(best(&[0.1, 0.4], &[true, true]), Threshold { at: -0.9, accuracy: 1.0 });
        assert_eq!(best(&[0.1, 0.4], &[false, false]), Threshold { at: 1.4, accuracy: 1.0 });
        // Equal scores stay together.
        assert_eq!(best(&[0.5, 0.5, 0.9], &[false, true, true]), Threshold { at: -0.5, accuracy: 2.0 / 3.0 });
        assert!(Threshold::best(&[f64::NAN], &[true]).is_err() && Threshold::best(&[], &[]).is_err());
        let right =
            accuracy([(0.5, 0.5, true), (0.4, 0.5, true), (0.1, 0.0, false), (0.1, 0.2, false)]).unwrap();
        assert_eq!(right.to_bits(), 0.5_f64.to_bits());
        assert!(accuracy([]).is_err());
    }
}
