//! The losses of outputs over their logits.

use candle_core::{Result, Tensor};

use super::targets::{Anchor, Ends, Group, Targets};
use super::{Output, RankLoss, in_batch, metric};
use crate::nn::binary_cross_entropy::binary_cross_entropy;
use crate::nn::cross_entropy::{cross_entropy, weighted_cross_entropy};
use crate::nn::group_cross_entropy::group_cross_entropy;
use crate::nn::squared_error::squared_error;

/// The loss of a batch, no axes: what training makes small. The targets have been checked.
pub(super) fn mean(output: &Output, logits_mc: &Tensor, targets: &Targets) -> Result<Tensor> {
    match (output, targets) {
        (Output::OneClass { weights: Some(weights), .. }, Targets::Classes(classes)) => {
            weighted_cross_entropy(logits_mc, classes, weights)
        }
        (Output::OneClass { weights: None, .. }, Targets::Classes(classes)) => plain(logits_mc, classes),
        (Output::AnyClasses { positive, .. }, Targets::Sets(sets)) => {
            binary_cross_entropy(logits_mc, sets, positive.as_deref())
        }
        (Output::Span, Targets::Spans(rows)) => ends(logits_mc, rows),
        (Output::Score, Targets::Scores(scores)) => squared_error(&logits_mc.squeeze(1)?, scores),
        (Output::Rank { loss: RankLoss::Softmax }, Targets::Groups(groups)) => softmax(logits_mc, groups),
        (Output::Rank { loss: RankLoss::Binary }, Targets::Groups(groups)) => binary(logits_mc, groups),
        (Output::Embedding { scale }, Targets::Anchors(anchors)) => {
            in_batch::cross_entropy(logits_mc, anchors, *scale)
        }
        (Output::Metric { loss, margin }, Targets::Identities(rows)) => {
            metric::loss(logits_mc, rows, *loss, *margin)
        }
        (Output::Tag { .. } | Output::Vocabulary { .. }, Targets::Tokens(rows)) => {
            cross_entropy(logits_mc, &rows.concat())
        }
        _ => candle_core::bail!("targets of another kind than the output's"),
    }
}

/// The sum over the samples, or over the groups of a ranking, of the loss that each would have as the only one of a batch, no axes. The
/// targets have been checked.
pub(super) fn sum_of_samples(output: &Output, logits_mc: &Tensor, targets: &Targets) -> Result<Tensor> {
    match (output, targets) {
        // A mean of one is the same whatever its weight.
        (Output::OneClass { .. }, Targets::Classes(classes)) => {
            plain(logits_mc, classes)? * classes.len() as f64
        }
        (Output::Rank { loss: RankLoss::Binary }, Targets::Groups(groups)) => {
            let mut first = 0;
            let mut total = logits_mc.narrow(0, 0, 1)?.sum_all()?.zeros_like()?;
            for group in groups {
                let logits_gc = logits_mc.narrow(0, first, group.rows)?;
                total = (total + binary(&logits_gc, std::slice::from_ref(group))?)?;
                first += group.rows;
            }
            Ok(total)
        }
        (Output::Embedding { scale }, Targets::Anchors(anchors)) => {
            let mut first = 0;
            let mut total = logits_mc.narrow(0, 0, 1)?.sum_all()?.zeros_like()?;
            for Anchor { negatives, .. } in anchors {
                let alone = Anchor { negatives: *negatives, also_match: vec![] };
                let vectors_gd = logits_mc.narrow(0, first, alone.rows())?;
                first += alone.rows();
                total = (total + in_batch::cross_entropy(&vectors_gd, &[alone], *scale)?)?;
            }
            Ok(total)
        }
        (Output::Metric { .. } | Output::Translation { .. }, _) => {
            candle_core::bail!(
                "rows of a metric or a translation are told from each other: one alone has no loss"
            )
        }
        (Output::Tag { .. } | Output::Vocabulary { .. }, Targets::Tokens(rows)) => {
            let mut first = 0;
            let mut total = logits_mc.narrow(0, 0, 1)?.sum_all()?.zeros_like()?;
            for row in rows {
                if row.iter().any(Option::is_some) {
                    total = (total + cross_entropy(&logits_mc.narrow(0, first, row.len())?, row)?)?;
                }
                first += row.len();
            }
            Ok(total)
        }
        _ => mean(output, logits_mc, targets)? * targets.samples() as f64,
    }
}

fn plain(logits_mc: &Tensor, classes: &[u32]) -> Result<Tensor> {
    cross_entropy(logits_mc, &classes.iter().copied().map(Some).collect::<Vec<_>>())
}

fn softmax(logits_m1: &Tensor, groups: &[Group]) -> Result<Tensor> {
    let groups: Vec<(usize, usize)> = groups.iter().map(|group| (group.rows, group.right)).collect();
    group_cross_entropy(&logits_m1.squeeze(1)?, &groups)
}

/// The mean over both ends of all rows of a softmax over the row's tokens.
fn ends(logits_m2: &Tensor, rows: &[Ends]) -> Result<Tensor> {
    let of = |end: fn(&Ends) -> usize| rows.iter().map(move |row| (row.tokens, end(row)));
    let groups: Vec<(usize, usize)> = of(|row| row.first).chain(of(|row| row.last)).collect();
    group_cross_entropy(&logits_m2.t()?.flatten_all()?, &groups)
}

fn binary(logits_m1: &Tensor, groups: &[Group]) -> Result<Tensor> {
    let set = |right: bool| if right { vec![0] } else { vec![] };
    let sets = groups.iter().flat_map(|group| (0..group.rows).map(move |row| set(row == group.right)));
    binary_cross_entropy(logits_m1, &sets.collect::<Vec<_>>(), None)
}

#[cfg(test)]
mod tests {
    use super::super::Task;
    use super::*;
    use crate::nn::check::{numbers, randn};

    #[test]
    fn sums_over_samples_are_what_each_alone_has() {
        let groups = [(3, 1), (1, 0), (2, 1)].map(|(rows, right)| Group { rows, right });
        let rank = |loss| (Output::Rank { loss }, 1, Targets::Groups(groups.to_vec()));
        let one =
            |weights| (Output::OneClass { classes: 3, weights }, 3, Targets::Classes(vec![2, 0, 0, 1, 2, 1]));
        let sets: Vec<Vec<u32>> = vec![vec![], vec![0, 2], vec![1], vec![], vec![0, 1, 2], vec![2]];
        let any = |positive| (Output::AnyClasses { classes: 3, positive }, 3, Targets::Sets(sets.clone()));
        let score = (Output::Score, 1, Targets::Scores(vec![0.0, 1.0, -2.0, 5.0, 0.5, 1.5]));
        let weights = Some(vec![0.5, 4.0, 2.0]);
        let tags = vec![vec![None, Some(2), None], vec![Some(1)], vec![Some(0), Some(2)]];
        let tag = (Output::Tag { classes: 3 }, 3, Targets::Tokens(tags));
        let anchors = vec![Anchor { negatives: 2, also_match: vec![5] }, Anchor::default()];
        let near = (Output::Embedding { scale: 3.0 }, 4, Targets::Anchors(anchors));
        let row = |tokens, first, last| Ends { tokens, first, last };
        let span = (Output::Span, 2, Targets::Spans(vec![row(3, 1, 2), row(1, 0, 0), row(2, 0, 1)]));
        let all = [
            tag,
            span,
            near,
            rank(RankLoss::Softmax),
            rank(RankLoss::Binary),
            one(None),
            one(weights.clone()),
            any(None),
            any(weights),
            score,
        ];
        for (output, width, targets) in all {
            let logits_mc = randn(7, &[6, width]);
            let lengths = if output.is_of_tokens() { vec![3, 1, 2] } else { vec![2; 6] };
            let task = Task { name: "x".to_owned(), output: output.clone(), alpha: 1.0 };
            targets.check(&task, 0, &lengths).unwrap();
            let mut alone = vec![];
            let mut first = 0;
            for sample in 0..targets.samples() {
                let (rows, target) = match &targets {
                    Targets::Classes(classes) => (1, Targets::Classes(vec![classes[sample]])),
                    Targets::Sets(sets) => (1, Targets::Sets(vec![sets[sample].clone()])),
                    Targets::Scores(scores) => (1, Targets::Scores(vec![scores[sample]])),
                    Targets::Groups(groups) => (groups[sample].rows, Targets::Groups(vec![groups[sample]])),
                    Targets::Anchors(anchors) => {
                        let alone = Anchor { negatives: anchors[sample].negatives, also_match: vec![] };
                        (alone.rows(), Targets::Anchors(vec![alone]))
                    }
                    Targets::Identities(_) | Targets::Links(_) => panic!("a row alone has no loss"),
                    Targets::Spans(rows) => (rows[sample].tokens, Targets::Spans(vec![rows[sample]])),
                    Targets::Tokens(rows) => {
                        (rows[sample].len(), Targets::Tokens(vec![rows[sample].clone()]))
                    }
                };
                let logits_gc = logits_mc.narrow(0, first, rows).unwrap();
                alone.push(numbers(&mean(&output, &logits_gc, &target).unwrap())[0]);
                first += rows;
            }
            let exact: f64 = alone.iter().sum();
            let found = numbers(&sum_of_samples(&output, &logits_mc, &targets).unwrap())[0];
            assert!((found - exact).abs() < 1e-5 * exact, "{output:?}: {found} {exact}");
        }
    }
}
