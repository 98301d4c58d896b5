//! How far up a ranking the right candidates stand: recall and hits at k, mean average precision, mean reciprocal rank.
//!
//! Candidates are sorted by score, equal scores by the place in the list. A list that has the right ones first gives a scorer that says the
//! same of all a perfect mark, so whoever makes lists must not put them there.

use std::collections::BTreeMap;

use super::{Error, numbers, same_length};

/// One query's candidates.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// How well each candidate answers, the higher the better.
    pub scores: &'a [f64],
    /// Whether it does answer.
    pub relevant: &'a [bool],
}

/// What came of all queries. Means are over queries that have a relevant candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Queries that the means are over.
    pub queries: usize,
    /// Queries without a relevant candidate: nothing can be found there, so they are in no mean.
    pub without_relevant: usize,
    /// For each k, the mean share of a query's relevant candidates that stand among its first k.
    pub recall_at: BTreeMap<usize, f64>,
    /// For each k, the share of queries with a relevant candidate among the first k.
    pub hit_at: BTreeMap<usize, f64>,
    /// Mean average precision.
    pub map: f64,
    /// Mean reciprocal rank of the first relevant candidate.
    pub mrr: f64,
}

/// Ranks, from 1, of a query's relevant candidates, the best first.
///
/// # Errors
/// When there are more or fewer judgements than scores, or a score is NaN.
pub fn ranks(query: &Query<'_>) -> Result<Vec<usize>, Error> {
    same_length("scores", query.scores, "relevant", query.relevant)?;
    numbers("scores", query.scores)?;
    let mut order: Vec<usize> = (0..query.scores.len()).collect();
    order.sort_by(|&a, &b| descending(query.scores[a], query.scores[b]).then(a.cmp(&b)));
    Ok((1..).zip(order).filter(|&(_, candidate)| query.relevant[candidate]).map(|(rank, _)| rank).collect())
}

/// The order of two scores; zero is zero whatever its sign.
fn descending(a: f64, b: f64) -> std::cmp::Ordering {
    b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal)
}

/// Share of the relevant candidates that stand among the first `k`, given their ranks; `None` without any.
#[must_use]
pub fn recall_at(ranks: &[usize], k: usize) -> Option<f64> {
    let found = ranks.iter().filter(|&&rank| rank <= k).count();
    (!ranks.is_empty()).then(|| found as f64 / ranks.len() as f64)
}

/// 1 if a relevant candidate stands among the first `k`, else 0; `None` without any.
#[must_use]
pub fn hit_at(ranks: &[usize], k: usize) -> Option<f64> {
    ranks.first().map(|&first| f64::from(u8::from(first <= k)))
}

/// 1 over the rank of the first relevant candidate; `None` without any.
#[must_use]
pub fn reciprocal_rank(ranks: &[usize]) -> Option<f64> {
    ranks.first().map(|&first| 1.0 / first as f64)
}

/// Mean, over relevant candidates, of the precision down to each; `None` without any.
#[must_use]
pub fn average_precision(ranks: &[usize]) -> Option<f64> {
    let precisions = ranks.iter().zip(1..).map(|(&rank, found)| f64::from(found) / rank as f64);
    (!ranks.is_empty()).then(|| precisions.sum::<f64>() / ranks.len() as f64)
}

/// Evaluates all queries at the given k.
///
/// # Errors
/// As [`ranks`], and when no query has a relevant candidate.
pub fn evaluate(queries: &[Query<'_>], at: &[usize]) -> Result<Report, Error> {
    let all: Vec<Vec<usize>> = queries.iter().map(ranks).collect::<Result<_, _>>()?;
    let with = all.iter().filter(|ranks| !ranks.is_empty()).count();
    super::at_least("queries with a relevant candidate", with, 1)?;
    let mean = |value: &dyn Fn(&[usize]) -> Option<f64>| {
        all.iter().filter_map(|r| value(r)).sum::<f64>() / with as f64
    };
    Ok(Report {
        queries: with,
        without_relevant: all.len() - with,
        recall_at: at.iter().map(|&k| (k, mean(&|ranks| recall_at(ranks, k)))).collect(),
        hit_at: at.iter().map(|&k| (k, mean(&|ranks| hit_at(ranks, k)))).collect(),
        map: mean(&average_precision),
        mrr: mean(&reciprocal_rank),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranking_by_hand() {
        // Manning, Raghavan and Schuetze 2008, section 8.4: relevant at ranks 1, 3, 6 of 3.
        let scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4];
        let relevant = [true, false, true, false, false, true];
        let ranks = ranks(&Query { scores: &scores, relevant: &relevant }).unwrap();
        assert_eq!(ranks, [1, 3, 6]);
        assert_eq!(average_precision(&ranks), Some((1.0 + 2.0 / 3.0 + 3.0 / 6.0) / 3.0));
        assert_eq!((recall_at(&ranks, 3), hit_at(&ranks, 1)), (Some(2.0 / 3.0), Some(1.0)));
        assert_eq!(reciprocal_rank(&[4, 5]), Some(0.25));
    }

    #[test]
    fn equal_scores_go_by_place_and_not_by_relevance() {
        let query = |relevant| Query { scores: &[0.0, -0.0, 0.0, 1.0], relevant };
        assert_eq!(ranks(&query(&[true, false, false, false])).unwrap(), [2]);
        assert_eq!(ranks(&query(&[false, false, true, false])).unwrap(), [4]);
        assert_eq!(ranks(&query(&[false, true, false, true])).unwrap(), [1, 3]);
    }

    #[test]
    fn queries_that_nothing_answers_are_counted_and_in_no_mean() {
        let found = Query { scores: &[1.0, 2.0], relevant: &[false, true] };
        let nothing = Query { scores: &[1.0], relevant: &[false] };
        let report = evaluate(&[nothing, found, Query { scores: &[], relevant: &[] }], &[1]).unwrap();
        assert_eq!((report.queries, report.without_relevant), (1, 2));
        assert_eq!((report.recall_at[&1], report.hit_at[&1], report.map, report.mrr), (1.0, 1.0, 1.0, 1.0));
        let error = evaluate(&[nothing], &[1]).unwrap_err().to_string();
        assert!(
            error.starts_with("queries with a relevant candidate: 0 of them, expected at least 1"),
            "{error}"
        );
    }

    #[test]
    fn what_cannot_be_ranked_is_refused() {
        let query = Query { scores: &[1.0, f64::NAN], relevant: &[false, true] };
        assert!(matches!(ranks(&query), Err(Error::NotANumber { index: 1, .. })));
        let query = Query { scores: &[1.0, 2.0], relevant: &[true] };
        assert!(matches!(ranks(&query), Err(Error::Lengths { found: 1, expected: 2, .. })));
        let query = Query { scores: &[f64::NEG_INFINITY, 2.0], relevant: &[true, false] };
        assert_eq!(ranks(&query).unwrap(), [2]);
    }
}
