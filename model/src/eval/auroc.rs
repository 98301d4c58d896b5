//! Area under the ROC curve as the rank statistic with mid-ranks, for two classes, several, and several labels at once; and average precision.

use super::{Error, at_least, classes_below, mid_ranks, numbers, same_length};

const AUROC: &str = "the area under the ROC curve";

/// Probability that a positive sample scores higher than a negative one, ties counted half.
///
/// # Errors
/// When lengths differ, a score is NaN, or all samples are of one class.
pub fn binary(scores: &[f64], positive: &[bool]) -> Result<f64, Error> {
    same_length("scores", scores, "positive", positive)?;
    at_least("samples", scores.len(), 1)?;
    numbers("scores", scores)?;
    let positives = positive.iter().filter(|&&p| p).count();
    let negatives = positive.len() - positives;
    if positives == 0 || negatives == 0 {
        return Err(Error::Undefined { what: AUROC, why: "all samples are of one class; evaluate both" });
    }
    Ok(area(scores, positive, positives, negatives))
}

/// The statistic of Mann and Whitney over the number of pairs.
fn area(scores: &[f64], positive: &[bool], positives: usize, negatives: usize) -> f64 {
    let ranks = mid_ranks(scores);
    let sum: f64 = ranks.iter().zip(positive).filter(|(_, positive)| **positive).map(|(rank, _)| rank).sum();
    let least = (positives * (positives + 1)) as f64 / 2.0;
    (sum - least) / (positives as f64 * negatives as f64)
}

/// Scores of several classes for each sample, one row after the other.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// `[samples x classes]`.
    pub scores: &'a [f64],
    /// Number of classes.
    pub classes: usize,
}

impl Rows<'_> {
    fn check(&self, samples: usize) -> Result<(), Error> {
        at_least("samples", samples, 1)?;
        let expected = samples * self.classes;
        if self.scores.len() != expected {
            let (found, of) = (self.scores.len(), "labels (times the classes)");
            return Err(Error::Lengths { what: "scores", found, expected, of });
        }
        numbers("scores", self.scores)
    }

    fn column(&self, class: usize) -> Vec<f64> {
        self.scores.iter().skip(class).step_by(self.classes).copied().collect()
    }
}

/// What came of several classes of which a sample has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Multiclass {
    /// Mean over pairs of classes of (AUC(i|j) + AUC(j|i)) / 2 (Hand and Till 2001).
    pub one_vs_one: f64,
    /// The same, each pair weighted by the samples that it has.
    pub one_vs_one_weighted: f64,
    /// Mean over classes of the area against all others.
    pub one_vs_rest: f64,
    /// Classes that no sample has: they are in no mean.
    pub absent: usize,
}

/// The area for classes of which each sample has one; COP's length of stay takes `one_vs_one`.
///
/// # Errors
/// When lengths differ, a score is NaN, a label is no class, or fewer than two classes have a sample.
pub fn multiclass(rows: &Rows<'_>, labels: &[usize]) -> Result<Multiclass, Error> {
    rows.check(labels.len())?;
    classes_below("labels", labels, rows.classes)?;
    let mut counts = vec![0_usize; rows.classes];
    labels.iter().for_each(|&label| counts[label] += 1);
    let present: Vec<usize> = (0..rows.classes).filter(|&class| counts[class] > 0).collect();
    if present.len() < 2 {
        return Err(Error::Undefined {
            what: AUROC,
            why: "all samples are of one class; evaluate two at least",
        });
    }
    let (mut pairs, mut sum, mut weighted, mut weights) = (0_usize, 0.0, 0.0, 0.0);
    for (at, &i) in present.iter().enumerate() {
        for &j in &present[at + 1..] {
            let area = (between(rows, labels, i, j) + between(rows, labels, j, i)) / 2.0;
            let weight = (counts[i] + counts[j]) as f64;
            pairs += 1;
            sum += area;
            weighted += area * weight;
            weights += weight;
        }
    }
    let against_all = |&class: &usize| {
        let positive: Vec<bool> = labels.iter().map(|&label| label == class).collect();
        area(&rows.column(class), &positive, counts[class], labels.len() - counts[class])
    };
    Ok(Multiclass {
        one_vs_one: sum / pairs as f64,
        one_vs_one_weighted: weighted / weights,
        one_vs_rest: present.iter().map(against_all).sum::<f64>() / present.len() as f64,
        absent: rows.classes - present.len(),
    })
}

/// How well the score of class `i` parts its samples from those of class `j`; both have some.
fn between(rows: &Rows<'_>, labels: &[usize], i: usize, j: usize) -> f64 {
    let of_both = labels.iter().enumerate().filter(|&(_, &label)| label == i || label == j);
    let (scores, positive): (Vec<f64>, Vec<bool>) =
        of_both.map(|(sample, &label)| (rows.scores[sample * rows.classes + i], label == i)).unzip();
    let positives = positive.iter().filter(|&&p| p).count();
    area(&scores, &positive, positives, positive.len() - positives)
}

/// What came of several labels of which a sample has any number.
#[derive(Debug, Clone, PartialEq)]
pub struct Multilabel {
    /// Mean over the labels that have both positive and negative samples.
    pub macro_mean: f64,
    /// The same, each label weighted by its positive samples.
    pub weighted: f64,
    /// The area over all samples and those labels thrown together.
    pub micro: f64,
    /// The area of each label; `None` where it is undefined.
    pub labels: Vec<Option<f64>>,
    /// Labels that no sample has.
    pub never: usize,
    /// Labels that all samples have.
    pub always: usize,
}

/// The area for labels of which each sample has any number: `positive` is `[samples x classes]` as the scores are. COP's diagnoses and
/// procedures take `macro_mean`; labels that no sample or all samples have are left out and counted.
///
/// # Errors
/// When lengths differ, a score is NaN, or no label has both positive and negative samples.
pub fn multilabel(rows: &Rows<'_>, positive: &[bool]) -> Result<Multilabel, Error> {
    same_length("scores", rows.scores, "positive", positive)?;
    rows.check(positive.len().checked_div(rows.classes).unwrap_or(0))?;
    let samples = positive.len() / rows.classes;
    let (mut labels, mut never, mut always, mut weighted, mut weights) = (Vec::new(), 0, 0, 0.0, 0.0);
    let (mut all_scores, mut all_positive) = (Vec::new(), Vec::new());
    for class in 0..rows.classes {
        let truth: Vec<bool> = positive.iter().skip(class).step_by(rows.classes).copied().collect();
        let positives = truth.iter().filter(|&&p| p).count();
        never += usize::from(positives == 0);
        always += usize::from(positives == samples);
        let defined = positives > 0 && positives < samples;
        labels.push(defined.then(|| {
            let scores = rows.column(class);
            let area = area(&scores, &truth, positives, samples - positives);
            weighted += area * positives as f64;
            weights += positives as f64;
            all_scores.extend(scores);
            all_positive.extend(truth);
            area
        }));
    }
    let defined: Vec<f64> = labels.iter().flatten().copied().collect();
    if defined.is_empty() {
        let why = "no label has both positive and negative samples; evaluate more of them";
        return Err(Error::Undefined { what: AUROC, why });
    }
    Ok(Multilabel {
        macro_mean: super::mean(&defined),
        weighted: weighted / weights,
        micro: binary(&all_scores, &all_positive)?,
        labels,
        never,
        always,
    })
}

/// Average precision: the sum over distinct scores, from the highest on, of precision times the recall gained there.
///
/// # Errors
/// When lengths differ, a score is NaN, or no sample is positive.
pub fn average_precision(scores: &[f64], positive: &[bool]) -> Result<f64, Error> {
    same_length("scores", scores, "positive", positive)?;
    numbers("scores", scores)?;
    let positives = positive.iter().filter(|&&p| p).count();
    if positives == 0 {
        return Err(Error::Undefined { what: "average precision", why: "no sample is positive" });
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let (mut seen, mut found, mut sum) = (0, 0, 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let new = tied.iter().filter(|&&sample| positive[sample]).count();
        seen += tied.len();
        found += new;
        sum += found as f64 / seen as f64 * new as f64;
    }
    Ok(sum / positives as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn the_example_of_scikit_learns_manual() {
        let (scores, positive) = ([0.1, 0.4, 0.35, 0.8], [false, false, true, true]);
        close(binary(&scores, &positive).unwrap(), 0.75);
        close(average_precision(&scores, &positive).unwrap(), 5.0 / 6.0);
    }

    #[test]
    fn ties_count_half_and_a_constant_is_chance() {
        close(binary(&[1.0, 1.0, 1.0], &[true, false, false]).unwrap(), 0.5);
        close(binary(&[2.0, 1.0, 1.0, 0.0], &[true, true, false, false]).unwrap(), 3.5 / 4.0);
        close(binary(&[0.0, -0.0], &[true, false]).unwrap(), 0.5);
        close(average_precision(&[1.0, 1.0, 1.0, 1.0], &[true, false, false, false]).unwrap(), 0.25);
    }

    #[test]
    fn classes_that_no_sample_has_are_in_no_mean() {
        // The third column would be class 2, which no sample has.
        let scores = [0.6, 0.4, 0.9, 0.3, 0.7, 0.9, 0.5, 0.5, 0.0];
        let rows = Rows { scores: &scores, classes: 3 };
        let found = multiclass(&rows, &[0, 1, 0]).unwrap();
        assert_eq!((found.one_vs_one, found.one_vs_rest, found.absent), (1.0, 1.0, 1));
        assert!(matches!(multiclass(&rows, &[0, 0, 0]), Err(Error::Undefined { .. })));
        assert!(matches!(multiclass(&rows, &[0, 3, 0]), Err(Error::Class { index: 1, found: 3, .. })));
        assert!(matches!(multiclass(&rows, &[0, 1]), Err(Error::Lengths { found: 9, expected: 6, .. })));
    }

    #[test]
    fn labels_without_two_sides_are_left_out_and_counted() {
        let scores = [0.1, 0.2, 0.3, 0.9, 0.8, 0.3];
        let positive = [false, false, true, true, false, true];
        let found = multilabel(&Rows { scores: &scores, classes: 3 }, &positive).unwrap();
        assert_eq!(found.labels, [Some(1.0), None, None]);
        assert_eq!((found.macro_mean, found.micro, found.never, found.always), (1.0, 1.0, 1, 1));
        let none = multilabel(&Rows { scores: &scores[..3], classes: 3 }, &positive[..3]).unwrap_err();
        assert!(none.to_string().contains("undefined: no label has both positive and negative"), "{none}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(matches!(binary(&[], &[]), Err(Error::Few { .. })));
        assert!(matches!(binary(&[1.0], &[true]), Err(Error::Undefined { .. })));
        assert!(matches!(binary(&[1.0, f64::NAN], &[true, false]), Err(Error::NotANumber { index: 1, .. })));
        assert!(matches!(binary(&[1.0], &[true, false]), Err(Error::Lengths { .. })));
        assert!(matches!(multilabel(&Rows { scores: &[], classes: 0 }, &[]), Err(Error::Few { .. })));
        assert!(matches!(average_precision(&[1.0], &[false]), Err(Error::Undefined { .. })));
    }
}
